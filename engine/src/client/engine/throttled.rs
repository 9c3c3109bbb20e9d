//! Calls under a throttle: the rates of their host and of all hosts.
//!
//! Throttled calls wait in the queue of their host's pool like all other calls, with the same limits, deadlines and
//! cancelling. The throttle counts a call at the moment when the call gets its connection, and at no other moment. So
//! no count is ever taken back, and no window of time sees more calls begin than the rates allow. The pool of a
//! throttled host does not give connections to waiting calls by itself: [`Engine::begin_waiting`] does so, when a
//! connection is free and when the throttle allows a call.

use super::Engine;
use crate::client::router::Router;
use crate::client::sharing::Sharing;
use crate::client::{CallId, ObserverEvent};
use crate::error::LimitExceeded;
use crate::net::Net;
use crate::policy::Next;
use crate::reactor::{CallKey, CallState, ConnKey, HostKey, TimerOwner};
use crate::time::Time;

impl<R: Router, N: Net> Engine<R, N> {
    /// How many calls of a host may begin now by the rules of that host alone, whether or not connections are free.
    fn room_to_begin(&mut self, key: HostKey, now: Time) -> usize {
        let throttle = self.hosts.get(key).and_then(|host| host.throttle.rules());
        throttle.map_or(usize::MAX, |throttle| throttle.room(now))
    }

    /// Queues a call whose request is encoded. If the throttle allows it, the call begins before the iteration ends.
    #[cold]
    pub(super) fn send_throttled(&mut self, host_key: HostKey, key: CallKey) {
        let now = self.reactor.clock();
        let room = self.room_to_begin(host_key, now);
        let is_next = self.throttle.may_begin(now);
        let Some(host) = self.hosts.get(host_key) else {
            return;
        };
        let is_held = host.pool.waiting() >= room || !is_next;
        let queued = host.pool.enqueue(key, room);
        self.queued(key, queued);
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
        let may = self.room_to_begin(host_key, now) > 0 && self.throttle.may_begin(now);
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
                self.pass(host_key, now);
            }
            return self.hosts.touch(host_key);
        }
        self.put(conn, next);
        self.hosts.touch(host_key);
    }

    /// Begins waiting calls of a host, as many as the throttle allows. Under a rate over all hosts, the hosts that are
    /// earlier in the fair queue come first.
    pub(super) fn begin_waiting(&mut self, key: HostKey) {
        if !self.throttle.is_fair() {
            while self.begin_one(key) {}
        } else {
            if self.hosts.get(key).is_some_and(|h| h.pool.waiting() > 0) {
                self.throttle.line_up(key, &mut self.hosts);
            }
            self.serve_fair_queue(Some(key));
        }
        let now = self.reactor.now();
        let room = self.room_to_begin(key, now);
        let is_next = self.throttle.has_room(now);
        if let Some(host) = self.hosts.get(key) {
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
    pub(super) fn serve_fair_queue(&mut self, serviced: Option<HostKey>) {
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
        while self.room_to_begin(host_key, now) > 0 {
            let (reactor, mut closed) = (&mut self.reactor, false);
            let close = |conn| {
                closed = true;
                reactor.close(conn);
            };
            let Some(host) = self.hosts.get(host_key) else {
                return false;
            };
            let pair = host.pool.pair(now, close);
            if closed {
                self.hosts.touch(host_key);
            }
            let Some((conn, key)) = pair else {
                return R::Sharing::IS_ON && self.add_one_call(host_key, now);
            };
            if self.put(conn, Next::Assign(key)) {
                self.pass(host_key, now);
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
            self.pass(host_key, now);
            return true;
        }
        false
    }

    /// Counts a call of a host that has begun.
    fn pass(&mut self, host_key: HostKey, now: Time) {
        let host = self.hosts.get(host_key);
        if let Some(throttle) = host.and_then(|host| host.throttle.rules()) {
            throttle.pass(now);
        }
        self.throttle.call_begun(now);
    }

    /// Fails the calls of a host that would have to wait, if the settings forbid waiting. Returns when the host must be
    /// serviced again.
    pub(super) fn keep_back(&mut self, key: HostKey) -> Option<Time> {
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
    pub(super) fn counts_until(&self, key: HostKey) -> Option<Time> {
        let now = self.reactor.now();
        let host = self.hosts.get_ref(key);
        let calls = host.and_then(|host| host.throttle.counts_until(now));
        calls.max(self.reactor.net.counts_until(key, now))
    }
}
