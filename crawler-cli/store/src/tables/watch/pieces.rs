//! Changes that may concern many URLs, in pieces.

use jiff::Timestamp;

use super::bytes::Watched;
use super::members::{Finder, Membership, host_with_root};
use super::rows::Rows;
use super::sets::SetRow;
use crate::sql::Connection;
use crate::tables::codec;
use crate::tables::failure::Failure;
use crate::tables::jobs::letters;
use crate::tables::keys::Lookup;
use crate::tables::memory::Memory;
use crate::{Lane, NewUrl, Piece, UrlId, Which};
use verdict::life::State;
use verdict::life::time::to_millis;

/// The URLs of a piece.
struct Meant {
    urls: Vec<i64>,
    next: Option<UrlId>,
}

/// Which of the URLs that are looked at are meant.
enum Filter {
    All,
    Host(i64),
    State(State),
    Private,
}

fn meant(
    db: &Connection,
    memory: &Memory,
    which: &Which,
    after: Option<UrlId>,
    limit: usize,
) -> Result<Meant, Failure> {
    let after = after.map_or(0, |url| url.0);
    let none = || Meant {
        urls: Vec::new(),
        next: None,
    };
    match which {
        Which::Urls(urls) => Ok(Meant {
            urls: known(db, memory, urls)?,
            next: None,
        }),
        Which::Set(name) => match SetRow::find(db, name)? {
            Some(set) => members(db, &set, after, limit),
            None => Ok(none()),
        },
        Which::Host(root) => match host_with_root(db, root)? {
            Some(host) => scan(db, &Filter::Host(host), after, limit),
            None => Ok(none()),
        },
        Which::State(state) => scan(db, &Filter::State(*state), after, limit),
        Which::Private => scan(db, &Filter::Private, after, limit),
        Which::Everything => scan(db, &Filter::All, after, limit),
    }
}

/// Those of the URLs that the store knows.
pub(super) fn known(
    db: &Connection,
    memory: &Memory,
    urls: &[String],
) -> Result<Vec<i64>, Failure> {
    let mut finder = Finder::prepare(db)?;
    let mut known = Vec::new();
    for url in urls {
        if let Ok(url) = NewUrl::parse(url) {
            known.extend(finder.find(memory, url.identity())?.1);
        }
    }
    Ok(known)
}

fn members(db: &Connection, set: &SetRow, after: i64, limit: usize) -> Result<Meant, Failure> {
    let query = "SELECT url FROM member WHERE set_number = ?1 AND url > ?2 ORDER BY url LIMIT ?3";
    let mut query = db.prepare_cached(query)?;
    let range = [set.number, after, sql_limit(limit)];
    let urls: Vec<i64> = query.query_all(range, |row| row.get(0))?;
    let is_last = urls.len() < limit;
    let next = urls.last().filter(|_| !is_last).map(|&url| UrlId(url));
    Ok(Meant { urls, next })
}

fn scan(db: &Connection, filter: &Filter, after: i64, limit: usize) -> Result<Meant, Failure> {
    let query = "SELECT url, host, watched FROM url WHERE url > ?1 ORDER BY url LIMIT ?2";
    let mut query = db.prepare_cached(query)?;
    let mut rows = query.query([after, sql_limit(limit)])?;
    let (mut urls, mut looked, mut last) = (Vec::new(), 0, None);
    while let Some(row) = rows.next()? {
        let url = row.get(0)?;
        (looked, last) = (looked + 1, Some(UrlId(url)));
        let Some(watched) = codec::blob(row, 2)? else {
            continue;
        };
        let is_meant = match filter {
            Filter::All => true,
            Filter::Host(host) => row.get::<Option<i64>>(1)? == Some(*host),
            Filter::Private => Watched::from_bytes(watched)?.is_private(),
            Filter::State(state) => Watched::from_bytes(watched)?.life.state() == *state,
        };
        if is_meant {
            urls.push(url);
        }
    }
    let next = last.filter(|_| looked == limit);
    Ok(Meant { urls, next })
}

pub(super) fn sql_limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

pub(super) fn withdraw(
    db: &Connection,
    memory: &mut Memory,
    name: Option<&str>,
    which: &Which,
    now: Timestamp,
    (after, limit): (Option<UrlId>, usize),
) -> Result<Piece, Failure> {
    let meant = meant(db, memory, which, after, limit)?;
    let before = match name {
        Some(name) => SetRow::find(db, name)?.into_iter().collect(),
        None => SetRow::all(db)?,
    };
    let mut sets = before.clone();
    let mut membership = Membership::prepare(db, memory)?;
    let mut done = 0;
    for url in meant.urls {
        let mut has_left = false;
        for set in &mut sets {
            has_left |= membership.leave(set, url, now)?;
        }
        done += u64::from(has_left);
    }
    for (set, _) in sets.iter().zip(&before).filter(|(set, old)| set != old) {
        set.save(db)?;
    }
    Ok(Piece {
        done,
        next: meant.next,
    })
}

pub(super) fn make_due(
    db: &Connection,
    memory: &mut Memory,
    which: &Which,
    at: Timestamp,
    (after, limit): (Option<UrlId>, usize),
) -> Result<Piece, Failure> {
    let at = to_millis(at);
    let is_later = |watched: &Watched| watched.due.is_none_or(|(_, due)| due > at);
    schedule(db, memory, which, (at, is_later), (after, limit))
}

/// Makes URLs due that were asked or submitted later than now.
pub(super) fn bring_forward(
    db: &Connection,
    memory: &mut Memory,
    now: Timestamp,
    range: (Option<UrlId>, usize),
) -> Result<Piece, Failure> {
    let now = to_millis(now);
    let is_of_the_future = |watched: &Watched| {
        let last_at = watched.life.last_at().unwrap_or(watched.added);
        last_at > now && watched.due.is_some_and(|(_, due)| due > now)
    };
    schedule(
        db,
        memory,
        &Which::Everything,
        (now, is_of_the_future),
        range,
    )
}

/// Makes URLs due at a time that are meant, in a set, and not held.
fn schedule(
    db: &Connection,
    memory: &mut Memory,
    which: &Which,
    (at, is_meant): (Timestamp, impl Fn(&Watched) -> bool),
    (after, limit): (Option<UrlId>, usize),
) -> Result<Piece, Failure> {
    let meant = meant(db, memory, which, after, limit)?;
    let mut rows = Rows::prepare(db)?;
    let mut done = 0;
    for url in meant.urls {
        let Some(row) = rows.read(url)?.filter(|row| row.sets > 0) else {
            continue;
        };
        match row.watched.due {
            Some((Lane::Held, _)) => continue,
            _ if !is_meant(&row.watched) => continue,
            Some(due) => {
                rows.remove_due(&mut memory.tally, row.host, due, url)?;
            }
            None => {}
        }
        let lane = Lane::of(row.state(), false);
        rows.schedule(&mut memory.tally, row, (lane, at))?;
        done += 1;
    }
    Ok(Piece {
        done,
        next: meant.next,
    })
}

/// Forgets URLs that have been in no set for long.
pub(super) fn expire(
    db: &Connection,
    memory: &mut Memory,
    before: Timestamp,
    limit: usize,
) -> Result<u64, Failure> {
    let query =
        "SELECT url, event, link, text FROM url WHERE left_at < ?1 ORDER BY left_at LIMIT ?2";
    let mut query = db.prepare_cached(query)?;
    let row = [before.as_millisecond(), sql_limit(limit)];
    let expired: Vec<(i64, i64, i64, String)> = query.query_all(row, |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
    })?;
    for (url, event, link, text) in &expired {
        forget_events(db, *event)?;
        letters::forget_url(db, *url)?;
        memory.tally.kept(-1);
        // What a run has said about the URL is the run's.
        if *link > 0 {
            let forget = "UPDATE url SET event = 0, left_at = NULL, watched = NULL WHERE url = ?1";
            db.prepare_cached(forget)?.execute([url])?;
            continue;
        }
        forget_key(db, memory, *url, text)?;
        db.prepare_cached("DELETE FROM url WHERE url = ?1")?
            .execute([url])?;
    }
    Ok(expired.len() as u64)
}

fn forget_key(db: &Connection, memory: &mut Memory, url: i64, text: &str) -> Result<(), Failure> {
    let mut lookup = Lookup::prepare(db)?;
    let (key, found) = memory
        .keys
        .search(&mut lookup, text, |other| Ok(other == url))?;
    if found.is_some() {
        memory.keys.remove(db, &mut lookup, key)?;
    }
    Ok(())
}

/// Forgets an event and those of the same URL before it.
fn forget_events(db: &Connection, last: i64) -> Result<(), Failure> {
    let forget = "DELETE FROM event WHERE cursor = ?1 RETURNING prev";
    let mut forget = db.prepare_cached(forget)?;
    let mut event = last;
    while event > 0 {
        let mut rows = forget.query([event])?;
        event = match rows.next()? {
            Some(row) => row.get(0)?,
            None => 0,
        };
    }
    Ok(())
}
