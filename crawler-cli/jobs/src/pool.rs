//! A pool of workers with its jobs in memory.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::crew::{Closed, Crew, Now, Source, State};
use super::decide::{Next, Outcome, Rules};
use super::letter::{DeadLetter, DeadLetterQueue, DeadLetters, DeadReason, shortened};
use super::settings::PoolSettings;
use super::task::JobError;
use crate::Cancel;
use plain::random::{Random, fresh_seed};

/// Runs jobs of one type on a number of threads.
///
/// A job is done, or becomes a dead letter, or is given back by [`shutdown`](Self::shutdown): no job is lost silently.
/// A task that panics counts as a failure, and its worker goes on. Jobs that are to be tried again wait in a delay
/// queue and hold no worker.
///
/// A pool that is dropped without a shutdown makes dead letters of the jobs that are not done, with the reason
/// [`DeadReason::Abandoned`].
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use std::time::Duration;
/// use jobs::{Drain, PoolSettings, WorkerPool};
///
/// static SUM: AtomicU64 = AtomicU64::new(0);
/// let pool = WorkerPool::new(PoolSettings::default(), |number: &u64, _: &_| {
///     SUM.fetch_add(*number, Ordering::Relaxed);
///     Ok(())
/// })?;
/// for number in 1..=1000 {
///     // Waits while 100 jobs are queued.
///     pool.submit(number).expect("the pool is open");
/// }
/// let report = pool.shutdown(Drain::Finish, Duration::from_secs(60));
/// assert_eq!((report.done, report.is_complete()), (1000, true));
/// assert_eq!(SUM.load(Ordering::Relaxed), 500_500);
///
/// // A pool that is shut down gives the job back.
/// assert_eq!(pool.submit(7).unwrap_err().job, 7);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct WorkerPool<T: Send + Sync + 'static> {
    crew: Crew<Backlog<T>>,
    sink: Arc<dyn DeadLetters<T>>,
    letters: DeadLetterQueue<T>,
}

/// What a shutdown does with the jobs that wait.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Drain {
    /// Runs them, also those that wait for another attempt, as far as the time allows.
    Finish,
    /// Runs none of them: ends those that run, and keeps the others.
    Persist,
}

/// A job that a pool does not take.
#[derive(Debug, Eq, PartialEq)]
pub struct Refused<T> {
    /// The job.
    pub job: T,
    /// Why.
    pub why: Refusal,
}

/// Why a pool does not take a job.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Refusal {
    /// The queue is full.
    Full,
    /// The pool is shut down.
    Closed,
}

/// What a pool has done, and what it has to do.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct PoolCounts {
    /// Jobs that wait for their first attempt.
    pub queued: usize,
    /// Jobs that wait for another attempt.
    pub retrying: usize,
    /// Jobs that run.
    pub running: usize,
    /// Threads whose task has not returned although its time limit is over.
    pub stuck: usize,
    /// Threads that run jobs or wait for them.
    pub workers: usize,
    /// Jobs that were done.
    pub done: u64,
    /// Jobs that became dead letters.
    pub dead: u64,
    /// Attempts that failed: with an error, a panic, or at the time limit.
    pub failures: u64,
    /// Attempts that panicked.
    pub panics: u64,
    /// Attempts that the time limit ended.
    pub timeouts: u64,
    /// Results that were dropped because they came after the time limit or the shutdown.
    pub late: u64,
    /// Dead letters at which the sink panicked.
    pub lost_letters: u64,
}

impl PoolCounts {
    /// What the crew counts, without what its source does.
    pub fn of<S: Source>(state: &State<S>) -> Self {
        let (runs, counts) = (&state.runs, &state.runs.counts);
        Self {
            running: runs.running.len(),
            stuck: runs.stuck.len(),
            workers: state.workers(),
            done: counts.done,
            failures: counts.failed + counts.panicked + counts.timed_out,
            panics: counts.panicked,
            timeouts: counts.timed_out,
            late: counts.late,
            lost_letters: counts.lost_letters,
            ..Self::default()
        }
    }
}

/// A thread whose task has not returned although its time limit is over.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct StuckJob {
    /// When the attempt began.
    pub since: Instant,
}

/// A job that was not done at a shutdown.
#[derive(Debug)]
pub struct Unfinished<T> {
    /// The job. Shared, since a task may still use the job.
    pub job: Arc<T>,
    /// The number of attempts that were begun.
    pub attempts: u32,
    /// The cause of the last failure; empty if there was none.
    pub last: String,
}

/// What a shutdown leaves.
#[derive(Debug)]
pub struct ShutdownReport<T> {
    /// The number of jobs that were done since the pool began.
    pub done: u64,
    /// The number of jobs that became dead letters since the pool began.
    pub dead: u64,
    /// The jobs that wait: for their first attempt or for another one. The next is first.
    pub kept: Vec<Unfinished<T>>,
    /// The jobs whose attempt had not ended at the deadline. Their [`Cancel`] is set, and the result is dropped.
    pub left: Vec<Unfinished<T>>,
    /// The number of threads whose task has not returned although its time limit is over.
    pub stuck: usize,
}

impl<T> ShutdownReport<T> {
    /// Whether every job was done or is a dead letter.
    pub fn is_complete(&self) -> bool {
        self.kept.is_empty() && self.left.is_empty()
    }
}

impl<T: Send + Sync + 'static> WorkerPool<T> {
    /// Starts the workers. The task runs for each job, on several threads at a time. Dead letters are kept in
    /// [`dead_letters`](Self::dead_letters).
    ///
    /// # Errors
    /// A thread could not be started.
    pub fn new(
        settings: PoolSettings,
        task: impl Fn(&T, &Cancel) -> Result<(), JobError> + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let letters = DeadLetterQueue::default();
        let sink = Arc::new(letters.clone());
        Self::start(settings, task, sink, letters)
    }

    /// Starts the workers with a place for the dead letters.
    ///
    /// # Errors
    /// A thread could not be started.
    pub fn with_dead_letters(
        settings: PoolSettings,
        task: impl Fn(&T, &Cancel) -> Result<(), JobError> + Send + Sync + 'static,
        sink: impl DeadLetters<T> + 'static,
    ) -> io::Result<Self> {
        Self::start(settings, task, Arc::new(sink), DeadLetterQueue::default())
    }

    fn start(
        settings: PoolSettings,
        task: impl Fn(&T, &Cancel) -> Result<(), JobError> + Send + Sync + 'static,
        sink: Arc<dyn DeadLetters<T>>,
        letters: DeadLetterQueue<T>,
    ) -> io::Result<Self> {
        let backlog = Backlog::new(&settings);
        let of_threads = Arc::clone(&sink);
        let finish = Box::new(move |letter| of_threads.put(letter));
        let crew = Crew::start(settings, backlog, Box::new(task), finish)?;
        Ok(Self {
            crew,
            sink,
            letters,
        })
    }

    /// Gives a job to the pool. Waits while the queue is full. A task must not wait for room in its own pool: if all
    /// tasks do, none ends.
    ///
    /// # Errors
    /// The pool is shut down, maybe meanwhile. The job is in the error.
    pub fn submit(&self, job: T) -> Result<(), Refused<T>> {
        self.offer(job, None)
    }

    /// Gives a job to the pool if there is room.
    ///
    /// # Errors
    /// The queue is full, or the pool is shut down. The job is in the error.
    pub fn try_submit(&self, job: T) -> Result<(), Refused<T>> {
        self.offer(job, Some(Instant::now()))
    }

    /// Gives a job to the pool. Waits at most so long while the queue is full.
    ///
    /// # Errors
    /// The queue stayed full, or the pool is shut down. The job is in the error.
    pub fn submit_timeout(&self, job: T, longest: Duration) -> Result<(), Refused<T>> {
        self.offer(job, Instant::now().checked_add(longest))
    }

    /// Offers a job until `end`.
    fn offer(&self, job: T, end: Option<Instant>) -> Result<(), Refused<T>> {
        let why = match self.crew.wait_for_room(end) {
            Ok(Some(mut state)) => {
                state.source.ready.push_back(Job::new(job));
                self.crew.handle_job(state);
                return Ok(());
            }
            Ok(None) => Refusal::Full,
            Err(Closed) => Refusal::Closed,
        };
        Err(Refused { job, why })
    }

    /// What the pool has done, and what it has to do.
    pub fn counts(&self) -> PoolCounts {
        let state = self.crew.lock();
        let mut counts = PoolCounts::of(&state);
        counts.queued = state.source.ready.len();
        counts.retrying = state.source.postponed.len();
        counts.dead = state.source.dead;
        counts
    }

    /// The threads whose task has not returned although its time limit is over, the oldest first.
    pub fn stuck(&self) -> Vec<StuckJob> {
        let state = self.crew.lock();
        let stuck = state.runs.stuck.values();
        stuck.map(|since| StuckJob { since: *since }).collect()
    }

    /// The dead letters, unless they go to a place of the user.
    pub fn dead_letters(&self) -> &DeadLetterQueue<T> {
        &self.letters
    }

    /// Takes no jobs any more, ends what runs, and with [`Drain::Finish`] runs what waits: all of it within `longest`.
    /// Waits for that, and says what is left. Threads of tasks that ignore their [`Cancel`] live on until the task
    /// returns.
    pub fn shutdown(&self, drain: Drain, longest: Duration) -> ShutdownReport<T> {
        let rest = self
            .crew
            .shut_down(drain, Instant::now().checked_add(longest));
        let mut state = self.crew.lock();
        let backlog = &mut state.source;
        let mut waiting: Vec<_> = backlog.ready.drain(..).collect();
        waiting.extend(std::mem::take(&mut backlog.postponed).into_values());
        let stuck = state.runs.stuck.len();
        let (done, dead) = (state.runs.counts.done, state.source.dead);
        drop(state);
        ShutdownReport {
            done,
            dead,
            kept: waiting.into_iter().map(Job::into_unfinished).collect(),
            left: rest.left.into_iter().map(Job::into_unfinished).collect(),
            stuck,
        }
    }
}

impl<T: Send + Sync + 'static> Drop for WorkerPool<T> {
    fn drop(&mut self) {
        let report = self.shutdown(Drain::Persist, Duration::ZERO);
        for job in report.left.into_iter().chain(report.kept) {
            let now = Timestamp::now();
            self.sink.put(DeadLetter {
                job: job.job,
                reason: DeadReason::Abandoned,
                attempts: job.attempts,
                last: job.last,
                first_at: now,
                last_at: now,
            });
        }
    }
}

/// The jobs of a pool that do not run.
struct Backlog<T> {
    /// The next one is at the front.
    ready: VecDeque<Job<T>>,
    /// Those that failed, by the time of their next attempt. The number tells those with one time apart.
    postponed: BTreeMap<(Instant, u64), Job<T>>,
    last_number: u64,
    rules: Rules,
    random: Random,
    /// The limits of the jobs that wait for their first attempt, and for another one.
    most_ready: usize,
    most_postponed: usize,
    dead: u64,
}

/// A job and its attempts.
struct Job<T> {
    payload: Arc<T>,
    attempts: u32,
    first_at: Option<Timestamp>,
    last: String,
}

impl<T> Backlog<T> {
    fn new(settings: &PoolSettings) -> Self {
        Self {
            ready: VecDeque::new(),
            postponed: BTreeMap::new(),
            last_number: 0,
            rules: Rules {
                max_attempts: settings.max_attempts,
                backoff: settings.backoff,
            },
            random: Random::new(settings.seed.unwrap_or_else(fresh_seed)),
            most_ready: settings.queue.get(),
            most_postponed: settings.retries.get(),
            dead: 0,
        }
    }
}

impl<T> Job<T> {
    fn new(payload: T) -> Self {
        Self {
            payload: Arc::new(payload),
            attempts: 0,
            first_at: None,
            last: String::new(),
        }
    }

    fn into_unfinished(self) -> Unfinished<T> {
        Unfinished {
            job: self.payload,
            attempts: self.attempts,
            last: self.last,
        }
    }
}

impl<T: Send + Sync + 'static> Source for Backlog<T> {
    type Job = Job<T>;
    type Payload = T;
    type After = DeadLetter<T>;

    fn payload(job: &Job<T>) -> &Arc<T> {
        &job.payload
    }

    fn take(&mut self, now: Instant) -> Option<Job<T>> {
        match self.postponed.first_entry() {
            Some(first) if first.key().0 <= now => Some(first.remove()),
            _ => self.ready.pop_front(),
        }
    }

    fn put_back(&mut self, job: Job<T>) {
        self.ready.push_front(job);
    }

    fn begin(&mut self, job: &mut Job<T>, now: Now) {
        job.attempts += 1;
        job.first_at.get_or_insert(now.wall);
    }

    fn settle(&mut self, mut job: Job<T>, outcome: Outcome, now: Now) -> Option<DeadLetter<T>> {
        match self
            .rules
            .after(job.attempts, outcome, self.random.next_number())
        {
            Next::Done => None,
            Next::Retry { after, why } => {
                job.last = shortened(why);
                let due = now.clock.checked_add(after);
                // A time that cannot be expressed counts as never.
                let due = due.unwrap_or_else(|| now.clock + NEVER);
                self.last_number += 1;
                self.postponed.insert((due, self.last_number), job);
                None
            }
            Next::Dead { reason, why } => {
                self.dead += 1;
                Some(DeadLetter {
                    job: job.payload,
                    reason,
                    attempts: job.attempts,
                    last: shortened(why),
                    first_at: job.first_at.unwrap_or(now.wall),
                    last_at: now.wall,
                })
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let ((due, _), _) = self.postponed.first_key_value()?;
        Some(*due)
    }

    fn has_work_until(&self, end: Option<Instant>) -> bool {
        let is_due = |due| end.is_none_or(|end| due < end);
        !self.ready.is_empty() || self.poll_timeout().is_some_and(is_due)
    }

    fn has_room(&self) -> bool {
        self.ready.len() < self.most_ready && self.postponed.len() < self.most_postponed
    }
}

const NEVER: Duration = Duration::from_secs(30 * 365 * 86_400);
