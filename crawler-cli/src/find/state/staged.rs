//! What an iteration of a search has changed, until the transaction that saves it.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{Connection, ToSql, params, params_from_iter};

use super::{signed, text};
use crate::find::download::{self, Downloads};
use crate::find::host_crawl::{Change, HostCrawl};

/// A task: the number of its host, and its own.
type Key = (i64, i64);

/// The changes of an iteration.
#[derive(Debug, Default)]
pub(super) struct Staged {
    queued: BTreeMap<Key, String>,
    /// Tasks that are done, and were saved before.
    done: BTreeSet<Key>,
    /// Tasks that a later run does again.
    failed: BTreeMap<Key, String>,
    /// Partly handled listings that are new: their texts and places.
    held: BTreeMap<Key, (String, String)>,
    /// The places of listings that were saved before.
    places: BTreeMap<Key, String>,
    known: BTreeSet<(i64, [u8; 16])>,
    /// Tasks that are in the database only.
    spilled: BTreeSet<Key>,
    /// The hosts that have changed, and how far they are.
    hosts: BTreeMap<i64, HostState>,
    files: Vec<(i64, download::Change)>,
}

/// How far a host is.
#[derive(Clone, Debug, Eq, PartialEq)]
struct HostState {
    origin: String,
    summit: String,
}

impl Staged {
    pub(super) fn is_empty(&self) -> bool {
        self.hosts.is_empty() && self.files.is_empty()
    }

    /// Adds the changes of a host crawl.
    pub(super) fn add_crawl(&mut self, host: i64, crawl: &mut HostCrawl) {
        let changes = crawl.take_changes();
        if changes.is_empty() {
            return;
        }
        for change in changes {
            self.add(host, change);
        }
        let spilled = crawl.spill().into_iter();
        self.spilled
            .extend(spilled.map(|number| (host, signed(number))));
        let state = HostState {
            origin: crawl.origin().as_str().to_owned(),
            summit: text(&crawl.snapshot()),
        };
        self.hosts.insert(host, state);
    }

    fn add(&mut self, host: i64, change: Change) {
        match change {
            Change::Begun => {}
            Change::Queued(number, task) => {
                self.queued.insert((host, signed(number)), task);
            }
            Change::Done(number) => {
                let key = (host, signed(number));
                self.held.remove(&key);
                self.places.remove(&key);
                self.spilled.remove(&key);
                if self.queued.remove(&key).is_none() {
                    self.done.insert(key);
                }
            }
            Change::Listing(number, Some(listing), place) => {
                let held = (listing, text(&place));
                self.held.insert((host, signed(number)), held);
            }
            Change::Listing(number, None, place) => {
                let key = (host, signed(number));
                match self.held.get_mut(&key) {
                    Some(held) => held.1 = text(&place),
                    None => drop(self.places.insert(key, text(&place))),
                }
            }
            Change::Failed(number, task) => {
                self.failed.insert((host, signed(number)), task);
            }
            Change::Known(fingerprint) => {
                self.known.insert((host, fingerprint.to_le_bytes()));
            }
        }
    }

    /// Adds the changes of a host's downloads.
    pub(super) fn add_downloads(&mut self, host: i64, downloads: &mut Downloads) {
        let changes = downloads.take_changes();
        self.files
            .extend(changes.into_iter().map(|change| (host, change)));
    }

    /// Writes the tasks, listings and files into the open transaction.
    pub(super) fn write(&self, db: &Connection) -> rusqlite::Result<()> {
        let replace = "INSERT OR REPLACE INTO host (host, origin, summit) VALUES (?1, ?2, ?3)";
        for (host, state) in &self.hosts {
            db.prepare_cached(replace)?
                .execute(params![host, state.origin, state.summit])?;
        }
        let queued: Vec<_> = self.queued.iter().collect();
        insert(db, "queued (host, number, task)", &queued, |row| {
            let ((host, number), task) = row;
            vec![host, number, *task]
        })?;
        let failed: Vec<_> = self.failed.iter().collect();
        insert(db, "queued (host, number, task, spilled)", &failed, |row| {
            let ((host, number), task) = row;
            vec![host, number, *task, &FAILED]
        })?;
        let held: Vec<_> = self.held.iter().collect();
        insert(db, "held (host, number, listing, place)", &held, |row| {
            let ((host, number), (listing, place)) = row;
            vec![host, number, listing, place]
        })?;
        for ((host, number), place) in &self.places {
            let update = "UPDATE held SET place = ?3 WHERE host = ?1 AND number = ?2";
            db.prepare_cached(update)?
                .execute(params![host, number, place])?;
        }
        let known: Vec<_> = self.known.iter().collect();
        insert(db, "known (host, directory)", &known, |row| {
            vec![&row.0, &row.1]
        })?;
        for_numbers(db, &self.done, "DELETE FROM queued")?;
        for_numbers(db, &self.done, "DELETE FROM held")?;
        for_numbers(db, &self.spilled, "UPDATE queued SET spilled = 1")?;
        self.write_files(db)
    }

    fn write_files(&self, db: &Connection) -> rusqlite::Result<()> {
        for (host, change) in &self.files {
            match change {
                download::Change::Wanted(wanted) => {
                    let (size, time) = (wanted.size, wanted.modified);
                    let insert = "INSERT INTO wanted (host, url, size_lo, size_hi, time_lo, time_hi) \
                         VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING";
                    db.prepare_cached(insert)?.execute(params![
                        host,
                        wanted.url,
                        size.map(|size| signed(size.lo)),
                        size.map(|size| signed(size.hi)),
                        time.map(|time| time.lo),
                        time.map(|time| time.hi),
                    ])?;
                }
                download::Change::Failed => {}
                download::Change::Over(url) => {
                    let delete = "DELETE FROM wanted WHERE host = ?1 AND url = ?2";
                    db.prepare_cached(delete)?.execute(params![host, url])?;
                }
            }
        }
        Ok(())
    }
}

/// In the column `spilled`: a task that a later run does again.
pub(super) const FAILED: i64 = 2;

/// Inserts rows into the columns of `table`, unless they are there.
fn insert<'r, R>(
    db: &Connection,
    table: &str,
    rows: &'r [R],
    values: impl Fn(&'r R) -> Vec<&'r dyn ToSql>,
) -> rusqlite::Result<()> {
    in_chunks(rows, |rows| {
        let rows: Vec<Vec<&dyn ToSql>> = rows.iter().map(&values).collect();
        let width = rows.first().map_or(0, Vec::len);
        let row = |at: usize| format!("({})", places(at * width + 1, width));
        let tuples: Vec<String> = (0..rows.len()).map(row).collect();
        let tuples = tuples.join(", ");
        let insert = format!("INSERT INTO {table} VALUES {tuples} ON CONFLICT DO NOTHING");
        let values: Vec<&dyn ToSql> = rows.into_iter().flatten().collect();
        db.prepare_cached(&insert)?.execute(values.as_slice())?;
        Ok(())
    })
}

/// Runs a statement for the rows of these hosts with these numbers.
fn for_numbers(db: &Connection, keys: &BTreeSet<Key>, statement: &str) -> rusqlite::Result<()> {
    let keys: Vec<&Key> = keys.iter().collect();
    for of_host in keys.chunk_by(|a, b| a.0 == b.0) {
        in_chunks(of_host, |keys| {
            let numbers = places(2, keys.len());
            let statement = format!("{statement} WHERE host = ?1 AND number IN ({numbers})");
            let host = keys.iter().map(|key| key.0).take(1);
            let values: Vec<i64> = host.chain(keys.iter().map(|key| key.1)).collect();
            db.prepare_cached(&statement)?
                .execute(params_from_iter(values))?;
            Ok(())
        })?;
    }
    Ok(())
}

/// `?first, …`: so many.
fn places(first: usize, count: usize) -> String {
    let places: Vec<String> = (first..first + count).map(|at| format!("?{at}")).collect();
    places.join(", ")
}

/// Runs a statement for many rows at a time, with few different numbers of rows: each is another statement.
fn in_chunks<'r, R>(
    mut rows: &'r [R],
    mut run: impl FnMut(&'r [R]) -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    for size in [64, 8, 1] {
        while rows.len() >= size {
            let (chunk, rest) = rows.split_at(size);
            run(chunk)?;
            rows = rest;
        }
    }
    Ok(())
}
