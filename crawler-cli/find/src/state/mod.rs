//! The state of a search in a file, an SQLite database, so that an interrupted search, even by `kill -9`, can continue. It has
//! the [journals](super::host_crawl::Change) of the host crawls, and the results that are being written.
//!
//! Each iteration of the search is one transaction. Its results are saved before they are written. If the search is
//! interrupted in between, the next run writes them. If it is interrupted while they are written, the next run writes
//! what the output file lacks. If the output is not a file, that cannot be known: the results of the last iteration may
//! be written twice.

use std::path::{Path, PathBuf};

use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension as _, params};
use url::Url;

use super::host_crawl::{HostCrawl, KeptCrawl, ListingProgress, Snapshot};
use super::summary::Tally;
use crawl::reporter::Results;
use plain::file_lock::FileLock;

mod changes;
mod error;
mod file;

use error::Kind as ErrorKind;
pub use error::StateError;

/// The state of a search, in an open database.
#[derive(Debug)]
pub struct State {
    path: PathBuf,
    db: Connection,
    /// Whether the file had a search to continue.
    is_resumed: bool,
    /// Why a change could not be written. The next commit says so.
    failure: Option<rusqlite::Error>,
    /// Whether something could not be saved; nothing is saved after that.
    has_failed: bool,
    /// The numbers of this iteration, as JSON.
    tally: Option<String>,
    /// Released after the database is closed.
    lock: FileLock,
}

impl State {
    /// Opens or creates the file for the search that `identity` describes. Another search cannot continue from it.
    ///
    /// # Errors
    /// The file cannot be read or written, belongs to another search, or is in use.
    pub fn open(path: &Path, identity: &str) -> Result<Self, StateError> {
        let state = file::open(path, identity)?;
        state.retry_failed()?;
        Ok(state)
    }

    /// What an earlier run has given up is asked for again.
    fn retry_failed(&self) -> Result<(), StateError> {
        let damaged = |text| self.error(ErrorKind::Damaged(text));
        let failed = file::failed(&self.db).map_err(|error| self.sql(error))?;
        let mut summits = Vec::new();
        for (host, summit, tasks) in failed {
            let mut snapshot: Snapshot =
                serde_json::from_str(&summit).map_err(|_| damaged(summit))?;
            snapshot.retry(&tasks).map_err(damaged)?;
            summits.push((host, text(&snapshot)));
        }
        let mut tally = self.tally()?;
        // All files that failed are still wanted.
        let failed = std::mem::take(&mut tally.downloads.failed);
        if summits.is_empty() && failed == 0 {
            return Ok(());
        }
        tally.totals.forget_unread();
        self.begin()
            .and_then(|()| file::retry(&self.db, &summits, &text(&tally)))
            .and_then(|()| self.db.execute_batch("COMMIT"))
            .map_err(|error| self.sql(error))
    }

    /// Whether there are URLs that were given up and that a later run can ask for again.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn has_failed(&self) -> Result<bool, StateError> {
        let query = "SELECT EXISTS (SELECT 1 FROM queued WHERE spilled = ?1)";
        let has_failed = self
            .db
            .query_row(query, [changes::FAILED], |row| row.get(0));
        has_failed.map_err(|error| self.sql(error))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether there is a search to continue.
    pub fn is_resumed(&self) -> bool {
        self.is_resumed
    }

    /// The last saved results, which may not have been written, and the offset in the output file where their writing
    /// began; `None` if the output is not a file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn unwritten(&self) -> Result<(Vec<u8>, Option<u64>), StateError> {
        let query = "SELECT results, place FROM search";
        let unwritten = self.db.query_row(query, [], |row| {
            let place: Option<i64> = row.get(1)?;
            Ok((row.get(0)?, place.and_then(|place| place.try_into().ok())))
        });
        unwritten.map_err(|error| self.sql(error))
    }

    /// The URLs of the hosts after the first `first` ones, which have starts. Links led to these hosts.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn further_hosts(&self, first: usize) -> Result<Vec<Url>, StateError> {
        let further = || {
            let query = "SELECT origin FROM host WHERE host >= ?1 ORDER BY host";
            rows(&self.db, query, [signed(first as u64)], |row| {
                row.get::<_, String>(0)
            })
        };
        let further = further().map_err(|error| self.sql(error))?;
        further.iter().map(|text| self.url(text)).collect()
    }

    fn url(&self, text: &str) -> Result<Url, StateError> {
        Url::parse(text).map_err(|_| self.error(ErrorKind::Damaged(text.to_owned())))
    }

    /// The numbers at the end of the last iteration.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub(super) fn tally(&self) -> Result<Tally, StateError> {
        let query = "SELECT tally FROM search";
        let tally: rusqlite::Result<Option<String>> =
            self.db.query_row(query, [], |row| row.get(0));
        match tally.map_err(|error| self.sql(error))? {
            Some(text) => {
                serde_json::from_str(&text).map_err(|_| self.error(ErrorKind::Damaged(text)))
            }
            None => Ok(Tally::default()),
        }
    }

    /// What was saved of a host; `None`: the host is new. `host` is its number here.
    ///
    /// # Errors
    /// The database cannot be read or written, or is damaged.
    pub(super) fn load(&self, host: i64) -> Result<Option<KeptCrawl>, StateError> {
        self.saved(host).map_err(|error| self.sql(error))
    }

    fn saved(&self, host: i64) -> rusqlite::Result<Option<KeptCrawl>> {
        let query = "SELECT summit FROM host WHERE host = ?1";
        let snapshot = self
            .db
            .query_row(query, [host], |row| row.get::<_, String>(0));
        let snapshot = snapshot.optional()?;
        let Some(snapshot) = snapshot else {
            return Ok(None);
        };
        let snapshot: Snapshot = json(0, &snapshot)?;
        let query = "SELECT number, listing, place FROM held WHERE host = ?1 ORDER BY number";
        let held = rows(&self.db, query, [host], |row| {
            let place: String = row.get(2)?;
            let place: ListingProgress = json(2, &place)?;
            Ok((number(row.get(0)?), row.get(1)?, place))
        })?;
        let query = "SELECT directory FROM known WHERE host = ?1";
        let known = rows(&self.db, query, [host], |row| {
            let bytes: [u8; 16] = row.get(0)?;
            Ok(u128::from_le_bytes(bytes))
        })?;
        let query =
            "SELECT number, task FROM queued WHERE host = ?1 AND spilled = ?2 ORDER BY number";
        let files = rows(&self.db, query, [host, changes::WANTED], |row| {
            Ok((number(row.get(0)?), row.get(1)?))
        })?;
        let spill = "UPDATE queued SET spilled = 1 WHERE host = ?1 AND spilled = 0 \
             AND number NOT IN (SELECT number FROM held WHERE host = ?1)";
        self.db.prepare_cached(spill)?.execute([host])?;
        let count = "SELECT count(*) FROM queued WHERE host = ?1 AND spilled = 1";
        let spilled: i64 = self.db.query_row(count, [host], |row| row.get(0))?;
        Ok(Some(KeptCrawl {
            snapshot,
            held,
            known,
            files,
            spilled: number(spilled),
        }))
    }

    /// Takes back up to `wanted` tasks that a host crawl has left on disk.
    pub(super) fn take_back(
        &mut self,
        host: i64,
        wanted: usize,
    ) -> Result<Vec<(u64, String)>, StateError> {
        self.begin()
            .and_then(|()| self.taken_back(host, wanted))
            .map_err(|error| self.fail(error))
    }

    fn taken_back(&self, host: i64, wanted: usize) -> rusqlite::Result<Vec<(u64, String)>> {
        let select = "SELECT number, task FROM queued WHERE host = ?1 AND spilled = 1 ORDER BY number LIMIT ?2";
        let row = [host, signed(wanted as u64)];
        let back = rows(&self.db, select, row, |row| {
            Ok((number(row.get(0)?), row.get::<_, String>(1)?))
        })?;
        if let Some((last, _)) = back.last() {
            let update =
                "UPDATE queued SET spilled = 0 WHERE host = ?1 AND spilled = 1 AND number <= ?2";
            let row = [host, signed(*last)];
            self.db.prepare_cached(update)?.execute(row)?;
        }
        Ok(back)
    }

    /// An error for this text in the database, which cannot be understood.
    pub(super) fn damaged(&mut self, text: String) -> StateError {
        self.has_failed = true;
        self.error(ErrorKind::Damaged(text))
    }

    /// Writes the changes of a host, for the next [commit](Self::commit). The crawl may then leave tasks on disk only.
    pub(super) fn stage(&mut self, host: i64, crawl: &mut HostCrawl) {
        let changes = crawl.take_changes();
        if self.failure.is_some() || changes.is_empty() {
            return;
        }
        let mut write = || {
            self.begin()?;
            for change in &changes {
                changes::write(&self.db, host, change)?;
            }
            let spilled = crawl.spill();
            changes::write_host(&self.db, host, crawl, &spilled)
        };
        let written = write();
        self.failure = written.err();
    }

    /// Begins the transaction of the next commit, if that is necessary.
    fn begin(&self) -> rusqlite::Result<()> {
        match self.db.is_autocommit() {
            true => self.db.execute_batch("BEGIN"),
            false => Ok(()),
        }
    }

    /// Sets the numbers of this iteration.
    pub(super) fn stage_tally(&mut self, tally: &Tally) {
        self.tally = Some(text(tally));
    }

    /// Notes that the last results have been written; the next ones come at this offset of the output file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn note_written(&mut self, place: Option<u64>) -> Result<(), StateError> {
        let update = "UPDATE search SET results = x'', place = ?1";
        changes::execute(&self.db, update, [place.map(signed)]).map_err(|error| self.sql(error))
    }

    /// Saves what was staged, and the results, which are about to be written.
    ///
    /// # Errors
    /// The database cannot be written. The results must not be written then.
    pub fn commit(&mut self, results: &Results<'_>) -> Result<(), StateError> {
        if self.has_failed {
            return Err(self.error(ErrorKind::Broken));
        }
        if let Some(error) = self.failure.take() {
            return Err(self.fail(error));
        }
        if self.db.is_autocommit() && results.bytes.is_empty() {
            return Ok(());
        }
        let update = "UPDATE search SET results = ?1, place = ?2, tally = coalesce(?3, tally)";
        let row = params![results.bytes, results.place.map(signed), self.tally];
        self.begin()
            .and_then(|()| changes::execute(&self.db, update, row))
            .and_then(|()| self.db.execute_batch("COMMIT"))
            .map_err(|error| self.fail(error))
    }

    /// Removes the file at the end of the search, so that the next search begins anew.
    ///
    /// # Errors
    /// The file cannot be removed.
    pub fn remove(self) -> Result<(), StateError> {
        drop(self.db);
        let removed = std::fs::remove_file(&self.path);
        drop(self.lock);
        removed.map_err(|error| StateError::new(&self.path, ErrorKind::Io(error)))
    }

    /// Nothing is saved after this error.
    fn fail(&mut self, error: rusqlite::Error) -> StateError {
        self.has_failed = true;
        self.sql(error)
    }

    fn sql(&self, error: rusqlite::Error) -> StateError {
        self.error(ErrorKind::Sql(error))
    }

    fn error(&self, kind: ErrorKind) -> StateError {
        StateError::new(&self.path, kind)
    }
}

/// The value of a JSON column with this number. One that is damaged is an error, for what it stands for would be lost.
fn json<T: serde::de::DeserializeOwned>(column: usize, text: &str) -> rusqlite::Result<T> {
    serde_json::from_str(text).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(error))
    })
}

/// All rows of a query.
fn rows<T>(
    db: &Connection,
    query: &str,
    params: impl rusqlite::Params,
    read: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    db.prepare_cached(query)?.query_map(params, read)?.collect()
}

fn text(value: &impl serde::Serialize) -> String {
    // Serialisation cannot fail: there are no maps with other keys than strings.
    serde_json::to_string(value).unwrap_or_default()
}

/// The integers of databases are signed. Larger numbers do not occur.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn number(signed: i64) -> u64 {
    u64::try_from(signed).unwrap_or(0)
}
