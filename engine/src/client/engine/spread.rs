//! The addresses of a name as hosts of their own, for clients that spread their calls over them. The hosts come and go
//! with the answers of the resolver.

use std::net::{IpAddr, SocketAddr};

use super::Engine;
use crate::address::Address;
use crate::client::ObserverEvent;
use crate::client::hosts::{Addresses, HostRoute};
use crate::client::router::Router;
use crate::net::Net;
use crate::reactor::{CallKey, CallState, HostKey};

impl<R: Router, N: Net> Engine<R, N> {
    /// Looks up the name of the upstream in the cache, if it is time to.
    pub(super) fn refresh_addresses(&mut self) {
        let now = self.reactor.now();
        if let Some(leader) = self.admission.must_look_up(now)
            && let Some(host) = self.hosts.get_ref(leader)
            && let Addresses::Spread(name, port) = &host.route.addresses
            && let Some(addresses) = self.connector.lookup(now, name, *port)
        {
            self.set_addresses(&addresses);
        }
    }

    /// These are the addresses of the name: calls go to them from now on, and to no others. Calls that wait for the
    /// addresses begin.
    pub(super) fn set_addresses(&mut self, addresses: &[IpAddr]) {
        let Some(leader) = self.admission.lookup_host() else {
            return;
        };
        let Some(host) = self.hosts.get(leader) else {
            return;
        };
        let Addresses::Spread(name, port) = &host.route.addresses else {
            return;
        };
        let (name, port) = (name.clone(), *port);
        let (defaults, handshakes) = (host.defaults.clone(), host.route.handshakes.clone());
        host.pool.set_min_idle(0);
        let mut added: Vec<Address> = addresses
            .iter()
            .map(|ip| SocketAddr::new(*ip, port).into())
            .collect();
        let mut vanished = self.admission.hosts();
        vanished.retain(|key| {
            let address = self
                .hosts
                .get_ref(*key)
                .and_then(|host| host.route.addresses.only());
            let at = added.iter().position(|one| Some(one) == address);
            at.map(|at| added.remove(at)).is_none()
        });
        if !(added.is_empty() && vanished.is_empty()) {
            self.telemetry.notify(|| ObserverEvent::Resolved {
                name: &name,
                addresses,
            });
            for address in added {
                let route = HostRoute::new(Addresses::Known(vec![address]), handshakes.clone());
                let key = self.hosts.insert([].into(), defaults.clone(), route);
                self.admission.add_address(key);
            }
            for &key in &vanished {
                self.admission.remove_address(key);
            }
            let min_idle = self.admission.min_idle_of_each();
            for key in self.admission.hosts() {
                if let Some(host) = self.hosts.get(key) {
                    host.pool.set_min_idle(min_idle);
                    self.hosts.touch(key);
                }
            }
            for key in vanished {
                self.leave_host(key);
            }
        }
        self.move_all_waiting(leader);
    }

    /// An address has vanished: its calls in flight end as usual, and those that wait go elsewhere.
    fn leave_host(&mut self, key: HostKey) {
        if let Some(host) = self.hosts.get(key) {
            host.leaving = true;
        }
        self.move_all_waiting(key);
        self.hosts.touch(key);
    }

    /// Gives the calls that wait for a host to other hosts.
    fn move_all_waiting(&mut self, host: HostKey) {
        for key in self.take_all_waiting(host) {
            let Some(call) = self.reactor.call_ref(key) else {
                continue;
            };
            let fresh = matches!(call.state, CallState::Waiting { id, .. } if id.is_fresh());
            self.move_on(key, fresh);
        }
    }

    /// Takes all calls out of the queue of a host. A call that is sent again may come back to the same queue.
    pub(super) fn take_all_waiting(&mut self, host: HostKey) -> Vec<CallKey> {
        let host = self.hosts.get(host);
        let waiting = host.map(|host| std::iter::from_fn(|| host.pool.oldest_waiter()));
        waiting.into_iter().flatten().collect()
    }

    /// Services a host whose address has vanished: closes what is not in use, and drops the host at the end.
    pub(super) fn service_leaving(&mut self, key: HostKey) {
        while let Some(idle) = self.hosts.get(key).and_then(|host| host.pool.any_idle()) {
            self.close(idle);
        }
        let opening = self
            .hosts
            .get(key)
            .and_then(|host| host.pool.any_connecting());
        if let Some(opening) = opening {
            // This touches the host, which is then serviced again.
            self.opener().cancel(opening);
        }
        if let Some(host) = self.hosts.get(key)
            && host.pool.open() == 0
            && host.pool.waiting() == 0
        {
            self.hosts.remove(key);
            self.reactor.net.forget(key);
        }
    }
}
