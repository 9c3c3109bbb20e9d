//! Timers of connections and calls: when a wait ends, and what happens then.

use super::conn::{Conn, ConnState, ReadPause};
use super::timers::{Armed, TimerOwner};
use super::{ActiveCall, CallKey, CallState, Common, ReactorEvent};
use crate::error::{ErrorKind, Phase, TimeLimit};
use crate::net::Net;
use crate::time::Time;

impl<N: Net> Conn<N> {
    /// When the present wait of a connection ends, and by which limit.
    pub(super) fn due<C>(&self, common: &Common<N, C>) -> Option<(Time, Option<TimeLimit>)> {
        // The peer is not to blame for a wait that our own rate of bytes causes.
        let (held, resumed_at) = common.net.held_back(self.stream.stream());
        let after = |since: Time| resumed_at.map_or(since, |at| at.max(since));
        match &self.state {
            ConnState::Idle(until) => Some((*until, None)),
            ConnState::Draining(_, until) => Some((self.draining_due(*until), None)),
            ConnState::Connecting { due, .. } => due.map(|at| (at, None)),
            ConnState::Handshaking(_) if held => None,
            ConnState::Handshaking(handshakes) => {
                let limit = handshakes.limit?;
                let at = after(handshakes.since).checked_add(limit)?;
                Some((at, Some(TimeLimit::Handshake)))
            }
            ConnState::AwaitingDecision => None,
            ConnState::Busy(call) => {
                let (exchange, deadline) = (&self.exchange, self.wait.deadline);
                // The peer is not to blame for the pace of the consumer, or of the source of the request's body.
                let is_excused = held
                    || self.read_pause == Some(ReadPause::Consumer)
                    || exchange.awaits_source();
                let timed = match is_excused {
                    true => deadline.map(|at| (at, TimeLimit::Total)),
                    false => self.exchange_due(common, *call, after(self.wait.since), deadline),
                };
                let timed = timed.map(|(at, limit)| (at, Some(limit)));
                let proceed = self.wait.continue_at.map(|at| (at, None));
                timed.into_iter().chain(proceed).min_by_key(|due| due.0)
            }
        }
    }

    /// When a wait for the peer ends that began at `since`: by the limits of the call or of the client, by the adaptive
    /// limit of the host, or by the deadline.
    #[inline]
    fn exchange_due<C>(
        &self,
        common: &Common<N, C>,
        call: CallKey,
        since: Time,
        deadline: Option<Time>,
    ) -> Option<(Time, TimeLimit)> {
        let phase = self.exchange.phase();
        let own = common.calls.get(call).filter(|_| self.wait.has_own_limits);
        let timeouts = match own {
            Some(call) => call.timeouts(&common.settings),
            None => &common.settings.timeouts,
        };
        let due = timeouts.due(phase, since, deadline);
        let is_adaptive =
            phase == Phase::FirstByte && !own.is_some_and(ActiveCall::has_own_first_byte_limit);
        let adaptive = self.wait.first_byte_limit.filter(|_| is_adaptive);
        let adaptive = adaptive.and_then(|limit| since.checked_add(limit));
        let adaptive = adaptive.map(|at| (at, TimeLimit::Adaptive));
        due.into_iter().chain(adaptive).min_by_key(|due| due.0)
    }

    /// Handles the timer of the connection.
    pub(super) fn handle_timer<C>(&mut self, common: &mut Common<N, C>) -> Result<(), ErrorKind> {
        self.armed = Armed::default();
        let Some((at, limit)) = self.due(common) else {
            return Ok(());
        };
        if at > common.now {
            self.arm_by(at, &mut common.timers);
            return Ok(());
        }
        let conn = self.key;
        match (&self.state, limit) {
            (ConnState::Handshaking(_), _) => return Err(TimeLimit::Handshake.into()),
            (ConnState::Idle(_), _) => common.events.push_back(ReactorEvent::IdleDue(conn)),
            (ConnState::Draining(_, until), _) if *until > common.now => {
                self.check_deadlines(common);
            }
            (ConnState::Draining(..), _) => return Err(TimeLimit::Total.into()),
            (ConnState::Busy(..), Some(TimeLimit::Total)) if self.pipeline.is_some() => {
                self.check_deadlines(common);
            }
            (&ConnState::Busy(call), Some(limit)) => {
                let timed_out = ReactorEvent::TimedOut { conn, call, limit };
                common.events.push_back(timed_out);
            }
            (ConnState::Busy(_), None) => {
                self.exchange.handle_continue_timeout();
                self.wait.continue_at = None;
                self.send_on(common)?;
            }
            (&ConnState::Connecting { opening, .. }, _) => {
                let due = ReactorEvent::Timer(TimerOwner::Opening(opening));
                common.events.push_back(due);
            }
            (ConnState::AwaitingDecision, _) => {}
        }
        Ok(())
    }
}

impl<N: Net, C> Common<N, C> {
    /// Handles the timer of a call.
    pub(super) fn handle_call_timer(&mut self, key: CallKey) {
        let Some(call) = self.calls.get_mut(key) else {
            return;
        };
        call.armed = Armed::default();
        let since = match call.state {
            CallState::Waiting { since, .. } => since,
            CallState::Pausing { until, .. } if until <= self.now => {
                let over = ReactorEvent::PauseOver(key);
                return self.events.push_back(over);
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
                self.events.push_back(over);
            }
            Some((at, _)) => self.timers.arm(TimerOwner::Call(key), &mut call.armed, at),
            None => {}
        }
    }
}
