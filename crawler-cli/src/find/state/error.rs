//! Why a search cannot be saved.

use std::fmt;
use std::io;

use crate::store::file::FileError;
use crate::store::{StoreError, StoreErrorKind};

/// Why a search cannot be saved to a file or a database, or continued from there.
#[derive(Debug)]
pub struct StateError {
    /// The file, or the address of the database.
    place: String,
    kind: Kind,
}

#[derive(Debug)]
pub(super) enum Kind {
    Io(io::Error),
    File(FileError),
    Store(StoreError),
    Foreign,
    OtherSearch(String),
    Damaged(String),
    Broken,
    /// The lease of this process has ended, and others may have taken over what the process had.
    Lost,
    /// Another process has performed `-quit` first.
    QuitBefore,
}

impl StateError {
    pub(super) fn new(place: &str, kind: Kind) -> Self {
        Self {
            place: place.to_owned(),
            kind,
        }
    }

    /// Whether the database cannot be reached at the moment: to try again can help.
    pub(in crate::find) fn is_away(&self) -> bool {
        matches!(&self.kind, Kind::Store(error) if matches!(error.kind(), StoreErrorKind::Away(_)))
    }

    /// Whether the process has lost its lease. It may join again.
    pub(in crate::find) fn is_lost(&self) -> bool {
        matches!(self.kind, Kind::Lost)
    }

    /// Whether another process has ended the search first, so that these results came too late.
    pub(in crate::find) fn is_quit_before(&self) -> bool {
        matches!(self.kind, Kind::QuitBefore)
    }
}

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            // It names the place itself.
            Kind::Store(error)
                if !matches!(
                    error.kind(),
                    StoreErrorKind::InUse(_) | StoreErrorKind::Foreign
                ) =>
            {
                return error.fmt(f);
            }
            _ => write!(f, "{}: ", self.place)?,
        }
        match &self.kind {
            Kind::Io(error) => error.fmt(f),
            Kind::File(FileError::InUse(_)) => f.write_str("another search is using it"),
            Kind::File(error) => error.fmt(f),
            Kind::Store(error) => match error.kind() {
                StoreErrorKind::InUse(_) => f.write_str("another search is using it"),
                _ => f.write_str("not the state of a search"),
            },
            Kind::Foreign => f.write_str("not the state of a search of this version"),
            Kind::OtherSearch(identity) => {
                write!(f, "the state of another search: {identity}")?;
                match self.place.contains("://") {
                    true => f.write_str(" (DROP SCHEMA courser_find CASCADE removes it)"),
                    false => Ok(()),
                }
            }
            Kind::Damaged(text) => write!(f, "damaged: {text}"),
            Kind::Broken => f.write_str("the progress of the search could not be saved completely"),
            Kind::Lost => {
                f.write_str("this process was silent for so long that others have taken over")
            }
            Kind::QuitBefore => f.write_str("another process has ended the search"),
        }
    }
}

impl std::error::Error for StateError {}
