//! How the service is: what its loop tells, and what health checks and metrics show. No locks on the way of the loop.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;

use store::{ScheduleState, SetInfo, WorkerInfo};

/// How the service is.
///
/// ```
/// use std::time::{Duration, Instant};
///
/// use watch::vitals::{Health, Vitals};
///
/// let start = Instant::now();
/// let vitals = Vitals::new(start);
/// vitals.tick(start + Duration::from_secs(60));
/// assert_eq!(vitals.health(start + Duration::from_secs(62)), Health::Fine);
/// assert_eq!(vitals.health(start + Duration::from_secs(70)), Health::Stuck(Duration::from_secs(10)));
/// ```
#[derive(Debug)]
pub struct Vitals {
    start: Instant,
    started_at: Timestamp,
    /// The last turn of the loop: milliseconds after the start.
    ticked: AtomicU64,
    is_draining: AtomicBool,
    /// Why the store cannot be written; empty: it can.
    store: Mutex<String>,
    reload_failed: AtomicBool,
    reloads: AtomicU64,
    /// Dead letters that operators had tried again.
    replayed: AtomicU64,
    facts: Mutex<StoreFacts>,
}

/// Whether the loop of the service runs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Health {
    /// Its last turn was less than 5 seconds ago.
    Fine,
    /// Its last turn was so long ago.
    Stuck(Duration),
}

/// Whether the service does its work.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Readiness {
    /// It does.
    Ready,
    /// It is about to end.
    Draining,
    /// The store cannot be written, for this reason.
    Store(String),
}

/// What was last read of the store for metrics.
#[derive(Clone, Debug, Default)]
pub struct StoreFacts {
    /// The number of dead letters with each reason.
    pub dead_letters: Vec<(String, u64)>,
    /// All schedules.
    pub schedules: Vec<ScheduleState>,
    /// All sets, and whether the last reading of the source of each was complete and believed.
    pub sets: Vec<(SetInfo, bool)>,
    /// The workers that share the store; none if the store is a file.
    pub workers: Vec<WorkerInfo>,
}

impl Vitals {
    /// A service that starts now.
    pub fn new(now: Instant) -> Self {
        Self {
            start: now,
            started_at: Timestamp::now(),
            ticked: AtomicU64::new(0),
            is_draining: AtomicBool::new(false),
            store: Mutex::default(),
            reload_failed: AtomicBool::new(false),
            reloads: AtomicU64::new(0),
            replayed: AtomicU64::new(0),
            facts: Mutex::default(),
        }
    }

    /// The loop has made a turn.
    pub fn tick(&self, now: Instant) {
        self.ticked.store(self.millis(now), Ordering::Relaxed);
    }

    /// Whether the loop runs.
    pub fn health(&self, now: Instant) -> Health {
        let ticked = self.ticked.load(Ordering::Relaxed);
        let ago = Duration::from_millis(self.millis(now).saturating_sub(ticked));
        match ago < LONGEST_TURN {
            true => Health::Fine,
            false => Health::Stuck(ago),
        }
    }

    /// The service is about to end.
    pub fn drain(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
    }

    /// Whether the store can be written: why not, if it cannot. Returns whether that is news.
    pub fn note_store(&self, why_not: Option<&str>) -> bool {
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        let is_news = store.as_str() != why_not.unwrap_or_default();
        if is_news {
            why_not.unwrap_or_default().clone_into(&mut store);
        }
        is_news
    }

    /// Whether the service does its work. Guards do not matter: a service that waits for the network does its work.
    pub fn readiness(&self) -> Readiness {
        let store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        match self.is_draining.load(Ordering::Relaxed) {
            true => Readiness::Draining,
            false if store.is_empty() => Readiness::Ready,
            false => Readiness::Store(store.clone()),
        }
    }

    /// The configuration was read again.
    pub fn note_reload(&self, is_good: bool) {
        self.reload_failed.store(!is_good, Ordering::Relaxed);
        self.reloads.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether the configuration was good when it was last read.
    pub fn is_reload_good(&self) -> bool {
        !self.reload_failed.load(Ordering::Relaxed)
    }

    /// How often the configuration was read again.
    pub fn reloads(&self) -> u64 {
        self.reloads.load(Ordering::Relaxed)
    }

    /// An operator had so many dead letters tried again.
    pub fn note_replayed(&self, count: u64) {
        self.replayed.fetch_add(count, Ordering::Relaxed);
    }

    /// How many dead letters were tried again.
    pub fn replayed(&self) -> u64 {
        self.replayed.load(Ordering::Relaxed)
    }

    /// When the service started.
    pub fn started_at(&self) -> Timestamp {
        self.started_at
    }

    /// Keeps what was read of the store.
    pub fn set_facts(&self, facts: StoreFacts) {
        *self.facts.lock().unwrap_or_else(PoisonError::into_inner) = facts;
    }

    /// What was last read of the store.
    pub fn facts(&self) -> StoreFacts {
        let facts = self.facts.lock().unwrap_or_else(PoisonError::into_inner);
        facts.clone()
    }

    fn millis(&self, now: Instant) -> u64 {
        let since = now.saturating_duration_since(self.start).as_millis();
        u64::try_from(since).unwrap_or(u64::MAX)
    }
}

/// The time without a turn after which the loop counts as stuck.
const LONGEST_TURN: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readiness_follows_the_store_and_the_drain() {
        let vitals = Vitals::new(Instant::now());
        assert_eq!(vitals.readiness(), Readiness::Ready);
        assert!(!vitals.note_store(None));
        assert!(vitals.note_store(Some("no space left")));
        assert!(!vitals.note_store(Some("no space left")));
        assert_eq!(
            vitals.readiness(),
            Readiness::Store("no space left".to_owned())
        );
        vitals.note_store(None);
        assert_eq!(vitals.readiness(), Readiness::Ready);
        vitals.drain();
        assert_eq!(vitals.readiness(), Readiness::Draining);
    }
}
