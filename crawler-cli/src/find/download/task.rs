//! The download of one file: what is wanted, its progress, and the request in flight.

use super::answer::Note;
use super::disk::{FileMetadata, Partial};
use super::names::Name;
use crate::crawl::redirect::Chain;
use crate::crawl::retry_queue::Attempts;
use crate::find::found::Found;
use crate::find::range::{Precision, SizeRange, TimeRange};

/// A file to download.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::find) struct Wanted {
    pub(in crate::find) url: String,
    pub(in crate::find) size: Option<SizeRange>,
    pub(in crate::find) modified: Option<TimeRange>,
}

impl Wanted {
    pub(in crate::find) fn of(found: &Found<'_>) -> Self {
        Self {
            url: found.url.to_owned(),
            size: found.size,
            modified: found.modified,
        }
    }

    /// Whether an existing file agrees with the listing: the size exactly, and the time at least to the minute.
    pub(super) fn is_as_listed(&self, existing: FileMetadata) -> bool {
        let same_size = self.size.and_then(SizeRange::known) == Some(existing.length);
        let same_time = self.modified.is_some_and(|time| {
            let is_exact = time.precision() <= Precision::Minute;
            is_exact && (time.lo..=time.hi).contains(&existing.modified)
        });
        same_size && same_time
    }

    /// Whether an existing file is the server's, which the note describes.
    pub(super) fn is_same(&self, existing: FileMetadata, note: &Note) -> bool {
        let same_length = note.length.is_none_or(|length| length == existing.length);
        let same_time = match note.modified {
            Some(modified) => modified == existing.modified,
            None => self
                .modified
                .is_none_or(|time| time.lo <= existing.modified),
        };
        // Without length and time, the files cannot be compared.
        same_length && same_time && (note.length.is_some() || note.modified.is_some())
    }
}

/// The download of one file.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) wanted: Wanted,
    pub(super) name: Name,
    /// The redirects that were followed, if any: their last URL replaces that of the file.
    pub(super) chain: Option<Box<Chain>>,
    pub(super) attempts: Attempts,
}

impl Task {
    /// The URL to request.
    pub(super) fn url(&self) -> &str {
        let chain = self.chain.as_ref();
        chain.map_or(&self.wanted.url, |chain| chain.url().as_str())
    }
}

/// A request in flight.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) task: Task,
    /// Before the head of the response: only if the rest of the file was requested.
    pub(super) partial: Option<Partial>,
}

impl Flight {
    /// If the rest of the file is requested: its offset, and the note that describes the file.
    pub(super) fn rest(&self) -> Option<(u64, &Note)> {
        self.partial.as_ref()?.rest()
    }

    /// The bytes that are on disk.
    pub(super) fn came(&self) -> u64 {
        self.partial.as_ref().map_or(0, |partial| partial.length)
    }

    /// The length of the whole file, from the head of the response.
    pub(super) fn length(&self) -> Option<u64> {
        self.partial.as_ref()?.note.as_ref()?.length
    }

    /// The size of the file by the head of the response, else by the listing.
    pub(super) fn announced(&self) -> Option<SizeRange> {
        let own = self.length().map(SizeRange::exact);
        own.or(self.task.wanted.size)
    }
}
