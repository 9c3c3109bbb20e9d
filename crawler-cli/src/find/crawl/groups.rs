//! Hosts of one address, for a search that takes them for one: their connections, requests and pauses count together.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Instant;

use courser::{Address, Report};

use super::{Crawl, Host};

/// Which hosts have which address; each the first one that it was reached at.
#[derive(Debug, Default)]
pub(super) struct Groups(HashMap<IpAddr, Vec<usize>>);

impl Crawl<'_> {
    /// The host was reached, and that tells where it is.
    pub(super) fn note_address(&mut self, index: usize, report: &Report) {
        let host = &mut self.hosts.all[index];
        if !self.plan.transfer.per_address || host.proxy.is_some() || host.address.is_some() {
            return;
        }
        if let Some(ip) = report.remote().and_then(Address::ip) {
            let ip = ip.to_canonical();
            host.address = Some(ip);
            self.groups.0.entry(ip).or_default().push(index);
        }
    }

    /// The host and all others of its address.
    fn group(&self, index: usize) -> &[usize] {
        let address = self.hosts.all[index].address;
        let group = address.and_then(|ip| self.groups.0.get(&ip));
        group.map_or(&[], Vec::as_slice)
    }

    /// Whether the limits on what is under way leave room for a request of this host.
    pub(super) fn group_has_room(&self, index: usize) -> bool {
        let host = &self.hosts.all[index];
        if !self.plan.transfer.per_address || host.proxy.is_some() {
            return true;
        }
        if host.address.is_none() {
            // The first request tells.
            return host.in_flight == 0;
        }
        let hosts = || self.group(index).iter().map(|&host| &self.hosts.all[host]);
        let in_flight: usize = hosts().map(|host| host.in_flight).sum();
        let others = |host: &Host| in_flight - (host.in_flight - host.downloads.in_flight());
        in_flight < self.host_cap && hosts().all(|host| host.frontier.has_room(others(host)))
    }

    /// Until when the others of its address keep this host waiting, if they do.
    pub(super) fn group_held_until(&mut self, index: usize, now: Instant) -> Option<Instant> {
        let group = self.group(index).to_vec();
        let others = group.into_iter().filter(|&other| other != index);
        let held = others.map(|other| self.hosts.all[other].frontier.held_until(now));
        held.flatten().max()
    }

    /// The host was sent a request, which counts for the others of its address, too.
    pub(super) fn note_sent(&mut self, index: usize, now: Instant) {
        for other in self.group(index).to_vec() {
            if other != index {
                self.hosts.all[other].frontier.handle_neighbour_sent(now);
            }
        }
    }
}
