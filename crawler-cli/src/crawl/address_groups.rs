//! Groups the hosts with the same IP address, for a crawl that limits them together: their connections, requests and
//! pauses count as those of one host, and they send in turns.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Instant;

use courser::RateLimiter;

use super::hosts::{HostId, Hosts};
use super::policy::HostPolicy;
use super::politeness::pace;
use super::work::HostWork;

/// The groups by address. A host belongs to the first address at which it was reached.
#[derive(Debug)]
pub(super) struct AddressGroups {
    by_address: HashMap<IpAddr, Group>,
    address_of: HashMap<HostId, IpAddr>,
    /// The largest number of requests in flight to one address.
    most: usize,
    policy: HostPolicy,
}

/// The hosts of one address. Holds sums over the hosts, so that a request of one host does not visit all others.
#[derive(Debug)]
struct Group {
    hosts: Vec<HostId>,
    /// Index of the host that may send next.
    next: usize,
    /// Calls of these hosts in the client.
    in_flight: usize,
    /// Hosts with limits of their own: from a pause, a refusal or their robots.txt.
    limited: Vec<HostId>,
    /// The smallest window of the limited hosts, in requests.
    window: usize,
    /// The latest end of a pause of the limited hosts. Stays set after that time.
    held_until: Option<Instant>,
    /// The crawl's own limits on the rate of requests.
    pace: Vec<RateLimiter>,
}

/// The order in which the hosts of one address may send.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundRobin {
    /// The number of hosts.
    pub(super) hosts: usize,
    /// Index of the host that may send next.
    pub(super) next: usize,
}

impl Group {
    fn has_room(&self, most: usize) -> bool {
        self.in_flight < most.min(self.window)
    }

    /// Recomputes the sums after a change of a limited host.
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

    /// Notes that a host was reached at this address while `in_flight` calls to the host were in flight.
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

    /// Forgets a host without calls. Its address is forgotten with the last host.
    pub(super) fn remove(&mut self, host: HostId) {
        let Some(ip) = self.address_of.remove(&host) else {
            return;
        };
        if let Some(group) = self.by_address.get_mut(&ip) {
            group.hosts.retain(|other| *other != host);
            group.limited.retain(|other| *other != host);
            group.next = 0;
            if group.hosts.is_empty() {
                self.by_address.remove(&ip);
            }
        }
    }

    fn of(&self, host: HostId) -> Option<&Group> {
        self.by_address.get(self.address_of.get(&host)?)
    }

    fn of_mut(&mut self, host: HostId) -> Option<&mut Group> {
        self.by_address.get_mut(self.address_of.get(&host)?)
    }

    /// Whether the host's address has room for another request; `None` if the address is not known.
    pub(super) fn has_room(&self, host: HostId) -> Option<bool> {
        self.of(host).map(|group| group.has_room(self.most))
    }

    /// Until when the hosts of the same address keep this host waiting; `None` if it need not wait.
    pub(super) fn held_until(&mut self, host: HostId, now: Instant) -> Option<Instant> {
        let group = self.of_mut(host)?;
        let pace = group.pace.iter_mut();
        let pace = pace.filter_map(|limit| limit.ready_at(now, 1));
        let until = pace.chain(group.held_until).max();
        until.filter(|until| *until > now)
    }

    /// The order of the hosts at the host's address; `None` if the address is not known.
    pub(super) fn round_robin(&self, host: HostId) -> Option<RoundRobin> {
        self.of(host).map(|group| RoundRobin {
            hosts: group.hosts.len(),
            next: group.next,
        })
    }

    /// The host with this index at the address of `host`; `None` if the address has no room for a request.
    pub(super) fn at(&self, host: HostId, place: usize) -> Option<HostId> {
        let group = self.of(host).filter(|group| group.has_room(self.most))?;
        group.hosts.get(place).copied()
    }

    /// Notes that the host with this index has sent a request.
    pub(super) fn note_turn(&mut self, host: HostId, place: usize) {
        if let Some(group) = self.of_mut(host) {
            group.next = (place + 1) % group.hosts.len();
        }
    }

    /// A request was sent to the host. It counts against the limits of all hosts of the address.
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

    /// A request to the host ended.
    pub(super) fn handle_over(&mut self, host: HostId) {
        if let Some(group) = self.of_mut(host) {
            group.in_flight -= 1;
        }
    }

    /// A request to the host succeeded or failed, which may have set limits.
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
