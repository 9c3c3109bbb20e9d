//! One schedule: when it fires, and the workers of its queues.

use std::cell::RefCell;
use std::io;
use std::num::NonZeroU32;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

use super::failure::Failure;
use super::fetch::{Fetched, Line, Plan};
use super::http::Agent;
use super::kind::{Ended, Firing, Kind};
use super::planner::{firing_job, lines_of, queue_of, workers};
use super::queue::{After, Left, Queue, QueueSettings};
use super::tools::Tools;
use crate::config::ScheduleConfig;
use jobs::schedule::FURTHEST_AHEAD;
use jobs::{self, Cancel, Decision, Schedule, ScheduleRuns, ScheduleSettings, SkipReason};
use store::{JobCounts, NewJob, ScheduleChange, ScheduleState, StoreError, StoreHandle as _};

/// A schedule of the configuration.
pub(super) struct Entry {
    schedule: Schedule,
    /// What jobs use that begin from now on: replaced by a new configuration.
    current: Arc<RwLock<Current>>,
    queues: Vec<Queue>,
}

/// What a job runs with.
#[derive(Clone)]
struct Current {
    kind: Kind,
    tools: Arc<Tools>,
}

impl Entry {
    /// Opens the queues of a schedule, or takes over those of its old configuration.
    pub(super) fn open(
        kind: Kind,
        old: Option<Self>,
        tools: Arc<Tools>,
    ) -> Result<Self, OpenError> {
        let config = &kind.schedule;
        let schedule = Schedule::new(&config.name, "", &settings(config))?;
        let current = Current {
            kind: kind.clone(),
            tools: Arc::clone(&tools),
        };
        if let Some(old) = old
            && old.current().kind.queues_like(&kind)
        {
            *old.current.write().unwrap_or_else(PoisonError::into_inner) = current;
            return Ok(Self { schedule, ..old });
        }
        let current = Arc::new(RwLock::new(current));
        let mut queues = vec![firings(&kind, &current, &tools)?];
        if kind.plan().is_some() {
            queues.push(lines(&kind, &current, &tools)?);
        }
        Ok(Self {
            schedule,
            current,
            queues,
        })
    }

    fn current(&self) -> Current {
        now_of(&self.current)
    }

    pub(super) fn max_attempts(&self) -> NonZeroU32 {
        self.current().kind.schedule.max_attempts
    }

    /// Looks for jobs of others.
    pub(super) fn look(&self) {
        self.queues.iter().for_each(Queue::look);
    }

    pub(super) fn stop(&self, deadline: Instant) {
        for queue in &self.queues {
            queue.stop(deadline);
        }
    }

    pub(super) fn join(self) -> Vec<Left> {
        self.queues.into_iter().map(Queue::join).collect()
    }

    /// Fires if it is time. Returns when to ask again.
    pub(super) fn poll(
        &self,
        tools: &Tools,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, StoreError> {
        let name = self.schedule.name().to_owned();
        let queue = queue_of(&name);
        let (state, counts) = tools
            .store()
            .read(move |store| Ok((store.schedule(&name)?, store.job_counts(&queue)?)))?;
        if state.is_paused {
            return Ok(None);
        }
        let state = self.sane(state, tools, now)?;
        let runs = self.runs(&state, counts, now);
        let decision = self.schedule.poll(&runs, now);
        match decision {
            Decision::Wait { until } => {
                self.plan(&state, runs.decided, tools)?;
                Ok(until)
            }
            Decision::Fire(firing) | Decision::Queue(firing) => {
                self.fire(firing, tools, now)?;
                self.look();
                Ok(Some(now))
            }
            Decision::Skip(firing, reason) => {
                self.skip(firing, reason, tools, now)?;
                Ok(Some(now))
            }
        }
    }

    /// A clock that once was far ahead must not stop the schedule for so long.
    fn sane(
        &self,
        state: ScheduleState,
        tools: &Tools,
        now: Timestamp,
    ) -> Result<ScheduleState, StoreError> {
        let is_ahead = |at: Timestamp| at.duration_since(now) > FURTHEST_AHEAD;
        if !state.last_fired.is_some_and(is_ahead) {
            return Ok(state);
        }
        let name = self.schedule.name().to_owned();
        tools.note(
            "schedule",
            &format!("schedule {name}: its last firing is in the future, and is forgotten"),
        );
        let forgotten = name.clone();
        tools.call(move |store| store.forget_schedule(&forgotten))?;
        Ok(ScheduleState {
            name,
            ..ScheduleState::default()
        })
    }

    /// What the schedule has done, by what the store says.
    fn runs(&self, state: &ScheduleState, counts: JobCounts, now: Timestamp) -> ScheduleRuns {
        let busy = counts.waiting + counts.started;
        let instant = SignedDuration::from_nanos(1);
        let before = |at: Timestamp| at.saturating_sub(instant).unwrap_or(at);
        let decided = match state.next {
            // Planned by this expression: also for a schedule that has never fired.
            Some(next) if self.fires_at(next) => state.last_fired.unwrap_or_else(|| before(next)),
            // A new schedule, or a new expression: what was before is none of its business.
            _ => state.last_fired.map_or(now, |fired| fired.max(now)),
        };
        ScheduleRuns {
            decided,
            running: u32::from(busy > 0),
            queued: (busy > 1).then_some(decided),
            missed: 0,
        }
    }

    fn fires_at(&self, at: Timestamp) -> bool {
        let before = at
            .saturating_sub(SignedDuration::from_secs(1))
            .unwrap_or(at);
        self.schedule.next_firings(before, 1).first() == Some(&at)
    }

    /// Stores when the schedule fires next.
    fn plan(
        &self,
        state: &ScheduleState,
        decided: Timestamp,
        tools: &Tools,
    ) -> Result<(), StoreError> {
        let next = self.schedule.next_firings(decided, 1).first().copied();
        if state.next == next {
            return Ok(());
        }
        let name = self.schedule.name().to_owned();
        let change = ScheduleChange {
            next: Some(next),
            ..ScheduleChange::default()
        };
        tools.call(move |store| store.update_schedule(&name, &change))
    }

    /// Claims the firing and stores its job.
    fn fire(&self, firing: jobs::Firing, tools: &Tools, now: Timestamp) -> Result<(), StoreError> {
        let name = self.schedule.name().to_owned();
        let at = firing.scheduled_at;
        let job = firing_job(&name, at, self.max_attempts());
        let change = ScheduleChange {
            next: Some(self.schedule.next_firings(at, 1).first().copied()),
            missed: firing.missed,
            ..ScheduleChange::default()
        };
        tracing::info!(schedule = name, "fires for {at}");
        tools.call(move |store| {
            if store.fire(&name, at, now)? {
                store.enqueue(std::slice::from_ref(&job), now)?;
                store.update_schedule(&name, &change)?;
            }
            Ok(())
        })
    }

    /// Claims the firing, and counts it as missed.
    fn skip(
        &self,
        firing: jobs::Firing,
        reason: SkipReason,
        tools: &Tools,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let name = self.schedule.name().to_owned();
        let at = firing.scheduled_at;
        let (missed, overlapped) = match reason {
            SkipReason::Overlap => (firing.missed, 1),
            SkipReason::Late => (firing.missed + 1, 0),
        };
        tracing::warn!(
            schedule = name,
            missed,
            overlapped,
            "does not fire for {at}"
        );
        let change = ScheduleChange {
            next: Some(self.schedule.next_firings(at, 1).first().copied()),
            missed,
            overlapped,
            ..ScheduleChange::default()
        };
        tools.call(move |store| {
            if store.fire(&name, at, now)? {
                store.update_schedule(&name, &change)?;
            }
            Ok(())
        })
    }
}

/// Why a schedule cannot run.
#[derive(Debug)]
pub(super) enum OpenError {
    Schedule(jobs::BadSchedule),
    Threads(io::Error),
}

impl From<jobs::BadSchedule> for OpenError {
    fn from(error: jobs::BadSchedule) -> Self {
        Self::Schedule(error)
    }
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> Self {
        Self::Threads(error)
    }
}

impl std::fmt::Display for OpenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Schedule(error) => error.fmt(f),
            Self::Threads(error) => write!(f, "no threads: {error}"),
        }
    }
}

fn now_of(current: &RwLock<Current>) -> Current {
    current
        .read()
        .unwrap_or_else(PoisonError::into_inner)
        .clone()
}

fn settings(config: &ScheduleConfig) -> ScheduleSettings {
    ScheduleSettings {
        cron: config.cron.clone(),
        timezone: config.timezone.iana_name().unwrap_or("UTC").to_owned(),
        overlap: config.overlap,
        catch_up: config.catch_up,
        jitter: config.jitter,
    }
}

/// The queue of the firings.
fn firings(kind: &Kind, current: &Arc<RwLock<Current>>, tools: &Arc<Tools>) -> io::Result<Queue> {
    let settings = QueueSettings {
        name: queue_of(&kind.schedule.name),
        workers: workers(kind.runs_at_a_time()),
        time_limit: kind.schedule.timeout,
    };
    let current = Arc::clone(current);
    let run = move |payload: &[u8], cancel: &Cancel| {
        let Current { kind, tools } = now_of(&current);
        let firing = Firing::read(payload)?;
        run_firing(&kind, firing, &tools, cancel)
    };
    Queue::open(settings, Arc::clone(tools), Arc::new(run))
}

fn run_firing(
    kind: &Kind,
    firing: Firing,
    tools: &Arc<Tools>,
    cancel: &Cancel,
) -> Result<After, Failure> {
    let name = &kind.schedule.name;
    let succeeded = || After {
        succeeded: Some(name.clone()),
        ..After::default()
    };
    if firing.is_listed {
        let queue = lines_of(name);
        let counts = tools.store().read(move |store| store.job_counts(&queue));
        let counts = counts.map_err(|error| Failure::retry(error.to_string()))?;
        return match counts.waiting + counts.started {
            0 => Ok(succeeded()),
            left => Err(Failure::postpone(
                UNTIL_NEXT_LOOK,
                format!("{left} lines are left"),
            )),
        };
    }
    match kind.run(firing, tools, cancel)? {
        Ended::Done(text) => {
            tracing::info!(schedule = name, "done: {text}");
            Ok(succeeded())
        }
        Ended::Listed(text) => {
            tracing::info!(schedule = name, "{text}");
            let listed = Firing {
                is_listed: true,
                ..firing
            };
            let job = NewJob {
                max_attempts: u32::MAX,
                ..NewJob::new(queue_of(name), listed.payload())
            };
            Ok(After {
                jobs: vec![job],
                ..After::default()
            })
        }
    }
}

/// The queue of the lines of a fetch job.
fn lines(kind: &Kind, current: &Arc<RwLock<Current>>, tools: &Arc<Tools>) -> io::Result<Queue> {
    let settings = QueueSettings {
        name: lines_of(&kind.schedule.name),
        workers: workers(FETCHERS),
        time_limit: kind.schedule.timeout,
    };
    let current = Arc::clone(current);
    let run = move |payload: &[u8], cancel: &Cancel| {
        let Current { kind, tools } = now_of(&current);
        let line: Line = serde_json::from_slice(payload)
            .map_err(|error| Failure::fail(format!("not a line: {error}")))?;
        let Some(plan) = kind.plan() else {
            return Err(Failure::fail("the schedule fetches nothing any more"));
        };
        let fetched = fetch(&plan, &line, &tools, cancel)?;
        tracing::debug!(
            schedule = kind.schedule.name,
            line = line.name,
            "{fetched:?}"
        );
        Ok(After::default())
    };
    Queue::open(settings, Arc::clone(tools), Arc::new(run))
}

thread_local! {
    /// The client of this worker, and the tools that it was made with.
    static AGENT: RefCell<Option<(Arc<Tools>, Agent)>> = const { RefCell::new(None) };
}

fn fetch(
    plan: &Plan,
    line: &Line,
    tools: &Arc<Tools>,
    cancel: &Cancel,
) -> Result<Fetched, Failure> {
    AGENT.with_borrow_mut(|kept| {
        let agent = match kept {
            Some((of, agent)) if Arc::ptr_eq(of, tools) => agent,
            _ => {
                let agent = tools.http().agent();
                let agent = agent.map_err(|error| Failure::retry(error.to_string()))?;
                &mut kept.insert((Arc::clone(tools), agent)).1
            }
        };
        plan.fetch(line, agent, cancel)
    })
}

/// Workers of a fetch job. The ceiling of the host says how many requests are under way.
const FETCHERS: usize = 4;
/// How often it is looked whether all lines of a fetch job are over.
const UNTIL_NEXT_LOOK: Duration = Duration::from_secs(1);
