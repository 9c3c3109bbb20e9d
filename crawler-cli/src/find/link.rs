//! Links from one URL to another: by a page or a redirect.

use std::sync::Arc;

use url::Url;

use super::listing::Shape;
use super::range::ListedTime;

/// A link to a URL.
#[derive(Clone, Debug)]
pub struct Link {
    /// The target.
    pub url: Url,
    /// What to do with the target.
    pub kind: LinkKind,
    /// Whether the target is on another host, whose crawl has to handle it.
    pub elsewhere: bool,
    /// The shape of the page that named the target, if the target is to be reported.
    pub(super) listing: Option<Shape>,
    /// The time of the target's last change, if given.
    pub(super) modified: Option<ListedTime>,
    /// The page that has the link.
    pub(super) from: Option<Arc<str>>,
    /// The chain of URLs that redirected to it.
    pub(super) chain: Option<Arc<Ancestors>>,
}

/// What to do with the target of a [`Link`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LinkKind {
    /// A start that was redirected.
    Start,
    /// A directory that was redirected: read, but not reported again.
    Moved,
    /// A directory to report and read.
    Directory,
    /// A URL to report, which may be a page with links.
    Page,
    /// A file to report.
    File,
}

impl Link {
    pub(super) fn new(url: Url, kind: LinkKind) -> Self {
        Self {
            url,
            kind,
            elsewhere: false,
            listing: None,
            modified: None,
            from: None,
            chain: None,
        }
    }
}

/// A linked list of fingerprints: of the listings of a directory and its ancestors, or of a chain of redirects.
#[derive(Debug)]
pub struct Ancestors {
    pub(super) listing: u64,
    pub(super) next: Option<Arc<Ancestors>>,
}

impl Ancestors {
    /// The list of these fingerprints, the innermost first.
    pub(super) fn of(listings: Vec<u64>) -> Option<Arc<Self>> {
        let outermost_first = listings.into_iter().rev();
        outermost_first.fold(None, |next, listing| Some(Arc::new(Self { listing, next })))
    }

    /// The fingerprints, the innermost first.
    pub(super) fn listings(this: Option<&Arc<Self>>) -> impl Iterator<Item = u64> {
        std::iter::successors(this, |above| above.next.as_ref()).map(|above| above.listing)
    }
}
