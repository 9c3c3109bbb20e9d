//! Which hosts are worked on, and the way of their URLs from the store to their work. Pure.
//!
//! Only so many hosts are worked on at a time, and only so many of their URLs are in memory; the others wait in the
//! store.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::crawl::hosts::HostId as WorkId;
use crate::store::{EntryId, HostFacts, HostId, Queued};

/// All hosts of a run.
#[derive(Debug, Default)]
pub(super) struct Fleet {
    hosts: HashMap<HostId, Host>,
    /// Hosts with URLs to ask that are not worked on, in the order in which they were found.
    waiting: VecDeque<HostId>,
    /// How many hosts are worked on.
    active: usize,
    /// How many reads of queues are under way.
    taking: usize,
    /// The works that hosts are using.
    works: HashSet<WorkId>,
}

/// One host: what is remembered until the end of the run.
#[derive(Debug, Default)]
struct Host {
    /// The last entry of the queue that was taken.
    cursor: EntryId,
    /// Whether the store may have entries after it.
    has_more: bool,
    is_waiting: bool,
    /// Whether the host answered, in this run or an earlier one.
    has_answered: bool,
    /// What earlier runs and this one have learned; `None`: nothing.
    facts: Option<Box<HostFacts>>,
    /// `None`: the host is not worked on.
    active: Option<Box<Active>>,
}

/// A host that is worked on.
#[derive(Debug, Default)]
struct Active {
    work: Option<WorkId>,
    /// Entries that were taken and not given to the work.
    buffer: VecDeque<Queued>,
    is_taking: bool,
    /// URLs that the work has.
    in_work: usize,
    /// How many entries were taken last.
    chunk: usize,
}

/// A read of the queue of a host.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Take {
    pub(super) host: HostId,
    pub(super) after: EntryId,
    pub(super) limit: usize,
}

impl Fleet {
    /// Remembers what earlier runs have learned about a host.
    pub(super) fn add_facts(&mut self, id: HostId, facts: HostFacts) {
        if facts != HostFacts::default() {
            self.host(id).facts = Some(Box::new(facts));
        }
    }

    /// What is known about a host; `None`: nothing.
    pub(super) fn facts(&self, id: HostId) -> Option<&HostFacts> {
        self.hosts.get(&id)?.facts.as_deref()
    }

    /// What is known about a host, to be changed.
    pub(super) fn facts_mut(&mut self, host: HostId) -> &mut HostFacts {
        self.host(host).facts.get_or_insert_default()
    }

    /// The queue of the host has entries that were not taken.
    pub(super) fn handle_queued(&mut self, id: HostId) {
        let host = self.host(id);
        host.has_more = true;
        if host.active.is_none() && !std::mem::replace(&mut host.is_waiting, true) {
            self.waiting.push_back(id);
        }
    }

    /// The next host to be worked on, and its first read.
    pub(super) fn activate(&mut self) -> Option<Take> {
        if self.active >= MOST_ACTIVE {
            return None;
        }
        let id = self.waiting.pop_front()?;
        self.host(id).is_waiting = false;
        self.work_on(id);
        self.take(id)
    }

    fn work_on(&mut self, id: HostId) -> &mut Active {
        let host = self.hosts.entry(id).or_default();
        host.active.get_or_insert_with(|| {
            self.active += 1;
            Box::default()
        })
    }

    /// The next read for a host that runs out of URLs.
    pub(super) fn take(&mut self, id: HostId) -> Option<Take> {
        let share = (MOST_TAKEN / self.active.max(1)).clamp(LEAST_CHUNK, MOST_CHUNK);
        let host = self.hosts.get_mut(&id)?;
        let active = host.active.as_mut()?;
        if active.is_taking || !host.has_more || active.buffer.len() > active.chunk / 2 {
            return None;
        }
        active.chunk = (active.chunk * 2).clamp(LEAST_CHUNK, share);
        active.is_taking = true;
        self.taking += 1;
        Some(Take {
            host: id,
            after: host.cursor,
            limit: active.chunk,
        })
    }

    /// A read has ended: `queued` has fewer than `limit` entries if there are no more.
    pub(super) fn handle_taken(&mut self, id: HostId, limit: usize, queued: Vec<Queued>) {
        self.taking -= 1;
        let host = self.host(id);
        host.has_more = queued.len() >= limit;
        if let Some(last) = queued.last() {
            host.cursor = last.entry;
        }
        if let Some(active) = &mut host.active {
            active.is_taking = false;
            active.buffer.extend(queued);
        }
    }

    /// Whether reads are under way.
    pub(super) fn is_taking(&self) -> bool {
        self.taking > 0
    }

    /// The next URL of a host that was taken.
    pub(super) fn peek(&self, id: HostId) -> Option<&Queued> {
        self.hosts.get(&id)?.active.as_ref()?.buffer.front()
    }

    /// Gives the next URL of a host to its work.
    pub(super) fn begin(&mut self, id: HostId) -> Option<Queued> {
        let active = self.hosts.get_mut(&id)?.active.as_mut()?;
        let queued = active.buffer.pop_front()?;
        active.in_work += 1;
        Some(queued)
    }

    /// A URL is to be asked anew.
    pub(super) fn put_back(&mut self, queued: Queued) {
        self.work_on(queued.host).buffer.push_front(queued);
    }

    /// The work has a URL of the host no longer.
    pub(super) fn end(&mut self, id: HostId) {
        if let Some(active) = self.host(id).active.as_mut() {
            active.in_work -= 1;
        }
    }

    /// Notes that the host answered. Returns whether it did so for the first time.
    pub(super) fn note_answer(&mut self, id: HostId) -> bool {
        !std::mem::replace(&mut self.host(id).has_answered, true)
    }

    /// Whether the host ever answered.
    pub(super) fn has_answered(&self, id: HostId) -> bool {
        self.hosts.get(&id).is_some_and(|host| host.has_answered)
    }

    /// Stops the work on a host that has no URLs. Returns whether it has none.
    pub(super) fn rest(&mut self, id: HostId) -> bool {
        let host = self.host(id);
        let has_more = host.has_more;
        let is_idle = |active: &Active| {
            !has_more && !active.is_taking && active.in_work == 0 && active.buffer.is_empty()
        };
        let Some(active) = host.active.take_if(|active| is_idle(active)) else {
            return host.active.is_none();
        };
        self.active -= 1;
        if let Some(work) = active.work {
            self.works.remove(&work);
        }
        true
    }

    /// Whether no host has URLs to ask, as far as is known.
    pub(super) fn is_idle(&self) -> bool {
        self.active == 0 && self.waiting.is_empty()
    }

    /// The hosts that are worked on.
    pub(super) fn active(&self) -> Vec<HostId> {
        let active = self.hosts.iter().filter(|(_, host)| host.active.is_some());
        active.map(|(id, _)| *id).collect()
    }

    /// The work of a host.
    pub(super) fn work(&self, id: HostId) -> Option<WorkId> {
        self.hosts.get(&id)?.active.as_ref()?.work
    }

    /// Sets the work of a host that is worked on.
    pub(super) fn set_work(&mut self, id: HostId, work: WorkId) {
        if let Some(active) = self.host(id).active.as_mut() {
            active.work = Some(work);
            self.works.insert(work);
        }
    }

    /// Whether a host uses this work.
    pub(super) fn uses(&self, work: WorkId) -> bool {
        self.works.contains(&work)
    }

    /// Forgets all works, which were removed.
    pub(super) fn forget_works(&mut self) {
        self.works.clear();
        for active in self
            .hosts
            .values_mut()
            .filter_map(|host| host.active.as_mut())
        {
            active.work = None;
        }
    }

    fn host(&mut self, id: HostId) -> &mut Host {
        self.hosts.entry(id).or_default()
    }
}

/// The largest number of hosts that are worked on: more than can have connections at a time.
const MOST_ACTIVE: usize = 2_000;

/// The largest number of URLs in memory, shared by the hosts that are worked on.
const MOST_TAKEN: usize = 16_384;

/// URLs of one host that are read at a time: a fast host gets through 2,000 while others are stored.
const LEAST_CHUNK: usize = 32;
const MOST_CHUNK: usize = 2_048;
