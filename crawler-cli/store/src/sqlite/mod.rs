//! The embedded engine: SQLite, in a file or without one.

mod backup;
mod open;
pub(super) use open::is_sound;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod writer_tests;

#[cfg(test)]
mod file_tests;
#[cfg(test)]
mod plan_tests;

use std::path::Path;

use super::StoreError;
use super::sql::Connection;
use super::tables::failure::Failure;
use super::tables::{Database, Memory};
pub use super::tables::{Database as Sqlite, RejectedFigures};
pub use backup::{Restored, backup, restore};
use plain::file_lock::FileLock;

/// Opens a store in a file to read its tables, also while another process writes.
pub(super) fn reader(path: &Path) -> Result<Connection, Failure> {
    Ok(open::reader(path)?.into())
}

impl Database {
    /// Opens or creates a store in a file, and keeps the file for this process.
    ///
    /// # Errors
    /// The file cannot be read or written, is in use by another process, is no store or that of a newer version, or is on
    /// a network file system.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let lock = FileLock::take(path).map_err(|error| StoreError::new(path, error.into()))?;
        let opened = open::file(path).and_then(|db| {
            let db = Connection::from(db);
            Ok((Memory::open(&db, path, false)?, db))
        });
        let (memory, db) = opened.map_err(|failure| failure.at(path))?;
        Ok(Self::new(path, db, memory, None).with_lock(lock))
    }

    /// Opens a store in a file to read it, also while another process uses it. Changes are refused. A reader that is kept
    /// for long keeps the file from being tidied: open it, read, and drop it.
    ///
    /// # Errors
    /// The file cannot be read, is no store, or that of another version.
    pub fn open_read_only(path: &Path) -> Result<Self, StoreError> {
        let open = || {
            let db = Connection::from(open::reader(path)?);
            let seen = db.changes()?;
            Ok((Memory::open(&db, path, true)?, seen, db))
        };
        let (memory, seen, db) = open().map_err(|failure: Failure| failure.at(path))?;
        Ok(Self::new(path, db, memory, Some(seen)).read_only())
    }

    /// A store that ends with this value. What does not fit in its cache of 8 MiB is in a temporary file without a name,
    /// in the folder that `SQLITE_TMPDIR` or `TMPDIR` names.
    ///
    /// # Errors
    /// There is no memory.
    pub fn temporary() -> Result<Self, StoreError> {
        let opened = open::temporary().and_then(|db| {
            let db = Connection::from(db);
            Ok((Memory::load(&db)?, db))
        });
        let (memory, db) = opened.map_err(|failure| failure.at(Path::new("")))?;
        Ok(Self::new(Path::new(""), db, memory, None))
    }
}
