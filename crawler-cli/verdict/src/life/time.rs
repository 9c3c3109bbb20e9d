//! Arithmetic with points in time that saturates. The store keeps milliseconds, so the records hold no finer times.

use std::time::Duration;

use jiff::Timestamp;

/// The time from one point to a later one; zero if the later one is earlier (a clock was set back).
pub fn between(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or_default()
}

/// A later point in time; the last possible one if there is none so late.
pub fn after(at: Timestamp, by: Duration) -> Timestamp {
    at.checked_add(by).unwrap_or(Timestamp::MAX)
}

/// An earlier point in time; the first possible one if there is none so early.
pub fn before(at: Timestamp, by: Duration) -> Timestamp {
    at.checked_sub(by).unwrap_or(Timestamp::MIN)
}

/// Without fractions of milliseconds, as the store keeps times.
pub fn to_millis(at: Timestamp) -> Timestamp {
    Timestamp::from_millisecond(at.as_millisecond()).unwrap_or(at)
}
