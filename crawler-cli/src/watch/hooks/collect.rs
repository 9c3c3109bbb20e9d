//! What of the stored events becomes messages. The place of a receiver in the events moves in the same write as the
//! messages that tell of them, and stays while too many messages wait: what is not told is still in the store.

use std::ops::ControlFlow;
use std::time::Duration;

use jiff::Timestamp;

use super::message::{Item, digest};
use crate::check::life::time::{after, between};
use crate::store::{Cursor, Engine, HookState, NewMessage, SKIPPED, StoreError};
use crate::watch::config::Topic;

/// What a receiver wants.
#[derive(Clone, Debug)]
pub(super) struct Wishes {
    pub(super) topics: Vec<Topic>,
    /// In this time come at most [`SINGLES`] messages about one thing each, and one digest.
    pub(super) digest_every: Duration,
    /// In this time comes at most one digest about URLs that flap.
    pub(super) flapping_every: Duration,
}

/// What was posted lately. Kept in memory: a restart may begin a new time.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Pace {
    since: Timestamp,
    singles: usize,
    has_digest: bool,
}

impl Pace {
    fn at(self, now: Timestamp, every: Duration) -> Self {
        // The clock may have been set back.
        match now < self.since || between(self.since, now) >= every {
            true => Self {
                since: now,
                ..Self::default()
            },
            false => self,
        }
    }
}

/// What follows from the events.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Collected {
    /// How far the receiver is told with these messages.
    pub(super) hook: HookState,
    pub(super) messages: Vec<NewMessage>,
    /// How many events were forgotten before they could be told.
    pub(super) lost: u64,
    pub(super) pace: Pace,
    pub(super) next: More,
}

/// When there is something to collect again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum More {
    /// At once: there are more events than were looked at.
    Now,
    /// Something waits for its digest until then, and nothing can be told before.
    At(Timestamp),
    /// When something happens.
    Later,
}

/// Looks at what happened after `hook`. `room` is how many messages may be posted.
pub(super) fn collect(
    store: &mut (impl Engine + ?Sized),
    hook: &HookState,
    wishes: &Wishes,
    pace: Pace,
    room: usize,
    now: Timestamp,
) -> Result<Collected, StoreError> {
    let mut collected = Collected {
        hook: hook.clone(),
        messages: Vec::new(),
        lost: 0,
        pace: pace.at(now, wishes.digest_every),
        next: More::Later,
    };
    if room == 0 {
        return Ok(collected);
    }
    let batch = Batch::read(store, hook, wishes, now)?;
    collected.post(batch, wishes, room, now);
    if collected.messages.len() < room {
        collected.flapping(store, wishes, now)?;
    }
    Ok(collected)
}

impl Collected {
    fn post(&mut self, batch: Batch, wishes: &Wishes, room: usize, now: Timestamp) {
        let items = &batch.items;
        let singles = SINGLES.saturating_sub(self.pace.singles).min(room);
        if items.len() <= singles {
            self.pace.singles += items.len();
            let messages = items
                .iter()
                .map(|item| self.message(std::slice::from_ref(item), item.body()));
            self.messages = messages.collect();
        } else if batch.fills_digest || !self.pace.has_digest {
            self.pace.has_digest = true;
            self.messages = vec![self.message(items, digest(items, false, now))];
        } else {
            self.next = More::At(after(self.pace.since, wishes.digest_every));
            return;
        }
        self.lost = batch.lost;
        self.hook = batch.hook;
        if batch.is_full {
            self.next = More::Now;
        }
    }

    /// Adds a digest of what happened to URLs that flap, if it is time for one.
    fn flapping(
        &mut self,
        store: &mut (impl Engine + ?Sized),
        wishes: &Wishes,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let is_soon = |at: &Timestamp| now >= *at && between(*at, now) < wishes.flapping_every;
        if self.hook.damped_at.as_ref().is_some_and(is_soon) {
            // Everything else is told meanwhile. The thread looks every minute, and so finds the time.
            return Ok(());
        }
        let mut limit = Limit::default();
        let mut items = Vec::new();
        for event in store.damped_events(self.hook.damped, MOST_ITEMS)? {
            // What is after the place of the receiver is looked at when it gets there.
            if event.cursor > self.hook.events || limit.is_reached() {
                break;
            }
            self.hook.damped = event.cursor;
            if let Some(item) = Item::of_event(&event, &wishes.topics) {
                limit.take(&item);
                items.push(item);
            }
        }
        if !items.is_empty() {
            self.hook.damped_at = Some(now);
            self.messages
                .push(self.message(&items, digest(&items, true, now)));
        }
        Ok(())
    }

    fn message(&self, items: &[Item], body: Vec<u8>) -> NewMessage {
        NewMessage {
            receiver: self.hook.receiver.clone(),
            topic: Item::topic(items).to_owned(),
            body,
        }
    }
}

/// What happened after the place of a receiver, as far as it was looked at.
struct Batch {
    hook: HookState,
    items: Vec<Item>,
    lost: u64,
    /// There may be more.
    is_full: bool,
    /// There are as many items as a digest takes.
    fills_digest: bool,
}

impl Batch {
    fn read(
        store: &mut (impl Engine + ?Sized),
        hook: &HookState,
        wishes: &Wishes,
        now: Timestamp,
    ) -> Result<Self, StoreError> {
        let mut batch = Self {
            hook: hook.clone(),
            items: Vec::new(),
            lost: 0,
            is_full: false,
            fills_digest: false,
        };
        let mut limit = Limit::default();
        batch.events(store, wishes, &mut limit)?;
        if !batch.is_full {
            batch.notices(store, wishes, &mut limit)?;
            batch.letters(store, wishes, &mut limit)?;
        }
        batch.fills_digest = limit.is_reached();
        batch.items.sort_by_key(|item| item.at);
        if batch.lost > 0 {
            batch.items.insert(0, Item::of_lost(batch.lost, now));
        }
        Ok(batch)
    }

    fn events(
        &mut self,
        store: &mut (impl Engine + ?Sized),
        wishes: &Wishes,
        limit: &mut Limit,
    ) -> Result<(), StoreError> {
        let (mut looked, mut missing) = (0, 0);
        store.events(self.hook.events, &mut |event| {
            looked += 1;
            missing += missing_between(self.hook.events, event.cursor);
            self.hook.events = event.cursor;
            let item = Item::of_event(&event, &wishes.topics).filter(|_| !event.is_damped);
            if let Some(item) = item {
                limit.take(&item);
                self.items.push(item);
            }
            self.is_full = limit.is_reached() || looked >= LOOKS;
            match self.is_full {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        })?;
        if wishes.topics.iter().any(|topic| topic.is_of_urls()) {
            self.lost = missing;
        }
        Ok(())
    }

    fn notices(
        &mut self,
        store: &mut (impl Engine + ?Sized),
        wishes: &Wishes,
        limit: &mut Limit,
    ) -> Result<(), StoreError> {
        let start = self.hook.notices;
        let notices = store.notices(start, MOST_ITEMS)?;
        let mut looked = 0;
        for (number, notice) in &notices {
            if limit.is_reached() {
                break;
            }
            looked += 1;
            self.hook.notices = *number;
            if !wishes.topics.contains(&Topic::Guard) {
                continue;
            }
            let root = match notice.host {
                Some(host) => store.root_of(host)?,
                None => None,
            };
            if let Some(item) = Item::of_notice(notice, root.as_deref()) {
                limit.take(&item);
                self.items.push(item);
            }
        }
        self.is_full |= looked < notices.len() || notices.len() == MOST_ITEMS;
        if wishes.topics.contains(&Topic::Guard) {
            let numbers = usize::try_from(self.hook.notices.0 - start.0).unwrap_or_default();
            self.lost += numbers.saturating_sub(looked) as u64;
        }
        Ok(())
    }

    fn letters(
        &mut self,
        store: &mut (impl Engine + ?Sized),
        wishes: &Wishes,
        limit: &mut Limit,
    ) -> Result<(), StoreError> {
        let letters = store.letters_told_after(self.hook.letters, MOST_ITEMS)?;
        for (turn, letter) in &letters {
            if limit.is_reached() {
                self.is_full = true;
                break;
            }
            self.hook.letters = *turn;
            let is_wanted = wishes.topics.contains(&Topic::DeadLetter);
            if let Some(item) = Item::of_letter(letter).filter(|_| is_wanted) {
                limit.take(&item);
                self.items.push(item);
            }
        }
        self.is_full |= letters.len() == MOST_ITEMS;
        Ok(())
    }
}

/// How many events between these two were forgotten with their URLs. Each number is that of one event, but for those that
/// a restore of the store has left out.
fn missing_between(last: Cursor, next: Cursor) -> u64 {
    let missing = next.0.saturating_sub(last.0).saturating_sub(1) % SKIPPED;
    u64::try_from(missing).unwrap_or_default()
}

/// How much a digest has.
#[derive(Debug, Default)]
struct Limit {
    items: usize,
    bytes: usize,
}

impl Limit {
    fn take(&mut self, item: &Item) {
        self.items += 1;
        self.bytes += item.size();
    }

    fn is_reached(&self) -> bool {
        self.items >= MOST_ITEMS || self.bytes >= MOST_BYTES
    }
}

/// Messages about one thing each in the time of a digest.
pub(super) const SINGLES: usize = 5;
/// The most that a digest has.
const MOST_ITEMS: usize = 1000;
/// A digest with so many bytes takes nothing more.
const MOST_BYTES: usize = 256 << 10;
/// How many events are looked at in one go.
const LOOKS: u64 = 50_000;
