//! How far a crawl goes, how patient it is, and what a server can make it remember.

use std::num::NonZeroU32;
use std::time::Duration;

use courser::{Rate, RateLimiter};

use super::listing::PageLimits;

/// How far to go and how patiently.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Directories at this depth are reported but not read; the start has depth 0. Default: no limit.
    pub max_depth: Option<u32>,
    /// How often a URL is asked for in all, when the transport fails or the server says 5xx. Default 10: of a host that
    /// fails one request in eight at random, one URL in a thousand million is lost.
    pub attempts: NonZeroU32,
    /// Pause before the second attempt; it doubles with each further one, up to 2 s. Default 500 ms.
    pub first_pause: Duration,
    /// Longest pause that a host gets by asking for it, with a `Retry-After` or by 429 and 503 without end. Default 60 s.
    pub longest_pause: Duration,
    /// How long after its first request a URL is asked for again. Default 15 min.
    pub patience: Duration,
    /// Whether robots.txt is asked for first, and obeyed. Default: yes.
    pub robots: bool,
    /// The product token that robots.txt knows this crawler by. Default `Courser`.
    pub agent: String,
    /// Requests to the host in a time. Default: no limit.
    pub rate: Option<Rate>,
    /// The least time between two requests to the host. Default 0.
    pub min_delay: Duration,
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
            attempts: NonZeroU32::new(10).unwrap_or(NonZeroU32::MIN),
            first_pause: Duration::from_millis(500),
            longest_pause: Duration::from_secs(60),
            patience: Duration::from_secs(15 * 60),
            robots: true,
            agent: "Courser".to_owned(),
            rate: None,
            min_delay: Duration::ZERO,
            follow: Follow::Listings,
            dav: false,
            clock: false,
            limits: Limits::default(),
        }
    }
}

impl Policy {
    /// The pause after the `nth` attempt in vain.
    pub(super) fn back_off(&self, nth: u32) -> Duration {
        let longest = LONGEST_BACK_OFF.max(self.first_pause);
        self.complaint_pause(nth).min(longest)
    }

    /// The pause after the `nth` complaint in a row that does not say for how long.
    pub(super) fn complaint_pause(&self, nth: u32) -> Duration {
        let doubled = 2u32.saturating_pow(nth.saturating_sub(1));
        self.first_pause
            .saturating_mul(doubled)
            .min(self.longest_pause)
    }
}

/// Longest pause between attempts that nobody asked for. With so many attempts, longer ones would only make what is
/// broken for good take minutes.
const LONGEST_BACK_OFF: Duration = Duration::from_secs(2);

impl Policy {
    /// The limits on the rate of requests, before any is sent.
    pub fn pace(&self) -> Vec<RateLimiter> {
        let delay = Some(self.min_delay).filter(|delay| !delay.is_zero());
        let rates = self.rate.into_iter().chain(delay.map(Rate::every));
        rates.map(RateLimiter::new).collect()
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
