//! Where a store is.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::postgres::{Address, BadAddress};
use super::tables::Database;
use super::{StoreError, StoreErrorKind};

/// Where a store is: a file, or a database of a server. Shown without a password.
///
/// ```
/// use store::Place;
///
/// let place = Place::from(std::path::Path::new("watch.db"));
/// assert_eq!(place.to_string(), "watch.db");
/// let server = Place::Server(Box::new("postgres://me:secret@db/urls".parse()?));
/// assert_eq!(server.to_string(), "postgres://me@db/urls");
/// assert_eq!(server.file(), None);
/// # Ok::<(), store::postgres::BadAddress>(())
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Place {
    /// A file of SQLite, which one process uses at a time.
    File(PathBuf),
    /// A database of PostgreSQL, which any number of processes use.
    Server(Box<Address>),
}

impl Place {
    /// Opens the store, or makes it.
    ///
    /// # Errors
    /// The store cannot be opened, or another process uses the file.
    pub fn open(&self) -> Result<Database, StoreError> {
        match self {
            Self::File(path) => Database::open(path),
            Self::Server(address) => Database::connect(address),
        }
    }

    /// Opens the store for reading, also while others use it. Changes are refused.
    ///
    /// # Errors
    /// The store cannot be read, or there is none.
    pub fn open_read_only(&self) -> Result<Database, StoreError> {
        match self {
            Self::File(path) => Database::open_read_only(path),
            Self::Server(address) => Database::connect_read_only(address),
        }
    }

    /// The file, if it is one.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Server(_) => None,
        }
    }

    /// The file, for what is possible with files alone.
    ///
    /// # Errors
    /// It is a server.
    pub fn only_file(&self) -> Result<&Path, StoreError> {
        self.file().ok_or_else(|| {
            let name = self.to_string();
            StoreError::new(Path::new(&name), StoreErrorKind::Server)
        })
    }
}

impl FromStr for Place {
    type Err = BadAddress;

    /// `FILE`, `sqlite:FILE` or `postgres://…`.
    fn from_str(text: &str) -> Result<Self, BadAddress> {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Ok(Self::Server(Box::new(text.parse()?)));
        }
        Ok(Self::File(
            text.strip_prefix("sqlite:").unwrap_or(text).into(),
        ))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Server(address) => address.fmt(f),
        }
    }
}

impl From<&Path> for Place {
    fn from(path: &Path) -> Self {
        Self::File(path.to_owned())
    }
}

impl From<&PathBuf> for Place {
    fn from(path: &PathBuf) -> Self {
        Self::File(path.clone())
    }
}

impl From<&Place> for Place {
    fn from(place: &Place) -> Self {
        place.clone()
    }
}
