//! Links from one URL to another: by a page or a redirect.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use url::Url;

use listing::Shape;

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
    /// The page that has the link.
    pub(super) from: Option<Arc<str>>,
    /// The chain of URLs that redirected to it.
    pub(super) chain: Ancestors,
}

/// What to do with the target of a [`Link`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LinkKind {
    /// A start that was redirected.
    Start,
    /// A directory that was redirected: read, but not reported again.
    Moved,
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
            from: None,
            chain: Ancestors::default(),
        }
    }
}

/// Fingerprints of the listings of a directory and its ancestors, or of a chain of redirects, the innermost first. Lists
/// share what is above.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(from = "Vec<u64>", into = "Vec<u64>")]
pub(super) struct Ancestors(Option<Arc<Ancestor>>);

#[derive(Debug)]
struct Ancestor {
    listing: u64,
    above: Ancestors,
}

impl Ancestors {
    /// Adds the innermost one.
    pub(super) fn push(&mut self, listing: u64) {
        let above = std::mem::take(self);
        self.0 = Some(Arc::new(Ancestor { listing, above }));
    }

    /// The fingerprints, the innermost first.
    pub(super) fn iter(&self) -> impl Iterator<Item = u64> {
        let ancestors = std::iter::successors(self.0.as_ref(), |it| it.above.0.as_ref());
        ancestors.map(|it| it.listing)
    }
}

impl From<Vec<u64>> for Ancestors {
    fn from(listings: Vec<u64>) -> Self {
        let mut ancestors = Self::default();
        listings.into_iter().rev().for_each(|it| ancestors.push(it));
        ancestors
    }
}

impl From<Ancestors> for Vec<u64> {
    fn from(ancestors: Ancestors) -> Self {
        ancestors.iter().collect()
    }
}
