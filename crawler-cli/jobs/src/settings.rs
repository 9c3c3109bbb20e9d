//! The settings of a pool.

use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Duration;

use courser::Backoff;

use crate::ceiling::Ceiling;

/// The settings of a pool of workers.
///
/// ```
/// use std::num::NonZeroUsize;
/// use std::time::Duration;
/// use jobs::PoolSettings;
///
/// let settings = PoolSettings {
///     workers: NonZeroUsize::new(8).unwrap(),
///     time_limit: Some(Duration::from_secs(60)),
///     ..PoolSettings::default()
/// };
/// assert_eq!(settings.queue.get(), 100);
/// assert_eq!(settings.max_attempts.get(), 3);
/// ```
#[derive(Clone, Debug)]
pub struct PoolSettings {
    /// The name of the pool, for its threads. Default `job`.
    pub name: String,
    /// The number of jobs that run at a time. Default 4.
    pub workers: NonZeroUsize,
    /// The largest number of jobs that wait for their first attempt: further ones are not taken until there is room.
    /// Default 100.
    pub queue: NonZeroUsize,
    /// The largest number of jobs that wait for another attempt: while there are more, no new job is taken. Default
    /// 10,000.
    pub retries: NonZeroUsize,
    /// The largest number of attempts of a job. Default 3.
    pub max_attempts: NonZeroU32,
    /// The waits between attempts, with full jitter. Default: up to 1 s, then up to twice as long each time, at most 5
    /// minutes.
    pub backoff: Backoff,
    /// How long an attempt may take. Then its [`Cancel`](super::Cancel) is set, the attempt counts as failed, and what
    /// the task returns later is dropped. The next attempt does not wait for a task that ignores its `Cancel`. Default:
    /// no limit.
    pub time_limit: Option<Duration>,
    /// The largest number of threads that replace stuck ones. Default 4.
    pub replacements: usize,
    /// Each attempt takes a permit of this ceiling. A job that waits for a permit holds a worker, and is given back at
    /// a shutdown. Default: none.
    pub ceiling: Option<Ceiling>,
    /// For the jitter. Default: another one each time.
    pub seed: Option<u64>,
}

impl Default for PoolSettings {
    fn default() -> Self {
        Self {
            name: "job".to_owned(),
            workers: NonZeroUsize::MIN.saturating_add(3),
            queue: NonZeroUsize::MIN.saturating_add(99),
            retries: NonZeroUsize::MIN.saturating_add(9_999),
            max_attempts: NonZeroU32::MIN.saturating_add(2),
            backoff: Backoff {
                initial: Duration::from_secs(1),
                factor: 2.0,
                max: Duration::from_secs(300),
            },
            time_limit: None,
            replacements: 4,
            ceiling: None,
            seed: None,
        }
    }
}

/// Without waits between attempts.
#[cfg(test)]
pub(crate) fn settings(workers: usize, queue: usize) -> PoolSettings {
    PoolSettings {
        workers: NonZeroUsize::new(workers).expect("not zero"),
        queue: NonZeroUsize::new(queue).expect("not zero"),
        backoff: Backoff::NONE,
        seed: Some(1),
        ..PoolSettings::default()
    }
}
