//! The trait through which the crawl of a host and its downloads report, and get decisions.

use std::path::Path;

use super::cause::Cause;
use super::expr::{Memo, Verdict};
use super::found::{Found, Saved, Unread};
use super::link::Link;
use super::listing::Entry;

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
    /// The entries of the page, or some of them.
    pub entries: &'a [Entry],
    /// Whether all entries of the page were told now.
    pub is_whole: bool,
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
