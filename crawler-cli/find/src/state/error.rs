//! Why a search cannot be saved.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use plain::file_lock::FileError;

/// Why a search cannot be saved to a file, or continued from there.
#[derive(Debug)]
pub struct StateError {
    path: PathBuf,
    kind: Kind,
}

#[derive(Debug)]
pub(super) enum Kind {
    Io(io::Error),
    File(FileError),
    Sql(rusqlite::Error),
    Foreign,
    OtherSearch(String),
    Damaged(String),
    Broken,
}

impl StateError {
    pub(super) fn new(path: &Path, kind: Kind) -> Self {
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
            Kind::Io(error) => error.fmt(f),
            Kind::File(FileError::InUse(_)) => f.write_str("another search is using it"),
            Kind::File(error) => error.fmt(f),
            Kind::Sql(rusqlite::Error::SqliteFailure(error, _))
                if error.code == rusqlite::ErrorCode::NotADatabase =>
            {
                f.write_str("not the state of a search")
            }
            Kind::Sql(rusqlite::Error::SqliteFailure(error, _))
                if error.code == rusqlite::ErrorCode::DatabaseBusy =>
            {
                f.write_str("another search is using it")
            }
            Kind::Sql(error) => error.fmt(f),
            Kind::Foreign => f.write_str("not the state of a search of this version"),
            Kind::OtherSearch(identity) => write!(f, "the state of another search: {identity}"),
            Kind::Damaged(text) => write!(f, "damaged: {text}"),
            Kind::Broken => f.write_str("the progress of the search could not be saved completely"),
        }
    }
}

impl std::error::Error for StateError {}
