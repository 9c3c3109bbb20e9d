//! What the core does, and how. The configuration file is read elsewhere.

use std::num::NonZeroUsize;
use std::time::Duration;

use courser::Rate;
use url::Url;

use check::host::HeadUse;
use crawl::identity::Identity;
use crawl::transfer::USER_AGENT;
use jobs::{CeilingLimits, Ceilings, HostCeilings};
use plain::host_pattern::HostPattern;
use verdict::guard::{BudgetRules, FlipRules, OwnNetworkRules};
use verdict::life::{Reconcile, Rules};

/// What the core does, and how.
///
/// ```
/// use watch::core::{Limit, Limits, Settings};
///
/// let settings = Settings {
///     limits: Limits { per_host_rate: Limits::rate(2.5), ..Limits::default() },
///     ..Settings::default()
/// };
/// assert_ne!(settings.limits.per_host_rate, Limit::None);
/// ```
#[derive(Clone, Debug)]
pub struct Settings {
    /// How much is asked at a time, and how fast: `[limits]`.
    pub limits: Limits,
    /// The rules of URLs' lives: `[policy]`.
    pub rules: Rules,
    /// `[guard]`
    pub guards: GuardRules,
    /// `[reconcile]`
    pub reconcile: Reconcile,
    /// What holds for some hosts: `[[host]]`. Where several fit a host, the last one that says something about it holds.
    pub hosts: Vec<HostRule>,
    /// The `User-Agent` of requests. Its part before the first `/` or blank names this program in robots.txt.
    pub user_agent: String,
    /// Whether the delays of robots.txt are obeyed. Its `Disallow` is not applied to URLs that were given one by one.
    /// Default: yes.
    pub robots: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            rules: Rules::default(),
            guards: GuardRules::default(),
            reconcile: Reconcile::default(),
            hosts: Vec::new(),
            user_agent: USER_AGENT.to_owned(),
            robots: true,
        }
    }
}

/// A limit that can be absent. In the configuration, 0 is no limit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Limit<T> {
    /// No limit.
    None,
    /// This much at most.
    At(T),
}

impl<T> Limit<T> {
    /// The limit, if there is one.
    pub fn at(self) -> Option<T> {
        match self {
            Self::None => None,
            Self::At(limit) => Some(limit),
        }
    }
}

/// How much is asked at a time, and how fast.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Connections to all hosts. Default: 512.
    pub connections: Limit<NonZeroUsize>,
    /// Connections to one host, and requests in flight to the host. Default: 2.
    pub per_host_connections: Limit<NonZeroUsize>,
    /// Requests to one host. Default: 1 a second.
    pub per_host_rate: Limit<Rate>,
    /// The shortest time between two requests to one host. Default: none.
    pub per_host_delay: Duration,
    /// The limit for one request in all; zero: no limit. Default: 20 s.
    pub timeout: Duration,
    /// Whether the wait for an answer follows the usual wait for the host, within the timeout. Default: yes.
    pub adaptive: bool,
    /// The longest adaptive limit, and the limit while little is known about a host. A URL that needs longer gets the
    /// whole timeout in its next attempt. Default: the timeout.
    pub adaptive_timeout: Option<Duration>,
    /// Whether private addresses may be asked. Default: no.
    pub allow_private: bool,
    /// How often a URL is asked in one check, if it cannot be reached. Default: 3.
    pub attempts: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: NonZeroUsize::new(512).map_or(Limit::None, Limit::At),
            per_host_connections: NonZeroUsize::new(2).map_or(Limit::None, Limit::At),
            per_host_rate: Self::rate(1.0),
            per_host_delay: Duration::ZERO,
            timeout: Duration::from_secs(20),
            adaptive: true,
            adaptive_timeout: None,
            allow_private: false,
            attempts: 3,
        }
    }
}

impl Limits {
    /// A number of requests a second, of which each has its own time: no bursts. Zero, and what is no number, is no
    /// limit.
    pub fn rate(per_second: f64) -> Limit<Rate> {
        match per_second > 0.0 {
            true => Duration::try_from_secs_f64(per_second.recip())
                .map_or(Limit::None, |delay| Limit::At(Rate::every(delay))),
            false => Limit::None,
        }
    }
}

/// What holds for the hosts that match. `None`: what holds for all.
#[derive(Clone, Debug)]
pub struct HostRule {
    /// The hosts.
    pub hosts: HostPattern,
    /// Requests to one host.
    pub rate: Option<Limit<Rate>>,
    /// Connections to one host.
    pub connections: Option<Limit<NonZeroUsize>>,
    /// The shortest time between two requests to one host.
    pub delay: Option<Duration>,
    /// Header fields and credentials.
    pub identity: Identity,
    /// Whether URLs are asked by HEAD first.
    pub head: Option<HeadUse>,
    /// What checks and jobs of each of these hosts share. Its limits are [`rate`](Self::rate) and
    /// [`connections`](Self::connections).
    pub ceilings: HostCeilings,
}

impl HostRule {
    /// A rule that says nothing yet.
    pub fn new(hosts: HostPattern) -> Self {
        Self {
            hosts,
            rate: None,
            connections: None,
            delay: None,
            identity: Identity::default(),
            head: None,
            ceilings: HostCeilings::default(),
        }
    }
}

impl Settings {
    /// Uses the ceilings of earlier settings for the same hosts: what is under way counts on.
    pub fn keep_ceilings(&mut self, earlier: &Self) {
        for rule in &mut self.hosts {
            let same = earlier.hosts.iter().find(|old| old.hosts == rule.hosts);
            if let Some(old) = same {
                rule.ceilings = old.ceilings.clone();
            }
        }
    }

    /// The ceilings of the rules that have limits. The last one that fits a host holds.
    pub fn ceilings(&self) -> Ceilings {
        let mut ceilings = Ceilings::default();
        for rule in self.hosts.iter().rev() {
            let limits = CeilingLimits {
                concurrency: rule.connections.and_then(Limit::at),
                rate: rule.rate.and_then(Limit::at),
            };
            rule.ceilings.set_limits(limits);
            if limits != CeilingLimits::default() {
                ceilings.add_each(rule.hosts.clone(), rule.ceilings.clone());
            }
        }
        ceilings
    }
}

/// The guards.
#[derive(Clone, Debug, Default)]
pub struct GuardRules {
    /// `self_network`
    pub network: OwnNetworkRules,
    /// `host_flip`
    pub flip: FlipRules,
    /// `prune_budget`
    pub budget: BudgetRules,
    /// URLs that always answer: `canaries`.
    pub canaries: Vec<Url>,
}
