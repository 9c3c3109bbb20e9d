//! Why a store cannot be used.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::file::FileError;

/// Why a store cannot be opened, read or written.
#[derive(Debug)]
pub struct StoreError {
    path: PathBuf,
    kind: StoreErrorKind,
}

/// The kinds of [`StoreError`].
#[derive(Debug)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// The file cannot be opened, or is lost.
    Io(io::Error),
    /// Another process uses the file: its number, if it is known.
    InUse(Option<u32>),
    /// The file is no store.
    Foreign,
    /// The file was written by a newer version of the program: its version, and the newest one that is known.
    Newer(i64, i64),
    /// The file is on a file system of this kind, which does not lock files between machines reliably.
    NetworkFileSystem(&'static str),
    /// The file cannot be written.
    ReadOnly,
    /// There is no space left for the file.
    Full,
    /// The content of the file is damaged: what was found.
    Damaged(String),
    /// A batch could not be stored before; the store accepts no further changes.
    Broken,
    /// Another failure of the database.
    Database(String),
}

impl StoreError {
    /// An error of the store in this file; an empty path for a store without a file.
    pub fn new(path: &Path, kind: StoreErrorKind) -> Self {
        Self {
            path: path.to_owned(),
            kind,
        }
    }

    /// The file; empty for a store without a file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is wrong.
    pub fn kind(&self) -> &StoreErrorKind {
        &self.kind
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.as_os_str().is_empty() {
            f.write_str("temporary database: ")?;
        } else {
            write!(f, "{}: ", self.path.display())?;
        }
        match &self.kind {
            StoreErrorKind::Io(error) => error.fmt(f),
            StoreErrorKind::InUse(process) => FileError::InUse(*process).fmt(f),
            StoreErrorKind::Foreign => f.write_str("not a store of crawler-cli"),
            StoreErrorKind::Newer(version, known) => {
                let own = "this version of crawler-cli knows versions up to";
                write!(f, "the store has version {version}, but {own} {known}")
            }
            StoreErrorKind::NetworkFileSystem(kind) => FileError::NetworkFileSystem(kind).fmt(f),
            StoreErrorKind::ReadOnly => f.write_str("cannot be written"),
            StoreErrorKind::Full => f.write_str("no space left"),
            StoreErrorKind::Damaged(what) => write!(f, "damaged: {what}"),
            StoreErrorKind::Broken => f.write_str("an earlier change could not be stored"),
            StoreErrorKind::Database(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.kind {
            StoreErrorKind::Io(error) => Some(error),
            _ => None,
        }
    }
}
