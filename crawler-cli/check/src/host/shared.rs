//! What the caller and the work at all hosts share: the settings, who is told of each request, and what the hosts hand over.

use std::fmt;
use std::mem;
use std::num::{NonZeroU32, NonZeroU64};
use std::sync::Arc;
use std::time::Duration;

use courser::policy::{AdaptiveTimeout, BreakerConfig, Statuses};
use courser::{AddressPolicy, Rate, Report};
use jiff::Timestamp;
use url::Url;

use super::page::AnswerBody;
use crate::task::{Hop, Outcome, Page, UrlId};
use crawl::policy::{HostPolicy, RetryPolicy};
use crawl::stats::Stats;
use verdict::guard::LocalSign;

/// The settings of checks at hosts.
///
/// ```
/// use check::host::Policy;
///
/// let policy = Policy { accept: courser::policy::Statuses::none().and(200..=299).and(403..=403), ..Policy::default() };
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

/// What the work at all hosts shares: the statistics, and what the hosts hand to the caller.
#[derive(Debug)]
pub struct Shared {
    /// The statistics of the run.
    pub stats: Stats,
    pub(super) outcomes: Vec<Outcome>,
    pub(super) hops: Vec<Hop>,
    pub(super) sites: Vec<(Url, Page)>,
    signs: Vec<LocalSign>,
    /// The bytes of the bodies that are being read.
    held: usize,
    pub(super) observer: Option<Box<dyn Observe>>,
    /// One value for all calls that may dial only public addresses, so that they share connections.
    pub(super) public: Arc<AddressPolicy>,
}

impl Shared {
    /// Nothing to hand over yet.
    pub fn new(stats: Stats) -> Self {
        Self {
            stats,
            outcomes: Vec::new(),
            hops: Vec::new(),
            sites: Vec::new(),
            signs: Vec::new(),
            held: 0,
            observer: None,
            public: Arc::new(AddressPolicy::deny_private()),
        }
    }

    /// Tells this observer of each request from now on.
    pub fn set_observer(&mut self, observer: Box<dyn Observe>) {
        self.observer = Some(observer);
    }

    pub(super) fn note_sent(&self, task: Option<UrlId>, method: &'static str, purpose: Purpose) {
        if let Some(observer) = &self.observer {
            observer.sent(task, method, purpose);
        }
    }

    /// The outcomes since the last call, in the order in which the URLs were judged. They are as many as requests have
    /// ended, plus the tasks of hosts that were given up. `now` becomes the time of those that were asked.
    pub fn take_outcomes(&mut self, now: Timestamp) -> Vec<Outcome> {
        for outcome in &mut self.outcomes {
            outcome.answer.checked_at = outcome.answer.method.is_some().then_some(now);
        }
        mem::take(&mut self.outcomes)
    }

    /// The redirects since the last call that lead to other hosts.
    pub fn take_hops(&mut self) -> Vec<Hop> {
        mem::take(&mut self.hops)
    }

    /// What robots.txt and `/sitemap.xml` of hosts name since the last call, with their URLs.
    pub fn take_sites(&mut self) -> Vec<(Url, Page)> {
        mem::take(&mut self.sites)
    }

    /// The signs since the last call that this machine or its network is at fault, each once.
    pub fn take_signs(&mut self) -> Vec<LocalSign> {
        mem::take(&mut self.signs)
    }

    /// Adds a part to a body. Returns whether more is wanted: not if the bodies that are being read are too long together.
    pub(super) fn add_to_body(&mut self, body: &mut AnswerBody, part: &[u8]) -> bool {
        let before = body.bytes.len();
        let goes_on = body.add(part, MOST_HELD - self.held);
        self.held += body.bytes.len() - before;
        goes_on
    }

    /// A body is no longer being read.
    pub(super) fn end_body(&mut self, body: &AnswerBody) {
        self.held -= body.bytes.len();
    }

    pub(super) fn note_sign(&mut self, sign: LocalSign) {
        if !self.signs.contains(&sign) {
            self.signs.push(sign);
        }
    }
}

/// The most bytes of all bodies that are being read at a time. What comes beyond is not read.
const MOST_HELD: usize = 256 << 20;

/// Is told of each request to a host. Called for each request: it must be quick.
pub trait Observe: fmt::Debug {
    /// A request is sent: a part of this task, or one that the host itself needs.
    fn sent(&self, task: Option<UrlId>, method: &'static str, purpose: Purpose);

    /// A request has ended, or the head of its answer is there.
    fn ended(&self, report: &Report);
}

/// Why a request is sent.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Purpose {
    /// A URL is asked for the first time, or a redirect of it is followed.
    First,
    /// A further request of the same attempt, which confirms what the one before said.
    Confirm,
    /// A further attempt.
    Retry,
    /// `robots.txt`
    Robots,
}
