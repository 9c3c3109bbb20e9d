//! What holds for which host.

use std::collections::HashMap;
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;
use std::time::Duration;

use courser::net::Net;
use courser::policy::AdaptiveTimeout;
use courser::{Client, Resolver};
use url::Url;

use super::settings::{HostRule, Limit, Limits, Settings};
use check::host::Policy;
use crawl::identity::{Identities, IdentityHosts};
use crawl::transfer::Transfer;

/// The policies of all hosts. Hosts for which the same rules hold share one.
#[derive(Debug)]
pub(super) struct Policies {
    usual: Arc<Policy>,
    usual_connections: usize,
    rules: Vec<HostRule>,
    /// By the indices of the rules that hold.
    special: HashMap<Vec<usize>, (Arc<Policy>, usize)>,
    seed: u64,
    generation: u64,
}

impl Policies {
    pub(super) fn new(settings: &Settings, seed: u64) -> Self {
        let usual = settings.policy(seed);
        Self {
            usual: Arc::new(usual),
            usual_connections: most(settings.limits.per_host_connections),
            rules: settings.hosts.clone(),
            special: HashMap::new(),
            seed,
            generation: 0,
        }
    }

    /// Uses these settings from now on.
    pub(super) fn set(&mut self, settings: &Settings) {
        *self = Self {
            generation: self.generation + 1,
            ..Self::new(settings, self.seed)
        };
    }

    /// Counts how often the settings have changed.
    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    /// What holds for a host, and the most requests in flight to it.
    pub(super) fn of(&mut self, root: &Url) -> (Arc<Policy>, usize) {
        let rules = self.rules.iter().enumerate();
        let fitting = rules.filter(|(_, rule)| rule.hosts.matches(root));
        let fitting: Vec<usize> = fitting.map(|(index, _)| index).collect();
        if fitting.is_empty() {
            return (Arc::clone(&self.usual), self.usual_connections);
        }
        if let Some((policy, connections)) = self.special.get(&fitting) {
            return (Arc::clone(policy), *connections);
        }
        let mut policy = Policy::clone(&self.usual);
        let mut connections = self.usual_connections;
        for rule in fitting.iter().filter_map(|index| self.rules.get(*index)) {
            if let Some(rate) = rule.rate {
                policy.host.rate = rate.at();
            }
            if let Some(delay) = rule.delay {
                policy.host.min_delay = delay;
            }
            if let Some(head) = rule.head {
                policy.head = head;
            }
            if let Some(limit) = rule.connections {
                connections = most(limit);
            }
        }
        let policy = Arc::new(policy);
        let entry = (Arc::clone(&policy), connections);
        self.special.insert(fitting, entry);
        (policy, connections)
    }
}

impl Settings {
    /// The settings of checks at hosts without rules.
    pub(super) fn policy(&self, seed: u64) -> Policy {
        let limits = &self.limits;
        let agent = self.user_agent.split(['/', ' ']).next();
        let mut policy = Policy {
            timeout: limits.longest(),
            allow_private: limits.allow_private,
            asks_for_days: true,
            ..Policy::default()
        };
        let host = &mut policy.host;
        host.retry.attempts = NonZeroU32::new(limits.attempts).unwrap_or(NonZeroU32::MIN);
        host.rate = limits.per_host_rate.at();
        host.min_delay = limits.per_host_delay;
        host.robots = self.robots;
        host.agent = agent.unwrap_or(&self.user_agent).to_owned();
        host.seed = Some(seed);
        policy
    }

    /// The client for these settings, on a network and with a resolver.
    ///
    /// # Errors
    /// The network cannot be used.
    pub fn client_on<N: Net>(
        &self,
        net: N,
        resolver: impl Resolver + 'static,
    ) -> Result<Client<N>, courser::Error> {
        self.transfer().client_on(net, resolver)
    }

    /// The client for these settings, on the network of this machine.
    ///
    /// # Errors
    /// The network cannot be used.
    pub fn client(&self) -> Result<Client, courser::Error> {
        self.transfer().client(&[])
    }

    /// The settings of the client.
    pub(crate) fn transfer(&self) -> Transfer {
        let limits = &self.limits;
        let of_rules = self.hosts.iter().filter_map(|rule| rule.connections);
        let all = of_rules.chain([limits.per_host_connections]).map(most);
        let connections = all.max().and_then(NonZeroUsize::new);
        let mut identities = Identities::default();
        for rule in &self.hosts {
            let hosts = IdentityHosts::Matching(rule.hosts.clone());
            identities.add(hosts, rule.identity.clone());
        }
        Transfer {
            connections: connections.unwrap_or(NonZeroUsize::MIN),
            most: limits.connections.at(),
            timeout: limits.longest(),
            user_agent: self.user_agent.clone(),
            allow_private: limits.allow_private,
            adaptive: limits.adaptive.then(|| limits.adaptive()),
            breaker: Some(Policy::breaker()),
            identities,
            ceilings: self.ceilings(),
            lenient: true,
            ..Transfer::default()
        }
    }
}

impl Limits {
    fn adaptive(&self) -> AdaptiveTimeout {
        let longest = self.longest();
        Policy {
            timeout: self
                .adaptive_timeout
                .map_or(longest, |most| most.min(longest)),
            ..Policy::default()
        }
        .adaptive()
    }

    /// The limit of a request; a day if there is none.
    fn longest(&self) -> Duration {
        match self.timeout {
            Duration::ZERO => Duration::from_secs(86_400),
            timeout => timeout,
        }
    }
}

fn most(limit: Limit<NonZeroUsize>) -> usize {
    limit.at().map_or(MOST_CONNECTIONS, NonZeroUsize::get)
}

/// Connections to a host without a limit: more than a server takes.
pub(super) const MOST_CONNECTIONS: usize = 4_096;
