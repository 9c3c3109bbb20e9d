//! A pool whose jobs are in a store: what was submitted is run, also if the process is killed.

mod feeder;
mod source;
#[cfg(test)]
mod tests;

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{fmt, io};

use crossbeam_channel::Receiver;
use jiff::Timestamp;

use crate::{Enqueued, JobId, NewJob, StartedJob, StoreError, StoreHandle};
use feeder::Feeder;
use jobs::crew::{Closed, Crew};
use jobs::{Cancel, Drain, JobError, PoolCounts, PoolSettings};
use source::Stored;

/// Runs the jobs of one queue of a store on a number of threads.
///
/// - A job is stored before [`submit`](Self::submit) returns. Callers on several threads share a commit, and
///   [`submit_all`](Self::submit_all) stores many jobs with one.
/// - An attempt is counted in the store when it starts. A job that kills its process is tried again until its attempts
///   are used up, and then becomes a dead letter with the reason `poison`. Jobs that were interrupted twice run alone,
///   so that they do not take others with them.
/// - A retry or a dead letter is one change of the store together with the end of the attempt.
/// - A job with the key of another job is that job.
///
/// A job may run twice: when the process ends after the task and before the end of the attempt is stored.
///
/// Of the settings, `queue` and `retries` have no meaning here: what waits is in the store, up to `most` jobs. The
/// largest number of attempts is that of each job.
///
/// ```
/// use std::time::Duration;
/// use jobs::{Drain, PoolSettings};
/// use store::sqlite::Sqlite;
/// use store::{DurablePool, NewJob, StartedJob, StoreHandle, Writer, WriterSettings};
///
/// let store = Writer::start(Sqlite::temporary()?, WriterSettings::default())?;
/// let pool = DurablePool::start(store.clone(), "filings", PoolSettings::default(), |job: &StartedJob, _: &_| {
///     println!("{}", String::from_utf8_lossy(&job.payload));
///     Ok(())
/// })?;
/// let jobs = ["AAPL", "TSLA", "AAPL"].map(|name| NewJob::new("filings", name).with_key(name));
/// pool.submit_all(jobs.into())?;
/// let report = pool.shutdown(Drain::Finish, Duration::from_secs(60));
/// assert_eq!((report.done, report.kept), (2, 0));
/// # store.close(Duration::from_secs(1))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct DurablePool<H: StoreHandle + Clone + Send + Sync + 'static> {
    crew: Crew<Stored>,
    store: H,
    queue: String,
    feeder: Feeder<H>,
    /// Tells that the feeder has ended.
    ended: Receiver<()>,
}

/// Jobs that were not stored.
#[derive(Debug)]
pub struct NotStored {
    /// The jobs.
    pub jobs: Vec<NewJob>,
    /// Why.
    pub why: NotStoredReason,
}

/// Why jobs were not stored.
#[derive(Debug)]
pub enum NotStoredReason {
    /// The pool is shut down.
    Closed,
    /// What the store says.
    Store(StoreError),
}

impl fmt::Display for NotStored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} jobs were not stored: ", self.jobs.len())?;
        match &self.why {
            NotStoredReason::Closed => f.write_str("the pool is shut down"),
            NotStoredReason::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for NotStored {}

/// What the shutdown of a durable pool leaves.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DurableReport {
    /// The number of jobs that were done since the pool began.
    pub done: u64,
    /// The number of jobs that became dead letters since the pool began.
    pub dead: u64,
    /// The number of jobs that wait in the store, with those in `left`.
    pub kept: u64,
    /// The jobs whose attempt had not ended at the deadline. Their [`Cancel`] is set, the result is dropped, and the
    /// attempt does not count.
    pub left: Vec<JobId>,
    /// The number of threads whose task has not returned although its time limit is over.
    pub stuck: usize,
    /// The number of attempts whose end could not be stored: the jobs run again.
    pub unsaved: usize,
}

impl<H: StoreHandle + Clone + Send + Sync + 'static> DurablePool<H> {
    /// Starts the workers on the jobs of a queue, also those of an earlier process. At most 1,000,000 jobs wait.
    ///
    /// # Errors
    /// A thread could not be started.
    pub fn start(
        store: H,
        queue: &str,
        settings: PoolSettings,
        task: impl Fn(&StartedJob, &Cancel) -> Result<(), JobError> + Send + Sync + 'static,
    ) -> io::Result<Self> {
        Self::with_limit(store, queue, settings, MOST_JOBS, task)
    }

    /// Starts the workers on the jobs of a queue. While `most` jobs are stored, submitters wait.
    ///
    /// # Errors
    /// A thread could not be started.
    pub fn with_limit(
        store: H,
        queue: &str,
        settings: PoolSettings,
        most: NonZeroU64,
        task: impl Fn(&StartedJob, &Cancel) -> Result<(), JobError> + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let source = Stored::new(&settings, most);
        let crew = Crew::start(settings, source, Box::new(task), Box::new(|()| {}))?;
        let feeder = Feeder::new(crew.clone(), store.clone(), queue);
        let ended = match feeder.start() {
            Ok(ended) => ended,
            Err(error) => {
                crew.shut_down(Drain::Persist, Some(Instant::now()));
                return Err(error);
            }
        };
        Ok(Self {
            crew,
            store,
            queue: queue.to_owned(),
            feeder,
            ended,
        })
    }

    /// Stores a job in the queue of the pool. Returns when the job is durable. Waits while too many jobs are stored.
    ///
    /// # Errors
    /// The pool is shut down, or the store cannot be written. The job is in the error.
    pub fn submit(&self, job: NewJob) -> Result<Enqueued, NotStored> {
        let mut stored = self.submit_all(vec![job])?;
        // One job gives one answer.
        Ok(stored.swap_remove(0))
    }

    /// Stores jobs in the queue of the pool with one commit. Returns when they are durable. Waits while too many jobs
    /// are stored.
    ///
    /// # Errors
    /// The pool is shut down, or the store cannot be written. Nothing is stored then, and the jobs are in the error.
    pub fn submit_all(&self, mut jobs: Vec<NewJob>) -> Result<Vec<Enqueued>, NotStored> {
        let count = jobs.len() as u64;
        match self.crew.wait_for_room(None) {
            Ok(Some(mut state)) => state.source.reserve(count),
            Ok(None) | Err(Closed) => {
                let why = NotStoredReason::Closed;
                return Err(NotStored { jobs, why });
            }
        }
        for job in &mut jobs {
            job.queue.clone_from(&self.queue);
        }
        let jobs = Arc::new(jobs);
        let of_store = Arc::clone(&jobs);
        let result = self
            .store
            .call(move |engine| engine.enqueue(&of_store, Timestamp::now()));
        let mut state = self.crew.lock();
        state.source.handle_enqueued(count, result.is_ok());
        drop(state);
        result.map_err(|error| NotStored {
            jobs: Arc::try_unwrap(jobs).unwrap_or_else(|jobs| jobs.to_vec()),
            why: NotStoredReason::Store(error),
        })
    }

    /// Tells the pool that jobs came into its queue by another way: with a firing, or a replay. Without this, the pool
    /// notices within a second.
    pub fn poke(&self) {
        self.crew.lock().source.poke();
    }

    /// What the pool has done, and what it has to do. `queued` are the jobs that wait in the store.
    pub fn counts(&self) -> PoolCounts {
        let state = self.crew.lock();
        let mut counts = PoolCounts::of(&state);
        counts.queued = usize::try_from(state.source.waiting()).unwrap_or(usize::MAX);
        counts.dead = state.source.dead();
        counts
    }

    /// What the store said when the end of attempts could last not be stored; `None` once they are stored.
    pub fn trouble(&self) -> Option<String> {
        self.crew.lock().source.trouble()
    }

    /// Takes no jobs any more, ends what runs, and with [`Drain::Finish`] runs what waits and is due within `longest`.
    /// Says what is left. What waits stays in the store.
    pub fn shutdown(&self, drain: Drain, longest: Duration) -> DurableReport {
        let end = Instant::now().checked_add(longest);
        let rest = self.crew.shut_down(drain, end);
        let left: Vec<_> = rest.left.iter().map(|job| job.id).collect();
        let mut state = self.crew.lock();
        state.source.end(rest.left);
        drop(state);
        // The ends of attempts are worth a moment after the deadline.
        let patience = end.map_or(longest, |end| end.saturating_duration_since(Instant::now()));
        let is_saved = self.ended.recv_timeout(patience.max(LAST_COMMIT)).is_ok();
        let state = self.crew.lock();
        let counts = PoolCounts::of(&state);
        DurableReport {
            done: counts.done,
            dead: state.source.dead(),
            kept: state.source.waiting(),
            left,
            stuck: counts.stuck,
            unsaved: if is_saved { 0 } else { state.source.unsaved() },
        }
    }
}

impl<H: StoreHandle + Clone + Send + Sync + 'static> Drop for DurablePool<H> {
    fn drop(&mut self) {
        if !self.feeder.has_ended() {
            self.shutdown(Drain::Persist, Duration::ZERO);
        }
    }
}

/// The most jobs that wait in a queue by default.
const MOST_JOBS: NonZeroU64 = NonZeroU64::MIN.saturating_add(999_999);

/// How long a shutdown waits at least for the last commit.
const LAST_COMMIT: Duration = Duration::from_secs(5);
