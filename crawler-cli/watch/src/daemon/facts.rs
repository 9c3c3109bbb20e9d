//! What metrics show of the store, read by the thread that owns it every few seconds: whoever reads metrics never waits for
//! the store.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::hour::Hour;
use crate::sets::Readings;
use crate::vitals::{StoreFacts, Vitals};
use store::{Engine, Nature, Op, StoreError, StoreHandle};

/// Keeps the house: reads the facts, counts the minutes, and drops what is too old.
pub(super) struct Housekeeping {
    vitals: Arc<Vitals>,
    readings: Readings,
    hour: Arc<Hour>,
    /// How long URLs in no set and dead letters are kept; `None`: for ever.
    pub(super) keep: Option<Duration>,
    facts: Chore,
    expiry: Chore,
    letters: Chore,
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
    pub(super) fn new(
        vitals: Arc<Vitals>,
        readings: Readings,
        hour: Arc<Hour>,
        keep: Option<Duration>,
    ) -> Self {
        Self {
            vitals,
            readings,
            hour,
            keep,
            facts: Chore::new(FACTS_EVERY),
            expiry: Chore::new(EXPIRY_EVERY),
            letters: Chore::new(EXPIRY_EVERY),
        }
    }

    /// Sends what is due.
    pub(super) fn turn(&mut self, now: Instant, wall: Timestamp, store: &impl StoreHandle) {
        if self.facts.begin(now) {
            store.send(Box::new(ReadFacts {
                vitals: Arc::clone(&self.vitals),
                readings: self.readings.clone(),
                is_under_way: Arc::clone(&self.facts.is_under_way),
                facts: StoreFacts::default(),
            }));
        }
        self.hour.turn(now);
        let Some(before) = self.keep.and_then(|keep| wall.checked_sub(keep).ok()) else {
            return;
        };
        let olds: [(_, _, DropSome); 2] = [
            (
                &mut self.expiry,
                "URLs that are in no set for too long",
                |engine, before| engine.expire(before, DROPPED_AT_ONCE),
            ),
            (&mut self.letters, "old dead letters", |engine, before| {
                engine.expire_dead_letters(before, DROPPED_AT_ONCE)
            }),
        ];
        for (chore, what, some) in olds {
            if chore.begin(now) {
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

struct ReadFacts {
    vitals: Arc<Vitals>,
    readings: Readings,
    is_under_way: Arc<AtomicBool>,
    facts: StoreFacts,
}

impl Op for ReadFacts {
    fn run(&mut self, engine: &mut dyn Engine) -> Result<(), StoreError> {
        self.facts = StoreFacts {
            workers: engine.workers()?,
            dead_letters: engine.dead_letter_counts()?,
            schedules: engine.schedules()?,
            sets: Vec::new(),
        };
        let readings = self.readings.all();
        for set in engine.sets()? {
            let last = readings.get(&set.name);
            let is_ok = set.refused.is_none() && last.is_none_or(|last| last.outcome.is_ok());
            self.facts.sets.push((set, is_ok));
        }
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
/// How often what is too old is dropped.
const EXPIRY_EVERY: Duration = Duration::from_secs(3600);
/// How much of it is dropped in one transaction.
const DROPPED_AT_ONCE: usize = 256;
