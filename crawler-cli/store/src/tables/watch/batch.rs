//! Outcomes of many URLs at once, in few statements: for a database that is far away.

use std::collections::{HashMap, HashSet};

use super::bytes::{Watched, beside};
use super::rows::{Outcome, Rows, UrlRow};
use crate::sql::{Connection, array, params};
use crate::tables::codec;
use crate::tables::failure::Failure;
use crate::tables::memory::Memory;
use crate::{DueId, Lane};

/// Stores outcomes whose due rows are there. Returns for each whether it was.
pub(super) fn finish(
    rows: &mut Rows<'_>,
    db: &Connection,
    memory: &mut Memory,
    outcomes: &[Outcome<'_>],
) -> Result<Vec<bool>, Failure> {
    let mut removed = remove(db, outcomes)?;
    // One that is told twice is stored once.
    let stored: Vec<bool> = outcomes
        .iter()
        .map(|outcome| removed.remove(&outcome.id))
        .collect();
    let there = || {
        outcomes
            .iter()
            .zip(&stored)
            .filter(|(_, is_stored)| **is_stored)
    };
    let mut known = read(db, there().map(|(outcome, _)| outcome.id.url.0))?;
    let mut written = Vec::new();
    for (outcome, _) in there() {
        let DueId {
            host, lane, url, ..
        } = outcome.id;
        memory.tally.due(host.0, lane, -1);
        let mut row = known.remove(&url.0).ok_or_else(|| missing(url.0))?;
        rows.apply(memory, &mut row, outcome)?;
        if let Some((lane, _)) = outcome.next {
            memory.tally.due(host.0, lane, 1);
        }
        written.push((row, outcome.next));
    }
    insert(db, &written)?;
    write(db, &written)?;
    Ok(stored)
}

pub(super) fn missing(url: i64) -> Failure {
    Failure::Damaged(format!("URL {url} is due, but not watched"))
}

type Written = (UrlRow, Option<(Lane, jiff::Timestamp)>);

/// Removes exactly these due rows. Returns those that were there.
fn remove(db: &Connection, outcomes: &[Outcome<'_>]) -> Result<HashSet<DueId>, Failure> {
    let column = |number: fn(&DueId) -> i64| {
        array::numbers(
            outcomes
                .iter()
                .map(move |outcome| Some(number(&outcome.id))),
        )
    };
    let delete = "DELETE FROM due d USING unnest(CAST(CAST(?1 AS TEXT) AS BIGINT[]), CAST(CAST(?2 AS TEXT) AS BIGINT[]), \
         CAST(CAST(?3 AS TEXT) AS BIGINT[]), CAST(CAST(?4 AS TEXT) AS BIGINT[])) AS r(host, lane, due_at, url) \
         WHERE d.host = r.host AND d.lane = r.lane AND d.due_at = r.due_at AND d.url = r.url \
         RETURNING d.host, d.lane, d.due_at, d.url";
    let row = params![
        column(|id| id.host.0),
        column(|id| i64::from(id.lane.code())),
        column(|id| id.due.as_millisecond()),
        column(|id| id.url.0),
    ];
    let gone: Vec<[i64; 4]> = db.prepare_cached(delete)?.query_all(row, |row| {
        Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?])
    })?;
    let gone: HashSet<[i64; 4]> = gone.into_iter().collect();
    let ids = outcomes.iter().map(|outcome| outcome.id);
    let was_there = |id: &DueId| {
        let lane = i64::from(id.lane.code());
        gone.contains(&[id.host.0, lane, id.due.as_millisecond(), id.url.0])
    };
    Ok(ids.filter(was_there).collect())
}

/// Reads rows, and keeps them from being changed by others until the transaction ends.
fn read(db: &Connection, urls: impl Iterator<Item = i64>) -> Result<HashMap<i64, UrlRow>, Failure> {
    let query = "SELECT url, host, sets, event, watched, trouble FROM url \
         WHERE url = ANY (CAST(CAST(?1 AS TEXT) AS BIGINT[])) AND watched IS NOT NULL ORDER BY url FOR NO KEY UPDATE";
    let urls = array::numbers(urls.map(Some));
    let mut query = db.prepare_cached(query)?;
    let mut rows = query.query(params![urls])?;
    let mut known = HashMap::new();
    while let Some(row) = rows.next()? {
        let url = row.get(0)?;
        let watched = codec::blob(row, 4)?.unwrap_or_default();
        let row = UrlRow {
            url,
            host: row.get(1)?,
            sets: row.get(2)?,
            event: row.get(3)?,
            watched: Watched::from_bytes(watched)?,
            trouble: row.get(5)?,
        };
        known.insert(url, row);
    }
    Ok(known)
}

fn insert(db: &Connection, written: &[Written]) -> Result<(), Failure> {
    let next = || {
        written
            .iter()
            .filter_map(|(row, next)| Some((row, (*next)?)))
    };
    let insert = "INSERT INTO due (host, lane, due_at, url) SELECT * FROM unnest(CAST(CAST(?1 AS TEXT) AS BIGINT[]), \
         CAST(CAST(?2 AS TEXT) AS BIGINT[]), CAST(CAST(?3 AS TEXT) AS BIGINT[]), CAST(CAST(?4 AS TEXT) AS BIGINT[]))";
    db.prepare_cached(insert)?.execute(params![
        array::numbers(next().map(|(row, _)| Some(row.host))),
        array::numbers(next().map(|(_, (lane, _))| Some(i64::from(lane.code())))),
        array::numbers(next().map(|(_, (_, due))| Some(due.as_millisecond()))),
        array::numbers(next().map(|(row, _)| Some(row.url))),
    ])?;
    Ok(())
}

/// Writes what is known. A value that an index has is the same for nearly all, so that no index is written.
fn write(db: &Connection, written: &[Written]) -> Result<(), Failure> {
    let rows = || written.iter().map(|(row, _)| row);
    let update = "UPDATE url u SET event = r.event, watched = r.watched, trouble = r.trouble \
         FROM unnest(CAST(CAST(?1 AS TEXT) AS BIGINT[]), CAST(CAST(?2 AS TEXT) AS BIGINT[]), \
         CAST(CAST(?3 AS TEXT) AS BYTEA[]), CAST(CAST(?4 AS TEXT) AS BIGINT[])) AS r(url, event, watched, trouble) \
         WHERE u.url = r.url";
    let bytes = |row: &UrlRow| row.watched.to_bytes(beside(row.event, row.new_trouble()));
    db.prepare_cached(update)?.execute(params![
        array::numbers(rows().map(|row| Some(row.url))),
        array::numbers(rows().map(|row| Some(row.event))),
        array::blobs(rows().map(bytes)),
        array::numbers(rows().map(|row| row.new_trouble().map(i64::from))),
    ])?;
    Ok(())
}
