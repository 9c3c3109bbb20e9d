//! Cycles of reconciling: what is in doubt and due is asked. Pure: time is an argument.
//!
//! One cycle at a time. A cycle takes what was due when it began, however late its row was written, and ends when all of
//! that was answered, or cannot be asked for now. What was not answered stays due.

use std::collections::HashSet;
use std::time::Duration;

use jiff::Timestamp;

use plain::random::Random;
use store::{CycleCounts, CycleId, HostId};
use verdict::Class;
use verdict::life::time::{after, between};
use verdict::life::{Reconcile, State};

/// The cycles.
#[derive(Debug)]
pub(super) struct Cycles {
    rules: Reconcile,
    random: Random,
    /// When the next cycle begins by the interval.
    next_at: Timestamp,
    /// Nothing is in doubt and due before that time.
    idle_until: Option<Timestamp>,
    current: Option<Current>,
}

/// The cycle that is under way.
#[derive(Debug)]
pub(super) struct Current {
    pub(super) began: Timestamp,
    /// `None`: the store does not know of it yet.
    pub(super) id: Option<CycleId>,
    /// Hosts whose URLs in doubt are asked.
    open: HashSet<HostId>,
    /// All hosts so far.
    pub(super) seen: HashSet<HostId>,
    /// Whether the store may have further hosts.
    has_more: bool,
    is_looking: bool,
    pub(super) counts: CycleCounts,
}

impl Cycles {
    /// Whether hosts with something in doubt are being looked for.
    pub(super) fn is_looking(&self) -> bool {
        self.current
            .as_ref()
            .is_some_and(|current| current.is_looking)
    }

    pub(super) fn new(rules: Reconcile, now: Timestamp, seed: u64) -> Self {
        Self {
            rules,
            random: Random::new(seed),
            next_at: now,
            idle_until: None,
            current: None,
        }
    }

    pub(super) fn set_rules(&mut self, rules: Reconcile) {
        self.rules = rules;
    }

    pub(super) fn current(&mut self) -> Option<&mut Current> {
        self.current.as_mut()
    }

    /// When the next cycle begins; `None` while one is under way.
    pub(super) fn next_at(&self) -> Option<Timestamp> {
        let at = self
            .idle_until
            .map_or(self.next_at, |idle| idle.max(self.next_at));
        self.current.is_none().then_some(at)
    }

    /// When the cycle that is under way ends at the latest.
    pub(super) fn ends_at(&self) -> Option<Timestamp> {
        let longest = (self.rules.interval * LONGEST_INTERVALS).max(LEAST_LONGEST);
        Some(after(self.current.as_ref()?.began, longest))
    }

    /// Begins a cycle, if one is due and none is under way.
    pub(super) fn begin(&mut self, now: Timestamp) -> bool {
        if self.next_at().is_none_or(|at| now < at) {
            return false;
        }
        self.idle_until = None;
        self.current = Some(Current {
            began: now,
            id: None,
            open: HashSet::new(),
            seen: HashSet::new(),
            has_more: true,
            is_looking: false,
            counts: CycleCounts::default(),
        });
        true
    }

    /// Ends the cycle, if everything was answered or its time is over. `is_judging`: judgements about URLs in doubt are
    /// missing or not stored.
    pub(super) fn end(&mut self, now: Timestamp, is_judging: bool) -> Option<Current> {
        let is_late = self.ends_at().is_some_and(|end| now >= end);
        let is_over = |current: &mut Current| {
            let is_asking = current.has_more || current.is_looking || !current.open.is_empty();
            is_late || !is_asking && !is_judging
        };
        let current = self.current.take_if(is_over)?;
        self.next_at = self.rules.next(current.began, now, &mut self.random);
        Some(current)
    }

    /// Nothing is in doubt and due before that time.
    pub(super) fn wait_until(&mut self, now: Timestamp, at: Option<Timestamp>) {
        let latest = after(now, LONGEST_IDLE);
        self.idle_until = Some(at.map_or(latest, |at| at.min(latest)));
    }

    /// Something that is in doubt will be due then.
    pub(super) fn note_due(&mut self, at: Timestamp) {
        self.idle_until = self.idle_until.map(|idle| idle.min(at));
    }

    /// Something may be in doubt and due earlier than was thought.
    pub(super) fn wake(&mut self) {
        self.idle_until = None;
    }
}

impl Current {
    /// Whether to look for hosts.
    pub(super) fn wants_hosts(&mut self, most: usize) -> bool {
        let wants = self.has_more && !self.is_looking && self.open.len() < most;
        self.is_looking |= wants;
        wants
    }

    /// Hosts were looked for.
    pub(super) fn handle_looked(&mut self, hosts: impl Iterator<Item = HostId>, has_more: bool) {
        self.is_looking = false;
        self.has_more = has_more;
        for host in hosts {
            self.open.insert(host);
            self.seen.insert(host);
        }
    }

    /// A host has nothing more to ask in this cycle.
    pub(super) fn handle_rest(&mut self, host: HostId) {
        self.open.remove(&host);
    }

    /// A URL in doubt was judged.
    pub(super) fn note(&mut self, class: Class, state: State) {
        let counts = &mut self.counts;
        counts.asked += 1;
        match (class, state) {
            (Class::Ok, _) => counts.alive += 1,
            (Class::Void | Class::Unknown | Class::Network, _) => counts.void += 1,
            (_, State::Broken | State::Gone | State::Pruned) => counts.worse += 1,
            _ => counts.in_doubt += 1,
        }
    }

    pub(super) fn took(&self, now: Timestamp) -> Duration {
        between(self.began, now)
    }
}

/// Without anything in doubt, a cycle looks this often whether others have made something due.
const LONGEST_IDLE: Duration = Duration::from_secs(60);

/// A cycle ends after this many intervals, at least after ten minutes, even if hosts are slow. What is left stays due.
const LONGEST_INTERVALS: u32 = 10;
const LEAST_LONGEST: Duration = Duration::from_secs(600);
