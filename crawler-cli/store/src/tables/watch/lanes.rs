//! Reads due rows, and stores what became of them.

use std::collections::HashSet;

use jiff::Timestamp;

use super::bytes::Watched;
use super::rows::{Outcome, Rows};
use crate::sql::{Connection, Optional as _, Row};
use crate::tables::codec;
use crate::tables::failure::Failure;
use crate::tables::jobs::letters;
use crate::tables::memory::Memory;
use crate::tables::read::{HOST_COLUMNS, host_of};
use crate::{
    Amendment, Completion, DueId, DueUrl, HostId, Judgement, Lane, Lanes, Ready, UrlId, aligned,
};
use verdict::life::State;

/// The column of `host` that says when the first row of these lanes is due.
fn column(lanes: Lanes) -> &'static str {
    match lanes {
        Lanes::Schedule => "next_due",
        Lanes::Doubt => "next_doubt",
    }
}

pub(super) fn ready(
    db: &Connection,
    lanes: Lanes,
    now: Timestamp,
    except: &HashSet<HostId>,
    limit: usize,
) -> Result<Vec<Ready>, Failure> {
    let next = column(lanes);
    let query = format!(
        "SELECT {HOST_COLUMNS}, {next}, urls FROM host WHERE {next} <= ?1 ORDER BY {next}, host"
    );
    let mut query = db.prepare_cached(&query)?;
    let mut rows = query.stream([now.as_millisecond()])?;
    let mut ready = Vec::new();
    while ready.len() < limit
        && let Some(row) = rows.next()?
    {
        if except.contains(&HostId(row.get(0)?)) {
            continue;
        }
        ready.push(Ready {
            host: host_of(row)?,
            next: codec::time(row.get(8)?)?,
            urls: codec::count(row.get(9)?),
        });
    }
    Ok(ready)
}

pub(super) fn next_due(db: &Connection, lanes: Lanes) -> Result<Option<Timestamp>, Failure> {
    let next = column(lanes);
    let query = format!("SELECT {next} FROM host WHERE {next} IS NOT NULL ORDER BY {next} LIMIT 1");
    let next: Option<i64> = db
        .prepare_cached(&query)?
        .query_row([], |row| row.get(0))
        .optional()?;
    codec::optional_time(next)
}

pub(super) fn overdue(
    db: &Connection,
    lanes: Lanes,
    before: Timestamp,
    limit: u64,
) -> Result<u64, Failure> {
    let (next, before) = (column(lanes), before.as_millisecond());
    let hosts = format!("SELECT host FROM host WHERE {next} < ?1 ORDER BY {next}");
    let mut hosts = db.prepare_cached(&hosts)?;
    let mut count = db.prepare_cached(
        "SELECT count(*) FROM (SELECT 1 FROM due WHERE host = ?1 AND lane = ?2 AND due_at < ?3 LIMIT ?4) AS few",
    )?;
    let mut hosts = hosts.stream([before])?;
    let mut overdue = 0;
    while overdue < limit
        && let Some(host) = hosts.next()?
    {
        let host: i64 = host.get(0)?;
        for lane in lanes.lanes() {
            let left = i64::try_from(limit - overdue).unwrap_or(i64::MAX);
            let row = [host, i64::from(lane.code()), before, left];
            overdue += codec::count(count.query_row(row, |row| row.get(0))?);
        }
    }
    Ok(overdue)
}

/// The columns that [`due_url`] reads: of due rows `d` and their URLs `u`.
const DUE: &str = "SELECT d.due_at, d.url, coalesce(u.spelling, u.text), u.watched \
     FROM due d CROSS JOIN url u ON u.url = d.url WHERE d.host = ?1 AND d.lane = ?2";

pub(super) fn due(
    db: &Connection,
    host: HostId,
    lane: Lane,
    after: Option<(Timestamp, UrlId)>,
    until: Timestamp,
    limit: usize,
) -> Result<Vec<DueUrl>, Failure> {
    let query = format!(
        "{DUE} AND (d.due_at, d.url) > (?3, ?4) AND d.due_at <= ?5 ORDER BY d.due_at, d.url LIMIT ?6"
    );
    let mut query = db.prepare_cached(&query)?;
    let (after_due, after_url) = match after {
        Some((due, url)) => (due.as_millisecond(), url.0),
        None => (i64::MIN, 0),
    };
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let lane_code = i64::from(lane.code());
    let until = until.as_millisecond();
    let mut rows = query.query([host.0, lane_code, after_due, after_url, until, limit])?;
    let mut urls = Vec::new();
    while let Some(row) = rows.next()? {
        urls.push(due_url(host, lane, row)?);
    }
    Ok(urls)
}

fn due_url(host: HostId, lane: Lane, row: Row<'_>) -> Result<DueUrl, Failure> {
    let watched = Watched::from_bytes(codec::blob(row, 3)?.unwrap_or_default())?;
    Ok(DueUrl {
        id: DueId {
            host,
            lane,
            due: codec::time(row.get(0)?)?,
            url: UrlId(row.get(1)?),
        },
        url: row.get(2)?,
        life: watched.life,
        added: watched.added,
    })
}

pub(super) fn alive_siblings(
    db: &Connection,
    host: HostId,
    except: &HashSet<UrlId>,
    limit: usize,
) -> Result<Vec<DueUrl>, Failure> {
    let query = format!("{DUE} ORDER BY d.due_at DESC, d.url DESC LIMIT ?3");
    let mut query = db.prepare_cached(&query)?;
    let lane = Lane::Routine;
    let looks = limit.saturating_mul(LOOKS).saturating_add(except.len());
    let looks = i64::try_from(looks).unwrap_or(i64::MAX);
    let mut rows = query.query([host.0, i64::from(lane.code()), looks])?;
    let mut urls = Vec::new();
    while urls.len() < limit
        && let Some(row) = rows.next()?
    {
        let url = due_url(host, lane, row)?;
        if url.life.state() == State::Alive && !except.contains(&url.id.url) {
            urls.push(url);
        }
    }
    Ok(urls)
}

/// How many URLs are looked at for each that is wanted.
const LOOKS: usize = 20;

pub(super) fn judge<'a>(
    db: &Connection,
    memory: &mut Memory,
    judgements: &'a [Judgement],
) -> Result<Completion, Failure> {
    let given = judgements.len();
    let owned = memory.owned(db, judgements.iter().map(|judgement| judgement.id.host))?;
    let owned = |judgement: &&Judgement| owned.has(judgement.id.host);
    let judgements: Vec<&'a Judgement> = judgements.iter().filter(owned).collect();
    let outcome = |judgement: &&'a Judgement| {
        let id = judgement.id;
        let asked = judgement.life.last_at().unwrap_or(id.due);
        let align = |(lane, due)| (lane, aligned(id.host, asked, due));
        Outcome {
            id,
            life: &judgement.life,
            answer: judgement.answer.as_ref(),
            changes: &judgement.changes,
            next: judgement.next.map(align),
        }
    };
    let outcomes: Vec<Outcome<'_>> = judgements.iter().map(outcome).collect();
    let stored = Rows::prepare(db)?.finish_all(db, memory, &outcomes)?;
    for (judgement, _) in judgements
        .iter()
        .zip(&stored)
        .filter(|(_, is_stored)| **is_stored)
    {
        if let Some(letter) = &judgement.dead_letter {
            let url = letters::Buried::Url(judgement.id.url.0);
            letters::store(db, &mut memory.jobs, &url, letter, None)?;
        }
    }
    Ok(completion(given, &stored))
}

pub(super) fn amend(
    db: &Connection,
    memory: &mut Memory,
    amendments: &[Amendment],
) -> Result<Completion, Failure> {
    let owned = memory.owned(db, amendments.iter().map(|amendment| amendment.id.host))?;
    let mine = amendments
        .iter()
        .filter(|amendment| owned.has(amendment.id.host));
    let outcomes = mine.map(|amendment| Outcome {
        id: amendment.id,
        life: &amendment.life,
        answer: None,
        changes: &amendment.changes,
        next: Some(amendment.next),
    });
    let outcomes: Vec<Outcome<'_>> = outcomes.collect();
    let stored = Rows::prepare(db)?.finish_all(db, memory, &outcomes)?;
    Ok(completion(amendments.len(), &stored))
}

/// What became of so many.
fn completion(given: usize, stored: &[bool]) -> Completion {
    let stored = stored.iter().filter(|is_stored| **is_stored).count();
    Completion {
        stored: stored as u64,
        stale: (given - stored) as u64,
    }
}
