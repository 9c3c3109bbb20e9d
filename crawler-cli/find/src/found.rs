//! What a search finds, downloads, and cannot read.

use std::path::Path;
use std::time::Duration;

use super::cause::Cause;
use listing::Shape;
use listing::range::{SizeRange, TimeRange};

/// A file or directory.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Found<'a> {
    /// The URL, percent-encoded: only printable ASCII. The URL of a directory ends in `/`.
    pub url: &'a str,
    /// The URL's path, percent-decoded, without a final `/` except for the root.
    pub path: &'a [u8],
    /// The last segment of [`path`](Self::path); `/` for the root.
    pub name: &'a [u8],
    /// File or directory.
    pub kind: Kind,
    /// Segments below the start, which has depth 0.
    pub depth: u32,
    /// The path of the start that led here, percent-decoded; with the final `/` of a directory.
    pub start: &'a [u8],
    /// The size in bytes, as far as it is known; `None` for directories.
    pub size: Option<SizeRange>,
    /// The time of the last change, as far as it is known.
    pub modified: Option<TimeRange>,
    /// Whether everything is known that can become known: the server itself was asked.
    pub asked: bool,
    /// For a directory that was read: whether it has no entries.
    pub empty: Option<bool>,
    /// The shape of the page that listed it; `None` for a start.
    pub listing: Option<Shape>,
    /// The status of the server's response for it, if it was requested.
    pub status: Option<u16>,
    /// Attempts of the request that led to it: its own, or that for its listing.
    pub attempts: u32,
    /// How long the last of these attempts took.
    pub took: Duration,
}

impl Found<'_> {
    /// An entry of which nothing more is known. Its URL is spelled out when the expression looks at the entry.
    pub(super) const fn new(kind: Kind, depth: u32) -> Self {
        Self {
            url: "",
            path: b"",
            name: b"",
            kind,
            depth,
            start: b"",
            size: None,
            modified: None,
            asked: false,
            empty: None,
            listing: None,
            status: None,
            attempts: 0,
            took: Duration::ZERO,
        }
    }

    /// A file of a listing of which nothing more is known. Tests change what they are about.
    #[doc(hidden)]
    pub const FILE: Self = Found {
        url: "http://h/x",
        path: b"/x",
        name: b"x",
        start: b"/",
        attempts: 1,
        ..Self::new(Kind::File, 1)
    };
}

/// What was found.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// `-type f`
    File,
    /// `-type d`
    Directory,
}

impl Kind {
    /// The letter of `-type`.
    pub fn letter(self) -> &'static str {
        match self {
            Self::File => "f",
            Self::Directory => "d",
        }
    }
}

/// A URL that could not be read.
#[derive(Clone, Copy, Debug)]
pub struct Unread<'a> {
    /// The URL, percent-encoded.
    pub url: &'a str,
    /// The cause.
    pub cause: &'a Cause,
    /// The page whose link leads there, if pages are followed.
    pub from: Option<&'a str>,
}

/// A file that was downloaded, or was already complete on disk.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Saved<'a> {
    /// The URL of the file.
    pub url: &'a str,
    /// The path on disk.
    pub file: &'a Path,
    /// The size in bytes.
    pub length: u64,
    /// How the file got there.
    pub how: How,
    /// The size in the listing, if the file has another one.
    pub listed: Option<SizeRange>,
}

/// How a file got to disk.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum How {
    /// Fetched in one piece.
    Fetched,
    /// Resumed: this many bytes existed already.
    Resumed(u64),
    /// Existed already.
    Kept,
}
