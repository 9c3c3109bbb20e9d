//! What has to hold for what is kept as bytes: the lives of watched URLs.

use super::{Broken, CheckReport};
use crate::Lane;
use crate::sql::{Connection, Optional as _, params};
use crate::tables::codec;
use crate::tables::failure::Failure;
use crate::tables::watch::{PRIVATE, Watched};
use verdict::life::State;

const READABLE: &str = "what is known about each watched URL can be read";
const LANE: &str = "each URL is due in the lane of its state";
const DUE: &str = "each URL has the due row that it says it has";
const STATE: &str = "each URL is in the state in which its last change ended";
const TROUBLE: &str = "each URL in a set that is not due in the lane of good URLs is listed by its state, and no other URL is";
const COUNTS: &str =
    "there are as many URLs in each state, and at private addresses, as are counted";

pub(super) fn check(db: &Connection, report: &mut CheckReport) -> Result<(), Failure> {
    let mut broken: [Broken; 6] = Default::default();
    let [readable, lane, due, state, trouble, counts] = &mut broken;
    let (mut states, mut private) = ([0; State::ALL.len()], 0);
    let urls = "SELECT u.url, u.sets, u.host, u.watched, e.to_state, u.trouble FROM url u \
         LEFT JOIN event e ON e.cursor = u.event WHERE u.watched IS NOT NULL";
    let mut urls = db.prepare_cached(urls)?;
    let mut has_row = db.prepare_cached(
        "SELECT 1 FROM due WHERE host = ?1 AND lane = ?2 AND due_at = ?3 AND url = ?4",
    )?;
    let mut rows = urls.stream([])?;
    while let Some(row) = rows.next()? {
        let (url, sets, host): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let bytes = codec::blob(row, 3)?.unwrap_or_default();
        let Ok(watched) = Watched::from_bytes(bytes) else {
            readable.add(|| format!("URL {url}"));
            continue;
        };
        let is_in = watched.life.state();
        let ended = codec::text(row, 4)?;
        if ended.is_some_and(|ended| ended != is_in.name()) {
            state.add(|| format!("URL {url} is {}", is_in.name()));
        }
        let is_routine = matches!(watched.due, Some((Lane::Routine, _)));
        let listed = (sets > 0 && !is_routine).then_some(is_in.code());
        if row.get::<Option<u8>>(5)? != listed {
            trouble.add(|| format!("URL {url} is {}", is_in.name()));
        }
        if sets == 0 {
            continue;
        }
        states[usize::from(is_in.code())] += 1;
        private += i64::from(watched.is_private());
        let Some((in_lane, at)) = watched.due else {
            continue;
        };
        if ![false, true]
            .map(|held| Lane::of(is_in, held))
            .contains(&in_lane)
        {
            lane.add(|| format!("URL {url} is {} and in lane {in_lane:?}", is_in.name()));
        }
        let row = params![host, in_lane.code(), at.as_millisecond(), url];
        if !has_row.exists(row)? {
            due.add(|| format!("URL {url} at {at}"));
        }
    }
    let counted = |kind: i64, code: i64| -> Result<i64, Failure> {
        let count = "SELECT count FROM watch_count WHERE kind = ?1 AND code = ?2";
        let count = db.query_row(count, [kind, code], |row| row.get(0));
        Ok(count.optional()?.unwrap_or(0))
    };
    for (known, count) in State::ALL.into_iter().zip(states) {
        if counted(0, known.code().into())? != count {
            counts.add(|| format!("{count} are {}", known.name()));
        }
    }
    if counted(2, PRIVATE as i64)? != private {
        counts.add(|| format!("{private} are at private addresses"));
    }
    for (invariant, broken) in [READABLE, LANE, DUE, STATE, TROUBLE, COUNTS]
        .into_iter()
        .zip(broken)
    {
        report.add(invariant, broken);
    }
    Ok(())
}
