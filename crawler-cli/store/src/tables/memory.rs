//! What the engine keeps in memory of the database.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use url::{Position, Url};

use super::failure::Failure;
use super::jobs::memory::Jobs;
use super::keys::Keys;
use super::read;
use super::rejects::Rejects;
use super::watch::Tally;
use crate::postgres::fleet::Member;
use crate::sql::{Connection, Optional as _, params};
use crate::{Cursor, Host, HostId};

/// What the engine keeps in memory of the database: the next numbers, and what is looked up for each link.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(super) next: Next,
    /// The first link of the run.
    pub(super) first_link: i64,
    pub(crate) keys: Keys,
    pub(super) hosts: Hosts,
    pub(super) sources: Sources,
    pub(super) tally: Tally,
    pub(super) jobs: Jobs,
    pub(crate) rejects: Rejects,
    /// The worker whose engine this is, if it is in a fleet.
    pub(crate) member: Option<Member>,
}

/// The hosts that a worker has; `None` if it has all.
pub(super) struct Owned(Option<HashSet<HostId>>);

impl Owned {
    pub(super) fn has(&self, host: HostId) -> bool {
        self.0.as_ref().is_none_or(|owned| owned.contains(&host))
    }
}

/// The numbers that come next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Next {
    pub(super) url: i64,
    pub(super) host: i64,
    pub(super) source: i64,
    /// Of links, and of their further places.
    pub(super) link: i64,
    pub(super) entry: i64,
    pub(super) event: i64,
}

impl Next {
    /// As they are stored, and the last URL whose key is in the table with all before it.
    fn load(db: &Connection) -> Result<(Self, i64), Failure> {
        let after = |table: &str| {
            let query = format!("SELECT coalesce(max({table}), 0) + 1 FROM {table}");
            let mut query = db.prepare_cached(&query)?;
            query.query_row([], |row| row.get::<i64>(0))
        };
        let stored = "SELECT next_link, next_entry, next_event, keyed, next_url FROM store";
        let stored = db.prepare_cached(stored)?.query_row([], |row| {
            Ok((
                row.get(0)?,
                row.get(1)?,
                row.get(2)?,
                row.get(3)?,
                row.get(4)?,
            ))
        });
        let (link, entry, event, keyed, url): (i64, i64, i64, i64, i64) = stored?;
        let next = Self {
            // The last URL may be forgotten.
            url: after("url")?.max(url),
            host: after("host")?,
            source: after("source")?,
            link,
            entry,
            event,
        };
        Ok((next, keyed))
    }
}

/// Returns a number and makes the next one.
pub(super) fn take(next: &mut i64) -> i64 {
    let number = *next;
    *next += 1;
    number
}

impl Memory {
    pub(crate) fn load(db: &Connection) -> Result<Self, Failure> {
        let (next, keyed) = Next::load(db)?;
        Ok(Self {
            next,
            first_link: next.link,
            keys: Keys::load(db, keyed, next.url - 1)?,
            hosts: Hosts::default(),
            sources: Sources::default(),
            tally: Tally::load(db)?,
            jobs: Jobs::load(db)?,
            rejects: Rejects::default(),
            member: None,
        })
    }

    /// What is kept in memory of a store in this file.
    pub(crate) fn open(db: &Connection, path: &Path, is_read_only: bool) -> Result<Self, Failure> {
        Ok(Self {
            rejects: Rejects::open(db, path, is_read_only)?,
            ..Self::load(db)?
        })
    }

    /// The number of the worker; 0 without a fleet.
    pub(super) fn worker(&self) -> i64 {
        self.member.as_ref().map_or(0, Member::number)
    }

    /// Tells which of these hosts this worker may write about, until the transaction ends.
    pub(super) fn owned(
        &self,
        db: &Connection,
        hosts: impl Iterator<Item = HostId>,
    ) -> Result<Owned, Failure> {
        let member = self.member.as_ref();
        let owned = member.map(|member| member.owned(db, &hosts.collect()));
        Ok(Owned(owned.transpose()?))
    }

    /// Goes on to what another process has stored.
    pub(super) fn catch_up(&mut self, db: &Connection) -> Result<(), Failure> {
        let known = self.next.url - 1;
        let (next, keyed) = Next::load(db)?;
        self.keys.catch_up(db, keyed, known)?;
        self.tally = Tally::load(db)?;
        self.jobs = std::mem::take(&mut self.jobs).reload(db)?;
        // The last change of state may be forgotten with its URL.
        self.rejects.catch_up(db, Cursor(self.next.event - 1))?;
        self.next = next;
        Ok(())
    }

    /// Back to what is stored, after a transaction that failed.
    pub(super) fn reload(&mut self, db: &Connection) -> Result<(), Failure> {
        let mut announced = std::mem::take(&mut self.hosts.announced);
        for host in self.hosts.announced_now.drain(..) {
            announced.remove(&host);
        }
        let jobs = std::mem::take(&mut self.jobs).reload(db)?;
        *self = Self {
            first_link: self.first_link,
            jobs,
            // What was inserted and is not rejected now costs a look at a row.
            rejects: std::mem::take(&mut self.rejects),
            member: self.member.take(),
            ..Self::load(db)?
        };
        self.hosts.announced = announced;
        Ok(())
    }

    /// Stores the numbers with the transaction, and moves keys to the table. Returns the number of changes of the store, if it
    /// is counted.
    pub(super) fn save(&mut self, db: &Connection) -> Result<Option<i64>, Failure> {
        self.keys.flush(db, self.next.url - 1)?;
        self.tally.save(db)?;
        self.jobs.save(db)?;
        let next = &self.next;
        let row = params![
            next.link,
            next.entry,
            next.event,
            self.keys.keyed(),
            next.url
        ];
        let update = "UPDATE store SET next_link = ?1, next_entry = ?2, next_event = ?3, keyed = ?4, next_url = ?5";
        if let Connection::Sqlite(_) = db {
            db.prepare_cached(update)?.execute(row)?;
            return Ok(None);
        }
        let update = format!("{update}, changes = changes + 1 RETURNING changes");
        Ok(Some(db.query_row(&update, row, |row| row.get(0))?))
    }

    /// The transaction is stored.
    pub(super) fn commit(&mut self, db: &Connection) {
        self.hosts.announced_now.clear();
        self.jobs.commit();
        self.rejects.commit(db);
    }
}

/// The hosts.
#[derive(Debug, Default)]
pub(super) struct Hosts {
    /// The numbers of hosts by their roots: those that were looked up lately.
    numbers: HashMap<Box<str>, i64>,
    /// The last one.
    last: Option<(Box<str>, i64)>,
    /// Those that the caller knows, because they were among the new hosts of the run.
    announced: HashSet<i64>,
    /// Those of them that became known in this transaction.
    announced_now: Vec<i64>,
}

impl Hosts {
    /// How many numbers of hosts are kept in memory.
    const MOST: usize = 1 << 16;

    /// A run begins, and the caller is told of these hosts.
    pub(super) fn begin_run(&mut self, known: impl IntoIterator<Item = i64>) {
        self.announced = known.into_iter().collect();
    }

    /// The number of the host of a URL. Makes a new host if there is none.
    pub(super) fn number(
        &mut self,
        db: &Connection,
        next: &mut i64,
        url: &Url,
    ) -> Result<i64, Failure> {
        let has_user = !url.username().is_empty() || url.password().is_some();
        let plain;
        let root = if has_user {
            plain = plain::origin::root_of(url);
            &plain[..Position::BeforePath]
        } else {
            &url[..Position::BeforePath]
        };
        match &self.last {
            Some((last, number)) if **last == *root => return Ok(*number),
            _ => {}
        }
        let number = match self.numbers.get(root) {
            Some(&number) => number,
            None => self.stored(db, next, root)?,
        };
        self.last = Some((root.into(), number));
        Ok(number)
    }

    fn stored(&mut self, db: &Connection, next: &mut i64, root: &str) -> Result<i64, Failure> {
        let text = format!("{root}/");
        let known: Option<i64> = db
            .prepare_cached("SELECT host FROM host WHERE root = ?1")?
            .query_row([&text], |row| row.get(0))
            .optional()?;
        let number = match known {
            Some(number) => number,
            None => {
                let number = take(next);
                db.prepare_cached("INSERT INTO host (host, root) VALUES (?1, ?2)")?
                    .execute(params![number, text])?;
                number
            }
        };
        if self.numbers.len() >= Self::MOST {
            self.numbers.clear();
        }
        self.numbers.insert(root.into(), number);
        Ok(number)
    }

    /// What is known about a host that gets an entry, if the caller does not know the host.
    pub(super) fn announce(&mut self, db: &Connection, host: i64) -> Result<Option<Host>, Failure> {
        if !self.announced.insert(host) {
            return Ok(None);
        }
        self.announced_now.push(host);
        read::host(db, host)
    }
}

/// The sources of the run.
#[derive(Debug, Default)]
pub(super) struct Sources {
    /// The numbers of sources, pages or not: those that were looked up lately. A page that was given is a source of itself,
    /// which the next run forgets, and one of its links, which are kept.
    numbers: HashMap<(Arc<str>, bool), i64>,
    /// The last one.
    last: Option<(Arc<str>, bool, i64)>,
}

impl Sources {
    /// How many numbers of sources are kept in memory. A source that comes again after so many others is stored again.
    const MOST: usize = 4096;

    /// Forgets the sources of the run before.
    pub(super) fn begin_run(&mut self) {
        *self = Self::default();
    }

    /// The number of a source.
    pub(super) fn number(
        &mut self,
        db: &Connection,
        next: &mut i64,
        name: &Arc<str>,
        is_page: bool,
    ) -> Result<i64, Failure> {
        match &self.last {
            Some((last, was_page, number)) if Arc::ptr_eq(last, name) && *was_page == is_page => {
                return Ok(*number);
            }
            _ => {}
        }
        let key = (Arc::clone(name), is_page);
        let number = match self.numbers.get(&key) {
            Some(&number) => number,
            None => {
                let number = take(next);
                db.prepare_cached(
                    "INSERT INTO source (source, is_page, name) VALUES (?1, ?2, ?3)",
                )?
                .execute(params![number, is_page, &**name])?;
                if self.numbers.len() >= Self::MOST {
                    self.numbers.clear();
                }
                self.numbers.insert(key, number);
                number
            }
        };
        self.last = Some((Arc::clone(name), is_page, number));
        Ok(number)
    }
}
