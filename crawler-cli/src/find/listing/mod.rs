//! Directory listings: the bytes of an index page in, the directory's entries out. Pure; no DOM is built.
//!
//! The href decides what an entry is called, never the text of a link, which servers cut and mis-declare
//! (`children`). Who wrote the page (`shape`) decides what the text beside it means (`rows`), how its sizes are
//! rounded (`size`), and when the page is whole. Structured listings are read by `json` and `xml`.

use std::error::Error;
use std::fmt;

use percent_encoding::{NON_ALPHANUMERIC, percent_encode};
use url::Url;

use super::range::{ListedTime, SizeRange};
use children::Children;
use rows::Rows;
use serde::{Deserialize, Serialize};

mod bucket;
mod children;
mod header;
mod json;
mod links;
mod rows;
mod shape;
mod sitemap;
mod size;
mod time;
mod tokens;
mod xml;

pub use header::next_link;
pub use links::{Links, Reference, is_page_name, links};
pub use shape::Shape;
pub use sitemap::{Located, Sitemap, SitemapError, SitemapLimits, sitemap};

/// What one page lists.
#[derive(Clone, Debug)]
pub struct Listing {
    /// Who wrote the page.
    pub shape: Shape,
    /// The entries, each name once, in the order of the page.
    pub entries: Vec<Entry>,
    /// Whether what ends a page of this shape arrived. The known servers always write it, so that without it the page
    /// was cut.
    pub ended: bool,
    /// Whether the page marks a directory with a final `/`, so that its names without one are files.
    pub marks_directories: bool,
    /// Links that were left out because their URL is longer than the limit.
    pub overlong: usize,
    /// Entries that were left out because no segment of a URL can be their name: it holds a `/` or a NUL.
    pub nameless: usize,
    /// The request target of the page with further entries of this directory, if the page names one. It is never
    /// that of the page itself, but two pages can name each other.
    pub next: Option<String>,
    /// The path of the directory whose entries these are, where that is not the page's own: a bucket's listing is asked
    /// for at the bucket's root, whatever the directory. Ends in `/`.
    pub directory: Option<String>,
    /// How the directories among the entries are asked for.
    pub directories: Directories,
}

/// How the directories that a page lists are asked for.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Directories {
    /// By their paths.
    Path,
    /// By this request target, with the directory's name and a `/` behind, both wholly escaped.
    Query(String),
}

impl Directories {
    /// The request target of the listing of an entry that is a directory, where that is not its path.
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
    /// A listing of those entries, not ended yet.
    fn of(children: Children<'_>, shape: Shape) -> Self {
        let mut entries = children.entries;
        let marks_directories = children.marks_directories || shape.marks_directories();
        // Where only files have sizes, what has one is a file.
        let sizes_tell =
            shape == Shape::Generic && entries.iter().any(|entry| entry.size.is_none());
        for entry in &mut entries {
            if entry.kind == EntryKind::Unknown
                && (marks_directories || (sizes_tell && entry.size.is_some()))
            {
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
            marks_directories,
            overlong: children.overlong,
            nameless: children.nameless,
            next: None,
            directory: None,
            directories: Directories::Path,
        }
    }
}

/// One name in a directory.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Entry {
    /// The name as it stands in a URL, without a final `/`: the server's own escapes, made safe and with upper-case
    /// digits.
    pub segment: String,
    /// The name's bytes, decoded.
    pub name: Vec<u8>,
    /// File or directory, if the page tells.
    pub kind: EntryKind,
    /// The size, if the page shows one. Directories have none.
    pub size: Option<SizeRange>,
    /// The time of the last change, if the page shows one.
    pub modified: Option<ListedTime>,
}

/// What the page says that an entry is.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum EntryKind {
    /// A file.
    File,
    /// A directory.
    Directory,
    /// Either: this page does not mark its directories.
    Unknown,
}

/// Bounds on what one page may cost.
#[derive(Clone, Copy, Debug)]
pub struct PageLimits {
    /// Most links on a page; with more, the page is an error. Default 1,000,000.
    pub links: usize,
    /// Longest URL of an entry in bytes; longer ones are counted in [`Listing::overlong`]. Default 8192.
    pub url_bytes: usize,
    /// Most bytes of all URLs that a page of links leads to; with more, the page is an error. Default 64 MiB.
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
    /// It has more links than [`PageLimits::links`].
    TooManyLinks,
    /// Its links are longer than [`PageLimits::all_urls_bytes`] together.
    TooLongLinks,
    /// It is a document, but not one of those that list a directory.
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

/// Reads the page `body` that was got from `page`, the URL after redirects, whose path ends in `/`; with its query,
/// if it was asked for by one.
///
/// # Errors
/// [`PageError`]; a page that lists nothing is none and has no entries.
pub fn parse(
    body: &[u8],
    content_type: Option<&[u8]>,
    page: &Url,
    limits: PageLimits,
) -> Result<Listing, PageError> {
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
        Format::Html => parse_html(body, page, limits, Tokeniser::Quick),
    }
}

/// [`parse`] of HTML alone, and by no other tokeniser than that of browsers: what the quick one is tested against.
#[doc(hidden)]
pub fn parse_as_browsers_do(
    body: &[u8],
    page: &Url,
    limits: PageLimits,
) -> Result<Listing, PageError> {
    parse_html(body, page, limits, Tokeniser::OfBrowsers)
}

fn parse_html(
    body: &[u8],
    page: &Url,
    limits: PageLimits,
    tokeniser: Tokeniser,
) -> Result<Listing, PageError> {
    let shape = Shape::of_html(body);
    if let Some(listing) = html(body, shape, page, limits, tokeniser)? {
        return Ok(listing);
    }
    // It only looks like that server's. No row can fail to be what any row is.
    let any = html(body, Shape::Generic, page, limits, tokeniser)?;
    any.ok_or(PageError::NotAListing)
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Tokeniser {
    /// The quick one, where it can.
    Quick,
    OfBrowsers,
}

/// Whether a page of this `Content-Type` may be a listing.
pub fn is_listing_type(content_type: &[u8]) -> bool {
    essence(content_type).is_empty() || Format::of_type(content_type).is_some()
}

/// Whether this `Content-Type` is that of web pages.
pub fn is_html_type(content_type: &[u8]) -> bool {
    Format::of_type(content_type) == Some(Format::Html)
}

/// How a page is written.
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
        let body = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body);
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

/// Reads an HTML page as one of this shape; `None`: none of its rows is.
fn html(
    body: &[u8],
    shape: Shape,
    page: &Url,
    limits: PageLimits,
    tokeniser: Tokeniser,
) -> Result<Option<Listing>, PageError> {
    let mut rows = Rows::new(shape, page, limits);
    if tokeniser == Tokeniser::OfBrowsers || tokens::scan(body, &mut rows).is_err() {
        rows = Rows::new(shape, page, limits);
        tokens::read(body, &mut rows);
    }
    if rows.links > limits.links {
        return Err(PageError::TooManyLinks);
    }
    if !rows.finish() {
        return Ok(None);
    }
    let next = rows.next.take();
    let next = next.and_then(|href| next_page(&rows.children.resolve(&href)?, page));
    let mut listing = Listing::of(rows.children, shape);
    listing.ended = rows.ended;
    listing.next = next.or_else(|| match shape {
        Shape::Caddy => next_offset(page, listing.entries.len()),
        _ => None,
    });
    Ok(Some(listing))
}

/// The request target of `next`, if it is another part of the directory `page`: the same path, and another query.
pub(super) fn next_page(next: &Url, page: &Url) -> Option<String> {
    let is_here = next.origin() == page.origin() && next.path() == page.path();
    let query = next.query()?;
    (is_here && Some(query) != page.query()).then(|| format!("{}?{query}", next.path()))
}

/// Caddy shows so many entries as it is asked for by `limit`, from `offset` on, and does not say that there are more.
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

/// Whether a query only chooses how an index page looks, so that the URL without it names the same thing.
pub(super) fn is_sort_query(query: &str) -> bool {
    query.split(['&', ';']).all(|pair| {
        let key = pair.split_once('=').map_or(pair, |(key, _)| key);
        SORT_KEYS.contains(&key)
    })
}

/// Whether a query is one of those by which Apache's listings are sorted, and of no other pages.
pub(super) fn is_column_query(query: &str) -> bool {
    let bytes = query.as_bytes();
    bytes.len() == 7
        && (bytes.starts_with(b"C=") && bytes[3..].starts_with(b";O="))
        && b"NMSD".contains(&bytes[2])
        && b"AD".contains(&bytes[6])
}

/// Whether a query asks a bucket for a listing, so that the same path with another one is another directory.
pub(super) fn is_listing_query(query: &str) -> bool {
    query.split('&').all(|pair| {
        let key = pair.split_once('=').map_or(pair, |(key, _)| key);
        LISTING_KEYS.contains(&key)
    })
}

/// Those of S3 and what speaks like it, and of Azure.
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

/// Apache (`C` column, `O` order, `F` format, `V` version sort, `P` pattern), Caddy (the words), and those that
/// imitate them.
const SORT_KEYS: [&str; 9] = ["", "C", "O", "F", "V", "P", "sort", "order", "layout"];

#[cfg(test)]
mod tests;
