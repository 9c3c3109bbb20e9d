//! Points in time for the policies and the reactor: 8 bytes that one instruction compares or copies. An [`Instant`]
//! takes 16 bytes, and its comparison looks at two fields. A call takes about a dozen of them, and a connection keeps
//! five.

use std::num::NonZeroU64;
use std::ops::{Add, Sub};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// Nanoseconds. The first call of [`Time::of`] in this program is [`ORIGIN`](Time::ORIGIN), 292 years after zero.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) struct Time(NonZeroU64);

static FIRST_CALL: LazyLock<Instant> = LazyLock::new(Instant::now);

impl Time {
    /// The time of the first call; earlier times are below it.
    const ORIGIN: u64 = 1 << 63;

    pub(crate) fn of(instant: Instant) -> Self {
        let first = *FIRST_CALL;
        let nanos = match instant.checked_duration_since(first) {
            Some(after) => Self::ORIGIN.saturating_add(nanos(after)),
            None => Self::ORIGIN.saturating_sub(nanos(first - instant)),
        };
        Self(NonZeroU64::new(nanos).unwrap_or(NonZeroU64::MIN))
    }

    /// The same time, for policies that are used outside the engine, too.
    pub(crate) fn instant(self) -> Instant {
        let (nanos, first) = (self.0.get(), *FIRST_CALL);
        let instant = match nanos.checked_sub(Self::ORIGIN) {
            Some(after) => first.checked_add(Duration::from_nanos(after)),
            None => first.checked_sub(Duration::from_nanos(Self::ORIGIN - nanos)),
        };
        instant.unwrap_or(first)
    }

    /// `None` if the sum is more than 292 years after the origin.
    #[inline]
    pub(crate) fn checked_add(self, by: Duration) -> Option<Self> {
        self.0.checked_add(nanos(by)).map(Self)
    }

    /// The time from `earlier` to `self`; zero if `earlier` is later.
    #[inline]
    pub(crate) fn saturating_duration_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.get().saturating_sub(earlier.0.get()))
    }
}

impl Add<Duration> for Time {
    type Output = Self;

    /// Saturates 292 years after the origin.
    #[inline]
    fn add(self, by: Duration) -> Self {
        Self(self.0.saturating_add(nanos(by)))
    }
}

impl Sub for Time {
    type Output = Duration;

    #[inline]
    fn sub(self, earlier: Self) -> Duration {
        self.saturating_duration_since(earlier)
    }
}

#[inline]
fn nanos(duration: Duration) -> u64 {
    let seconds = duration.as_secs().saturating_mul(1_000_000_000);
    seconds.saturating_add(u64::from(duration.subsec_nanos()))
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Time {
        pub(crate) fn now() -> Self {
            Self::of(Instant::now())
        }
    }

    #[test]
    fn order_and_distances_are_those_of_instants() {
        let now = Instant::now();
        let time = Time::of(now);
        for nanos in [0, 1, 999_999_999, 1_000_000_000, 86_400_000_000_001] {
            let by = Duration::from_nanos(nanos);
            assert_eq!(Time::of(now + by), time + by);
            assert_eq!((time + by).instant(), now + by);
            assert_eq!(Time::of(now + by) - time, by);
            assert_eq!(time.checked_add(by), Some(time + by));
            assert_eq!(time - Time::of(now + by), Duration::ZERO);
            if let Some(before) = now.checked_sub(by) {
                assert_eq!(time - Time::of(before), by);
            }
        }
        assert_eq!(time.checked_add(Duration::MAX), None);
        assert!(time + Duration::MAX > time + Duration::from_secs(1 << 32));
        assert_eq!(size_of::<Option<Time>>(), 8);
    }
}
