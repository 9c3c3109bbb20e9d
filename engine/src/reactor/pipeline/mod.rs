//! Several calls on one connection (RFC 9112 §9.3.2): their requests go out together, and their answers come in order.
//!
//! The call in front, whose answer is next, is the one in the connection's state, as ever; those behind it wait in the
//! connection's pipe, and each comes to the front when the one before it has been answered. A call that gives up keeps
//! its place if its request is on the way, and its answer is read and dropped.

mod answers;
mod requests;
mod send;

use std::time::Duration;

pub(super) use requests::Pipe;
use requests::{Behind, Span, Whose};

use super::conn::State;
use super::{CallKey, ConnKey, Happened, Owner, Place, Reactor};
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
pub(crate) enum GivenUp {
    /// Its request will not be sent.
    Unsent,
    /// Its answer will be dropped.
    Dropped,
    /// It had none any more.
    Gone,
}

impl<N: Net> Reactor<N> {
    /// Begins with the first call on a connection; the rest of [`start`](Reactor::start) is done.
    #[inline(never)] // nor the other ways in here: the path of a connection with one call is short without them
    pub(in crate::reactor) fn start_pipe(&mut self, conn_key: ConnKey, call_key: CallKey) {
        let (Some(conn), Some(call)) = (self.conns.get_mut(conn_key), self.calls.get(call_key))
        else {
            return;
        };
        let pipe = conn.pipe.get_or_insert_default();
        pipe.front = pipe.push(&call.request);
        pipe.answered_now = 0;
        self.plan_flush(conn_key);
        self.arm_conn(conn_key);
    }

    /// Whether a connection can take another call: it is on its way with one, nothing says that it ends, and what it
    /// has to send is not too much already.
    pub(crate) fn takes_more(&self, conn: ConnKey) -> bool {
        self.conns.get(conn).is_some_and(|conn| {
            let (State::Busy(exchange, _) | State::Draining(exchange, ..)) = &conn.state else {
                return false;
            };
            let gathered = conn.pipe.as_ref().map_or(0, |pipe| pipe.unsent());
            !exchange.will_close() && !conn.closed && gathered < MOST_GATHERED
        })
    }

    /// Gives a connection that [takes it](Self::takes_more) another call.
    pub(crate) fn ride(&mut self, conn_key: ConnKey, call_key: CallKey) {
        let (Some(conn), Some(call)) = (self.conns.get_mut(conn_key), self.calls.get_mut(call_key))
        else {
            return;
        };
        let Some(pipe) = &mut conn.pipe else {
            return;
        };
        call.place = Place::OnConn(conn_key);
        call.attempts += 1;
        let served = pipe.answered > 0;
        call.marks.begin_attempt(self.now, served, &conn.ends);
        call.marks.opened = None;
        let span = pipe.push(&call.request);
        call.number = pipe.next_number;
        pipe.next_number = pipe.next_number.wrapping_add(1);
        pipe.behind.push_back(Behind {
            whose: Whose::Call(call_key),
            number: call.number,
            span,
        });
        // It may be that of a call which is gone: only the timer tells when somebody looks.
        conn.deadline = conn.deadline.into_iter().chain(call.deadline).min();
        let in_time = call.deadline.is_none_or(|own| conn.armed.is_by(own));
        self.plan_flush(conn_key);
        if !in_time {
            self.arm_conn(conn_key);
        }
    }

    // ---- giving up

    /// The error of a call on a connection with others, ended for that cause where it is.
    pub(crate) fn pipe_error(
        &self,
        conn: ConnKey,
        call: CallKey,
        kind: ErrorKind,
    ) -> Option<Error> {
        let conn = self.conns.get(conn)?;
        let pipe = conn.pipe.as_ref()?;
        let error = match &conn.state {
            State::Busy(exchange, front) if *front == call => {
                Error::new(kind, exchange.phase(), exchange.sent())
            }
            _ => {
                let number = self.calls.get(call)?.number;
                let mine = pipe.position(call, number)?;
                match pipe.is_begun(pipe.behind[mine].span) {
                    true => Error::new(kind, Phase::FirstByte, Sent::NoReplyByte),
                    false => Error::new(kind, Phase::Send, Sent::Nothing),
                }
            }
        };
        Some(error.with_remote(Some(conn.ends.remote.clone())))
    }

    /// Takes a call off a connection that others are on.
    pub(crate) fn give_up(&mut self, conn_key: ConnKey, call_key: CallKey) -> GivenUp {
        let (Some(conn), Some(call)) = (self.conns.get_mut(conn_key), self.calls.get(call_key))
        else {
            return GivenUp::Gone;
        };
        let Some(pipe) = &mut conn.pipe else {
            return GivenUp::Gone;
        };
        match conn.state {
            State::Busy(_, front) if front == call_key => {
                if pipe.is_begun(pipe.front) {
                    let until = later(self.now, self.settings.drain());
                    self.drop_answer(conn_key, until);
                    return GivenUp::Dropped;
                }
                let nothing = Span {
                    start: pipe.written,
                    end: pipe.written,
                };
                let span = std::mem::replace(&mut pipe.front, nothing);
                pipe.withdraw(span);
                while let Some(Whose::Withdrawn) = pipe.behind.front().map(|behind| &behind.whose) {
                    pipe.behind.pop_front();
                }
                conn.state = State::Settled;
                if pipe.behind.is_empty() {
                    // It counts as answered: the connection is free.
                    self.happened.push_back(Happened::Finished {
                        conn: conn_key,
                        call: None,
                        reuse: Reuse::Keep,
                        keep_alive: None,
                    });
                } else {
                    conn.advance(&mut self.calls, &mut self.spare, self.now, &self.settings);
                    self.arm_conn(conn_key);
                }
                GivenUp::Unsent
            }
            _ => {
                let Some(at) = pipe.position(call_key, call.number) else {
                    return GivenUp::Gone;
                };
                let span = pipe.behind[at].span;
                if pipe.is_begun(span) {
                    let exchange = Exchange::new(&call.request, BodyMode::Discard);
                    pipe.behind[at].whose = Whose::Nobodys(Box::new(exchange));
                    return GivenUp::Dropped;
                }
                pipe.behind[at].whose = Whose::Withdrawn;
                pipe.withdraw(span);
                GivenUp::Unsent
            }
        }
    }

    /// The oldest call of a connection of whose request nothing is sent.
    pub(crate) fn first_unsent(&mut self, conn: ConnKey) -> Option<CallKey> {
        let conn = self.conns.get_mut(conn)?;
        let pipe = conn.pipe.as_mut()?;
        if let State::Busy(_, call) = conn.state
            && !pipe.is_begun(pipe.front)
        {
            return Some(call);
        }
        let first = pipe.behind.front()?.number;
        let ahead = pipe.unsent_from.map(|from| from.wrapping_sub(first));
        let known = ahead.filter(|ahead| *ahead < 1 << 31).map_or(0, |ahead| {
            let before = |behind: &Behind| behind.number.wrapping_sub(first) < ahead;
            pipe.behind.partition_point(before)
        });
        for at in known.max(pipe.sent_whole)..pipe.behind.len() {
            let behind = &pipe.behind[at];
            if let Whose::Call(call) = behind.whose
                && !pipe.is_begun(behind.span)
            {
                if pipe.withdrawn > 0 {
                    pipe.unsent_from = Some(behind.number);
                }
                return Some(call);
            }
        }
        None
    }

    /// Some deadline on that connection has passed: tells of those that have. From now on each of the others has its own
    /// timer, or looking for the next one would cost more the more there are.
    pub(in crate::reactor) fn check_deadlines(&mut self, key: ConnKey) {
        let Some(conn) = self.conns.get_mut(key) else {
            return;
        };
        let Some(pipe) = &conn.pipe else {
            return;
        };
        let front = match conn.state {
            State::Busy(_, call) => Some(call),
            _ => None,
        };
        let behind = pipe.behind.iter().filter_map(|behind| match behind.whose {
            Whose::Call(call) => Some(call),
            Whose::Nobodys(_) | Whose::Withdrawn => None,
        });
        for call_key in front.into_iter().chain(behind) {
            let Some(call) = self.calls.get_mut(call_key) else {
                continue;
            };
            match call.deadline {
                Some(deadline) if deadline <= self.now => {
                    self.happened.push_back(Happened::Late {
                        conn: key,
                        call: call_key,
                        limit: TimeLimit::Total,
                    });
                }
                Some(deadline) => {
                    self.timers
                        .arm(Owner::Call(call_key), &mut call.armed, deadline);
                }
                None => {}
            }
        }
        conn.deadline = None;
        self.arm_conn(key);
    }

    /// The timer of a call on a connection has come up: its own, or that of its time in the queue.
    pub(in crate::reactor) fn check_deadline(&mut self, call_key: CallKey) {
        let Some(call) = self.calls.get_mut(call_key) else {
            return;
        };
        if let (Place::OnConn(conn), Some(deadline)) = (call.place, call.deadline) {
            if deadline <= self.now {
                self.happened.push_back(Happened::Late {
                    conn,
                    call: call_key,
                    limit: TimeLimit::Total,
                });
            } else {
                self.timers
                    .arm(Owner::Call(call_key), &mut call.armed, deadline);
            }
        }
    }

    // ---- the end

    /// The connection is gone: so are the places of those behind.
    pub(in crate::reactor) fn disband(&mut self, pipe: Option<Box<Pipe>>, remote: &Address) {
        let Some(mut pipe) = pipe else {
            return;
        };
        // The last one first: each goes before those that wait.
        for behind in std::mem::take(&mut pipe.behind).into_iter().rev() {
            if let Whose::Call(call) = behind.whose {
                let begun = pipe.is_begun(behind.span);
                let error = (begun && !pipe.disowned).then(|| {
                    Error::new(PeerFault::Empty, Phase::FirstByte, Sent::NoReplyByte)
                        .with_remote(Some(remote.clone()))
                });
                let sent = if begun {
                    Sent::NoReplyByte
                } else {
                    Sent::Nothing
                };
                self.happened
                    .push_back(Happened::Unanswered { call, sent, error });
            }
        }
    }
}

/// Tells the exchange in front how much of its request is sent; true if that is all.
fn note_front(exchange: &mut Exchange, pipe: &Pipe) -> bool {
    let whole = pipe.front.end <= pipe.written;
    let sent = pipe.written.min(pipe.front.end);
    exchange.set_sent(sent.saturating_sub(pipe.front.start), whole);
    whole
}

/// A connection with so much to send takes no more requests. They are copied, so this is memory.
const MOST_GATHERED: usize = 1024 * 1024;
