//! The trait through which the crawl of a host and its downloads report, and get decisions.

use std::path::Path;

use super::cause::Cause;
use super::expr::{Memo, Verdict};
use super::found::{Found, Saved, Unread};
use super::link::Link;
use super::listing::{Directories, Entry, Listing, Shape};

/// Receives each result as soon as it is known.
pub trait Visitor {
    /// A file or directory exists. `memo` keeps the state of the expression between calls for the same entry.
    fn found(&mut self, found: &Found<'_>, memo: &mut Memo) -> Verdict;

    /// A URL could not be read, or not completely.
    fn unread(&mut self, unread: Unread<'_>);

    /// A link was found. If it belongs to the search and is on another host, the caller of the crawl then
    /// [adds](super::host_crawl::HostCrawl::add_link) the link to the crawl of that host.
    fn link(&mut self, link: &Link) -> LinkVerdict;

    /// The server is about to be asked whether this URL is a file or, with a final `/`, a directory. Returns whether
    /// one of them is wanted.
    fn named(&mut self, url: &str) -> bool;

    /// Whether listings are to be [told](Self::listed) before their entries are found.
    fn wants_listings(&self) -> bool {
        false
    }

    /// A page of a listing was read. Its entries are found next. The entries of a very large page come in several calls,
    /// and are found after the last one.
    fn listed(&mut self, _page: &ReadPage<'_>) {}

    /// The entries of the listing of this directory, which were told, are not found after all.
    fn lost(&mut self, _directory: &str) {}

    /// The listing at this URL as it was read in an earlier run: the server says that it has not changed since.
    fn stored(&mut self, _url: &str) -> Option<Listing> {
        None
    }

    /// In a dry run: the wanted file of this URL would be downloaded to this path.
    fn planned(&mut self, _url: &str, _file: &Path) {}

    /// A wanted file is complete on disk.
    fn downloaded(&mut self, saved: Saved<'_>);

    /// The wanted file of this URL could not be downloaded.
    fn not_downloaded(&mut self, url: &str, cause: &Cause);
}

/// A page of a listing that was read, or a part of it.
#[derive(Clone, Copy, Debug)]
pub struct ReadPage<'a> {
    /// The URL of the directory.
    pub directory: &'a str,
    /// The path of the start that led there, percent-decoded.
    pub start: &'a [u8],
    /// Segments below the start.
    pub depth: u32,
    /// The entries of the page, or some of them.
    pub entries: &'a [Entry],
    /// What is known about the page as a whole; `None` if more of its entries follow.
    pub end: Option<&'a PageFacts>,
}

/// What is known about a page of a listing beside its entries.
#[derive(Clone, Debug)]
pub struct PageFacts {
    /// The server that wrote the page.
    pub shape: Shape,
    /// How its directories are requested.
    pub directories: Directories,
    /// Whether it marks directories.
    pub marks_directories: bool,
    /// Whether it has names that are not among its entries.
    pub leaves_out: bool,
    /// Whether further pages of the listing follow.
    pub has_next: bool,
    /// Whether the page is the answer for the URL of the directory itself, and may be [stored](Visitor::stored).
    pub is_alone: bool,
    /// `ETag` of the answer.
    pub etag: Option<Vec<u8>>,
    /// `Last-Modified` of the answer.
    pub last_modified: Option<Vec<u8>>,
    /// Whether it is the stored listing.
    pub unchanged: bool,
}

impl PageFacts {
    /// The facts that the page itself has.
    pub fn of(listing: &Listing) -> Self {
        Self {
            shape: listing.shape,
            directories: listing.directories.clone(),
            marks_directories: listing.marks_directories,
            leaves_out: listing.leaves_out(),
            has_next: listing.next.is_some(),
            is_alone: false,
            etag: None,
            last_modified: None,
            unchanged: false,
        }
    }
}

/// Whether a link belongs to a search.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LinkVerdict {
    /// It belongs to the search.
    Follow,
    /// An exclude or include pattern leaves it out.
    LeftOut,
    /// It is outside the search, or the search has ended.
    Outside,
}
