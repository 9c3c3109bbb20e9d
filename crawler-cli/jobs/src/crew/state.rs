//! What the threads of a crew share, and how it changes. Pure: time is an argument, but for the clock that is read when
//! a run begins. Nothing here blocks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::ceiling::Permit;
use crate::decide::Outcome;
use crate::pool::Drain;
use crate::{Cancel, CancelReason};

/// The time of both clocks.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    pub clock: Instant,
    pub wall: Timestamp,
}

impl Now {
    pub fn read() -> Self {
        Self {
            clock: Instant::now(),
            wall: Timestamp::now(),
        }
    }
}

/// Where jobs come from, and where their outcomes go. All methods run under the lock of the crew.
pub trait Source: Send + 'static {
    /// A job with its attempts.
    type Job: Send + 'static;
    /// What the task sees of a job.
    type Payload: Send + Sync + 'static;
    /// What is to be done without the lock after an attempt.
    type After: Send;

    fn payload(job: &Self::Job) -> &Arc<Self::Payload>;
    /// The next job whose time has come.
    fn take(&mut self, now: Instant) -> Option<Self::Job>;
    /// Takes back a job whose attempt did not begin.
    fn put_back(&mut self, job: Self::Job);
    /// Counts an attempt that begins.
    fn begin(&mut self, job: &mut Self::Job, now: Now);
    /// Decides what follows an attempt.
    fn settle(&mut self, job: Self::Job, outcome: Outcome, now: Now) -> Option<Self::After>;
    /// When the next job that waits for its time is due.
    fn poll_timeout(&self) -> Option<Instant>;
    /// Whether a job could be taken before this time. `None`: at any time.
    fn has_work_until(&self, end: Option<Instant>) -> bool;
    /// Whether a further job may come in.
    fn has_room(&self) -> bool;
}

/// What the threads share.
pub struct State<S: Source> {
    pub source: S,
    pub runs: Runs<S::Job>,
    pub threads: Threads,
    pub(crate) closing: Option<Closing>,
    /// Whether all threads shall end.
    pub is_over: bool,
    /// When the keeper looks at the clock the next time.
    pub(crate) keeper_at: Option<Instant>,
    /// Jobs that are over, and whose dead letter is being written.
    pub(crate) in_burial: usize,
    /// Jobs that a worker has taken, and that wait for a permit.
    pub(crate) before_permit: usize,
    /// Threads that wait for room.
    pub submitters: usize,
}

/// The jobs under way, by the number of the run. Later runs have later deadlines.
pub struct Runs<J> {
    pub running: BTreeMap<u64, Run<J>>,
    /// Runs beyond their time limit whose task has not returned.
    pub stuck: BTreeMap<u64, Instant>,
    pub next: u64,
    pub(crate) counts: RunCounts,
}

pub struct Run<J> {
    pub job: J,
    pub began: Instant,
    pub deadline: Option<Instant>,
    pub cancel: Cancel,
}

/// Attempts, since the pool began.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RunCounts {
    pub done: u64,
    pub failed: u64,
    pub panicked: u64,
    pub timed_out: u64,
    /// Results that came too late.
    pub late: u64,
    /// Dead letters at which the sink panicked.
    pub(crate) lost_letters: u64,
}

#[derive(Default)]
pub struct Threads {
    /// Workers that are not stuck.
    pub workers: usize,
    /// Workers that wait for work and that nobody has woken.
    pub idle: usize,
    /// Workers that were woken and do not run yet.
    pub woken: usize,
}

#[derive(Clone, Copy)]
pub(crate) struct Closing {
    pub drain: Drain,
    pub end: Option<Instant>,
}

/// A run that has begun, in the hands of its worker.
pub struct Begun<P> {
    pub id: u64,
    pub payload: Arc<P>,
    pub cancel: Cancel,
    pub permit: Option<Permit>,
}

impl<S: Source> State<S> {
    /// The number of workers that are not stuck.
    pub fn workers(&self) -> usize {
        self.threads.workers
    }

    /// How the pool is being shut down; `None` if it is open.
    pub fn drain(&self) -> Option<Drain> {
        self.closing.map(|closing| closing.drain)
    }

    pub fn take(&mut self, now: Instant) -> Option<S::Job> {
        let takes = match self.closing {
            None => true,
            Some(closing) => closing.drain == Drain::Finish,
        };
        takes.then(|| self.source.take(now)).flatten()
    }

    pub fn begin(
        &mut self,
        mut job: S::Job,
        permit: Option<Permit>,
        limit: Option<Duration>,
    ) -> Begun<S::Payload> {
        let now = Now::read();
        self.source.begin(&mut job, now);
        let payload = Arc::clone(S::payload(&job));
        let cancel = Cancel::new();
        let id = self.runs.next;
        self.runs.next += 1;
        let run = Run {
            job,
            began: now.clock,
            deadline: limit.and_then(|limit| now.clock.checked_add(limit)),
            cancel: cancel.clone(),
        };
        self.runs.running.insert(id, run);
        Begun {
            id,
            payload,
            cancel,
            permit,
        }
    }

    /// Counts an outcome. What follows is counted until it is done.
    pub fn settle(&mut self, job: S::Job, outcome: Outcome, now: Now) -> Option<S::After> {
        self.runs.counts.note(&outcome);
        let after = self.source.settle(job, outcome, now);
        self.in_burial += usize::from(after.is_some());
        after
    }

    /// Ends the runs whose time limit is over.
    pub fn expire(&mut self, now: Now) -> Vec<S::After> {
        let mut afters = Vec::new();
        while self
            .runs
            .first_deadline()
            .is_some_and(|end| end <= now.clock)
        {
            let Some((id, run)) = self.runs.running.pop_first() else {
                break;
            };
            run.cancel.set(CancelReason::TimeLimit);
            self.runs.stuck.insert(id, run.began);
            self.threads.workers -= 1;
            let took = now.clock.saturating_duration_since(run.began);
            afters.extend(self.settle(run.job, Outcome::TimedOut(took), now));
        }
        afters
    }

    /// When the keeper has to look at the clock again. What is due already is the business of busy workers.
    pub(crate) fn next_tick(&self, now: Instant) -> Option<Instant> {
        let due = self.source.poll_timeout().filter(|due| *due > now);
        earlier(due, self.runs.first_deadline())
    }

    /// Whether nothing is left that the closing pool waits for.
    pub(crate) fn is_quiet(&self) -> bool {
        let is_waiting = match self.closing {
            Some(Closing {
                drain: Drain::Finish,
                end,
            }) => self.source.has_work_until(end),
            _ => false,
        };
        let under_way = self.in_burial + self.before_permit + self.runs.running.len();
        under_way == 0 && !is_waiting
    }
}

impl<J> Runs<J> {
    pub fn new() -> Self {
        Self {
            running: BTreeMap::new(),
            stuck: BTreeMap::new(),
            next: 0,
            counts: RunCounts::default(),
        }
    }

    pub(crate) fn first_deadline(&self) -> Option<Instant> {
        self.running.first_key_value()?.1.deadline
    }
}

impl RunCounts {
    pub(crate) fn note(&mut self, outcome: &Outcome) {
        let count = match outcome {
            Outcome::Done => &mut self.done,
            Outcome::Failed(_) => &mut self.failed,
            Outcome::Panicked(_) => &mut self.panicked,
            Outcome::TimedOut(_) => &mut self.timed_out,
        };
        *count += 1;
    }
}

impl Threads {
    /// Chooses one of the idle workers to be woken.
    pub(crate) fn wake_one(&mut self) -> bool {
        let is_idle = self.idle > 0;
        self.idle -= usize::from(is_idle);
        self.woken += usize::from(is_idle);
        is_idle
    }

    /// A worker that waited goes on: one that was woken, or one that woke by itself.
    pub(crate) fn handle_wake(&mut self) {
        match self.woken {
            0 => self.idle -= 1,
            _ => self.woken -= 1,
        }
    }
}

pub(crate) fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
