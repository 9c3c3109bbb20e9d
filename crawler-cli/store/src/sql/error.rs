//! What goes wrong with a database.

use std::fmt;

use rusqlite::types::FromSqlError;

use crate::StoreErrorKind;

/// What goes wrong with a database.
#[derive(Debug)]
pub enum Error {
    /// A query that has a row in a sound store has none.
    NoRows,
    /// The value of this column is not what is kept there.
    Value(usize, FromSqlError),
    Sqlite(rusqlite::Error),
    Postgres(::postgres::Error),
    /// There is no connection.
    Connect(StoreErrorKind),
}

pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        match error {
            rusqlite::Error::QueryReturnedNoRows => Self::NoRows,
            error => Self::Sqlite(error),
        }
    }
}

impl From<::postgres::Error> for Error {
    fn from(error: ::postgres::Error) -> Self {
        Self::Postgres(error)
    }
}

/// Makes of a query without rows what it is often: no error.
pub(crate) trait Optional<T> {
    /// `None` if there was no row.
    fn optional(self) -> Result<Option<T>>;
}

impl<T> Optional<T> for Result<T> {
    fn optional(self) -> Result<Option<T>> {
        match self {
            Ok(value) => Ok(Some(value)),
            Err(Error::NoRows) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRows => f.write_str("a row is missing"),
            Self::Value(column, error) => write!(f, "column {column}: {error}"),
            Self::Sqlite(error) => error.fmt(f),
            Self::Postgres(error) => error.fmt(f),
            Self::Connect(kind) => write!(f, "{kind:?}"),
        }
    }
}
