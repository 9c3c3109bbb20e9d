//! The points in time at which an expression fires in a time zone, also when the clocks change.
//!
//! The rules are those of Vixie cron. When the clocks go forward, a time of the day that is left out fires right after
//! the change; when they go back, a time of the day that comes twice fires the first time. What runs each hour or each
//! minute follows elapsed time: it neither fires for what is left out, nor omits what comes twice.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};

use super::expression::Expression;

/// An expression in a time zone.
#[derive(Clone, Debug)]
pub(super) struct Timeline {
    pub(super) expression: Expression,
    pub(super) zone: TimeZone,
}

/// A change of the clocks.
struct Change {
    at: Timestamp,
    before: Offset,
    after: Offset,
}

impl Timeline {
    /// The first firing after this time; `None` at the end of the calendar.
    pub(super) fn next(&self, after: Timestamp) -> Option<Timestamp> {
        let after = whole_seconds(after)?;
        match self.expression.is_interval() {
            true => self.next_of_interval(after),
            false => self.next_of_time_of_day(after),
        }
    }

    fn next_of_interval(&self, after: Timestamp) -> Option<Timestamp> {
        let mut from = second_after(after)?;
        loop {
            let offset = self.zone.to_offset(from);
            let end = self.next_change(from).map(|change| change.at);
            let civil = self.expression.next(offset.to_datetime(from))?;
            // A time that cannot be expressed is after the change, too.
            let at = offset.to_timestamp(civil).ok();
            match (at, end) {
                (Some(at), Some(end)) if at < end => return Some(at),
                (Some(at), None) => return Some(at),
                (None, None) => return None,
                (_, Some(end)) => from = end,
            }
        }
    }

    fn next_of_time_of_day(&self, after: Timestamp) -> Option<Timestamp> {
        let mut from = civil_second_after(self.zone.to_datetime(after))?;
        loop {
            let civil = self.expression.next(from)?;
            let at = self.time_of(civil)?;
            if at > after {
                return Some(at);
            }
            from = civil_second_after(civil)?;
        }
    }

    /// When a time of the day comes: the first time if it comes twice, and after the change if it is left out.
    fn time_of(&self, civil: DateTime) -> Option<Timestamp> {
        match self.zone.to_ambiguous_timestamp(civil).offset() {
            AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(civil).ok(),
            AmbiguousOffset::Fold { before, .. } => before.to_timestamp(civil).ok(),
            AmbiguousOffset::Gap { before, .. } => {
                let beyond = second_after(before.to_timestamp(civil).ok()?)?;
                let change = self.zone.preceding(beyond).next();
                change.map(|change| change.timestamp())
            }
        }
    }

    /// The number of firings after `after`, up to and including `until`. The work grows with the days between the
    /// times, and not with the firings.
    pub(super) fn count(&self, after: Timestamp, until: Timestamp) -> u64 {
        let (Some(after), Some(until)) = (whole_seconds(after), whole_seconds(until)) else {
            return 0;
        };
        if until <= after {
            return 0;
        }
        match self.expression.is_interval() {
            true => self.count_of_interval(after, until),
            false => self.count_of_times_of_day(after, until),
        }
        .unwrap_or(0)
    }

    fn count_of_interval(&self, after: Timestamp, until: Timestamp) -> Option<u64> {
        let (mut from, end) = (second_after(after)?, second_after(until)?);
        let mut count = 0;
        while from < end {
            let offset = self.zone.to_offset(from);
            let to = self
                .next_change(from)
                .map_or(end, |change| change.at.min(end));
            let (a, b) = (offset.to_datetime(from), offset.to_datetime(to));
            count += self.expression.count(a, b);
            from = to;
        }
        Some(count)
    }

    fn count_of_times_of_day(&self, after: Timestamp, until: Timestamp) -> Option<u64> {
        let from = civil_second_after(self.last_civil(after))?;
        let to = civil_second_after(self.last_civil(until))?;
        let mut count = self.expression.count(from, to);
        let mut at = after;
        while let Some(change) = self.next_change(at).filter(|change| change.at <= until) {
            // All that is left out fires together, also with what fires at the end of the gap.
            let (first, end) = (
                change.before.to_datetime(change.at),
                change.after.to_datetime(change.at),
            );
            let left_out = self.expression.count(first, end);
            if left_out > 0 {
                count -= left_out - 1 + u64::from(self.expression.matches(end));
            }
            at = change.at;
        }
        Some(count)
    }

    /// The last time of the day whose firing is not after this time.
    fn last_civil(&self, at: Timestamp) -> DateTime {
        let civil = self.zone.to_datetime(at);
        let Some(beyond) = second_after(at) else {
            return civil;
        };
        let Some(change) = self.zone.preceding(beyond).next() else {
            return civil;
        };
        let change = change.timestamp();
        let Some(before) = second_before(change) else {
            return civil;
        };
        // While the repeated hour runs the second time, all of it has fired.
        civil.max(self.zone.to_datetime(before))
    }

    fn next_change(&self, after: Timestamp) -> Option<Change> {
        let mut at = after;
        loop {
            let change = self.zone.following(at).next()?;
            at = change.timestamp();
            let before = self.zone.to_offset(second_before(at)?);
            // Zones also change their names.
            if before != change.offset() {
                return Some(Change {
                    at,
                    before,
                    after: change.offset(),
                });
            }
        }
    }
}

/// The time without its fraction of a second.
fn whole_seconds(at: Timestamp) -> Option<Timestamp> {
    let before_epoch = i64::from(at.subsec_nanosecond() < 0);
    Timestamp::from_second(at.as_second() - before_epoch).ok()
}

fn second_after(at: Timestamp) -> Option<Timestamp> {
    Timestamp::from_second(at.as_second() + 1).ok()
}

fn second_before(at: Timestamp) -> Option<Timestamp> {
    Timestamp::from_second(at.as_second() - 1).ok()
}

fn civil_second_after(at: DateTime) -> Option<DateTime> {
    at.checked_add(jiff::SignedDuration::from_secs(1)).ok()
}
