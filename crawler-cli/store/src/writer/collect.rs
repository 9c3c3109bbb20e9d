//! When a group of operations is complete.

use std::time::{Duration, Instant};

/// Decides when the group that is being collected ends.
#[derive(Debug)]
pub(super) struct Collect {
    most_rows: usize,
    rows: usize,
    /// Then the group ends in any case.
    end: Instant,
    is_urgent: bool,
}

impl Collect {
    /// A group that begins now, and waits so long for further operations.
    pub(super) fn begin(now: Instant, wait: Duration, most_rows: usize) -> Self {
        Self {
            most_rows,
            rows: 0,
            end: now + wait,
            is_urgent: false,
        }
    }

    /// An operation joins the group.
    pub(super) fn join(&mut self, rows: usize, is_urgent: bool) {
        self.rows = self.rows.saturating_add(rows);
        self.is_urgent |= is_urgent;
    }

    /// Whether no further operation may join.
    pub(super) fn is_full(&self) -> bool {
        self.rows >= self.most_rows
    }

    /// How long to wait for the next operation if none is there; `None` if the group ends without one.
    pub(super) fn wait(&self, now: Instant) -> Option<Duration> {
        let left = self.end.saturating_duration_since(now);
        (!self.is_urgent && !self.is_full() && !left.is_zero()).then_some(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Duration = Duration::from_millis(20);

    #[test]
    fn a_group_waits_for_more_until_its_time_is_over() {
        let now = Instant::now();
        let mut group = Collect::begin(now, WAIT, 3);
        group.join(1, false);
        assert_eq!(group.wait(now), Some(WAIT));
        assert_eq!(group.wait(now + WAIT / 2), Some(WAIT / 2));
        assert_eq!(group.wait(now + WAIT), None);
        assert!(!group.is_full());
    }

    #[test]
    fn a_full_group_ends_at_once() {
        let now = Instant::now();
        let mut group = Collect::begin(now, WAIT, 3);
        group.join(2, false);
        group.join(2, false);
        assert!(group.is_full());
        assert_eq!(group.wait(now), None);
    }

    #[test]
    fn an_urgent_operation_waits_for_none() {
        let now = Instant::now();
        let mut group = Collect::begin(now, WAIT, 3);
        group.join(1, true);
        assert_eq!(group.wait(now), None);
        // Those that are there already still join.
        assert!(!group.is_full());
    }
}
