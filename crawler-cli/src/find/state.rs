//! The state of a search on disk, so that an interrupted search, even by `kill -9`, can continue. An SQLite database
//! with the [journals](super::host_crawl::Change) of the host crawls and the results that are being written.
//!
//! Each iteration of the search is one transaction. Its results are saved before they are written. If the search is
//! interrupted in between, the next run writes them. If it is interrupted while they are written, the next run writes
//! what the output file lacks. If the output is not a file, that cannot be known: the results of the last iteration may
//! be written twice.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fmt, fs};

use rusqlite::{Connection, OptionalExtension as _, params};
use url::Url;

use super::download::{self, Downloads, Wanted};
use super::host_crawl::{Change, HostCrawl, KeptCrawl, ListingProgress, Snapshot};
use super::range::{SizeRange, TimeRange};
use super::summary::Tally;
use crate::store::file::{FileError, FileLock};

/// The state of a search, in an open database.
#[derive(Debug)]
pub struct State {
    path: PathBuf,
    db: Connection,
    /// Whether the database had a search to continue.
    resumed: bool,
    /// Whether the transaction of this iteration has begun.
    in_transaction: bool,
    /// Whether something could not be saved; nothing is saved after that.
    has_failed: bool,
    /// The numbers of this iteration, as JSON.
    tally: Option<String>,
    /// After `db`: the lock ends when the database is closed.
    lock: FileLock,
}

impl State {
    /// Opens or creates the file for the search that `identity` describes. Another search cannot continue from it.
    ///
    /// # Errors
    /// The file cannot be read or written, belongs to another search, or is in use.
    pub fn open(path: &Path, identity: &str) -> Result<Self, StateError> {
        let wrong = |kind| StateError::new(path, kind);
        let sql = |error| StateError::new(path, StateErrorKind::Sqlite(error));
        let lock = FileLock::take(path).map_err(|error| wrong(StateErrorKind::File(error)))?;
        let db = Connection::open(path).map_err(sql)?;
        // Nobody else reads the file before the search is over and removes the file.
        db.busy_timeout(Duration::ZERO).map_err(sql)?;
        db.pragma_update(None, "locking_mode", "EXCLUSIVE")
            .map_err(sql)?;
        db.pragma_update(None, "journal_mode", "WAL").map_err(sql)?;
        // A power failure may lose the last transactions; the work is then repeated, without harm.
        db.pragma_update(None, "synchronous", "NORMAL")
            .map_err(sql)?;
        let version: i64 = db
            .pragma_query_value(None, "user_version", |row| row.get(0))
            .map_err(sql)?;
        let tables: i64 = db
            .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
            .map_err(sql)?;
        match version {
            0 if tables == 0 => db.execute_batch(SCHEMA).map_err(sql)?,
            VERSION => {}
            _ => return Err(wrong(StateErrorKind::Foreign)),
        }
        let stored: Option<String> = db
            .query_row("SELECT identity FROM search", [], |row| row.get(0))
            .optional()
            .map_err(sql)?;
        match &stored {
            Some(stored) if stored != identity => {
                return Err(wrong(StateErrorKind::OtherSearch(stored.clone())));
            }
            Some(_) => {}
            None => {
                let insert = "INSERT INTO search (identity) VALUES (?1)";
                db.execute(insert, [identity]).map_err(sql)?;
            }
        }
        let turns: i64 = db
            .query_row("SELECT count(*) FROM host", [], |row| row.get(0))
            .map_err(sql)?;
        let resumed = stored.is_some() && turns > 0;
        Ok(Self {
            path: path.to_owned(),
            db,
            resumed,
            in_transaction: false,
            has_failed: false,
            tally: None,
            lock,
        })
    }

    /// Whether there is a search to continue.
    pub fn is_resumed(&self) -> bool {
        self.resumed
    }

    /// The last saved results, which may not have been written, and the offset in the output file where their writing
    /// began; `None` if the output is not a file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn unwritten(&self) -> Result<(Vec<u8>, Option<u64>), StateError> {
        let query = "SELECT results, place FROM search";
        let row = |row: &rusqlite::Row<'_>| {
            let place: Option<i64> = row.get(1)?;
            Ok((row.get(0)?, place.and_then(|place| place.try_into().ok())))
        };
        self.db
            .query_row(query, [], row)
            .map_err(|error| self.sql(error))
    }

    /// The URLs of the hosts after the first `first` ones, which have starts. Links led to these hosts.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn further_hosts(&self, first: usize) -> Result<Vec<Url>, StateError> {
        let further = || {
            let query = "SELECT origin FROM host WHERE host >= ?1 ORDER BY host";
            let mut rows = self.db.prepare(query)?;
            let rows = rows.query_map([signed(first as u64)], |row| row.get(0))?;
            rows.collect::<rusqlite::Result<Vec<String>>>()
        };
        let further = further().map_err(|error| self.sql(error))?;
        let url = |text: String| {
            let damaged = |_| StateError::new(&self.path, StateErrorKind::Damaged(text.clone()));
            Url::parse(&text).map_err(damaged)
        };
        further.into_iter().map(url).collect()
    }

    /// The numbers at the end of the last iteration.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub(super) fn tally(&self) -> Result<Tally, StateError> {
        let tally = self
            .db
            .query_row("SELECT tally FROM search", [], |row| row.get(0));
        self.parsed(tally)
    }

    /// The value of a JSON column; the default if it is NULL.
    fn parsed<T: Default + serde::de::DeserializeOwned>(
        &self,
        column: rusqlite::Result<Option<String>>,
    ) -> Result<T, StateError> {
        match column.map_err(|error| self.sql(error))? {
            Some(text) => serde_json::from_str(&text)
                .map_err(|_| StateError::new(&self.path, StateErrorKind::Damaged(text))),
            None => Ok(T::default()),
        }
    }

    /// Restores a host crawl, or starts to save it if it is new. `host` is its index.
    ///
    /// # Errors
    /// The file cannot be read or written, or is damaged.
    pub(super) fn restore(&mut self, host: usize, crawl: &mut HostCrawl) -> Result<(), StateError> {
        match self.saved(host).map_err(|error| self.sql(error))? {
            Some(saved) => {
                let damaged = |text| StateError::new(&self.path, StateErrorKind::Damaged(text));
                crawl.restore(saved).map_err(damaged)
            }
            None => {
                crawl.keep_journal();
                Ok(())
            }
        }
    }

    fn saved(&self, host: usize) -> rusqlite::Result<Option<KeptCrawl>> {
        let host = signed(host as u64);
        let query = "SELECT summit FROM host WHERE host = ?1";
        let snapshot: Option<String> = self
            .db
            .query_row(query, [host], |row| row.get(0))
            .optional()?;
        let Some(snapshot) = snapshot.and_then(|text| serde_json::from_str::<Snapshot>(&text).ok())
        else {
            return Ok(None);
        };
        let mut held = self
            .db
            .prepare("SELECT number, listing, place FROM held WHERE host = ?1 ORDER BY number")?;
        let held = held.query_map([host], |row| {
            let place: String = row.get(2)?;
            let place: ListingProgress = serde_json::from_str(&place).unwrap_or_default();
            Ok((number(row.get(0)?), row.get(1)?, place))
        })?;
        let held = held.collect::<rusqlite::Result<Vec<_>>>()?;
        let mut known = self
            .db
            .prepare("SELECT directory FROM known WHERE host = ?1")?;
        let known = known.query_map([host], |row| {
            let bytes: [u8; 16] = row.get(0)?;
            Ok(u128::from_le_bytes(bytes))
        })?;
        let known = known.collect::<rusqlite::Result<Vec<_>>>()?;
        self.db.execute("UPDATE queued SET spilled = 1 WHERE host = ?1 AND number NOT IN (SELECT number FROM held WHERE host = ?1)", [host])?;
        let count = "SELECT count(*) FROM queued WHERE host = ?1 AND spilled = 1";
        let spilled: i64 = self.db.query_row(count, [host], |row| row.get(0))?;
        Ok(Some(KeptCrawl {
            snapshot,
            held,
            known,
            spilled: number(spilled),
        }))
    }

    /// Takes back up to `wanted` tasks that a host crawl has left on disk.
    pub(super) fn take_back(
        &mut self,
        host: usize,
        wanted: usize,
    ) -> Result<Vec<(u64, String)>, StateError> {
        let taken = self.taken_back(signed(host as u64), wanted);
        taken.map_err(|error| self.give_up(StateErrorKind::Sqlite(error)))
    }

    fn taken_back(&mut self, host: i64, wanted: usize) -> rusqlite::Result<Vec<(u64, String)>> {
        self.begin()?;
        let select = "SELECT number, task FROM queued WHERE host = ?1 AND spilled = 1 ORDER BY number LIMIT ?2";
        let mut select = self.db.prepare_cached(select)?;
        let back = select.query_map(params![host, signed(wanted as u64)], |row| {
            Ok((number(row.get(0)?), row.get::<_, String>(1)?))
        })?;
        let back = back.collect::<rusqlite::Result<Vec<_>>>()?;
        let update = "UPDATE queued SET spilled = 0 WHERE host = ?1 AND number = ?2";
        for (number, _) in &back {
            self.db
                .prepare_cached(update)?
                .execute(params![host, signed(*number)])?;
        }
        Ok(back)
    }

    /// An error for this text in the file, which cannot be understood.
    pub(super) fn damaged(&mut self, text: String) -> StateError {
        self.give_up(StateErrorKind::Damaged(text))
    }

    /// Adds the changes of a host crawl to the transaction. The crawl may then leave tasks on disk only.
    pub(super) fn stage(&mut self, host: usize, crawl: &mut HostCrawl) -> Result<(), StateError> {
        self.staged(host, crawl)
            .map_err(|error| self.give_up(StateErrorKind::Sqlite(error)))
    }

    fn staged(&mut self, host: usize, crawl: &mut HostCrawl) -> rusqlite::Result<()> {
        let changes = crawl.take_changes();
        if changes.is_empty() {
            return Ok(());
        }
        self.begin()?;
        let (db, host) = (&self.db, signed(host as u64));
        for change in changes {
            match change {
                Change::Begun => {}
                Change::Queued(number, text) => {
                    let insert = "INSERT INTO queued (host, number, task) VALUES (?1, ?2, ?3)";
                    db.prepare_cached(insert)?
                        .execute(params![host, signed(number), text])?;
                }
                Change::Done(number) => {
                    for delete in [
                        "DELETE FROM queued WHERE host = ?1 AND number = ?2",
                        "DELETE FROM held WHERE host = ?1 AND number = ?2",
                    ] {
                        db.prepare_cached(delete)?
                            .execute(params![host, signed(number)])?;
                    }
                }
                Change::Listing(number, Some(listing), place) => {
                    let insert =
                        "INSERT INTO held (host, number, listing, place) VALUES (?1, ?2, ?3, ?4)";
                    db.prepare_cached(insert)?.execute(params![
                        host,
                        signed(number),
                        listing,
                        text(&place)
                    ])?;
                }
                Change::Listing(number, None, place) => {
                    let update = "UPDATE held SET place = ?3 WHERE host = ?1 AND number = ?2";
                    db.prepare_cached(update)?.execute(params![
                        host,
                        signed(number),
                        text(&place)
                    ])?;
                }
                Change::Known(fingerprint) => {
                    let insert = "INSERT OR IGNORE INTO known (host, directory) VALUES (?1, ?2)";
                    db.prepare_cached(insert)?
                        .execute(params![host, fingerprint.to_le_bytes()])?;
                }
            }
        }
        for number in crawl.spill() {
            let update = "UPDATE queued SET spilled = 1 WHERE host = ?1 AND number = ?2";
            db.prepare_cached(update)?
                .execute(params![host, signed(number)])?;
        }
        let replace = "INSERT OR REPLACE INTO host (host, origin, summit) VALUES (?1, ?2, ?3)";
        let origin = crawl.origin().as_str();
        db.prepare_cached(replace)?
            .execute(params![host, origin, text(&crawl.snapshot())])?;
        Ok(())
    }

    /// The counts of a host's downloads, and the files that are wanted and not finished.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub(super) fn downloads(
        &self,
        host: usize,
    ) -> Result<(download::Tally, Vec<Wanted>), StateError> {
        let query = "SELECT tally FROM downloads WHERE host = ?1";
        let tally = self
            .db
            .query_row(query, [signed(host as u64)], |row| row.get(0))
            .optional();
        Ok((self.parsed(tally)?, self.wanted(host)?))
    }

    fn wanted(&self, host: usize) -> Result<Vec<Wanted>, StateError> {
        let wanted = || {
            let query = "SELECT url, size_lo, size_hi, time_lo, time_hi FROM wanted WHERE host = ?1 ORDER BY rowid";
            let mut rows = self.db.prepare(query)?;
            let rows = rows.query_map([signed(host as u64)], |row| {
                let size: (Option<i64>, Option<i64>) = (row.get(1)?, row.get(2)?);
                let time: (Option<i64>, Option<i64>) = (row.get(3)?, row.get(4)?);
                Ok(Wanted {
                    url: row.get(0)?,
                    size: size.0.zip(size.1).map(|(lo, hi)| SizeRange {
                        lo: number(lo),
                        hi: number(hi),
                    }),
                    modified: time.0.zip(time.1).map(|(lo, hi)| TimeRange { lo, hi }),
                })
            })?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        wanted().map_err(|error| self.sql(error))
    }

    /// Adds the changes of a host's downloads to the transaction.
    pub(super) fn stage_downloads(
        &mut self,
        host: usize,
        downloads: &mut Downloads,
    ) -> Result<(), StateError> {
        let changes = downloads.take_changes();
        if changes.is_empty() {
            return Ok(());
        }
        let tally = text(&downloads.tally());
        self.staged_downloads(signed(host as u64), &changes, &tally)
            .map_err(|error| self.give_up(StateErrorKind::Sqlite(error)))
    }

    fn staged_downloads(
        &mut self,
        host: i64,
        changes: &[download::Change],
        tally: &str,
    ) -> rusqlite::Result<()> {
        self.begin()?;
        let replace = "INSERT OR REPLACE INTO downloads (host, tally) VALUES (?1, ?2)";
        self.db
            .prepare_cached(replace)?
            .execute(params![host, tally])?;
        for change in changes {
            match change {
                download::Change::Wanted(wanted) => {
                    let insert = "INSERT OR IGNORE INTO wanted (host, url, size_lo, size_hi, time_lo, time_hi) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
                    let (size, time) = (wanted.size, wanted.modified);
                    self.db.prepare_cached(insert)?.execute(params![
                        host,
                        wanted.url,
                        size.map(|size| signed(size.lo)),
                        size.map(|size| signed(size.hi)),
                        time.map(|time| time.lo),
                        time.map(|time| time.hi),
                    ])?;
                }
                download::Change::Over(url) => {
                    let delete = "DELETE FROM wanted WHERE host = ?1 AND url = ?2";
                    self.db
                        .prepare_cached(delete)?
                        .execute(params![host, url])?;
                }
            }
        }
        Ok(())
    }

    /// Sets the numbers of this iteration.
    pub(super) fn stage_tally(&mut self, tally: &Tally) {
        self.tally = Some(text(tally));
    }

    /// Rolls the transaction back. Nothing is saved after that.
    fn give_up(&mut self, kind: StateErrorKind) -> StateError {
        self.has_failed = true;
        if std::mem::take(&mut self.in_transaction) {
            // SQLite may have rolled it back itself.
            let _ = self.db.execute_batch("ROLLBACK");
        }
        StateError::new(&self.path, kind)
    }

    /// Notes that the last results have been written.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn note_written(&mut self) -> Result<(), StateError> {
        let update = "UPDATE search SET results = x'', place = NULL";
        let updated = self.db.execute(update, []);
        updated.map(drop).map_err(|error| self.sql(error))
    }

    fn begin(&mut self) -> rusqlite::Result<()> {
        if !std::mem::replace(&mut self.in_transaction, true) {
            self.db.execute_batch("BEGIN IMMEDIATE")?;
        }
        Ok(())
    }

    /// Commits the transaction. The results are about to be written, at this offset of the output file.
    ///
    /// # Errors
    /// The file cannot be written. The results must not be written then.
    pub fn commit(&mut self, results: &[u8], place: Option<u64>) -> Result<(), StateError> {
        if self.has_failed {
            return Err(StateError::new(&self.path, StateErrorKind::Broken));
        }
        let commit = |own: &mut Self| {
            if !own.in_transaction && results.is_empty() {
                return Ok(());
            }
            own.begin()?;
            let update = "UPDATE search SET results = ?1, place = ?2, tally = coalesce(?3, tally)";
            own.db.prepare_cached(update)?.execute(params![
                results,
                place.map(signed),
                own.tally
            ])?;
            own.in_transaction = false;
            own.db.execute_batch("COMMIT")
        };
        commit(self).map_err(|error| self.sql(error))
    }

    /// Removes the file at the end of the search, so that the next search begins anew.
    ///
    /// # Errors
    /// The file cannot be removed.
    pub fn remove(self) -> Result<(), StateError> {
        let Self { path, db, lock, .. } = self;
        drop(db);
        let removed = fs::remove_file(&path);
        drop(lock);
        removed.map_err(|error| StateError::new(&path, StateErrorKind::Io(error)))
    }

    fn sql(&self, error: rusqlite::Error) -> StateError {
        StateError::new(&self.path, StateErrorKind::Sqlite(error))
    }
}

/// Why a search cannot be saved to a file, or continued from it.
#[derive(Debug)]
pub struct StateError {
    path: PathBuf,
    kind: StateErrorKind,
}

#[derive(Debug)]
enum StateErrorKind {
    Io(io::Error),
    File(FileError),
    Sqlite(rusqlite::Error),
    Foreign,
    OtherSearch(String),
    Damaged(String),
    Broken,
}

impl StateError {
    fn new(path: &Path, kind: StateErrorKind) -> Self {
        Self {
            path: path.to_owned(),
            kind,
        }
    }
}

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.path.display())?;
        match &self.kind {
            StateErrorKind::Io(error) => error.fmt(f),
            StateErrorKind::File(FileError::InUse(_)) => f.write_str("another search is using it"),
            StateErrorKind::File(error) => error.fmt(f),
            StateErrorKind::Sqlite(error)
                if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) =>
            {
                f.write_str("another search is using it")
            }
            StateErrorKind::Sqlite(error)
                if error.sqlite_error_code() == Some(rusqlite::ErrorCode::NotADatabase) =>
            {
                f.write_str("not the state of a search")
            }
            StateErrorKind::Sqlite(error) => error.fmt(f),
            StateErrorKind::Foreign => f.write_str("not the state of a search of this version"),
            StateErrorKind::OtherSearch(identity) => {
                write!(f, "the state of another search: {identity}")
            }
            StateErrorKind::Damaged(text) => write!(f, "damaged: {text}"),
            StateErrorKind::Broken => {
                f.write_str("the progress of the search could not be saved completely")
            }
        }
    }
}

impl std::error::Error for StateError {}

fn text(value: &impl serde::Serialize) -> String {
    // Serialisation cannot fail: there are no maps with other keys than strings.
    serde_json::to_string(value).unwrap_or_default()
}

/// SQLite's integers are signed. Larger numbers do not occur.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn number(signed: i64) -> u64 {
    u64::try_from(signed).unwrap_or(0)
}

const VERSION: i64 = 2;

const SCHEMA: &str = "
    BEGIN;
    CREATE TABLE search (identity TEXT NOT NULL, results BLOB NOT NULL DEFAULT x'', place INTEGER, tally TEXT);
    CREATE TABLE host (host INTEGER PRIMARY KEY, origin TEXT NOT NULL, summit TEXT NOT NULL);
    CREATE TABLE queued (host INTEGER, number INTEGER, task TEXT NOT NULL, spilled INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (host, number)) WITHOUT ROWID;
    CREATE TABLE held (host INTEGER, number INTEGER, listing TEXT NOT NULL, place TEXT NOT NULL,
        PRIMARY KEY (host, number)) WITHOUT ROWID;
    CREATE TABLE known (host INTEGER, directory BLOB, PRIMARY KEY (host, directory)) WITHOUT ROWID;
    CREATE TABLE wanted (host INTEGER NOT NULL, url TEXT NOT NULL, size_lo INTEGER, size_hi INTEGER,
        time_lo INTEGER, time_hi INTEGER, UNIQUE (host, url));
    CREATE TABLE downloads (host INTEGER PRIMARY KEY, tally TEXT NOT NULL);
    PRAGMA user_version = 2;
    COMMIT;
";
