//! How far a crawl goes, how patient it is, and what a server can make it remember.

use super::listing::PageLimits;
use crate::crawl::policy::HostPolicy;

/// How far to go and how patiently.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Directories at this depth are reported but not read; the start has depth 0. Default: no limit.
    pub max_depth: Option<u32>,
    /// How patiently and how politely a host is asked.
    pub host: HostPolicy,
    /// What leads from one URL to the next. Default: listings.
    pub follow: Follow,
    /// Whether directories are listed by WebDAV's `PROPFIND`, and not by their pages. Default: no.
    pub dav: bool,
    /// Whether the zone of a listing's times is found out before a file with one is looked at, and not only once a test
    /// depends on it. Default: no.
    pub clock: bool,
    /// Bounds on what a server can make the crawl remember.
    pub limits: Limits,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            max_depth: None,
            host: HostPolicy::default(),
            follow: Follow::Listings,
            dav: false,
            clock: false,
            limits: Limits::default(),
        }
    }
}

/// What leads from one URL to the next.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Follow {
    /// Pages are listings of directories: only what is directly below is an entry.
    #[default]
    Listings,
    /// Pages are web pages: all links lead on, and what they embed is found too.
    Pages,
}

/// Bounds on what a server can make the crawl remember or repeat. What exceeds one is reported as unread.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bounds on one page.
    pub page: PageLimits,
    /// Directories of one host. Each costs some 30 bytes for good, and its path while it waits. Default 10,000,000.
    pub directories: usize,
    /// Further pages of listings that are cut into pages, of one host. Default 1,000,000.
    pub pages: usize,
    /// Depth below the start. Default 100.
    pub depth: u32,
    /// How often one name may occur in one path below the start. More is taken for a loop of symbolic links, which
    /// cannot be told from directories over HTTP. Default 8.
    pub repeats: usize,
    /// How many directories above one may list exactly what it lists, the times of files included. One more is taken
    /// for a loop. Lists without such times may be as equal as names may repeat. Default 0.
    pub same_listings: usize,
    /// Redirects in a row. Default 5.
    pub redirects: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            page: PageLimits::default(),
            directories: 10_000_000,
            pages: 1_000_000,
            depth: 100,
            repeats: 8,
            same_listings: 0,
            redirects: 5,
        }
    }
}
