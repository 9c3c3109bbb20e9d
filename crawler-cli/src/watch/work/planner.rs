//! Starts the jobs of schedules at their times.
//!
//! One thread looks at all schedules. A firing is claimed and its job is stored in one transaction; the workers of the
//! schedule's [queue](super::queue) do the rest. Whether a run goes on is what the store says, so that this also holds
//! after a restart.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use jiff::{SignedDuration, Timestamp};

use super::entry::Entry;
use super::kind::{Firing, Kind};
use super::tools::Tools;
use crate::store::{NewJob, StoreError};
use crate::watch::config::{ScheduleConfig, SetConfig};

/// The thread that starts the jobs of schedules.
pub struct Planner {
    inbox: Option<Sender<Message>>,
    thread: Option<JoinHandle<Drained>>,
    deadline: Arc<Mutex<Option<Instant>>>,
}

enum Message {
    Reload(Plans),
    Run(String, Sender<Result<(), RunError>>),
    Look,
}

/// What is planned, with what, and for which sets.
struct Plans {
    schedules: Vec<ScheduleConfig>,
    sets: Vec<SetConfig>,
    tools: Arc<Tools>,
}

/// What a drain has left.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Drained {
    /// Jobs that were interrupted or had not begun: the next process runs them.
    pub kept: usize,
    /// Jobs that did not end in time: the next process runs them, and the attempt counts.
    pub left: usize,
}

/// Why a schedule was not started.
#[derive(Debug)]
pub enum RunError {
    /// The configuration has no schedule of this name.
    Unknown(String),
    /// The job could not be stored.
    Store(StoreError),
    /// The planner has ended.
    Closed,
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) => write!(f, "no schedule is called {name}"),
            Self::Store(error) => error.fmt(f),
            Self::Closed => f.write_str("the service is about to end"),
        }
    }
}

impl std::error::Error for RunError {}

impl Planner {
    /// Starts to run jobs: those that an earlier process left, and those that become due.
    ///
    /// # Errors
    /// The system has no thread left.
    pub fn start(
        schedules: Vec<ScheduleConfig>,
        sets: Vec<SetConfig>,
        tools: Arc<Tools>,
    ) -> io::Result<Self> {
        let (inbox, of_inbox) = unbounded();
        let deadline = Arc::<Mutex<Option<Instant>>>::default();
        let plans = Plans {
            schedules,
            sets,
            tools: Arc::clone(&tools),
        };
        let mut work = Work {
            tools,
            entries: BTreeMap::new(),
            inbox: of_inbox,
            deadline: Arc::clone(&deadline),
        };
        let thread = thread::Builder::new()
            .name("planner".to_owned())
            .spawn(move || {
                work.take(plans);
                work.run()
            })?;
        Ok(Self {
            inbox: Some(inbox),
            thread: Some(thread),
            deadline,
        })
    }

    /// Runs by a new configuration. Jobs that run go on; those of schedules that are no more are interrupted, and their
    /// queues stay in the store.
    pub fn reload(&self, schedules: Vec<ScheduleConfig>, sets: Vec<SetConfig>, tools: Arc<Tools>) {
        self.send(Message::Reload(Plans {
            schedules,
            sets,
            tools,
        }));
    }

    /// Runs the job of a schedule now, besides its usual times. It waits for the end of a run that goes on.
    ///
    /// # Errors
    /// There is no such schedule, or the store cannot be written.
    pub fn run_now(&self, name: &str) -> Result<(), RunError> {
        let (reply, answer) = unbounded();
        self.send(Message::Run(name.to_owned(), reply));
        answer.recv().unwrap_or(Err(RunError::Closed))
    }

    /// Looks into the store at once: a schedule was paused or resumed, or a job was replayed.
    pub fn look(&self) {
        self.send(Message::Look);
    }

    fn send(&self, message: Message) {
        if let Some(inbox) = &self.inbox {
            // A thread that has ended needs no message.
            let _ = inbox.send(message);
        }
    }

    /// Begins no further job, tells those that run to end, and waits for them. What did not end runs again.
    pub fn drain(mut self, longest: Duration) -> Drained {
        self.end(longest)
    }

    fn end(&mut self, longest: Duration) -> Drained {
        let end = Instant::now().checked_add(longest);
        *self.deadline.lock().unwrap_or_else(PoisonError::into_inner) = end;
        self.inbox = None;
        let thread = self.thread.take();
        thread
            .and_then(|thread| thread.join().ok())
            .unwrap_or_default()
    }
}

impl Drop for Planner {
    fn drop(&mut self) {
        self.end(Duration::ZERO);
    }
}

impl fmt::Debug for Planner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Planner").finish_non_exhaustive()
    }
}

struct Work {
    tools: Arc<Tools>,
    entries: BTreeMap<String, Entry>,
    inbox: Receiver<Message>,
    deadline: Arc<Mutex<Option<Instant>>>,
}

impl Work {
    fn take(&mut self, plans: Plans) {
        let Plans {
            schedules,
            sets,
            tools,
        } = plans;
        self.tools = Arc::clone(&tools);
        let mut old = std::mem::take(&mut self.entries);
        for schedule in &schedules {
            let kind = Kind::new(schedule.clone(), &schedules, &sets);
            let name = schedule.name.clone();
            match Entry::open(kind, old.remove(&name), Arc::clone(&tools)) {
                Ok(entry) => {
                    self.entries.insert(name, entry);
                }
                Err(error) => tools.note("schedule", &format!("schedule {name}: {error}")),
            }
        }
        // What is left of the old ones ends here.
    }

    fn run(&mut self) -> Drained {
        loop {
            let wait = self.look();
            match self.inbox.recv_timeout(wait) {
                Ok(Message::Reload(plans)) => self.take(plans),
                Ok(Message::Run(name, reply)) => {
                    // Nobody may be waiting any more.
                    let _ = reply.send(self.start(&name));
                }
                Ok(Message::Look) => self.entries.values().for_each(Entry::look),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return self.drain(),
            }
        }
    }

    /// Fires what is due. Returns when to look again, at the latest.
    fn look(&mut self) -> Duration {
        let now = self.tools.now();
        let mut wait = LONGEST_WAIT;
        for (name, entry) in &mut self.entries {
            match entry.poll(&self.tools, now) {
                Ok(Some(until)) => wait = wait.min(from(now, until)),
                Ok(None) => {}
                Err(error) => {
                    tracing::error!(schedule = name, "the schedule cannot be read: {error}");
                }
            }
        }
        wait.max(SHORTEST_WAIT)
    }

    fn start(&self, name: &str) -> Result<(), RunError> {
        let Some(entry) = self.entries.get(name) else {
            return Err(RunError::Unknown(name.to_owned()));
        };
        let now = self.tools.now();
        let job = NewJob {
            max_attempts: entry.max_attempts(),
            ..firing_job(name, now)
        };
        let stored = self
            .tools
            .call(move |store| store.enqueue(std::slice::from_ref(&job), now));
        stored.map_err(RunError::Store)?;
        entry.look();
        Ok(())
    }

    fn drain(&mut self) -> Drained {
        let end = *self.deadline.lock().unwrap_or_else(PoisonError::into_inner);
        let end = end.unwrap_or_else(Instant::now);
        let entries = std::mem::take(&mut self.entries);
        for entry in entries.values() {
            entry.stop(end);
        }
        let left = entries.into_values().flat_map(Entry::join);
        left.fold(Drained::default(), |sum, left| Drained {
            kept: sum.kept + left.kept,
            left: sum.left + left.left,
        })
    }
}

/// The queue of the jobs of a schedule.
pub fn queue_of(schedule: &str) -> String {
    format!("schedule/{schedule}")
}

/// The queue of the lines of a fetch job.
pub(super) fn lines_of(schedule: &str) -> String {
    format!("fetch/{schedule}")
}

/// The workers of a schedule.
pub(super) fn workers(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).unwrap_or(NonZeroUsize::MIN)
}

/// The job of a firing at this time, with three attempts: also for an operator who starts a schedule, even while no
/// service runs.
pub fn firing_job(schedule: &str, at: Timestamp) -> NewJob {
    let firing = Firing {
        at,
        is_listed: false,
    };
    NewJob::new(queue_of(schedule), firing.payload()).with_key(at.to_string())
}

fn from(now: Timestamp, until: Timestamp) -> Duration {
    let wait = until.duration_since(now).max(SignedDuration::ZERO);
    Duration::try_from(wait).unwrap_or_default()
}

/// The longest time until a clock that jumped is noticed.
const LONGEST_WAIT: Duration = Duration::from_secs(20);
/// Keeps a schedule that is due again and again from using the processor alone.
const SHORTEST_WAIT: Duration = Duration::from_millis(5);
