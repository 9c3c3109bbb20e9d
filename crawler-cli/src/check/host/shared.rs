//! What the work at all hosts shares: the statistics, and what the hosts hand to the caller.

use std::mem;
use std::sync::Arc;

use courser::AddressPolicy;

use crate::check::guard::LocalSign;
use crate::check::task::{Hop, Outcome};
use crate::crawl::stats::Stats;

/// What the work at all hosts shares: the statistics, and what the hosts hand to the caller.
#[derive(Debug)]
pub struct Shared {
    /// The statistics of the run.
    pub stats: Stats,
    pub(super) outcomes: Vec<Outcome>,
    pub(super) hops: Vec<Hop>,
    signs: Vec<LocalSign>,
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
            signs: Vec::new(),
            public: Arc::new(AddressPolicy::deny_private()),
        }
    }

    /// The outcomes since the last call, in the order in which the URLs were judged. They are as many as requests have
    /// ended, plus the tasks of hosts that were given up.
    pub fn take_outcomes(&mut self) -> Vec<Outcome> {
        mem::take(&mut self.outcomes)
    }

    /// The redirects since the last call that lead to other hosts.
    pub fn take_hops(&mut self) -> Vec<Hop> {
        mem::take(&mut self.hops)
    }

    /// The signs since the last call that this machine or its network is at fault, each once.
    pub fn take_signs(&mut self) -> Vec<LocalSign> {
        mem::take(&mut self.signs)
    }

    pub(super) fn note_sign(&mut self, sign: LocalSign) {
        if !self.signs.contains(&sign) {
            self.signs.push(sign);
        }
    }
}
