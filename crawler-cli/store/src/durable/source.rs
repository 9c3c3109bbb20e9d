//! The jobs of a queue that are in memory: those that the store has handed out, and the ends of attempts that are to be
//! stored. Decides what the feeder does next. Pure, but for the thread that is woken.

use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

use crate::{JobCounts, JobId, Settled, Settlement, Started, StartedJob};
use jobs::Drain;
use jobs::PoolSettings;
use jobs::crew::{Now, Source};
use jobs::decide::{Next, Outcome, Rules};
use jobs::letter::shortened;
use jobs::sync::thread;
use plain::random::{Random, fresh_seed};

/// The jobs of a queue that are in memory.
pub(crate) struct Stored {
    /// Handed out by the store, and not yet run.
    ready: VecDeque<Arc<StartedJob>>,
    /// To be stored with the next commit.
    news: News,
    pub(super) supply: Supply,
    room: Room,
    rules: Rules,
    random: Random,
    /// Jobs that run or wait for a permit.
    pub(super) in_hand: usize,
    workers: usize,
    dead: u64,
    feeder: Option<thread::Thread>,
    phase: Phase,
    trouble: Option<String>,
}

/// What the store is told.
#[derive(Clone, Debug, Default)]
pub(super) struct News {
    pub(super) settled: Vec<Settlement>,
    /// Attempts that did not begin.
    pub(super) put_back: Vec<(JobId, u32)>,
}

impl News {
    fn is_empty(&self) -> bool {
        self.settled.is_empty() && self.put_back.is_empty()
    }
}

/// What is known about the jobs that the store has, and how many of them to hold.
pub(super) struct Supply {
    /// When the store has the next job that is not handed out; `None` if none waits.
    next_at: Option<Instant>,
    /// When to ask the store again, since others can store jobs.
    ask_at: Option<Instant>,
    /// Whether jobs may have come since the last commit began, which did not see them.
    is_poked: bool,
    /// How many jobs are held ready. Grows while workers wait for the store, and shrinks while jobs wait for workers.
    depth: usize,
    /// Whether a worker has found no job since the last commit.
    is_starved: bool,
    pub(super) care: Care,
}

/// How jobs are started that may have been what ended an earlier process.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Care {
    /// One by one, and only for workers that wait: the first jobs are those that were interrupted.
    Singly,
    /// One job at a time in all.
    Alone,
    /// Several at a time.
    None,
}

/// How many jobs may be stored.
struct Room {
    most: u64,
    /// Stored, by the last commit.
    stored: u64,
    waiting: u64,
    /// On their way to the store.
    reserved: u64,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Phase {
    /// The feeder waits.
    Idle,
    /// The feeder was woken.
    Woken,
    /// A commit is under way.
    Feeding,
    /// After the next commit the feeder ends.
    Ending,
}

/// What the feeder does next.
#[derive(Debug)]
pub(super) enum Step {
    Wait(Option<Instant>),
    Commit(Commit),
}

/// A commit: what the store is told, and how many jobs it is asked for.
#[derive(Clone, Debug)]
pub(super) struct Commit {
    pub(super) news: News,
    pub(super) limit: usize,
    pub(super) is_last: bool,
}

/// What a commit has returned.
pub(super) struct Fed {
    pub(super) started: Started,
    pub(super) next_at: Option<Timestamp>,
    pub(super) counts: JobCounts,
}

impl Stored {
    pub(super) fn new(settings: &PoolSettings, most: NonZeroU64) -> Self {
        Self {
            ready: VecDeque::new(),
            news: News::default(),
            supply: Supply {
                next_at: None,
                ask_at: None,
                is_poked: false,
                depth: 1,
                is_starved: false,
                care: Care::Singly,
            },
            room: Room {
                most: most.get(),
                stored: 0,
                waiting: 0,
                reserved: 0,
            },
            rules: Rules {
                max_attempts: settings.max_attempts,
                backoff: settings.backoff,
            },
            random: Random::new(settings.seed.unwrap_or_else(fresh_seed)),
            in_hand: 0,
            workers: settings.workers.get(),
            dead: 0,
            feeder: None,
            phase: Phase::Idle,
            trouble: None,
        }
    }

    /// What the feeder, on the thread of the caller, does next.
    pub(super) fn next_step(&mut self, now: Instant, closing: Option<Drain>) -> Step {
        self.feeder.get_or_insert_with(thread::current);
        let is_last = self.phase == Phase::Ending;
        let takes = !is_last && closing != Some(Drain::Persist);
        let wanted = if takes { self.wanted(now) } else { 0 };
        if self.news.is_empty() && wanted == 0 && !is_last {
            self.phase = Phase::Idle;
            let due = self.supply.next_at.filter(|_| self.places() > 0);
            let next = due.into_iter().chain(self.supply.ask_at).min();
            return Step::Wait(next.filter(|_| takes));
        }
        if !is_last {
            self.phase = Phase::Feeding;
        }
        self.supply.is_poked = false;
        Step::Commit(Commit {
            news: std::mem::take(&mut self.news),
            limit: wanted,
            is_last,
        })
    }

    /// How many jobs to ask the store for.
    fn wanted(&self, now: Instant) -> usize {
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        let may_have = self.supply.ask_at.is_none() || is_due(self.supply.ask_at);
        match may_have || is_due(self.supply.next_at) {
            true => self.places(),
            false => 0,
        }
    }

    /// How many further jobs could be held.
    fn places(&self) -> usize {
        let held = self.ready.len();
        let in_all = held + self.in_hand;
        match self.supply.care {
            Care::Singly => usize::from(held == 0 && in_all < self.workers),
            Care::Alone => usize::from(in_all == 0),
            Care::None if held <= self.supply.depth / 2 => self.supply.depth - held,
            Care::None => 0,
        }
    }

    /// A commit was done. Returns the number of jobs that can be run now.
    pub(super) fn handle_fed(&mut self, now: Now, limit: usize, fed: Fed) -> usize {
        let is_ending = self.phase == Phase::Ending;
        if !is_ending {
            self.phase = Phase::Feeding;
        }
        self.trouble = None;
        if !self.supply.is_poked {
            self.room.stored = fed.counts.waiting + fed.counts.started;
            self.room.waiting = fed.counts.waiting;
        }
        self.dead += fed.started.poisoned.len() as u64;
        let started = fed.started.jobs;
        self.supply.next_at = fed.next_at.map(|at| instant_of(at, now));
        self.supply.ask_at = match self.supply.is_poked {
            true => None,
            false => now.clock.checked_add(ASK_AGAIN),
        };
        if limit > 0 {
            self.adapt(started.len() == limit);
        }
        if started.is_empty() && limit > 0 {
            self.supply.care = Care::None;
        }
        let mut count = 0;
        let is_single = started.len() == 1;
        for job in started {
            if is_ending || !self.is_for_now(&job, is_single) {
                self.news.put_back.push((job.id, job.attempt));
                continue;
            }
            self.ready.push_back(Arc::new(job));
            count += 1;
        }
        count
    }

    /// A commit failed: its news are stored with the next one, after a pause.
    pub(super) fn handle_trouble(&mut self, now: Instant, commit: Commit, why: String) {
        let mut news = commit.news;
        news.settled.append(&mut self.news.settled);
        news.put_back.append(&mut self.news.put_back);
        self.news = news;
        self.supply.next_at = None;
        self.supply.ask_at = now.checked_add(ASK_AGAIN);
        self.trouble = Some(why);
    }

    /// Holds more jobs while workers wait for the store, and fewer while jobs wait for workers.
    fn adapt(&mut self, has_more: bool) {
        let supply = &mut self.supply;
        if supply.is_starved && has_more {
            supply.depth = (supply.depth * 2).min(DEEPEST);
        } else if self.ready.len() * 4 > supply.depth {
            supply.depth = (supply.depth - supply.depth / 4).max(1);
        }
        supply.is_starved = false;
    }

    /// Whether a job may run beside those that run. Decides how the next ones are started. `is_single`: no other job
    /// was handed out with this one.
    fn is_for_now(&mut self, job: &StartedJob, is_single: bool) -> bool {
        let was_interrupted = job.failed > 0 && job.failure.is_none();
        let is_suspect = was_interrupted && (job.failed > 1 || job.failed + 1 >= job.max_attempts);
        if is_suspect {
            self.supply.care = Care::Alone;
            return is_single && self.in_hand == 0 && self.ready.is_empty();
        }
        self.supply.care = match self.supply.care {
            // Other jobs were handed out together with a suspect, which comes again.
            Care::Alone if !is_single => Care::Alone,
            _ if was_interrupted => Care::Singly,
            _ => Care::None,
        };
        true
    }

    /// Jobs are on their way to the store.
    pub(super) fn reserve(&mut self, count: u64) {
        self.room.reserved += count;
    }

    /// Jobs have reached the store, or not.
    pub(super) fn handle_enqueued(&mut self, count: u64, is_stored: bool) {
        self.room.reserved = self.room.reserved.saturating_sub(count);
        if is_stored {
            self.room.stored += count;
            self.room.waiting += count;
            self.poke();
        }
    }

    /// The store may have new jobs.
    pub(super) fn poke(&mut self) {
        self.supply.ask_at = None;
        self.supply.is_poked = true;
        self.wake_feeder();
    }

    /// Ends the feeder after a last commit.
    pub(super) fn end(&mut self, left: Vec<Arc<StartedJob>>) {
        let unrun = self.ready.drain(..).chain(left);
        self.news
            .put_back
            .extend(unrun.map(|job| (job.id, job.attempt)));
        self.phase = Phase::Ending;
        if let Some(feeder) = &self.feeder {
            feeder.unpark();
        }
    }

    pub(super) fn waiting(&self) -> u64 {
        self.room.waiting
    }

    pub(super) fn dead(&self) -> u64 {
        self.dead
    }

    pub(super) fn unsaved(&self) -> usize {
        self.news.settled.len()
    }

    pub(super) fn trouble(&self) -> Option<String> {
        self.trouble.clone()
    }

    fn wake_feeder(&mut self) {
        if self.phase == Phase::Idle {
            self.phase = Phase::Woken;
            if let Some(feeder) = &self.feeder {
                feeder.unpark();
            }
        }
    }
}

impl Source for Stored {
    type Job = Arc<StartedJob>;
    type Payload = StartedJob;
    type After = ();

    fn payload(job: &Arc<StartedJob>) -> &Arc<StartedJob> {
        job
    }

    fn take(&mut self, _: Instant) -> Option<Arc<StartedJob>> {
        let job = self.ready.pop_front();
        match &job {
            Some(_) => self.in_hand += 1,
            None => self.supply.is_starved = true,
        }
        if self.places() > 0 {
            self.wake_feeder();
        }
        job
    }

    fn put_back(&mut self, job: Arc<StartedJob>) {
        self.in_hand -= 1;
        self.ready.push_front(job);
    }

    fn begin(&mut self, _: &mut Arc<StartedJob>, _: Now) {}

    fn settle(&mut self, job: Arc<StartedJob>, outcome: Outcome, now: Now) -> Option<()> {
        self.in_hand -= 1;
        let rules = Rules {
            max_attempts: job
                .max_attempts
                .try_into()
                .unwrap_or(self.rules.max_attempts),
            ..self.rules
        };
        let attempt = job.failed.saturating_add(1);
        let settled = match rules.after(attempt, outcome, self.random.next_number()) {
            Next::Done => Settled::Done,
            Next::Retry { after, why } => {
                let after = SignedDuration::try_from(after).unwrap_or(SignedDuration::MAX);
                Settled::Retry {
                    at: now.wall.saturating_add(after).unwrap_or(Timestamp::MAX),
                    why: shortened(why),
                }
            }
            Next::Dead { reason, why } => {
                self.dead += 1;
                Settled::Dead {
                    reason: reason.as_str().to_owned(),
                    last: shortened(why),
                }
            }
        };
        self.news.settled.push(Settlement {
            job: job.id,
            attempt: job.attempt,
            settled,
        });
        self.wake_feeder();
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn has_work_until(&self, end: Option<Instant>) -> bool {
        let is_due = |due| end.is_none_or(|end| due < end);
        !self.ready.is_empty()
            || !self.news.is_empty()
            || self.phase != Phase::Idle
            || self.supply.ask_at.is_none()
            || self.supply.next_at.is_some_and(is_due)
    }

    fn has_room(&self) -> bool {
        self.room.stored + self.room.reserved < self.room.most
    }
}

/// The time of the monotonic clock at which the wall clock shows this time, if nobody sets it.
fn instant_of(at: Timestamp, now: Now) -> Instant {
    let wait = Duration::try_from(at.duration_since(now.wall)).unwrap_or_default();
    // Far beyond the next time at which the store is asked anyway.
    now.clock.checked_add(wait).unwrap_or(now.clock + ASK_AGAIN)
}

/// The store is asked so often for jobs that came by another way.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// The most jobs that are held ready. Their attempt counts: so many jobs lose an attempt when the process is killed.
const DEEPEST: usize = 1024;
