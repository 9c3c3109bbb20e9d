//! The settings of checks at hosts.

use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;

use courser::{Rate, Statuses};

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
    /// Whether URLs are asked by HEAD first. Default [`HeadUse::Auto`].
    pub head: HeadUse,
    /// Further statuses that are good. Default none: 2xx and 304 are always good.
    pub accept: Statuses,
    /// The most redirects that are followed. Default 10.
    pub redirects: u32,
    /// Whether pages are compared with the one that the host sends for paths that do not exist. Default no.
    pub soft_404: bool,
    /// The most bytes of a body that is read for its links or anchors. Default 64 MiB.
    pub max_body: u64,
    /// Whether redirects and links of public pages may lead to private addresses. Default no.
    pub allow_private: bool,
}

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
            head: HeadUse::default(),
            accept: Statuses::none(),
            redirects: 10,
            soft_404: false,
            max_body: 64 << 20,
            allow_private: false,
        }
    }
}
