//! The file of the state of a search: its tables, and statements about the search as a whole.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension as _, params};

use super::changes::FAILED;
use super::error::{Kind, StateError};
use super::{State, rows};
use plain::file_lock::FileLock;

/// Opens or makes the file.
pub(super) fn open(path: &Path, identity: &str) -> Result<State, StateError> {
    let wrong = |kind| StateError::new(path, kind);
    let sql = |error| wrong(Kind::Sql(error));
    let lock = FileLock::take(path).map_err(|error| wrong(Kind::File(error)))?;
    let db = Connection::open(path).map_err(sql)?;
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
    Ok(State {
        path: path.to_owned(),
        db,
        is_resumed: stored.is_some() && hosts > 0,
        failure: None,
        has_failed: false,
        tally: None,
        lock,
    })
}

/// A host with tasks that failed: its number, its summit, and the tasks.
type FailedHost = (i64, String, Vec<String>);

/// What an earlier run has given up.
pub(super) fn failed(db: &Connection) -> rusqlite::Result<Vec<FailedHost>> {
    let query = "SELECT DISTINCT h.host, h.summit FROM host h JOIN queued q ON q.host = h.host AND q.spilled = ?1";
    let hosts: Vec<(i64, String)> =
        rows(db, query, [FAILED], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let query = "SELECT task FROM queued WHERE host = ?1 AND spilled = ?2";
    let hosts = hosts.into_iter().map(|(host, summit)| {
        let tasks = rows(db, query, [host, FAILED], |row| row.get(0))?;
        Ok((host, summit, tasks))
    });
    hosts.collect()
}

/// Makes tasks that failed ordinary tasks, and writes the counts without their failures.
pub(super) fn retry(
    db: &Connection,
    summits: &[(i64, String)],
    tally: &str,
) -> rusqlite::Result<()> {
    db.prepare_cached("UPDATE queued SET spilled = 1 WHERE spilled = ?1")?
        .execute([FAILED])?;
    for (host, text) in summits {
        db.prepare_cached("UPDATE host SET summit = ?2 WHERE host = ?1")?
            .execute(params![host, text])?;
    }
    let update = "UPDATE search SET tally = ?1";
    db.prepare_cached(update)?.execute(params![tally])?;
    Ok(())
}

const VERSION: i64 = 6;

const SCHEMA: &str = "
    BEGIN;
    CREATE TABLE search (identity TEXT NOT NULL, results BLOB NOT NULL DEFAULT x'', place INTEGER, tally TEXT);
    CREATE TABLE host (host INTEGER PRIMARY KEY, origin TEXT NOT NULL, summit TEXT NOT NULL);
    CREATE TABLE queued (host INTEGER, number INTEGER, task TEXT NOT NULL, spilled INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (host, number)) WITHOUT ROWID;
    CREATE TABLE held (host INTEGER, number INTEGER, listing TEXT NOT NULL, place TEXT NOT NULL,
        PRIMARY KEY (host, number)) WITHOUT ROWID;
    CREATE TABLE known (host INTEGER, directory BLOB, PRIMARY KEY (host, directory)) WITHOUT ROWID;
    PRAGMA user_version = 6;
    COMMIT;
";
