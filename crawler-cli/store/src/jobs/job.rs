//! Jobs and their attempts.

use std::time::Duration;

use jiff::Timestamp;

use super::dead_letter::DeadLetterId;

/// The number of a job. No number is used twice.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct JobId(pub i64);

/// A job that is to be stored.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NewJob {
    /// The queue in which the job waits.
    pub queue: String,
    /// What makes the job the same as another one of the queue: as long as a job with this key is known, the job is
    /// not stored again. A key is known until the job is over, and for [`NewJob::keep_key`] after that.
    pub key: Option<String>,
    /// How long the key is known after the job is over; zero if a job with the same key may come again at once. Has no
    /// meaning without a key.
    pub keep_key: Duration,
    /// What the job is about, in the caller's encoding.
    pub payload: Vec<u8>,
    /// After this many attempts the job is a dead letter; at least one.
    pub max_attempts: u32,
    /// The job waits at least until then.
    pub not_before: Option<Timestamp>,
}

impl NewJob {
    /// A job without a key, with three attempts, whose time has come.
    pub fn new(queue: impl Into<String>, payload: impl Into<Vec<u8>>) -> Self {
        Self {
            queue: queue.into(),
            key: None,
            keep_key: Duration::ZERO,
            payload: payload.into(),
            max_attempts: 3,
            not_before: None,
        }
    }

    /// The same job with a key that can be used again when the job is over.
    pub fn with_key(self, key: impl Into<String>) -> Self {
        Self {
            key: Some(key.into()),
            ..self
        }
    }
}

/// What became of a job that was to be stored.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Enqueued {
    /// The job is stored.
    New(JobId),
    /// A job with this key is known.
    Known(JobId),
}

impl Enqueued {
    /// The number of the job, new or known.
    pub fn id(self) -> JobId {
        match self {
            Self::New(id) | Self::Known(id) => id,
        }
    }
}

/// What [`JobStore::start`](super::JobStore::start) hands out.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Started {
    /// The jobs that are to be run.
    pub jobs: Vec<StartedJob>,
    /// The jobs that have become dead letters, because their last attempt ended with the process that ran them.
    pub poisoned: Vec<Poisoned>,
}

/// A job that is to be run.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StartedJob {
    /// Its number.
    pub id: JobId,
    /// Its key.
    pub key: Option<String>,
    /// What the job is about.
    pub payload: Vec<u8>,
    /// The number of the attempt, from 1. No attempt of the job has it twice.
    pub attempt: u32,
    /// How many attempts before have failed. Those that were given back do not count.
    pub failed: u32,
    /// How many attempts may fail.
    pub max_attempts: u32,
    /// When the job was stored.
    pub stored_at: Timestamp,
    /// Why the attempt before failed; `None` for the first attempt, and after one whose process ended.
    pub failure: Option<String>,
}

/// A job that has become a dead letter, because its last attempt ended with the process that ran it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Poisoned {
    /// The job.
    pub job: JobId,
    /// Its dead letter.
    pub letter: DeadLetterId,
}

/// What became of an attempt.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Settlement {
    /// The job.
    pub job: JobId,
    /// The number of the attempt.
    pub attempt: u32,
    /// What became of it.
    pub settled: Settled,
}

/// How an attempt ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Settled {
    /// The job is done.
    Done,
    /// The attempt failed; there may be another one. After the last attempt the job becomes a dead letter with
    /// the reason `attempts`.
    Retry {
        /// The next attempt starts at this time or later.
        at: Timestamp,
        /// Why the attempt failed.
        why: String,
    },
    /// The job has failed for good.
    Dead {
        /// The reason of the dead letter: one of few words, by which dead letters are counted.
        reason: String,
        /// The last exchange, or the text of the error. What exceeds [`LAST_EXCHANGE`](super::LAST_EXCHANGE) is cut.
        last: String,
    },
    /// The attempt does not count, since its failure says nothing about the job: the server had asked to wait, for
    /// example.
    Postponed {
        /// The next attempt starts at this time or later.
        at: Timestamp,
    },
}

/// What [`JobStore::settle`](super::JobStore::settle) has changed.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct SettledJobs {
    /// The jobs that have become dead letters.
    pub dead: Vec<(JobId, DeadLetterId)>,
    /// How many settlements were about attempts that had been settled before.
    pub stale: u64,
}

/// The jobs of a queue.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct JobCounts {
    /// Those that wait, also those whose time has not come.
    pub waiting: u64,
    /// Those that are started and not settled.
    pub started: u64,
}
