//! What metrics show of the store, read by the thread that owns it every few seconds: whoever reads metrics never waits for
//! the store.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::store::{Engine, Nature, Op, StoreError, StoreHandle};
use crate::watch::series::{Sample, Sampler};
use crate::watch::vitals::{StoreFacts, Vitals};

/// Keeps the house: reads the facts, takes samples, and drops what is too old.
pub(super) struct Housekeeping {
    vitals: Arc<Vitals>,
    sampler: Sampler,
    /// How long URLs in no set and dead letters are kept; `None`: for ever.
    pub(super) keep: Option<Duration>,
    facts: Chore,
    expiry: Chore,
    letters: Chore,
    forgetting: Chore,
}

/// Something that the store does now and then.
struct Chore {
    every: Duration,
    done_at: Option<Instant>,
    /// It was sent and is not done.
    is_under_way: Arc<AtomicBool>,
    /// There is more of it: it goes on at once.
    has_more: Arc<AtomicBool>,
}

impl Chore {
    fn new(every: Duration) -> Self {
        Self {
            every,
            done_at: None,
            is_under_way: Arc::default(),
            has_more: Arc::default(),
        }
    }

    /// Whether it is to be sent now.
    fn begin(&mut self, now: Instant) -> bool {
        if self.is_under_way.load(Ordering::Acquire) {
            return false;
        }
        let is_soon = |at| now.saturating_duration_since(at) < self.every;
        if self.done_at.is_some_and(is_soon) && !self.has_more.load(Ordering::Relaxed) {
            return false;
        }
        self.done_at = Some(now);
        self.is_under_way.store(true, Ordering::Release);
        true
    }
}

impl Housekeeping {
    pub(super) fn new(vitals: Arc<Vitals>, sampler: Sampler, keep: Option<Duration>) -> Self {
        Self {
            vitals,
            sampler,
            keep,
            facts: Chore::new(FACTS_EVERY),
            expiry: Chore::new(EXPIRY_EVERY),
            letters: Chore::new(EXPIRY_EVERY),
            forgetting: Chore::new(EXPIRY_EVERY),
        }
    }

    /// Sends what is due.
    pub(super) fn turn(&mut self, now: Instant, wall: Timestamp, store: &impl StoreHandle) {
        if self.facts.begin(now) {
            let sample = self.sampler.last().unwrap_or_default();
            store.send(Box::new(ReadFacts {
                vitals: Arc::clone(&self.vitals),
                sample: sample.to_text(),
                is_under_way: Arc::clone(&self.facts.is_under_way),
                facts: StoreFacts::default(),
            }));
        }
        let vitals = &self.vitals;
        let others = || vitals.facts().others().collect();
        if let Some(sample) = self.sampler.turn(now, wall, others) {
            store.send(Box::new(SaveSample { at: wall, sample }));
        }
        let before = |keep| wall.checked_sub(keep).ok();
        let kept = self.keep.and_then(before);
        let olds: [(_, _, _, DropSome); 3] = [
            (
                &mut self.expiry,
                kept,
                "URLs that are in no set for too long",
                |engine, before| engine.expire(before, DROPPED_AT_ONCE),
            ),
            (
                &mut self.letters,
                kept,
                "old dead letters",
                |engine, before| engine.expire_dead_letters(before, DROPPED_AT_ONCE),
            ),
            (
                &mut self.forgetting,
                before(REMEMBERED_FOR),
                "answers to requests with a key",
                |engine, before| engine.forget_remembered(before, DROPPED_AT_ONCE),
            ),
        ];
        for (chore, before, what, some) in olds {
            if let Some(before) = before
                && chore.begin(now)
            {
                store.send(Box::new(DropOld {
                    what,
                    some,
                    before,
                    is_under_way: Arc::clone(&chore.is_under_way),
                    has_more: Arc::clone(&chore.has_more),
                    count: 0,
                }));
            }
        }
    }
}

struct SaveSample {
    at: Timestamp,
    sample: Sample,
}

impl Op for SaveSample {
    fn run(&mut self, engine: &mut dyn Engine) -> Result<(), StoreError> {
        // The samples of all workers, and of a service that was started again, are one.
        let slot = self.at.as_millisecond().div_euclid(SLOT) * SLOT;
        let slot = Timestamp::from_millisecond(slot).unwrap_or(self.at);
        let stored = engine
            .samples(slot)?
            .into_iter()
            .find(|(at, _)| *at == slot);
        let stored = stored.and_then(|(_, text)| Sample::from_text(&text));
        let sample = stored.map_or(self.sample, |stored| self.sample.with(&stored));
        engine.save_sample(slot, &sample.to_text())
    }

    fn done(self: Box<Self>, result: Result<(), StoreError>) {
        if let Err(error) = result {
            tracing::debug!("a sample was lost: {error}");
        }
    }
}

struct ReadFacts {
    vitals: Arc<Vitals>,
    /// What this service does.
    sample: String,
    is_under_way: Arc<AtomicBool>,
    facts: StoreFacts,
}

impl Op for ReadFacts {
    fn run(&mut self, engine: &mut dyn Engine) -> Result<(), StoreError> {
        let own = engine.publish(&self.sample)?;
        self.facts = StoreFacts {
            own,
            workers: engine.workers()?,
            dead_letters: engine.dead_letter_counts()?,
            schedules: engine.schedules()?,
        };
        Ok(())
    }

    fn done(self: Box<Self>, result: Result<(), StoreError>) {
        if result.is_ok() {
            self.vitals.set_facts(self.facts);
        }
        self.is_under_way.store(false, Ordering::Release);
    }

    fn nature(&self) -> Nature {
        Nature::Read
    }
}

/// Drops some of what is older than this, and tells how many.
type DropSome = fn(&mut dyn Engine, Timestamp) -> Result<u64, StoreError>;

/// Drops what is too old, some at a time.
struct DropOld {
    what: &'static str,
    some: DropSome,
    before: Timestamp,
    is_under_way: Arc<AtomicBool>,
    has_more: Arc<AtomicBool>,
    count: u64,
}

impl Op for DropOld {
    fn run(&mut self, engine: &mut dyn Engine) -> Result<(), StoreError> {
        self.count = (self.some)(engine, self.before)?;
        Ok(())
    }

    fn done(self: Box<Self>, result: Result<(), StoreError>) {
        let has_more = result.is_ok() && self.count >= DROPPED_AT_ONCE as u64;
        self.has_more.store(has_more, Ordering::Relaxed);
        if self.count > 0 && result.is_ok() {
            tracing::info!(count = self.count, "dropped {}", self.what);
        }
        self.is_under_way.store(false, Ordering::Release);
    }

    fn rows(&self) -> usize {
        DROPPED_AT_ONCE
    }
}

/// How old the numbers of the store in metrics may be.
const FACTS_EVERY: Duration = Duration::from_secs(5);
/// Samples in the store have these times, in milliseconds.
const SLOT: i64 = 300_000;
/// How often what is too old is dropped.
const EXPIRY_EVERY: Duration = Duration::from_secs(3600);
/// How much of it is dropped in one transaction.
const DROPPED_AT_ONCE: usize = 256;
/// How long answers to requests with a key are kept.
const REMEMBERED_FOR: Duration = Duration::from_secs(24 * 3600);
