//! Sizes and times as intervals, because listings round sizes and leave out the seconds and the time zone of times. No
//! I/O.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A size in bytes: between `lo` and `hi`, both included.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
pub struct SizeRange {
    /// The smallest possible size.
    pub lo: u64,
    /// The largest possible size.
    pub hi: u64,
}

impl fmt::Display for SizeRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.known() {
            Some(bytes) => write!(f, "{bytes}"),
            None => write!(f, "{} to {}", self.lo, self.hi),
        }
    }
}

impl SizeRange {
    /// Whether a size is possible.
    pub fn contains(self, bytes: u64) -> bool {
        (self.lo..=self.hi).contains(&bytes)
    }

    /// A size that is known to the byte.
    pub fn exact(bytes: u64) -> Self {
        Self {
            lo: bytes,
            hi: bytes,
        }
    }

    /// The size, if it is known to the byte.
    pub fn known(self) -> Option<u64> {
        (self.lo == self.hi).then_some(self.lo)
    }

    /// The middle of the range, as the best estimate.
    pub fn middle(self) -> u64 {
        self.lo + self.hi.saturating_sub(self.lo) / 2
    }
}

/// A time in seconds since 1970-01-01T00:00:00Z, leap seconds not counted: between `lo` and `hi`, both included.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
pub struct TimeRange {
    /// The earliest possible time.
    pub lo: i64,
    /// The latest possible time.
    pub hi: i64,
}

impl TimeRange {
    /// A time that is known to the second.
    pub fn exact(seconds: i64) -> Self {
        Self {
            lo: seconds,
            hi: seconds,
        }
    }

    /// The time, if it is known to the second.
    pub fn known(self) -> Option<i64> {
        (self.lo == self.hi).then_some(self.lo)
    }

    /// The time as a listing shows it, if the zone is not known: the interval is that of all zones then.
    pub fn as_listed(self) -> Option<i64> {
        let width = self.hi.saturating_sub(self.lo);
        let is_of_all_zones = (MOST_AHEAD - MOST_BEHIND..i64::MAX).contains(&width);
        is_of_all_zones.then_some(self.lo.saturating_add(MOST_AHEAD))
    }

    /// The precision, from the width of the interval.
    pub fn precision(self) -> Precision {
        match self.hi.saturating_sub(self.lo) {
            0 => Precision::Second,
            1..MINUTE => Precision::Minute,
            MINUTE..DAY => Precision::Day,
            _ => Precision::Unsure,
        }
    }
}

/// How exactly a time is known.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Precision {
    /// To the second.
    Second,
    /// To the minute.
    Minute,
    /// To the day, or nearly.
    Day,
    /// Less precise: the time zone of the listing is not known.
    Unsure,
}

impl Precision {
    /// The lower-case name, as in JSON output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Second => "second",
            Self::Minute => "minute",
            Self::Day => "day",
            Self::Unsure => "unsure",
        }
    }
}

/// A time as a listing shows it.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
pub struct ListedTime {
    /// The shown time in seconds since 1970, read as if it were UTC: the first second that it can stand for.
    pub seconds: i64,
    /// How many seconds the shown time covers: 1 if it has seconds, 60 if it has minutes only.
    pub span: u32,
    /// Whether the time zone is known to be UTC. Most servers write local time without its zone.
    pub utc: bool,
}

impl ListedTime {
    /// The range of possible times. `offset` is the offset of the server's local time from UTC in seconds (positive
    /// east of Greenwich), if it is known; without it, the range covers all time zones.
    pub fn range(self, offset: Option<i64>) -> TimeRange {
        let last = i64::from(self.span.max(1)) - 1;
        let (ahead, behind) = match offset {
            _ if self.utc => (0, 0),
            Some(offset) => (offset, offset),
            None => (MOST_AHEAD, MOST_BEHIND),
        };
        TimeRange {
            lo: self.seconds.saturating_sub(ahead),
            hi: self.seconds.saturating_add(last).saturating_sub(behind),
        }
    }
}

const MINUTE: i64 = 60;
const DAY: i64 = 24 * 60 * 60;
/// Time zones reach from UTC+14 to UTC-12.
const MOST_AHEAD: i64 = 14 * 60 * 60;
const MOST_BEHIND: i64 = -12 * 60 * 60;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listed_time_covers_all_possible_times() {
        const HOUR: i64 = 3600;
        use Precision::{Day, Minute, Second, Unsure};
        for (span, utc, offset, lo, hi, precision) in [
            (1, true, None, 0, 0, Second),
            (60, true, Some(HOUR), 0, 59, Minute),
            (60, false, Some(HOUR), -HOUR, 59 - HOUR, Minute),
            (60, false, None, -14 * HOUR, 59 + 12 * HOUR, Unsure),
            (86_400, true, None, 0, 86_399, Day),
        ] {
            let seconds = 1_000_000;
            let range = ListedTime { seconds, span, utc }.range(offset);
            assert_eq!((range.lo - seconds, range.hi - seconds), (lo, hi));
            assert_eq!(range.precision(), precision);
        }
    }
}
