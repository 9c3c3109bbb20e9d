//! Lists of watched URLs and hosts, a page at a time. Each query begins at its key in an index.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::members::host_with_root;
use super::read::{HOST_DETAIL, WATCHED, host_detail, watched_url};
use super::sets::SetRow;
use crate::check::life::State;
use crate::store::sql::{Connection, Row, Statement};
use crate::store::tables::codec;
use crate::store::tables::failure::Failure;
use crate::store::{
    HostDetail, HostId, HostList, LOOKS, Lane, Page, UrlId, UrlKey, UrlList, WatchedUrl,
};

/// Looks at the rows of a list until a page is full.
struct Look<'c> {
    page: Page<WatchedUrl, UrlKey>,
    limit: usize,
    left: usize,
    last: Option<UrlKey>,
    state: Option<State>,
    /// The set, if the rows are not its members anyway.
    set: Option<(i64, Statement<'c>)>,
}

/// Whether the page is full.
#[derive(Eq, PartialEq)]
enum IsFull {
    Yes,
    No,
}

impl<'c> Look<'c> {
    fn new(list: &UrlList, limit: usize) -> Self {
        Self {
            page: Page::default(),
            limit: limit.max(1),
            left: LOOKS,
            last: None,
            state: list.state,
            set: None,
        }
    }

    fn scan(
        &mut self,
        db: &Connection,
        query: &str,
        values: &[i64],
        key: impl Fn(Row<'_>, UrlId) -> Result<UrlKey, Failure>,
    ) -> Result<IsFull, Failure> {
        let mut query = db.prepare_cached(query)?;
        let mut rows = query.stream(values)?;
        while let Some(row) = rows.next()? {
            if self.page.rows.len() == self.limit || self.left == 0 {
                self.page.next = self.last;
                return Ok(IsFull::Yes);
            }
            let url: i64 = row.get(0)?;
            self.left -= 1;
            self.last = Some(key(row, UrlId(url))?);
            let is_in_a_set = row.get::<i64>(2)? > 0;
            if !is_in_a_set || !self.is_member(url)? {
                continue;
            }
            let url = watched_url(row)?;
            if self.state.is_none_or(|state| url.life.state() == state) {
                self.page.rows.push(url);
            }
        }
        Ok(IsFull::No)
    }

    fn is_member(&mut self, url: i64) -> Result<bool, Failure> {
        match &mut self.set {
            Some((set, is_member)) => Ok(is_member.exists([*set, url])?),
            None => Ok(true),
        }
    }
}

pub(super) fn urls(
    db: &Connection,
    list: &UrlList,
    limit: usize,
) -> Result<Page<WatchedUrl, UrlKey>, Failure> {
    let set = match &list.set {
        Some(name) => match SetRow::find(db, name)? {
            Some(set) => Some(set.number),
            None => return Ok(Page::default()),
        },
        None => None,
    };
    let mut look = Look::new(list, limit);
    if let Some(root) = &list.host {
        let Some(host) = host_with_root(db, root)? else {
            return Ok(Page::default());
        };
        if let Some(set) = set {
            let is_member = "SELECT 1 FROM member WHERE set_number = ?1 AND url = ?2";
            look.set = Some((set, db.prepare_cached(is_member)?));
        }
        of_host(db, &mut look, host, list.after)?;
        return Ok(look.page);
    }
    let after = match list.after {
        Some(UrlKey::Number(url) | UrlKey::OfState(_, url) | UrlKey::Due(_, url)) => url.0,
        None => 0,
    };
    let number = |_: Row<'_>, url| Ok(UrlKey::Number(url));
    let _ = match (set, list.state.filter(|&state| is_trouble(state))) {
        (Some(set), _) => look.scan(db, &of_set(), &[set, after], number),
        (None, Some(state)) => look.scan(db, &of_state(), &[state.code().into(), after], number),
        (None, None) => look.scan(db, &all(), &[after], number),
    }?;
    Ok(look.page)
}

/// The URLs of a host: by their states, those in the lane of good URLs last.
fn of_host(
    db: &Connection,
    look: &mut Look<'_>,
    host: i64,
    after: Option<UrlKey>,
) -> Result<(), Failure> {
    let is_meant = |state: &State| look.state.is_none_or(|wanted| wanted == *state);
    let states: Vec<State> = (State::ALL.into_iter().rev()).filter(is_meant).collect();
    let begin = match after {
        Some(UrlKey::OfState(state, url)) => Some((state, url.0)),
        Some(UrlKey::Number(_)) | None => Some((State::Pruned, 0)),
        Some(UrlKey::Due(..)) => None,
    };
    for state in states {
        let Some((first, url)) = begin.filter(|(first, _)| state <= *first) else {
            continue;
        };
        let values = [
            host,
            state.code().into(),
            if state == first { url } else { 0 },
        ];
        let key = |_: Row<'_>, url| Ok(UrlKey::OfState(state, url));
        if look.scan(db, &of_host_and_state(), &values, key)? == IsFull::Yes {
            return Ok(());
        }
    }
    if look.state.is_some_and(is_trouble) {
        return Ok(());
    }
    let (due, url) = match after {
        Some(UrlKey::Due(due, url)) => (due.as_millisecond(), url.0),
        _ => (i64::MIN, 0),
    };
    let key = |row: Row<'_>, url| Ok(UrlKey::Due(codec::time(row.get(7)?)?, url));
    look.scan(db, &of_host_by_time(), &[host, due, url], key)?;
    Ok(())
}

/// Whether URLs in this state are never due in the lane of good URLs.
fn is_trouble(state: State) -> bool {
    Lane::of(state, false) != Lane::Routine
}

pub(in crate::store) fn all() -> String {
    format!("SELECT {WATCHED} FROM url u WHERE u.url > ?1 ORDER BY u.url")
}

pub(in crate::store) fn of_set() -> String {
    format!(
        "SELECT {WATCHED} FROM member m CROSS JOIN url u ON u.url = m.url \
         WHERE m.set_number = ?1 AND m.url > ?2 ORDER BY m.url"
    )
}

pub(in crate::store) fn of_state() -> String {
    format!("SELECT {WATCHED} FROM url u WHERE u.trouble = ?1 AND u.url > ?2 ORDER BY u.url")
}

pub(in crate::store) fn of_host_and_state() -> String {
    // Without the name of the index, the other one is taken.
    format!(
        "SELECT {WATCHED} FROM url u INDEXED BY url_host_trouble \
         WHERE u.host = ?1 AND u.trouble = ?2 AND u.url > ?3 ORDER BY u.url"
    )
}

pub(in crate::store) fn of_host_by_time() -> String {
    format!(
        "SELECT {WATCHED}, d.due_at FROM due d CROSS JOIN url u ON u.url = d.url \
         WHERE d.host = ?1 AND d.lane = 0 AND (d.due_at, d.url) > (?2, ?3) ORDER BY d.due_at, d.url"
    )
}

pub(in crate::store) const COUNT: &str = "SELECT count(*) FROM (SELECT 1 FROM url INDEXED BY url_host_trouble \
     WHERE host = ?1 AND trouble = ?2 LIMIT ?3) AS few";

pub(super) fn troubles(
    db: &Connection,
    host: HostId,
    limit: u64,
) -> Result<BTreeMap<State, u64>, Failure> {
    let mut count = db.prepare_cached(COUNT)?;
    let mut counts = BTreeMap::new();
    for state in State::ALL.into_iter().filter(|&state| is_trouble(state)) {
        let row = [host.0, state.code().into(), codec::number(limit)];
        match codec::count(count.query_row(row, |row| row.get(0))?) {
            0 => None,
            some => counts.insert(state, some),
        };
    }
    Ok(counts)
}

pub(super) fn hosts(
    db: &Connection,
    list: &HostList,
    limit: usize,
) -> Result<Page<HostDetail, HostList>, Failure> {
    let limit = limit.max(1);
    match list {
        HostList::Named { prefix, after } => named(db, prefix, after.as_deref(), limit),
        HostList::Waiting { after } => waiting(db, *after, limit),
    }
}

fn waiting(
    db: &Connection,
    after: Option<(Timestamp, HostId)>,
    limit: usize,
) -> Result<Page<HostDetail, HostList>, Failure> {
    let (due, host) = match after {
        Some((due, host)) => (due.as_millisecond(), host.0),
        None => (i64::MIN, 0),
    };
    let mut page = Page::default();
    // Many hosts may be due at the same time.
    for (query, values) in [
        (hosts_due_at(), &[due, host][..]),
        (hosts_due_after(), &[due]),
    ] {
        let mut query = db.prepare_cached(&query)?;
        let mut rows = query.stream(values)?;
        while let Some(row) = rows.next()? {
            if page.rows.len() == limit {
                let last: Option<&HostDetail> = page.rows.last();
                let after = last.and_then(|last| Some((last.next?, last.host.id)));
                page.next = Some(HostList::Waiting { after });
                return Ok(page);
            }
            page.rows.push(host_detail(row)?);
        }
    }
    Ok(page)
}

fn named(
    db: &Connection,
    prefix: &str,
    after: Option<&str>,
    limit: usize,
) -> Result<Page<HostDetail, HostList>, Failure> {
    let mut query = db.prepare_cached(&named_hosts())?;
    let (mut page, mut left) = (Page::default(), LOOKS);
    let mut last = None;
    for scheme in ["https://", "http://"] {
        let begin = format!("{scheme}{}", prefix.to_ascii_lowercase());
        let end = format!("{begin}{}", char::MAX);
        let from = match after {
            // "http:" is before "https:": such a host comes after all of them.
            Some(after) if after < begin.as_str() => continue,
            // The next text after this one.
            Some(after) if after < end.as_str() => format!("{after}\u{1}"),
            _ => begin,
        };
        let mut rows = query.stream([from, end])?;
        while let Some(row) = rows.next()? {
            if page.rows.len() == limit || left == 0 {
                page.next = Some(HostList::Named {
                    prefix: prefix.to_owned(),
                    after: last,
                });
                return Ok(page);
            }
            left -= 1;
            let detail = host_detail(row)?;
            last = Some(detail.host.root.clone());
            if detail.urls > 0 {
                page.rows.push(detail);
            }
        }
    }
    Ok(page)
}

pub(in crate::store) fn named_hosts() -> String {
    format!("SELECT {HOST_DETAIL} FROM host WHERE root >= ?1 AND root < ?2 ORDER BY root")
}

pub(in crate::store) fn hosts_due_at() -> String {
    format!("SELECT {HOST_DETAIL} FROM host WHERE next_due = ?1 AND host > ?2 ORDER BY host")
}

pub(in crate::store) fn hosts_due_after() -> String {
    format!("SELECT {HOST_DETAIL} FROM host WHERE next_due > ?1 ORDER BY next_due, host")
}
