//! The state of a search in a file, an SQLite database.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::OptionalExtension as _;

use super::error::{Kind, StateError};
use super::signed;
use super::staged::{FAILED, Staged};
use crate::crawl::reporter::Results;
use crate::store::file::FileLock;
use crate::store::sql::{self, Connection, params, upsert};

/// A file with the state of a search.
#[derive(Debug)]
pub(super) struct Kept {
    path: PathBuf,
    /// Whether the file had a search to continue.
    pub(super) is_resumed: bool,
    lock: FileLock,
}

impl Kept {
    /// Removes the file, whose database is closed.
    pub(super) fn remove(self) -> io::Result<()> {
        let removed = fs::remove_file(&self.path);
        drop(self.lock);
        removed
    }
}

/// Opens or makes the file.
pub(super) fn open(path: &Path, identity: &str) -> Result<(Connection, Kept), StateError> {
    let place = path.display().to_string();
    let wrong = |kind| StateError::new(&place, kind);
    let sql = |error: rusqlite::Error| wrong(Kind::Store(sql::Error::from(error).at(&place)));
    let lock = FileLock::take(path).map_err(|error| wrong(Kind::File(error)))?;
    let db = rusqlite::Connection::open(path).map_err(sql)?;
    // Nobody else reads the file before the search is over and removes the file.
    db.busy_timeout(Duration::ZERO).map_err(sql)?;
    db.pragma_update(None, "locking_mode", "EXCLUSIVE")
        .map_err(sql)?;
    let version: i64 = db
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .map_err(sql)?;
    let query = "SELECT count(*), count(*) FILTER (WHERE name = 'search') FROM sqlite_schema";
    let (tables, own): (i64, i64) = db
        .query_row(query, [], |row| Ok((row.get(0)?, row.get(1)?)))
        .map_err(sql)?;
    // Nothing is written into a file of somebody else.
    let is_new = version == 0 && tables == 0;
    if !is_new && (version != VERSION || own == 0) {
        return Err(wrong(Kind::Foreign));
    }
    db.pragma_update(None, "journal_mode", "WAL").map_err(sql)?;
    // A power failure may lose the last transactions; the work is then repeated, without harm.
    db.pragma_update(None, "synchronous", "NORMAL")
        .map_err(sql)?;
    if is_new {
        db.execute_batch(SCHEMA).map_err(sql)?;
    }
    let stored: Option<String> = db
        .query_row("SELECT identity FROM search", [], |row| row.get(0))
        .optional()
        .map_err(sql)?;
    match &stored {
        Some(stored) if stored != identity => {
            return Err(wrong(Kind::OtherSearch(stored.clone())));
        }
        Some(_) => {}
        None => {
            let insert = "INSERT INTO search (identity) VALUES (?1)";
            db.execute(insert, [identity]).map_err(sql)?;
        }
    }
    let hosts: i64 = db
        .query_row("SELECT count(*) FROM host", [], |row| row.get(0))
        .map_err(sql)?;
    let kept = Kept {
        path: path.to_owned(),
        is_resumed: stored.is_some() && hosts > 0,
        lock,
    };
    Ok((db.into(), kept))
}

/// The last saved results, and where their writing began.
pub(super) fn unwritten(db: &Connection) -> sql::Result<(Vec<u8>, Option<u64>)> {
    db.query_row("SELECT results, place FROM search", [], |row| {
        let place: Option<i64> = row.get(1)?;
        Ok((row.get(0)?, place.and_then(|place| place.try_into().ok())))
    })
}

pub(super) fn note_written(db: &Connection, place: Option<u64>) -> sql::Result<()> {
    let update = "UPDATE search SET results = x'', place = ?1";
    let place = place.map(signed);
    db.prepare_cached(update)?.execute(params![place]).map(drop)
}

/// What an earlier run has given up.
pub(super) struct Failed {
    /// The hosts with tasks that failed: their number, their summit, and the tasks.
    pub(super) hosts: Vec<(i64, String, Vec<String>)>,
    /// The counts of all downloads, with the numbers of their hosts.
    pub(super) downloads: Vec<(i64, String)>,
}

pub(super) fn failed(db: &Connection) -> sql::Result<Failed> {
    let query = "SELECT DISTINCT h.host, h.summit FROM host h JOIN queued q ON q.host = h.host AND q.spilled = ?1";
    let hosts: Vec<(i64, String)> = db
        .prepare_cached(query)?
        .query_all([FAILED], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let query = "SELECT task FROM queued WHERE host = ?1 AND spilled = ?2";
    let mut tasks = db.prepare_cached(query)?;
    let hosts = hosts.into_iter().map(|(host, summit)| {
        let tasks = tasks.query_all([host, FAILED], |row| row.get(0))?;
        Ok((host, summit, tasks))
    });
    let hosts = hosts.collect::<sql::Result<_>>()?;
    let downloads = db
        .prepare_cached("SELECT host, tally FROM downloads")?
        .query_all([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(Failed { hosts, downloads })
}

pub(super) fn has_failed(db: &Connection) -> sql::Result<bool> {
    let query =
        "SELECT EXISTS (SELECT 1 FROM queued WHERE spilled = ?1) OR EXISTS (SELECT 1 FROM wanted)";
    db.query_row(query, [FAILED], |row| row.get::<i64>(0))
        .map(|found| found != 0)
}

/// Makes tasks that failed ordinary tasks, and writes the counts without their failures.
pub(super) fn retry(
    db: &Connection,
    summits: &[(i64, String)],
    files: &[(i64, String)],
    tally: &str,
) -> sql::Result<()> {
    db.prepare_cached("UPDATE queued SET spilled = 1 WHERE spilled = ?1")?
        .execute([FAILED])?;
    for (statement, rows) in [
        ("UPDATE host SET summit = ?2 WHERE host = ?1", summits),
        ("UPDATE downloads SET tally = ?2 WHERE host = ?1", files),
    ] {
        for (host, text) in rows {
            db.prepare_cached(statement)?.execute(params![host, text])?;
        }
    }
    let update = "UPDATE search SET tally = ?1";
    db.prepare_cached(update)?.execute(params![tally])?;
    Ok(())
}

/// Writes what a file alone has into the open transaction.
pub(super) fn write(
    db: &Connection,
    staged: &Staged,
    results: &Results<'_>,
    tally: Option<&str>,
) -> sql::Result<()> {
    let replace = upsert("host", &["host"], &["origin", "summit"]);
    for (host, state) in &staged.hosts {
        db.prepare_cached(&replace)?
            .execute(params![host, state.origin, state.summit])?;
    }
    let update = "UPDATE search SET results = ?1, place = ?2, tally = coalesce(?3, tally)";
    let place = results.place.map(signed);
    db.prepare_cached(update)?
        .execute(params![results.bytes, place, tally])?;
    Ok(())
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
