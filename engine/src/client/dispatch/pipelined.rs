//! Several calls on one connection: which connection a call joins, and how it leaves the connection.

use super::Dispatch;
use crate::client::router::Router;
use crate::client::sharing::Sharing;
use crate::error::LimitExceeded;
use crate::net::Net;
use crate::policy::Overflow;
use crate::reactor::{CallKey, ConnKey, GiveUpOutcome, HostKey, PoolSlot};

impl<R: Router, N: Net> Dispatch<R, N> {
    /// Dispatches a call whose request is encoded. The call gets a connection of its own while the pool may open more;
    /// else the call joins a connection that other calls use, or waits in the queue.
    #[inline(always)] // into its only caller
    pub(super) fn send_pipelined(&mut self, host_key: HostKey, key: CallKey) {
        if let Some(surplus) = self.surplus(host_key, key) {
            let pipelines = self.sharing.pipelines();
            let most = pipelines.map_or(0, |pipelines| pipelines.max_pending.get());
            self.refuse(surplus, LimitExceeded::Pending(most));
            if surplus == key {
                return;
            }
        }
        if self.hosts.is_throttled() {
            return self.send_throttled(host_key, key);
        }
        let now = self.reactor.now();
        let (Some(host), Some(pipelines)) = (self.hosts.get(host_key), self.sharing.pipelines())
        else {
            return;
        };
        // Waiting calls come first. If one of them needs a new connection, the next free slot is for that call.
        let is_first = host.pool.waiting() == 0 && host.pool.any_idle().is_none();
        if is_first
            && (host.pool.is_full() || self.hosts.cap.is_full())
            && let Some(conn) = pipelines.loads.pick(now)
            && self.add_call(conn, key)
        {
            return;
        }
        self.check_out(host_key, key);
    }

    /// The call that must go so that one more call may be pending, of a client whose calls do not wait for room: the new
    /// call, or the oldest one, which has left its connection. `None` if there is room.
    #[inline]
    fn surplus(&mut self, host_key: HostKey, key: CallKey) -> Option<CallKey> {
        let pipelines = self.sharing.pipelines();
        let pipelines = pipelines.filter(|it| it.overflow != Overflow::Wait)?;
        let host = self.hosts.get(host_key)?;
        let pending = pipelines.loads.pending() + host.pool.waiting();
        if pending < pipelines.max_pending.get() {
            return None;
        }
        if pipelines.overflow == Overflow::RefuseNewest {
            return Some(key);
        }
        let unsent = pipelines.loads.conns();
        let unsent = unsent.filter_map(|conn| {
            let call = self.reactor.first_unsent(conn)?;
            Some((self.reactor.call_ref(call)?.timestamps.begun, call))
        });
        let Some((_, oldest)) = unsent.min_by_key(|&(begun, _)| begun) else {
            return Some(host.pool.take_waiting().unwrap_or(key));
        };
        self.detach(oldest);
        Some(oldest)
    }

    /// Adds a call to those of a connection; false if the connection takes no more.
    #[inline(always)] // on the path of every call
    pub(super) fn add_call(&mut self, conn: ConnKey, key: CallKey) -> bool {
        let Some((slot, says_close)) = self.reactor.join(conn, key) else {
            return false;
        };
        if let Some(pipelines) = self.sharing.pipelines() {
            pipelines.loads.add_call(slot.id.index());
        }
        if self.telemetry.observes() {
            self.notify_sending(conn, key, self.reactor.has_served(conn));
        }
        if self.adaptive.is_on() {
            self.set_first_byte_limit(conn);
        }
        self.retire_if_last(slot, says_close);
        true
    }

    /// An idle or new connection has got a call, and waiting calls may join it.
    pub(super) fn pipeline_begun(&mut self, conn: ConnKey, key: CallKey) {
        let (Some(slot), Some(pipelines)) = (self.reactor.slot(conn), self.sharing.pipelines())
        else {
            return;
        };
        let call = self.reactor.call_ref(key);
        let probing = call.is_some_and(|call| call.client.failures > 0 && !call.timestamps.reused);
        pipelines.loads.begin(slot.id.index(), conn, probing);
        let says_close = call.is_some_and(|call| call.request.says_close());
        self.retire_if_last(slot, says_close);
        self.fill(slot, conn);
    }

    /// Retires the connection if this call is its last one: the request says `Connection: close`, or the connection has
    /// reached the number of requests that it may serve.
    #[inline(always)] // on the path of every call
    fn retire_if_last(&mut self, slot: PoolSlot, says_close: bool) {
        if (says_close || self.hosts.pool_config().max_requests.is_some())
            && let Some(host) = self.hosts.get(slot.host)
            && let Some(pipelines) = self.sharing.pipelines()
        {
            let (loads, at) = (&mut pipelines.loads, slot.id.index());
            if says_close || host.pool.is_used_up(slot.id, loads.pending_on(at)) {
                loads.retire(at);
            }
        }
    }

    /// Calls on a connection have their answers, and other calls on the connection go on.
    pub(in crate::client) fn pipeline_answered(
        &mut self,
        slot: PoolSlot,
        conn: ConnKey,
        responses: usize,
    ) {
        let now = self.reactor.now();
        let (Some(host), Some(pipelines)) = (self.hosts.get(slot.host), self.sharing.pipelines())
        else {
            return;
        };
        pipelines.loads.answered(slot.id.index(), responses);
        if host.pool.served(now, slot.id, responses) {
            pipelines.loads.retire(slot.id.index());
        }
        if host.pool.waiting() > 0 {
            self.fill(slot, conn);
        }
    }

    /// Gives a connection its share of the waiting calls, as far as the connection has room.
    fn fill(&mut self, slot: PoolSlot, conn: ConnKey) {
        self.add_waiting(slot, conn);
        self.hosts.touch(slot.host);
    }

    fn add_waiting(&mut self, slot: PoolSlot, conn: ConnKey) {
        let now = self.reactor.now();
        let is_full = self.hosts.cap.is_full();
        let Some(host) = self.hosts.get(slot.host) else {
            return;
        };
        // Either the connection must end, to make room for a new one, or the throttle begins the waiting calls.
        if is_full && host.pool.needs_fresh() || host.throttle.is_on() {
            return;
        }
        let coming = host.pool.counters().connecting;
        let share = host.pool.waiting().div_ceil(coming + 1);
        for _ in 0..share {
            // Each call may be the last one that the connection takes.
            let pipelines = self.sharing.pipelines();
            let room =
                pipelines.is_some_and(|pipelines| pipelines.loads.room(now, slot.id.index()) > 0);
            if !room || !self.reactor.takes_more(conn) {
                break;
            }
            let host = self.hosts.get(slot.host);
            let Some(call) = host.and_then(|host| host.pool.take_waiting_for(slot.id)) else {
                break;
            };
            if !self.is_too_late(call) {
                self.add_call(conn, call);
            }
        }
    }

    /// No connection can be opened, because the machine has no descriptor left: the waiting calls join the connections
    /// that there are.
    #[cold]
    pub(super) fn share_connections(&mut self, host_key: HostKey) {
        let pipelines = self.sharing.pipelines().into_iter();
        let conns: Vec<ConnKey> = pipelines.flat_map(|it| it.loads.conns()).collect();
        for conn in conns {
            if let Some(slot) = self.reactor.slot(conn).filter(|slot| slot.host == host_key) {
                self.add_waiting(slot, conn);
            }
        }
    }

    /// Removes a call from its connection. The other calls stay there, if that is possible.
    pub(in crate::client) fn leave_pipeline(&mut self, conn: ConnKey, key: CallKey) {
        let outcome = self.reactor.give_up(conn, key);
        let (Some(slot), Some(pipelines)) = (self.reactor.slot(conn), self.sharing.pipelines())
        else {
            return;
        };
        match outcome {
            GiveUpOutcome::Unsent => {
                pipelines.loads.answered(slot.id.index(), 1);
                self.fill(slot, conn);
            }
            // No call is put behind an answer that may never come.
            GiveUpOutcome::Dropped => pipelines.loads.retire(slot.id.index()),
            GiveUpOutcome::Gone => {}
        }
    }

    /// The server has broken pipelining, or may have forgotten a request behind another one.
    pub(in crate::client) fn pipelining_broken(&mut self, doubted: bool) {
        let now = self.reactor.now();
        if let Some(pipelines) = self.sharing.pipelines() {
            match doubted {
                true => pipelines.loads.doubt(now),
                false => pipelines.loads.distrust(now),
            }
        }
    }

    /// A connection is idle, or closed.
    #[inline]
    pub(super) fn pipeline_ended(&mut self, slot: PoolSlot) {
        if let Some(pipelines) = self.sharing.pipelines() {
            pipelines.loads.end(slot.id.index());
        }
    }
}
