//! How many requests, or bytes, may pass in a time: the generic cell rate algorithm, which is a token bucket kept as
//! one point in time. Counts are exact: nothing is rounded, whatever the rate.

use std::num::NonZeroU64;
use std::time::{Duration, Instant};

/// So many in so much time, of which so many may come at once.
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
/// // Of each host, and of all hosts of a client; a megabyte a second comes from all of them together.
/// let mut config = courser::Config::default();
/// config.host.rate = Some(with_bursts);
/// config.rate = Some(Rate::per_second(NonZeroU64::new(1000).unwrap()));
/// config.bytes_in = Some(Rate::per_second(NonZeroU64::new(1_000_000).unwrap()));
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Rate {
    /// How many.
    pub count: NonZeroU64,
    /// In how much time. Zero is no limit.
    pub per: Duration,
    /// How many at once, after a pause that is long enough.
    pub burst: NonZeroU64,
}

impl Rate {
    /// So many a second, one at a time.
    pub const fn per_second(count: NonZeroU64) -> Self {
        Self {
            count,
            per: Duration::from_secs(1),
            burst: NonZeroU64::MIN,
        }
    }

    /// One, and the next one so much later.
    pub const fn every(delay: Duration) -> Self {
        Self {
            count: NonZeroU64::MIN,
            per: delay,
            burst: NonZeroU64::MIN,
        }
    }

    /// The same rate with so many at once.
    pub const fn burst(mut self, burst: NonZeroU64) -> Self {
        self.burst = burst;
        self
    }
}

/// Keeps a [`Rate`]: in any window of time, however it is laid, no more pass than the burst and what the rate gives for
/// the window's length.
///
/// It has no clock: times are given, and must not go back (one that does counts as the latest seen).
///
/// ```
/// use std::num::NonZeroU64;
/// use std::time::{Duration, Instant};
/// use courser::{Rate, RateLimiter};
///
/// let ten_a_second = Rate::per_second(NonZeroU64::new(10).unwrap());
/// let mut limiter = RateLimiter::new(ten_a_second);
/// let now = Instant::now();
/// assert_eq!(limiter.take(now, 1), Ok(()));
/// // The next one in a tenth of a second.
/// let later = now + Duration::from_millis(100);
/// assert_eq!(limiter.take(now, 1), Err(Some(later)));
/// assert_eq!(limiter.take(later, 1), Ok(()));
/// ```
#[derive(Clone, Debug)]
pub struct RateLimiter {
    rate: Rate,
    /// The first time seen, from which the others count.
    start: Option<Instant>,
    /// In nanoseconds after `start`, times `rate.count`: when all that has passed has been paid for. One that passes
    /// costs `rate.per` in nanoseconds, and time pays `rate.count` for each nanosecond.
    paid_at: u128,
    latest: u128,
}

impl RateLimiter {
    /// With the whole burst at hand.
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

    /// Lets so many pass now, all or none.
    ///
    /// # Errors
    /// When they may pass; `None` if never, because they are more than a burst.
    pub fn take(&mut self, now: Instant, count: u64) -> Result<(), Option<Instant>> {
        match self.ready_at(now, count) {
            Some(at) if at <= now => {
                self.charge(now, count);
                Ok(())
            }
            later => Err(later),
        }
    }

    /// When so many may pass: `now` if they may at once, `None` if never. Nothing is taken.
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

    /// Takes note of so many that have passed, asked for or not. What is more than may pass now keeps the next ones
    /// back for as long as it takes: so what cannot be cut to size is over by its own size at the most.
    pub fn charge(&mut self, now: Instant, count: u64) {
        let now = self.see(now);
        self.paid_at = self.paid_at.max(now).saturating_add(self.cost(count));
    }

    /// When the whole burst is at hand again; a limiter that is made anew then has let nothing pass beside the rate.
    pub fn rests_at(&self) -> Option<Instant> {
        match self.start {
            Some(_) => self.instant(self.paid_at),
            None => None,
        }
    }

    /// Lets one pass, now or later, behind all that were let pass before: returns when. So nobody who comes later goes
    /// first, and who does not come after all leaves a gap.
    pub fn reserve(&mut self, now: Instant) -> Instant {
        let at = self.see(now);
        if self.rate.per.is_zero() {
            return now;
        }
        self.paid_at = self.paid_at.max(at).saturating_add(self.cost(1));
        let burst = at.saturating_add(self.cost(self.rate.burst.get()));
        match self.paid_at.checked_sub(burst) {
            None | Some(0) => now,
            // Beyond all times is never, as far as anybody will wait.
            Some(missing) => self
                .instant(at.saturating_add(missing))
                .unwrap_or(now + NEVER),
        }
    }

    /// How many may pass now, a burst at most. Without a limit, `u64::MAX`.
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

    /// Takes back so many that were let pass and were not used, before others are let pass: else those may have been
    /// counted against a time that this gives back once more.
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

const NEVER: Duration = Duration::from_secs(30 * 365 * 86_400);

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
        // A pause fills it, and not beyond the burst; time does not go back.
        assert_eq!(limiter.available(at(10_000)), 3);
        assert_eq!(limiter.available(at(0)), 3);
    }

    #[test]
    fn reservations_stand_in_line() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut limiter = RateLimiter::new(Rate::per_second(count(10)).burst(count(2)));
        let line: Vec<_> = (0..5).map(|_| limiter.reserve(start)).collect();
        assert_eq!(line, [at(0), at(0), at(100), at(200), at(300)]);
        assert_eq!(limiter.take(at(350), 1), Err(Some(at(400))));
        assert_eq!(limiter.reserve(at(350)), at(400));
        assert_eq!(limiter.reserve(at(10_000)), at(10_000));
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
                    limiter.reserve(now);
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
        /// No window has more than it may, and who waits for as long as told is let pass then, and not before.
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
