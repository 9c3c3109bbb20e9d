//! The times at which the requests of an open loop are due: at a fixed rate, independent of earlier requests. Only
//! arithmetic.

use std::time::{Duration, Instant};

use crate::measure::{Followed, LOOK, Plan};

/// A rate that rises linearly from zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Schedule {
    /// Requests per second after the ramp.
    pub rate: f64,
    /// The time over which the rate rises.
    pub ramp: Duration,
}

impl Schedule {
    /// When request `number` is due, counted from the start. The first request has the number 0 and is due at once.
    #[must_use]
    pub fn due(&self, number: u64) -> Duration {
        let (number, ramp) = (number as f64, self.ramp.as_secs_f64());
        // During the ramp, the rate is `rate * t / ramp`, so that `rate * t² / (2 * ramp)` requests are due before t.
        let in_ramp = self.rate * ramp / 2.0;
        let seconds = if number < in_ramp {
            (2.0 * ramp * number / self.rate).sqrt()
        } else {
            ramp + (number - in_ramp) / self.rate
        };
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }

    /// The number of requests that are due before this time.
    #[must_use]
    pub fn due_before(&self, time: Duration) -> u64 {
        let (time, ramp) = (time.as_secs_f64(), self.ramp.as_secs_f64());
        let requests = if time < ramp {
            self.rate * time * time / (2.0 * ramp)
        } else {
            self.rate * (time - ramp / 2.0)
        };
        // A request that is due exactly at this nanosecond does not count, whatever the rounding.
        (requests - self.rate * 1e-9 - ROUNDING).ceil() as u64
    }
}

/// The progress of a run that follows a schedule.
#[derive(Debug)]
pub struct Pace {
    schedule: Schedule,
    began: Instant,
    /// Number of all requests, including those of the warm-up.
    scheduled: u64,
    /// No request is sent after this time.
    until: Duration,
    sent: u64,
    most_behind: u64,
}

impl Pace {
    /// A run with a number of requests ends when all were sent, however late; a run with a duration ends at its time.
    #[must_use]
    pub fn new(plan: &Plan, schedule: Schedule, began: Instant) -> Self {
        let warm_up = plan.warm_up();
        let (scheduled, until) = match plan.requests {
            Some(requests) => (warm_up.saturating_add(requests), Duration::MAX),
            None => {
                let until = schedule.due(warm_up).saturating_add(plan.duration);
                (schedule.due_before(until), until)
            }
        };
        Self {
            schedule,
            began,
            scheduled,
            until,
            sent: 0,
            most_behind: 0,
        }
    }

    /// When the next request is due; `None` if there are no more requests.
    #[must_use]
    pub fn next(&self, now: Instant) -> Option<Instant> {
        let over = self.sent == self.scheduled || now - self.began >= self.until;
        (!over).then(|| self.began + self.schedule.due(self.sent))
    }

    /// The next request was sent, possibly late.
    pub fn sent(&mut self, now: Instant) {
        let others = self.unsent(now).saturating_sub(1);
        self.most_behind = others.max(self.most_behind);
        self.sent += 1;
    }

    /// The result of the schedule.
    #[must_use]
    pub fn followed(&self, now: Instant) -> Followed {
        Followed {
            rate: self.schedule.rate,
            ramp: self.schedule.ramp,
            sent: self.sent,
            unsent: self.unsent(now),
            most_behind: self.most_behind,
        }
    }

    /// The number of requests that are due and were not sent.
    fn unsent(&self, now: Instant) -> u64 {
        let due = self.schedule.due_before(now - self.began);
        due.min(self.scheduled).saturating_sub(self.sent)
    }
}

/// How long to sleep before `due`. The timers of the system are too coarse for the last part, which is spent polling
/// for responses.
#[must_use]
pub fn sleep(now: Instant, due: Instant) -> Duration {
    (due - now).saturating_sub(TIMER).min(LOOK)
}

/// Precision of the timers of the system.
const TIMER: Duration = Duration::from_millis(1);
/// Rounding error of the arithmetic, in requests.
const ROUNDING: f64 = 1e-6;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Schedule;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn even_without_a_ramp() {
        let schedule = Schedule {
            rate: 200.0,
            ramp: Duration::ZERO,
        };
        assert_eq!(
            [0, 1, 400].map(|n| schedule.due(n)),
            [ms(0), ms(5), ms(2000)]
        );
        assert_eq!(
            [0, 1, 5, 6, 2000].map(|t| schedule.due_before(ms(t))),
            [0, 1, 1, 2, 400]
        );
    }

    #[test]
    fn rises_in_a_straight_line() {
        // 1 s from 0 to 100 per second: 50 requests, a quarter of them in the first half.
        let schedule = Schedule {
            rate: 100.0,
            ramp: ms(1000),
        };
        assert_eq!(
            [0, 50, 60].map(|n| schedule.due(n)),
            [ms(0), ms(1000), ms(1100)]
        );
        assert_eq!(
            [500, 1000, 2000].map(|t| schedule.due_before(ms(t))),
            [13, 50, 150]
        );
    }

    #[test]
    fn both_ways_agree() {
        for (rate, ramp) in [(0.3, 0), (7.0, 0), (333.3, 700), (90_000.0, 2500)] {
            let schedule = Schedule {
                rate,
                ramp: ms(ramp),
            };
            for number in 1..5000 {
                assert!(schedule.due(number - 1) <= schedule.due(number));
                let just_before = schedule.due_before(schedule.due(number));
                assert_eq!(just_before, number, "{schedule:?}");
            }
        }
    }
}
