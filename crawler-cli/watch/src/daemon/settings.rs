//! What the parts of the service need of the configuration.

use crate::config::{Config, HostConfig};
use crate::core::{GuardRules, HostRule, Limit, Limits, Settings};

impl From<&Config> for Settings {
    fn from(config: &Config) -> Self {
        let limits = &config.limits;
        Self {
            limits: Limits {
                connections: limit(limits.connections),
                per_host_connections: limit(limits.per_host_connections),
                per_host_rate: limit(limits.per_host_rate),
                per_host_delay: limits.per_host_delay,
                timeout: limits.timeout.unwrap_or_default(),
                adaptive: limits.adaptive,
                adaptive_timeout: limits.adaptive_timeout,
                allow_private: limits.allow_private,
                attempts: limits.attempts.get(),
            },
            rules: config.policy.rules.clone(),
            guards: GuardRules {
                network: config.guard.self_network,
                flip: config.guard.host_flip,
                budget: config.guard.prune_budget,
                canaries: config.guard.canaries.clone(),
            },
            reconcile: config.reconcile,
            hosts: config.hosts.iter().map(HostRule::from).collect(),
            user_agent: limits.user_agent.clone(),
            robots: limits.robots,
        }
    }
}

impl From<&HostConfig> for HostRule {
    fn from(host: &HostConfig) -> Self {
        Self {
            rate: host.rate.map(limit),
            connections: host.connections.map(limit),
            delay: host.delay,
            identity: host.identity.clone(),
            head: host.head,
            ..Self::new(host.pattern.clone())
        }
    }
}

fn limit<T>(limit: Option<T>) -> Limit<T> {
    limit.map_or(Limit::None, Limit::At)
}
