//! The service of hosts: their waiting calls begin, and the connections that they need are opened.
//!
//! Throttled calls wait in the queue of their host's pool like all other calls, with the same limits, deadlines and
//! cancelling. The throttle counts a call at the moment when the call gets its connection, and at no other moment. So
//! no count is ever taken back, and no window of time sees more calls begin than the rates allow. The pool of a
//! throttled host does not give connections to waiting calls by itself: [`Dispatch::begin_waiting`] does so, when a
//! connection is free and when the throttle allows a call.
//!
//! Of a client that spreads its calls over the addresses of a name, each address is a host of its own. These hosts come
//! and go with the answers of the resolver.

use std::net::{IpAddr, SocketAddr};

use super::Dispatch;
use crate::address::Address;
use crate::client::hosts::{Addresses, HostRoute};
use crate::client::router::Router;
use crate::client::sharing::Sharing;
use crate::client::{CallId, ObserverEvent};
use crate::error::{Error, LimitExceeded};
use crate::net::Net;
use crate::policy::Next;
use crate::reactor::{CallKey, CallState, ConnKey, HostKey, TimerOwner};
use crate::time::Time;

impl<R: Router, N: Net> Dispatch<R, N> {
    /// The next host to be serviced.
    pub(in crate::client) fn next_host(&mut self) -> Option<HostKey> {
        // A host without any connection comes before hosts that want more.
        let room = !self.hosts.cap.is_full()
            || self.reactor.oldest_idle().is_some() && self.hosts.cap.gains_by_closing();
        room.then(|| self.hosts.next_without_connection())
            .flatten()
            .or_else(|| self.hosts.next_touched())
            .or_else(|| room.then(|| self.hosts.next_wanting_more()).flatten())
    }

    /// Services a host: begins its waiting calls, opens the connections that the host needs, and sets its timer. Returns
    /// a call whose attempt has failed, and why; then the service goes on in [`open_wanted`](Self::open_wanted).
    pub(in crate::client) fn service_host(&mut self, key: HostKey) -> Option<(CallKey, Error)> {
        if self.hosts.get_ref(key).is_some_and(|host| host.leaving) {
            self.service_leaving(key);
            return None;
        }
        if self.hosts.is_throttled() {
            self.begin_waiting(key);
        }
        self.open_wanted(key)
    }

    /// Opens the connections that a host needs, and then sets the timer of the host. Returns a call whose attempt has
    /// failed, and why, before the other connections are opened.
    pub(in crate::client) fn open_wanted(&mut self, key: HostKey) -> Option<(CallKey, Error)> {
        let (now, throttled) = (self.reactor.now(), self.hosts.is_throttled());
        loop {
            let is_full = self.hosts.cap.is_full();
            let Some(host) = self.hosts.get(key) else {
                break;
            };
            // A connection that is only kept warm takes no room from other hosts.
            let wants_open = host.pool.wants_open(now) && !(is_full && host.pool.only_warms());
            if wants_open && (!throttled || self.throttle.may_open(now, key, &mut self.hosts)) {
                if !is_full {
                    let opened = self.opener().open(key);
                    if let failed @ Some(_) = self.opened(opened) {
                        return failed;
                    }
                } else if self.hosts.cap.gains_by_closing()
                    && let Some(idle) = self.oldest_idle()
                {
                    self.close(idle);
                } else if R::Sharing::IS_ON {
                    self.hosts.want(key);
                    self.share_connections(key);
                    break;
                } else if let Some(call) = self.hosts.get(key).and_then(|host| host.pool.refuse()) {
                    let full = self.hosts.cap.full_error();
                    self.refuse(call, full);
                } else {
                    self.hosts.want(key);
                    break;
                }
            } else if let Some(idle) = self.hosts.get(key).and_then(|host| host.pool.in_the_way()) {
                self.close(idle);
            } else {
                break;
            }
        }
        let host = self.hosts.get(key)?;
        // A time in the past needs no timer: the host waits for room under the cap, or in the fair queue.
        let mut at = host.pool.poll_timeout().filter(|at| *at > now);
        if throttled {
            at = at.into_iter().chain(self.keep_back(key)).min();
        }
        if self.hosts.set_timer(key, at)
            && let Some(at) = at
        {
            self.opener().set_timer(TimerOwner::Host(key), at);
        }
        if !(R::KEEPS_HOSTS || throttled && self.counts_until(key).is_some()) {
            self.hosts.note_unused(now, key);
        }
        None
    }

    /// The connection that has been idle for longest. Without a cap over all hosts, the client keeps no order, and this is
    /// any idle connection.
    pub(in crate::client) fn oldest_idle(&self) -> Option<ConnKey> {
        match self.hosts.cap.is_limited() {
            true => self.reactor.oldest_idle(),
            false => self.reactor.idle_conns().first().copied(),
        }
    }

    /// Queues a call whose request is encoded. If the throttle allows it, the call begins before the iteration ends.
    #[cold]
    pub(super) fn send_throttled(&mut self, host_key: HostKey, key: CallKey) {
        let now = self.reactor.clock();
        let is_next = self.throttle.may_begin(now);
        let Some(host) = self.hosts.get(host_key) else {
            return;
        };
        let room = host.throttle.room(now);
        let is_held = host.pool.waiting() >= room || !is_next;
        self.enqueue(host_key, key, room);
        if is_held {
            self.note_held(key);
        }
        if !R::KEEPS_HOSTS {
            self.hosts.use_host(host_key);
        }
        self.hosts.touch(host_key);
    }

    /// Records that the throttle holds a call back, and notifies the observer.
    #[cold]
    pub(super) fn note_held(&mut self, key: CallKey) {
        if let Some(call) = self.reactor.call(key)
            && matches!(call.state, CallState::Waiting { .. })
        {
            call.timestamps.held = true;
            let (call, tag) = (CallId(key), call.tag);
            self.telemetry.notify(|| ObserverEvent::Held { call, tag });
        }
    }

    /// A new connection of a throttled host is ready: the oldest waiting call gets it, if a call may begin now.
    pub(super) fn opened_throttled(
        &mut self,
        host_key: HostKey,
        conn: ConnKey,
        next: Next<CallKey>,
    ) {
        let now = self.reactor.clock();
        let host = self.hosts.get(host_key);
        let has_room = host.is_some_and(|host| host.throttle.room(now) > 0);
        let may = has_room && self.throttle.may_begin(now);
        while may
            && let (Some(slot), Some(host)) = (self.reactor.slot(conn), self.hosts.get(host_key))
            && let Some(key) = host.pool.oldest_waiter()
        {
            if self.is_too_late(key) {
                continue;
            }
            if let Some(host) = self.hosts.get(host_key) {
                host.pool.claim(slot.id);
            }
            if self.start_waiter(conn, key) {
                self.throttle.call_begun(now, host_key, &mut self.hosts);
            }
            return self.hosts.touch(host_key);
        }
        self.put(conn, next);
        self.hosts.touch(host_key);
    }

    /// Begins waiting calls of a host, as many as the throttle allows. Under a rate over all hosts, the hosts that are
    /// earlier in the fair queue come first.
    fn begin_waiting(&mut self, key: HostKey) {
        if !self.throttle.is_fair() {
            while self.begin_one(key) {}
        } else {
            if self.hosts.get(key).is_some_and(|h| h.pool.waiting() > 0) {
                self.throttle.line_up(key, &mut self.hosts);
            }
            self.serve_fair_queue(Some(key));
        }
        let now = self.reactor.now();
        let is_next = self.throttle.has_room(now);
        if let Some(host) = self.hosts.get(key) {
            let room = host.throttle.room(now);
            // A host without any connection opens one in advance; without one it could not begin a call when the fair
            // queue reaches it.
            host.pool.set_room(match (is_next, host.pool.open()) {
                (true, _) => room,
                (false, 0) => room.min(1),
                (false, _) => 0,
            });
        }
    }

    /// Begins calls of the hosts in the fair queue, one call of one host after the other, as long as the rate over all
    /// hosts allows. Each of these hosts is marked to be serviced, except `serviced`, which the caller services.
    pub(in crate::client) fn serve_fair_queue(&mut self, serviced: Option<HostKey>) {
        let now = self.reactor.clock();
        while let Some(key) = self.throttle.next_ready(now, &mut self.hosts) {
            if self.begin_one(key) {
                self.throttle.line_up(key, &mut self.hosts);
            }
            if Some(key) != serviced {
                self.hosts.touch(key);
            }
        }
        self.throttle.give_permits(now, &mut self.hosts);
        self.plan_fair_queue();
    }

    /// Sets the timer of the fair queue, if its time has changed.
    fn plan_fair_queue(&mut self) {
        if let Some(at) = self.throttle.plan(self.reactor.now()) {
            self.opener().set_timer(TimerOwner::FairQueue, at);
        }
    }

    /// Begins the oldest waiting call of a host, if the throttle allows it and there is a connection; true if a call
    /// began.
    fn begin_one(&mut self, host_key: HostKey) -> bool {
        let now = self.reactor.clock();
        while let Some(host) = self.hosts.get(host_key)
            && host.throttle.room(now) > 0
        {
            let (reactor, mut closed) = (&mut self.reactor, false);
            let close = |conn| {
                closed = true;
                reactor.close(conn);
            };
            let pair = host.pool.pair(now, close);
            if closed {
                self.hosts.touch(host_key);
            }
            let Some((conn, key)) = pair else {
                return R::Sharing::IS_ON && self.add_one_call(host_key, now);
            };
            if self.put(conn, Next::Assign(key)) {
                self.throttle.call_begun(now, host_key, &mut self.hosts);
                return true;
            }
        }
        false
    }

    /// Adds the oldest waiting call to a connection that other calls use already; true if a call began.
    fn add_one_call(&mut self, host_key: HostKey, now: Time) -> bool {
        let is_full = self.hosts.cap.is_full();
        while let (Some(host), Some(pipelines)) =
            (self.hosts.get(host_key), self.sharing.pipelines())
            && host.pool.waiting() > 0
            && (is_full || host.pool.is_full())
            && let Some(conn) = pipelines.loads.pick(now)
            && self.reactor.takes_more(conn)
            && let Some(slot) = self.reactor.slot(conn)
            && let Some(key) = host.pool.take_waiting_for(slot.id)
        {
            if self.is_too_late(key) {
                continue;
            }
            self.add_call(conn, key);
            self.throttle.call_begun(now, host_key, &mut self.hosts);
            return true;
        }
        false
    }

    /// Fails the calls of a host that would have to wait, if the settings forbid waiting. Returns when the host must be
    /// serviced again.
    fn keep_back(&mut self, key: HostKey) -> Option<Time> {
        self.plan_fair_queue();
        let now = self.reactor.now();
        let most = self.hosts.pool_config().max_connections.get();
        while let Some(host) = self.hosts.get(key) {
            let has_room = host.pool.is_full() && host.pool.has_room();
            let Some(call) = host.pool.refuse() else {
                break;
            };
            let limit = match has_room {
                true => LimitExceeded::Connections(most),
                false => LimitExceeded::Rate,
            };
            self.refuse(call, limit);
        }
        let host = self.hosts.get(key)?;
        let throttle = host.throttle.rules()?;
        match host.pool.waiting() {
            0 if R::KEEPS_HOSTS => None,
            0 => self.counts_until(key),
            _ => throttle.opens_at(now),
        }
    }

    /// Until when the host must be kept: a new entry for the same host would let more calls begin than this one.
    fn counts_until(&self, key: HostKey) -> Option<Time> {
        let now = self.reactor.now();
        let host = self.hosts.get_ref(key);
        let calls = host.and_then(|host| host.throttle.counts_until(now));
        calls.max(self.reactor.common.net.counts_until(key, now))
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
            self.admission.share_min_idle(&mut self.hosts);
            // The calls in flight to an address that has vanished end as usual, and those that wait go elsewhere.
            for key in vanished {
                if let Some(host) = self.hosts.get(key) {
                    host.leaving = true;
                }
                for waiting in self.take_all_waiting(key) {
                    self.move_on(waiting);
                }
                self.hosts.touch(key);
            }
        }
        for waiting in self.take_all_waiting(leader) {
            self.move_on(waiting);
        }
    }

    /// Closes idle connections while there are more connections than may be, because the cap was lowered.
    pub(in crate::client) fn close_surplus(&mut self) {
        while self.hosts.cap.is_exceeded()
            && let Some(idle) = self.oldest_idle()
        {
            self.close(idle);
        }
    }

    /// Takes all calls out of the queue of a host. A call that is sent again may come back to the same queue.
    pub(super) fn take_all_waiting(&mut self, host: HostKey) -> Vec<CallKey> {
        let host = self.hosts.get(host);
        let waiting = host.map(|host| std::iter::from_fn(|| host.pool.oldest_waiter()));
        waiting.into_iter().flatten().collect()
    }

    /// Services a host whose address has vanished: closes what is not in use, and drops the host at the end.
    fn service_leaving(&mut self, key: HostKey) {
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
            self.reactor.common.net.forget(key);
        }
    }
}
