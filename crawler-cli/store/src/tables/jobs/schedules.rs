//! Schedules and their firings.

use jiff::Timestamp;

use crate::sql::{self, Connection, Optional as _, Row, params};
use crate::tables::codec;
use crate::tables::failure::Failure;
use crate::{Firing, ScheduleChange, ScheduleState};

/// How many firings of a schedule are kept.
const FIRINGS: i64 = 64;

const COLUMNS: &str =
    "SELECT name, last_fired, last_success, next, missed, overlapped, paused FROM schedule";

fn state(row: Row<'_>) -> Result<ScheduleState, Failure> {
    Ok(ScheduleState {
        name: row.get(0)?,
        last_fired: codec::optional_time(row.get(1)?)?,
        last_success: codec::optional_time(row.get(2)?)?,
        next: codec::optional_time(row.get(3)?)?,
        missed: codec::count(row.get(4)?),
        overlapped: codec::count(row.get(5)?),
        is_paused: row.get(6)?,
    })
}

pub(super) fn one(db: &Connection, name: &str) -> Result<ScheduleState, Failure> {
    let mut query = db.prepare_cached(&format!("{COLUMNS} WHERE name = ?1"))?;
    let mut rows = query.query([name])?;
    let row = rows.next()?;
    row.map_or_else(
        || {
            Ok(ScheduleState {
                name: name.to_owned(),
                ..ScheduleState::default()
            })
        },
        state,
    )
}

pub(super) fn all(db: &Connection) -> Result<Vec<ScheduleState>, Failure> {
    let mut query = db.prepare_cached(&format!("{COLUMNS} ORDER BY name"))?;
    let mut rows = query.query([])?;
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        all.push(state(row)?);
    }
    Ok(all)
}

/// The number of a schedule, which is made if there is none.
fn number(db: &Connection, name: &str) -> Result<i64, Failure> {
    let find = "SELECT schedule FROM schedule WHERE name = ?1";
    let known = db
        .prepare_cached(find)?
        .query_row([name], |row| row.get(0))
        .optional()?;
    if let Some(number) = known {
        return Ok(number);
    }
    let insert = "INSERT INTO schedule (name) VALUES (?1) RETURNING schedule";
    Ok(db.query_row(insert, [name], |row| row.get(0))?)
}

pub(super) fn fire(
    db: &Connection,
    name: &str,
    scheduled_at: Timestamp,
    now: Timestamp,
) -> Result<bool, Failure> {
    let schedule = number(db, name)?;
    let scheduled_at = scheduled_at.as_millisecond();
    let claim = "UPDATE schedule SET last_fired = ?2 \
         WHERE schedule = ?1 AND (last_fired IS NULL OR last_fired < ?2)";
    if db
        .prepare_cached(claim)?
        .execute([schedule, scheduled_at])?
        == 0
    {
        return Ok(false);
    }
    let insert = sql::upsert("firing", &["schedule", "scheduled_at"], &["fired_at"]);
    db.prepare_cached(&insert)?
        .execute([schedule, scheduled_at, now.as_millisecond()])?;
    let trim = "DELETE FROM firing WHERE schedule = ?1 AND scheduled_at <= \
         (SELECT scheduled_at FROM firing WHERE schedule = ?1 ORDER BY scheduled_at DESC LIMIT 1 OFFSET ?2)";
    db.prepare_cached(trim)?.execute([schedule, FIRINGS])?;
    Ok(true)
}

pub(super) fn update(db: &Connection, name: &str, change: &ScheduleChange) -> Result<(), Failure> {
    let schedule = number(db, name)?;
    let signed = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    let update = "UPDATE schedule SET next = CASE WHEN ?2 THEN ?3 ELSE next END, \
         last_success = coalesce(?4, last_success), missed = missed + ?5, overlapped = overlapped + ?6, \
         paused = coalesce(?7, paused) WHERE schedule = ?1";
    let next = change.next.flatten().map(|next| next.as_millisecond());
    db.prepare_cached(update)?.execute(params![
        schedule,
        change.next.is_some(),
        next,
        change.succeeded.map(|at| at.as_millisecond()),
        signed(change.missed),
        signed(change.overlapped),
        change.paused,
    ])?;
    Ok(())
}

pub(super) fn forget(db: &Connection, name: &str) -> Result<(), Failure> {
    let find = "SELECT schedule FROM schedule WHERE name = ?1";
    let known: Option<i64> = db
        .prepare_cached(find)?
        .query_row([name], |row| row.get(0))
        .optional()?;
    if let Some(schedule) = known {
        db.prepare_cached("DELETE FROM firing WHERE schedule = ?1")?
            .execute([schedule])?;
        db.prepare_cached("DELETE FROM schedule WHERE schedule = ?1")?
            .execute([schedule])?;
    }
    Ok(())
}

pub(super) fn firings(db: &Connection, name: &str, limit: usize) -> Result<Vec<Firing>, Failure> {
    let query = "SELECT f.scheduled_at, f.fired_at FROM schedule s JOIN firing f ON f.schedule = s.schedule \
         WHERE s.name = ?1 ORDER BY f.scheduled_at DESC LIMIT ?2";
    let mut query = db.prepare_cached(query)?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut rows = query.query(params![name, limit])?;
    let mut firings = Vec::new();
    while let Some(row) = rows.next()? {
        firings.push(Firing {
            scheduled_at: codec::time(row.get(0)?)?,
            fired_at: codec::time(row.get(1)?)?,
        });
    }
    Ok(firings)
}
