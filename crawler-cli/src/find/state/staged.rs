//! What an iteration of a search has changed, until the transaction that saves it. Nothing here was sent to the database,
//! so that a transaction can be tried again.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::ToSql;

use super::{signed, text};
use crate::find::download::{self, Downloads};
use crate::find::host_crawl::{Change, HostCrawl};
use crate::store::sql::{self, Connection, params};

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
    pub(super) hosts: BTreeMap<i64, HostState>,
    files: Vec<(i64, download::Change)>,
    file_tallies: BTreeMap<i64, String>,
    /// Links to hosts that other processes have: the URL of the host's root, and the link.
    pub(super) sent: BTreeSet<(String, String)>,
    /// Links from other processes that were handled.
    pub(super) received: Vec<i64>,
}

/// How far a host is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct HostState {
    pub(super) origin: String,
    pub(super) summit: String,
    /// Whether there is something left to do.
    pub(super) is_open: bool,
}

impl Staged {
    pub(super) fn is_empty(&self) -> bool {
        self.hosts.is_empty()
            && self.file_tallies.is_empty()
            && self.sent.is_empty()
            && self.received.is_empty()
    }

    /// Adds the changes of a host crawl, or that it has none, if `always`. Returns whether something was added.
    pub(super) fn add_crawl(
        &mut self,
        host: i64,
        crawl: &mut HostCrawl,
        is_open: bool,
        always: bool,
    ) -> bool {
        let changes = crawl.take_changes();
        if changes.is_empty() && !always {
            return false;
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
            is_open,
        };
        self.hosts.insert(host, state);
        true
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

    /// Adds the changes of a host's downloads. Returns whether there were any.
    pub(super) fn add_downloads(&mut self, host: i64, downloads: &mut Downloads) -> bool {
        let changes = downloads.take_changes();
        if changes.is_empty() {
            return false;
        }
        self.file_tallies.insert(host, text(&downloads.tally()));
        self.files
            .extend(changes.into_iter().map(|change| (host, change)));
        true
    }

    /// Writes the tasks, listings and files into the open transaction.
    pub(super) fn write(&self, db: &Connection) -> sql::Result<()> {
        let queued: Vec<_> = self.queued.iter().collect();
        insert(db, "queued (host, number, task)", &queued, |row| {
            let ((host, number), task) = row;
            vec![host, number, *task]
        })?;
        // Processes that share a search ask for nothing twice.
        if !db.is_shared() {
            let failed: Vec<_> = self.failed.iter().collect();
            insert(db, "queued (host, number, task, spilled)", &failed, |row| {
                let ((host, number), task) = row;
                vec![host, number, *task, &FAILED]
            })?;
        }
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

    fn write_files(&self, db: &Connection) -> sql::Result<()> {
        let tally = sql::upsert("downloads", &["host"], &["tally"]);
        for (host, text) in &self.file_tallies {
            db.prepare_cached(&tally)?.execute(params![host, text])?;
        }
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
                download::Change::Failed(_) if !db.is_shared() => {}
                download::Change::Over(url) | download::Change::Failed(url) => {
                    // The index of PostgreSQL has digests: a URL can be too long for an index.
                    let delete = match db.is_shared() {
                        true => {
                            "DELETE FROM wanted WHERE host = ?1 AND url = ?2 AND md5(url) = md5(?2)"
                        }
                        false => "DELETE FROM wanted WHERE host = ?1 AND url = ?2",
                    };
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
pub(super) fn insert<'r, R>(
    db: &Connection,
    table: &str,
    rows: &'r [R],
    values: impl Fn(&'r R) -> Vec<&'r dyn ToSql>,
) -> sql::Result<()> {
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
fn for_numbers(db: &Connection, keys: &BTreeSet<Key>, statement: &str) -> sql::Result<()> {
    let keys: Vec<&Key> = keys.iter().collect();
    for of_host in keys.chunk_by(|a, b| a.0 == b.0) {
        in_chunks(of_host, |keys| {
            let numbers = places(2, keys.len());
            let statement = format!("{statement} WHERE host = ?1 AND number IN ({numbers})");
            let host = keys.iter().map(|key| key.0).take(1);
            let values: Vec<i64> = host.chain(keys.iter().map(|key| key.1)).collect();
            db.prepare_cached(&statement)?.execute(values.as_slice())?;
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
    mut run: impl FnMut(&'r [R]) -> sql::Result<()>,
) -> sql::Result<()> {
    for size in [64, 8, 1] {
        while rows.len() >= size {
            let (chunk, rest) = rows.split_at(size);
            run(chunk)?;
            rows = rest;
        }
    }
    Ok(())
}
