//! The settings of checks at hosts.

use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;

use courser::{AdaptiveTimeout, BreakerConfig, Rate, Statuses};

use crate::crawl::policy::{HostPolicy, RetryPolicy};

/// The settings of checks at hosts.
///
/// ```
/// use crawler_cli::check::host::Policy;
///
/// let policy = Policy { accept: courser::Statuses::none().and(200..=299).and(403..=403), ..Policy::default() };
/// assert_eq!(policy.host.retry.attempts.get(), 4);
/// ```
#[derive(Clone, Debug)]
pub struct Policy {
    /// The rate of requests, retries and robots.txt. Default: 10 requests a second, 4 attempts with full jitter, a
    /// patience of 60 s, robots.txt is read.
    pub host: HostPolicy,
    /// Whether hosts on the loopback of this machine have no rate. Default no.
    pub spares_loopback: bool,
    /// Whether URLs are asked by HEAD first. Default [`HeadUse::Auto`].
    pub head: HeadUse,
    /// Further statuses that are good. Default none: 2xx and 304 are always good.
    pub accept: Statuses,
    /// The most redirects that are followed. Default 10.
    pub redirects: u32,
    /// The limit for one request in all. Default 20 s.
    pub timeout: Duration,
    /// The most bytes of a body that is read for its links. Default 64 MiB.
    pub max_body: u64,
    /// Whether the sitemaps of a host are read when links of its pages are wanted: those that robots.txt names, else
    /// `/sitemap.xml`. Default no.
    pub sitemaps: bool,
    /// Whether redirects and links of public pages may lead to private addresses. Default no.
    pub allow_private: bool,
    /// Whether the host is asked again and again, for days. Then it is not asked at all while a `Retry-After` beyond the
    /// patience lasts, at most for a day: its URLs are reported as throttled; and a host that was given up is probed after
    /// 30 s, then after twice as long each time, up to 15 min. Default no: other URLs are asked, after 4 such answers the
    /// host is given up, and a host that was given up stays so.
    pub asks_for_days: bool,
}

impl Policy {
    /// How long the client waits for an answer: three times the usual wait for the host, between 1 s and the timeout. A
    /// URL that needs longer gets the whole timeout in its next attempts.
    pub fn adaptive(&self) -> AdaptiveTimeout {
        AdaptiveTimeout {
            min: SHORTEST_WAIT.min(self.timeout),
            max: self.timeout,
            ..AdaptiveTimeout::default()
        }
    }

    /// When the client leaves a host alone for a while: if four of five requests fail. 503 does not count, because with
    /// `Retry-After` the status asks for a pause.
    pub fn breaker() -> BreakerConfig {
        BreakerConfig {
            failure_ratio: 0.8,
            statuses: Statuses::none()
                .and(500..=500)
                .and(502..=502)
                .and(504..=504),
            ..BreakerConfig::default()
        }
    }
}

/// The shortest limit of the wait for an answer that follows from the usual wait.
const SHORTEST_WAIT: Duration = Duration::from_secs(1);

/// Whether URLs are asked by HEAD first.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum HeadUse {
    /// Yes, except at hosts that treat HEAD wrongly.
    #[default]
    Auto,
    /// No: always by GET.
    Never,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            host: HostPolicy {
                retry: RetryPolicy {
                    attempts: NonZeroU32::new(4).unwrap_or(NonZeroU32::MIN),
                    jitter: 1.0,
                    patience: Duration::from_secs(60),
                    ..RetryPolicy::default()
                },
                rate: NonZeroU64::new(10).map(Rate::per_second),
                ..HostPolicy::default()
            },
            spares_loopback: false,
            head: HeadUse::default(),
            accept: Statuses::none(),
            redirects: 10,
            timeout: Duration::from_secs(20),
            max_body: 64 << 20,
            sitemaps: false,
            allow_private: false,
            asks_for_days: false,
        }
    }
}
