//! Timers of connections and calls: when a wait ends, and what happens then.

use super::conn::{Conn, ConnState, ReadPause};
use super::timers::{Armed, TimerOwner};
use super::{ActiveCall, CallKey, CallState, ConnKey, MeteredStream, Reactor, ReactorEvent};
use crate::error::{Phase, TimeLimit};
use crate::net::Net;
use crate::time::Time;

impl<N: Net, C> Reactor<N, C> {
    /// When the present wait of a connection ends, and by which limit.
    pub(super) fn conn_due(
        &self,
        conn: &Conn<MeteredStream<N::Stream>>,
    ) -> Option<(Time, Option<TimeLimit>)> {
        // The peer is not to blame for a wait that our own rate of bytes causes.
        let (held, resumed_at) = self.net.held_back(conn.stream.stream());
        let after = |since: Time| resumed_at.map_or(since, |at| at.max(since));
        match &conn.state {
            ConnState::Idle(until) => Some((*until, None)),
            ConnState::Draining(_, until) => Some((conn.draining_due(*until), None)),
            ConnState::Connecting { due, .. } => due.map(|at| (at, None)),
            ConnState::Handshaking(_) if held => None,
            ConnState::Handshaking(handshakes) => {
                let limit = handshakes.limit?;
                let at = after(handshakes.since).checked_add(limit)?;
                Some((at, Some(TimeLimit::Handshake)))
            }
            ConnState::AwaitingDecision => None,
            ConnState::Busy(call) => {
                let (exchange, deadline) = (&conn.exchange, conn.wait.deadline);
                // The peer is not to blame for the pace of the consumer, or of the source of the request's body.
                let is_excused = held
                    || conn.read_pause == Some(ReadPause::Consumer)
                    || exchange.awaits_source();
                let timed = match is_excused {
                    true => deadline.map(|at| (at, TimeLimit::Total)),
                    false => self.exchange_due(conn, *call, after(conn.wait.since), deadline),
                };
                let timed = timed.map(|(at, limit)| (at, Some(limit)));
                let proceed = conn.wait.continue_at.map(|at| (at, None));
                timed.into_iter().chain(proceed).min_by_key(|due| due.0)
            }
        }
    }

    /// When a wait for the peer ends that began at `since`: by the limits of the call or of the client, by the adaptive
    /// limit of the host, or by the deadline.
    #[inline]
    fn exchange_due(
        &self,
        conn: &Conn<MeteredStream<N::Stream>>,
        call: CallKey,
        since: Time,
        deadline: Option<Time>,
    ) -> Option<(Time, TimeLimit)> {
        let phase = conn.exchange.phase();
        let own = self.calls.get(call).filter(|_| conn.wait.has_own_limits);
        let timeouts = match own {
            Some(call) => call.timeouts(&self.settings),
            None => &self.settings.timeouts,
        };
        let due = timeouts.due(phase, since, deadline);
        let is_adaptive =
            phase == Phase::FirstByte && !own.is_some_and(ActiveCall::has_own_first_byte_limit);
        let adaptive = conn.wait.first_byte_limit.filter(|_| is_adaptive);
        let adaptive = adaptive.and_then(|limit| since.checked_add(limit));
        let adaptive = adaptive.map(|at| (at, TimeLimit::Adaptive));
        due.into_iter().chain(adaptive).min_by_key(|due| due.0)
    }

    /// Makes sure that the timer of a busy connection fires in time.
    pub(super) fn arm_conn(&mut self, key: ConnKey) {
        let Some(conn) = self.conns.get(key) else {
            return;
        };
        if conn.is_armed_by(self.soonest) {
            return; // nearly always: the timer of the last idle time fires before any limit of this call
        }
        self.arm_conn_anew(key);
    }

    /// Makes sure that the timer of a connection fires when the present wait ends.
    pub(super) fn arm_conn_anew(&mut self, key: ConnKey) {
        let due = self.conns.get(key).and_then(|conn| self.conn_due(conn));
        if let (Some((at, _)), Some(conn)) = (due, self.conns.get_mut(key)) {
            self.timers.arm(TimerOwner::Conn(key), &mut conn.armed, at);
        }
    }

    pub(super) fn handle_timers(&mut self) {
        loop {
            let (conns, calls) = (&self.conns, &self.calls);
            let owners = conns.len() + calls.len();
            let armed = |owner: TimerOwner| match owner {
                TimerOwner::Conn(key) => conns.get(key).map(|conn| conn.armed),
                TimerOwner::Call(key) => calls.get(key).map(|call| call.armed),
                _ => None, // the client's
            };
            match self.timers.pop(self.now, owners, armed) {
                Some(TimerOwner::Conn(key)) => self.handle_conn_timer(key),
                Some(TimerOwner::Call(key)) => self.handle_call_timer(key),
                Some(owner) => self.reactor_events.push_back(ReactorEvent::Timer(owner)),
                None => return,
            }
        }
    }

    fn handle_call_timer(&mut self, key: CallKey) {
        let Some(call) = self.calls.get_mut(key) else {
            return;
        };
        call.armed = Armed::default();
        let since = match call.state {
            CallState::Waiting { since, .. } => since,
            CallState::Pausing { until, .. } if until <= self.now => {
                let over = ReactorEvent::PauseOver(key);
                return self.reactor_events.push_back(over);
            }
            CallState::Pausing { until, .. } => {
                let owner = TimerOwner::Call(key);
                return self.timers.arm(owner, &mut call.armed, until);
            }
            _ if self.settings.batching.is_some() => return self.check_deadline(key),
            _ => return,
        };
        let timeouts = call.timeouts(&self.settings);
        match timeouts.due(Phase::Queue, since, call.deadline) {
            Some((at, limit)) if at <= self.now => {
                let over = ReactorEvent::WaitOver(key, limit);
                self.reactor_events.push_back(over);
            }
            Some((at, _)) => self.timers.arm(TimerOwner::Call(key), &mut call.armed, at),
            None => {}
        }
    }

    fn handle_conn_timer(&mut self, key: ConnKey) {
        let due = self.conns.get(key).and_then(|conn| self.conn_due(conn));
        let Some(conn) = self.conns.get_mut(key) else {
            return;
        };
        conn.armed = Armed::default();
        let Some((at, limit)) = due else {
            return;
        };
        if at > self.now {
            let owner = TimerOwner::Conn(key);
            return self.timers.arm(owner, &mut conn.armed, at);
        }
        match (&mut conn.state, limit) {
            (ConnState::Handshaking(_), _) => self.fail(key, TimeLimit::Handshake.into()),
            (ConnState::Idle(_), _) => self.reactor_events.push_back(ReactorEvent::IdleDue(key)),
            (ConnState::Draining(_, until), _) if *until > self.now => self.check_deadlines(key),
            (ConnState::Draining(..), _) => self.fail(key, TimeLimit::Total.into()),
            (ConnState::Busy(..), Some(TimeLimit::Total)) if conn.pipeline.is_some() => {
                self.check_deadlines(key);
            }
            (ConnState::Busy(call), Some(limit)) => {
                let call = *call;
                self.reactor_events.push_back(ReactorEvent::TimedOut {
                    conn: key,
                    call,
                    limit,
                });
            }
            (ConnState::Busy(_), None) => {
                conn.exchange.handle_continue_timeout();
                conn.wait.continue_at = None;
                self.drive_send(key);
                self.arm_conn(key);
            }
            (&mut ConnState::Connecting { opening, .. }, _) => {
                let due = ReactorEvent::Timer(TimerOwner::Opening(opening));
                self.reactor_events.push_back(due);
            }
            (ConnState::AwaitingDecision, _) => {}
        }
    }
}
