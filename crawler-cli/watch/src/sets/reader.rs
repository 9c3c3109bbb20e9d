//! The threads that read the sources of all sets: at the start, when the configuration changes, and again after the time
//! that a set says.

use std::collections::BTreeMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, at, never, select, unbounded};
use jiff::Timestamp;

use super::intake::sweep;
use super::{Private, ReadError, SetRead, read_set};
use crate::config::{SetConfig, Source};
use crate::work::Tools;
use jobs::{Cancel, CancelReason};
use store::StoreHandle as _;

/// Reads the sources of sets on threads of its own. A source that cannot be read is read again after a while; that
/// never stops the service.
#[derive(Debug)]
pub struct SetReader {
    /// A new configuration.
    inbox: Option<Sender<(Vec<SetConfig>, Arc<Tools>)>>,
    readings: Readings,
    cancel: Cancel,
    thread: Option<JoinHandle<()>>,
}

/// The last reading of each set. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Readings(Arc<Mutex<BTreeMap<String, LastReading>>>);

impl Readings {
    /// All of them, by the names of their sets.
    pub fn all(&self) -> BTreeMap<String, LastReading> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, LastReading>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The last reading of a set by this process.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LastReading {
    /// When it ended.
    pub at: Timestamp,
    /// What it did, or why it failed.
    pub outcome: Result<String, String>,
}

impl SetReader {
    /// Reads all sets at once, and goes on as they say.
    ///
    /// # Errors
    /// The system has no thread left.
    pub fn start(sets: Vec<SetConfig>, tools: Arc<Tools>) -> io::Result<Self> {
        let (inbox, of_inbox) = unbounded();
        let cancel = Cancel::new();
        let readings = Readings::default();
        let mut work = Work {
            tools: Arc::clone(&tools),
            sets: Vec::new(),
            inbox: of_inbox,
            under_way: BTreeMap::new(),
            ended: unbounded(),
            readings: readings.clone(),
            cancel: cancel.clone(),
        };
        let thread = thread::Builder::new()
            .name("sets".to_owned())
            .spawn(move || {
                work.take(sets, tools);
                work.run();
            })?;
        Ok(Self {
            inbox: Some(inbox),
            readings,
            cancel,
            thread: Some(thread),
        })
    }

    /// Reads all sets again, with a new configuration.
    pub fn reload(&self, sets: Vec<SetConfig>, tools: Arc<Tools>) {
        if let Some(inbox) = &self.inbox {
            // A thread that has ended was stopped.
            let _ = inbox.send((sets, tools));
        }
    }

    /// The last reading of each set.
    pub fn readings(&self) -> Readings {
        self.readings.clone()
    }

    /// Stops the reading, and waits until the thread has ended. A reading that is interrupted removes nothing.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.cancel.set(CancelReason::Shutdown);
        self.inbox = None;
        if let Some(thread) = self.thread.take() {
            // Panics of readings were caught.
            let _ = thread.join();
        }
    }
}

impl Drop for SetReader {
    fn drop(&mut self) {
        self.end();
    }
}

struct Work {
    tools: Arc<Tools>,
    sets: Vec<Waiting>,
    inbox: Receiver<(Vec<SetConfig>, Arc<Tools>)>,
    /// Readings that go on, by the names of their sets.
    under_way: BTreeMap<String, JoinHandle<()>>,
    ended: (Sender<Ended>, Receiver<Ended>),
    readings: Readings,
    cancel: Cancel,
}

/// A set, and when it is read next.
struct Waiting {
    set: SetConfig,
    /// `None`: not again, or once the reading that goes on has ended.
    next: Option<Instant>,
    /// Readings that failed one after the other.
    failures: u32,
}

/// A reading that has ended.
struct Ended {
    set: SetConfig,
    /// `None`: it was stopped.
    outcome: Option<Result<SetRead, String>>,
}

impl Work {
    fn take(&mut self, sets: Vec<SetConfig>, tools: Arc<Tools>) {
        self.tools = tools;
        let now = Instant::now();
        let sets = sets
            .into_iter()
            .filter(|set| set.source != Source::Submitted);
        self.sets = sets
            .map(|set| Waiting {
                set,
                next: Some(now),
                failures: 0,
            })
            .collect();
        let names: Vec<&String> = self.sets.iter().map(|waiting| &waiting.set.name).collect();
        let mut readings = self.readings.lock();
        readings.retain(|name, _| names.contains(&name));
    }

    fn run(&mut self) {
        // Members that were to leave when an earlier process ended.
        if let Err(error @ ReadError::Store(_)) = sweep(&self.tools, &self.cancel) {
            self.tools
                .note("set", &format!("URLs that left their sets: {error}"));
        }
        let (inbox, ended) = (self.inbox.clone(), self.ended.1.clone());
        while !self.cancel.is_set() {
            let next = self.begin_due().map_or_else(never, at);
            select! {
                recv(inbox) -> new => match new {
                    Ok((sets, tools)) => self.take(sets, tools),
                    Err(_) => break,
                },
                recv(ended) -> reading => reading.into_iter().for_each(|reading| self.end(reading)),
                recv(next) -> _ => {}
            }
        }
        for thread in std::mem::take(&mut self.under_way).into_values() {
            // Panics of readings were caught.
            let _ = thread.join();
        }
    }

    /// Begins the readings that are due, as many as may go on at a time. Returns when the next one is due, if it need
    /// not wait for the end of another one.
    fn begin_due(&mut self) -> Option<Instant> {
        let waiting = self.sets.iter().enumerate();
        let waiting = waiting.filter(|(_, one)| !self.under_way.contains_key(&one.set.name));
        let mut due: Vec<_> = waiting
            .filter_map(|(at, one)| Some((one.next?, at)))
            .collect();
        due.sort_unstable();
        let mut look = None;
        for (next, at) in due {
            if next > Instant::now() {
                return Some(look.map_or(next, |look: Instant| look.min(next)));
            }
            if self.under_way.len() >= MOST_AT_ONCE {
                return look;
            }
            if self.is_of_another(at) {
                self.sets[at].next = Instant::now().checked_add(LOOK_AGAIN);
                look = look.or(self.sets[at].next);
                continue;
            }
            self.begin(at);
        }
        look
    }

    /// Whether another worker of the fleet reads a set. If the store cannot tell, the reading says why.
    fn is_of_another(&self, at: usize) -> bool {
        let task = format!("set {}", self.sets[at].set.name);
        let taken = self
            .tools
            .store()
            .call(move |engine| engine.take_task(&task));
        taken.is_ok_and(|is_ours| !is_ours)
    }

    /// Reads a set on a thread of its own: a server that is slow must not keep the other sets waiting.
    fn begin(&mut self, at: usize) {
        self.sets[at].next = None;
        let set = self.sets[at].set.clone();
        let (tools, cancel) = (Arc::clone(&self.tools), self.cancel.clone());
        let (reading, ended) = (set.clone(), self.ended.0.clone());
        let is_first = !self.readings.lock().contains_key(&set.name);
        let thread = thread::Builder::new()
            .name("set".to_owned())
            .spawn(move || {
                if is_first {
                    tell_of_private(&reading, &tools, &cancel);
                }
                let outcome = outcome_of(&reading, &tools, &cancel);
                // The end of the service waits for the thread, not for what it says.
                let _ = ended.send(Ended {
                    set: reading,
                    outcome,
                });
            });
        match thread {
            Ok(thread) => {
                self.under_way.insert(set.name, thread);
            }
            Err(error) => self.end(Ended {
                set,
                outcome: Some(Err(format!("no thread: {error}"))),
            }),
        }
    }

    fn end(&mut self, Ended { set, outcome }: Ended) {
        if let Some(thread) = self.under_way.remove(&set.name) {
            // It has said all, and ends.
            let _ = thread.join();
        }
        let is_it = |waiting: &&mut Waiting| waiting.set.name == set.name;
        let (Some(outcome), Some(waiting)) = (outcome, self.sets.iter_mut().find(is_it)) else {
            return;
        };
        waiting.failures = match outcome {
            Ok(_) => 0,
            Err(_) => waiting.failures.saturating_add(1),
        };
        let again = waiting.set.reread.filter(|time| !time.is_zero());
        let wait = match waiting.failures {
            0 => again,
            failures => Some(again_after(failures).min(again.unwrap_or(Duration::MAX))),
        };
        // With a new configuration the set is due already.
        let next = wait.and_then(|wait| Instant::now().checked_add(wait));
        waiting.next = waiting.next.or(next);
        self.say(&set, &outcome);
    }

    /// Keeps what the reading did, and notes what an operator should know, unless that was noted before.
    fn say(&self, set: &SetConfig, outcome: &Result<SetRead, String>) {
        let SetConfig { name, source, .. } = set;
        let text = match outcome {
            Ok(read) => read.to_string(),
            Err(error) => error.clone(),
        };
        let place = match source {
            Source::File(path) => path.display().to_string(),
            Source::Sitemap(url) => url.to_string(),
            Source::Submitted => String::new(),
        };
        let last = LastReading {
            at: self.tools.now(),
            outcome: match outcome {
                Ok(_) => Ok(text.clone()),
                Err(_) => Err(text.clone()),
            },
        };
        let before = {
            let mut readings = self.readings.lock();
            readings.insert(name.clone(), last.clone())
        };
        let is_odd = match outcome {
            Ok(read) => read.kept.is_some() || read.invalid > 0,
            Err(_) => true,
        };
        let is_same = before
            .as_ref()
            .is_some_and(|before| before.outcome == last.outcome);
        let was_bad = before.is_some_and(|before| before.outcome.is_err());
        if is_odd && is_same {
            // It was said, and is said again when it changes.
            tracing::debug!(set = name, source = place, "{text}");
        } else if was_bad && outcome.is_ok() && !is_odd {
            tracing::info!(
                set = name,
                source = place,
                "the source can be read again: {text}"
            );
        } else if is_odd {
            let what = if outcome.is_ok() { "read" } else { "not read" };
            self.tools
                .note("set", &format!("set {name}: {place} {what}: {text}"));
        } else {
            tracing::info!(set = name, source = place, "set read: {text}");
        }
    }
}

/// Tells an operator of URLs that are never asked, also if the source has not changed since an earlier process read it.
fn tell_of_private(set: &SetConfig, tools: &Tools, cancel: &Cancel) {
    if tools.http().allows_private() {
        return;
    }
    // Why a file cannot be read is said by its reading.
    if let Ok(private) = Private::of(&set.source, cancel)
        && private.urls > 0
    {
        tools.note("set", &format!("set {}: {private}", set.name));
    }
}

/// Reads a set. `None`: the reading was stopped.
fn outcome_of(
    set: &SetConfig,
    tools: &Arc<Tools>,
    cancel: &Cancel,
) -> Option<Result<SetRead, String>> {
    let read = || read_set(&set.name, &set.source, tools, cancel);
    Some(match catch_unwind(AssertUnwindSafe(read)) {
        Ok(Err(ReadError::Cancelled)) => return None,
        Ok(read) => read.map_err(|error| error.to_string()),
        Err(_) => Err("the reading panicked".to_owned()),
    })
}

/// The wait after failures that follow one another.
fn again_after(failures: u32) -> Duration {
    let factor = 2u32.saturating_pow(failures.saturating_sub(1).min(10));
    (FIRST_WAIT * factor).min(LONGEST_WAIT)
}

/// How soon it is looked again whether a worker that reads a set is still there.
const LOOK_AGAIN: Duration = Duration::from_secs(15);
/// How many sets are read at a time. A sitemap may need 50 MiB of memory.
const MOST_AT_ONCE: usize = 4;
const FIRST_WAIT: Duration = Duration::from_secs(30);
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_after_failures_double_up_to_an_hour() {
        let waits = [1, 2, 3, 99].map(|failures| again_after(failures).as_secs());
        assert_eq!(waits, [30, 60, 120, 3600]);
    }
}
