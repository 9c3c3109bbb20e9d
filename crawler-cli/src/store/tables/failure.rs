//! What fails inside of the engine, before the file is named.

use std::path::Path;

use rusqlite::ErrorCode;

use crate::store::sql;
use crate::store::{StoreError, StoreErrorKind};

/// Why something could not be read or written.
#[derive(Debug)]
pub(in crate::store) enum Failure {
    Sql(sql::Error),
    /// A value that was not written like this.
    Damaged(String),
    /// Another database.
    Foreign,
    /// A store of this version; the newest one that is known.
    Newer(i64, i64),
    /// An earlier change of the group has failed.
    Abandoned,
    /// Another process uses the file, and does not end that.
    Busy,
    /// A store of this version; the one that is needed.
    Older(i64, i64),
}

impl From<sql::Error> for Failure {
    fn from(error: sql::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error.into())
    }
}

impl Failure {
    /// The error for the store in this file.
    pub(in crate::store) fn at(self, path: &Path) -> StoreError {
        StoreError::new(path, self.kind())
    }

    fn kind(self) -> StoreErrorKind {
        let error = match self {
            Self::Damaged(what) => return StoreErrorKind::Damaged(what),
            Self::Foreign => return StoreErrorKind::Foreign,
            Self::Newer(version, known) => return StoreErrorKind::Newer(version, known),
            Self::Abandoned => return StoreErrorKind::Broken,
            Self::Busy => return StoreErrorKind::InUse(None),
            Self::Older(version, needed) => return StoreErrorKind::Older(version, needed),
            Self::Sql(error) => error,
        };
        let error = match error {
            sql::Error::Sqlite(error) => error,
            sql::Error::Postgres(error) => return StoreErrorKind::Database(error.to_string()),
            // About what was read: a missing row, a value of another type.
            error => return StoreErrorKind::Damaged(error.to_string()),
        };
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                StoreErrorKind::InUse(None)
            }
            Some(ErrorCode::DiskFull) => StoreErrorKind::Full,
            Some(ErrorCode::ReadOnly) => StoreErrorKind::ReadOnly,
            Some(ErrorCode::NotADatabase) => StoreErrorKind::Foreign,
            Some(
                ErrorCode::SystemIoFailure
                | ErrorCode::CannotOpen
                | ErrorCode::OutOfMemory
                | ErrorCode::FileLockingProtocolFailed,
            ) => StoreErrorKind::Disk(error.to_string()),
            Some(ErrorCode::DatabaseCorrupt) => StoreErrorKind::Damaged(error.to_string()),
            Some(_) => StoreErrorKind::Database(error.to_string()),
            // Not from SQLite, but about what was read: a missing table, a value of another type.
            None => StoreErrorKind::Damaged(error.to_string()),
        }
    }
}
