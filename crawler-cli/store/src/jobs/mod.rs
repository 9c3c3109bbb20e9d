//! Jobs, dead letters and schedules, as a store keeps them.
//!
//! - A *job* is a payload in a *queue*. [`JobStore::enqueue`] stores it, [`JobStore::start`] hands it out and counts the
//!   *attempt*, [`JobStore::settle`] tells what became of the attempt. A job is in the store until an attempt has settled
//!   it for good.
//! - A *dead letter* is what needs a human or a change of a rule: a job that failed too often, or a URL that cannot be
//!   judged. [`JobStore::replay`] tries again.
//! - A *schedule* remembers which of its times have fired: each fires once for ever.
//!
//! Each method that changes something is one transaction, or a part of the one that [`Engine`](super::Engine) groups.

mod dead_letter;
mod job;
mod schedule;

use std::ops::ControlFlow;
use std::time::Duration;

use jiff::Timestamp;

pub use dead_letter::{
    Buried, DeadLetter, DeadLetterFilter, DeadLetterId, LAST_EXCHANGE, NewDeadLetter, Replayed,
    Subject,
};
pub use job::{
    Enqueued, JobCounts, JobId, NewJob, Poisoned, Settled, SettledJobs, Settlement, Started,
    StartedJob,
};
pub use schedule::{Firing, ScheduleChange, ScheduleState};

use super::{StoreError, UrlId};

/// What an engine that keeps jobs can do.
///
/// The times that are stored are those of the caller, to the millisecond.
///
/// ```
/// use store::sqlite::Sqlite;
/// use store::{Enqueued, JobStore, NewJob, Settled, Settlement};
/// use jiff::Timestamp;
///
/// let now = Timestamp::UNIX_EPOCH;
/// let mut store = Sqlite::temporary()?;
/// let job = NewJob::new("filings", "AAPL").with_key("2026-11-22 AAPL");
/// let enqueued = store.enqueue(&[job.clone(), job], now)?;
/// assert!(matches!(enqueued[..], [Enqueued::New(first), Enqueued::Known(second)] if first == second));
///
/// let started = store.start("filings", now, 10)?;
/// let job = &started.jobs[0];
/// assert_eq!((&*job.payload, job.attempt), (&b"AAPL"[..], 1));
/// store.settle(&[Settlement { job: job.id, attempt: job.attempt, settled: Settled::Done }], now)?;
/// assert_eq!(store.job_counts("filings")?.waiting, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait JobStore: Send {
    /// Stores jobs, in this order. A job with the key of a job of the queue that is known is that job, and nothing
    /// is stored; see [`NewJob::key`].
    ///
    /// # Errors
    /// The store cannot be read or written.
    fn enqueue(&mut self, jobs: &[NewJob], now: Timestamp) -> Result<Vec<Enqueued>, StoreError>;

    /// Hands out up to `limit` jobs of a queue whose time has come, those that have waited longest first, and counts
    /// the attempt of each.
    ///
    /// A job that a process had started that ended before it settled the job is handed out again: the attempt is
    /// counted, whatever it was that ended the process. After its last attempt the job becomes a dead letter with the
    /// reason [`POISON`]; these are told as well.
    ///
    /// # Errors
    /// The store cannot be read or written.
    fn start(&mut self, queue: &str, now: Timestamp, limit: usize) -> Result<Started, StoreError>;

    /// Tells what became of attempts. What is about an attempt that was settled before, or about a job that has
    /// been started again since, changes nothing.
    ///
    /// # Errors
    /// The store cannot be read or written.
    fn settle(
        &mut self,
        settlements: &[Settlement],
        now: Timestamp,
    ) -> Result<SettledJobs, StoreError>;

    /// Puts back jobs that were started, but not run: the attempt does not count. Jobs with another attempt are
    /// ignored.
    ///
    /// # Errors
    /// The store cannot be read or written.
    fn requeue(&mut self, jobs: &[(JobId, u32)]) -> Result<(), StoreError>;

    /// Makes all jobs that are not due yet due earlier by this time. After the clock was set back, they would wait for
    /// longer than they were meant to.
    ///
    /// # Errors
    /// The store cannot be read or written.
    fn bring_jobs_forward(&mut self, by: Duration, now: Timestamp) -> Result<(), StoreError>;

    /// Counts the jobs of a queue. The cost does not depend on their number.
    ///
    /// # Errors
    /// The store cannot be read.
    fn job_counts(&mut self, queue: &str) -> Result<JobCounts, StoreError>;

    /// The time from which on [`JobStore::start`] has a job, maybe in the past; `None` if no job waits.
    ///
    /// # Errors
    /// The store cannot be read.
    fn next_job_at(&mut self, queue: &str) -> Result<Option<Timestamp>, StoreError>;

    /// The names of all queues that ever had a job.
    ///
    /// # Errors
    /// The store cannot be read.
    fn queues(&mut self) -> Result<Vec<String>, StoreError>;

    /// Stores a dead letter. One of the same subject with the same reason is replaced; its first time stays.
    ///
    /// # Errors
    /// The store cannot be read or written.
    fn bury(
        &mut self,
        subject: &Buried,
        letter: &NewDeadLetter,
    ) -> Result<DeadLetterId, StoreError>;

    /// Reads the dead letters that pass the filter, after this one, in the order of their numbers, until `visit`
    /// breaks.
    ///
    /// # Errors
    /// The store cannot be read.
    fn dead_letters(
        &mut self,
        filter: &DeadLetterFilter,
        after: DeadLetterId,
        visit: &mut dyn FnMut(DeadLetter) -> ControlFlow<()>,
    ) -> Result<(), StoreError>;

    /// The dead letter with this number.
    ///
    /// # Errors
    /// The store cannot be read.
    fn dead_letter(&mut self, id: DeadLetterId) -> Result<Option<DeadLetter>, StoreError>;

    /// The dead letters of a URL, with those that were replayed: at most one for each reason.
    ///
    /// # Errors
    /// The store cannot be read.
    fn letters_of(&mut self, url: UrlId) -> Result<Vec<DeadLetter>, StoreError>;

    /// How many dead letters there are with each reason, without those that were replayed. The cost grows with the
    /// number of reasons.
    ///
    /// # Errors
    /// The store cannot be read.
    fn dead_letter_counts(&mut self) -> Result<Vec<(String, u64)>, StoreError>;

    /// Tries again what is behind the dead letters that pass the filter, up to `limit` of them after this one: a
    /// URL is due now, a job waits in its queue with all of its attempts. A dead letter that was replayed is not replayed again until its subject
    /// fails again.
    ///
    /// # Errors
    /// The store cannot be read or written.
    fn replay(
        &mut self,
        filter: &DeadLetterFilter,
        after: DeadLetterId,
        limit: usize,
        now: Timestamp,
    ) -> Result<Replayed, StoreError>;

    /// Forgets up to `limit` dead letters that pass the filter, and tells how many.
    ///
    /// # Errors
    /// The store cannot be read or written.
    fn drop_dead_letters(
        &mut self,
        filter: &DeadLetterFilter,
        limit: usize,
    ) -> Result<u64, StoreError>;

    /// Forgets up to `limit` dead letters whose subjects failed last before this time, and tells how many. Those of URLs
    /// are kept as long as the URL.
    ///
    /// # Errors
    /// The store cannot be read or written.
    fn expire_dead_letters(&mut self, before: Timestamp, limit: usize) -> Result<u64, StoreError>;

    /// What is known about a schedule; a new one has never fired.
    ///
    /// # Errors
    /// The store cannot be read.
    fn schedule(&mut self, name: &str) -> Result<ScheduleState, StoreError>;

    /// What is known about all schedules, in the order of their names.
    ///
    /// # Errors
    /// The store cannot be read.
    fn schedules(&mut self) -> Result<Vec<ScheduleState>, StoreError>;

    /// Claims a firing: returns whether it is to run, which is so once for ever and for one caller. A time that is not
    /// after the last one that fired is never run. What the firing does is to be enqueued in the same operation, so
    /// that the claim and the job are stored together.
    ///
    /// # Errors
    /// The store cannot be read or written.
    fn fire(
        &mut self,
        name: &str,
        scheduled_at: Timestamp,
        now: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Changes what is known about a schedule.
    ///
    /// # Errors
    /// The store cannot be read or written.
    fn update_schedule(&mut self, name: &str, change: &ScheduleChange) -> Result<(), StoreError>;

    /// Forgets a schedule with its firings.
    ///
    /// # Errors
    /// The store cannot be read or written.
    fn forget_schedule(&mut self, name: &str) -> Result<(), StoreError>;

    /// The last firings of a schedule, latest first. Each schedule keeps 64.
    ///
    /// # Errors
    /// The store cannot be read.
    fn firings(&mut self, name: &str, limit: usize) -> Result<Vec<Firing>, StoreError>;

    /// What tells this store apart from others: eight hexadecimal digits. A backup has the same.
    ///
    /// # Errors
    /// The store cannot be read.
    fn store_id(&mut self) -> Result<String, StoreError>;
}

/// The reason of the dead letter of a job whose last attempt ended with the process that ran it.
pub const POISON: &str = "poison";

/// The reason of the dead letter of a job whose last attempt failed.
pub const ATTEMPTS: &str = "attempts";
