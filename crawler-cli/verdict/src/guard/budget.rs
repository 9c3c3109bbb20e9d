//! How many URLs may be pruned: a mistake that all other rules let through stays small.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use jiff::Timestamp;

use super::recent::Recent;
use crate::life::time::between;

/// The limits of pruning: `prune_budget` in the configuration. A share of 0 means no limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BudgetRules {
    /// The share of all URLs. Default: 0.005.
    pub all: f64,
    /// The share of the URLs of a host. Default: 0.05.
    pub host: f64,
    /// The time in which they are counted. Default: 24 hours.
    pub per: Duration,
}

impl Default for BudgetRules {
    fn default() -> Self {
        Self {
            all: 0.005,
            host: 0.05,
            per: Duration::from_secs(86_400),
        }
    }
}

/// How many URLs were pruned lately, of all hosts and of each. `K` names a host.
///
/// Neither limit is ever below [`LEAST`](Self::LEAST). After a start, tell it what was pruned lately by
/// [`note`](Self::note).
#[derive(Clone, Debug)]
pub struct PruneBudget<K> {
    rules: BudgetRules,
    all: Recent,
    /// Only hosts of which a URL was pruned within the time. Invariant: no more than `all` counts.
    hosts: HashMap<K, Recent>,
    swept_at: Option<Timestamp>,
}

impl<K> Default for PruneBudget<K> {
    fn default() -> Self {
        Self::new(BudgetRules::default())
    }
}

impl<K> PruneBudget<K> {
    /// This many URLs of a host, and of all, may always be pruned in the time.
    pub const LEAST: u64 = 10;

    /// Nothing was pruned yet.
    pub fn new(rules: BudgetRules) -> Self {
        Self {
            rules,
            all: Recent::new(rules.per),
            hosts: HashMap::new(),
            swept_at: None,
        }
    }
}

impl<K: Clone + Eq + Hash> PruneBudget<K> {
    /// Uses these rules from now on. What was pruned lately counts on.
    pub fn set_rules(&mut self, rules: BudgetRules) {
        self.rules = rules;
        let hosts = self.hosts.values_mut();
        for pruned in hosts.chain([&mut self.all]) {
            pruned.set_width(rules.per);
        }
    }

    /// Takes leave to prune one URL of a host, which has `urls_of_host` of the `urls`.
    ///
    /// # Errors
    /// The time after which there is room again, if the budget is spent.
    pub fn take(
        &mut self,
        now: Timestamp,
        host: &K,
        urls_of_host: u64,
        urls: u64,
    ) -> Result<(), Duration> {
        self.sweep(now);
        if self.all.count(now) >= limit(self.rules.all, urls) {
            return Err(self.all.until_less(now));
        }
        if let Some(pruned) = self.hosts.get_mut(host)
            && pruned.count(now) >= limit(self.rules.host, urls_of_host)
        {
            return Err(pruned.until_less(now));
        }
        self.note(now, host);
        Ok(())
    }

    /// How many URLs were pruned lately, and how many may be: `None`, no limit.
    pub fn used(&mut self, now: Timestamp, urls: u64) -> (u64, Option<u64>) {
        let most = limit(self.rules.all, urls);
        (self.all.count(now), (most < u64::MAX).then_some(most))
    }

    /// A URL of a host was pruned then. Oldest first.
    pub fn note(&mut self, at: Timestamp, host: &K) {
        self.all.note(at);
        let width = self.rules.per;
        let pruned = self.hosts.entry(host.clone());
        pruned.or_insert_with(|| Recent::new(width)).note(at);
    }

    /// Forgets hosts of which nothing was pruned lately.
    fn sweep(&mut self, now: Timestamp) {
        let is_soon = |at| between(at, now) < self.rules.per / 24;
        if self.swept_at.is_some_and(is_soon) {
            return;
        }
        self.swept_at = Some(now);
        self.hosts.retain(|_, pruned| pruned.count(now) > 0);
    }
}

/// The casts saturate.
fn limit(share: f64, urls: u64) -> u64 {
    match share > 0.0 {
        true => ((urls as f64 * share) as u64).max(PruneBudget::<()>::LEAST),
        false => u64::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(hours: i64) -> Timestamp {
        Timestamp::from_second(1_767_225_600 + hours * 3600).unwrap()
    }

    fn taken(
        budget: &mut PruneBudget<u32>,
        now: Timestamp,
        host: u32,
        urls_of_host: u64,
        urls: u64,
    ) -> u64 {
        (0..10_000)
            .filter(|_| budget.take(now, &host, urls_of_host, urls).is_ok())
            .count() as u64
    }

    #[test]
    fn the_shares_of_a_day_and_never_less_than_ten() {
        // (URLs of the host, all URLs, how many may be pruned)
        let table = [
            (1, 1, 10),
            (200, 100_000, 10),
            (220, 100_000, 11),
            (10_000, 1_000_000, 500),
            (100_000, 100_000, 500),
            (100_000, 1_000, 10),
        ];
        for (urls_of_host, urls, limit) in table {
            let mut budget = PruneBudget::default();
            assert_eq!(taken(&mut budget, at(0), 0, urls_of_host, urls), limit);
        }
    }

    #[test]
    fn what_is_used_is_counted_until_it_is_over() {
        let mut budget = PruneBudget::default();
        assert_eq!(budget.used(at(0), 100_000), (0, Some(500)));
        taken(&mut budget, at(0), 0, 100, 100_000);
        assert_eq!(budget.used(at(1), 100_000), (10, Some(500)));
        assert_eq!(budget.used(at(1), 0), (10, Some(10)));
        assert_eq!(budget.used(at(30), 100_000), (0, Some(500)));
        budget.set_rules(BudgetRules {
            all: 0.0,
            ..BudgetRules::default()
        });
        assert_eq!(budget.used(at(30), 100_000), (0, None));
    }

    #[test]
    fn hosts_share_the_budget_of_all() {
        let mut budget = PruneBudget::default();
        assert_eq!(taken(&mut budget, at(0), 0, 100, 3_000), 10);
        assert_eq!(taken(&mut budget, at(0), 1, 100, 3_000), 5);
        assert_eq!(taken(&mut budget, at(0), 2, 100, 3_000), 0);
    }

    #[test]
    fn hosts_are_forgotten() {
        let mut budget = PruneBudget::default();
        for host in 0..1_000 {
            assert!(budget.take(at(0), &host, 1, 1_000_000).is_ok());
        }
        assert!(budget.take(at(48), &0, 1, 1).is_ok());
        assert_eq!(budget.hosts.len(), 1);
    }
}
