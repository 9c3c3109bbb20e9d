//! Several calls on one connection (RFC 9112 §9.3.2): their requests go out together, and their answers come in order.
//!
//! The call in front, whose answer is next, is the one in the connection's state, as ever; those behind it wait in the
//! connection's pipeline, and each comes to the front when the one before it has been answered. A call that gives up
//! keeps its place if its request is on the way, and its answer is read and dropped.

mod answers;
mod requests;
mod send;

use std::time::Duration;

pub(super) use requests::Pipeline;
use requests::{ByteRange, QueuedRequest, ResponseOwner};

use super::conn::ConnState;
use super::{CallKey, CallState, ConnKey, Reactor, ReactorEvent, TimerOwner};
use crate::error::{Error, ErrorKind, PeerFault, Phase, Sent, TimeLimit};
use crate::net::{Address, Net};
use crate::policy::later;
use crate::proto::{BodyMode, Exchange, Reuse};

/// How the requests of a pipelining client go out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batching {
    /// How long a request waits for others that could go out with it.
    pub(crate) max_delay: Duration,
    /// How long an answer that nobody waits for any more is awaited once it is next.
    pub(crate) drain: Duration,
}

/// What became of a call that gave up its place on a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum GiveUpOutcome {
    /// Its request will not be sent.
    Unsent,
    /// Its answer will be dropped.
    Dropped,
    /// It had none any more.
    Gone,
}

impl<N: Net, C> Reactor<N, C> {
    /// Begins with the first call on a connection; the rest of [`start`](Reactor::start) is done.
    #[inline(never)] // nor the other ways in here: the path of a connection with one call is short without them
    pub(in crate::reactor) fn start_pipeline(&mut self, conn_key: ConnKey, call_key: CallKey) {
        let (Some(conn), Some(call)) = (self.conns.get_mut(conn_key), self.calls.get(call_key))
        else {
            return;
        };
        let pipeline = conn.pipeline.get_or_insert_default();
        pipeline.front = pipeline.push(&call.request);
        pipeline.answered_now = 0;
        self.plan_flush(conn_key);
        self.arm_conn(conn_key);
    }

    /// Whether a connection can take another call: it is on its way with one, nothing says that it ends, and what it
    /// has to send is not too much already.
    pub(crate) fn takes_more(&self, conn: ConnKey) -> bool {
        self.conns.get(conn).is_some_and(|conn| {
            let (ConnState::Busy(exchange, _) | ConnState::Draining(exchange, ..)) = &conn.state
            else {
                return false;
            };
            let gathered = conn
                .pipeline
                .as_ref()
                .map_or(0, |pipeline| pipeline.unsent());
            !exchange.will_close() && !conn.closed && gathered < MOST_GATHERED
        })
    }

    /// Gives a connection that [takes it](Self::takes_more) another call.
    pub(crate) fn add_call(&mut self, conn_key: ConnKey, call_key: CallKey) {
        let (Some(conn), Some(call)) = (self.conns.get_mut(conn_key), self.calls.get_mut(call_key))
        else {
            return;
        };
        let Some(pipeline) = &mut conn.pipeline else {
            return;
        };
        call.state = CallState::OnConn(conn_key);
        call.attempts += 1;
        let served = pipeline.answered > 0;
        call.timestamps
            .begin_attempt(self.now, served, &conn.endpoints);
        call.timestamps.opened = None;
        let range = pipeline.push(&call.request);
        call.number = pipeline.next_number;
        pipeline.next_number = pipeline.next_number.wrapping_add(1);
        pipeline.behind.push_back(QueuedRequest {
            owner: ResponseOwner::Call(call_key),
            number: call.number,
            range,
        });
        // It may be that of a call which is gone: only the timer tells when somebody looks.
        conn.wait.deadline = conn.wait.deadline.into_iter().chain(call.deadline).min();
        let in_time = call.deadline.is_none_or(|own| conn.armed.is_by(own));
        self.plan_flush(conn_key);
        if !in_time {
            self.arm_conn(conn_key);
        }
    }

    // ---- giving up

    /// The error of a call on a connection with others, ended for that cause where it is.
    pub(crate) fn pipeline_error(
        &self,
        conn: ConnKey,
        call: CallKey,
        kind: ErrorKind,
    ) -> Option<Error> {
        let conn = self.conns.get(conn)?;
        let pipeline = conn.pipeline.as_ref()?;
        let error = match &conn.state {
            ConnState::Busy(exchange, front) if *front == call => {
                Error::new(kind, exchange.phase(), exchange.sent())
            }
            _ => {
                let number = self.calls.get(call)?.number;
                let mine = pipeline.position(call, number)?;
                match pipeline.is_begun(pipeline.behind[mine].range) {
                    true => Error::new(kind, Phase::FirstByte, Sent::NoReplyByte),
                    false => Error::new(kind, Phase::Send, Sent::Nothing),
                }
            }
        };
        Some(error.with_remote(Some(conn.endpoints.remote.clone())))
    }

    /// Takes a call off a connection that others are on.
    pub(crate) fn give_up(&mut self, conn_key: ConnKey, call_key: CallKey) -> GiveUpOutcome {
        let (Some(conn), Some(call)) = (self.conns.get_mut(conn_key), self.calls.get(call_key))
        else {
            return GiveUpOutcome::Gone;
        };
        let Some(pipeline) = &mut conn.pipeline else {
            return GiveUpOutcome::Gone;
        };
        match conn.state {
            ConnState::Busy(_, front) if front == call_key => {
                if pipeline.is_begun(pipeline.front) {
                    let until = later(self.now, self.settings.drain());
                    self.drop_answer(conn_key, until);
                    return GiveUpOutcome::Dropped;
                }
                let nothing = ByteRange {
                    start: pipeline.written,
                    end: pipeline.written,
                };
                let range = std::mem::replace(&mut pipeline.front, nothing);
                pipeline.withdraw(range);
                while let Some(ResponseOwner::Withdrawn) =
                    pipeline.behind.front().map(|behind| &behind.owner)
                {
                    pipeline.behind.pop_front();
                }
                conn.state = ConnState::AwaitingDecision;
                if pipeline.behind.is_empty() {
                    // It counts as answered: the connection is free.
                    self.reactor_events.push_back(ReactorEvent::Finished {
                        conn: conn_key,
                        call: None,
                        reuse: Reuse::Keep,
                        keep_alive: None,
                    });
                } else {
                    conn.advance(&mut self.calls, &mut self.spares, self.now, &self.settings);
                    self.arm_conn(conn_key);
                }
                GiveUpOutcome::Unsent
            }
            _ => {
                let Some(at) = pipeline.position(call_key, call.number) else {
                    return GiveUpOutcome::Gone;
                };
                let range = pipeline.behind[at].range;
                if pipeline.is_begun(range) {
                    let exchange = Exchange::new(&call.request, BodyMode::Discard);
                    pipeline.behind[at].owner = ResponseOwner::Abandoned(Box::new(exchange));
                    return GiveUpOutcome::Dropped;
                }
                pipeline.behind[at].owner = ResponseOwner::Withdrawn;
                pipeline.withdraw(range);
                GiveUpOutcome::Unsent
            }
        }
    }

    /// The oldest call of a connection of whose request nothing is sent.
    pub(crate) fn first_unsent(&mut self, conn: ConnKey) -> Option<CallKey> {
        let conn = self.conns.get_mut(conn)?;
        let pipeline = conn.pipeline.as_mut()?;
        if let ConnState::Busy(_, call) = conn.state
            && !pipeline.is_begun(pipeline.front)
        {
            return Some(call);
        }
        let first = pipeline.behind.front()?.number;
        let ahead = pipeline.unsent_from.map(|from| from.wrapping_sub(first));
        let known = ahead.filter(|ahead| *ahead < 1 << 31).map_or(0, |ahead| {
            let before = |behind: &QueuedRequest| behind.number.wrapping_sub(first) < ahead;
            pipeline.behind.partition_point(before)
        });
        for at in known.max(pipeline.sent_whole)..pipeline.behind.len() {
            let behind = &pipeline.behind[at];
            if let ResponseOwner::Call(call) = behind.owner
                && !pipeline.is_begun(behind.range)
            {
                if pipeline.withdrawn > 0 {
                    pipeline.unsent_from = Some(behind.number);
                }
                return Some(call);
            }
        }
        None
    }

    /// Some deadline on that connection has passed: tells of those that have. From now on each of the others has its
    /// own timer, or looking for the next one would cost more the more there are.
    pub(in crate::reactor) fn check_deadlines(&mut self, key: ConnKey) {
        let Some(conn) = self.conns.get_mut(key) else {
            return;
        };
        let Some(pipeline) = &conn.pipeline else {
            return;
        };
        let front = match conn.state {
            ConnState::Busy(_, call) => Some(call),
            _ => None,
        };
        let behind = pipeline
            .behind
            .iter()
            .filter_map(|behind| match behind.owner {
                ResponseOwner::Call(call) => Some(call),
                ResponseOwner::Abandoned(_) | ResponseOwner::Withdrawn => None,
            });
        for call_key in front.into_iter().chain(behind) {
            let Some(call) = self.calls.get_mut(call_key) else {
                continue;
            };
            match call.deadline {
                Some(deadline) if deadline <= self.now => {
                    self.reactor_events.push_back(ReactorEvent::TimedOut {
                        conn: key,
                        call: call_key,
                        limit: TimeLimit::Total,
                    });
                }
                Some(deadline) => {
                    self.timers
                        .arm(TimerOwner::Call(call_key), &mut call.armed, deadline);
                }
                None => {}
            }
        }
        conn.wait.deadline = None;
        self.arm_conn(key);
    }

    /// The timer of a call on a connection has come up: its own, or that of its time in the queue.
    pub(in crate::reactor) fn check_deadline(&mut self, call_key: CallKey) {
        let Some(call) = self.calls.get_mut(call_key) else {
            return;
        };
        if let (CallState::OnConn(conn), Some(deadline)) = (call.state, call.deadline) {
            if deadline <= self.now {
                self.reactor_events.push_back(ReactorEvent::TimedOut {
                    conn,
                    call: call_key,
                    limit: TimeLimit::Total,
                });
            } else {
                self.timers
                    .arm(TimerOwner::Call(call_key), &mut call.armed, deadline);
            }
        }
    }

    // ---- the end

    /// The connection is gone: so are the places of those behind.
    pub(in crate::reactor) fn report_unanswered(
        &mut self,
        pipeline: Option<Box<Pipeline>>,
        remote: &Address,
    ) {
        let Some(mut pipeline) = pipeline else {
            return;
        };
        // The last one first: each goes before those that wait.
        for behind in std::mem::take(&mut pipeline.behind).into_iter().rev() {
            if let ResponseOwner::Call(call) = behind.owner {
                let begun = pipeline.is_begun(behind.range);
                let error = (begun && !pipeline.disowned).then(|| {
                    Error::new(PeerFault::Empty, Phase::FirstByte, Sent::NoReplyByte)
                        .with_remote(Some(remote.clone()))
                });
                let sent = if begun {
                    Sent::NoReplyByte
                } else {
                    Sent::Nothing
                };
                self.reactor_events
                    .push_back(ReactorEvent::Unanswered { call, sent, error });
            }
        }
    }
}

/// Tells the exchange in front how much of its request is sent; true if that is all.
fn note_front(exchange: &mut Exchange, pipeline: &Pipeline) -> bool {
    let whole = pipeline.front.end <= pipeline.written;
    let sent = pipeline.written.min(pipeline.front.end);
    exchange.set_sent(sent.saturating_sub(pipeline.front.start), whole);
    whole
}

/// A connection with so much to send takes no more requests. They are copied, so this is memory.
const MOST_GATHERED: usize = 1024 * 1024;
