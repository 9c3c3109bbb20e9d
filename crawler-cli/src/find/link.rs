//! What leads from one URL to another one.

use std::sync::Arc;

use url::Url;

use super::listing::Shape;
use super::range::ListedTime;

/// A URL that something leads to.
#[derive(Clone, Debug)]
pub struct Link {
    /// Where.
    pub url: Url,
    /// What is to be done there.
    pub kind: LinkKind,
    /// Whether it is on another host, so that the crawl of that host is to be told.
    pub elsewhere: bool,
    /// What named it, if it is to be found by that.
    pub(super) listing: Option<Shape>,
    /// When it changed last, if that was said.
    pub(super) modified: Option<ListedTime>,
    /// Of a sitemap, how many others name it, one the other.
    pub(super) depth: u32,
    /// The URLs that redirected to it, one to the other.
    pub(super) chain: Option<Arc<Ancestors>>,
}

/// What is to be done with a [`Link`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LinkKind {
    /// A start was moved there.
    Start,
    /// A directory was moved there: it is read, and not found once more.
    Moved,
    /// A directory to find and to read.
    Directory,
    /// Something to find, which may be a page with links of its own.
    Page,
    /// A file to find.
    File,
    /// A list of pages, which is not found itself.
    Sitemap,
}

impl Link {
    pub(super) fn new(url: Url, kind: LinkKind) -> Self {
        Self {
            url,
            kind,
            elsewhere: false,
            listing: None,
            modified: None,
            depth: 0,
            chain: None,
        }
    }
}

/// What a directory lists, and those above it, or URLs that redirect one to the other: by their fingerprints.
#[derive(Debug)]
pub struct Ancestors {
    pub(super) listing: u64,
    pub(super) next: Option<Arc<Ancestors>>,
}

impl Ancestors {
    /// From the innermost one outwards.
    pub(super) fn listings(this: Option<&Arc<Self>>) -> impl Iterator<Item = u64> {
        std::iter::successors(this, |above| above.next.as_ref()).map(|above| above.listing)
    }
}
