//! Hosts of one address, for a search that takes them for one: their connections, requests and pauses count together,
//! and they take turns.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Instant;

use courser::{Address, RateLimiter, Report};

use super::{Crawl, Host, Run};
use crate::crawl::politeness::pace;

/// Which hosts have which address; each the first one that it was reached at.
#[derive(Debug, Default)]
pub(super) struct AddressGroups(HashMap<IpAddr, Group>);

/// The hosts of one address, with what is the same for them all, so that not each of them is looked at for each.
#[derive(Debug)]
struct Group {
    hosts: Vec<usize>,
    /// Which of them has the next turn.
    next: usize,
    /// Their calls in the client.
    in_flight: usize,
    /// Those that have set limits of their own: by a pause, a refusal, their robots.txt.
    limited: Vec<usize>,
    /// How many calls these let be under way.
    window: usize,
    /// Until when these let nothing be sent. Stays when it has passed.
    held_until: Option<Instant>,
    /// The search's own limits on the rate of requests.
    pace: Vec<RateLimiter>,
}

impl Group {
    fn has_room(&self, host_cap: usize) -> bool {
        self.in_flight < host_cap.min(self.window)
    }

    /// Until when nothing may be sent, if that is so at `now`.
    fn held_until(&mut self, now: Instant) -> Option<Instant> {
        let pace = self.pace.iter_mut();
        let pace = pace.filter_map(|limit| limit.ready_at(now, 1));
        let until = pace.chain(self.held_until).max();
        until.filter(|until| *until > now)
    }

    /// After something has changed with those that have limits of their own.
    fn sum_up(&mut self, now: Instant, hosts: &mut [Host]) {
        self.window = usize::MAX;
        for &host in &self.limited {
            let crawl = &mut hosts[host].crawl;
            self.window = self.window.min(crawl.politeness().window());
            self.held_until = self.held_until.max(crawl.politeness().held_until(now));
        }
    }
}

impl Crawl<'_> {
    /// Has all hosts send what they may, another one first in each turn; those of one address in their own order.
    pub(super) fn submit_all(&mut self, run: &mut Run<'_>) {
        let all = self.hosts.all.len();
        self.first = (self.first + 1) % all.max(1);
        for step in 0..all {
            let index = (self.first + step) % all;
            let group = self.group(index);
            if group.is_none_or(|group| group.hosts.first() == Some(&index)) {
                self.submit_near(index, run);
            }
        }
    }

    /// Has the host send what it may, or, if it is one of a group, those whose turn it is.
    pub(super) fn submit_near(&mut self, index: usize, run: &mut Run<'_>) {
        let Some(group) = self.group(index) else {
            return self.submit(index, run);
        };
        let (hosts, next) = (group.hosts.len(), group.next);
        for place in (next..hosts).chain(0..next) {
            let Some(group) = self
                .group(index)
                .filter(|group| group.has_room(self.host_cap))
            else {
                return;
            };
            let (host, before) = (group.hosts[place], group.in_flight);
            if self.hosts.all[host].is_done() {
                continue;
            }
            self.submit(host, run);
            if let Some(group) = self
                .group_mut(index)
                .filter(|group| group.in_flight > before)
            {
                group.next = (place + 1) % hosts;
            }
        }
    }

    /// The host was reached, and that tells where it is.
    pub(super) fn note_address(&mut self, index: usize, report: &Report) {
        let host = &mut self.hosts.all[index];
        if !self.plan.transfer.per_address || host.proxy.is_some() || host.address.is_some() {
            return;
        }
        if let Some(ip) = report.remote().and_then(Address::ip) {
            let ip = ip.to_canonical();
            host.address = Some(ip);
            let group = self.groups.0.entry(ip).or_insert_with(|| Group {
                hosts: Vec::new(),
                next: 0,
                in_flight: 0,
                limited: Vec::new(),
                window: usize::MAX,
                held_until: None,
                pace: pace(&self.plan.policy.host),
            });
            group.hosts.push(index);
            group.in_flight += host.in_flight;
        }
    }

    /// The host has answered, or not, and may have set limits by that.
    pub(super) fn note_limits(&mut self, index: usize, now: Instant) {
        let host = &mut self.hosts.all[index];
        let Some(group) = host.address.and_then(|ip| self.groups.0.get_mut(&ip)) else {
            return;
        };
        if host.crawl.politeness().has_own_limits() {
            if !group.limited.contains(&index) {
                group.limited.push(index);
            }
            group.sum_up(now, &mut self.hosts.all);
        }
    }

    /// Those of the host's address, if they are taken for one and it is known.
    fn group(&self, index: usize) -> Option<&Group> {
        let address = self.hosts.all[index].address;
        address.and_then(|ip| self.groups.0.get(&ip))
    }

    fn group_mut(&mut self, index: usize) -> Option<&mut Group> {
        let address = self.hosts.all[index].address;
        address.and_then(|ip| self.groups.0.get_mut(&ip))
    }

    /// Whether the limits on what is under way leave room for a request of this host.
    pub(super) fn group_has_room(&self, index: usize) -> bool {
        let host = &self.hosts.all[index];
        if !self.plan.transfer.per_address || host.proxy.is_some() {
            return true;
        }
        match self.group(index) {
            Some(group) => group.has_room(self.host_cap),
            // The first request tells.
            None => host.in_flight == 0,
        }
    }

    /// Until when the hosts of its address keep this host waiting, if they do.
    pub(super) fn group_held_until(&mut self, index: usize, now: Instant) -> Option<Instant> {
        self.group_mut(index)?.held_until(now)
    }

    /// The host was sent a request, which counts for the others of its address, too.
    pub(super) fn note_sent(&mut self, index: usize, now: Instant) {
        let host = &mut self.hosts.all[index];
        host.in_flight += 1;
        let Some(group) = host.address.and_then(|ip| self.groups.0.get_mut(&ip)) else {
            return;
        };
        group.in_flight += 1;
        for limit in &mut group.pace {
            limit.charge(now, 1);
        }
        for &other in group.limited.iter().filter(|other| **other != index) {
            self.hosts.all[other]
                .crawl
                .politeness()
                .handle_neighbour_sent(now);
        }
        group.sum_up(now, &mut self.hosts.all);
    }

    /// A request to the host is over.
    pub(super) fn note_over(&mut self, index: usize) {
        self.hosts.all[index].in_flight -= 1;
        if let Some(group) = self.group_mut(index) {
            group.in_flight -= 1;
        }
    }
}
