//! An entry of a listing as a short text, and back. Two entries are the same if their texts are. No I/O.

use crate::find::listing::{Entry, EntryKind};
use crate::find::path;
use crate::find::range::{ListedTime, SizeRange};

/// An entry.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Row {
    /// The name as a segment of a URL, with a final `/` for a directory, and a final `?` if the listing does not show
    /// whether the entry is a directory. Segments have neither character.
    pub(super) name: String,
    pub(super) size: Option<SizeRange>,
    pub(super) modified: Option<ListedTime>,
}

impl Row {
    pub(super) fn of(entry: &Entry) -> Self {
        let end = match entry.kind {
            EntryKind::File => "",
            EntryKind::Directory => "/",
            EntryKind::Unknown => "?",
        };
        Self {
            name: format!("{}{end}", entry.segment),
            size: entry.size,
            modified: entry.modified,
        }
    }

    /// Size and time, such as `1024-2047 1709251140/60u`; what is not known is `-`.
    pub(super) fn text(&self) -> String {
        let size = match self.size {
            Some(SizeRange { lo, hi }) if lo == hi => lo.to_string(),
            Some(SizeRange { lo, hi }) => format!("{lo}-{hi}"),
            None => "-".to_owned(),
        };
        let time = match self.modified {
            Some(ListedTime { seconds, span, utc }) => {
                format!("{seconds}/{span}{}", if utc { "u" } else { "" })
            }
            None => "-".to_owned(),
        };
        format!("{size} {time}")
    }

    /// Reads a row back. `None` if the text is none.
    pub(super) fn parse(name: &str, text: &str) -> Option<Self> {
        let (size, time) = text.split_once(' ')?;
        let size = match size {
            "-" => None,
            size => Some(match size.split_once('-') {
                Some((lo, hi)) => SizeRange {
                    lo: lo.parse().ok()?,
                    hi: hi.parse().ok()?,
                },
                None => SizeRange::exact(size.parse().ok()?),
            }),
        };
        let modified = match time {
            "-" => None,
            time => {
                let (seconds, span) = time.split_once('/')?;
                let (span, utc) = match span.strip_suffix('u') {
                    Some(span) => (span, true),
                    None => (span, false),
                };
                Some(ListedTime {
                    seconds: seconds.parse().ok()?,
                    span: span.parse().ok()?,
                    utc,
                })
            }
        };
        Some(Self {
            name: name.to_owned(),
            size,
            modified,
        })
    }

    /// The entry that the row is of.
    pub(super) fn entry(self) -> Entry {
        let kind = match self.name.as_bytes().last() {
            Some(b'/') => EntryKind::Directory,
            Some(b'?') => EntryKind::Unknown,
            _ => EntryKind::File,
        };
        let segment = self.name.trim_end_matches(['/', '?']).to_owned();
        Entry {
            name: path::decode(&segment),
            segment,
            kind,
            size: self.size,
            modified: self.modified,
        }
    }
}
