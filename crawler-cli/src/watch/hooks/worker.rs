//! One receiver: collects what it is to be told, and sends it. The thread around it (`thread`) waits; each turn takes the
//! time as an argument, and sends through a closure.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::backoff;
use super::board::{Delivery as Counted, HookBoard, HookCondition, LastAnswer};
use super::collect::{Collected, More, Pace, Wishes, collect};
use super::message;
use super::order::{Next, next};
use super::send::{Failed, Sent, Target};
use crate::check::life::time::{after, between};
use crate::crawl::random::Random;
use crate::jobs::Cancel;
use crate::store::{
    Delivered, Delivery, Engine, HookState, JobStore as _, Message, MessageId, Notice, StoreError,
    StoreHandle as _, Writer,
};
use crate::watch::hands::Reader;

/// What all receivers share.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    pub(super) store: Writer,
    pub(super) reader: Arc<Mutex<Reader>>,
    pub(super) board: Arc<HookBoard>,
    /// Begins the numbers of all messages.
    pub(super) store_id: String,
    /// What is being sent is given up.
    pub(super) cancel: Cancel,
    /// Whether other services may send to the same receivers.
    pub(super) is_shared: bool,
}

/// One receiver.
pub(super) struct Worker {
    shared: Shared,
    name: String,
    target: Target,
    wishes: Wishes,
    /// As the store has it.
    saved: HookState,
    /// The store may know something else by now.
    is_stale: bool,
    /// How far it was looked beyond `saved`, without anything to tell.
    hook: HookState,
    pace: Pace,
    /// Messages that the receiver refused.
    refused: HashSet<MessageId>,
    /// An operator wants the next message to be sent now.
    is_hurried: bool,
    /// Nothing is collected before this time.
    collect_at: Timestamp,
    random: Random,
}

/// Sends a message: its number and its body.
pub(super) type Send<'s> = dyn FnMut(&str, &[u8]) -> Sent + 's;

/// When the next turn is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Turn {
    Now,
    At(Timestamp),
}

impl Worker {
    /// `saved` is what the store knows of the receiver.
    pub(super) fn new(
        shared: Shared,
        saved: HookState,
        (target, wishes): (Target, Wishes),
        seed: u64,
    ) -> Self {
        Self {
            shared,
            name: saved.receiver.clone(),
            target,
            wishes,
            hook: saved.clone(),
            saved,
            is_stale: false,
            pace: Pace::default(),
            refused: HashSet::new(),
            is_hurried: false,
            collect_at: Timestamp::MIN,
            random: Random::new(seed),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn target(&self) -> &Target {
        &self.target
    }

    /// Is set when what is being sent is given up.
    pub(super) fn cancel(&self) -> &Cancel {
        &self.shared.cancel
    }

    /// The configuration has changed.
    pub(super) fn set_settings(&mut self, (target, wishes): (Target, Wishes)) {
        (self.target, self.wishes) = (target, wishes);
        self.is_stale = true;
    }

    /// An operator wants the receiver to go on, without any wait.
    pub(super) fn resume(&mut self) {
        self.is_hurried = true;
        self.refused.clear();
        self.is_stale = true;
    }

    /// Collects what is new, and sends a message whose time has come.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub(super) fn turn(&mut self, now: Timestamp, send: &mut Send<'_>) -> Result<Turn, StoreError> {
        // The store keeps times to the millisecond, and states are compared with what it has.
        let now = Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now);
        if self.is_of_another()? {
            self.is_stale = true;
            return Ok(Turn::At(after(now, LOOK_AGAIN)));
        }
        self.reload()?;
        let mut outbox = self.outbox()?;
        if let Some((since, why)) = self.saved.stopped.clone() {
            self.show(&outbox, HookCondition::Stopped { since, why });
            return Ok(Turn::At(Timestamp::MAX));
        }
        let is_early = now < self.collect_at && between(now, self.collect_at) <= COLLECT_AHEAD;
        let more = match is_early {
            true => More::At(self.collect_at),
            false => self.collect(now, MOST_WAITING.saturating_sub(outbox.len()))?,
        };
        if more == More::Later || more == More::Now {
            outbox = self.outbox()?;
        }
        match next(&outbox, &self.refused, now, self.is_hurried) {
            Next::Send(index) => {
                self.show(&outbox, HookCondition::Sending);
                self.send(&outbox[index], now, send)?;
                Ok(Turn::Now)
            }
            Next::Wait(until) => {
                self.show(&outbox, HookCondition::Waiting { until });
                Ok(Turn::At(earliest(until, more, now)))
            }
            Next::Nothing => {
                self.refused.clear();
                self.show(&outbox, HookCondition::UpToDate);
                Ok(Turn::At(earliest(Timestamp::MAX, more, now)))
            }
        }
    }

    fn collect(&mut self, now: Timestamp, room: usize) -> Result<More, StoreError> {
        let mut reader = self
            .shared
            .reader
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let collected = reader.at_once(|reader| {
            collect(
                reader.store(),
                &self.hook,
                &self.wishes,
                self.pace,
                room,
                now,
            )
        });
        drop(reader);
        let collected = collected?;
        let (more, pace) = (collected.next, collected.pace);
        let looked = collected.hook.events.0 - self.saved.events.0;
        match collected.messages.is_empty() && looked < MOST_UNSAVED {
            true => self.hook = collected.hook,
            // Somebody has changed what the store knows: what was collected is collected again.
            false if !self.post(collected, now)? => return Ok(More::Now),
            false => {}
        }
        self.pace = pace;
        self.collect_at = match more {
            More::Now => now,
            More::At(at) => at.min(after(now, COLLECT_AHEAD)),
            More::Later => after(now, COLLECT_EVERY),
        };
        Ok(more)
    }

    /// Stores messages with how far they tell. `false`: the store knows something else of the receiver by now.
    fn post(&mut self, collected: Collected, now: Timestamp) -> Result<bool, StoreError> {
        let (saved, hook) = (self.saved.clone(), collected.hook.clone());
        let notice = (collected.lost > 0).then(|| {
            let text = format!(
                "{} events were forgotten before the webhook {} could be told of them",
                collected.lost, self.name
            );
            self.notice(text, now)
        });
        let is_posted = self.shared.store.call(move |engine| {
            if engine.hook(&saved.receiver)?.as_ref() != Some(&saved) {
                return Ok(false);
            }
            engine.post(&collected.messages, now)?;
            engine.save_hook(&collected.hook)?;
            note(engine, notice.as_ref())?;
            Ok(true)
        })?;
        match is_posted {
            true => (self.saved, self.hook) = (hook.clone(), hook),
            false => self.is_stale = true,
        }
        Ok(is_posted)
    }

    fn send(
        &mut self,
        message: &Message,
        now: Timestamp,
        send: &mut Send<'_>,
    ) -> Result<(), StoreError> {
        let id = format!("msg_{}_{}", self.shared.store_id, message.id.0);
        let began = Instant::now();
        self.refused.remove(&message.id);
        let sent = send(&id, &message.message.body);
        let now = after(now, began.elapsed());
        self.is_hurried = false;
        let (counted, text) = match &sent {
            Sent::Stopped => return Ok(()),
            Sent::Delivered(status) => (Counted::Delivered, format!("HTTP {status}")),
            Sent::Gone => (Counted::Stopped, "HTTP 410".to_owned()),
            Sent::Failed(failed) => (Counted::Failed, failed.why.clone()),
        };
        self.shared.board.count(counted);
        self.shared.board.update(&self.name, |status| {
            status.delivered += u64::from(counted == Counted::Delivered);
            status.last = Some(LastAnswer {
                at: now,
                answer: text,
            });
        });
        let delivered = match sent {
            Sent::Stopped => return Ok(()),
            Sent::Gone => return self.stop(now),
            Sent::Delivered(_) => Delivered::Sent,
            Sent::Failed(failed) => self.failed(message, &failed, now),
        };
        let delivery = Delivery {
            message: message.id,
            attempts: message.attempts,
            delivered,
        };
        // What was sent and is not settled would be sent again and again.
        let settle = move |engine: &mut dyn Engine| {
            engine.settle_outgoing(std::slice::from_ref(&delivery), now)
        };
        self.shared.store.insist(settle)
    }

    fn failed(&mut self, message: &Message, failed: &Failed, now: Timestamp) -> Delivered {
        let failures = message.attempts.saturating_add(1);
        let draw = self.random.next_number() as f64 / u64::MAX as f64;
        let why = &failed.why;
        if let Some(wait) = backoff::wait(failures, draw, failed.asked) {
            if failed.is_refused {
                self.refused.insert(message.id);
            }
            let at = after(now, wait);
            match message.attempts {
                0 => tracing::warn!("webhook {}: {why}; again at {at:.0}", self.name),
                _ => tracing::info!("webhook {}: {why}; again at {at:.0}", self.name),
            }
            return Delivered::Retry(at);
        }
        self.shared.board.count(Counted::Dead);
        tracing::error!(
            "webhook {}: dead letter after {failures} attempts: {why}",
            self.name
        );
        Delivered::Dead {
            reason: UNDELIVERABLE.to_owned(),
            last: format!("POST {}/...\n{why}\n{}", self.origin(), failed.answer),
        }
    }

    /// The receiver wants no messages any more. Those that wait stay.
    fn stop(&mut self, now: Timestamp) -> Result<(), StoreError> {
        let text = format!(
            "the webhook {} is stopped: its receiver answered 410; go on with 'crawler-cli watch webhook resume {}'",
            self.name, self.name
        );
        tracing::warn!("{text}");
        let notice = self.notice(text, now);
        let asked = self.saved.clone();
        self.is_stale = true;
        self.shared.store.insist(move |engine| {
            // A receiver that was forgotten meanwhile stays forgotten, and one with another address may want messages there.
            let known = engine.hook(&asked.receiver)?;
            if let Some(mut hook) = known.filter(|hook| hook.address == asked.address) {
                hook.stopped = Some((now, "its receiver answered 410".to_owned()));
                engine.save_hook(&hook)?;
                engine.note(&notice)?;
            }
            Ok(())
        })
    }

    /// Sends a test message, whatever waits.
    pub(super) fn test(&self, send: &mut Send<'_>) -> Result<String, String> {
        let now = Timestamp::now();
        let id = format!("test_{}_{}", self.shared.store_id, now.as_millisecond());
        let body = message::test(now);
        let answer = match send(&id, &body) {
            Sent::Delivered(status) => Ok(format!("HTTP {status}")),
            Sent::Gone => Err("HTTP 410: the receiver wants no messages".to_owned()),
            Sent::Failed(failed) => Err(failed.why),
            Sent::Stopped => Err("the service ends".to_owned()),
        };
        let (Ok(text) | Err(text)) = &answer;
        let text = format!("test: {text}");
        self.shared.board.update(&self.name, |status| {
            status.last = Some(LastAnswer {
                at: now,
                answer: text,
            })
        });
        answer
    }

    /// Takes what the store knows of the receiver, if that may have changed.
    /// Whether another worker of the fleet sends to this receiver.
    fn is_of_another(&self) -> Result<bool, StoreError> {
        if !self.shared.is_shared {
            return Ok(false);
        }
        let task = format!("webhook {}", self.name);
        let is_ours = self
            .shared
            .store
            .call(move |engine| engine.take_task(&task));
        is_ours.map(|is_ours| !is_ours)
    }

    fn reload(&mut self) -> Result<(), StoreError> {
        if !self.is_stale {
            return Ok(());
        }
        let mut reader = self
            .shared
            .reader
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let known = reader.store().hook(&self.name)?;
        drop(reader);
        if let Some(saved) = known {
            (self.saved, self.hook) = (saved.clone(), saved);
        }
        self.is_stale = false;
        self.collect_at = Timestamp::MIN;
        Ok(())
    }

    fn outbox(&self) -> Result<Vec<Message>, StoreError> {
        let mut reader = self
            .shared
            .reader
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // One more than may wait: operators may have replayed dead letters.
        reader.store().outbox(&self.name, MOST_WAITING + 1)
    }

    fn show(&self, outbox: &[Message], condition: HookCondition) {
        let origin = self.origin();
        self.shared.board.update(&self.name, |status| {
            status.origin = Some(origin);
            status.condition = condition;
            status.waiting = outbox.len() as u64;
            status.oldest = outbox.iter().map(|message| message.posted_at).min();
            status.is_behind = outbox.len() >= MOST_WAITING;
        });
    }

    fn origin(&self) -> String {
        self.target.url.origin().ascii_serialization()
    }

    fn notice(&self, text: String, now: Timestamp) -> Notice {
        Notice {
            at: now,
            kind: "webhook".to_owned(),
            host: None,
            who: None,
            text,
        }
    }
}

fn note(engine: &mut dyn Engine, notice: Option<&Notice>) -> Result<(), StoreError> {
    notice.map_or(Ok(()), |notice| engine.note(notice).map(drop))
}

/// When the next turn is, if nothing happens before.
fn earliest(until: Timestamp, more: More, now: Timestamp) -> Timestamp {
    match more {
        More::Now => now,
        More::At(at) => until.min(at),
        More::Later => until,
    }
}

/// How soon it is looked again whether a worker that sends to a receiver is still there.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// The reason of the dead letter of a message that was sent too often without success.
pub(super) const UNDELIVERABLE: &str = "webhook_undeliverable";
/// How many messages of a receiver wait at most; dead letters that are replayed come on top.
pub(super) const MOST_WAITING: usize = 16;
/// Further events than this are not looked at again after a restart.
const MOST_UNSAVED: i64 = 100_000;
/// What happens is collected at most this often.
const COLLECT_EVERY: Duration = Duration::from_secs(1);
/// The longest time for which nothing is collected. A longer one is of a clock that was set back.
const COLLECT_AHEAD: Duration = Duration::from_secs(24 * 3600);
