//! The tasks of a host that are not in flight: ready tasks, and postponed tasks that wait for their next attempt. Also
//! counts the attempts of a task. Pure: time is an argument.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use super::policy::RetryPolicy;
use super::stats::Class;

/// The tasks of a host that are not in flight.
#[derive(Debug)]
pub struct RetryQueue<T> {
    /// The next task is at the back.
    ready: VecDeque<T>,
    /// Tasks that failed, by the time of their next attempt. The number distinguishes tasks with the same time.
    postponed: BTreeMap<(Instant, u64), T>,
    next_number: u64,
}

impl<T> Default for RetryQueue<T> {
    fn default() -> Self {
        Self {
            ready: VecDeque::new(),
            postponed: BTreeMap::new(),
            next_number: 0,
        }
    }
}

impl<T> RetryQueue<T> {
    /// Adds a task before all ready tasks.
    pub fn push_next(&mut self, task: T) {
        self.ready.push_back(task);
    }

    /// Adds a task after all ready tasks.
    pub fn push_last(&mut self, task: T) {
        self.ready.push_front(task);
    }

    /// Adds a task that waits until `due`.
    pub fn postpone(&mut self, due: Instant, task: T) {
        self.next_number += 1;
        self.postponed.insert((due, self.next_number), task);
    }

    /// The postponed task with the earliest time, if that time has come.
    pub fn pop_due(&mut self, now: Instant) -> Option<T> {
        let first = self.postponed.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }

    /// The next ready task.
    pub fn pop_ready(&mut self) -> Option<T> {
        self.ready.pop_back()
    }

    /// Removes the ready task with this index among [`ready`](Self::ready), and returns it.
    pub fn remove_ready(&mut self, at: usize) -> Option<T> {
        self.ready.remove(at)
    }

    /// The next ready task for which `holds` is true.
    pub fn pop_ready_where(&mut self, holds: impl Fn(&T) -> bool) -> Option<T> {
        let at = self.ready.iter().rposition(holds)?;
        self.ready.remove(at)
    }

    /// The earliest time of a postponed task.
    pub fn next_due(&self) -> Option<Instant> {
        let ((due, _), _) = self.postponed.first_key_value()?;
        Some(*due)
    }

    /// The ready tasks, the last one first.
    pub fn ready(&self) -> impl ExactSizeIterator<Item = &T> + DoubleEndedIterator {
        self.ready.iter()
    }

    /// The postponed tasks, in the order of their times.
    pub fn postponed(&self) -> impl ExactSizeIterator<Item = &T> + Clone {
        self.postponed.values()
    }

    /// Whether there are no tasks.
    pub fn is_empty(&self) -> bool {
        self.ready.is_empty() && self.postponed.is_empty()
    }

    /// The number of tasks, ready and postponed.
    pub fn len(&self) -> usize {
        self.ready.len() + self.postponed.len()
    }

    /// Removes the ready tasks and returns them, the last one first.
    pub fn take_ready(&mut self) -> VecDeque<T> {
        std::mem::take(&mut self.ready)
    }

    /// Removes all tasks and returns them: the ready ones, the last one first, then the postponed ones.
    pub fn take_all(&mut self) -> Vec<T> {
        let postponed = std::mem::take(&mut self.postponed);
        let ready = self.take_ready().into_iter();
        ready.chain(postponed.into_values()).collect()
    }

    /// Removes those of the last `count` ready tasks for which `holds` is true, and returns them.
    pub fn take_last(&mut self, count: usize, holds: impl Fn(&T) -> bool) -> Vec<T> {
        let ready = self.take_ready().into_iter().enumerate();
        let (taken, kept): (Vec<_>, Vec<_>) =
            ready.partition(|(at, task)| *at < count && holds(task));
        self.ready = kept.into_iter().map(|(_, task)| task).collect();
        taken.into_iter().map(|(_, task)| task).collect()
    }
}

/// The attempts of one task.
#[derive(Clone, Copy, Debug, Default)]
pub struct Attempts {
    /// Requests, except those that were refused with 429 or 503.
    made: u32,
    /// Refusals (429 or 503).
    throttles: u32,
    /// Answers of 410.
    gone: u32,
    /// When the last refusal came.
    throttled_at: Option<Instant>,
    /// When the first and the last request were sent.
    first_sent_at: Option<Instant>,
    sent_at: Option<Instant>,
}

impl Attempts {
    /// A request was sent.
    pub fn handle_sent(&mut self, now: Instant) {
        self.made += 1;
        self.first_sent_at.get_or_insert(now);
        self.sent_at = Some(now);
    }

    /// A further request of the same attempt was sent.
    pub fn handle_continued(&mut self, now: Instant) {
        self.sent_at = Some(now);
    }

    /// The host refused the request. Returns the time of the previous refusal.
    pub fn handle_throttled(&mut self, now: Instant) -> Option<Instant> {
        self.throttles += 1;
        self.throttled_at.replace(now)
    }

    /// Does not count the last request as an attempt.
    pub fn discount(&mut self) {
        self.made = self.made.saturating_sub(1);
    }

    /// The answer was 410. Returns how many answers were 410, this one included.
    pub fn handle_gone(&mut self) -> u32 {
        self.gone += 1;
        self.gone
    }

    /// Counts the last request as the first attempt, because it made progress.
    pub fn start_over(&mut self, now: Instant) {
        self.made = 1;
        self.first_sent_at = Some(now);
    }

    /// The number of attempts.
    pub fn made(&self) -> u32 {
        self.made
    }

    /// The number of refusals.
    pub fn throttles(&self) -> u32 {
        self.throttles
    }

    /// When the first request was sent.
    pub fn first_sent_at(&self) -> Option<Instant> {
        self.first_sent_at
    }

    /// When the last request was sent.
    pub fn sent_at(&self) -> Option<Instant> {
        self.sent_at
    }

    /// Whether the request that was just sent is a repetition.
    pub fn is_repeated(&self) -> bool {
        self.made + self.throttles > 1
    }

    /// The time since the last request was sent.
    pub fn took(&self, now: Instant) -> Duration {
        self.sent_at
            .map_or(Duration::ZERO, |at| now.saturating_duration_since(at))
    }

    /// When to try again after `wait` and a failure of this class; `None` if the policy allows no further attempt.
    pub fn retry_at(
        &self,
        now: Instant,
        wait: Duration,
        class: Class,
        policy: &RetryPolicy,
    ) -> Option<Instant> {
        let is_late = self
            .first_sent_at
            .and_then(|first| first.checked_add(policy.patience))
            .is_some_and(|end| now + wait > end);
        let is_allowed = policy.retries(class) && self.made < policy.attempts.get() && !is_late;
        is_allowed.then(|| now + wait)
    }
}
