//! Several calls on one connection (RFC 9112 §9.3.2): their requests go out together, and their answers come in order.
//!
//! The call in front is the one whose answer is next. The state of the connection has this call, as without pipelining.
//! The other calls wait in the pipeline of the connection. When the call in front is answered, the next call comes to
//! the front. If a call gives up after a part of its request was sent, or encrypted, its answer is read and dropped.

mod answers;
mod requests;
mod send;

use std::time::Duration;

pub(super) use requests::Pipeline;
use requests::{ByteRange, QueuedRequest, ResponseOwner};

use super::conn::{Conn, ConnState};
use super::{CallKey, CallState, Common, ConnKey, PoolSlot, Reactor, ReactorEvent, TimerOwner};
use crate::error::{Error, ErrorKind, PeerFault, Phase, Sent, TimeLimit};
use crate::net::{Address, Net};
use crate::policy::{Pipelined, later};
use crate::proto::{BodyMode, CloseReason, Exchange, Request, Reuse};

/// How the requests of a pipelining client go out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batching {
    /// How long a request waits for others that could go out with it.
    pub(crate) max_delay: Duration,
    /// How long the connection waits for an abandoned answer that is next.
    pub(crate) drain: Duration,
    pub(crate) methods: Pipelined,
}

impl Batching {
    /// Whether a request must not share its connection with other unanswered requests.
    #[inline]
    fn goes_alone(&self, request: &Request) -> bool {
        self.methods == Pipelined::Idempotent && !request.was_encoded_idempotent()
    }
}

/// What happens to the request of a call that was taken off a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum GiveUpOutcome {
    /// The request will not be sent.
    Unsent,
    /// The request was sent, at least in part. Its answer will be dropped.
    Dropped,
    /// The connection did not have the call any more.
    Gone,
}

impl<N: Net, C> Reactor<N, C> {
    /// Whether a connection takes another call.
    pub(crate) fn takes_more(&self, conn: ConnKey) -> bool {
        self.conns.get(conn).is_some_and(Conn::takes_more)
    }

    /// Gives another call to a connection. Returns the slot of the connection, and whether the request asks for the end of
    /// the connection; `None` if the connection takes no more.
    #[inline(always)] // on the path of every call
    pub(crate) fn join(
        &mut self,
        conn_key: ConnKey,
        call_key: CallKey,
    ) -> Option<(PoolSlot, bool)> {
        let conn = self.conns.get_mut(conn_key)?;
        let call = self.common.calls.get_mut(call_key)?;
        let batching = self.common.settings.batching.as_ref()?;
        if !conn.takes_more() {
            return None;
        }
        let pipeline = conn.pipeline.as_mut()?;
        call.state = CallState::OnConn(conn_key);
        let served = pipeline.answered > 0;
        call.timestamps
            .begin_attempt(self.common.now, served, &conn.endpoints);
        call.timestamps.set_opened(None);
        let range = pipeline.push(&call.request, batching.goes_alone(&call.request));
        call.number = pipeline.next_number;
        pipeline.next_number = pipeline.next_number.wrapping_add(1);
        pipeline.queued.push_back(QueuedRequest {
            owner: ResponseOwner::Call(call_key),
            number: call.number,
            range,
            sent_at: None,
        });
        if pipeline.gathers(self.common.now, batching.max_delay) {
            self.common.pipelining.unflushed.push(conn_key);
        }
        let joined = (conn.slot, call.request.says_close());
        // The earlier deadline may be that of a call that has ended. When the timer of the connection fires, the
        // deadlines of all calls are checked.
        if let Some(own) = call.deadline {
            if conn.wait.deadline.is_none_or(|earlier| own < earlier) {
                conn.wait.deadline = Some(own);
            }
            if !conn.armed.is_by(own) {
                conn.arm(&mut self.common);
            }
        }
        Some(joined)
    }

    // ---- giving up

    /// The error of a call on a connection, if the call ends now for that cause, with the phase that the call has
    /// reached.
    pub(crate) fn error_on(&self, conn: ConnKey, call: CallKey, kind: ErrorKind) -> Option<Error> {
        let conn = self.conns.get(conn)?;
        let pipeline = conn.pipeline.as_ref();
        let (phase, sent, range) = match conn.serves(call) {
            true => {
                let range = pipeline.map(|pipeline| pipeline.front);
                (conn.exchange.phase(), conn.exchange.sent(), range)
            }
            false => {
                let pipeline = pipeline?;
                let at = pipeline.position(call, self.common.calls.get(call)?.number)?;
                let range = pipeline.queued[at].range;
                let phase = match pipeline.is_begun(range) {
                    true => Phase::FirstByte,
                    false => Phase::Send,
                };
                (phase, Sent::Nothing, Some(range))
            }
        };
        // What is encrypted already goes out although the call leaves.
        let goes_out = pipeline
            .zip(range)
            .is_some_and(|(pipeline, range)| pipeline.is_committed(range));
        let sent = match goes_out {
            true => sent.max(Sent::NoReplyByte),
            false => sent,
        };
        Some(conn.error(kind, phase, sent))
    }

    /// Takes a call off a pipelined connection.
    pub(crate) fn give_up(&mut self, conn_key: ConnKey, call_key: CallKey) -> GiveUpOutcome {
        let (Some(conn), Some(call)) = (
            self.conns.get_mut(conn_key),
            self.common.calls.get_mut(call_key),
        ) else {
            return GiveUpOutcome::Gone;
        };
        let Some(pipeline) = &mut conn.pipeline else {
            return GiveUpOutcome::Gone;
        };
        match conn.state {
            ConnState::Busy(front) if front == call_key => {
                // An answer may have come to a new connection before the request.
                let reuse = match conn.exchange.will_close() {
                    true => Reuse::Close(CloseReason::EarlyResponse),
                    false => Reuse::Keep,
                };
                if pipeline.is_committed(pipeline.front) {
                    let until = later(self.common.now, self.common.settings.drain());
                    conn.drop_answer(&mut self.common, until);
                    return GiveUpOutcome::Dropped;
                }
                let nothing = ByteRange {
                    start: pipeline.written,
                    end: pipeline.written,
                    alone: false,
                };
                let range = std::mem::replace(&mut pipeline.front, nothing);
                pipeline.withdraw(range);
                while let Some(ResponseOwner::Withdrawn) =
                    pipeline.queued.front().map(|queued| &queued.owner)
                {
                    pipeline.queued.pop_front();
                }
                conn.state = ConnState::AwaitingDecision;
                if pipeline.queued.is_empty() {
                    // No call is left: the connection is free, as after an answer.
                    self.common.events.push_back(ReactorEvent::Finished {
                        conn: conn_key,
                        call: None,
                        reuse,
                        keep_alive: None,
                    });
                } else {
                    conn.advance(&mut self.common);
                    conn.flush_if_free(&mut self.common, range);
                    conn.arm(&mut self.common);
                }
                GiveUpOutcome::Unsent
            }
            _ => {
                let Some(at) = pipeline.position(call_key, call.number) else {
                    return GiveUpOutcome::Gone;
                };
                let range = pipeline.queued[at].range;
                if pipeline.is_committed(range) {
                    let sent_at = pipeline.queued[at].sent_at;
                    range.note_sent(&mut call.timestamps, sent_at);
                    let mut exchange = self.common.settings.exchange();
                    exchange.begin(&call.request, BodyMode::Discard);
                    pipeline.queued[at].owner = ResponseOwner::Abandoned(Box::new(exchange));
                    return GiveUpOutcome::Dropped;
                }
                pipeline.queued[at].owner = ResponseOwner::Withdrawn;
                pipeline.withdraw(range);
                conn.flush_if_free(&mut self.common, range);
                GiveUpOutcome::Unsent
            }
        }
    }

    /// The oldest call on a connection whose request can be withdrawn.
    pub(crate) fn first_unsent(&mut self, conn: ConnKey) -> Option<CallKey> {
        let conn = self.conns.get_mut(conn)?;
        let pipeline = conn.pipeline.as_mut()?;
        if let ConnState::Busy(call) = conn.state
            && !pipeline.is_committed(pipeline.front)
        {
            return Some(call);
        }
        let first = pipeline.queued.front()?.number;
        let ahead = pipeline.unsent_from.map(|from| from.wrapping_sub(first));
        let known = ahead.filter(|ahead| *ahead < 1 << 31).map_or(0, |ahead| {
            let before = |queued: &QueuedRequest| queued.number.wrapping_sub(first) < ahead;
            pipeline.queued.partition_point(before)
        });
        for at in known.max(pipeline.sent_whole)..pipeline.queued.len() {
            let queued = &pipeline.queued[at];
            if let ResponseOwner::Call(call) = queued.owner
                && !pipeline.is_committed(queued.range)
            {
                if pipeline.withdrawn > 0 {
                    pipeline.unsent_from = Some(queued.number);
                }
                return Some(call);
            }
        }
        None
    }
}

impl<N: Net, C> Common<N, C> {
    /// Checks the deadline of a call on a connection, after the timer of the call has fired. The timer may be one that
    /// was set while the call waited in the queue.
    pub(in crate::reactor) fn check_deadline(&mut self, call_key: CallKey) {
        let Some(call) = self.calls.get_mut(call_key) else {
            return;
        };
        if let (CallState::OnConn(conn), Some(deadline)) = (call.state, call.deadline) {
            if deadline <= self.now {
                self.events.push_back(ReactorEvent::TimedOut {
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

    /// Reports the calls that were behind the front when their connection ended.
    pub(in crate::reactor) fn report_unanswered(
        &mut self,
        pipeline: Option<Box<Pipeline>>,
        remote: &Address,
    ) {
        let Some(mut pipeline) = pipeline else {
            return;
        };
        // In reverse: the client puts each of these calls before all calls that wait.
        for queued in std::mem::take(&mut pipeline.queued).into_iter().rev() {
            if let ResponseOwner::Call(key) = queued.owner
                && let Some(call) = self.calls.get_mut(key)
            {
                queued.range.note_sent(&mut call.timestamps, queued.sent_at);
                let begun = pipeline.is_begun(queued.range);
                // A server that says close must process no further request, but this one may have (RFC 9112 §9.6).
                let moves_on = pipeline.closed_by_answer && call.request.is_idempotent();
                let error = (begun && !moves_on).then(|| {
                    Error::new(PeerFault::Empty, Phase::FirstByte, Sent::NoReplyByte)
                        .with_remote(Some(remote.clone()))
                });
                let sent = match begun {
                    true => Sent::NoReplyByte,
                    false => Sent::Nothing,
                };
                self.events.push_back(ReactorEvent::Unanswered {
                    call: key,
                    sent,
                    error,
                });
            }
        }
    }
}

impl<N: Net> Conn<N> {
    /// Begins a pipeline with its first call. [`start`](super::Reactor::start) has done the rest.
    #[inline(never)] // like all that the reactor calls here: the path of a connection with one call stays short
    pub(in crate::reactor) fn start_pipeline<C>(
        &mut self,
        common: &mut Common<N, C>,
        call: CallKey,
    ) {
        let (Some(call), Some(batching)) = (common.calls.get(call), &common.settings.batching)
        else {
            return;
        };
        let pipeline = self.pipeline.get_or_insert_default();
        let front = pipeline.push(&call.request, batching.goes_alone(&call.request));
        pipeline.set_front(front);
        pipeline.was_front_behind = false;
        pipeline.answered_before = pipeline.answered;
        if pipeline.gathers(common.now, batching.max_delay) {
            common.pipelining.unflushed.push(self.key);
        }
        self.arm(common);
    }

    /// Checks the deadlines of all calls on a connection, after one of them has passed. From now on each other call has
    /// a timer of its own: a search for the next deadline would cost more with each call.
    pub(in crate::reactor) fn check_deadlines<C>(&mut self, common: &mut Common<N, C>) {
        let front = match self.state {
            ConnState::Busy(call) => Some(call),
            _ => None,
        };
        let queued = self.pipeline.iter().flat_map(|pipeline| &pipeline.queued);
        let queued = queued.filter_map(|queued| match queued.owner {
            ResponseOwner::Call(call) => Some(call),
            ResponseOwner::Abandoned(_) | ResponseOwner::Withdrawn => None,
        });
        let calls: Vec<CallKey> = front.into_iter().chain(queued).collect();
        for call in calls {
            common.check_deadline(call);
        }
        self.wait.deadline = None;
        self.arm(common);
    }

    /// Whether the connection can take another call: it serves a call, nothing says that it ends, and not too many bytes
    /// wait to be sent.
    #[inline]
    fn takes_more(&self) -> bool {
        let gathered = self
            .pipeline
            .as_ref()
            .map_or(0, |pipeline| pipeline.unsent());
        matches!(self.state, ConnState::Busy(_) | ConnState::Draining(..))
            && !self.exchange.will_close()
            && !self.closed
            && gathered < MOST_GATHERED
    }
}

/// Notes in the exchange in front how much of its request was sent. True if the whole request was sent.
#[inline(always)] // on the path of every call
fn note_front(exchange: &mut Exchange, pipeline: &Pipeline) -> bool {
    let whole = pipeline.front.end <= pipeline.written;
    let sent = pipeline.written.min(pipeline.front.end);
    exchange.set_sent(sent.saturating_sub(pipeline.front.start), whole);
    whole
}

/// A connection with so many bytes to send takes no more requests. The requests are copied, so this limits memory.
const MOST_GATHERED: usize = 1024 * 1024;
