//! The workers of a queue of stored jobs.
//!
//! A feeder starts jobs in the store, which counts the attempt, and hands them to a [`WorkerPool`], which catches panics,
//! keeps the time limit and replaces threads that are stuck. What becomes of an attempt is stored by job and attempt: a
//! late result of an attempt that was given up changes nothing.
//!
//! This is not a [`DurablePool`](store::DurablePool), because that pool stores no more than the end of an attempt.
//! Here, what a run leaves (jobs that follow, the success of a schedule) is stored in the same transaction, a job can be
//! postponed without an attempt, and what runs at the end of the service is put back.

use std::collections::HashMap;
use std::io;
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use courser::Backoff;
use crossbeam_channel::{Receiver, Sender, bounded};
use jiff::Timestamp;

use super::failure::{Failure, Next};
use super::tools::Tools;
use jobs::sync::lock;
use jobs::{Cancel, CancelReason, DeadLetter, DeadReason, Drain, PoolSettings, WorkerPool};
use plain::random::{Random, fresh_seed};
use store::{JobId, NewJob, Settled, Settlement, StartedJob, StoreError, StoreHandle as _};

/// How a queue is run.
#[derive(Clone, Debug)]
pub(super) struct QueueSettings {
    /// The name of the queue.
    pub(super) name: String,
    pub(super) workers: NonZeroUsize,
    pub(super) time_limit: Option<Duration>,
}

/// What a run leaves in the store, in the transaction that settles the job.
#[derive(Clone, Debug, Default)]
pub(super) struct After {
    /// Jobs that follow.
    pub(super) jobs: Vec<NewJob>,
    /// The schedule that has succeeded.
    pub(super) succeeded: Option<String>,
}

/// What jobs do: gets the payload of a job.
pub(super) type Run = dyn Fn(&[u8], &Cancel) -> Result<After, Failure> + Send + Sync;

/// A queue with its workers.
pub(super) struct Queue {
    poke: Sender<()>,
    cancel: Cancel,
    books: Arc<Books>,
    feeder: Option<JoinHandle<Left>>,
}

/// What a queue has left at its end.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Left {
    /// Jobs that were put back: they run again.
    pub(super) kept: usize,
    /// Jobs that did not end in time: their attempt counts.
    pub(super) left: usize,
}

impl Queue {
    pub(super) fn open(
        settings: QueueSettings,
        tools: Arc<Tools>,
        run: Arc<Run>,
    ) -> io::Result<Self> {
        let (poke, poked) = bounded(1);
        let books = Arc::new(Books {
            tools,
            poke: poke.clone(),
            backoff: Backoff {
                initial: Duration::from_secs(1),
                factor: 2.0,
                max: Duration::from_secs(300),
            },
            attempts: Mutex::default(),
            deadline: Mutex::default(),
            requeued: AtomicUsize::new(0),
        });
        let pool_settings = PoolSettings {
            name: "work".to_owned(),
            workers: settings.workers,
            queue: settings.workers,
            // The store counts the attempts.
            max_attempts: NonZeroU32::MIN,
            time_limit: settings.time_limit,
            ..PoolSettings::default()
        };
        let cancel = Cancel::new();
        let (task_books, stop) = (Arc::clone(&books), cancel.clone());
        let task = move |job: &StartedJob, cancel: &Cancel| {
            task_books.note_run(job, cancel);
            if stop.is_set() {
                cancel.set(CancelReason::Shutdown);
            }
            let result = run(&job.payload, cancel);
            task_books.settle(job, result, cancel);
            Ok(())
        };
        let sink_books = Arc::clone(&books);
        let sink = move |letter: DeadLetter<StartedJob>| sink_books.bury(&letter);
        let pool = WorkerPool::with_dead_letters(pool_settings, task, sink)?;
        let feeder = Feeder {
            name: settings.name,
            workers: settings.workers.get(),
            pool,
            books: Arc::clone(&books),
            poked,
            cancel: cancel.clone(),
        };
        let feeder = thread::Builder::new()
            .name("jobs".to_owned())
            .spawn(move || feeder.run())?;
        Ok(Self {
            poke,
            cancel,
            books,
            feeder: Some(feeder),
        })
    }

    /// Looks into the store: there may be a new job.
    pub(super) fn look(&self) {
        // A full channel says so already.
        let _ = self.poke.try_send(());
    }

    /// Begins no further job, and tells those that run to end until then.
    pub(super) fn stop(&self, deadline: Instant) {
        lock(&self.books.deadline).get_or_insert(deadline);
        self.cancel.set(CancelReason::Shutdown);
        self.books.interrupt();
        self.look();
    }

    /// Waits for the end after [`stop`](Self::stop).
    pub(super) fn join(mut self) -> Left {
        self.stop(Instant::now());
        let feeder = self.feeder.take();
        feeder
            .and_then(|feeder| feeder.join().ok())
            .unwrap_or_default()
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.stop(Instant::now());
    }
}

/// Starts jobs when there is a worker for them.
struct Feeder {
    name: String,
    workers: usize,
    pool: WorkerPool<StartedJob>,
    books: Arc<Books>,
    poked: Receiver<()>,
    cancel: Cancel,
}

impl Feeder {
    fn run(self) -> Left {
        while !self.cancel.is_set() {
            let wait = match self.feed() {
                Ok(next) => next,
                Err(error) => {
                    tracing::error!(queue = self.name, "jobs cannot be started: {error}");
                    AFTER_ERROR
                }
            };
            // A poke, the end of a job, or time.
            let _ = self.poked.recv_timeout(wait);
        }
        let end = *lock(&self.books.deadline);
        let longest = end.map_or(Duration::ZERO, |end| {
            end.saturating_duration_since(Instant::now())
        });
        let report = self.pool.shutdown(Drain::Persist, longest);
        let kept: Vec<_> = report
            .kept
            .iter()
            .map(|job| (job.job.id, job.job.attempt))
            .collect();
        self.books.requeue(kept);
        Left {
            kept: self.books.requeued.load(Ordering::Relaxed),
            left: report.left.len(),
        }
    }

    /// Hands out as many jobs as there are free workers. Returns when the next job is due, at the latest.
    fn feed(&self) -> Result<Duration, StoreError> {
        let free = self.workers.saturating_sub(self.books.under_way());
        if free > 0 {
            let (name, now) = (self.name.clone(), self.books.tools.now());
            // Most looks find nothing, and a look must write nothing.
            let store = self.books.tools.store();
            let queue = name.clone();
            let next = store.read(move |store| store.next_job_at(&queue))?;
            match next {
                None => return Ok(LONGEST_WAIT),
                Some(at) if at > now => return Ok(until(at, now).min(LONGEST_WAIT)),
                Some(_) => {}
            }
            let started = self
                .books
                .tools
                .call(move |store| store.start(&name, now, free))?;
            for poisoned in &started.poisoned {
                tracing::error!(
                    queue = self.name,
                    "a job ended its process too often: {poisoned:?}"
                );
            }
            for job in started.jobs {
                self.books.begin(&job);
                if let Err(refused) = self.pool.submit(job) {
                    self.books
                        .requeue(vec![(refused.job.id, refused.job.attempt)]);
                }
            }
        }
        Ok(LONGEST_WAIT)
    }
}

fn until(at: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(at.duration_since(now)).unwrap_or_default()
}

/// Stores what becomes of attempts.
struct Books {
    tools: Arc<Tools>,
    poke: Sender<()>,
    backoff: Backoff,
    /// The attempts that are not settled, and how those that run are told to end.
    attempts: Mutex<HashMap<(JobId, u32), Option<Cancel>>>,
    /// When those that run have to end, at a shutdown.
    deadline: Mutex<Option<Instant>>,
    /// How many were put back at a shutdown.
    requeued: AtomicUsize,
}

impl Books {
    fn under_way(&self) -> usize {
        self.attempts().len()
    }

    fn begin(&self, job: &StartedJob) {
        self.attempts().insert((job.id, job.attempt), None);
    }

    /// The attempt runs.
    fn note_run(&self, job: &StartedJob, cancel: &Cancel) {
        if let Some(run) = self.attempts().get_mut(&(job.id, job.attempt)) {
            *run = Some(cancel.clone());
        }
    }

    /// Tells all that run to end.
    fn interrupt(&self) {
        for run in self.attempts().values().flatten() {
            run.set(CancelReason::Shutdown);
        }
    }

    fn end(&self, job: JobId, attempt: u32) {
        self.attempts().remove(&(job, attempt));
        // A full channel says so already.
        let _ = self.poke.try_send(());
    }

    fn attempts(&self) -> MutexGuard<'_, HashMap<(JobId, u32), Option<Cancel>>> {
        lock(&self.attempts)
    }

    fn settle(&self, job: &StartedJob, result: Result<After, Failure>, cancel: &Cancel) {
        match result {
            Ok(after) => self.store(job, Settled::Done, after),
            // The attempt was interrupted, and says nothing about the job.
            Err(_) if cancel.reason() == Some(CancelReason::Shutdown) => {
                self.requeue(vec![(job.id, job.attempt)]);
            }
            // The pool has given the attempt up, and the sink has stored why.
            Err(_) if cancel.is_set() => {}
            Err(failure) => self.fail(job, failure),
        }
        self.end(job.id, job.attempt);
    }

    /// A panic, or the time limit.
    fn bury(&self, letter: &DeadLetter<StartedJob>) {
        let reason = match letter.reason {
            // The pool was dropped: the next process starts the job again.
            DeadReason::Abandoned => return,
            reason => reason.as_str(),
        };
        let job = &letter.job;
        self.fail(job, Failure::retry(letter.last.clone()).because(reason));
        self.end(job.id, job.attempt);
    }

    fn fail(&self, job: &StartedJob, failure: Failure) {
        let Failure { next, reason, why } = failure;
        // Starts that were postponed or interrupted say nothing about the job, and do not count.
        let failed = job.failed.saturating_add(1);
        let is_last = failed >= job.max_attempts;
        let settled = match next {
            Next::Postpone(after) => Settled::Postponed {
                at: self.in_time(after, 0),
            },
            Next::Retry if !is_last => Settled::Retry {
                at: self.in_time(Duration::ZERO, failed),
                why: why.clone(),
            },
            Next::Retry | Next::Fail => Settled::Dead {
                reason,
                last: why.clone(),
            },
        };
        let (id, attempt) = (job.id.0, job.attempt);
        match &settled {
            Settled::Dead { .. } => tracing::error!(job = id, attempt, "a job has failed: {why}"),
            Settled::Postponed { .. } => tracing::debug!(job = id, attempt, "a job waits: {why}"),
            _ => tracing::warn!(job = id, attempt, "an attempt has failed: {why}"),
        }
        self.store(job, settled, After::default());
    }

    /// After a wait, with the back-off after so many failures.
    fn in_time(&self, wait: Duration, failed: u32) -> Timestamp {
        let random = Random::new(fresh_seed()).next_number();
        let pause = match failed {
            0 => Duration::ZERO,
            failed => self.backoff.delay(failed, random),
        };
        let now = self.tools.now();
        now.saturating_add(wait.saturating_add(pause))
            .unwrap_or(now)
    }

    fn store(&self, job: &StartedJob, settled: Settled, after: After) {
        let settlement = [Settlement {
            job: job.id,
            attempt: job.attempt,
            settled,
        }];
        let now = self.tools.now();
        // What a job has done must not be lost: this waits while the disk is full.
        let stored = self.tools.store().insist(move |store| {
            let settled = store.settle(&settlement, now)?;
            if settled.stale > 0 {
                return Ok(());
            }
            if !after.jobs.is_empty() {
                store.enqueue(&after.jobs, now)?;
            }
            if let Some(name) = &after.succeeded {
                let change = store::ScheduleChange {
                    succeeded: Some(now),
                    ..Default::default()
                };
                store.update_schedule(name, &change)?;
            }
            Ok(())
        });
        if let Err(error) = stored {
            tracing::error!(job = job.id.0, "the end of a job was not stored: {error}");
        }
    }

    fn requeue(&self, jobs: Vec<(JobId, u32)>) {
        if jobs.is_empty() {
            return;
        }
        for (job, attempt) in &jobs {
            self.end(*job, *attempt);
        }
        let count = jobs.len();
        // A shutdown does not wait for a disk that is full: what is not put back is started again by the next process.
        match self.tools.call(move |store| store.requeue(&jobs)) {
            Ok(()) => {
                self.requeued.fetch_add(count, Ordering::Relaxed);
            }
            Err(error) => tracing::error!("jobs were not put back: {error}"),
        }
    }
}

/// The longest wait between two looks into the store: for jobs of others, and for clocks that jump.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
const AFTER_ERROR: Duration = Duration::from_secs(5);
