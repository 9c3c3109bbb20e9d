//! Jobs: worker pools, shared ceilings, retries, dead letters and schedules. Each part can be used alone.
//!
//! - [`WorkerPool`] runs jobs in memory: a bounded queue, workers, retries with back-off that hold no worker, a dead
//!   letter for each job that no further attempt can help.
//! - [`Ceiling`] limits concurrency and rate. Any number of pools and threads share it.
//! - [`Cancel`] tells a running job to end.
//! - [`Schedule`] says when a job is to run, by a cron expression.
//!
//! A job ends in one of three ways: it is done, it becomes a [`DeadLetter`], or a [`ShutdownReport`] gives it back.

#![warn(missing_docs)]

mod cancel;
mod ceiling;
// What the durable pool of the store shares with the pool in memory.
#[doc(hidden)]
pub mod crew;
#[doc(hidden)]
pub mod decide;
#[doc(hidden)]
pub mod letter;
#[cfg(all(test, feature = "models"))]
mod models;
mod pool;
pub mod schedule;
mod settings;
#[doc(hidden)]
pub mod sync;
mod task;
#[cfg(all(test, not(feature = "models")))]
mod tests;

pub use cancel::{Cancel, CancelReason};
pub use ceiling::{
    ASK_AGAIN, Cancelled, Ceiling, CeilingLimits, Ceilings, HostCeilings, Permit, Until,
};
pub use letter::{DeadLetter, DeadLetterQueue, DeadLetters, DeadReason};
pub use pool::{
    Drain, PoolCounts, Refusal, Refused, ShutdownReport, StuckJob, Unfinished, WorkerPool,
};
pub use schedule::{
    BadExpression, BadSchedule, CatchUp, Decision, Firing, Overlap, Schedule, ScheduleRuns,
    ScheduleSettings, SkipReason,
};
pub use settings::PoolSettings;
pub use task::JobError;
