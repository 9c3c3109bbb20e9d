//! What passes between a [`Frontier`](super::Frontier) and its driver: requests and replies, findings and counts.

use std::ops::Add;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Cause, Link};
use crate::find::expr::Memo;
use crate::find::listing::Shape;
use crate::find::range::{SizeRange, TimeRange};

/// A request to send now.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Fetch<'a> {
    /// Names the request in the answer to the frontier.
    pub id: FetchId,
    /// What is asked.
    pub ask: Ask,
    /// The request target.
    pub target: &'a str,
}

/// Names a request that is under way.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct FetchId(pub u64);

/// What a request is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ask {
    /// `GET`: the listing of a directory.
    List,
    /// `PROPFIND` with `Depth: 1` (RFC 4918 §9.1): the same.
    Properties,
    /// `HEAD`: what a name without a final `/` is. A redirect to the name with `/` proves a directory; of a file, the
    /// size and the time are told.
    Probe,
    /// `GET` with `Range: bytes=0-0`: the same of a server that does not answer `HEAD` as it should.
    First,
    /// `GET`: a web page, for its links.
    Page,
    /// `GET`: a sitemap.
    Sitemap,
    /// `GET`: robots.txt.
    Robots,
}

/// The parts of a response that matter.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reply<'a> {
    /// The status code.
    pub status: u16,
    /// `Location`
    pub location: Option<&'a [u8]>,
    /// `Retry-After`
    pub retry_after: Option<&'a [u8]>,
    /// `Date`, which a `Retry-After` in date form is measured against.
    pub date: Option<&'a [u8]>,
    /// `Content-Type`
    pub content_type: Option<&'a [u8]>,
    /// `Content-Length`
    pub content_length: Option<&'a [u8]>,
    /// `Content-Range`
    pub content_range: Option<&'a [u8]>,
    /// `Last-Modified`
    pub last_modified: Option<&'a [u8]>,
    /// `Content-Encoding`
    pub content_encoding: Option<&'a [u8]>,
    /// Where `Link` says that the next page is; see [`next_link`](crate::find::listing::next_link).
    pub next: Option<&'a [u8]>,
    /// How the end of the body showed.
    pub end: BodyEnd,
    /// The whole body.
    pub body: &'a [u8],
}

/// How the end of a body showed.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum BodyEnd {
    /// By its length or its last chunk: nothing is missing.
    #[default]
    Framed,
    /// The server closed the connection, which a dying server does too.
    Closed,
}

/// Why a request has no reply.
#[derive(Debug)]
pub struct Failure {
    /// What happened.
    pub cause: Cause,
    /// What it says about the next attempt.
    pub blame: Blame,
}

/// What a failure says about the next attempt.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Blame {
    /// The same will happen again.
    Final,
    /// This request may succeed later.
    Request,
    /// The host is not there. All its requests pause, and when it stays away the crawl of it ends.
    Host,
    /// The same, and more attempts will not help: there is no such name, or nobody trusts its certificate. Ends the
    /// crawl of a host that has never replied. One that has is taken to be away, as with [`Host`](Self::Host): one
    /// server of several can be at fault.
    HostFinal,
}

/// One result.
#[derive(Debug)]
pub enum Finding<'a> {
    /// A file or directory exists. How far an expression has come with it is kept from one look to the next.
    Found(Found<'a>, &'a mut Memo),
    /// A URL could not be read, or not wholly.
    Unread(Unread<'a>),
    /// Something leads there. [`Verdict::Go`](crate::find::expr::Verdict::Go) says that it belongs to the search; what
    /// is elsewhere is then [added](super::Frontier::add_link) to the crawl of that host.
    /// [`Verdict::Prune`](crate::find::expr::Verdict::Prune): a pattern leaves it out. Any other: it does not belong.
    Link(&'a Link),
    /// The server is about to be asked whether this URL is a file's or, with a `/` behind it, a directory's.
    /// [`Verdict::Prune`](crate::find::expr::Verdict::Prune): it need not be, for neither is wanted.
    Named(&'a str),
}

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

/// How far the crawl is.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Counts {
    /// Directories known so far, read or not.
    pub directories: u64,
    /// Directories that are done with: read, given up, an alias of another, or too deep to be wanted.
    pub directories_done: u64,
    /// Files found, matching or not.
    pub files: u64,
    /// Requests handed out.
    pub requests: u64,
    /// Those among them that were repetitions.
    pub retries: u64,
    /// URLs reported as unread.
    pub unread: u64,
}

impl Add for Counts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            directories: self.directories + other.directories,
            directories_done: self.directories_done + other.directories_done,
            files: self.files + other.files,
            requests: self.requests + other.requests,
            retries: self.retries + other.retries,
            unread: self.unread + other.unread,
        }
    }
}
