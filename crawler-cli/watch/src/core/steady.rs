//! The time of the core: the wall clock without its jumps.
//!
//! When the wall clock is set forward, the time jumps with it: what has become due is asked. When it is set back, the time
//! goes on at half its speed until the wall clock has caught up. So it never goes back: nothing is asked twice, and what is
//! due in 15 minutes is asked within 30, and not a day later. Rates, the time limits of requests, batches and the end of
//! the service do not depend on this time: they use the monotonic clock.

use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

use verdict::life::time::{after, between};

/// The time of the core.
#[derive(Debug)]
pub(crate) struct Steady {
    monotonic: Instant,
    wall: Timestamp,
    now: Timestamp,
}

/// A jump of the wall clock.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Jump {
    /// What it would have said.
    pub(crate) from: Timestamp,
    /// What it says.
    pub(crate) to: Timestamp,
}

impl Steady {
    /// Begins at this time.
    pub(crate) fn new(monotonic: Instant, wall: Timestamp) -> Self {
        Self {
            monotonic,
            wall,
            now: wall,
        }
    }

    /// The time at the last [`advance`](Self::advance).
    pub(super) fn now(&self) -> Timestamp {
        self.now
    }

    /// How long it takes until this time, at the speed at which the time goes now.
    pub(super) fn time_until(&self, at: Timestamp) -> Duration {
        let (left, ahead) = (between(self.now, at), between(self.wall, self.now));
        left.saturating_add(left.min(ahead))
    }

    /// Time passes. Returns the jump of the wall clock, if it has jumped.
    pub(crate) fn advance(&mut self, monotonic: Instant, wall: Timestamp) -> Option<Jump> {
        let passed = monotonic.saturating_duration_since(self.monotonic);
        let expected = after(self.wall, passed);
        (self.monotonic, self.wall) = (self.monotonic.max(monotonic), wall);
        self.now = match wall >= after(self.now, passed) {
            true => wall,
            false => after(self.now, passed / 2).max(wall),
        };
        let by = wall.duration_since(expected).abs();
        let is_jump = by > SignedDuration::try_from(LEAST_JUMP).unwrap_or(SignedDuration::MAX);
        is_jump.then_some(Jump {
            from: expected,
            to: wall,
        })
    }
}

/// Clocks are set by less than this all the time.
const LEAST_JUMP: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);
    const MINUTE: Duration = Duration::from_secs(60);

    struct Clocks {
        steady: Steady,
        monotonic: Instant,
        wall: Timestamp,
    }

    impl Clocks {
        fn new() -> Self {
            let (monotonic, wall) = (
                Instant::now(),
                Timestamp::from_second(1_767_225_600).unwrap(),
            );
            Self {
                steady: Steady::new(monotonic, wall),
                monotonic,
                wall,
            }
        }

        fn pass(&mut self, time: Duration) -> Option<Jump> {
            self.monotonic += time;
            self.wall += time;
            self.steady.advance(self.monotonic, self.wall)
        }
    }

    #[test]
    fn a_clock_that_is_set_forward_is_followed() {
        let mut clocks = Clocks::new();
        assert_eq!(clocks.pass(MINUTE), None);
        let from = clocks.wall + MINUTE;
        clocks.wall += DAY;
        let jump = clocks.pass(MINUTE);
        assert_eq!(
            jump,
            Some(Jump {
                from,
                to: from + DAY
            })
        );
        assert_eq!(clocks.steady.now(), clocks.wall);
        assert_eq!(clocks.pass(MINUTE), None);
    }

    #[test]
    fn a_clock_that_is_set_back_is_waited_for() {
        let mut clocks = Clocks::new();
        let before = clocks.steady.now();
        clocks.wall -= DAY;
        assert!(clocks.pass(MINUTE).is_some());
        // Half the speed: never back, and never still.
        assert_eq!(clocks.steady.now(), before + MINUTE / 2);
        assert_eq!(clocks.pass(DAY), None);
        assert_eq!(clocks.steady.now(), before + DAY / 2 + MINUTE / 2);
        assert_eq!(clocks.pass(DAY), None);
        assert_eq!(clocks.steady.now(), clocks.wall);
    }

    /// Who waits until a time must not wait for half of what is left, again and again.
    #[test]
    fn a_time_is_reached_in_one_step_also_at_half_the_speed() {
        for left in [Duration::from_nanos(1), MINUTE, DAY, DAY * 3] {
            let mut clocks = Clocks::new();
            clocks.wall -= DAY;
            clocks.pass(Duration::ZERO);
            let at = clocks.steady.now() + left;
            let time = clocks.steady.time_until(at);
            clocks.pass(time);
            assert_eq!(clocks.steady.now(), at);
            assert_eq!(clocks.steady.time_until(at), Duration::ZERO);
        }
    }

    #[test]
    fn small_steps_are_no_jumps() {
        let mut clocks = Clocks::new();
        for seconds in [30, -30, 59, -59] {
            let before = clocks.steady.now();
            clocks.wall += SignedDuration::from_secs(seconds);
            assert_eq!(clocks.pass(MINUTE), None);
            assert!(clocks.steady.now() > before);
        }
    }
}
