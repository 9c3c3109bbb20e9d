//! When waits end: a connection's timer and a call's, and what happens when they come up.

use std::time::Duration;

use super::conn::{Conn, State, Unread};
use super::timers::{Armed, Owner};
use super::{CallKey, ConnKey, Happened, MeteredStream, Place, Reactor};
use crate::error::{Phase, TimeLimit};
use crate::mutation::{self, Mutation};
use crate::net::Net;
use crate::time::Time;

impl<N: Net> Reactor<N> {
    /// Tells the client at that time.
    pub(crate) fn alarm(&mut self, owner: Owner, at: Time) {
        self.timers.alarm(owner, at);
    }

    /// Forgets alarms that do not count any more, if there are many more than so many owners can have.
    pub(crate) fn tidy_alarms(&mut self, owners: usize, counts: impl FnMut(Owner, Time) -> bool) {
        if self.timers.has_old_alarms(owners) {
            self.timers.tidy_alarms(counts);
        }
    }

    /// When the present wait of a connection ends, and by which limit.
    pub(super) fn conn_due(
        &self,
        conn: &Conn<MeteredStream<N::Stream>>,
    ) -> Option<(Time, Option<TimeLimit>)> {
        // The peer is not to blame for our rates either.
        let (held, called_at) = self.net.held(conn.stream.stream());
        let after = |since: Time| called_at.map_or(since, |at| at.max(since));
        match &conn.state {
            State::Idle(until) => Some((*until, None)),
            State::Draining(_, _, until) => Some((conn.draining_due(*until), None)),
            State::Connecting(_, due) => due.map(|at| (at, None)),
            State::SettingUp(_) if held => None,
            State::SettingUp(set_up) => {
                let due = self
                    .settings
                    .timeouts
                    .due(set_up.phase(), after(set_up.since), None);
                due.map(|(at, limit)| (at, Some(limit)))
            }
            State::Settled => None,
            State::Busy(exchange, call) => {
                let deadline = conn
                    .deadline
                    .filter(|_| !mutation::on(Mutation::MissedDeadline));
                let timed = match (conn.unread, conn.continue_at) {
                    // The peer is not to blame for the consumer's pace.
                    _ if held => deadline.map(|at| (at, TimeLimit::Total)),
                    (Some(Unread::Consumer), _) => deadline.map(|at| (at, TimeLimit::Total)),
                    _ => {
                        let own = self.calls.get(*call).filter(|_| conn.hurried);
                        let timeouts = match own {
                            Some(call) => call.timeouts(&self.settings),
                            None => &self.settings.timeouts,
                        };
                        let due = timeouts.due(exchange.phase(), after(conn.since), deadline);
                        match conn.patience {
                            Some(patience)
                                if exchange.phase() == Phase::FirstByte
                                    && own.is_none_or(|call| !call.has_own_first_byte()) =>
                            {
                                earlier(due, after(conn.since), patience)
                            }
                            _ => due,
                        }
                    }
                };
                let timed = timed.map(|(at, limit)| (at, Some(limit)));
                let proceed = conn.continue_at.map(|at| (at, None));
                match (timed, proceed) {
                    (Some(timed), Some(proceed)) if proceed.0 < timed.0 => Some(proceed),
                    (timed, proceed) => timed.or(proceed),
                }
            }
        }
    }

    /// Sees to it that a busy connection wakes up in time.
    pub(super) fn arm_conn(&mut self, key: ConnKey) {
        let Some(conn) = self.conns.get(key) else {
            return;
        };
        if conn.is_armed_by(self.soonest) {
            return; // nearly always: the last idle time ends before this call's limits
        }
        if let Some((at, _)) = self.conn_due(conn)
            && let Some(conn) = self.conns.get_mut(key)
        {
            self.timers.arm(Owner::Conn(key), &mut conn.armed, at);
        }
    }

    pub(super) fn handle_timers(&mut self) {
        let owners = self.conns.len() + self.calls.len();
        if self.timers.is_untidy(owners) {
            let (conns, calls) = (&self.conns, &self.calls);
            self.timers.tidy(|owner| match owner {
                Owner::Conn(key) => conns.get(key).map(|conn| conn.armed),
                Owner::Call(key) => calls.get(key).map(|call| call.armed),
                Owner::Opening(_) | Owner::Host(_) | Owner::FairQueue => None,
            });
        }
        loop {
            let (conns, calls) = (&self.conns, &self.calls);
            let claim = |owner: Owner| match owner {
                Owner::Conn(key) => conns.get(key).map(|conn| conn.armed),
                Owner::Call(key) => calls.get(key).map(|call| call.armed),
                Owner::Opening(_) | Owner::Host(_) | Owner::FairQueue => None,
            };
            match self.timers.pop(self.now, claim) {
                Some(Owner::Conn(key)) => self.handle_conn_timer(key),
                Some(Owner::Call(key)) => self.handle_call_timer(key),
                Some(owner) => self.happened.push_back(Happened::Alarm(owner)),
                None => return,
            }
        }
    }

    fn handle_call_timer(&mut self, key: CallKey) {
        let Some(call) = self.calls.get_mut(key) else {
            return;
        };
        call.armed = Armed::default();
        let since = match call.place {
            Place::Waiting { since, .. } => since,
            Place::Pausing { until, .. } if until <= self.now => {
                return self.happened.push_back(Happened::PauseOver(key));
            }
            Place::Pausing { until, .. } => {
                return self.timers.arm(Owner::Call(key), &mut call.armed, until);
            }
            _ => {
                if self.settings.batching.is_some() {
                    self.check_deadline(key);
                }
                return;
            }
        };
        let timeouts = call.timeouts(&self.settings);
        match timeouts.due(Phase::Queue, since, call.deadline) {
            Some((at, limit)) if at <= self.now => {
                self.happened.push_back(Happened::WaitOver(key, limit));
            }
            Some((at, _)) => self.timers.arm(Owner::Call(key), &mut call.armed, at),
            None => {}
        }
    }

    fn handle_conn_timer(&mut self, key: ConnKey) {
        let Some(conn) = self.conns.get_mut(key) else {
            return;
        };
        conn.armed = Armed::default();
        let Some((at, limit)) = self.conns.get(key).and_then(|conn| self.conn_due(conn)) else {
            return;
        };
        if at > self.now {
            if let Some(conn) = self.conns.get_mut(key)
                && !mutation::on(Mutation::LostTimer)
            {
                self.timers.arm(Owner::Conn(key), &mut conn.armed, at);
            }
            return;
        }
        let Some(conn) = self.conns.get_mut(key) else {
            return;
        };
        match (&mut conn.state, limit) {
            (State::SettingUp(_), _) => self.fail(key, TimeLimit::Handshake.into()),
            (State::Idle(_), _) => self.happened.push_back(Happened::IdleDue(key)),
            (State::Draining(_, _, until), _) if *until > self.now => self.check_deadlines(key),
            (State::Draining(..), _) => self.fail(key, TimeLimit::Total.into()),
            (State::Busy(..), Some(TimeLimit::Total)) if conn.pipe.is_some() => {
                self.check_deadlines(key);
            }
            (State::Busy(_, call), Some(limit)) => {
                let call = *call;
                self.happened.push_back(Happened::Late {
                    conn: key,
                    call,
                    limit,
                });
            }
            (State::Busy(exchange, _), None) => {
                exchange.handle_continue_timeout();
                conn.continue_at = None;
                self.drive_send(key);
                self.arm_conn(key);
            }
            (&mut State::Connecting(opening, _), _) => {
                self.happened
                    .push_back(Happened::Alarm(Owner::Opening(opening)));
            }
            (State::Settled, _) => {}
        }
    }
}

/// When a wait for a first byte ends, by the limits that are set or by what is usual.
fn earlier(
    due: Option<(Time, TimeLimit)>,
    since: Time,
    patience: Duration,
) -> Option<(Time, TimeLimit)> {
    let usual = since
        .checked_add(patience)
        .map(|at| (at, TimeLimit::Adaptive));
    match (due, usual) {
        (Some(due), Some(usual)) if due.0 <= usual.0 => Some(due),
        (due, usual) => usual.or(due),
    }
}
