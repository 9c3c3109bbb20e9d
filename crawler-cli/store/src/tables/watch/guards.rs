//! Holds, the times in which guards were on, cycles of reconciling, and notices.

use jiff::Timestamp;

use super::pieces::sql_limit;
use crate::sql::{self, Connection, Row, params};
use crate::tables::codec;
use crate::tables::failure::Failure;
use crate::{
    CYCLES, Cycle, CycleCounts, CycleId, Guarded, HoldEnd, HostHold, HostId, NOTICES, Notice,
    NoticeId,
};
use verdict::guard::{Hold, Stops};

fn millis(time: Option<Timestamp>) -> Option<i64> {
    time.map(Timestamp::as_millisecond)
}

const HOLDS: &str = "SELECT d.host, h.root, d.since, d.sampled_at, d.was_sample_good, h.held, d.ending \
     FROM hold d CROSS JOIN host h ON h.host = d.host ORDER BY d.host";

pub(super) fn holds(db: &Connection) -> Result<Vec<HostHold>, Failure> {
    let mut query = db.prepare_cached(HOLDS)?;
    let mut rows = query.query([])?;
    let mut holds = Vec::new();
    while let Some(row) = rows.next()? {
        holds.push(HostHold {
            host: HostId(row.get(0)?),
            root: row.get(1)?,
            hold: Hold {
                since: codec::time(row.get(2)?)?,
                sampled_at: codec::optional_time(row.get(3)?)?,
                was_sample_good: row.get(4)?,
            },
            held: codec::count(row.get(5)?),
            ending: HoldEnd::from_code(row.get(6)?),
        });
    }
    Ok(holds)
}

pub(super) fn save_hold(db: &Connection, hold: &HostHold) -> Result<(), Failure> {
    let values = ["since", "sampled_at", "was_sample_good", "ending"];
    db.prepare_cached(&sql::upsert("hold", &["host"], &values))?
        .execute(params![
            hold.host.0,
            hold.hold.since.as_millisecond(),
            millis(hold.hold.sampled_at),
            hold.hold.was_sample_good,
            hold.ending.map_or(0, HoldEnd::code),
        ])?;
    Ok(())
}

pub(super) fn end_hold(db: &Connection, host: HostId) -> Result<(), Failure> {
    db.prepare_cached("DELETE FROM hold WHERE host = ?1")?
        .execute([host.0])?;
    Ok(())
}

/// The number in the table `stop`. Each worker of a fleet has a network of its own.
fn number(whose: Guarded, worker: i64) -> i64 {
    match whose {
        Guarded::OwnNetwork => -worker,
        Guarded::Host(host) => host.0,
    }
}

pub(super) fn stops(db: &Connection, whose: Guarded, worker: i64) -> Result<Stops, Failure> {
    // A URL that is asked by this worker now may have been another one's, when the network of that one had failed.
    let query = match whose {
        Guarded::Host(_) => "SELECT began, ended FROM stop WHERE host = ?1 ORDER BY place",
        Guarded::OwnNetwork => {
            "SELECT began, ended FROM stop WHERE host = ?1 OR host <= 0 AND ended IS NOT NULL ORDER BY began, place"
        }
    };
    let mut query = db.prepare_cached(query)?;
    let mut rows = query.query([number(whose, worker)])?;
    let (mut times, mut last, mut open) = (Vec::new(), Timestamp::MIN, None);
    while let Some(row) = rows.next()? {
        let began = codec::time(row.get(0)?)?;
        match codec::optional_time(row.get(1)?)? {
            Some(ended) if ended > last => {
                times.push((began, Some(ended)));
                last = ended;
            }
            Some(_) => {}
            None => open = Some((began, None)),
        }
    }
    Ok(times.into_iter().chain(open).collect())
}

pub(super) fn save_stops(
    db: &Connection,
    whose: Guarded,
    worker: i64,
    stops: &Stops,
) -> Result<(), Failure> {
    let host = number(whose, worker);
    db.prepare_cached("DELETE FROM stop WHERE host = ?1")?
        .execute([host])?;
    let insert = "INSERT INTO stop (host, place, began, ended) VALUES (?1, ?2, ?3, ?4)";
    let mut insert = db.prepare_cached(insert)?;
    for (place, (began, ended)) in (0i64..).zip(stops.iter()) {
        insert.execute(params![host, place, began.as_millisecond(), millis(ended)])?;
    }
    Ok(())
}

pub(super) fn begin_cycle(db: &Connection, now: Timestamp) -> Result<CycleId, Failure> {
    let insert = "INSERT INTO cycle (began) VALUES (?1) RETURNING cycle";
    let cycle = db.query_row(insert, [now.as_millisecond()], |row| row.get::<i64>(0))?;
    db.prepare_cached("DELETE FROM cycle WHERE cycle <= ?1")?
        .execute([cycle - CYCLES])?;
    Ok(CycleId(cycle))
}

pub(super) fn end_cycle(
    db: &Connection,
    cycle: CycleId,
    counts: &CycleCounts,
    now: Timestamp,
) -> Result<(), Failure> {
    let update = "UPDATE cycle SET ended = ?2, asked = ?3, alive = ?4, in_doubt = ?5, worse = ?6, void = ?7 \
         WHERE cycle = ?1";
    db.prepare_cached(update)?.execute(params![
        cycle.0,
        now.as_millisecond(),
        codec::number(counts.asked),
        codec::number(counts.alive),
        codec::number(counts.in_doubt),
        codec::number(counts.worse),
        codec::number(counts.void),
    ])?;
    Ok(())
}

pub(super) fn cycles(db: &Connection, limit: usize) -> Result<Vec<Cycle>, Failure> {
    let query = "SELECT cycle, began, ended, asked, alive, in_doubt, worse, void FROM cycle \
         ORDER BY cycle DESC LIMIT ?1";
    let mut query = db.prepare_cached(query)?;
    let mut rows = query.query([sql_limit(limit)])?;
    let mut cycles = Vec::new();
    while let Some(row) = rows.next()? {
        cycles.push(cycle(row)?);
    }
    Ok(cycles)
}

fn cycle(row: Row<'_>) -> Result<Cycle, Failure> {
    let count = |column| row.get(column).map(codec::count);
    Ok(Cycle {
        id: CycleId(row.get(0)?),
        began: codec::time(row.get(1)?)?,
        ended: codec::optional_time(row.get(2)?)?,
        counts: CycleCounts {
            asked: count(3)?,
            alive: count(4)?,
            in_doubt: count(5)?,
            worse: count(6)?,
            void: count(7)?,
        },
    })
}

pub(super) fn note(db: &Connection, notice: &Notice) -> Result<NoticeId, Failure> {
    let insert = "INSERT INTO notice (at, kind, host, who, text) VALUES (?1, ?2, ?3, ?4, ?5) RETURNING notice";
    let row = params![
        notice.at.as_millisecond(),
        notice.kind,
        notice.host.map(|host| host.0),
        notice.who,
        notice.text,
    ];
    let number: i64 = db.query_row(insert, row, |row| row.get(0))?;
    db.prepare_cached("DELETE FROM notice WHERE notice <= ?1")?
        .execute([number - NOTICES])?;
    Ok(NoticeId(number))
}

pub(super) fn notices(
    db: &Connection,
    after: NoticeId,
    limit: usize,
) -> Result<Vec<(NoticeId, Notice)>, Failure> {
    let query = "SELECT notice, at, kind, host, who, text FROM notice WHERE notice > ?1 ORDER BY notice LIMIT ?2";
    read_notices(db, query, after, limit)
}

pub(crate) const NOTICES_BEFORE: &str = "SELECT notice, at, kind, host, who, text FROM notice WHERE notice < ?1 ORDER BY notice DESC LIMIT ?2";

pub(super) fn notices_before(
    db: &Connection,
    before: NoticeId,
    limit: usize,
) -> Result<Vec<(NoticeId, Notice)>, Failure> {
    read_notices(db, NOTICES_BEFORE, before, limit)
}

fn read_notices(
    db: &Connection,
    query: &str,
    from: NoticeId,
    limit: usize,
) -> Result<Vec<(NoticeId, Notice)>, Failure> {
    let mut query = db.prepare_cached(query)?;
    let mut rows = query.query([from.0, sql_limit(limit)])?;
    let mut notices = Vec::new();
    while let Some(row) = rows.next()? {
        let host: Option<i64> = row.get(3)?;
        let notice = Notice {
            at: codec::time(row.get(1)?)?,
            kind: row.get(2)?,
            host: host.map(HostId),
            who: row.get(4)?,
            text: row.get(5)?,
        };
        notices.push((NoticeId(row.get(0)?), notice));
    }
    Ok(notices)
}
