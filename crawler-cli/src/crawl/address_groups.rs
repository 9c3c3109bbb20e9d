//! Hosts of one address, for a crawl that takes them for one: their connections, requests and pauses count together,
//! and they take turns.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Instant;

use courser::RateLimiter;

use super::hosts::{HostId, Hosts};
use super::policy::HostPolicy;
use super::politeness::pace;
use super::work::HostWork;

/// Which hosts have which address; each the first one that it was reached at.
#[derive(Debug)]
pub(super) struct AddressGroups {
    by_address: HashMap<IpAddr, Group>,
    address_of: HashMap<HostId, IpAddr>,
    /// Requests that may be under way to the hosts of one address.
    most: usize,
    policy: HostPolicy,
}

/// The hosts of one address, with what is the same for them all, so that not each of them is looked at for each.
#[derive(Debug)]
struct Group {
    hosts: Vec<HostId>,
    /// Which of them has the next turn.
    next: usize,
    /// Their calls in the client.
    in_flight: usize,
    /// Those that have set limits of their own: by a pause, a refusal, their robots.txt.
    limited: Vec<HostId>,
    /// How many calls these let be under way.
    window: usize,
    /// Until when these let nothing be sent. Stays when it has passed.
    held_until: Option<Instant>,
    /// The crawl's own limits on the rate of requests.
    pace: Vec<RateLimiter>,
}

/// The turns of the hosts of one address.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turns {
    /// How many hosts there are.
    pub(super) hosts: usize,
    /// Which of them is the next one.
    pub(super) next: usize,
}

impl Group {
    fn has_room(&self, most: usize) -> bool {
        self.in_flight < most.min(self.window)
    }

    /// After something has changed with those that have limits of their own.
    fn sum_up<W: HostWork>(&mut self, now: Instant, hosts: &mut Hosts<W>) {
        self.window = usize::MAX;
        for &host in &self.limited {
            let politeness = hosts.work(host).politeness();
            self.window = self.window.min(politeness.window());
            self.held_until = self.held_until.max(politeness.held_until(now));
        }
    }
}

impl AddressGroups {
    /// No address is known yet.
    pub(super) fn new(most: usize, policy: &HostPolicy) -> Self {
        Self {
            by_address: HashMap::new(),
            address_of: HashMap::new(),
            most,
            policy: policy.clone(),
        }
    }

    /// A host was reached at this address while so many calls to it were in flight.
    pub(super) fn add(&mut self, host: HostId, ip: IpAddr, in_flight: usize) {
        if self.address_of.contains_key(&host) {
            return;
        }
        let ip = ip.to_canonical();
        self.address_of.insert(host, ip);
        let group = self.by_address.entry(ip).or_insert_with(|| Group {
            hosts: Vec::new(),
            next: 0,
            in_flight: 0,
            limited: Vec::new(),
            window: usize::MAX,
            held_until: None,
            pace: pace(&self.policy),
        });
        group.hosts.push(host);
        group.in_flight += in_flight;
    }

    fn of(&self, host: HostId) -> Option<&Group> {
        self.by_address.get(self.address_of.get(&host)?)
    }

    fn of_mut(&mut self, host: HostId) -> Option<&mut Group> {
        self.by_address.get_mut(self.address_of.get(&host)?)
    }

    /// Whether there is room for a request of this host; `None` if its address is not known.
    pub(super) fn has_room(&self, host: HostId) -> Option<bool> {
        self.of(host).map(|group| group.has_room(self.most))
    }

    /// Until when the hosts of its address keep this host waiting, if they do at `now`.
    pub(super) fn held_until(&mut self, host: HostId, now: Instant) -> Option<Instant> {
        let group = self.of_mut(host)?;
        let pace = group.pace.iter_mut();
        let pace = pace.filter_map(|limit| limit.ready_at(now, 1));
        let until = pace.chain(group.held_until).max();
        until.filter(|until| *until > now)
    }

    /// Whether the host is alone, or the first one of its address.
    pub(super) fn is_first(&self, host: HostId) -> bool {
        self.of(host)
            .is_none_or(|group| group.hosts.first() == Some(&host))
    }

    /// The turns of the hosts of its address, if that is known.
    pub(super) fn turns(&self, host: HostId) -> Option<Turns> {
        self.of(host).map(|group| Turns {
            hosts: group.hosts.len(),
            next: group.next,
        })
    }

    /// The host at this place among those of the address, if there is room for a request.
    pub(super) fn at(&self, host: HostId, place: usize) -> Option<HostId> {
        let group = self.of(host).filter(|group| group.has_room(self.most))?;
        group.hosts.get(place).copied()
    }

    /// The host at this place has sent something.
    pub(super) fn note_turn(&mut self, host: HostId, place: usize) {
        if let Some(group) = self.of_mut(host) {
            group.next = (place + 1) % group.hosts.len();
        }
    }

    /// The host was sent a request, which counts for the others of its address, too.
    pub(super) fn handle_sent<W: HostWork>(
        &mut self,
        host: HostId,
        now: Instant,
        hosts: &mut Hosts<W>,
    ) {
        let Some(group) = self.of_mut(host) else {
            return;
        };
        group.in_flight += 1;
        for limit in &mut group.pace {
            limit.charge(now, 1);
        }
        for &other in group.limited.iter().filter(|other| **other != host) {
            hosts.work(other).politeness().handle_neighbour_sent(now);
        }
        group.sum_up(now, hosts);
    }

    /// A request to the host is over.
    pub(super) fn handle_over(&mut self, host: HostId) {
        if let Some(group) = self.of_mut(host) {
            group.in_flight -= 1;
        }
    }

    /// The host has answered, or not, and may have set limits by that.
    pub(super) fn note_limits<W: HostWork>(
        &mut self,
        host: HostId,
        now: Instant,
        hosts: &mut Hosts<W>,
    ) {
        let Some(group) = self.of_mut(host) else {
            return;
        };
        if hosts.work(host).politeness().has_own_limits() {
            if !group.limited.contains(&host) {
                group.limited.push(host);
            }
            group.sum_up(now, hosts);
        }
    }
}
