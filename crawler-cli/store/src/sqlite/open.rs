//! Opens databases.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::StoreErrorKind;
use crate::tables::failure::Failure;
use plain::file_lock::FileError;

/// What `PRAGMA application_id` says of a store: "Crsr".
const APPLICATION: i64 = 0x4372_7372;
/// The version of the tables.
pub(super) const VERSION: i64 = 4;
/// The tables.
const SCHEMA: &str = include_str!("schema.sql");
/// The size of the write-ahead log, in pages, from which on it is copied to the database: 32 MiB.
const CHECKPOINT: i64 = 4096;
/// The memory for pages, in KiB.
const CACHE: i64 = 8 * 1024;
/// What the write-ahead log shrinks to, in bytes, when it was larger.
const LOG: i64 = 64 << 20;

impl From<FileError> for StoreErrorKind {
    fn from(error: FileError) -> Self {
        match error {
            FileError::Io(error) => Self::Io(error),
            FileError::InUse(process) => Self::InUse(process),
            FileError::NetworkFileSystem(kind) => Self::NetworkFileSystem(kind),
        }
    }
}

/// Opens the database in a file that exists, and may be empty.
pub(super) fn file(path: &Path) -> Result<Connection, Failure> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(path, flags)?;
    // Readers hold the file only for moments.
    db.busy_timeout(Duration::from_secs(5))?;
    db.pragma_update(None, "page_size", 8192)?;
    let is_empty = is_empty(&db)?;
    db.pragma_update(None, "journal_mode", "WAL")?;
    db.pragma_update(None, "synchronous", "FULL")?;
    db.pragma_update(None, "journal_size_limit", LOG)?;
    db.pragma_update(None, "wal_autocheckpoint", CHECKPOINT)?;
    prepare(&db, is_empty)?;
    Ok(db)
}

/// Opens the database in a file to read it, also while another process writes.
pub(super) fn reader(path: &Path) -> Result<Connection, Failure> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(path, flags)?;
    db.busy_timeout(Duration::from_secs(5))?;
    if is_empty(&db)? {
        // An empty file is no store.
        return Err(Failure::Foreign);
    }
    keep_statements(&db)?;
    Ok(db)
}

/// A database without a name, which is removed when it is closed.
pub(super) fn temporary() -> Result<Connection, Failure> {
    let db = Connection::open("")?;
    db.pragma_update(None, "page_size", 8192)?;
    db.pragma_update(None, "journal_mode", "OFF")?;
    db.pragma_update(None, "synchronous", "OFF")?;
    prepare(&db, true)?;
    Ok(db)
}

fn prepare(db: &Connection, is_empty: bool) -> Result<(), Failure> {
    keep_statements(db)?;
    if is_empty {
        db.execute_batch(&format!(
            "BEGIN IMMEDIATE;
            {SCHEMA}
            PRAGMA application_id = {APPLICATION};
            PRAGMA user_version = {VERSION};
            COMMIT;"
        ))?;
    }
    Ok(())
}

/// Statements are compiled once. Without a stable plan, SQLite compiles one again each time that a value is bound which
/// its plan could depend on, such as a limit.
fn keep_statements(db: &Connection) -> Result<(), Failure> {
    db.pragma_update(None, "cache_size", -CACHE)?;
    db.set_prepared_statement_cache_capacity(64);
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(())
}

/// Whether the database is empty. One that is neither empty nor a store of this version is refused.
fn is_empty(db: &Connection) -> Result<bool, Failure> {
    let number = |name: &str| db.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let tables: i64 = db.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    match (number("application_id")?, number("user_version")?) {
        (0, 0) if tables == 0 => Ok(true),
        (APPLICATION, VERSION) => Ok(false),
        (APPLICATION, version) => Err(Failure::Version(version, VERSION)),
        _ => Err(Failure::Foreign),
    }
}

/// What SQLite itself says about a database.
pub(crate) fn is_sound(db: &rusqlite::Connection) -> Result<(), Failure> {
    let mut query = db.prepare("PRAGMA integrity_check(5)")?;
    let mut rows = query.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(row.get::<_, String>(0)?);
    }
    match &found[..] {
        [ok] if ok == "ok" => Ok(()),
        _ => Err(Failure::Damaged(found.join("; "))),
    }
}
