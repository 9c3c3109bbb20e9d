//! The trait through which the crawl of a host and its downloads report, and get decisions.

use std::time::Instant;

use super::cause::Cause;
use super::expr::{Memo, Verdict};
use super::found::{Found, Saved, Unread};
use super::link::Link;

/// Receives each result as soon as it is known.
pub trait Visitor {
    /// A file or directory exists. `memo` keeps the state of the expression between calls for the same entry.
    fn found(&mut self, found: &Found<'_>, memo: &mut Memo) -> Verdict;

    /// A URL could not be read, or not completely.
    fn unread(&mut self, unread: Unread<'_>);

    /// A link was found. If it belongs to the search and is on another host, the caller of the crawl then
    /// [adds](super::host_crawl::HostCrawl::add_link) the link to the crawl of that host.
    fn link(&mut self, link: &Link) -> LinkVerdict;

    /// A wanted file is complete on disk.
    fn downloaded(&mut self, saved: Saved<'_>);

    /// The wanted file of this URL could not be downloaded.
    fn not_downloaded(&mut self, url: &str, cause: &Cause);
}

/// One step of a host crawl: its time, and who hears of its results.
pub struct Turn<'v> {
    /// The time.
    pub now: Instant,
    /// Receives the results.
    pub visitor: &'v mut dyn Visitor,
}

impl<'v> Turn<'v> {
    /// A step at this time.
    pub fn new(now: Instant, visitor: &'v mut dyn Visitor) -> Self {
        Self { now, visitor }
    }
}

/// Whether a link belongs to a search.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LinkVerdict {
    /// It belongs to the search.
    Follow,
    /// It is outside the search, or the search has ended.
    Outside,
}
