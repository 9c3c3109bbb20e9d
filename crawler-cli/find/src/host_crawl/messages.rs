//! The messages between a [`HostCrawl`](super::HostCrawl) and its driver: requests, replies and counts.

use std::ops::Add;
use std::time::UNIX_EPOCH;

use courser::Response;
use crawl::work::RequestId;
use serde::{Deserialize, Serialize};

use listing::next_link;

/// A request to send now.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Fetch<'a> {
    /// Identifies the request in the reply.
    pub id: RequestId,
    /// What is requested.
    pub kind: FetchKind,
    /// The request target.
    pub target: &'a str,
}

/// What a request is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FetchKind {
    /// `GET`: the listing of a directory.
    List,
    /// `HEAD`: whether a name without a final `/` is a file or a directory. A redirect to the name with `/` proves a
    /// directory. For a file, the reply has size and time.
    Probe,
    /// `GET` with `Range: bytes=0-0`: replaces the probe if the server does not support `HEAD`.
    First,
    /// `GET`: a web page, for its links.
    Page,
    /// `GET`: a file to download. The body is written while it arrives.
    File,
    /// `GET`: robots.txt. The body is read while it arrives: the answer goes to
    /// [`HostCrawl::handle_head`](super::HostCrawl::handle_head).
    Robots,
}

/// The parts of a response that the crawl uses.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reply<'a> {
    /// The status code.
    pub status: u16,
    /// `Location`
    pub location: Option<&'a [u8]>,
    /// Whether there is a `Set-Cookie`.
    pub sets_cookie: bool,
    /// `Retry-After`
    pub retry_after: Option<&'a [u8]>,
    /// `Date`: a `Retry-After` with a date is relative to it.
    pub date: Option<&'a [u8]>,
    /// `Content-Type`
    pub content_type: Option<&'a [u8]>,
    /// `Content-Length`, unless `Transfer-Encoding` frames the body.
    pub content_length: Option<&'a [u8]>,
    /// `Content-Range`
    pub content_range: Option<&'a [u8]>,
    /// `ETag`
    pub etag: Option<&'a [u8]>,
    /// `Last-Modified`
    pub last_modified: Option<&'a [u8]>,
    /// `Content-Encoding`
    pub content_encoding: Option<&'a [u8]>,
    /// The URL of the next page in `Link`; see [`next_link`](listing::next_link).
    pub next: Option<&'a [u8]>,
    /// How the end of the body was detected.
    pub end: BodyEnd,
    /// The whole body.
    pub body: &'a [u8],
}

impl<'a> Reply<'a> {
    /// The parts of a complete response.
    pub fn of(response: &'a Response) -> Self {
        let framed = ["Content-Length", "Transfer-Encoding"]
            .iter()
            .any(|name| response.header(name).is_some());
        let coding = response.header("Content-Encoding");
        Self {
            status: response.status(),
            location: response.location().ok().flatten(),
            sets_cookie: response.header("Set-Cookie").is_some(),
            retry_after: response.header("Retry-After"),
            date: response.header("Date"),
            content_type: response.header("Content-Type"),
            content_length: response
                .header("Content-Length")
                .filter(|_| response.header("Transfer-Encoding").is_none()),
            content_range: response.header("Content-Range"),
            etag: response.header("ETag"),
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

    /// `Content-Length` as a number.
    pub fn length(&self) -> Option<u64> {
        self.content_length.and_then(number)
    }

    /// `Content-Range` (RFC 9110 §14.4).
    pub fn content_range(&self) -> Option<ContentRange> {
        let value = str::from_utf8(self.content_range?).ok()?;
        let (unit, rest) = value.split_once(' ')?;
        let (range, total) = rest.split_once('/')?;
        let range = match range.split_once('-') {
            None if range == "*" => None,
            bounds => {
                let (first, last) = bounds?;
                Some((number(first.as_bytes())?, number(last.as_bytes())?))
            }
        };
        // The length, which is one more than the last byte, has to fit into a u64.
        let is_valid = range.is_none_or(|(first, last)| first <= last && last < u64::MAX);
        let total = match total {
            "*" => None,
            total => Some(number(total.as_bytes())?),
        };
        (unit.eq_ignore_ascii_case("bytes") && is_valid).then_some((range, total))
    }

    /// `Last-Modified` in seconds since 1970.
    pub fn modified(&self) -> Option<i64> {
        self.last_modified.and_then(http_date)
    }
}

/// First and last byte, unless the requested range is not satisfiable, and the length of the whole file, unless that is not
/// known.
pub type ContentRange = (Option<(u64, u64)>, Option<u64>);

/// A number of decimal digits only.
fn number(digits: &[u8]) -> Option<u64> {
    let digits = str::from_utf8(digits).ok()?;
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_number)
}

/// A date of HTTP in seconds since 1970; `None` if it is before 1970.
pub(crate) fn http_date(value: &[u8]) -> Option<i64> {
    let time = httpdate::parse_http_date(str::from_utf8(value).ok()?.trim()).ok()?;
    let since = time.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since.as_secs()).ok()
}

/// How the end of a body was detected.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum BodyEnd {
    /// By its length or its last chunk: the body is complete.
    #[default]
    Framed,
    /// By the end of the connection: the body may be incomplete.
    Closed,
}

/// The progress of a crawl.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Counts {
    /// Directories known so far, read or not.
    pub directories: u64,
    /// Directories that are done: read, given up, an alias of another, or below the depth limit.
    pub directories_done: u64,
    /// Files found, matching or not.
    pub files: u64,
    /// Requests handed out.
    pub requests: u64,
    /// Requests that were repetitions.
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
