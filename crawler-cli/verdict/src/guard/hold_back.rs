//! Failures that are not believed yet: it may turn out that the own network fails.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::time::Duration;

use jiff::Timestamp;

use crate::life::time::between;

/// Failures that are held back for the window of the guard of the own network. `K` names a host, `T` is what failed.
///
/// A host that has been failing for longer than the window fails whatever the own network does: its further failures are
/// believed at once. So what is held back is bounded by what can fail within a window.
///
/// ```
/// use std::time::Duration;
/// use verdict::guard::HoldBack;
/// use jiff::Timestamp;
///
/// let now: Timestamp = "2026-01-01T00:00:00Z".parse()?;
/// let mut failures = HoldBack::new(Duration::from_secs(60));
/// assert_eq!(failures.hold(now, "host", 1), None);
/// assert!(failures.believe(now + Duration::from_secs(59)).is_empty());
/// let later = now + Duration::from_secs(60);
/// assert_eq!(failures.believe(later), [1]);
/// assert_eq!(failures.hold(later, "host", 2), Some(2));
/// # Ok::<(), jiff::Error>(())
/// ```
#[derive(Debug)]
pub struct HoldBack<K, T> {
    window: Duration,
    /// Oldest first.
    held: VecDeque<(Timestamp, K, T)>,
    hosts: HashMap<K, Failing>,
}

#[derive(Clone, Copy, Debug)]
struct Failing {
    since: Timestamp,
    held: usize,
}

impl<K: Copy + Eq + Hash, T> HoldBack<K, T> {
    /// Nothing is held back.
    pub fn new(window: Duration) -> Self {
        Self {
            window,
            held: VecDeque::new(),
            hosts: HashMap::new(),
        }
    }

    /// Holds back for this time from now on, also what is held back already.
    pub fn set_window(&mut self, window: Duration) {
        self.window = window;
    }

    /// A failure of a host. Returns what is believed at once.
    pub fn hold(&mut self, now: Timestamp, host: K, failed: T) -> Option<T> {
        let failing = Failing {
            since: now,
            held: 0,
        };
        let failing = self.hosts.entry(host).or_insert(failing);
        if between(failing.since, now) >= self.window {
            return Some(failed);
        }
        failing.held += 1;
        self.held.push_back((now, host, failed));
        None
    }

    /// The host answered.
    pub fn note_answer(&mut self, host: K) {
        if let Some(failing) = self.hosts.get(&host)
            && failing.held == 0
        {
            self.hosts.remove(&host);
        }
    }

    /// Takes out what is old enough to be believed.
    pub fn believe(&mut self, now: Timestamp) -> Vec<T> {
        let mut believed = Vec::new();
        while let Some((at, ..)) = self.held.front()
            && between(*at, now) >= self.window
            && let Some((_, host, failed)) = self.held.pop_front()
        {
            if let Some(failing) = self.hosts.get_mut(&host) {
                failing.held -= 1;
            }
            believed.push(failed);
        }
        believed
    }

    /// When something becomes old enough; `None` if nothing is held back.
    pub fn next_at(&self) -> Option<Timestamp> {
        let (at, ..) = self.held.front()?;
        Some(crate::life::time::after(*at, self.window))
    }

    /// The own network fails: takes out everything.
    pub fn take_all(&mut self) -> Vec<T> {
        self.hosts.clear();
        self.held.drain(..).map(|(.., failed)| failed).collect()
    }

    /// Takes out the oldest, which is believed early because too much is held back.
    pub fn take_oldest(&mut self) -> Option<T> {
        let (_, host, failed) = self.held.pop_front()?;
        if let Some(failing) = self.hosts.get_mut(&host) {
            failing.held -= 1;
        }
        Some(failed)
    }

    /// How many failures of a host are held back.
    pub fn held(&self, host: K) -> usize {
        self.hosts.get(&host).map_or(0, |failing| failing.held)
    }

    /// How many failures are held back.
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Whether no failure is held back.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Forgets for how long hosts have been failing, if nothing of them is held back and they failed long ago.
    pub fn tidy(&mut self, now: Timestamp) {
        let longest = self.window.saturating_mul(WINDOWS_KEPT);
        self.hosts
            .retain(|_, failing| failing.held > 0 || between(failing.since, now) < longest);
    }
}

/// A host that fails is kept in mind for this many windows.
const WINDOWS_KEPT: u32 = 60;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_767_225_600 + second).unwrap()
    }

    fn minute() -> HoldBack<u8, u32> {
        HoldBack::new(Duration::from_secs(60))
    }

    #[test]
    fn a_host_that_answers_in_between_is_doubted_again() {
        let mut failures = minute();
        failures.hold(at(0), 1, 10);
        failures.believe(at(60));
        assert_eq!(failures.hold(at(61), 1, 11), Some(11));
        failures.note_answer(1);
        assert_eq!(failures.hold(at(62), 1, 12), None);
    }

    #[test]
    fn hosts_are_forgotten() {
        let mut failures = minute();
        failures.hold(at(0), 1, 10);
        failures.tidy(at(10_000));
        assert_eq!(failures.hosts.len(), 1);
        failures.believe(at(10_000));
        failures.tidy(at(10_000));
        assert!(failures.hosts.is_empty());
    }
}
