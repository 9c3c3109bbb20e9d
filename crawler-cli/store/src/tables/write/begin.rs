//! Begins and ends runs.

use jiff::Timestamp;

use crate::Run;
use crate::sql::{Connection, Optional as _, params};
use crate::tables::codec;
use crate::tables::failure::Failure;
use crate::tables::memory::Memory;

pub(crate) fn begin_run(
    db: &Connection,
    memory: &mut Memory,
    identity: &str,
    now: Timestamp,
) -> Result<Run, Failure> {
    memory.sources.begin_run();
    if let Some((run, first_link)) = interrupted(db, identity)? {
        memory.first_link = first_link;
        forget_sources(db)?;
        let mut waiting = db.prepare_cached("SELECT DISTINCT host FROM queue")?;
        let waiting: Vec<i64> = waiting.query_all([], |row| row.get(0))?;
        memory.hosts.begin_run(waiting);
        return Ok(run);
    }
    memory.hosts.begin_run([]);
    forget_run(db)?;
    let began = now.as_millisecond();
    memory.first_link = memory.next.link;
    let insert = "INSERT INTO run (identity, began, first_link) VALUES (?1, ?2, ?3) RETURNING run";
    let row = params![identity, began, memory.first_link];
    Ok(Run {
        number: db.query_row(insert, row, |row| row.get(0))?,
        began: codec::time(began)?,
        is_resumed: false,
    })
}

pub(crate) fn end_run(db: &Connection, run: i64, now: Timestamp) -> Result<(), Failure> {
    db.prepare_cached("UPDATE run SET ended = ?2 WHERE run = ?1")?
        .execute([run, now.as_millisecond()])?;
    Ok(())
}

/// The last run and its first link, if the run has not ended and has this identity.
fn interrupted(db: &Connection, identity: &str) -> Result<Option<(Run, i64)>, Failure> {
    let last = "SELECT run, began, first_link FROM run \
         WHERE run = (SELECT max(run) FROM run) AND ended IS NULL AND identity = ?1";
    let last: Option<(i64, i64, i64)> = db
        .query_row(last, [identity], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })
        .optional()?;
    let run = |(number, began, first_link)| {
        let run = Run {
            number,
            began: codec::time(began)?,
            is_resumed: true,
        };
        Ok((run, first_link))
    };
    last.map(run).transpose()
}

/// Forgets the links and the queues of the last run.
fn forget_run(db: &Connection) -> Result<(), Failure> {
    // Without a condition, SQLite drops all pages of the table at once.
    db.execute_batch(
        "DELETE FROM link; DELETE FROM place; DELETE FROM source; DELETE FROM queue;",
    )?;
    Ok(())
}

/// Forgets what other sources than pages contributed to the run that was interrupted.
fn forget_sources(db: &Connection) -> Result<(), Failure> {
    let has_pages: bool = db.query_row(
        "SELECT EXISTS (SELECT 1 FROM source WHERE is_page = 1)",
        [],
        |row| row.get(0),
    )?;
    if !has_pages {
        let tables = "DELETE FROM link; DELETE FROM place; DELETE FROM source; DELETE FROM queue;";
        return Ok(db.execute_batch(tables)?);
    }
    // A link whose first place is forgotten gets the first one that is left; one without places is forgotten. The
    // queues keep what a link leads to.
    db.execute_batch(
        "DELETE FROM place WHERE source IN (SELECT source FROM source WHERE is_page = 0);
        UPDATE link SET (source, line, col, written, text) = (p.source, p.line, p.col, p.written, p.text)
            FROM place p WHERE p.link = link.link
            AND p.place = (SELECT min(place) FROM place WHERE place.link = link.link)
            AND link.source IN (SELECT source FROM source WHERE is_page = 0);
        DELETE FROM place WHERE EXISTS (SELECT 1 FROM link WHERE link.link = place.link
            AND link.source = place.source AND link.line IS NOT DISTINCT FROM place.line AND link.col IS NOT DISTINCT FROM place.col
            AND link.text = place.text);
        DELETE FROM link WHERE source IN (SELECT source FROM source WHERE is_page = 0);
        DELETE FROM source WHERE is_page = 0;
        DELETE FROM queue WHERE url NOT IN (SELECT url FROM link);",
    )?;
    Ok(())
}
