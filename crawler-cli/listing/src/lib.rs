//! What pages of web servers say: the bytes of an index page in, the entries of the directory out. Pure: no engine, no
//! socket, no clock. No DOM is built.
//!
//! [`parse`] reads a page into a [`Listing`]. The name of an entry comes from its href, never from the text of the link:
//! servers shorten that text and declare a wrong character set for it (`children`). The server that wrote the page
//! ([`Shape`]) decides what the text beside a link means (`rows`), how sizes are rounded (`size`), and how a complete page
//! ends. `json` and `xml` read structured listings and the pages of buckets. A page that lists nothing is told as what it
//! is: a [`WebPage`].
//!
//! Sizes and times are intervals ([`range`]), because listings round them. [`path`] has one spelling of each path, in which
//! equivalent paths are equal. [`links()`] are all links of a page, for crawls of web pages.
//!
//! [`markup`] is what the readers of pages and documents share: HTML as a stream of tags and texts, and encodings.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;

use encoding_rs::{Encoding, UTF_16BE, UTF_16LE};
use percent_encoding::{NON_ALPHANUMERIC, percent_encode};
use url::Url;

use crate::markup::encoding::{self, Declaration, encoding};
use children::Children;
use range::{ListedTime, SizeRange};
use rows::Rows;
use serde::{Deserialize, Serialize};

mod bucket;
mod children;
mod header;
mod json;
mod left_out;
mod links;
pub mod markup;
pub mod path;
pub mod range;
mod rows;
mod shape;
mod size;
mod time;
mod web_page;
mod xml;

pub use header::next_link;
pub use left_out::LeftOut;
pub use links::{Links, Reference, has_page_extension, is_page_name, links};
pub use shape::Shape;
pub use web_page::{WebPage, WebPageKind};

/// What one page lists.
#[derive(Debug)]
pub struct Listing {
    /// The server that wrote the page.
    pub shape: Shape,
    /// The entries in the order of the page. Each name occurs once.
    pub entries: Vec<Entry>,
    /// Whether the page has the end that pages of this shape have. The known servers always write this end: a page
    /// without it was cut.
    pub ended: bool,
    /// The page has `<html>`. An unknown server that writes this start tag writes the end tag, too.
    pub promises_end: bool,
    /// Whether the page marks directories with a final `/`. If so, a name without it is a file.
    pub marks_directories: bool,
    /// Links that were left out because their URL is longer than [`PageLimits::url_bytes`].
    pub overlong: LeftOut,
    /// Entries that were left out because their name cannot be one segment of a URL: it holds a `/` or a NUL, for
    /// example.
    pub nameless: LeftOut,
    /// Links that stand where entries stand and lead elsewhere, or to a part of the listing.
    pub left_out: LeftOut,
    /// Objects of a bucket outside the prefix that was asked for, if none is inside.
    pub outside: LeftOut,
    /// The request target of the page with further entries of this directory, if this page names one. It is never the
    /// target of this page itself, but two pages can name each other.
    pub next: Option<String>,
    /// More entries follow, and the page does not say where.
    pub stops: bool,
    /// The path of the listed directory, if it differs from the path of the page: every listing of a bucket is
    /// requested at the root of the bucket. Ends in `/`.
    pub directory: Option<String>,
    /// How the listings of the directories among the entries are requested.
    pub directories: Directories,
    /// What the page is if nothing shows that it lists the directory. Its entries are the links that could be some.
    pub doubt: Option<WebPage>,
}

/// How the listings of the directories that a page names are requested.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Directories {
    /// By the path of the directory.
    Path,
    /// By this request target, followed by the name of the directory and a `/`, both percent-encoded.
    Query(String),
}

impl Directories {
    /// The request target for the listing of `entry`, a directory. `None`: the path of the entry.
    pub fn query_of(&self, entry: &Entry) -> Option<String> {
        match self {
            Self::Path => None,
            Self::Query(target) => {
                let name = percent_encode(&entry.name, NON_ALPHANUMERIC);
                Some(format!("{target}{name}%2F"))
            }
        }
    }
}

impl Listing {
    /// A listing of these entries, with `ended` not set.
    fn of(mut children: Children, shape: Shape) -> Self {
        children.map();
        let left_out = children.left_out();
        let mut entries = children.entries;
        // If the page marks directories, a name without a final `/` is a file.
        let marks_directories = children.marks_directories || shape.marks_directories();
        // If only some entries have sizes, the entries with sizes are files.
        let sizes_mark_files =
            shape == Shape::Generic && entries.iter().any(|entry| entry.size.is_none());
        for entry in &mut entries {
            let is_file = marks_directories || (sizes_mark_files && entry.size.is_some());
            if entry.kind == EntryKind::Unknown && is_file {
                entry.kind = EntryKind::File;
            }
            if entry.kind == EntryKind::Directory {
                entry.size = None;
            }
        }
        Self {
            shape,
            entries,
            ended: false,
            promises_end: false,
            marks_directories,
            overlong: children.overlong,
            nameless: children.nameless,
            left_out,
            outside: LeftOut::default(),
            next: None,
            stops: false,
            directory: None,
            directories: Directories::Path,
            doubt: None,
        }
    }
}

/// One name in a directory.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Entry {
    /// The name as a URL segment, without a final `/`: the spelling of the server, with unsafe bytes escaped and
    /// upper-case hexadecimal digits.
    pub segment: String,
    /// The bytes of the name, percent-decoded.
    pub name: Vec<u8>,
    /// File or directory, as far as the page shows it.
    pub kind: EntryKind,
    /// The size, if the page shows one. Directories have none.
    pub size: Option<SizeRange>,
    /// The time of the last change, if the page shows one.
    pub modified: Option<ListedTime>,
}

impl Entry {
    /// The page shows that the entry is a directory.
    fn mark_directory(&mut self) {
        if self.kind == EntryKind::Unknown {
            self.kind = EntryKind::Directory;
        }
    }
}

/// The type of an entry, as far as the page shows it.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum EntryKind {
    /// A file.
    File,
    /// A directory.
    Directory,
    /// A file or a directory: the page does not mark directories.
    Unknown,
}

/// Limits for one page.
#[derive(Clone, Copy, Debug)]
pub struct PageLimits {
    /// Highest number of links on a page; more links are an error. Default 1,000,000.
    pub links: usize,
    /// Longest URL of an entry in bytes; longer ones are [`Listing::overlong`]. Default 8192.
    pub url_bytes: usize,
    /// Highest number of bytes of all URLs that a page links to; more bytes are an error. Default 64 MiB.
    pub all_urls_bytes: usize,
}

impl Default for PageLimits {
    fn default() -> Self {
        Self {
            links: 1_000_000,
            url_bytes: 8192,
            all_urls_bytes: 64 << 20,
        }
    }
}

/// Why a page cannot be read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PageError {
    /// More links than [`PageLimits::links`].
    TooManyLinks,
    /// The URLs of all links together are longer than [`PageLimits::all_urls_bytes`].
    TooLongLinks,
    /// A JSON or XML document that does not list a directory.
    NotAListing,
}

impl fmt::Display for PageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooManyLinks => f.write_str("the page has too many links"),
            Self::TooLongLinks => f.write_str("the links of the page are too long together"),
            Self::NotAListing => f.write_str("the page lists no directory"),
        }
    }
}

impl Error for PageError {}

/// Whether a body of this type is an HTML page.
pub fn is_html(content_type: &[u8]) -> bool {
    matches!(Format::of_type(content_type), Some(Format::Html))
}

/// Reads the page `body` that was received from `page`. `page` is the URL after redirects; its path ends in `/`, and it
/// has a query if the request had one. Without a known `content_type`, the start of the body decides the format.
///
/// # Errors
/// [`PageError`]. An HTML page without entries is no error.
pub fn parse(
    body: &[u8],
    content_type: Option<&[u8]>,
    page: &Url,
    limits: PageLimits,
) -> Result<Listing, PageError> {
    let body = &*utf8(body, content_type);
    let body = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body);
    let format = content_type.and_then(Format::of_type);
    match format.unwrap_or_else(|| Format::of_body(body)) {
        Format::Json => {
            let mut listing = json::read(body, page, limits)?;
            if listing.shape == Shape::Caddy {
                listing.next = next_offset(page, listing.entries.len());
            }
            Ok(listing)
        }
        Format::Xml => xml::read(body, page, limits),
        Format::Html => parse_html(body, page, limits),
    }
}

fn parse_html(body: &[u8], page: &Url, limits: PageLimits) -> Result<Listing, PageError> {
    let shape = Shape::of_html(body);
    let mut listing = html(body, shape, page, limits)?;
    if listing.is_none() {
        // The page only resembles a page of that server, or was cut in its first row. Any row fits the generic shape.
        listing = html(body, Shape::Generic, page, limits)?;
    }
    let (mut listing, asks_password) = listing.ok_or(PageError::NotAListing)?;
    if !listing.ended && shape != Shape::Generic {
        listing.shape = shape;
    }
    let entries = &mut listing.entries.iter();
    let has_columns = entries.any(|entry| entry.size.is_some() || entry.modified.is_some());
    // A form beside times and sizes is part of the frame of the page.
    if asks_password && !has_columns || listing.shape == Shape::Generic {
        listing.doubt = web_page::doubt(body, page, has_columns);
    } else if listing.entries.is_empty() {
        // The marks of the server may stand where no reader of HTML looks, as in the text for readers without frames.
        listing.doubt = web_page::hides(body, page);
    }
    Ok(listing)
}

/// A page of two-byte characters as UTF-8; another one as it is. Of other encodings only the references matter, whose
/// bytes the server gets back.
fn utf8<'d>(body: &'d [u8], content_type: Option<&[u8]>) -> Cow<'d, [u8]> {
    let encoding = encoding(body, charset(content_type), Declaration::Nowhere);
    let is_wide = |encoding: &Encoding| encoding == UTF_16LE || encoding == UTF_16BE;
    match encoding.filter(|(encoding, _)| is_wide(encoding)) {
        Some((encoding, _)) => Cow::Owned(encoding.decode(body).0.into_owned().into_bytes()),
        None => Cow::Borrowed(body),
    }
}

fn charset(content_type: Option<&[u8]>) -> Option<&str> {
    str::from_utf8(content_type?)
        .ok()
        .and_then(encoding::charset)
}

/// Whether a page of this `Content-Type` may be a listing.
pub fn is_listing_type(content_type: &[u8]) -> bool {
    essence(content_type).is_empty() || Format::of_type(content_type).is_some()
}

/// The syntax of a page.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Format {
    Html,
    Json,
    Xml,
}

impl Format {
    fn of_type(content_type: &[u8]) -> Option<Self> {
        let essence = essence(content_type).to_ascii_lowercase();
        match essence.as_slice() {
            b"text/html" | b"application/xhtml+xml" => Some(Self::Html),
            b"application/json" | b"application/javascript" | b"text/javascript" => {
                Some(Self::Json)
            }
            b"application/xml" | b"text/xml" => Some(Self::Xml),
            _ => None,
        }
    }

    fn of_body(body: &[u8]) -> Self {
        let start = body.trim_ascii_start();
        let root = |name: &str| start.starts_with(name.as_bytes());
        if root("[") || root("/* callback */") {
            Self::Json
        } else if root("<ListBucketResult")
            || root("<EnumerationResults")
            || (root("<?xml") && memchr::memmem::find(start, b"<html").is_none())
        {
            Self::Xml
        } else {
            Self::Html
        }
    }
}

fn essence(content_type: &[u8]) -> &[u8] {
    let essence = content_type.split(|&byte| byte == b';').next();
    essence.unwrap_or(b"").trim_ascii()
}

/// Reads an HTML page as a page of this shape. Also returns whether it asks for a password. `None`: the page has rows, and
/// none of them fits the shape.
fn html(
    body: &[u8],
    shape: Shape,
    page: &Url,
    limits: PageLimits,
) -> Result<Option<(Listing, bool)>, PageError> {
    let mut rows = Rows::new(shape, page, limits);
    markup::html::read(body, &mut rows);
    if rows.links > limits.links {
        return Err(PageError::TooManyLinks);
    }
    if !rows.finish() {
        return Ok(None);
    }
    let asks_password = rows.asks_password;
    Ok(Some((listing_of(rows, shape, page), asks_password)))
}

/// The listing of a page whose rows have ended.
fn listing_of(mut rows: Rows, shape: Shape, page: &Url) -> Listing {
    let linked = rows.next.take();
    let linked = linked.and_then(|href| rows.children.resolve(&href));
    let next = linked.as_ref().and_then(|next| next_page(next, page));
    let total = rows.children.entries.len();
    let mut listing = Listing::of(rows.children, shape);
    listing.ended = rows.ended;
    listing.promises_end = rows.opened;
    if let Some(linked) = linked.filter(|_| next.is_none()) {
        listing.leave_out_next(&linked, page);
    }
    if next.is_some() {
        // The pages after the next one are linked there.
        let is_part =
            |url: &String| Url::parse(url).is_ok_and(|url| next_page(&url, page).is_some());
        listing.left_out.retain(|url| !is_part(url));
    }
    listing.next = next.or_else(|| match shape {
        Shape::Caddy => next_offset(page, total),
        _ => None,
    });
    listing
}

impl Listing {
    /// Names a next page that cannot be taken for another part of the directory `page`.
    pub fn leave_out_next(&mut self, next: &Url, page: &Url) {
        let is_here = next.origin() == page.origin() && next.path() == page.path();
        let name = path::split_last(next.path()).map(|(_, name, _)| name);
        let is_entry = |entry: &Entry| Some(&*entry.segment) == name;
        if !is_here && !self.entries.iter().any(is_entry) {
            self.left_out.add(next.as_str());
        }
    }
}

/// The request target of `next`, if it is another part of the directory `page`: the same path with another query.
pub fn next_page(next: &Url, page: &Url) -> Option<String> {
    let is_here = next.origin() == page.origin() && next.path() == page.path();
    let query = next.query()?;
    (is_here && Some(query) != page.query()).then(|| format!("{}?{query}", next.path()))
}

/// Caddy shows `limit` entries from `offset` on, both from the query, and does not say whether more follow.
fn next_offset(page: &Url, entries: usize) -> Option<String> {
    let number = |wanted: &str| {
        let mut pairs = page.query_pairs();
        let (_, value) = pairs.find(|(key, _)| key == wanted)?;
        value.parse::<usize>().ok()
    };
    let limit = number("limit").filter(|&limit| limit > 0 && entries == limit)?;
    let offset = number("offset").unwrap_or(0).checked_add(limit)?;
    Some(format!("{}?limit={limit}&offset={offset}", page.path()))
}

/// Whether a query only changes the order or layout of an index page. The URL without the query has the same entries.
pub fn is_sort_query(query: &str) -> bool {
    query.split(['&', ';']).all(|pair| {
        let key = pair.split_once('=').map_or(pair, |(key, _)| key);
        SORT_KEYS.contains(&key)
    })
}

/// Whether a query has the form that only the sort links of Apache's listings have: `C=N;O=D`.
pub fn is_column_query(query: &str) -> bool {
    let bytes = query.as_bytes();
    bytes.len() == 7
        && (bytes.starts_with(b"C=") && bytes[3..].starts_with(b";O="))
        && b"NMSD".contains(&bytes[2])
        && b"AD".contains(&bytes[6])
}

/// Whether a query requests a listing of a bucket. The same path with another such query is another directory.
pub fn is_listing_query(query: &str) -> bool {
    query.split('&').all(|pair| {
        let key = pair.split_once('=').map_or(pair, |(key, _)| key);
        LISTING_KEYS.contains(&key)
    })
}

/// The request target of the first page of a directory, of which this is a further one.
pub fn first_page(target: &str) -> String {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let kept: Vec<_> = query
        .split('&')
        .filter(|pair| is_listing_query(pair))
        .collect();
    match kept.is_empty() || query.is_empty() {
        true => path.to_owned(),
        false => format!("{path}?{}", kept.join("&")),
    }
}

/// Query keys of S3 and compatible servers, and of Azure.
const LISTING_KEYS: [&str; 9] = [
    "list-type",
    "prefix",
    "delimiter",
    "encoding-type",
    "max-keys",
    "fetch-owner",
    "restype",
    "comp",
    "maxresults",
];

/// Query keys of Apache (`C` column, `O` order, `F` format, `V` version sort, `P` pattern), of Caddy (the words), and
/// of servers that imitate them.
const SORT_KEYS: [&str; 9] = ["", "C", "O", "F", "V", "P", "sort", "order", "layout"];

#[cfg(test)]
mod tests;
