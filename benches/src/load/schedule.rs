//! When requests are due in an open loop: at a fixed rate, whatever becomes of those before them. Pure arithmetic.

use std::time::Duration;

/// A rate, reached in a straight line from nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Schedule {
    /// Requests per second after the ramp.
    pub rate: f64,
    /// How long the rate rises.
    pub ramp: Duration,
}

impl Schedule {
    /// When request `number` is due, from the beginning. The first has the number 0 and is due at once.
    #[must_use]
    pub fn due(&self, number: u64) -> Duration {
        let (number, ramp) = (number as f64, self.ramp.as_secs_f64());
        // The rate is `rate * t / ramp` at first, so `rate * t² / (2 * ramp)` requests are due before t.
        let in_ramp = self.rate * ramp / 2.0;
        let seconds = if number < in_ramp {
            (2.0 * ramp * number / self.rate).sqrt()
        } else {
            ramp + (number - in_ramp) / self.rate
        };
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }

    /// How many requests are due before that time.
    #[must_use]
    pub fn due_before(&self, time: Duration) -> u64 {
        let (time, ramp) = (time.as_secs_f64(), self.ramp.as_secs_f64());
        let requests = if time < ramp {
            self.rate * time * time / (2.0 * ramp)
        } else {
            self.rate * (time - ramp / 2.0)
        };
        // One that is due at that very nanosecond does not count, however it was rounded.
        (requests - self.rate * 1e-9 - ROUNDING).ceil() as u64
    }
}

/// Of the arithmetic itself.
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
