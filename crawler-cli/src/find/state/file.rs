//! The state of a search in a file, an SQLite database.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::OptionalExtension as _;

use super::error::{Kind, StateError};
use super::signed;
use super::staged::Staged;
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
        _ => return Err(wrong(Kind::Foreign)),
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

pub(super) fn note_written(db: &Connection) -> sql::Result<()> {
    let update = "UPDATE search SET results = x'', place = NULL";
    db.prepare_cached(update)?.execute([]).map(drop)
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
