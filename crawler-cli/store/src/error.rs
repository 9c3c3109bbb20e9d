//! Why a store cannot be used.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use plain::file_lock::FileError;

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
    /// The store was made by another version of the program: its version, and the one that is needed.
    Version(i64, i64),
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
    /// The disk failed, or the system has run out of something.
    Disk(String),
    /// The server cannot be reached, or has ended the connection: why.
    Away(String),
    /// Another failure of the database.
    Database(String),
    /// The program failed while it changed the store; the change was taken back.
    Panicked(String),
    /// The thread that writes has ended.
    Closed,
    /// The file belongs to the store itself, and cannot take its backup.
    OwnFile,
    /// The store is a database of a server, whose own programs do this.
    Server,
    /// The store is a file, which has no fleet of workers.
    NoFleet,
    /// The store has something already, and only an empty one takes a copy.
    NotEmpty,
}

impl StoreErrorKind {
    /// Whether no change can be stored at the moment, whatever it is: to try again later can help.
    pub fn is_of_the_whole_store(&self) -> bool {
        match self {
            Self::Full
            | Self::Io(_)
            | Self::Disk(_)
            | Self::Away(_)
            | Self::ReadOnly
            | Self::InUse(_)
            | Self::Broken => true,
            Self::Foreign
            | Self::Version(..)
            | Self::OwnFile
            | Self::Server
            | Self::NoFleet
            | Self::NotEmpty
            | Self::NetworkFileSystem(_)
            | Self::Damaged(_)
            | Self::Database(_)
            | Self::Panicked(_)
            | Self::Closed => false,
        }
    }

    fn duplicate(&self) -> Self {
        match self {
            // What is lost is a source that an error of the operating system does not have.
            Self::Io(error) => Self::Io(match error.raw_os_error() {
                Some(number) => io::Error::from_raw_os_error(number),
                None => io::Error::new(error.kind(), error.to_string()),
            }),
            Self::InUse(process) => Self::InUse(*process),
            Self::Foreign => Self::Foreign,
            Self::Version(version, needed) => Self::Version(*version, *needed),
            Self::NetworkFileSystem(kind) => Self::NetworkFileSystem(kind),
            Self::OwnFile => Self::OwnFile,
            Self::Server => Self::Server,
            Self::NoFleet => Self::NoFleet,
            Self::NotEmpty => Self::NotEmpty,
            Self::ReadOnly => Self::ReadOnly,
            Self::Full => Self::Full,
            Self::Damaged(what) => Self::Damaged(what.clone()),
            Self::Broken => Self::Broken,
            Self::Disk(what) => Self::Disk(what.clone()),
            Self::Away(what) => Self::Away(what.clone()),
            Self::Database(what) => Self::Database(what.clone()),
            Self::Panicked(what) => Self::Panicked(what.clone()),
            Self::Closed => Self::Closed,
        }
    }
}

impl StoreError {
    /// An error of the store in this file, or at this address of a server; an empty path for a temporary store.
    pub fn new(path: &Path, kind: StoreErrorKind) -> Self {
        Self {
            path: path.to_owned(),
            kind,
        }
    }

    /// The file, or the address of the server; empty for a temporary store.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The same error for another operation that it stops.
    pub fn duplicate(&self) -> Self {
        Self::new(&self.path, self.kind.duplicate())
    }

    /// What is wrong.
    pub fn kind(&self) -> &StoreErrorKind {
        &self.kind
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if matches!(
            self.kind,
            StoreErrorKind::Closed | StoreErrorKind::Panicked(_)
        ) {
            f.write_str("store: ")?;
        } else if self.path.as_os_str().is_empty() {
            f.write_str("temporary database: ")?;
        } else {
            write!(f, "{}: ", self.path.display())?;
        }
        match &self.kind {
            StoreErrorKind::Io(error) => error.fmt(f),
            StoreErrorKind::InUse(process) => FileError::InUse(*process).fmt(f),
            StoreErrorKind::Foreign => f.write_str("not a store of crawler-cli"),
            StoreErrorKind::Version(version, needed) => {
                let own = "this version of crawler-cli needs version";
                write!(f, "the store has version {version}, but {own} {needed}")
            }
            StoreErrorKind::NetworkFileSystem(kind) => FileError::NetworkFileSystem(kind).fmt(f),
            StoreErrorKind::ReadOnly => f.write_str("cannot be written"),
            StoreErrorKind::Full => f.write_str("no space left"),
            StoreErrorKind::Damaged(what) => write!(f, "damaged: {what}"),
            StoreErrorKind::Broken => f.write_str("an earlier change could not be stored"),
            StoreErrorKind::Disk(what)
            | StoreErrorKind::Away(what)
            | StoreErrorKind::Database(what) => f.write_str(what),
            StoreErrorKind::Panicked(what) => write!(f, "a change failed: {what}"),
            StoreErrorKind::Closed => f.write_str("has been closed"),
            StoreErrorKind::Server => f.write_str(
                "the command is for stores in files; a server has programs of its own, such as pg_dump",
            ),
            StoreErrorKind::NotEmpty => {
                f.write_str("the store is not empty, and only an empty one takes a copy")
            }
            StoreErrorKind::NoFleet => f.write_str(
                "one service works on a file; only a database of PostgreSQL has a fleet",
            ),
            StoreErrorKind::OwnFile => {
                f.write_str("belongs to the store itself; name another file")
            }
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
