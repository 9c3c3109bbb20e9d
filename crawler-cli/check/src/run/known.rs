//! What is remembered about hosts until the end of a run.

use std::collections::HashMap;

use store::{HostFacts, HostId};

/// All hosts of a run.
#[derive(Debug, Default)]
pub(super) struct Known(HashMap<HostId, Host>);

#[derive(Debug, Default)]
struct Host {
    /// Whether the host answered, in this run or an earlier one.
    has_answered: bool,
    /// What earlier runs and this one have learned; `None`: nothing.
    facts: Option<Box<HostFacts>>,
    /// URLs that were found and not judged.
    left: u64,
}

impl Known {
    /// Remembers what earlier runs have learned about a host.
    pub(super) fn add_facts(&mut self, id: HostId, facts: HostFacts) {
        if facts != HostFacts::default() {
            self.0.entry(id).or_default().facts = Some(Box::new(facts));
        }
    }

    /// What is known about a host; `None`: nothing.
    pub(super) fn facts(&self, id: HostId) -> Option<&HostFacts> {
        self.0.get(&id)?.facts.as_deref()
    }

    /// What is known about a host, to be changed.
    pub(super) fn facts_mut(&mut self, host: HostId) -> &mut HostFacts {
        let host = self.0.entry(host).or_default();
        host.facts.get_or_insert_default()
    }

    /// URLs of the host were found.
    pub(super) fn add_found(&mut self, host: HostId, count: u32) {
        self.0.entry(host).or_default().left += u64::from(count);
    }

    /// A URL of the host was judged.
    pub(super) fn end(&mut self, host: HostId) {
        if let Some(host) = self.0.get_mut(&host) {
            host.left = host.left.saturating_sub(1);
        }
    }

    /// URLs of the host that were found and not judged.
    pub(super) fn left(&self, host: HostId) -> u64 {
        self.0.get(&host).map_or(0, |host| host.left)
    }

    /// Notes that the host answered. Returns whether it did so for the first time.
    pub(super) fn note_answer(&mut self, id: HostId) -> bool {
        let host = self.0.entry(id).or_default();
        !std::mem::replace(&mut host.has_answered, true)
    }

    /// Whether the host ever answered.
    pub(super) fn has_answered(&self, id: HostId) -> bool {
        self.0.get(&id).is_some_and(|host| host.has_answered)
    }
}
