//! Reads watched URLs and their hosts.

use std::ops::ControlFlow;

use super::bytes::Watched;
use super::members::host_with_root;
use super::pieces::{known, sql_limit};
use super::sets::SetRow;
use crate::sql::{Connection, Row};
use crate::tables::codec;
use crate::tables::failure::Failure;
use crate::tables::memory::Memory;
use crate::tables::read::{host as read_host, host_of, last_events};
use crate::{HostDetail, HostId, UrlDetail, UrlId, WatchedUrl, Which};
use verdict::life::State;

/// The columns that [`watched_url`] reads, the host and the last change.
const WATCHED: &str =
    "u.url, coalesce(u.spelling, u.text), u.sets, u.left_at, u.watched, u.host, u.event";

pub(super) fn watched_url(row: Row<'_>) -> Result<WatchedUrl, Failure> {
    let watched = Watched::from_bytes(codec::blob(row, 4)?.unwrap_or_default())?;
    let sets = row.get(2)?;
    Ok(WatchedUrl {
        id: UrlId(row.get(0)?),
        url: row.get(1)?,
        added: watched.added,
        answer: watched.answer,
        life: watched.life,
        due: watched.due.filter(|_| sets > 0),
        sets,
        left_at: codec::optional_time(row.get(3)?)?,
    })
}

pub(super) fn show(
    db: &Connection,
    memory: &Memory,
    url: &str,
) -> Result<Option<UrlDetail>, Failure> {
    let Some(number) = known(db, memory, &[url.to_owned()])?.pop() else {
        return Ok(None);
    };
    let query = format!("SELECT {WATCHED} FROM url u WHERE u.url = ?1 AND u.watched IS NOT NULL");
    let mut query = db.prepare_cached(&query)?;
    let mut rows = query.query([number])?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    let (host, event) = (row.get(5)?, row.get(6)?);
    let Some(host) = read_host(db, host)? else {
        return Err(Failure::Damaged(format!("host {host} is missing")));
    };
    Ok(Some(UrlDetail {
        url: watched_url(row)?,
        host,
        sets: sets_of(db, number)?,
        events: last_events(db, event)?,
    }))
}

/// The names of a URL's sets.
fn sets_of(db: &Connection, url: i64) -> Result<Vec<String>, Failure> {
    let query = "SELECT s.name FROM url_set s WHERE EXISTS \
         (SELECT 1 FROM member m WHERE m.set_number = s.set_number AND m.url = ?1) ORDER BY s.set_number";
    let mut query = db.prepare_cached(query)?;
    Ok(query.query_all([url], |row| row.get(0))?)
}

/// The columns that [`host_detail`] reads.
const HOST_DETAIL: &str = "host, root, no_head_until, head_lies_until, answered_at, control_at, \
     control_status, episodes, urls, held, next_due, next_doubt";

fn host_detail(row: Row<'_>) -> Result<HostDetail, Failure> {
    Ok(HostDetail {
        host: host_of(row)?,
        urls: codec::count(row.get(8)?),
        held: codec::count(row.get(9)?),
        next: codec::optional_time(row.get(10)?)?,
        next_doubt: codec::optional_time(row.get(11)?)?,
    })
}

pub(super) fn host(db: &Connection, root: &str) -> Result<Option<HostDetail>, Failure> {
    let query = format!("SELECT {HOST_DETAIL} FROM host WHERE root = ?1");
    let mut query = db.prepare_cached(&query)?;
    let mut rows = query.query([root])?;
    rows.next()?.map(host_detail).transpose()
}

pub(super) fn root_of(db: &Connection, host: HostId) -> Result<Option<String>, Failure> {
    Ok(read_host(db, host.0)?.map(|host| host.root))
}

pub(crate) fn of_state() -> String {
    format!("SELECT {WATCHED} FROM url u WHERE u.trouble = ?1 ORDER BY u.url LIMIT ?2")
}

pub(super) fn in_trouble(
    db: &Connection,
    state: State,
    limit: usize,
) -> Result<Vec<WatchedUrl>, Failure> {
    let mut query = db.prepare_cached(&of_state())?;
    let mut rows = query.query([i64::from(state.code()), sql_limit(limit)])?;
    let mut urls = Vec::new();
    while let Some(row) = rows.next()? {
        urls.push(watched_url(row)?);
    }
    Ok(urls)
}

pub(super) fn export(
    db: &Connection,
    memory: &Memory,
    which: &Which,
    after: Option<UrlId>,
    visit: &mut dyn FnMut(WatchedUrl) -> ControlFlow<()>,
) -> Result<(), Failure> {
    let after = after.map_or(0, |url| url.0);
    let all = format!(
        "SELECT {WATCHED} FROM url u WHERE u.url > ?1 AND u.watched IS NOT NULL ORDER BY u.url"
    );
    match which {
        Which::Urls(urls) => {
            let query =
                format!("SELECT {WATCHED} FROM url u WHERE u.url = ?1 AND u.watched IS NOT NULL");
            let mut numbers = known(db, memory, urls)?;
            numbers.sort_unstable();
            numbers.dedup();
            for number in numbers.into_iter().filter(|&number| number > after) {
                if visit_all(db, &query, &[number], |_, _| Ok(true), visit)?.is_break() {
                    break;
                }
            }
        }
        Which::Set(name) => {
            let query = format!(
                "SELECT {WATCHED} FROM member m CROSS JOIN url u ON u.url = m.url \
                 WHERE m.set_number = ?2 AND m.url > ?1 ORDER BY m.url"
            );
            if let Some(set) = SetRow::find(db, name)? {
                let _ = visit_all(db, &query, &[after, set.number], |_, _| Ok(true), visit)?;
            }
        }
        Which::Host(root) => {
            let Some(host) = host_with_root(db, root)? else {
                return Ok(());
            };
            let is_meant = |row: Row<'_>, _: &WatchedUrl| Ok(row.get::<i64>(5)? == host);
            let _ = visit_all(db, &all, &[after], is_meant, visit)?;
        }
        Which::State(state) => {
            let is_meant = |_: Row<'_>, url: &WatchedUrl| Ok(url.life.state() == *state);
            let _ = visit_all(db, &all, &[after], is_meant, visit)?;
        }
        Which::Private => {
            let is_meant = |row: Row<'_>, _: &WatchedUrl| {
                let watched = codec::blob(row, 4)?.unwrap_or_default();
                Ok(Watched::from_bytes(watched)?.is_private())
            };
            let _ = visit_all(db, &all, &[after], is_meant, visit)?;
        }
        Which::Everything => {
            let _ = visit_all(db, &all, &[after], |_, _| Ok(true), visit)?;
        }
    }
    Ok(())
}

/// Visits the URLs of a query that are meant.
fn visit_all(
    db: &Connection,
    query: &str,
    values: &[i64],
    is_meant: impl Fn(Row<'_>, &WatchedUrl) -> Result<bool, Failure>,
    visit: &mut dyn FnMut(WatchedUrl) -> ControlFlow<()>,
) -> Result<ControlFlow<()>, Failure> {
    let mut query = db.prepare_cached(query)?;
    let mut rows = query.stream(values)?;
    while let Some(row) = rows.next()? {
        let url = watched_url(row)?;
        if is_meant(row, &url)? && visit(url).is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}
