//! What a search finds, what it downloads, and what it cannot read.

use std::path::Path;
use std::time::Duration;

use super::cause::Cause;
use super::listing::Shape;
use super::range::{SizeRange, TimeRange};

/// A file or directory.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Found<'a> {
    /// The URL, percent-encoded: only printable ASCII. A directory's ends in `/`.
    pub url: &'a str,
    /// The URL's path, percent-decoded, without a final `/` except for the root.
    pub path: &'a [u8],
    /// The last segment of [`path`](Self::path); the root's is `/`.
    pub name: &'a [u8],
    /// File or directory.
    pub kind: Kind,
    /// Segments below the start, which has depth 0.
    pub depth: u32,
    /// The path of the start that it was reached from, percent-decoded; of a directory, with the final `/`.
    pub start: &'a [u8],
    /// The size, as far as it is known. Directories have none.
    pub size: Option<SizeRange>,
    /// The time of the last change, as far as it is known.
    pub modified: Option<TimeRange>,
    /// Whether nothing more will be known of it: the server itself was asked, and not only its listing.
    pub asked: bool,
    /// Of a directory that was read, whether it has no entries.
    pub empty: Option<bool>,
    /// Whose page listed it; `None` for a start.
    pub listing: Option<Shape>,
    /// The status of the server's answer about it, if it was asked.
    pub status: Option<u16>,
    /// Requests until there was an answer that told of it: about itself, or for its listing.
    pub attempts: u32,
    /// How long the last of them took.
    pub took: Duration,
}

/// What was found.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// `-type f`
    File,
    /// `-type d`
    Directory,
}

/// A URL that could not be read.
#[derive(Clone, Copy, Debug)]
pub struct Unread<'a> {
    /// The URL, percent-encoded.
    pub url: &'a str,
    /// Why.
    pub cause: &'a Cause,
}

/// A file that is on the disk as it is on the server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Saved<'a> {
    /// Its URL.
    pub url: &'a str,
    /// Where it is.
    pub file: &'a Path,
    /// Its size in bytes.
    pub length: u64,
    /// How it got there.
    pub how: How,
}

/// How a file got to the disk.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum How {
    /// It was fetched in one piece.
    Fetched,
    /// So many bytes of it were there from before.
    Resumed(u64),
    /// It was there already.
    Kept,
}
