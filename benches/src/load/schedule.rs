//! The times at which the requests of an open loop are due: at a fixed rate, independent of earlier requests. Only
//! arithmetic.

use std::time::{Duration, Instant};

use crate::measure::{Followed, LOOK, Plan};

/// The progress of a run at a fixed rate.
#[derive(Debug)]
pub struct Pace {
    /// Requests per second.
    rate: f64,
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
    pub fn new(plan: &Plan, rate: f64, began: Instant) -> Self {
        let warm_up = plan.warm_up();
        let (scheduled, until) = match plan.requests {
            Some(requests) => (warm_up.saturating_add(requests), Duration::MAX),
            None => {
                let until = due(rate, warm_up).saturating_add(plan.duration);
                (due_before(rate, until), until)
            }
        };
        Self {
            rate,
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
        (!over).then(|| self.began + due(self.rate, self.sent))
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
            rate: self.rate,
            sent: self.sent,
            unsent: self.unsent(now),
            most_behind: self.most_behind,
        }
    }

    /// The number of requests that are due and were not sent.
    fn unsent(&self, now: Instant) -> u64 {
        let due = due_before(self.rate, now - self.began);
        due.min(self.scheduled).saturating_sub(self.sent)
    }
}

/// When request `number` is due, counted from the start. The first request has the number 0 and is due at once.
fn due(rate: f64, number: u64) -> Duration {
    Duration::try_from_secs_f64(number as f64 / rate).unwrap_or(Duration::MAX)
}

/// The number of requests that are due before this time.
fn due_before(rate: f64, time: Duration) -> u64 {
    // A request that is due exactly at this nanosecond does not count, whatever the rounding.
    (rate * time.as_secs_f64() - rate * 1e-9 - ROUNDING).ceil() as u64
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

    use super::{due, due_before};

    #[test]
    fn evenly() {
        let ms = Duration::from_millis;
        let times = [0, 1, 400].map(|number| due(200.0, number));
        assert_eq!(times, [0, 5, 2000].map(ms));
        let counts = [0, 1, 5, 6, 2000].map(|time| due_before(200.0, ms(time)));
        assert_eq!(counts, [0, 1, 1, 2, 400]);
    }

    #[test]
    fn both_ways_agree() {
        for rate in [0.3, 7.0, 333.3, 90_000.0] {
            for number in 1..5000 {
                assert!(due(rate, number - 1) <= due(rate, number));
                assert_eq!(due_before(rate, due(rate, number)), number, "{rate}");
            }
        }
    }
}
