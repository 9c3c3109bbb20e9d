//! The download of one file: what is wanted, the next step, and the request in flight.

use std::time::SystemTime;

use url::Url;

use super::answer::Asked;
use super::disk::{FileMetadata, Partial};
use super::names::Name;
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
}

/// The download of one file.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) wanted: Wanted,
    pub(super) name: Name,
    pub(super) step: Step,
    /// What is on disk under the name, and not known to be the server's file.
    pub(super) existing: Option<FileMetadata>,
    /// The URL to which redirects led; replaces the URL of the file.
    pub(super) location: Option<Url>,
    pub(super) attempts: Attempts,
    pub(super) redirects: u32,
}

impl Task {
    pub(super) fn new(wanted: Wanted, name: Name) -> Self {
        Self {
            wanted,
            name,
            step: Step::Begin,
            existing: None,
            location: None,
            attempts: Attempts::default(),
            redirects: 0,
        }
    }

    /// Whether the existing file is the server's, by the length and the time in the head of an answer.
    pub(super) fn is_same(
        &self,
        existing: FileMetadata,
        length: Option<u64>,
        modified: Option<i64>,
    ) -> bool {
        let same_length = length.is_none_or(|length| length == existing.length);
        let listed = self.wanted.modified;
        let same_time = match modified {
            Some(modified) => modified == existing.modified,
            None => listed.is_none_or(|time| time.lo <= existing.modified),
        };
        // Without length and time, the files cannot be compared.
        same_length && same_time && (length.is_some() || modified.is_some())
    }

    /// The URL to request.
    pub(super) fn url(&self) -> &str {
        let location = self.location.as_ref();
        location.map_or(&self.wanted.url, Url::as_str)
    }
}

/// The next step for a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Step {
    /// Take the name, and look at what exists on disk.
    Begin,
    /// Fetch the missing part.
    Fetch,
    /// Fetch the whole file.
    FetchWhole,
}

/// A request in flight.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) task: Task,
    pub(super) asked: Asked,
    pub(super) partial: Option<Box<Partial>>,
    /// The length of the partial file at the time of the request.
    pub(super) begun_at: u64,
    /// The length of the whole file, from the head of the response.
    pub(super) length: Option<u64>,
    pub(super) modified: Option<SystemTime>,
}

impl Flight {
    pub(super) fn new(task: Task, asked: Asked, partial: Option<Box<Partial>>) -> Self {
        Self {
            begun_at: partial.as_ref().map_or(0, |partial| partial.length()),
            task,
            asked,
            partial,
            length: None,
            modified: None,
        }
    }

    /// The bytes that are on disk.
    pub(super) fn came(&self) -> u64 {
        self.partial.as_ref().map_or(0, |partial| partial.length())
    }
}
