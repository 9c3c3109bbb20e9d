//! How far the receivers of webhooks have been told.

use crate::store::sql::{self, Connection, Optional as _, Row, params};
use crate::store::tables::codec;
use crate::store::tables::failure::Failure;
use crate::store::{Cursor, HookState, NoticeId, Turn};

const COLUMNS: &str =
    "SELECT receiver, event, damped, damped_at, notice, turn, stopped_at, why, address FROM hook";

/// A row of `hook`, but for its times.
type Times = (Option<i64>, Option<(i64, String)>);

fn read(row: Row<'_>) -> sql::Result<(HookState, Times)> {
    let state = HookState {
        receiver: row.get(0)?,
        address: row.get(8)?,
        events: Cursor(row.get(1)?),
        damped: Cursor(row.get(2)?),
        damped_at: None,
        notices: NoticeId(row.get(4)?),
        letters: Turn(row.get(5)?),
        stopped: None,
    };
    let stopped: (Option<i64>, Option<String>) = (row.get(6)?, row.get(7)?);
    let stopped = stopped.0.map(|at| (at, stopped.1.unwrap_or_default()));
    Ok((state, (row.get(3)?, stopped)))
}

fn with_times((state, (damped_at, stopped)): (HookState, Times)) -> Result<HookState, Failure> {
    let stopped = stopped.map(|(at, why)| Ok::<_, Failure>((codec::time(at)?, why)));
    Ok(HookState {
        damped_at: codec::optional_time(damped_at)?,
        stopped: stopped.transpose()?,
        ..state
    })
}

pub(super) fn all(db: &Connection) -> Result<Vec<HookState>, Failure> {
    let mut query = db.prepare_cached(&format!("{COLUMNS} ORDER BY receiver"))?;
    let rows = query.query_all([], read)?;
    rows.into_iter().map(with_times).collect()
}

pub(super) fn one(db: &Connection, receiver: &str) -> Result<Option<HookState>, Failure> {
    let mut query = db.prepare_cached(&format!("{COLUMNS} WHERE receiver = ?1"))?;
    let row = query.query_row([receiver], read).optional()?;
    row.map(with_times).transpose()
}

pub(super) fn new(db: &Connection, event: Cursor, receiver: &str) -> Result<HookState, Failure> {
    let last = |query: &str| -> Result<i64, Failure> {
        Ok(db.prepare_cached(query)?.query_row([], |row| row.get(0))?)
    };
    Ok(HookState {
        receiver: receiver.to_owned(),
        address: String::new(),
        events: event,
        damped: event,
        damped_at: None,
        notices: NoticeId(last("SELECT coalesce(max(notice), 0) FROM notice")?),
        letters: Turn(last(
            "SELECT coalesce(max(turn), 0) FROM dead_letter WHERE turn > 0",
        )?),
        stopped: None,
    })
}

pub(super) fn save(db: &Connection, state: &HookState) -> Result<(), Failure> {
    let values = [
        "event",
        "damped",
        "damped_at",
        "notice",
        "turn",
        "stopped_at",
        "why",
        "address",
    ];
    let replace = sql::upsert("hook", &["receiver"], &values);
    let (stopped_at, why) = state.stopped.as_ref().map(|(at, why)| (at, why)).unzip();
    db.prepare_cached(&replace)?.execute(params![
        state.receiver,
        state.events.0,
        state.damped.0,
        state.damped_at.map(|at| at.as_millisecond()),
        state.notices.0,
        state.letters.0,
        stopped_at.map(|at| at.as_millisecond()),
        why,
        state.address,
    ])?;
    Ok(())
}

pub(super) fn forget(db: &Connection, receiver: &str) -> Result<(), Failure> {
    for delete in [
        "DELETE FROM hook WHERE receiver = ?1",
        "DELETE FROM outbox WHERE receiver = ?1",
    ] {
        db.prepare_cached(delete)?.execute([receiver])?;
    }
    Ok(())
}

pub(in crate::store) const WAITING: &str =
    "SELECT count(*) FROM (SELECT 1 FROM outbox WHERE receiver = ?1 LIMIT ?2) AS few";

pub(super) fn waiting(db: &Connection, receiver: &str, limit: usize) -> Result<u64, Failure> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let count = db
        .prepare_cached(WAITING)?
        .query_row(params![receiver, limit], |row| row.get(0))?;
    Ok(codec::count(count))
}

pub(super) fn store_id(db: &Connection) -> Result<String, Failure> {
    let mut query = db.prepare_cached("SELECT id FROM store")?;
    Ok(query.query_row([], |row| row.get(0))?)
}
