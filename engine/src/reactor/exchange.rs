//! The exchange of a call: from when the call gets a connection until the response is complete or given up.

use super::conn::{ConnState, ReadPause};
use super::{CallKey, CallState, ConnKey, Reactor, TimerOwner};
use crate::net::Net;
use crate::proto::BodyMode;
use crate::time::Time;

impl<N: Net, C> Reactor<N, C> {
    /// Gives a connection to a call, and begins to send the request. False if a look has shown that the connection cannot
    /// serve; nothing has changed then.
    pub(crate) fn start(&mut self, conn_key: ConnKey, call_key: CallKey) -> bool {
        let (Some(mut conn), Some(mut call)) =
            (self.conns.get_mut(conn_key), self.calls.get_mut(call_key))
        else {
            return true;
        };
        if conn.must_look(&call.request) {
            if self.has_more(conn_key) {
                return false;
            }
            match (self.conns.get_mut(conn_key), self.calls.get_mut(call_key)) {
                (Some(same_conn), Some(same_call)) => (conn, call) = (same_conn, same_call),
                _ => return true,
            }
        }
        call.state = CallState::OnConn(conn_key);
        let timestamps = &mut call.timestamps;
        timestamps.begin_attempt(self.now, conn.reused, &conn.endpoints);
        timestamps.set_opened(conn.opened.take().filter(|_| !conn.reused));
        if let (Some(ticket), Some(order)) = (conn.idle_ticket.take(), &mut self.idle_order) {
            order.remove(ticket);
        }
        conn.reused = true;
        conn.wait.since = self.now;
        conn.wait.continue_at = None;
        conn.wait.deadline = call.deadline;
        conn.wait.has_own_limits = call.overrides.is_some() || conn.wait.first_byte_limit.is_some();
        conn.state = ConnState::Busy(call_key);
        conn.exchange.begin(&call.request, call.mode);
        if conn.early {
            conn.exchange.expect_early();
        }
        if call.mode == BodyMode::Stream {
            self.spares.lend_decoder(&mut call.response);
        }
        if self.settings.batching.is_some() {
            self.start_pipeline(conn_key, call_key);
            return true;
        }
        match conn.send(call, &mut self.net, &mut self.buffer, self.now) {
            Ok(()) if conn.is_armed_by(self.soonest) => {}
            Ok(()) => self.arm_conn(conn_key),
            Err(stop) => {
                self.stop_sending(conn_key, stop);
                self.arm_conn(conn_key);
            }
        }
        true
    }

    /// Takes the call off a connection, which then drains the abandoned answer. False if the connection cannot drain: a
    /// part of the request is unsent, or reading has paused for the consumer of a streamed body.
    pub(crate) fn drain(&mut self, key: ConnKey, until: Time) -> bool {
        let can_drain = self.conns.get(key).is_some_and(|conn| {
            matches!(conn.state, ConnState::Busy(_))
                && !conn.exchange.is_sending()
                && conn.read_pause != Some(ReadPause::Consumer)
        });
        if can_drain {
            self.drop_answer(key, until);
        }
        can_drain
    }

    /// Takes the call off a connection, and abandons the answer.
    pub(super) fn drop_answer(&mut self, key: ConnKey, until: Time) {
        let mut response = self.spares.take_response();
        let Some(conn) = self.conns.get_mut(key) else {
            return;
        };
        match std::mem::replace(&mut conn.state, ConnState::AwaitingDecision) {
            ConnState::Busy(call) => {
                conn.exchange.discard();
                if let Some(call) = self.calls.get_mut(call) {
                    response.continue_from(&mut call.response);
                }
                conn.state = ConnState::Draining(response, until);
                let due = conn.draining_due(until);
                self.timers.arm(TimerOwner::Conn(key), &mut conn.armed, due);
            }
            other => conn.state = other,
        }
    }

    /// Whether a part of the request of a call is still to be sent, although its head may have come.
    pub(crate) fn is_sending(&self, call_key: CallKey) -> bool {
        let Some(CallState::OnConn(key)) = self.calls.get(call_key).map(|call| call.state) else {
            return false;
        };
        let conn = self.conns.get(key);
        conn.is_some_and(|conn| conn.serves(call_key) && conn.exchange.is_sending())
    }

    /// Drops the rest of a response that the caller does not get. False if the rest may be more than `most` bytes, or
    /// the connection closes anyway. The end of the response, or of the time until `until`, is reported by
    /// [`ReactorEvent::Finished`], [`ReactorEvent::Failed`] or [`ReactorEvent::TimedOut`], as for any other response. A
    /// connection that has failed already reports `Failed`, too.
    pub(crate) fn discard_rest(&mut self, call_key: CallKey, most: u64, until: Time) -> bool {
        let Some(call) = self.calls.get_mut(call_key) else {
            return false;
        };
        let CallState::OnConn(key) = call.state else {
            return false;
        };
        let Some(conn) = self.conns.get_mut(key) else {
            return true;
        };
        match conn.state {
            ConnState::Busy(_) if conn.exchange.discard_within(most) => {}
            ConnState::Busy(_) => return false,
            _ => return true,
        }
        let deadline = conn.wait.deadline;
        conn.wait.deadline = Some(deadline.map_or(until, |deadline| deadline.min(until)));
        call.response.body_buffer().clear();
        self.arm_conn(key);
        self.resume_read(call_key);
        true
    }
}
