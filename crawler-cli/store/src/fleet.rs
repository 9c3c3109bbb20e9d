//! Several processes that work on one store: each host is worked on by one of them.
//!
//! A process that asks URLs is a *worker*. It joins the fleet, and then [`WatchStore::ready`](super::WatchStore::ready)
//! hands out hosts that are this worker's alone, until it [gives them back](FleetStore::release). What a worker has is
//! *leased*: transactions of the worker make the lease longer, and when the lease has ended, other workers take over
//! what it had. The number of the worker is the *fence*: a worker whose lease was taken over has to join again, under
//! another number, and what it says about hosts of the old one is not stored.
//!
//! A store in a file has one worker, which has all hosts, for ever.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::{Completion, HostFacts, HostId, Judgement, StoreError};

/// How long a worker has what it has without a sign of life, by the clock of the database.
pub const LEASE: Duration = Duration::from_secs(60);

/// How much earlier than its lease ends a worker stops to ask, by its own clock: requests take time, and no two clocks run
/// alike.
pub const MARGIN: Duration = Duration::from_secs(10);

/// Judgements that could not be stored when they were made.
#[derive(Clone, Debug)]
pub struct Late {
    /// The number of the worker that made them.
    pub worker: i64,
    /// What was judged.
    pub judgements: Vec<Judgement>,
    /// What became known about hosts.
    pub facts: Vec<(HostId, HostFacts)>,
}

/// A worker that joins a fleet.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NewWorker {
    /// What operators call it; need not be unique.
    pub name: String,
    /// The number of its process.
    pub process: u32,
    /// The version of its program.
    pub version: String,
    /// How long it has what it has without a sign of life. Usually [`LEASE`].
    pub lease: Duration,
}

/// What a fleet knows about a worker.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct WorkerInfo {
    /// Its number. No two workers ever have the same one.
    pub number: i64,
    /// What operators call it.
    pub name: String,
    /// The number of its process.
    pub process: u32,
    /// The version of its program.
    pub version: String,
    /// How long it has been in the fleet.
    pub age: Duration,
    /// How long its last sign of life is ago.
    pub silent: Duration,
    /// How many hosts it has.
    pub hosts: u64,
}

/// Until when a worker may ask the hosts that it has. Clones are the same tenure.
///
/// ```
/// use std::time::{Duration, Instant};
/// use store::Tenure;
///
/// let now = Instant::now();
/// let tenure = Tenure::endless();
/// assert!(!tenure.is_over(now + Duration::from_secs(1_000_000)));
/// ```
#[derive(Clone, Debug)]
pub struct Tenure(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    base: Instant,
    /// In milliseconds after `base`.
    until: AtomicU64,
    number: AtomicI64,
}

impl Tenure {
    /// The tenure of a worker that shares its store with no other.
    pub fn endless() -> Self {
        Self::with(u64::MAX)
    }

    /// A tenure that has not begun.
    pub fn ended() -> Self {
        Self::with(0)
    }

    fn with(until: u64) -> Self {
        Self(Arc::new(Shared {
            base: Instant::now(),
            until: AtomicU64::new(until),
            number: AtomicI64::new(0),
        }))
    }

    /// Whether the worker may not ask any more, until it is told otherwise.
    pub fn is_over(&self, now: Instant) -> bool {
        let now = now.saturating_duration_since(self.0.base).as_millis();
        now >= u128::from(self.0.until.load(Ordering::Acquire))
    }

    /// The number of the worker; 0 for one without others. When the number changes, all hosts that the worker had are lost.
    pub fn number(&self) -> i64 {
        self.0.number.load(Ordering::Acquire)
    }

    /// The worker with this number has a lease until then.
    pub fn renew(&self, number: i64, until: Instant) {
        let until = until.saturating_duration_since(self.0.base).as_millis();
        let until = u64::try_from(until).unwrap_or(u64::MAX);
        self.0.number.store(number, Ordering::Release);
        self.0.until.store(until, Ordering::Release);
    }
}

/// What an engine can do for a fleet.
///
/// ```
/// use store::sqlite::Sqlite;
/// use store::{FleetStore, LEASE, NewWorker};
///
/// let mut store = Sqlite::temporary()?;
/// let worker = NewWorker { name: "one".into(), process: 1, version: "0.1".into(), lease: LEASE };
/// let tenure = store.join_fleet(&worker)?;
/// assert_eq!(tenure.number(), 0);
/// // Nobody else could read the sources.
/// assert!(store.take_task("sets")?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait FleetStore: Send {
    /// Joins the fleet. From now on the store hands out hosts to this worker alone, and stores what it says about them.
    ///
    /// # Errors
    /// The store cannot be written.
    fn join_fleet(&mut self, worker: &NewWorker) -> Result<Tenure, StoreError>;

    /// Gives a sign of life, and takes over from workers whose lease has ended. Changes do the same; this is for workers that
    /// have nothing to change.
    ///
    /// # Errors
    /// The store cannot be written.
    fn beat(&mut self) -> Result<(), StoreError>;

    /// Gives back the hosts that the worker has, but those in use. Returns how many.
    ///
    /// # Errors
    /// The store cannot be written.
    fn release(&mut self, in_use: &HashSet<HostId>) -> Result<u64, StoreError>;

    /// No worker claims these hosts before these times.
    ///
    /// # Errors
    /// The store cannot be written.
    fn rest(&mut self, hosts: &[(HostId, Timestamp)]) -> Result<(), StoreError>;

    /// Stores judgements of a worker whose process is dead, about hosts that no other worker has taken over.
    ///
    /// # Errors
    /// The store cannot be read or written.
    fn judge_late(&mut self, late: &Late) -> Result<Completion, StoreError>;

    /// Gives everything back and leaves the fleet.
    ///
    /// # Errors
    /// The store cannot be written.
    fn leave_fleet(&mut self) -> Result<(), StoreError>;

    /// Takes a task that one worker of the fleet does, or keeps it. Returns whether this worker has the task.
    ///
    /// # Errors
    /// The store cannot be written.
    fn take_task(&mut self, name: &str) -> Result<bool, StoreError>;

    /// The workers, in the order in which they joined. None for a store without a fleet.
    ///
    /// # Errors
    /// The store cannot be read.
    fn workers(&mut self) -> Result<Vec<WorkerInfo>, StoreError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenure_ends_at_its_time() {
        let (tenure, now) = (Tenure::ended(), Instant::now());
        assert!(tenure.is_over(now));
        tenure.renew(7, now + LEASE);
        assert_eq!(tenure.clone().number(), 7);
        assert!(!tenure.is_over(now + LEASE / 2));
        assert!(tenure.is_over(now + LEASE));
    }
}
