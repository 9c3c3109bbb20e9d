//! What passes between a [`HostCrawl`](super::HostCrawl) and its driver: requests and replies, findings and counts.

use std::ops::Add;

use courser::Response;
use serde::{Deserialize, Serialize};

use crate::find::listing::next_link;

/// A request to send now.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Fetch<'a> {
    /// Names the request in the answer to the host crawl.
    pub id: FetchId,
    /// What is asked.
    pub kind: FetchKind,
    /// The request target.
    pub target: &'a str,
}

/// Names a request that is under way.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct FetchId(pub u64);

/// What a request is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FetchKind {
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

impl<'a> Reply<'a> {
    /// Of a response that came whole.
    pub fn of(response: &'a Response) -> Self {
        let framed = ["Content-Length", "Transfer-Encoding"]
            .iter()
            .any(|name| response.header(name).is_some());
        let coding = response.header("Content-Encoding");
        Self {
            status: response.status(),
            location: response.header("Location"),
            retry_after: response.header("Retry-After"),
            date: response.header("Date"),
            content_type: response.header("Content-Type"),
            content_length: response.header("Content-Length"),
            content_range: response.header("Content-Range"),
            last_modified: response.header("Last-Modified"),
            content_encoding: coding.filter(|_| !response.decoded()),
            next: response.header_all("Link").find_map(next_link),
            end: if framed {
                BodyEnd::Framed
            } else {
                BodyEnd::Closed
            },
            body: response.body(),
        }
    }
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
