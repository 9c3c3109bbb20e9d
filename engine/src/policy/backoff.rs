//! How long to wait before the next attempt: exponential back-off with full jitter, or the time in `Retry-After` (RFC
//! 9110 §10.2.3). The retry policy decides whether there is a next attempt.

use std::time::{Duration, SystemTime};

/// Exponential back-off with full jitter: a random time between zero and a bound that grows with each attempt, so that
/// clients that failed together do not come back together.
///
/// ```
/// use std::time::Duration;
/// use courser::Backoff;
///
/// let backoff = Backoff { initial: Duration::from_millis(100), factor: 2.0, max: Duration::from_secs(1) };
/// // The bounds are 100, 200, 400, 800, 1000, 1000, ... milliseconds; a random number in the middle gives half of a bound.
/// assert_eq!(backoff.bound(4), Duration::from_millis(800));
/// assert_eq!(backoff.bound(5), Duration::from_secs(1));
/// let half = backoff.delay(4, u64::MAX / 2);
/// assert!(half.abs_diff(Duration::from_millis(400)) < Duration::from_micros(1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backoff {
    /// The bound of the first wait. Default 100 ms.
    pub initial: Duration,
    /// The factor by which the bound grows with each further wait; below 1 counts as 1. Default 2.
    pub factor: f64,
    /// The largest bound. Default 10 s.
    pub max: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            initial: Duration::from_millis(100),
            factor: 2.0,
            max: Duration::from_secs(10),
        }
    }
}

impl Backoff {
    /// No wait.
    pub const NONE: Self = Self {
        initial: Duration::ZERO,
        factor: 1.0,
        max: Duration::ZERO,
    };

    /// The longest possible wait number `wait`; the first is 1.
    pub fn bound(&self, wait: u32) -> Duration {
        if self.initial.is_zero() {
            return Duration::ZERO;
        }
        let growth = self.factor.max(1.0).powf(f64::from(wait.saturating_sub(1)));
        let bound = self.initial.as_secs_f64() * growth;
        // Also correct if the growth is infinite.
        if bound < self.max.as_secs_f64() {
            Duration::from_secs_f64(bound)
        } else {
            self.max
        }
    }

    /// The wait number `wait`; the first is 1. `random` is a uniformly distributed number.
    pub fn delay(&self, wait: u32, random: u64) -> Duration {
        // At most 584 years.
        let bound = u64::try_from(self.bound(wait).as_nanos()).unwrap_or(u64::MAX);
        let nanos = (u128::from(bound) * u128::from(random)) >> 64;
        Duration::from_nanos(nanos as u64)
    }
}

/// Parses `Retry-After`: seconds, or the time from `now` until a date. `now` should be the `Date` of the same answer,
/// since clocks differ; without it, dates give `None`. A date in the past gives zero. Anything else gives `None`.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use courser::policy::retry_after;
///
/// let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777); // Sun, 06 Nov 1994 08:49:37 GMT
/// assert_eq!(retry_after(b"120", None), Some(Duration::from_secs(120)));
/// assert_eq!(retry_after(b"Sun, 06 Nov 1994 08:50:07 GMT", Some(now)), Some(Duration::from_secs(30)));
/// assert_eq!(retry_after(b"Sun, 06 Nov 1994 08:00:00 GMT", Some(now)), Some(Duration::ZERO));
/// assert_eq!(retry_after(b"soon", Some(now)), None);
/// ```
pub fn retry_after(value: &[u8], now: Option<SystemTime>) -> Option<Duration> {
    let text = std::str::from_utf8(value.trim_ascii()).ok()?;
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number that is too large means for ever; the caller limits it.
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let until = httpdate::parse_http_date(text).ok()?;
    Some(until.duration_since(now?).unwrap_or_default())
}

/// Parses `Date` (RFC 9110 §5.6.7).
pub(crate) fn date(value: &[u8]) -> Option<SystemTime> {
    let text = std::str::from_utf8(value.trim_ascii()).ok()?;
    httpdate::parse_http_date(text).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bounds_grow_to_the_largest() {
        let backoff = Backoff::default();
        let bounds: Vec<u128> = (0..10)
            .map(|wait| backoff.bound(wait).as_millis())
            .collect();
        assert_eq!(
            bounds,
            [100, 100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]
        );
        assert_eq!(backoff.bound(u32::MAX), backoff.max);
        assert_eq!(Backoff::NONE.delay(7, u64::MAX), Duration::ZERO);
        let at_once = Backoff {
            initial: Duration::ZERO,
            ..backoff
        };
        assert_eq!(at_once.bound(u32::MAX), Duration::ZERO);
        let endless = Backoff {
            initial: Duration::MAX,
            max: Duration::MAX,
            ..backoff
        };
        assert_eq!(endless.bound(1), Duration::MAX);
        let longest = Duration::from_nanos(u64::MAX);
        assert!(endless.delay(1, u64::MAX).abs_diff(longest) <= Duration::from_nanos(1));
        for factor in [0.0, -3.0, f64::NAN] {
            assert_eq!(Backoff { factor, ..backoff }.bound(9), backoff.initial);
        }
    }

    #[test]
    fn all_three_forms_of_dates() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        for date in [
            "Sun, 06 Nov 1994 08:49:47 GMT",
            "Sunday, 06-Nov-94 08:49:47 GMT",
            "Sun Nov  6 08:49:47 1994",
        ] {
            let pause = retry_after(date.as_bytes(), Some(now));
            assert_eq!(pause, Some(Duration::from_secs(10)), "{date}");
        }
        let endless = retry_after(b"99999999999999999999999", None);
        assert_eq!(endless, Some(Duration::from_secs(u64::MAX)));
        for bad in ["", "-1", "+1", "1.5", "1 s", "0x10", "\u{661}"] {
            assert_eq!(retry_after(bad.as_bytes(), Some(now)), None, "{bad}");
        }
        assert_eq!(
            retry_after(b" 7\t", Some(now)),
            Some(Duration::from_secs(7))
        );
        assert_eq!(retry_after(b"Sun, 06 Nov 1994 08:50:07 GMT", None), None);
    }

    proptest! {
        #[test]
        fn jitter_stays_within_the_bound(wait in 0u32..100, random: u64, initial in 0u64..10_000, factor in 0.5f64..8.0, max in 0u64..100_000) {
            let backoff = Backoff { initial: Duration::from_millis(initial), factor, max: Duration::from_millis(max) };
            prop_assert!(backoff.delay(wait, random) <= backoff.bound(wait));
            prop_assert!(backoff.bound(wait) <= backoff.max);
        }

        #[test]
        fn any_value_is_read_without_harm(value: Vec<u8>) {
            let _ = retry_after(&value, date(&value));
        }
    }
}
