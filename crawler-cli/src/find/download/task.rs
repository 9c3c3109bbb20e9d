//! The download of one file: what is wanted, the next step, and the request in flight.

use std::time::SystemTime;

use url::Url;

use super::answer::Asked;
use super::disk::{FileMetadata, Partial};
use super::mirror::Known;
use super::names::Name;
use super::sums::{Sum, Summing};
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

    /// Whether the listing shows for certain that the server's file was changed after the existing one was written.
    pub(super) fn is_newer_than(&self, existing: FileMetadata) -> bool {
        let modified = self.modified;
        modified.is_some_and(|time| time.lo > existing.modified)
    }
}

/// The download of one file.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) wanted: Wanted,
    pub(super) purpose: Purpose,
    pub(super) name: Name,
    pub(super) step: Step,
    /// What the mirror knows about the existing file, if an earlier run has put it there.
    pub(super) known: Option<Box<Known>>,
    /// The checksum that the file has to have, once that is known.
    pub(super) sum: Option<Option<Sum>>,
    /// Bytes to come, if known; included in the sum of the counts.
    pub(super) left: Option<u64>,
    /// The URL to which redirects led; replaces the URL of the file.
    pub(super) location: Option<Url>,
    pub(super) attempts: Attempts,
    pub(super) redirects: u32,
    /// The listing was looked at again.
    pub(super) has_looked: bool,
}

/// What a request is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Purpose {
    /// A file that goes to disk.
    File,
    /// A list of checksums, which is needed for files.
    List,
}

impl Task {
    pub(super) fn new(wanted: Wanted, purpose: Purpose, name: Name, step: Step) -> Self {
        let left = match purpose {
            Purpose::File => wanted.size.map(SizeRange::middle),
            Purpose::List => None,
        };
        Self {
            wanted,
            purpose,
            name,
            step,
            known: None,
            sum: None,
            left,
            location: None,
            attempts: Attempts::default(),
            redirects: 0,
            has_looked: false,
        }
    }

    /// The URL to request.
    pub(super) fn url(&self) -> &str {
        let location = self.location.as_ref();
        location.map_or(&self.wanted.url, Url::as_str)
    }

    /// What is known about the existing file, if that has not the size in the listing: then it has changed, or one of both
    /// is wrong.
    pub(super) fn doubted(&mut self) -> Option<&mut Known> {
        let Step::Compare(existing) = self.step else {
            return None;
        };
        let size = self.wanted.size?;
        let known = self.known.as_deref_mut();
        known.filter(|_| !size.contains(existing.length))
    }

    /// Whether redirects led to another host.
    pub(super) fn is_elsewhere(&self) -> bool {
        let location = self.location.as_ref();
        location.is_some_and(|to| {
            let from = Url::parse(&self.wanted.url);
            from.is_ok_and(|from| from.origin() != to.origin())
        })
    }
}

/// The next step for a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Step {
    /// Take the name.
    Begin,
    /// Look at what exists on disk.
    Look,
    /// Ask whether the server's file is the existing one.
    Compare(FileMetadata),
    /// Fetch the missing part.
    Fetch,
    /// Fetch the whole file.
    FetchWhole,
    /// Look at the listing again, because the file has another size; then fetch the whole file, or what is missing.
    LookAgain { whole: bool },
}

/// A request in flight.
#[derive(Debug)]
pub(super) struct ActiveDownload {
    pub(super) task: Task,
    pub(super) asked: Asked,
    pub(super) partial: Option<Box<Partial>>,
    /// The length of the partial file at the time of the request.
    pub(super) begun_at: u64,
    /// The length of the whole file, from the head of the response.
    pub(super) length: Option<u64>,
    pub(super) modified: Option<SystemTime>,
    /// The validators in the head of the response.
    pub(super) etag: Option<String>,
    pub(super) date: Option<String>,
    /// The checksum of what has arrived, if it is needed.
    pub(super) sum: Option<Summing>,
    /// What has arrived of a list of checksums.
    pub(super) text: Vec<u8>,
}
