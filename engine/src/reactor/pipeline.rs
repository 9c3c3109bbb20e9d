//! Several calls on one connection (RFC 9112 §9.3.2): their requests go out together, and their answers come in order.
//!
//! The call in front, whose answer is next, is the one in the connection's state, as ever; those behind it wait in the
//! connection's pipe, and each comes to the front when the one before it has been answered. A call that gives up keeps
//! its place if its request is on the way, and its answer is read and dropped.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::time::Duration;

use super::read::{Progress, taken};
use super::send::WRITES_PER_TURN;
use super::{
    ActiveCall, CallKey, Conn, ConnKey, Happened, Owner, Place, Reactor, Settings, Slab, State, of,
};
use crate::error::{Error, ErrorKind, PeerFault, Phase, Sent, TimeLimit};
use crate::net::{Address, Net};
use crate::policy::later;
use crate::proto::{BodyMode, CloseReason, Exchange, Request, Response, Reuse, Version};
use crate::time::Time;

/// How the requests of a pipelining client go out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batching {
    /// How long a request waits for others that could go out with it.
    pub(crate) max_delay: Duration,
    /// How long an answer that nobody waits for any more is awaited once it is next.
    pub(crate) drain: Duration,
}

/// The requests of a connection that are not answered.
#[derive(Debug, Default)]
pub(super) struct Pipe {
    /// Encoded requests, sent up to `out_at`.
    out: Vec<u8>,
    out_at: usize,
    /// Bytes sent since the connection began.
    written: u64,
    /// The request in front.
    front: Span,
    behind: VecDeque<Behind>,
    /// How many of those behind have been sent whole.
    sent_whole: usize,
    /// Unsent bytes of requests that will not be sent.
    withdrawn: usize,
    /// No call behind that is unsent has a lower number, if some are withdrawn.
    unsent_from: Option<u32>,
    /// Of the next call behind others. Only numbers on the connection at the same time are compared, so it may wrap.
    next_number: u32,
    /// Answers so far, and those since the connection was idle last.
    answered: u64,
    answered_now: u64,
    /// The socket did not take all of what it was last given: the event that it takes more is not to be missed.
    short: bool,
    /// The last answer said that the requests behind it are not looked at.
    disowned: bool,
    /// It is in `Reactor::unflushed`, for not longer than until then.
    flush_at: Option<Time>,
}

/// Where a request is among the bytes of its connection.
#[derive(Clone, Copy, Debug, Default)]
struct Span {
    start: u64,
    end: u64,
}

#[derive(Debug)]
struct Behind {
    whose: Whose,
    /// Higher than those before it.
    number: u32,
    span: Span,
}

#[derive(Debug)]
enum Whose {
    Call(CallKey),
    /// The call has given up; its answer is read by this.
    Nobodys(Box<Exchange>),
    /// The call has given up before anything was sent. Not there when something is sent or read.
    Withdrawn,
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

impl Pipe {
    fn push(&mut self, request: &Request) -> Span {
        if self.out_at > self.out.len() / 2 {
            // Else what was sent would pile up while the socket never takes all.
            self.out.drain(..self.out_at);
            self.out_at = 0;
        }
        let start = self.written + (self.out.len() - self.out_at) as u64;
        for part in request.in_memory() {
            self.out.extend_from_slice(part);
        }
        let end = self.written + (self.out.len() - self.out_at) as u64;
        Span { start, end }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.behind.is_empty()
    }

    fn has_unsent(&self) -> bool {
        self.unsent() > 0
    }

    fn unsent(&self) -> usize {
        self.out.len() - self.out_at - self.withdrawn
    }

    pub(super) fn has_served(&self) -> bool {
        self.answered > 0
    }

    /// Whether it has more to send than the socket took.
    pub(super) fn is_stuck(&self) -> bool {
        self.has_unsent() && (self.short || self.flush_at.is_none())
    }

    /// Whether nothing has been sent of the request in front.
    pub(super) fn is_front_unsent(&self) -> bool {
        !self.is_begun(self.front)
    }

    fn is_begun(&self, span: Span) -> bool {
        span.start < self.written
    }

    /// The place of a call behind others.
    fn position(&self, call: CallKey, number: u32) -> Option<usize> {
        let first = self.behind.front()?.number;
        let before = |other: &Behind| other.number.wrapping_sub(first) < number.wrapping_sub(first);
        let at = self.behind.partition_point(before);
        self.behind.get(at)?.is_of(call).then_some(at)
    }

    /// A request of which nothing has been sent, and which has no place any more, will not be sent. Its bytes go when they
    /// must, or are more than the others': so those that end together cost no more than one by one.
    fn withdraw(&mut self, span: Span) {
        self.withdrawn += (span.end - span.start) as usize;
        if self.withdrawn > self.unsent() {
            self.tidy();
        }
    }

    /// Forgets what was withdrawn.
    fn tidy(&mut self) {
        if self.withdrawn == 0 {
            return;
        }
        let (out_at, written) = (self.out_at, self.written);
        let mut end = out_at;
        let mut close_up = |span: &mut Span| {
            let from = span.start.max(written);
            let at = out_at + (from - written) as usize;
            let length = span.end.saturating_sub(from) as usize;
            self.out.copy_within(at..at + length, end);
            let gap = if length > 0 { at - end } else { 0 };
            // What has been sent has no gap before it.
            span.start -= gap as u64;
            span.end -= gap as u64;
            end += length;
        };
        close_up(&mut self.front);
        let sent = self.sent_whole.min(self.behind.len());
        let mut kept = sent;
        for at in sent..self.behind.len() {
            if matches!(self.behind[at].whose, Whose::Withdrawn) {
                continue;
            }
            close_up(&mut self.behind[at].span);
            self.behind.swap(kept, at);
            kept += 1;
        }
        self.behind.truncate(kept);
        self.out.truncate(end);
        self.withdrawn = 0;
        self.unsent_from = None;
    }

    /// Whether its end is the fault of a server that cannot have several requests at a time.
    pub(super) fn is_broken_by(&self, kind: &ErrorKind) -> bool {
        let sent = self.behind.front().is_some_and(|b| self.is_begun(b.span));
        // What was idle may have died of old age.
        let stale = self.answered > 0 && self.answered_now == 0;
        let early = sent && self.answered <= 1 && !stale;
        match kind {
            ErrorKind::Peer(PeerFault::Unsolicited) => true,
            ErrorKind::Peer(PeerFault::Empty | PeerFault::Truncated) | ErrorKind::Io(_) => early,
            ErrorKind::Peer(PeerFault::BadContentCoding) => false,
            ErrorKind::Peer(_) => sent,
            _ => false,
        }
    }
}

impl<N: Net> Reactor<N> {
    /// Begins with the first call on a connection; the rest of [`start`](Reactor::start) is done.
    #[inline(never)] // nor the other ways in here: the path of a connection with one call is short without them
    pub(super) fn start_pipe(&mut self, conn_key: ConnKey, call_key: CallKey) {
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

    // ---- sending

    fn plan_flush(&mut self, key: ConnKey) {
        let Some(batching) = self.settings.batching else {
            return;
        };
        if let Some(pipe) = self.conns.get_mut(key).and_then(|conn| conn.pipe.as_mut())
            && pipe.flush_at.is_none()
        {
            pipe.flush_at = Some(later(self.now, batching.max_delay));
            self.unflushed.push(key);
        }
    }

    /// Sends what has gathered, where it has waited for long enough.
    pub(crate) fn flush(&mut self) {
        if self.unflushed.is_empty() {
            return;
        }
        let mut keys = std::mem::take(&mut self.unflushed);
        keys.retain(|&key| {
            let Some(pipe) = self.conns.get_mut(key).and_then(|conn| conn.pipe.as_mut()) else {
                return false;
            };
            let in_time = pipe.flush_at.is_some_and(|at| at > self.now);
            if in_time && pipe.unsent() < WORTH_SENDING && !pipe.short {
                return true;
            }
            pipe.flush_at = None;
            self.send_pipe(key);
            false
        });
        keys.append(&mut self.unflushed);
        self.unflushed = keys;
    }

    /// When the next gathered requests must go out.
    pub(super) fn flush_due(&self) -> Option<Time> {
        let due = self.unflushed.iter();
        due.filter_map(|key| self.conns.get(*key)?.pipe.as_ref()?.flush_at)
            .min()
    }

    #[inline(never)]
    pub(super) fn send_pipe(&mut self, key: ConnKey) {
        for _ in 0..WRITES_PER_TURN {
            let Some(conn) = self.conns.get_mut(key) else {
                return;
            };
            let Some(pipe) = conn.pipe.as_mut().filter(|pipe| pipe.has_unsent()) else {
                return;
            };
            pipe.tidy();
            if let State::Busy(exchange, _) | State::Draining(exchange, ..) = &conn.state
                && exchange.has_head()
                && exchange.will_close()
                && !exchange.is_sending()
            {
                return; // nothing behind this answer will be looked at (RFC 9112 §9.6)
            }
            let rest = &pipe.out[pipe.out_at..];
            let length = rest.len();
            let slices = [IoSlice::new(rest)];
            match conn.stream.write(&mut self.net, &mut self.buffer, &slices) {
                Ok(n) => {
                    pipe.out_at += n;
                    pipe.written += n as u64;
                    pipe.short = n < length;
                    if n == length {
                        pipe.out.clear();
                        pipe.out_at = 0;
                    }
                    self.note_sent(key);
                    if n < length {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    pipe.short = true;
                    return;
                }
                Err(error) => {
                    // Answers may be there already.
                    conn.write_error = Some(error);
                    return self.drive_read(key);
                }
            }
        }
        if let Some(conn) = self.conns.get_mut(key)
            && !std::mem::replace(&mut conn.unsent, true)
        {
            self.unsent.push(key);
        }
    }

    fn note_sent(&mut self, key: ConnKey) {
        let Some(conn) = self.conns.get_mut(key) else {
            return;
        };
        let Some(pipe) = &mut conn.pipe else {
            return;
        };
        match &mut conn.state {
            State::Busy(exchange, call) if exchange.is_sending() => {
                conn.since = self.now;
                let whole = note_front(exchange, pipe);
                if whole && let Some(call) = self.calls.get_mut(*call) {
                    call.marks.sent = Some(self.now);
                    call.marks.bytes_out += pipe.front.end - pipe.front.start;
                }
            }
            State::Draining(exchange, ..) if exchange.is_sending() => {
                note_front(exchange, pipe);
            }
            _ => {}
        }
        while let Some(behind) = pipe.behind.get(pipe.sent_whole)
            && behind.span.end <= pipe.written
        {
            if let Whose::Call(call) = behind.whose
                && let Some(call) = self.calls.get_mut(call)
            {
                call.marks.sent = Some(self.now);
                call.marks.bytes_out += behind.span.end - behind.span.start;
            }
            pipe.sent_whole += 1;
        }
        // Now it waits for an answer, perhaps for less time than for room to send.
        self.arm_conn(key);
    }

    // ---- answers

    /// Reads once, and hands out all answers that came.
    #[inline(never)]
    pub(super) fn read_pipe(&mut self, key: ConnKey) -> Result<Progress, ErrorKind> {
        let Some(mut conn) = self.conns.get_mut(key) else {
            return Ok(Progress::Stop);
        };
        let read = conn.stream.read(&mut self.net, &mut self.buffer);
        let (exchange, pipe) = match (&mut conn.state, &mut conn.pipe) {
            (State::Busy(exchange, _) | State::Draining(exchange, ..), Some(pipe)) => {
                (exchange, pipe)
            }
            _ => return Ok(Progress::Stop),
        };
        let Some(n) = taken(read, exchange, &mut conn.write_error)? else {
            return Ok(Progress::Drained);
        };
        if n > 0 && !pipe.is_begun(pipe.front) {
            return Err(PeerFault::Unsolicited.into());
        }
        pipe.tidy();
        let left_nothing = conn.stream.is_drained(&self.net, n, self.buffer.len());
        let progress = match left_nothing && !conn.closed {
            true => Progress::Drained,
            false => Progress::More,
        };
        conn.since = self.now;
        let mut at = 0;
        loop {
            let mut limits = &self.settings.limits;
            let (exchange, response, call) = match &mut conn.state {
                State::Busy(exchange, call_key) => match self.calls.get_mut(*call_key) {
                    Some(call) => {
                        let own = call.overrides.as_deref();
                        limits = own.and_then(|own| own.limits.as_ref()).unwrap_or(limits);
                        if at < n {
                            call.marks.first_byte.get_or_insert(self.now);
                        }
                        let whose = (*call_key, &mut call.marks);
                        (exchange, &mut call.response, Some(whose))
                    }
                    None => return Ok(Progress::Stop),
                },
                State::Draining(exchange, response, _) => (exchange, response, None),
                _ => return Ok(Progress::Stop),
            };
            let used = exchange.handle_own(&self.buffer[at..n], response, limits)?;
            at += used;
            let call = call.map(|(call, marks)| {
                marks.bytes_in += used as u64;
                call
            });
            let Some(reuse) = exchange.done() else {
                return Ok(progress);
            };
            let Some(pipe) = conn.pipe.as_mut().filter(|pipe| !pipe.is_empty()) else {
                self.finish_pipe(key, reuse, at < n, left_nothing);
                return Ok(Progress::Stop);
            };
            if reuse != Reuse::Keep {
                self.finish_pipe(key, reuse, at < n, left_nothing);
                return Ok(Progress::Stop);
            }
            if call.is_some() && response.version() == Version::Http10 {
                self.happened.push_back(Happened::PipeBroken);
            }
            pipe.answered += 1;
            pipe.answered_now += 1;
            let late = conn.advance(&mut self.calls, &mut self.spare, self.now, &self.settings);
            self.happened.push_back(Happened::Answered {
                at: conn.at,
                conn: key,
                call,
            });
            let front_unsent = conn
                .pipe
                .as_ref()
                .is_some_and(|pipe| pipe.is_front_unsent());
            if let Some(response) = late {
                self.put_spare(response);
            }
            if at == n {
                return Ok(progress);
            }
            if front_unsent {
                return Err(PeerFault::Unsolicited.into());
            }
            let Some(same) = self.conns.get_mut(key) else {
                return Ok(Progress::Stop);
            };
            conn = same;
        }
    }

    /// The last answer is there, or one after which there will be no more.
    fn finish_pipe(&mut self, key: ConnKey, reuse: Reuse, surplus: bool, left_nothing: bool) {
        let Some(conn) = self.conns.get_mut(key) else {
            return;
        };
        let Some(pipe) = &mut conn.pipe else {
            return;
        };
        let reuse = match reuse {
            Reuse::Keep if surplus => Reuse::Close(CloseReason::Surplus),
            // The last read was filled: only another one can tell.
            Reuse::Keep if !left_nothing => {
                self.net.set_free(true);
                let read = conn.stream.read(&mut self.net, &mut self.buffer);
                self.net.set_free(false);
                match read {
                    Ok(1..) => Reuse::Close(CloseReason::Surplus),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => Reuse::Keep,
                    Ok(0) | Err(_) => Reuse::Close(CloseReason::PeerClosed),
                }
            }
            Reuse::Keep if conn.closed => Reuse::Close(CloseReason::PeerClosed),
            reuse => reuse,
        };
        let version = match &conn.state {
            State::Busy(_, call) => self.calls.get(*call).map(|call| call.response.version()),
            State::Draining(_, response, _) => Some(response.version()),
            _ => None,
        };
        pipe.answered += 1;
        pipe.answered_now += 1;
        let sent_behind = pipe.behind.front().is_some_and(|b| pipe.is_begun(b.span));
        let broken = match reuse {
            Reuse::Close(CloseReason::Surplus) => pipe.answered > 1,
            Reuse::Close(CloseReason::RequestSaidClose) => false,
            // HTTP/1.0 promises nothing about what is behind.
            Reuse::Close(_) if version == Some(Version::Http10) => sent_behind,
            Reuse::Close(CloseReason::ResponseSaidClose) => {
                pipe.disowned = true;
                sent_behind && pipe.answered == 1
            }
            Reuse::Close(_) => sent_behind && pipe.answered == 1,
            Reuse::Keep => {
                pipe.out.shrink_to(MOST_KEPT);
                false
            }
        };
        if broken {
            self.happened.push_back(Happened::PipeBroken);
        }
        self.finish(key, true, reuse);
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
    pub(super) fn check_deadlines(&mut self, key: ConnKey) {
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
    pub(super) fn check_deadline(&mut self, call_key: CallKey) {
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
    pub(super) fn disband(&mut self, pipe: Option<Box<Pipe>>, remote: &Address) {
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

impl<S> Conn<S> {
    /// The first of those behind comes to the front, in place of a call, or of a late answer, whose response is
    /// returned.
    #[inline]
    fn advance(
        &mut self,
        calls: &mut Slab<ActiveCall, of::Call>,
        spare: &mut Vec<Response>,
        now: Time,
        settings: &Settings,
    ) -> Option<Response> {
        let pipe = self.pipe.as_mut()?;
        let next = pipe.behind.pop_front()?;
        pipe.sent_whole = pipe.sent_whole.saturating_sub(1);
        pipe.front = next.span;
        self.since = now;
        self.kept = true;
        let late = match self.state {
            State::Draining(..) => std::mem::replace(&mut self.state, State::Settled),
            _ => State::Settled,
        };
        match next.whose {
            Whose::Call(call_key) => match calls.get_mut(call_key) {
                Some(call) => {
                    call.marks.in_front = Some(now);
                    self.hurried = call.overrides.is_some() || self.patience.is_some();
                    self.state = State::Busy(Exchange::new(&call.request, call.mode), call_key);
                }
                None => self.state = State::Settled,
            },
            Whose::Nobodys(exchange) => {
                let until = later(now, settings.drain());
                self.state = State::Draining(*exchange, spare.pop().unwrap_or_default(), until);
            }
            // Not in front: none are left where answers are read, nor where the front gives up.
            Whose::Withdrawn => self.state = State::Settled,
        }
        if let State::Busy(exchange, _) | State::Draining(exchange, ..) = &mut self.state {
            note_front(exchange, pipe);
        }
        match late {
            State::Draining(_, response, _) => Some(response),
            _ => None,
        }
    }

    /// When a connection whose answer nobody waits for is looked at: calls behind that may have deadlines before.
    pub(super) fn draining_due(&self, until: Time) -> Time {
        let others = self.pipe.as_ref().is_some_and(|pipe| !pipe.is_empty());
        let deadline = self.deadline.filter(|_| others);
        deadline.map_or(until, |deadline| deadline.min(until))
    }
}

impl Behind {
    fn is_of(&self, key: CallKey) -> bool {
        matches!(self.whose, Whose::Call(call) if call == key)
    }
}

/// Tells the exchange in front how much of its request is sent; true if that is all.
fn note_front(exchange: &mut Exchange, pipe: &Pipe) -> bool {
    let whole = pipe.front.end <= pipe.written;
    let sent = pipe.written.min(pipe.front.end);
    exchange.set_sent(sent.saturating_sub(pipe.front.start), whole);
    whole
}

/// What has gathered to this many bytes waits no longer.
const WORTH_SENDING: usize = 16 * 1024;

/// A connection with so much to send takes no more requests. They are copied, so this is memory.
const MOST_GATHERED: usize = 1024 * 1024;

/// The most that an idle connection keeps of the room for its requests.
const MOST_KEPT: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::Defaults;

    fn request(length: usize) -> Request {
        let mut request = Request::post("/", vec![b'x'; length]);
        let encoded = request.encode(&Defaults::new("h", None));
        assert!(encoded.is_ok());
        request
    }

    #[test]
    fn what_is_sent_does_not_pile_up() {
        let (request, mut pipe) = (request(1000), Pipe::default());
        let mut last = pipe.push(&request);
        for _ in 0..1000 {
            // The socket never takes all.
            let n = pipe.unsent() - 100;
            pipe.out_at += n;
            pipe.written += n as u64;
            let span = pipe.push(&request);
            assert_eq!(span.start, last.end);
            assert!(pipe.out.len() < 4000 && !pipe.is_begun(span));
            last = span;
        }
    }

    /// A pipe of requests of these lengths, of which `written` bytes are sent, and what is unsent of it.
    fn pipe(lengths: &[usize], written: usize) -> (Pipe, Vec<u8>) {
        let mut pipe = Pipe::default();
        let mut requests = lengths.iter().map(|&length| request(length));
        pipe.front = pipe.push(&requests.next().expect("a front"));
        for (number, request) in (u32::MAX - 1..=u32::MAX).chain(0..).zip(requests) {
            let whose = Whose::Call(CallKey::first_of(number));
            let span = pipe.push(&request);
            pipe.behind.push_back(Behind {
                whose,
                number,
                span,
            });
        }
        pipe.out_at = written;
        pipe.written = written as u64;
        let whole = |behind: &&Behind| behind.span.end <= pipe.written;
        pipe.sent_whole = pipe.behind.iter().take_while(whole).count();
        let unsent = pipe.out[pipe.out_at..].to_vec();
        (pipe, unsent)
    }

    fn give_up(pipe: &mut Pipe, number: u32) {
        let call = CallKey::first_of(number);
        let at = pipe.position(call, number).expect("a place");
        pipe.behind[at].whose = Whose::Withdrawn;
        pipe.withdraw(pipe.behind[at].span);
    }

    #[test]
    fn those_behind_are_found_by_their_numbers_also_when_these_wrap() {
        let (mut pipe, _) = pipe(&[0, 10, 20, 30, 40], 0);
        for round in 0..4 {
            let numbers: Vec<u32> = pipe.behind.iter().map(|behind| behind.number).collect();
            for (at, number) in numbers.into_iter().enumerate() {
                let call = CallKey::first_of(number);
                assert_eq!(pipe.position(call, number), Some(at), "{round}");
                assert_eq!(pipe.position(CallKey::first_of(77), number), None);
            }
            let gone = pipe.behind.pop_front().expect("another one");
            let call = CallKey::first_of(gone.number);
            assert_eq!(pipe.position(call, gone.number), None);
        }
    }

    #[test]
    fn what_is_withdrawn_goes_and_the_others_close_up() {
        let lengths = [0, 500, 10, 300, 20, 1000];
        let part = |pipe: &Pipe, span: Span| {
            let from = pipe.out_at + (span.start.max(pipe.written) - pipe.written) as usize;
            let to = pipe.out_at + (span.end - pipe.written) as usize;
            pipe.out[from..to].to_vec()
        };
        // Nothing is sent, a part of the front, the front, and a part of the next.
        for written in [
            0,
            10,
            request(0).in_memory().map(<[u8]>::len).iter().sum(),
            200,
        ] {
            for given_up in 0..1 << 5 {
                let (mut pipe, unsent) = pipe(&lengths, written);
                let wanted = |behind: &Behind| {
                    let at = behind.number.wrapping_add(2);
                    given_up & (1 << at) == 0 || pipe.is_begun(behind.span)
                };
                let front = pipe.front;
                let mut expected = match front.end > pipe.written {
                    true => part(&pipe, front),
                    false => Vec::new(),
                };
                let (mut stay, mut go) = (Vec::new(), Vec::new());
                for behind in &pipe.behind {
                    if wanted(behind) {
                        stay.push((behind.number, part(&pipe, behind.span)));
                        expected.extend(part(&pipe, behind.span));
                    } else {
                        go.push(behind.number);
                    }
                }
                assert!(expected.len() <= unsent.len());
                for &number in &go {
                    give_up(&mut pipe, number);
                    assert!(pipe.withdrawn <= pipe.unsent());
                }
                assert_eq!(pipe.unsent(), expected.len(), "{written} {given_up:b}");
                pipe.tidy();
                assert_eq!(pipe.out[pipe.out_at..], expected);
                let left = pipe.behind.iter();
                let left: Vec<_> = left.map(|b| (b.number, part(&pipe, b.span))).collect();
                assert_eq!(left, stay, "{written} {given_up:b}");
                // What comes next is behind them.
                let next = pipe.push(&request(5));
                assert_eq!(next.start, pipe.written + expected.len() as u64);
            }
        }
    }
}
