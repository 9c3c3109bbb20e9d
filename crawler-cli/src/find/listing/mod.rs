//! Directory listings: the bytes of an index page in, the directory's entries out. Pure; no DOM is built.
//!
//! The href decides what an entry is called, never the text of a link, which servers cut and mis-declare
//! ([`children`]). Who wrote the page ([`shape`]) decides what the text beside it means ([`rows`]), how its sizes are
//! rounded ([`size`]), and when the page is whole. Structured listings are read by [`json`] and [`xml`].

use std::error::Error;
use std::fmt;

use url::Url;

use super::range::{ListedTime, SizeRange};
use rows::Rows;
use serde::{Deserialize, Serialize};

mod children;
mod rows;
mod shape;
mod size;
mod time;
mod tokens;

pub use shape::Shape;

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
    /// The request target of the page with further entries of this directory, if the page names one.
    pub next: Option<String>,
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
}

impl Default for PageLimits {
    fn default() -> Self {
        Self {
            links: 1_000_000,
            url_bytes: 8192,
        }
    }
}

/// Why a page cannot be read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PageError {
    /// It has more links than [`PageLimits::links`].
    TooManyLinks,
}

impl fmt::Display for PageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooManyLinks => f.write_str("the page has too many links"),
        }
    }
}

impl Error for PageError {}

/// Reads the page `body` that was got from `page`, the URL after redirects, whose path ends in `/`.
///
/// # Errors
/// [`PageError`]; a page that lists nothing is none and has no entries.
pub fn parse(body: &[u8], page: &Url, limits: PageLimits) -> Result<Listing, PageError> {
    let shape = Shape::of_html(body);
    match html(body, shape, page, limits)? {
        Some(listing) => Ok(listing),
        // It only looks like that server's. No row can fail to be what any row is.
        None => Ok(html(body, Shape::Generic, page, limits)?.unwrap_or_else(|| empty(shape))),
    }
}

/// Reads an HTML page as one of this shape; `None`: none of its rows is.
fn html(
    body: &[u8],
    shape: Shape,
    page: &Url,
    limits: PageLimits,
) -> Result<Option<Listing>, PageError> {
    let mut rows = Rows::new(shape, page, limits);
    tokens::read(body, &mut rows);
    if rows.links > limits.links {
        return Err(PageError::TooManyLinks);
    }
    if !rows.finish() {
        return Ok(None);
    }
    let next = rows.next.take();
    let next = next.and_then(|href| next_page(&rows.children.resolve(&href)?, page));
    let mut entries = rows.children.entries;
    let marks_directories = rows.children.marks_directories || shape.marks_directories();
    // Where only files have sizes, what has one is a file.
    let sizes_tell = shape == Shape::Generic && entries.iter().any(|entry| entry.size.is_none());
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
    Ok(Some(Listing {
        shape,
        entries,
        ended: rows.ended,
        marks_directories,
        overlong: rows.children.overlong,
        nameless: rows.children.nameless,
        next,
    }))
}

fn empty(shape: Shape) -> Listing {
    Listing {
        shape,
        entries: Vec::new(),
        ended: false,
        marks_directories: false,
        overlong: 0,
        nameless: 0,
        next: None,
    }
}

/// The request target of `next`, if it is another part of the directory `page`: the same path, and another query.
fn next_page(next: &Url, page: &Url) -> Option<String> {
    let is_here = next.origin() == page.origin() && next.path() == page.path();
    let query = next.query()?;
    (is_here && Some(query) != page.query()).then(|| format!("{}?{query}", next.path()))
}

/// Whether a query only chooses how an index page looks, so that the URL without it names the same thing.
pub(super) fn is_sort_query(query: &str) -> bool {
    query.split(['&', ';']).all(|pair| {
        let key = pair.split_once('=').map_or(pair, |(key, _)| key);
        SORT_KEYS.contains(&key)
    })
}

/// Apache (`C` column, `O` order, `F` format, `V` version sort, `P` pattern), Caddy (the words), and those that
/// imitate them.
const SORT_KEYS: [&str; 9] = ["", "C", "O", "F", "V", "P", "sort", "order", "layout"];

#[cfg(test)]
mod tests;
