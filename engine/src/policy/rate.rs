//! How many requests or bytes may pass in a time. Uses the generic cell rate algorithm: a token bucket that is stored
//! as one point in time. Counts are exact at every rate, without rounding.

use std::num::NonZeroU64;
use std::time::{Duration, Instant};

/// A number per time, and how many of them may come at once.
///
/// ```
/// use std::num::NonZeroU64;
/// use std::time::Duration;
/// use courser::Rate;
///
/// let hundred_a_second = Rate::per_second(NonZeroU64::new(100).unwrap());
/// let with_bursts = hundred_a_second.burst(NonZeroU64::new(20).unwrap());
/// // One every two seconds: a minimum delay between requests.
/// let every_two_seconds = Rate::every(Duration::from_secs(2));
/// assert_eq!(every_two_seconds.burst, NonZeroU64::MIN);
///
/// // For each host, and for all hosts of a client together; all of them together receive at most a megabyte per second.
/// let mut config = courser::Config::default();
/// config.host.rate = Some(with_bursts);
/// config.rate = Some(Rate::per_second(NonZeroU64::new(1000).unwrap()));
/// config.bytes_in = Some(Rate::per_second(NonZeroU64::new(1_000_000).unwrap()));
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Rate {
    /// The number.
    pub count: NonZeroU64,
    /// The time. Zero means no limit.
    pub per: Duration,
    /// How many may come at once after a long enough pause.
    pub burst: NonZeroU64,
}

impl Rate {
    /// So many per second, one at a time.
    pub const fn per_second(count: NonZeroU64) -> Self {
        Self {
            count,
            ..Self::every(Duration::from_secs(1))
        }
    }

    /// One at a time, with at least this delay between them.
    pub const fn every(delay: Duration) -> Self {
        Self {
            count: NonZeroU64::MIN,
            per: delay,
            burst: NonZeroU64::MIN,
        }
    }

    /// The same rate with this burst.
    pub const fn burst(mut self, burst: NonZeroU64) -> Self {
        self.burst = burst;
        self
    }
}

/// Keeps a [`Rate`]: in any window of time, not more pass than the burst plus what the rate gives for the length of the
/// window.
///
/// Has no clock: callers pass the time. A time before the latest one counts as the latest one.
///
/// ```
/// use std::num::NonZeroU64;
/// use std::time::{Duration, Instant};
/// use courser::policy::RateLimiter;
/// use courser::Rate;
///
/// let ten_a_second = Rate::per_second(NonZeroU64::new(10).unwrap());
/// let mut limiter = RateLimiter::new(ten_a_second);
/// let now = Instant::now();
/// assert_eq!(limiter.take(now, 1), Ok(()));
/// // The next one may pass a tenth of a second later.
/// let later = now + Duration::from_millis(100);
/// assert_eq!(limiter.take(now, 1), Err(Some(later)));
/// assert_eq!(limiter.take(later, 1), Ok(()));
/// ```
#[derive(Clone, Debug)]
pub struct RateLimiter {
    rate: Rate,
    /// The first time seen; other times are counted from it.
    start: Option<Instant>,
    /// Nanoseconds after `start`, times `rate.count`: when everything that has passed is paid for. Each unit costs
    /// `rate.per` in nanoseconds, and each nanosecond pays `rate.count`.
    paid_at: u128,
    latest: u128,
}

impl RateLimiter {
    /// A limiter with its whole burst available.
    pub fn new(rate: Rate) -> Self {
        Self {
            rate,
            start: None,
            paid_at: 0,
            latest: 0,
        }
    }

    /// The rate.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// Lets all of `count` pass now, or none of them.
    ///
    /// # Errors
    /// When they may pass; `None` if never, because they are more than the burst.
    pub fn take(&mut self, now: Instant, count: u64) -> Result<(), Option<Instant>> {
        match self.ready_at(now, count) {
            Some(at) if at <= now => {
                self.charge(now, count);
                Ok(())
            }
            later => Err(later),
        }
    }

    /// When `count` may pass: `now` if at once, `None` if never. Takes nothing.
    pub fn ready_at(&mut self, now: Instant, count: u64) -> Option<Instant> {
        let at = self.see(now);
        if self.rate.per.is_zero() {
            return Some(now);
        }
        if count > self.rate.burst.get() {
            return None;
        }
        let paid_at = self.paid_at.max(at).saturating_add(self.cost(count));
        match paid_at.checked_sub(at.saturating_add(self.cost(self.rate.burst.get()))) {
            None | Some(0) => Some(now),
            Some(missing) => self.instant(at.saturating_add(missing)),
        }
    }

    /// Counts `count` that have passed without asking. If these were too many, the next ones must wait longer. So units
    /// that cannot be split exceed the rate by at most their own size.
    pub fn charge(&mut self, now: Instant, count: u64) {
        let now = self.see(now);
        self.paid_at = self.paid_at.max(now).saturating_add(self.cost(count));
    }

    /// When the whole burst is available again. From then on, a new limiter would let pass no more than this one.
    pub fn rests_at(&self) -> Option<Instant> {
        self.instant(self.paid_at)
    }

    /// How many may pass now, at most a burst; `u64::MAX` without a limit.
    pub fn available(&mut self, now: Instant) -> u64 {
        let now = self.see(now);
        let per = self.rate.per.as_nanos();
        if per == 0 {
            return u64::MAX;
        }
        let burst = self.cost(self.rate.burst.get());
        let free = now
            .saturating_add(burst)
            .saturating_sub(self.paid_at.max(now));
        u64::try_from(free / per).unwrap_or(u64::MAX)
    }

    /// Returns `count` that did pass and were not used. Must be called before others pass: otherwise they may have been
    /// counted against a time that is returned a second time.
    pub fn give_back(&mut self, count: u64) {
        self.paid_at = self.paid_at.saturating_sub(self.cost(count));
    }

    fn cost(&self, count: u64) -> u128 {
        u128::from(count).saturating_mul(self.rate.per.as_nanos())
    }

    fn see(&mut self, now: Instant) -> u128 {
        let start = *self.start.get_or_insert(now);
        let nanos = now.saturating_duration_since(start).as_nanos();
        let scaled = nanos.saturating_mul(u128::from(self.rate.count.get()));
        self.latest = self.latest.max(scaled);
        self.latest
    }

    fn instant(&self, scaled: u128) -> Option<Instant> {
        let nanos = scaled.div_ceil(u128::from(self.rate.count.get()));
        let nanos = u64::try_from(nanos).ok()?;
        self.start?.checked_add(Duration::from_nanos(nanos))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn count(count: u64) -> NonZeroU64 {
        NonZeroU64::new(count).expect("not zero")
    }

    #[test]
    fn a_burst_and_then_the_rate() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut limiter = RateLimiter::new(Rate::per_second(count(10)).burst(count(3)));
        assert_eq!(limiter.available(at(0)), 3);
        assert_eq!(limiter.take(at(0), 2), Ok(()));
        assert_eq!(limiter.take(at(0), 2), Err(Some(at(100))));
        assert_eq!(limiter.take(at(0), 4), Err(None));
        assert_eq!(limiter.take(at(0), 1), Ok(()));
        assert_eq!(limiter.available(at(99)), 0);
        assert_eq!(limiter.take(at(100), 1), Ok(()));
        limiter.give_back(1);
        assert_eq!(limiter.take(at(100), 1), Ok(()));
        // A pause fills the bucket, but not beyond the burst. A time in the past changes nothing.
        assert_eq!(limiter.available(at(10_000)), 3);
        assert_eq!(limiter.available(at(0)), 3);
    }

    #[test]
    fn rates_beyond_all_reason_do_no_harm() {
        let start = Instant::now();
        let most = count(u64::MAX);
        for per in [Duration::from_nanos(1), Duration::MAX] {
            for (number, burst) in [
                (most, most),
                (count(1), most),
                (most, count(1)),
                (count(1), count(1)),
            ] {
                let rate = Rate {
                    count: number,
                    per,
                    burst,
                };
                let mut limiter = RateLimiter::new(rate);
                for years in [0, 1, 100] {
                    let now = start + Duration::from_secs(years * 31_536_000);
                    let free = limiter.available(now);
                    let _ = (limiter.take(now, free), limiter.take(now, 1));
                }
            }
        }
    }

    #[test]
    fn no_time_is_no_limit() {
        let mut limiter = RateLimiter::new(Rate::every(Duration::ZERO));
        assert_eq!(limiter.take(Instant::now(), u64::MAX), Ok(()));
        assert_eq!(limiter.available(Instant::now()), u64::MAX);
    }

    proptest! {
        /// No window has more than allowed, and a caller that waits as long as it was told passes then, and not before.
        #[test]
        fn exact_over_any_window(
            (number, per_ns, burst) in (1u64..2000, 1u64..2_000_000_000, 1u64..50),
            steps in prop::collection::vec((0u64..200_000_000, 1u64..5), 1..120),
        ) {
            let rate = Rate { count: count(number), per: Duration::from_nanos(per_ns), burst: count(burst) };
            let mut limiter = RateLimiter::new(rate);
            let start = Instant::now();
            let mut now = start;
            let mut passed: Vec<(u128, u64)> = Vec::new();
            for (pause, many) in steps {
                now += Duration::from_nanos(pause);
                let many = many.min(burst);
                if let Err(at) = limiter.take(now, many) {
                    let at = at.expect("not more than a burst");
                    prop_assert!(at > now);
                    let before = at - Duration::from_nanos(1);
                    if before > now {
                        prop_assert!(limiter.clone().take(before, many).is_err());
                    }
                    now = at;
                    prop_assert_eq!(limiter.take(now, many), Ok(()));
                }
                passed.push(((now - start).as_nanos(), many));
            }
            for from in 0..passed.len() {
                let mut sum = 0;
                for &(at, many) in &passed[from..] {
                    sum += u128::from(many);
                    let window = at - passed[from].0;
                    let most = u128::from(burst) * u128::from(per_ns) + window * u128::from(number);
                    prop_assert!(sum * u128::from(per_ns) <= most, "{} in {} ns", sum, window);
                }
            }
        }
    }
}
