//! What reads the store.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use jiff::Timestamp;
use url::Url;

use super::codec::{self, ANSWER_COLUMNS, StoredAnswer};
use super::failure::Failure;
use super::memory::Memory;
use super::watch::Finder;
use crate::sql::{Connection, Row, Statement};
use crate::{
    Control, Counts, Cursor, EntryId, Event, Host, HostFacts, HostId, LinkId, Past, Queued, Record,
    Selection, UrlHistory, UrlId,
};
use verdict::{Class, Reference};

pub(super) fn take(
    db: &Connection,
    run: i64,
    host: HostId,
    after: EntryId,
    limit: usize,
) -> Result<Vec<Queued>, Failure> {
    let query = format!(
        "SELECT q.entry, q.url, u.text, u.demand, {ANSWER_COLUMNS} FROM queue q CROSS JOIN url u ON u.url = q.url \
         LEFT JOIN answer a ON a.url = q.url WHERE q.host = ?1 AND q.entry > ?2 ORDER BY q.entry LIMIT ?3"
    );
    let mut query = db.prepare_cached(&query)?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut rows = query.query([host.0, after.0, limit])?;
    let mut queued = Vec::new();
    while let Some(row) = rows.next()? {
        let past = codec::answer(row, 4)?.map(|stored| {
            Box::new(Past {
                in_this_run: stored.run == run,
                answer: stored.answer,
                life: stored.life,
            })
        });
        let text = codec::text(row, 2)?.unwrap_or_default();
        let damaged = |_| Failure::Damaged(format!("URL {text}"));
        queued.push(Queued {
            entry: EntryId(row.get(0)?),
            host,
            id: UrlId(row.get(1)?),
            url: Url::parse(text).map_err(damaged)?,
            demand: codec::demand(row.get(3)?)?,
            past,
        });
    }
    Ok(queued)
}

pub(crate) const HOST_COLUMNS: &str =
    "host, root, no_head_until, head_lies_until, answered_at, control_at, control_status, episodes";

pub(super) fn waiting_hosts(
    db: &Connection,
    visit: &mut dyn FnMut(Host) -> ControlFlow<()>,
) -> Result<(), Failure> {
    let query = format!(
        "SELECT {HOST_COLUMNS} FROM host WHERE host IN (SELECT host FROM queue) ORDER BY host"
    );
    let mut query = db.prepare_cached(&query)?;
    let mut rows = query.stream([])?;
    while let Some(row) = rows.next()? {
        if visit(host_of(row)?).is_break() {
            break;
        }
    }
    Ok(())
}

pub(super) fn host(db: &Connection, number: i64) -> Result<Option<Host>, Failure> {
    let query = format!("SELECT {HOST_COLUMNS} FROM host WHERE host = ?1");
    let mut query = db.prepare_cached(&query)?;
    let mut rows = query.query([number])?;
    let row = rows.next()?;
    row.map(host_of).transpose()
}

pub(crate) fn host_of(row: Row<'_>) -> Result<Host, Failure> {
    let control = match codec::optional_time(row.get(5)?)? {
        Some(at) => Some(Control {
            at,
            status: row.get(6)?,
        }),
        None => None,
    };
    Ok(Host {
        id: HostId(row.get(0)?),
        root: row.get(1)?,
        facts: HostFacts {
            no_head_until: codec::optional_time(row.get(2)?)?,
            head_lies_until: codec::optional_time(row.get(3)?)?,
            answered_at: codec::optional_time(row.get(4)?)?,
            control,
            episodes: codec::episodes(codec::text(row, 7)?)?,
        },
    })
}

/// The columns that [`Records::record`] reads.
fn record_query(condition: &str) -> String {
    let links = "link l CROSS JOIN url u ON u.url = l.url";
    record_query_from(links, &format!("{condition} ORDER BY l.link"))
}

/// `links`: a join of links `l` and their URLs `u`.
fn record_query_from(links: &str, condition: &str) -> String {
    format!(
        "SELECT l.link, l.url, u.host, coalesce(l.spelling, u.text), l.source, l.line, l.col, l.written, l.text, {ANSWER_COLUMNS} \
         FROM {links} LEFT JOIN answer a ON a.url = l.url AND a.run = ?1 WHERE {condition}"
    )
}

pub(super) fn records(
    db: &Connection,
    run: i64,
    after: LinkId,
    selection: Selection,
    visit: &mut dyn FnMut(Record) -> ControlFlow<()>,
) -> Result<(), Failure> {
    let condition = match selection {
        Selection::All => "l.link > ?2",
        Selection::Judged => "l.link > ?2 AND a.url IS NOT NULL",
        Selection::Unjudged => "l.link > ?2 AND a.url IS NULL",
    };
    let mut query = db.prepare_cached(&record_query(condition))?;
    let mut records = Records::prepare(db)?;
    let mut rows = query.stream([run, after.0])?;
    while let Some(row) = rows.next()? {
        if visit(records.record(row)?).is_break() {
            break;
        }
    }
    Ok(())
}

pub(super) fn records_of(
    db: &Connection,
    run: i64,
    urls: &[UrlId],
    visit: &mut dyn FnMut(Record) -> ControlFlow<()>,
) -> Result<(), Failure> {
    let links = "url u CROSS JOIN link l ON l.link = u.link AND l.url = u.url";
    let mut first = db.prepare_cached(&record_query_from(links, "u.url = ?2"))?;
    let any_extra: bool = db
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM link WHERE extra = 1)")?
        .query_row([], |row| row.get(0))?;
    let extra = any_extra.then(|| db.prepare_cached(&record_query("l.extra = 1 AND l.url = ?2")));
    let mut extra = extra.transpose()?;
    let mut records = Records::prepare(db)?;
    for url in urls {
        for query in [Some(&mut first), extra.as_mut()].into_iter().flatten() {
            let mut rows = query.query([run, url.0])?;
            while let Some(row) = rows.next()? {
                if visit(records.record(row)?).is_break() {
                    return Ok(());
                }
            }
        }
    }
    Ok(())
}

pub(super) fn record(db: &Connection, run: i64, link: LinkId) -> Result<Option<Record>, Failure> {
    let mut query = db.prepare_cached(&record_query("l.link = ?2"))?;
    let mut rows = query.query([run, link.0])?;
    match rows.next()? {
        Some(row) => Records::prepare(db)?.record(row).map(Some),
        None => Ok(None),
    }
}

/// Reads records.
struct Records<'c> {
    /// Further places, if there are any.
    places: Option<Statement<'c>>,
    names: Names<'c>,
}

impl<'c> Records<'c> {
    fn prepare(db: &'c Connection) -> Result<Self, Failure> {
        let any: bool = db
            .prepare_cached("SELECT EXISTS (SELECT 1 FROM place)")?
            .query_row([], |row| row.get(0))?;
        let places =
            "SELECT source, line, col, written, text FROM place WHERE link = ?1 ORDER BY place";
        Ok(Self {
            places: any.then(|| db.prepare_cached(places)).transpose()?,
            names: Names::prepare(db)?,
        })
    }

    fn record(&mut self, row: Row<'_>) -> Result<Record, Failure> {
        let (link, url): (i64, i64) = (row.get(0)?, row.get(1)?);
        let spelling: String = row.get(3)?;
        let stored = codec::answer(row, 9)?;
        let (answer, life, is_reused) = match stored {
            Some(StoredAnswer {
                answer,
                life,
                is_reused,
                ..
            }) => (Some(answer), life, is_reused),
            None => (None, None, false),
        };
        let host: Option<i64> = row.get(2)?;
        Ok(Record {
            link: LinkId(link),
            id: UrlId(url),
            host: host.map(HostId),
            spelling,
            answer,
            life,
            is_reused,
            references: self.references(link, row)?,
        })
    }

    fn references(&mut self, link: i64, row: Row<'_>) -> Result<Vec<Reference>, Failure> {
        let mut references = vec![self.names.reference(row, 4)?];
        if let Some(places) = &mut self.places {
            let mut rows = places.query([link])?;
            while let Some(row) = rows.next()? {
                references.push(self.names.reference(row, 0)?);
            }
        }
        Ok(references)
    }
}

/// The names of sources, those that were read lately.
struct Names<'c> {
    query: Statement<'c>,
    known: HashMap<i64, Arc<str>>,
}

impl<'c> Names<'c> {
    /// How many names are kept in memory.
    const MOST: usize = 4096;

    fn prepare(db: &'c Connection) -> Result<Self, Failure> {
        Ok(Self {
            query: db.prepare_cached("SELECT name FROM source WHERE source = ?1")?,
            known: HashMap::new(),
        })
    }

    /// Reads the source, line, column, spelling and text from this column on.
    fn reference(&mut self, row: Row<'_>, from: usize) -> Result<Reference, Failure> {
        Ok(Reference {
            source: self.name(row.get(from)?)?,
            line: row.get(from + 1)?,
            column: row.get(from + 2)?,
            written: row.get(from + 3)?,
            text: row.get(from + 4)?,
        })
    }

    fn name(&mut self, source: i64) -> Result<Arc<str>, Failure> {
        if let Some(name) = self.known.get(&source) {
            return Ok(Arc::clone(name));
        }
        let name: Arc<str> = self.query.query_row([source], |row| row.get(0))?;
        if self.known.len() >= Self::MOST {
            self.known.clear();
        }
        self.known.insert(source, Arc::clone(&name));
        Ok(name)
    }
}

pub(super) fn counts(db: &Connection, run: i64) -> Result<Counts, Failure> {
    let mut counts = Counts::default();
    let query = "SELECT class, state, count(*) FROM answer WHERE run = ?1 GROUP BY class, state";
    let mut query = db.prepare_cached(query)?;
    let mut rows = query.query([run])?;
    while let Some(row) = rows.next()? {
        let count = codec::count(row.get(2)?);
        let name = codec::text(row, 0)?.unwrap_or_default();
        let class = Class::ALL.into_iter().find(|class| class.name() == name);
        let class = class.ok_or_else(|| Failure::Damaged(format!("class {name}")))?;
        *counts.classes.entry(class).or_default() += count;
        if let Some(state) = codec::text(row, 1)? {
            *counts.states.entry(codec::state(state)?).or_default() += count;
        }
    }
    let queued = "SELECT count(*) FROM queue";
    counts.queued = codec::count(db.query_row(queued, [], |row| row.get(0))?);
    Ok(counts)
}

pub(super) fn history(
    db: &Connection,
    memory: &Memory,
    url: &str,
) -> Result<Option<UrlHistory>, Failure> {
    let text = url.split('#').next().unwrap_or(url);
    let Some(id) = find(db, memory, text)? else {
        return Ok(None);
    };
    let query = format!("SELECT {ANSWER_COLUMNS} FROM answer a WHERE a.url = ?1");
    let mut query = db.prepare_cached(&query)?;
    let mut rows = query.query([id])?;
    let last: i64 = db
        .prepare_cached("SELECT event FROM url WHERE url = ?1")?
        .query_row([id], |row| row.get(0))?;
    let stored = match rows.next()? {
        Some(row) => codec::answer(row, 0)?,
        None => None,
    };
    let (answer, life) = stored.map_or((None, None), |stored| (Some(stored.answer), stored.life));
    Ok(Some(UrlHistory {
        id: UrlId(id),
        url: text.to_owned(),
        answer,
        life,
        events: last_events(db, last)?,
    }))
}

/// The URL that is asked and has this text.
fn find(db: &Connection, memory: &Memory, text: &str) -> Result<Option<i64>, Failure> {
    Ok(Finder::prepare(db)?.find(memory, text)?.1)
}

/// How many events of a URL are read.
const EVENTS: usize = 100;

fn event_query(condition: &str) -> String {
    format!(
        "SELECT e.cursor, e.at, coalesce(u.spelling, u.text), e.from_state, e.to_state, e.status, e.why, e.prev \
         FROM event e CROSS JOIN url u ON u.url = e.url WHERE {condition}"
    )
}

/// The event with this number and those of the same URL before it, oldest first: at most the last [`EVENTS`].
pub(super) fn last_events(db: &Connection, last: i64) -> Result<Vec<Event>, Failure> {
    let mut query = db.prepare_cached(&event_query("e.cursor = ?1"))?;
    let mut events = Vec::new();
    let mut next = last;
    while next > 0 && events.len() < EVENTS {
        let mut rows = query.query([next])?;
        let Some(row) = rows.next()? else { break };
        events.push(event(row)?);
        next = row.get(7)?;
    }
    events.reverse();
    Ok(events)
}

pub(super) fn events(
    db: &Connection,
    after: Cursor,
    visit: &mut dyn FnMut(Event) -> ControlFlow<()>,
) -> Result<(), Failure> {
    let mut query = db.prepare_cached(&event_query("e.cursor > ?1 ORDER BY e.cursor"))?;
    let mut rows = query.stream([after.0])?;
    while let Some(row) = rows.next()? {
        if visit(event(row)?).is_break() {
            break;
        }
    }
    Ok(())
}

/// The changes before this one, latest first.
pub(crate) fn events_before() -> String {
    event_query("e.cursor < ?1 ORDER BY e.cursor DESC LIMIT ?2")
}

pub(super) fn some_events(
    db: &Connection,
    query: &str,
    from: Cursor,
    limit: usize,
) -> Result<Vec<Event>, Failure> {
    let mut query = db.prepare_cached(query)?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut rows = query.query([from.0, limit])?;
    let mut events = Vec::new();
    while let Some(row) = rows.next()? {
        events.push(event(row)?);
    }
    Ok(events)
}

/// The hosts of what was pruned, latest first.
pub(crate) const PRUNED: &str = "SELECT e.at, u.host FROM event e CROSS JOIN url u ON u.url = e.url \
     WHERE e.cursor > 0 AND e.to_state IN ('GONE', 'PRUNED') AND e.to_state = 'PRUNED' \
     ORDER BY e.cursor DESC LIMIT ?1";

pub(super) fn pruned(
    db: &Connection,
    since: Timestamp,
    limit: usize,
) -> Result<Vec<(Timestamp, HostId)>, Failure> {
    let mut query = db.prepare_cached(PRUNED)?;
    let mut rows = query.query([i64::try_from(limit).unwrap_or(i64::MAX)])?;
    let mut pruned = Vec::new();
    while let Some(row) = rows.next()? {
        let at = codec::time(row.get(0)?)?;
        if at < since {
            break;
        }
        pruned.push((at, HostId(row.get(1)?)));
    }
    pruned.reverse();
    Ok(pruned)
}

fn event(row: Row<'_>) -> Result<Event, Failure> {
    let state = |column| codec::state(codec::text(row, column)?.unwrap_or_default());
    Ok(Event {
        cursor: Cursor(row.get(0)?),
        at: codec::time(row.get(1)?)?,
        url: row.get(2)?,
        from: state(3)?,
        to: state(4)?,
        status: row.get(5)?,
        why: row.get(6)?,
    })
}
