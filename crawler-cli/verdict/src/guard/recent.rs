//! Counts over the last hours or minutes, in little memory.

use std::collections::VecDeque;
use std::time::Duration;

use jiff::Timestamp;

/// How often something happened within the last `width`. The oldest events leave in groups: an event counts for `width`,
/// and for up to a 24th of it longer.
#[derive(Clone, Debug)]
pub(super) struct Recent {
    width: Duration,
    /// Numbers of groups with their counts, oldest first, never empty ones; at most [`GROUPS`] + 1.
    groups: VecDeque<(i64, u64)>,
    total: u64,
}

impl Recent {
    pub(super) fn new(width: Duration) -> Self {
        Self {
            width,
            groups: VecDeque::new(),
            total: 0,
        }
    }

    /// Counts over another width from now on. What was forgotten before stays forgotten.
    pub(super) fn set_width(&mut self, width: Duration) {
        let before = self.millis_of_group();
        self.width = width;
        let after = self.millis_of_group();
        if before == after {
            return;
        }
        for (group, count) in std::mem::take(&mut self.groups) {
            // The last moment of the group: nothing leaves too early.
            let last = group.saturating_add(1).saturating_mul(before) - 1;
            let group = last.div_euclid(after);
            match self.groups.back_mut() {
                Some((last, total)) if *last >= group => *total += count,
                _ => self.groups.push_back((group, count)),
            }
        }
    }

    pub(super) fn note(&mut self, now: Timestamp) {
        let group = self.group(now);
        match self.groups.back_mut() {
            // Also if the clock was set back.
            Some((last, count)) if *last >= group => *count += 1,
            _ => self.groups.push_back((group, 1)),
        }
        self.total += 1;
    }

    pub(super) fn count(&mut self, now: Timestamp) -> u64 {
        let oldest = self.group(now) - GROUPS;
        while let Some(&(group, count)) = self.groups.front()
            && group < oldest
        {
            self.groups.pop_front();
            self.total -= count;
        }
        self.total
    }

    /// Until when the oldest events count, from now.
    pub(super) fn until_less(&self, now: Timestamp) -> Duration {
        let Some(&(group, _)) = self.groups.front() else {
            return Duration::ZERO;
        };
        let end = (group + GROUPS + 1).saturating_mul(self.millis_of_group());
        let left = end.saturating_sub(now.as_millisecond());
        Duration::from_millis(u64::try_from(left).unwrap_or(0))
    }

    fn group(&self, now: Timestamp) -> i64 {
        now.as_millisecond().div_euclid(self.millis_of_group())
    }

    fn millis_of_group(&self) -> i64 {
        let millis = i64::try_from(self.width.as_millis()).unwrap_or(i64::MAX);
        (millis / GROUPS).max(1)
    }
}

const GROUPS: i64 = 24;
