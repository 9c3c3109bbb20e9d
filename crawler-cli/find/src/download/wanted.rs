//! A file to download, as the listing describes it.

use serde::{Deserialize, Serialize};

use super::answer::Note;
use super::disk::FileMetadata;
use crate::found::Found;
use crawl::redirect::Chain;
use listing::range::{Precision, SizeRange, TimeRange};

/// A file to download.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Wanted {
    pub(crate) url: String,
    pub(crate) size: Option<SizeRange>,
    pub(crate) modified: Option<TimeRange>,
    /// The redirects that were followed, if any.
    #[serde(skip)]
    pub(super) chain: Option<Box<Chain>>,
}

impl Wanted {
    pub(crate) fn of(found: &Found<'_>) -> Self {
        Self {
            url: found.url.to_owned(),
            size: found.size,
            modified: found.modified,
            chain: None,
        }
    }

    /// The URL to ask for: that of the last redirect.
    pub(crate) fn asked(&self) -> &str {
        let chain = self.chain.as_ref();
        chain.map_or(&self.url, |chain| chain.url().as_str())
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
