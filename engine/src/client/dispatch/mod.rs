//! How calls and connections come together: a call gets a host, a permit and a connection, or it waits; and the end of a
//! call.
//!
//! What the end of an attempt means for its call is decided above: see [`calls`](super::calls). Nothing here calls
//! upwards: openings that have ended are returned, and answers are events of the reactor.

mod pipelined;
mod service;

use std::time::Duration;

use super::CallId;
use super::adaptive::AdaptiveLimits;
use super::admission::Admission;
use super::call_queue::CallQueue;
use super::connector::{Connector, Opened, Opener};
use super::deliveries::Deliveries;
use super::hosts::{Addresses, Hosts};
use super::retries;
use super::router::Router;
use super::send_hook::HookedEncoder;
use super::sharing::Sharing;
use super::telemetry::Telemetry;
use super::throttle::Throttling;
use crate::client::progress::{ActiveCall, Reactor};
use crate::error::{Error, ErrorKind, Misuse, TimeLimit};
use crate::net::Net;
use crate::policy::Next;
use crate::proto::{BodyMode, CloseReason, Reuse};
use crate::reactor::{CallKey, CallState, ConnKey, HeadState, HostKey, PoolSlot};

/// The event loop, the hosts with their pools, and all that decides which call gets which connection.
pub(super) struct Dispatch<R: Router, N: Net> {
    pub(super) reactor: Reactor<N>,
    pub(super) router: R,
    /// Whether calls share connections, and the connections that they share.
    pub(super) sharing: R::Sharing,
    pub(super) hosts: Hosts,
    pub(super) throttle: Throttling,
    pub(super) connector: Connector,
    pub(super) hooked: Option<Box<HookedEncoder>>,
    pub(super) admission: Admission,
    pub(super) adaptive: AdaptiveLimits,
    pub(super) telemetry: Telemetry,
    pub(super) queue: CallQueue,
    pub(super) deliveries: Deliveries,
}

impl<R: Router, N: Net> Dispatch<R, N> {
    /// Finds the host of a call, and a connection for the call. If there is no connection, the call is queued.
    #[inline(always)] // on the path of every call
    pub(super) fn send(&mut self, key: CallKey) {
        let now = self.reactor.now();
        let Some(call) = self.reactor.call(key) else {
            return;
        };
        if call.is_late(now) {
            return self.refuse(key, TimeLimit::Total);
        }
        let host_key = match self.router.route(call, &mut self.hosts) {
            Ok(host) => host,
            Err(kind) => return self.refuse(key, kind),
        };
        let Some(host) = self.hosts.get(host_key) else {
            return;
        };
        call.host = Some(host_key);
        let encoded = match &mut self.hooked {
            None => call.request.encode_now(&host.defaults),
            Some(hooked) => {
                hooked.encode(&mut call.request, &host.defaults, call.timestamps.attempts)
            }
        };
        if let Err(misuse) = encoded {
            return self.refuse(key, misuse);
        }
        if R::Sharing::IS_ON
            && let Some(misuse) = unfit_for_pipeline(call)
        {
            return self.refuse(key, misuse);
        }
        retries::note_request(host, call);
        let host_key = match self.admission.is_on() {
            false => host_key,
            true => match self.admit(key) {
                Some(admitted) => admitted,
                None => return,
            },
        };
        if R::Sharing::IS_ON {
            return self.send_pipelined(host_key, key);
        }
        self.check_out(host_key, key);
    }

    /// Gives a call an idle connection, or queues the call.
    #[inline]
    fn check_out(&mut self, host_key: HostKey, key: CallKey) {
        let (now, mut closed) = (self.reactor.now(), false);
        loop {
            let Some(host) = self.hosts.get(host_key) else {
                return;
            };
            if host.throttle.is_on() {
                return self.send_throttled(host_key, key);
            }
            let reactor = &mut self.reactor;
            let close = |conn| {
                closed = true;
                reactor.close(conn);
            };
            let idle = host.pool.take_idle(now, close);
            if !R::KEEPS_HOSTS {
                self.hosts.use_host(host_key);
            }
            match idle {
                Some(conn) if !self.start(conn, key) => {
                    closed = true;
                    continue; // with the next idle connection
                }
                Some(_) if !closed && self.hosts.pool_config().min_idle == 0 => return,
                Some(_) => {}
                None => self.enqueue(host_key, key, usize::MAX),
            }
            return self.hosts.touch(host_key);
        }
    }

    /// Puts a call into the wait queue of a host. `room` is how many calls the throttle allows there.
    fn enqueue(&mut self, host_key: HostKey, key: CallKey, room: usize) {
        if let Some(host) = self.hosts.get(host_key) {
            match host.pool.enqueue(key, room) {
                Ok(id) => self.reactor.wait(key, id),
                Err(limit) => self.refuse(key, limit),
            }
        }
    }

    /// Gets a permit for an attempt of a call, and returns the host that the attempt goes to. Without a permit, the
    /// call ends with an error.
    #[cold]
    fn admit(&mut self, key: CallKey) -> Option<HostKey> {
        let (now, random) = (self.reactor.now(), self.reactor.common.net.random());
        if let Some(leader) = self.admission.must_look_up(now)
            && let Some(host) = self.hosts.get_ref(leader)
            && let Addresses::Spread(name, port) = &host.route.addresses
            && let Some(addresses) = self.connector.lookup(now, name, *port)
        {
            self.set_addresses(&addresses);
        }
        let call = self.reactor.call(key)?;
        match self.admission.admit(call, &mut self.hosts, now, random) {
            Ok(()) => call.host,
            Err(until) => {
                let open = ErrorKind::BreakerOpen(until);
                self.refuse(key, open);
                None
            }
        }
    }

    /// Gives a connection to a call. False if a look has shown that the connection cannot serve: it is closed.
    #[inline]
    #[must_use = "a call that did not begin must be queued"]
    fn start(&mut self, conn: ConnKey, key: CallKey) -> bool {
        let begun = match self.telemetry.observes() || self.adaptive.is_on() {
            false => self.reactor.start(conn, key),
            true => self.start_observed(conn, key),
        };
        if !begun {
            self.close(conn);
        } else if R::Sharing::IS_ON {
            self.pipeline_begun(conn, key);
        }
        begun
    }

    /// Gives a connection to a call of a client with an observer or with adaptive limits.
    #[cold]
    fn start_observed(&mut self, conn: ConnKey, key: CallKey) -> bool {
        let reused = self.reactor.has_served(conn);
        if self.adaptive.is_on() {
            self.set_first_byte_limit(conn);
        }
        let begun = self.reactor.start(conn, key);
        if begun && self.telemetry.observes() {
            self.notify_sending(conn, key, reused);
        }
        begun
    }

    /// Gives a connection to a call that was taken out of the queue; false if the call did not begin. Then it is the
    /// first to get another connection.
    fn start_waiter(&mut self, conn: ConnKey, key: CallKey) -> bool {
        let begun = self.start(conn, key);
        if !begun {
            self.put_back(key, false);
        }
        begun
    }

    /// Puts a call whose connection did not serve it before all calls that wait, or behind those that need a new
    /// connection as well.
    #[cold]
    pub(super) fn put_back(&mut self, key: CallKey, fresh: bool) {
        if let Some(host_key) = self.reactor.call_ref(key).and_then(|call| call.host)
            && let Some(host) = self.hosts.get(host_key)
        {
            let waiting = match fresh {
                true => host.pool.requeue(key),
                false => host.pool.put_back(key),
            };
            self.reactor.wait(key, waiting);
            self.hosts.touch(host_key);
        }
    }

    /// Limits the wait for the first byte on a connection that is about to get a call.
    #[cold]
    fn set_first_byte_limit(&mut self, conn: ConnKey) {
        if let Some(slot) = self.reactor.slot(conn)
            && let Some(host) = self.hosts.get(slot.host)
            && let Some(limit) = self.adaptive.limit(host)
        {
            self.reactor.set_first_byte_limit(conn, limit);
            self.telemetry.first_byte_limit(limit);
        }
    }

    /// Carries out what the pool has decided about an available connection: a call, idle, or close. True if a call began.
    fn put(&mut self, conn: ConnKey, mut next: Next<CallKey>) -> bool {
        let now = self.reactor.now();
        // A call whose deadline has passed does not begin, even if its timer has not been handled yet.
        while let Next::Assign(key) = next
            && let Some(slot) = self.reactor.slot(conn)
            && self.is_too_late(key)
        {
            let Some(host) = self.hosts.get(slot.host) else {
                return false;
            };
            next = host.pool.declined(now, slot.id);
        }
        match next {
            Next::Assign(call) => return self.start_waiter(conn, call),
            Next::Idle(until) => self.reactor.idle(conn, until),
            // The pool has freed its slot already.
            Next::Close => {
                if let Some(slot) = self.reactor.close(conn) {
                    self.hosts.touch(slot.host);
                }
            }
        }
        false
    }

    /// An opening may have ended. Returns a call whose attempt has failed, and why.
    pub(super) fn opened(&mut self, opened: Option<Opened>) -> Option<(CallKey, Error)> {
        match opened? {
            // The oldest waiting call gets the connection, if that call may begin now; else it becomes idle.
            Opened::Ready { slot, conn } => {
                let (now, random) = (self.reactor.now(), self.reactor.common.net.random());
                let host = self.hosts.get(slot.host)?;
                host.pool.set_conn(slot.id, conn);
                let next = host.pool.connected(now, slot.id, random);
                if host.throttle.is_on() {
                    self.opened_throttled(slot.host, conn, next);
                } else {
                    self.hosts.touch(slot.host);
                    self.put(conn, next);
                }
                self.close_surplus();
            }
            Opened::Resolved(addresses) => self.set_addresses(&addresses),
            Opened::Failed { call: key, error } => {
                if let Some(call) = self.reactor.call(key) {
                    call.timestamps.attempts += 1;
                }
                return Some((key, error));
            }
        }
        None
    }

    /// An idle or draining connection is closed.
    pub(super) fn lost(&mut self, slot: PoolSlot) {
        self.pipeline_ended(slot);
        let now = self.reactor.now();
        if let Some(host) = self.hosts.get(slot.host) {
            host.pool.lost(now, slot.id);
            self.hosts.touch(slot.host);
        }
    }

    /// The idle time of a connection is over.
    pub(super) fn idle_due(&mut self, conn: ConnKey) {
        let now = self.reactor.now();
        if let Some(slot) = self.reactor.slot(conn)
            && let Some(host) = self.hosts.get(slot.host)
        {
            match host.pool.expired(now, slot.id) {
                Ok(()) => {
                    if let Some(slot) = self.reactor.close(conn) {
                        self.lost(slot);
                    }
                }
                Err(later) => self.reactor.idle(conn, later),
            }
        }
    }

    /// A connection has finished its exchange, or drained an answer; false if the connection no longer exists.
    #[inline]
    pub(super) fn release(
        &mut self,
        conn: ConnKey,
        call: Option<CallKey>,
        reuse: Reuse,
        keep_alive: Option<Duration>,
    ) -> bool {
        let Some(slot) = self.reactor.slot(conn) else {
            return false;
        };
        self.pipeline_ended(slot);
        match (reuse, call) {
            (Reuse::Keep, _) => {
                let now = self.reactor.now();
                let (yields, full) = (self.hosts.must_yield(), self.hosts.cap.is_full());
                // The connection ends if another host must have one, or if the oldest waiting call needs a new connection and
                // there is no room for one beside this.
                match self.hosts.get(slot.host) {
                    Some(host) if !(yields || full && host.pool.needs_fresh()) => {
                        let next = host.pool.released(now, slot.id, keep_alive);
                        if host.throttle.is_on() {
                            self.hosts.touch(slot.host);
                        }
                        match next {
                            Next::Idle(until) => self.reactor.idle(conn, until),
                            next => _ = self.put(conn, next),
                        }
                    }
                    _ => self.close(conn),
                }
            }
            (Reuse::Close(CloseReason::HandedOver), Some(call)) => {
                self.slot_freed(slot);
                self.reactor.hand_over(conn, call);
            }
            (Reuse::Close(_), _) => self.close(conn),
        }
        true
    }

    pub(super) fn close(&mut self, conn: ConnKey) {
        if let Some(slot) = self.reactor.close(conn) {
            self.slot_freed(slot);
        }
    }

    /// The connection of a slot is closed, or belongs to the caller.
    pub(super) fn slot_freed(&mut self, slot: PoolSlot) {
        self.pipeline_ended(slot);
        if let Some(host) = self.hosts.get(slot.host) {
            host.pool.closed(slot.id);
            self.hosts.touch(slot.host);
        }
    }

    /// Removes a call from the queue or from its connection. That connection is closed, unless calls share it.
    pub(super) fn detach(&mut self, key: CallKey) {
        let call = self.reactor.call_ref(key);
        match call.map(|call| call.state) {
            Some(CallState::Waiting { id, .. }) => {
                if let Some(host_key) = call.and_then(|call| call.host)
                    && let Some(host) = self.hosts.get(host_key)
                {
                    if let Some(opening) = host.pool.give_up(id) {
                        self.opener().cancel(opening);
                    }
                    self.hosts.touch(host_key);
                }
            }
            Some(CallState::OnConn(conn)) if R::Sharing::IS_ON => self.leave_pipeline(conn, key),
            Some(CallState::OnConn(conn)) => self.close(conn),
            Some(CallState::New | CallState::Pausing { .. } | CallState::Ended) | None => {}
        }
    }

    /// Tries a call again on any connection.
    pub(super) fn send_again(&mut self, key: CallKey) {
        if let Some(call) = self.reactor.call(key) {
            call.state = CallState::New;
            self.queue.send_further(key);
        }
    }

    /// Tries a call again on a new connection.
    pub(super) fn requeue(&mut self, key: CallKey) {
        let host_key = match self.admission.is_on() {
            false => self.reactor.call_ref(key).and_then(|call| call.host),
            true => {
                self.give_permit_back(key);
                self.admit(key)
            }
        };
        let Some(host_key) = host_key else {
            return;
        };
        // The host may have become unused while the call paused.
        self.hosts.use_host(host_key);
        if let Some(hooked) = &mut self.hooked
            && let Some(host) = self.hosts.get(host_key)
            && let Some(call) = self.reactor.call(key)
            && let Err(misuse) =
                hooked.encode(&mut call.request, &host.defaults, call.timestamps.attempts)
        {
            return self.refuse(key, misuse);
        }
        self.put_back(key, true);
        let host = self.hosts.get(host_key);
        if host.is_some_and(|host| host.throttle.is_on() && !host.pool.has_room()) {
            self.note_held(key);
        }
    }

    /// An opening to one of several addresses takes long: the calls that wait for it move to another address, if there
    /// is one.
    pub(super) fn move_waiting(&mut self, host_key: HostKey) {
        let now = self.reactor.now();
        let admission = &mut self.admission;
        let slow = admission.note_slow(host_key, now, &self.hosts, &self.telemetry);
        let Some(here) = slow else {
            return;
        };
        let mut staying = Vec::new();
        for key in self.take_all_waiting(host_key) {
            let Some(call) = self.reactor.call(key) else {
                continue;
            };
            let tried = call.client.tried | here;
            if self.admission.has_other(tried) {
                call.client.tried = tried;
                self.move_on(key);
            } else {
                staying.push((key, waits_fresh(call)));
            }
        }
        // This restores the order: calls that need a new connection are put at the back, the others at the front.
        let (fresh, others): (Vec<_>, Vec<_>) = staying.into_iter().partition(|(_, fresh)| *fresh);
        for (key, fresh) in fresh.into_iter().chain(others.into_iter().rev()) {
            self.put_back(key, fresh);
        }
        self.hosts.touch(host_key);
    }

    /// Sends a call that has waited for a host to another host.
    fn move_on(&mut self, key: CallKey) {
        self.give_permit_back(key);
        match self.reactor.call_ref(key).is_some_and(waits_fresh) {
            true => self.requeue(key),
            false => self.send_again(key),
        }
    }

    /// Ends a call of which nothing was sent.
    #[cold]
    pub(super) fn refuse(&mut self, key: CallKey, kind: impl Into<ErrorKind>) {
        self.fail(key, Error::unsent(kind));
    }

    /// Ends a call whose deadline has passed, even if its timer has not been handled yet; true if so.
    fn is_too_late(&mut self, key: CallKey) -> bool {
        let now = self.reactor.now();
        let in_time = self.reactor.call_ref(key).is_some_and(|c| !c.is_late(now));
        if !in_time {
            self.refuse(key, TimeLimit::Total);
        }
        !in_time
    }

    /// Ends a call, or its streamed body, with an error.
    pub(super) fn fail(&mut self, key: CallKey, error: Error) {
        self.end_call(key, Err(error));
    }

    /// Ends a call, or its streamed body.
    #[inline(always)] // with the constant `Ok(())`, little code is left
    pub(super) fn end_call(&mut self, key: CallKey, outcome: Result<(), Error>) {
        if self.admission.is_on() {
            self.note_health(key, outcome.as_ref().err());
        }
        let now = self.reactor.now();
        let Some(call) = self.reactor.call(key) else {
            return;
        };
        let outcome = outcome.map_err(|error| {
            let place = || self.router.place(&call.request, &self.hosts);
            error.after(call.client.sent_before).at(place)
        });
        call.end(now, outcome);
        if self.telemetry.wants_ends() {
            self.telemetry.call_ended(key, call);
        }
        if call.head == HeadState::Awaited {
            self.deliveries.done.push_back(key);
        } else {
            self.notify_readable(key);
        }
    }

    /// An attempt has ended: by an answer, whose status counts, or by an error.
    pub(super) fn note_health(&mut self, key: CallKey, error: Option<&Error>) {
        let now = self.reactor.now();
        if let Some(call) = self.reactor.call(key) {
            self.admission
                .attempt_ended(key, call, error, now, &mut self.hosts, &self.telemetry);
        }
    }

    /// An attempt has ended in a way that says nothing about the health of the host.
    pub(super) fn give_permit_back(&mut self, key: CallKey) {
        let now = self.reactor.now();
        if let Some(call) = self.reactor.call(key) {
            self.admission
                .give_back(call, now, &mut self.hosts, &self.telemetry);
        }
    }

    #[cold]
    fn notify_sending(&self, conn: ConnKey, key: CallKey, reused: bool) {
        if let (Some(call), Some(remote)) = (self.reactor.call_ref(key), self.reactor.remote(conn))
        {
            self.telemetry.sending(key, call, remote, reused);
        }
    }

    /// A streamed body has new data, or has ended. The caller is notified only after it has taken the head.
    pub(super) fn notify_readable(&mut self, key: CallKey) {
        if let Some(call) = self.reactor.call(key)
            && call.head == HeadState::Given
            && !std::mem::replace(&mut call.notified, true)
        {
            self.deliveries.readable.push(CallId(key));
        }
    }

    /// The connector, and the parts of the engine that it works on.
    pub(super) fn opener(&mut self) -> Opener<'_, N> {
        Opener {
            connector: &mut self.connector,
            reactor: &mut self.reactor,
            hosts: &mut self.hosts,
            throttle: &self.throttle,
            telemetry: &self.telemetry,
        }
    }
}

/// Whether a call waits for a new connection.
fn waits_fresh(call: &ActiveCall) -> bool {
    matches!(call.state, CallState::Waiting { id, .. } if id.is_fresh())
}

/// Why a call whose request is encoded cannot share a connection, if it cannot.
#[inline]
fn unfit_for_pipeline(call: &ActiveCall) -> Option<Misuse> {
    let what = match call.mode {
        BodyMode::Stream => Some("a streamed response"),
        _ if call.request.was_encoded_for_pipeline() => None,
        _ => call.request.unfit_for_pipeline(),
    };
    what.map(Misuse::NotPipelined)
}
