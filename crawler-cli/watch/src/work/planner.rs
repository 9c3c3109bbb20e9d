//! Starts the jobs of schedules at their times.
//!
//! One thread looks at all schedules. A firing is claimed and its job is stored in one transaction; the workers of the
//! schedule's [queue](super::queue) do the rest. Whether a run goes on is what the store says, so that this also holds
//! after a restart.

use std::collections::BTreeMap;
use std::io;
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use jiff::{SignedDuration, Timestamp};

use super::entry::Entry;
use super::kind::{Firing, Kind};
use super::tools::Tools;
use crate::config::{ScheduleConfig, SetConfig};
use crate::core::Steady;
use crate::sets::note_orphans;
use store::NewJob;

/// The thread that starts the jobs of schedules.
pub struct Planner {
    inbox: Option<Sender<Message>>,
    thread: Option<JoinHandle<Drained>>,
    deadline: Arc<Mutex<Option<Instant>>>,
}

enum Message {
    Reload(Plans),
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
            clock: Steady::new(Instant::now(), tools.now()),
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

    /// Looks into the store at once: a schedule was paused, resumed or [started by hand](firing_job), or a job was
    /// replayed.
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

struct Work {
    tools: Arc<Tools>,
    /// Notices jumps of the clock.
    clock: Steady,
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
        note_orphans(&sets, &schedules, &tools);
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
                Ok(Message::Look) => self.entries.values().for_each(Entry::look),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return self.drain(),
            }
        }
    }

    /// Fires what is due. Returns when to look again, at the latest.
    fn look(&mut self) -> Duration {
        let now = self.tools.now();
        self.note_time(Instant::now(), now);
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

    /// Jobs wait for a time of the wall clock. If the clock is set back, they wait no longer for that.
    fn note_time(&mut self, monotonic: Instant, now: Timestamp) {
        let Some(jump) = self.clock.advance(monotonic, now) else {
            return;
        };
        // Set forward, the clock has made jobs due.
        let Ok(by) = Duration::try_from(jump.from.duration_since(jump.to)) else {
            return;
        };
        let moved = self
            .tools
            .call(move |store| store.bring_jobs_forward(by, now));
        if let Err(error) = moved {
            tracing::error!("jobs wait for {by:.0?} longer, since the clock was set back: {error}");
        }
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

/// The job of a firing at this time: also for an operator who starts a schedule, even while no service runs.
pub fn firing_job(schedule: &str, at: Timestamp, max_attempts: NonZeroU32) -> NewJob {
    let firing = Firing {
        at,
        is_listed: false,
    };
    let job = NewJob::new(queue_of(schedule), firing.payload()).with_key(at.to_string());
    NewJob {
        max_attempts: max_attempts.get(),
        ..job
    }
}

fn from(now: Timestamp, until: Timestamp) -> Duration {
    let wait = until.duration_since(now).max(SignedDuration::ZERO);
    Duration::try_from(wait).unwrap_or_default()
}

/// The longest time until a clock that jumped is noticed.
const LONGEST_WAIT: Duration = Duration::from_secs(20);
/// Keeps a schedule that is due again and again from using the processor alone.
const SHORTEST_WAIT: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::Http;
    use store::sqlite::Sqlite;
    use store::{StoreHandle as _, Writer, WriterSettings};

    #[test]
    fn a_job_is_due_in_time_after_the_clock_was_set_back() {
        const DAY: SignedDuration = SignedDuration::from_hours(24);
        let (start, wall) = (Instant::now(), Timestamp::now());
        let store = Sqlite::temporary().expect("a store");
        let store = Writer::start(store, WriterSettings::default()).expect("a thread");
        let mut work = Work {
            clock: Steady::new(start, wall),
            tools: Arc::new(Tools::new(store.clone(), Http::default())),
            entries: BTreeMap::new(),
            inbox: unbounded().1,
            deadline: Arc::default(),
        };
        let minute = SignedDuration::from_mins(1);
        let job = NewJob {
            not_before: Some(wall + minute),
            ..NewJob::new("q", "job")
        };
        let stored = store.call(move |store| store.enqueue(std::slice::from_ref(&job), wall));
        stored.expect("written");
        let second = Duration::from_secs(1);
        let next = || {
            store
                .read(|store| store.next_job_at("q"))
                .expect("readable")
        };
        let before = next().expect("a job");
        work.note_time(start + second, wall + second);
        assert_eq!(next(), Some(before));
        work.note_time(start + second * 2, wall + second * 2 - DAY);
        assert_eq!(next(), Some(before - DAY));
        // Set forward again: due at once.
        work.note_time(start + second * 3, wall + second * 3);
        assert_eq!(next(), Some(before - DAY));
    }
}
