//! The exchange of a call: from when the call gets a connection until the response is complete or given up.

use super::conn::{ConnState, ReadPause};
use super::{CallKey, CallState, ConnKey, Reactor, TimerOwner};
use crate::error::{Error, ErrorKind};
use crate::net::Net;
use crate::proto::{BodyMode, Exchange};
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
        call.attempts += 1;
        let timestamps = &mut call.timestamps;
        timestamps.begin_attempt(self.now, conn.reused, &conn.endpoints);
        if !conn.reused {
            timestamps.opened = conn.opened.take();
        } else if timestamps.opened.is_some() {
            timestamps.opened = None; // of an earlier attempt
        }
        if let (Some(ticket), Some(order)) = (conn.idle_ticket.take(), &mut self.idle_order) {
            order.remove(ticket);
        }
        conn.reused = true;
        conn.wait.since = self.now;
        conn.wait.continue_at = None;
        conn.wait.deadline = call.deadline;
        conn.wait.has_own_limits = call.overrides.is_some() || conn.wait.first_byte_limit.is_some();
        conn.state = ConnState::Busy(Exchange::new(&call.request, call.mode), call_key);
        if let ConnState::Busy(exchange, _) = &mut conn.state {
            if self.settings.ignore_invalid_headers {
                exchange.ignore_invalid_headers();
            }
            if conn.early {
                exchange.expect_early();
            }
        }
        if let (BodyMode::Stream, ConnState::Busy(exchange, _)) = (call.mode, &mut conn.state) {
            exchange.set_stream_buffer(self.settings.stream_buffer);
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
        let Some(conn) = self.conns.get(key) else {
            return false;
        };
        let ConnState::Busy(exchange, _) = &conn.state else {
            return false;
        };
        if exchange.is_sending() || conn.read_pause == Some(ReadPause::Consumer) {
            return false;
        }
        self.drop_answer(key, until);
        true
    }

    /// Takes the call off a connection, and abandons the answer.
    pub(super) fn drop_answer(&mut self, key: ConnKey, until: Time) {
        let mut response = self.take_spare();
        let Some(conn) = self.conns.get_mut(key) else {
            return;
        };
        match std::mem::replace(&mut conn.state, ConnState::AwaitingDecision) {
            ConnState::Busy(mut exchange, call) => {
                exchange.discard();
                if let Some(call) = self.calls.get_mut(call) {
                    response.continue_from(&mut call.response);
                }
                conn.state = ConnState::Draining(exchange, response, until);
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
        self.conns.get(key).is_some_and(|conn| match &conn.state {
            ConnState::Busy(exchange, owner) => *owner == call_key && exchange.is_sending(),
            _ => false,
        })
    }

    /// The error of the call on that connection, if the call ends now for that cause.
    pub(crate) fn busy_error(&self, key: ConnKey, kind: ErrorKind) -> Option<Error> {
        let conn = self.conns.get(key)?;
        match &conn.state {
            ConnState::Busy(exchange, _) => {
                Some(conn.error(kind, exchange.phase(), exchange.sent()))
            }
            _ => None,
        }
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
        let ConnState::Busy(exchange, _) = &mut conn.state else {
            return true;
        };
        if !exchange.discard_within(most) {
            return false;
        }
        let deadline = conn.wait.deadline;
        conn.wait.deadline = Some(deadline.map_or(until, |deadline| deadline.min(until)));
        call.response.body_buffer().clear();
        self.arm_conn(key);
        self.resume_read(call_key);
        true
    }
}
