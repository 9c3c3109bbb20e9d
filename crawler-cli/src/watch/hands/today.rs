//! What has changed since midnight, UTC. Each change is read once.

use std::ops::ControlFlow;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use crate::check::life::State;
use crate::store::{Cursor, Store, StoreError};

/// How many changes of each kind there were today.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(in crate::watch) struct Today {
    day: Date,
    /// The last change that was counted.
    cursor: Cursor,
    counts: [[u64; State::ALL.len()]; State::ALL.len()],
    /// Not all changes were counted yet.
    pub(in crate::watch) is_behind: bool,
}

impl Today {
    /// From, to, and how many, without zeros.
    pub(in crate::watch) fn iter(&self) -> impl Iterator<Item = (State, State, u64)> {
        State::ALL.into_iter().flat_map(move |from| {
            State::ALL.into_iter().filter_map(move |to| {
                let count = self.counts[usize::from(from.code())][usize::from(to.code())];
                (count > 0).then_some((from, to, count))
            })
        })
    }

    /// Counts what is new; a part of that, if much is.
    pub(super) fn catch_up(
        &mut self,
        store: &mut dyn Store,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let day = now.to_zoned(TimeZone::UTC).date();
        if day != self.day {
            let midnight = day.to_zoned(TimeZone::UTC).map(|start| start.timestamp());
            let cursor = first_since(store, midnight.unwrap_or(now))?;
            *self = Self {
                day,
                cursor,
                ..Self::default()
            };
        }
        let (mut seen, mut cursor) = (0, self.cursor);
        let counts = &mut self.counts;
        store.events(cursor, &mut |event| {
            counts[usize::from(event.from.code())][usize::from(event.to.code())] += 1;
            (cursor, seen) = (event.cursor, seen + 1);
            match seen < AT_ONCE {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        })?;
        self.cursor = cursor;
        self.is_behind = seen == AT_ONCE;
        Ok(())
    }
}

/// The place before the first change at this time or later, found by halving: changes are in the order of time, but for
/// jumps of the clock.
fn first_since(store: &mut dyn Store, since: Timestamp) -> Result<Cursor, StoreError> {
    let mut is_before = |cursor: i64| {
        let mut first = None;
        store.events(Cursor(cursor), &mut |event| {
            first = Some(event.at);
            ControlFlow::Break(())
        })?;
        Ok::<_, StoreError>(first.is_some_and(|at| at < since))
    };
    let (mut low, mut high) = (0, 1);
    while is_before(high)? {
        (low, high) = (high, high.saturating_mul(2));
    }
    while low < high {
        let middle = low + (high - low) / 2;
        match is_before(middle)? {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    Ok(Cursor(low))
}

/// How many changes are counted at once.
const AT_ONCE: usize = 20_000;
