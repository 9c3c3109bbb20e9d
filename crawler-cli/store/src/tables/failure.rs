//! What fails inside of the engine, before the file is named.

use std::path::Path;

use rusqlite::ErrorCode;

use postgres::error::SqlState;

use crate::sql;
use crate::{StoreError, StoreErrorKind};

/// Why something could not be read or written.
#[derive(Debug)]
pub(crate) enum Failure {
    Sql(sql::Error),
    /// A value that was not written like this.
    Damaged(String),
    /// Another database.
    Foreign,
    /// A store of this version; the one that is needed.
    Version(i64, i64),
    /// An earlier change of the group has failed.
    Abandoned,
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
    pub(crate) fn at(self, path: &Path) -> StoreError {
        StoreError::new(path, self.kind())
    }

    fn kind(self) -> StoreErrorKind {
        let error = match self {
            Self::Damaged(what) => return StoreErrorKind::Damaged(what),
            Self::Foreign => return StoreErrorKind::Foreign,
            Self::Version(version, needed) => return StoreErrorKind::Version(version, needed),
            Self::Abandoned => return StoreErrorKind::Broken,
            Self::Sql(error) => error,
        };
        let error = match error {
            sql::Error::Sqlite(error) => error,
            sql::Error::Postgres(error) => return of_server(&error),
            sql::Error::Connect(kind) => return kind,
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

/// What an error of PostgreSQL, or of the connection to it, means.
pub(crate) fn of_server(error: &postgres::Error) -> StoreErrorKind {
    let Some(told) = error.as_db_error() else {
        return match error.is_closed() || is_of_the_network(error) {
            true => StoreErrorKind::Away(with_sources(error)),
            false => StoreErrorKind::Database(with_sources(error)),
        };
    };
    let text = told.to_string();
    // The class is the first two characters.
    let code = told.code();
    match *code {
        SqlState::DISK_FULL => StoreErrorKind::Full,
        SqlState::READ_ONLY_SQL_TRANSACTION => StoreErrorKind::ReadOnly,
        SqlState::DATA_CORRUPTED | SqlState::INDEX_CORRUPTED => StoreErrorKind::Damaged(text),
        SqlState::LOCK_NOT_AVAILABLE
        | SqlState::QUERY_CANCELED
        | SqlState::T_R_SERIALIZATION_FAILURE
        | SqlState::T_R_DEADLOCK_DETECTED
        | SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT => StoreErrorKind::Away(text),
        _ if ["08", "53", "57", "58"].contains(&&code.code()[..2]) => StoreErrorKind::Away(text),
        _ => StoreErrorKind::Database(text),
    }
}

fn is_of_the_network(error: &postgres::Error) -> bool {
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        if error.is::<std::io::Error>() {
            return true;
        }
        source = error.source();
    }
    false
}

/// The text of an error, with what it came from.
fn with_sources(error: &postgres::Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        let cause = error.to_string();
        if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
        source = error.source();
    }
    text
}
