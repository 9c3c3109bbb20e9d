//! The sources of URL sets: files and sitemaps, read into the store.
//!
//! A source is read at the start of the service, when its configuration is read again, and by the jobs that
//! [check](super::config::JobConfig::Check) the set. Reading has these rules:
//! - URLs go to the store in batches, so that memory does not grow with the source. The store's pace is the reader's.
//! - A source that did not change since its last complete reading writes nothing. For files, size and time decide, and the
//!   hash of the content when these differ; for sitemaps `ETag`, `Last-Modified` and the hash.
//! - Only a complete reading removes URLs: those that the source has no more. After a reading that failed, was cut, or
//!   misses more than half of the members, nothing is removed, and a notice says so. URLs that were added by hand stay.
//! - Lines that are no URLs are counted, and the first [`MOST_NAMED`] are named.

mod file;
mod intake;
mod orphans;
mod private;
mod reader;
mod sitemap;

use std::fmt;
use std::sync::PoisonError;

pub(super) use intake::Intake;
pub use intake::MOST_NAMED;
pub(super) use orphans::note_orphans;
pub use private::Private;
pub use reader::{LastReading, Readings, SetReader};

use url::Url;

use super::config::Source;
use super::work::{HttpError, Tools};
use jobs::Cancel;
use store::StoreError;

/// What a reading did.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct SetRead {
    /// The source has not changed: nothing was written.
    pub is_unchanged: bool,
    /// URLs that the source has.
    pub urls: u64,
    /// URLs that the store did not know.
    pub new: u64,
    /// URLs that left the set.
    pub left: u64,
    /// Lines and entries that are no URLs that can be checked.
    pub invalid: u64,
    /// The first of these, with their lines.
    pub named: Vec<String>,
    /// Why nothing was removed although some URLs are missing.
    pub kept: Option<String>,
}

/// Why a set could not be read. Nothing was removed from it.
#[derive(Debug)]
pub enum ReadError {
    /// The source cannot be read, or only in part.
    Source(String),
    /// The store cannot be read or written.
    Store(StoreError),
    /// The reading was stopped.
    Cancelled,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Source(text) => f.write_str(text),
            Self::Store(error) => error.fmt(f),
            Self::Cancelled => f.write_str("the reading was stopped"),
        }
    }
}

impl std::error::Error for ReadError {}

impl From<StoreError> for ReadError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<HttpError> for ReadError {
    fn from(error: HttpError) -> Self {
        match error {
            HttpError::Cancelled => Self::Cancelled,
            error => Self::Source(error.to_string()),
        }
    }
}

/// Reads the source of a set into the store. Only one thread reads a set at a time; others wait. A set without a source
/// counts as unchanged.
///
/// # Errors
/// The source cannot be read completely, or the store failed. What was read is in the set, and nothing was removed.
pub fn read_set(
    set: &str,
    source: &Source,
    tools: &Tools,
    cancel: &Cancel,
) -> Result<SetRead, ReadError> {
    let lock = tools.lock_of(set);
    let _alone = lock.lock().unwrap_or_else(PoisonError::into_inner);
    match source {
        Source::File(path) => file::read(set, path, tools, cancel),
        Source::Sitemap(url) => sitemap::read(set, url, tools, cancel),
        Source::Submitted => Ok(SetRead::unchanged()),
    }
}

/// Adds what a sitemap has to a set, from which nothing leaves.
pub(super) fn add_sitemap(
    set: &str,
    url: &Url,
    tools: &Tools,
    cancel: &Cancel,
) -> Result<SetRead, ReadError> {
    let lock = tools.lock_of(set);
    let _alone = lock.lock().unwrap_or_else(PoisonError::into_inner);
    sitemap::add(set, url, tools, cancel)
}

impl SetRead {
    fn unchanged() -> Self {
        Self {
            is_unchanged: true,
            ..Self::default()
        }
    }
}

impl fmt::Display for SetRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            urls,
            new,
            left,
            invalid,
            ..
        } = self;
        if self.is_unchanged {
            return f.write_str("unchanged");
        }
        write!(f, "{urls} URLs, {new} new, {left} left")?;
        if *invalid > 0 {
            write!(f, ", {invalid} invalid")?;
            // Schemes that nobody asks, such as mailto, are counted alone.
            if !self.named.is_empty() {
                write!(f, ": {}", self.named.join("; "))?;
            }
        }
        if let Some(kept) = &self.kept {
            write!(f, "; {kept}")?;
        }
        Ok(())
    }
}
