//! What the crawl of a host and its downloads report, and what they are told in return.

use super::cause::Cause;
use super::expr::{Memo, Verdict};
use super::found::{Found, Saved, Unread};
use super::link::Link;

/// Gets each result as soon as it is known.
pub trait Visitor {
    /// A file or directory exists. How far an expression has come with it is kept in `memo` from one look to the next.
    fn found(&mut self, found: &Found<'_>, memo: &mut Memo) -> Verdict;

    /// A URL could not be read, or not wholly.
    fn unread(&mut self, unread: Unread<'_>);

    /// Something leads there. What belongs to the search and is elsewhere is then
    /// [added](super::host_crawl::HostCrawl::add_link) to the crawl of that host.
    fn link(&mut self, link: &Link) -> LinkVerdict;

    /// The server is about to be asked whether this URL is a file's or, with a `/` behind it, a directory's. Returns
    /// whether one of them is wanted.
    fn named(&mut self, url: &str) -> bool;

    /// A wanted file is on the disk.
    fn downloaded(&mut self, saved: Saved<'_>);

    /// The wanted file of this URL could not be downloaded.
    fn not_downloaded(&mut self, url: &str, cause: &Cause);
}

/// Whether a link belongs to a search.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LinkVerdict {
    /// It does.
    Follow,
    /// A pattern leaves it out.
    LeftOut,
    /// It leads out of the search, or the search is over.
    Outside,
}
