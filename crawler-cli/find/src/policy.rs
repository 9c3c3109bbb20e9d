//! The settings of a crawl: how far it goes, and limits on what a server can make it remember.

use crawl::policy::HostPolicy;
use listing::PageLimits;

/// The settings of a crawl.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// Directories at this depth are reported but not read; the start has depth 0. Default: no limit.
    pub max_depth: Option<u32>,
    /// Retries and politeness.
    pub host: HostPolicy,
    /// Which links lead from one URL to the next. Default: listings.
    pub follow: Follow,
    /// Whether the links of pages that look like no listing are entries. Default: no; such a page is reported as unread.
    pub accept_pages: bool,
    /// Whether the time zone of listings is found out before the first file with a time is reported, and not only when
    /// a test depends on it. Default: no.
    pub clock: bool,
    /// Whether cookies of servers are sent back, so that a page that redirects to itself with a cookie is asked again.
    /// Default: no.
    pub keeps_cookies: bool,
    /// Limits on what a server can make the crawl remember.
    pub limits: Limits,
}

/// Which links lead from one URL to the next.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Follow {
    /// Listings of directories: only direct children are entries.
    #[default]
    Listings,
    /// Web pages: all their links are followed, and embedded resources are reported.
    Pages,
}

/// Limits on what a server can make the crawl remember or repeat. What exceeds a limit is reported as unread.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Limits on one page.
    pub page: PageLimits,
    /// Directories of one host. Each takes about 30 bytes, and its path while it is queued. Default 10,000,000.
    pub directories: usize,
    /// Further pages of listings of one host. Default 1,000,000.
    pub pages: usize,
    /// Pages of one host that links lead to. Default 100,000.
    pub linked_pages: u64,
    /// Depth below the start. Default 100.
    pub depth: u32,
    /// Occurrences of one name in a path below the start. More are taken for a loop of symbolic links, which HTTP does
    /// not show. Default 8.
    pub repeats: usize,
    /// Ancestors of a directory that list exactly the same, with times of files. With more, it is tried whether the
    /// levels below repeat as well, which makes a loop. For listings without times of files, the limit is `repeats`.
    /// Default 0.
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
            linked_pages: 100_000,
            depth: 100,
            repeats: 8,
            same_listings: 0,
            redirects: 5,
        }
    }
}
