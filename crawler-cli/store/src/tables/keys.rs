//! Finds URLs by their text.
//!
//! The hashes of URLs come in random order. In a table that is larger than the cache, each of them would read and write
//! a page of its own. So new hashes are collected in memory first, and go to the table in the order of their numbers:
//! with each batch that is added, as many of the oldest as it brings, from where the last batch stopped. Each page
//! then takes several of them at once.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Bound;

use xxhash_rust::xxh3::xxh3_128;

use super::failure::Failure;
use super::filter::Filter;
use crate::sql::{self, Connection, Optional as _, Statement};

/// The hashes of URLs, in memory and in the table `url_key`.
#[derive(Debug)]
pub(crate) struct Keys {
    /// Those that are not in the table yet, with the numbers of their URLs.
    pub(crate) recent: BTreeMap<i64, i64>,
    /// Whether the table has any.
    has_table: bool,
    /// What is in the table, when it was asked often enough for what is not.
    filter: Option<Filter>,
    /// How often it was.
    misses: Cell<usize>,
    /// Where the next batch that goes to the table begins.
    next: i64,
    /// The last URL when `next` was at the first number: when `next` is there again, all up to this one are in the table.
    covered: i64,
    /// All URLs up to this one are in the table.
    keyed: i64,
    pub(crate) least: usize,
    /// Whether new ones go to the table at once: others look there.
    is_shared: bool,
}

impl Keys {
    /// Opens the keys of a store with URLs up to `last`, of which those up to `keyed` are in the table.
    pub(super) fn load(db: &Connection, keyed: i64, last: i64) -> sql::Result<Self> {
        let mut keys = Self {
            recent: BTreeMap::new(),
            has_table: has_table(db)?,
            filter: None,
            misses: Cell::new(0),
            next: i64::MIN,
            covered: last,
            keyed,
            least: LEAST,
            is_shared: db.is_shared(),
        };
        keys.restore_after(db, keyed)?;
        Ok(keys)
    }

    /// Goes on to what another process has stored: `keyed` as in [`load`](Self::load), and the URLs after `known`.
    pub(super) fn catch_up(&mut self, db: &Connection, keyed: i64, known: i64) -> sql::Result<()> {
        if keyed != self.keyed {
            self.recent.retain(|_, url| *url > keyed);
            self.keyed = keyed;
        }
        self.has_table |= has_table(db)?;
        self.restore_after(db, known.max(keyed))
    }

    /// Hashes the URLs after this one.
    fn restore_after(&mut self, db: &Connection, known: i64) -> sql::Result<()> {
        let mut lookup = Lookup::prepare(db)?;
        let mut urls =
            db.prepare_cached("SELECT url, text FROM url WHERE url > ?1 ORDER BY url")?;
        let mut urls = urls.stream([known])?;
        let mut hashes = Vec::new();
        while let Some(row) = urls.next()? {
            hashes.push((key_of(row.get_str(1)?), row.get(0)?));
        }
        // In the order of the table, so that each of its pages is read once.
        hashes.sort_unstable();
        for (key, url) in hashes {
            self.restore(&mut lookup, url, key)?;
        }
        Ok(())
    }

    /// Finds a URL by its text: its key, or the one for it that is free. `is_it` tells whether a URL is the one.
    pub(super) fn search(
        &self,
        lookup: &mut Lookup<'_>,
        text: &str,
        mut is_it: impl FnMut(i64) -> Result<bool, Failure>,
    ) -> Result<(i64, Option<i64>), Failure> {
        let mut key = key_of(text);
        while let Some(url) = self.get(lookup, key)? {
            if url != FORGOTTEN && is_it(url)? {
                return Ok((key, Some(url)));
            }
            key = key.wrapping_add(1);
        }
        Ok((key, None))
    }

    /// Forgets the URL with this key. If the next key is taken, its URL may be one that found this key taken: then this
    /// key stays taken.
    pub(super) fn remove(
        &mut self,
        db: &Connection,
        lookup: &mut Lookup<'_>,
        key: i64,
    ) -> Result<(), Failure> {
        let stays = self.get(lookup, key.wrapping_add(1))?.is_some();
        if let Entry::Occupied(mut entry) = self.recent.entry(key) {
            match stays {
                true => entry.insert(FORGOTTEN),
                false => entry.remove(),
            };
            return Ok(());
        }
        let forget = match stays {
            true => "UPDATE url_key SET url = 0 WHERE key = ?1",
            false => "DELETE FROM url_key WHERE key = ?1",
        };
        db.prepare_cached(forget)?.execute([key])?;
        Ok(())
    }

    /// Inserts a URL that may be in the table already.
    fn restore(&mut self, lookup: &mut Lookup<'_>, url: i64, key: i64) -> sql::Result<()> {
        let mut key = key;
        loop {
            match self.get(lookup, key)? {
                Some(other) if other != url => key = key.wrapping_add(1),
                Some(_) => return Ok(()),
                None => {
                    self.recent.insert(key, url);
                    return Ok(());
                }
            }
        }
    }

    /// The URL with this key.
    pub(super) fn get(&self, lookup: &mut Lookup<'_>, key: i64) -> sql::Result<Option<i64>> {
        if let Some(&url) = self.recent.get(&key) {
            return Ok(Some(url));
        }
        let may_have = self
            .filter
            .as_ref()
            .is_none_or(|filter| filter.may_have(key));
        if !self.has_table || !may_have {
            return Ok(None);
        }
        let url = lookup.0.query_row([key], |row| row.get(0)).optional()?;
        self.misses
            .set(self.misses.get() + usize::from(url.is_none()));
        Ok(url)
    }

    /// Adds a URL under a key that is free.
    pub(crate) fn insert(&mut self, key: i64, url: i64) {
        self.recent.insert(key, url);
    }

    /// All URLs up to this one are in the table.
    pub(super) fn keyed(&self) -> i64 {
        self.keyed
    }

    /// Moves keys to the table if there are too many in memory. `last` is the last URL.
    pub(super) fn flush(&mut self, db: &Connection, last: i64) -> sql::Result<()> {
        if self.is_shared {
            return self.flush_all(db, last);
        }
        let known = usize::try_from(last).unwrap_or(usize::MAX);
        let limit = (known / SHARE).clamp(self.least, MOST);
        self.flush_to(db, last, limit)
    }

    /// Moves all keys to the table, so that none has to be hashed when the store is opened.
    pub(super) fn flush_all(&mut self, db: &Connection, last: i64) -> sql::Result<()> {
        self.flush_to(db, last, 0)?;
        (self.keyed, self.covered, self.next) = (last, last, i64::MIN);
        Ok(())
    }

    fn flush_to(&mut self, db: &Connection, last: i64, limit: usize) -> sql::Result<()> {
        let known = usize::try_from(last).unwrap_or(usize::MAX);
        let mut excess = self.recent.len().saturating_sub(limit);
        if excess == 0 {
            return Ok(());
        }
        let mut insert = db.prepare_cached(&sql::upsert("url_key", &["key"], &["url"]))?;
        self.has_table = true;
        if !self.is_shared {
            self.filter_table(db, known - self.recent.len().min(known))?;
        }
        while excess > 0 {
            let from = (Bound::Included(self.next), Bound::Unbounded);
            let batch: Vec<(i64, i64)> = self
                .recent
                .range(from)
                .take(excess)
                .map(|(&key, &url)| (key, url))
                .collect();
            for &(key, url) in &batch {
                insert.execute([key, url])?;
                self.recent.remove(&key);
                if let Some(filter) = &mut self.filter {
                    filter.insert(key);
                }
            }
            excess -= batch.len();
            match batch.last().and_then(|&(key, _)| key.checked_add(1)) {
                Some(next) => self.next = next,
                None => {
                    (self.keyed, self.covered) = (self.covered, last);
                    self.next = i64::MIN;
                }
            }
        }
        Ok(())
    }

    /// Makes the filter if the table, of this many keys, is asked too often without need, and a larger one if the filter
    /// is full.
    fn filter_table(&mut self, db: &Connection, count: usize) -> sql::Result<()> {
        let is_useful = match &self.filter {
            Some(filter) => filter.is_full(),
            None => self.misses.get() > count / 4,
        };
        if !is_useful {
            return Ok(());
        }
        let mut filter = Filter::with_room(count.saturating_mul(2));
        let mut keys = db.prepare_cached("SELECT key FROM url_key")?;
        let mut keys = keys.stream([])?;
        while let Some(row) = keys.next()? {
            filter.insert(row.get(0)?);
        }
        self.filter = Some(filter);
        Ok(())
    }
}

fn has_table(db: &Connection) -> sql::Result<bool> {
    let mut query = db.prepare_cached("SELECT EXISTS (SELECT 1 FROM url_key)")?;
    query.query_row([], |row| row.get(0))
}

/// The URL of a key that is taken by none any more.
const FORGOTTEN: i64 = 0;

/// At most this share of all URLs is in memory: each page of the table then takes some 30 keys at once.
const SHARE: usize = 16;
/// A store with fewer URLs has no table.
const LEAST: usize = 1 << 16;
/// The memory for keys, some 25 bytes each, has a limit.
const MOST: usize = 1 << 20;

/// The statement that reads the table.
pub(super) struct Lookup<'c>(Statement<'c>);

impl<'c> Lookup<'c> {
    pub(super) fn prepare(db: &'c Connection) -> sql::Result<Self> {
        let query = "SELECT url FROM url_key WHERE key = ?1";
        Ok(Self(db.prepare_cached(query)?))
    }
}

/// Where the search for a URL begins: the first 64 bits of its hash. Other URLs may have the same.
pub(crate) fn key_of(text: &str) -> i64 {
    (xxh3_128(text.as_bytes()) >> 64) as i64
}
