//! Several calls on one connection: who gets a place where, and what becomes of those whose connection ends.

use std::num::NonZeroUsize;

use super::Engine;
use crate::client::router::Router;
use crate::error::{Error, ErrorKind, LimitExceeded, Misuse, Phase, Sent, TimeLimit};
use crate::net::Net;
use crate::policy::{Checkout, Overflow, PipelineLoads};
use crate::proto::BodyMode;
use crate::reactor::{Batching, CallKey, CallState, ConnKey, GiveUpOutcome, HostKey, PoolSlot};
use crate::time::Time;

/// What a pipelining client has beside the others.
#[derive(Debug)]
pub(crate) struct Pipelining {
    pub(crate) loads: PipelineLoads<ConnKey>,
    pub(crate) max_total: NonZeroUsize,
    pub(crate) overflow: Overflow,
    /// Calls whose connection ended before their answer was next.
    pub(crate) unanswered: u64,
}

impl<R: Router, N: Net> Engine<R, N> {
    pub(in crate::client) fn set_pipelining(&mut self, pipelining: Pipelining, batching: Batching) {
        self.pipelining = Some(pipelining);
        self.reactor.set_batching(batching);
    }

    pub(in crate::client) fn pipelining(&self) -> Option<&Pipelining> {
        self.pipelining.as_ref()
    }

    pub(in crate::client) fn iteration_time(&self) -> Time {
        self.reactor.now()
    }

    /// Finds a place for a call whose request is encoded: a connection of its own while there may be more of them, a
    /// place beside others, or one in the queue.
    pub(super) fn send_pipelined(&mut self, host_key: HostKey, key: CallKey) {
        let now = self.reactor.now();
        if let Some(error) = self.unfit(key) {
            return self.end_call(key, Err(error));
        }
        if !self.make_room(host_key) {
            let most = self.pipelining.as_ref().map_or(0, |p| p.max_total.get());
            let full = Error::new(LimitExceeded::Pending(most), Phase::Queue, Sent::Nothing);
            return self.end_call(key, Err(full));
        }
        if self.hosts.is_throttled() {
            return self.send_throttled(host_key, key);
        }
        let (Some(host), Some(pipelining)) = (self.hosts.get(host_key), &self.pipelining) else {
            return;
        };
        // Calls that wait already come first, and those that need a new connection get the next one that is free.
        let may_ride = host.pool.is_full() && !host.pool.has_idle() && host.pool.waiting() == 0;
        if may_ride
            && let Some((_, conn)) = pipelining.loads.pick(now)
            && self.reactor.takes_more(conn)
        {
            return self.add_call(conn, key);
        }
        let reactor = &mut self.reactor;
        let checkout = host.pool.checkout(now, key, |conn| {
            reactor.close(conn);
        });
        match checkout {
            Checkout::Reuse(conn) => self.start(conn, key),
            Checkout::Wait(id) => self.reactor.wait(key, id),
            Checkout::Full(limit) => {
                self.end_call(key, Err(Error::new(limit, Phase::Queue, Sent::Nothing)));
            }
        }
        self.hosts.touch(host_key);
    }

    fn unfit(&mut self, key: CallKey) -> Option<Error> {
        let call = self.reactor.call_ref(key)?;
        let what = match call.mode {
            BodyMode::Stream => Some("a streamed response"),
            _ => call.request.unfit_for_pipeline(),
        };
        what.map(|what| Error::new(Misuse::NotPipelined(what), Phase::Queue, Sent::Nothing))
    }

    /// Sees to it that one more call may be pending.
    fn make_room(&mut self, host_key: HostKey) -> bool {
        let (Some(host), Some(pipelining)) = (self.hosts.get(host_key), &self.pipelining) else {
            return false;
        };
        let most = pipelining.max_total.get();
        let pending = pipelining.loads.pending() + host.pool.waiting();
        if pending < most || pipelining.overflow == Overflow::Wait {
            return true;
        }
        if pipelining.overflow == Overflow::RefuseNewest {
            return false;
        }
        let unsent = pipelining.loads.conns();
        let unsent = unsent.filter_map(|conn| {
            let call = self.reactor.first_unsent(conn)?;
            Some((self.reactor.call_ref(call)?.timestamps.begun, call))
        });
        let oldest = match unsent.min_by_key(|&(begun, _)| begun) {
            Some((_, oldest)) => {
                self.detach(oldest);
                Some(oldest)
            }
            None => host.pool.take_waiting(),
        };
        if let Some(oldest) = oldest {
            let full = Error::new(LimitExceeded::Pending(most), Phase::Queue, Sent::Nothing);
            self.end_call(oldest, Err(full));
        }
        oldest.is_some()
    }

    pub(super) fn add_call(&mut self, conn: ConnKey, key: CallKey) {
        let (Some(slot), Some(pipelining)) = (self.reactor.slot(conn), &mut self.pipelining) else {
            return;
        };
        pipelining.loads.add_call(slot.id.index());
        if self.telemetry.observes() {
            self.notify_sending(conn, key);
        }
        if self.adaptive.is_on() {
            self.set_first_byte_limit(conn);
        }
        self.reactor.add_call(conn, key);
        self.retire_if_last(slot, key);
    }

    /// A connection that was idle or new has a call; those that wait may join it.
    pub(super) fn pipeline_begun(&mut self, conn: ConnKey, key: CallKey) {
        let (Some(slot), Some(pipelining)) = (self.reactor.slot(conn), &mut self.pipelining) else {
            return;
        };
        let call = self.reactor.call_ref(key);
        let probing = call.is_some_and(|call| call.client.failures > 0 && !call.timestamps.reused);
        pipelining.loads.begin(slot.id.index(), conn, probing);
        self.retire_if_last(slot, key);
        self.fill(slot, conn);
    }

    /// A request that says `Connection: close` is the last one on its connection, and so is the last one that a
    /// connection may serve at all.
    fn retire_if_last(&mut self, slot: PoolSlot, key: CallKey) {
        let (Some(host), Some(pipelining)) = (self.hosts.get(slot.host), &mut self.pipelining)
        else {
            return;
        };
        let call = self.reactor.call_ref(key);
        let pending = pipelining.loads.pending_on(slot.id.index());
        if call.is_some_and(|call| call.request.says_close())
            || host.pool.is_used_up(slot.id, pending)
        {
            pipelining.loads.retire(slot.id.index());
        }
    }

    /// A call on a connection is over, and others go on.
    pub(super) fn pipeline_answered(&mut self, slot: PoolSlot, conn: ConnKey) {
        let now = self.reactor.now();
        let (Some(host), Some(pipelining)) = (self.hosts.get(slot.host), &mut self.pipelining)
        else {
            return;
        };
        pipelining.loads.answered(slot.id.index());
        if host.pool.served(now, slot.id) {
            pipelining.loads.retire(slot.id.index());
        }
        if host.pool.waiting() > 0 {
            self.fill(slot, conn);
        }
    }

    /// Gives a connection calls that wait: its share of them, as far as it has room.
    fn fill(&mut self, slot: PoolSlot, conn: ConnKey) {
        let now = self.reactor.now();
        if self.hosts.is_throttled() {
            return self.hosts.touch(slot.host);
        }
        let Some(host) = self.hosts.get(slot.host) else {
            return;
        };
        let coming = host.pool.counters().connecting;
        let share = host.pool.waiting().div_ceil(coming + 1);
        for _ in 0..share {
            // Each of them may be the last one.
            let loads = self.pipelining.as_ref().map(|pipelining| &pipelining.loads);
            let room = loads.is_some_and(|loads| loads.room(now, slot.id.index()) > 0);
            if !room || !self.reactor.takes_more(conn) {
                break;
            }
            let host = self.hosts.get(slot.host);
            let Some(call) = host.and_then(|host| host.pool.take_waiting_for(slot.id)) else {
                break;
            };
            if self.reactor.call_ref(call).is_some_and(|c| c.is_late(now)) {
                let late = Error::new(TimeLimit::Total, Phase::Queue, Sent::Nothing);
                self.end_call(call, Err(late));
                continue;
            }
            self.add_call(conn, call);
        }
        self.hosts.touch(slot.host);
    }

    /// The error of a call on a connection, ended for that cause where it is.
    pub(super) fn error_on(&self, conn: ConnKey, call: CallKey, kind: ErrorKind) -> Option<Error> {
        if R::PIPELINES {
            self.reactor.pipeline_error(conn, call, kind)
        } else {
            self.reactor.busy_error(conn, kind)
        }
    }

    /// Takes a call off its connection, and leaves the others there if that can be.
    pub(super) fn leave_pipeline(&mut self, conn: ConnKey, key: CallKey) {
        match self.reactor.give_up(conn, key) {
            GiveUpOutcome::Unsent => {
                if let (Some(slot), Some(pipelining)) =
                    (self.reactor.slot(conn), &mut self.pipelining)
                {
                    pipelining.loads.answered(slot.id.index());
                    self.fill(slot, conn);
                }
            }
            // Nobody is put behind an answer that may never come.
            GiveUpOutcome::Dropped => {
                if let (Some(slot), Some(pipelining)) =
                    (self.reactor.slot(conn), &mut self.pipelining)
                {
                    pipelining.loads.retire(slot.id.index());
                }
            }
            GiveUpOutcome::Gone => {}
        }
    }

    /// The connection of a call has ended before its answer was next.
    pub(super) fn unanswered(&mut self, key: CallKey, sent: Sent, error: Option<Error>) {
        if let Some(pipelining) = &mut self.pipelining {
            pipelining.unanswered += 1;
        }
        match error {
            Some(error) => self.end_attempt(key, error),
            None => {
                let Some(call) = self.reactor.call(key) else {
                    return;
                };
                if !matches!(call.state, CallState::OnConn(_)) {
                    return;
                }
                call.client.sent_before = call.client.sent_before.max(sent);
                if let Some(host_key) = call.host
                    && let Some(host) = self.hosts.get(host_key)
                {
                    let waiting = host.pool.put_back(key);
                    self.reactor.wait(key, waiting);
                    self.hosts.touch(host_key);
                }
            }
        }
    }

    pub(super) fn pipelining_broken(&mut self) {
        let now = self.reactor.now();
        if let Some(pipelining) = &mut self.pipelining {
            pipelining.loads.distrust(now);
        }
    }

    /// A connection is idle, or gone.
    #[inline]
    pub(super) fn pipeline_ended(&mut self, slot: PoolSlot) {
        if R::PIPELINES
            && let Some(pipelining) = &mut self.pipelining
        {
            pipelining.loads.end(slot.id.index());
        }
    }
}
