//! Reading: bytes that come on a connection go into the response of its call. Reading stops when no more bytes have
//! come, the response is complete, the consumer must take bytes first, or the budget of the iteration is used up.

use std::io;

use super::body_memory::UNCOUNTED;
use super::conn::{ConnState, ReadPause};
use super::{CallKey, CallState, ConnKey, Reactor, ReactorEvent};
use crate::error::{ErrorKind, TlsFault};
use crate::net::Net;
use crate::net::transport::Transport;
use crate::proto::{BodyMode, CloseReason, Exchange, Response, Reuse};

impl<N: Net, C> Reactor<N, C> {
    /// Goes on reading, after the consumer of a streamed body has taken bytes.
    pub(crate) fn resume_read(&mut self, call: CallKey) {
        let Some(call) = self.calls.get_mut(call) else {
            return;
        };
        let CallState::OnConn(key) = call.state else {
            return;
        };
        let waiting = call.response.body().len() - call.taken;
        self.body_memory.set_waiting(&mut call.held, waiting);
        if let Some(conn) = self.conns.get_mut(key)
            && conn.read_pause == Some(ReadPause::Consumer)
            && waiting < self.settings.stream_buffer
        {
            conn.read_pause = None;
            conn.wait.since = self.now;
            self.drive_read(key);
        }
    }

    /// Looks, without the limits of the rates of bytes, whether a connection that expects nothing has bytes or has ended.
    /// `None` if the connection does not exist any more.
    pub(super) fn look(&mut self, key: ConnKey) -> Option<Look> {
        let conn = self.conns.get_mut(key)?;
        self.net.set_unlimited(true);
        let read = conn.stream.read(&mut self.net, &mut self.buffer);
        self.net.set_unlimited(false);
        Some(match read {
            Ok(1..) => Look::Bytes,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => match conn.stream.has_more()
            {
                true => Look::More,
                false => Look::Nothing,
            },
            Ok(0) | Err(_) => Look::Ended,
        })
    }

    /// Lets a connection go on reading in the next iteration.
    pub(super) fn defer_read(&mut self, key: ConnKey) {
        if let Some(conn) = self.conns.get_mut(key)
            && conn.read_pause.is_none()
        {
            conn.read_pause = Some(ReadPause::Budget);
            self.left_over.reads.next.push(key);
        }
    }

    /// Reads as long as there is more and the budget of the iteration lasts.
    pub(super) fn drive_read(&mut self, key: ConnKey) {
        let event = self.read(key);
        self.reactor_events.extend(event);
    }

    /// As [`drive_read`](Self::drive_read). Returns the end of the response, if it has come, behind all events that are
    /// queued.
    pub(super) fn read(&mut self, key: ConnKey) -> Option<ReactorEvent> {
        for _ in 0..READS_PER_ITERATION {
            match self.read_once(key) {
                Ok(Progress::More) => {}
                Ok(Progress::Budget) => break,
                Ok(Progress::Drained) => {
                    let conn = self.conns.get_mut(key);
                    match conn.and_then(|conn| conn.write_error.take()) {
                        Some(error) => self.fail(key, error.into()), // and no complete response has come
                        None => self.arm_conn(key),
                    }
                    return None;
                }
                Ok(Progress::Stop) => return None,
                Ok(Progress::Complete(reuse, had_head)) => {
                    return self.finish(key, had_head, reuse);
                }
                Err(kind) => {
                    self.fail(key, kind);
                    return None;
                }
            }
        }
        self.defer_read(key);
        self.arm_conn(key);
        None
    }

    fn read_once(&mut self, key: ConnKey) -> Result<Progress, ErrorKind> {
        let Some(conn) = self.conns.get_mut(key) else {
            return Ok(Progress::Stop);
        };
        if conn.read_pause == Some(ReadPause::Consumer) {
            return Ok(Progress::Stop);
        }
        if conn.pipeline.is_some() {
            return self.read_pipeline(key);
        }
        let mut limits = &self.settings.limits;
        let exchange = &mut conn.exchange;
        let (mut call, response, held) = match &mut conn.state {
            ConnState::Busy(call_key) => match self.calls.get_mut(*call_key) {
                Some(call) => {
                    let own = call.overrides.as_deref();
                    limits = own.and_then(|own| own.limits.as_ref()).unwrap_or(limits);
                    let timestamps = Some(&mut call.timestamps);
                    (timestamps, &mut call.response, Some(&mut call.held))
                }
                None => return Ok(Progress::Stop),
            },
            ConnState::Draining(response, _) => (None, response, None),
            _ => return Ok(Progress::Stop),
        };
        let had_head = exchange.has_head();
        if exchange.is_held() {
            exchange.handle_room(response, limits)?;
            return Ok(self.resume_held(key));
        }
        let (read, room) = match exchange.body_left() {
            Some(left) if left >= DIRECT_READ && conn.stream.is_plain() => {
                let body = response.body_buffer();
                let most = match exchange.mode() {
                    BodyMode::Stream => super::READ_BUFFER, // no more than this is buffered for the consumer
                    BodyMode::Buffer | BodyMode::Discard => MOST_DIRECT,
                };
                let room = left.min(body.len().clamp(super::READ_BUFFER, most) as u64) as usize;
                // One byte more than the body. If the read then leaves room, nothing follows the body.
                body.reserve_exact(room + 1);
                let room = body.capacity() - body.len();
                let read = conn.stream.read_append(&mut self.net, body);
                if let Ok(n @ 1..) = read {
                    exchange.handle_body_appended(n, response);
                }
                (read, room)
            }
            _ => {
                let read = conn.stream.read(&mut self.net, &mut self.buffer);
                if let Ok(n @ 1..) = read {
                    if let Some(timestamps) = &mut call {
                        timestamps.first_byte.get_or_insert(self.now);
                    }
                    let input = &self.buffer[..n];
                    let used = exchange.handle_read(input, response, limits)?;
                    if exchange.done() == Some(Reuse::Close(CloseReason::HandedOver)) {
                        response.body_buffer().extend_from_slice(&input[used..]);
                    }
                }
                (read, self.buffer.len())
            }
        };
        let Some(n) = taken(read, exchange, &mut conn.write_error)? else {
            return Ok(Progress::without_bytes(&conn.stream, exchange));
        };
        if let Some(timestamps) = &mut call {
            timestamps.bytes_in += n as u64;
        }
        if response.body().len() > UNCOUNTED
            && exchange.mode() == BodyMode::Buffer
            && let Some(held) = held
        {
            self.body_memory.grow(held, response.body_buffer())?;
        }
        conn.wait.since = self.now;
        let closed = conn.closed;
        // After a read that left room, nothing more is waiting. What comes later causes a new event.
        let left_nothing = conn.stream.is_drained(&self.net, n, room);
        let progress = match left_nothing && !closed {
            true => Progress::Drained,
            false => Progress::before_more(&conn.stream, exchange),
        };
        if let Some(reuse) = exchange.done() {
            let reuse = match reuse {
                Reuse::Keep if !left_nothing && self.has_more(key) => {
                    Reuse::Close(CloseReason::Surplus)
                }
                Reuse::Keep if closed => Reuse::Close(CloseReason::PeerClosed),
                reuse => reuse,
            };
            return Ok(Progress::Complete(reuse, had_head));
        }
        if conn.wait.continue_at.is_some() && !exchange.awaits_continue() {
            conn.wait.continue_at = None;
            self.drive_send(key);
        }
        if self.must_pause(key, had_head) {
            return Ok(Progress::Stop);
        }
        Ok(progress)
    }

    /// Goes on after the consumer has made room for more decoded bytes. Decoding may now be complete, or may have
    /// stopped again. Otherwise reading goes on.
    fn resume_held(&mut self, key: ConnKey) -> Progress {
        let done = self.conns.get(key).and_then(|conn| conn.exchange.done());
        match done {
            // The read that brought the end may have filled the buffer, so only another read shows whether bytes
            // follow.
            Some(Reuse::Keep) if self.has_more(key) => {
                Progress::Complete(Reuse::Close(CloseReason::Surplus), true)
            }
            Some(reuse) => Progress::Complete(reuse, true),
            None if self.must_pause(key, true) => Progress::Stop,
            None => Progress::More,
        }
    }

    /// Whether the peer has sent bytes, or has ended the connection, which no event has reported or will report: behind a
    /// response that filled the last read, and before a call on an idle connection.
    #[cold]
    pub(crate) fn has_more(&mut self, key: ConnKey) -> bool {
        self.look_behind(key) != Look::Nothing
    }

    /// Looks what follows a response that filled the last read.
    pub(super) fn look_behind(&mut self, key: ConnKey) -> Look {
        for _ in 0..LOOKS_BEHIND {
            match self.look(key) {
                Some(Look::More) => {}
                Some(look) => return look,
                None => return Look::Nothing,
            }
        }
        Look::More
    }

    /// The event of a complete response.
    #[inline(always)] // into its only caller
    fn finish(&mut self, key: ConnKey, had_head: bool, reuse: Reuse) -> Option<ReactorEvent> {
        let conn = self.conns.get_mut(key)?;
        let exchange = &mut conn.exchange;
        let call = match conn.state {
            ConnState::Busy(call) => {
                if exchange.has_decoder()
                    && let Some(call) = self.calls.get_mut(call)
                {
                    exchange.give_back(&mut call.response);
                }
                Some(call)
            }
            ConnState::Draining(..) => None,
            _ => return None,
        };
        if let Some(call) = call
            && !had_head
            && exchange.mode() == BodyMode::Stream
        {
            self.reactor_events.push_back(ReactorEvent::Head(call));
        }
        conn.stray_body = exchange.may_have_stray_body();
        let keep_alive = exchange.keep_alive_timeout();
        conn.await_decision(&mut self.spares);
        Some(ReactorEvent::Finished {
            conn: key,
            call,
            reuse,
            keep_alive,
        })
    }

    /// Reports new bytes of a streamed body. True if reading must pause until the consumer has taken some of them.
    fn must_pause(&mut self, key: ConnKey, had_head: bool) -> bool {
        let Some(conn) = self.conns.get_mut(key) else {
            return true;
        };
        let ConnState::Busy(call_key) = conn.state else {
            return false;
        };
        let exchange = &conn.exchange;
        let Some(call) = self.calls.get_mut(call_key) else {
            return true;
        };
        if !exchange.has_head() {
            return false;
        }
        if exchange.mode() != BodyMode::Stream {
            if !had_head && is_redirection(&call.response) {
                self.reactor_events.push_back(ReactorEvent::Head(call_key));
            }
            return false;
        }
        let waiting = call.response.body().len() - call.taken;
        let is_over = self.body_memory.set_waiting(&mut call.held, waiting) && waiting > 0;
        let pause = waiting >= self.settings.stream_buffer || exchange.is_held() || is_over;
        if pause {
            conn.read_pause = Some(ReadPause::Consumer);
        }
        if !had_head {
            self.reactor_events.push_back(ReactorEvent::Head(call_key));
        } else if !call.notified {
            self.reactor_events
                .push_back(ReactorEvent::BodyReady(call_key));
        }
        pause
    }

    /// Goes on reading from the connections that used up their budget in the last iteration.
    pub(super) fn read_on(&mut self) {
        let mut unread = std::mem::take(&mut self.left_over.reads.now);
        for key in unread.drain(..) {
            if let Some(conn) = self.conns.get_mut(key)
                && conn.read_pause == Some(ReadPause::Budget)
            {
                conn.read_pause = None;
                match conn.state {
                    ConnState::Idle(_) => self.check_idle(key),
                    ConnState::Handshaking(_) => self.drive_handshakes(key),
                    _ => self.drive_read(key),
                }
            }
        }
        self.left_over.reads.now = unread; // with its memory
    }
}

/// The result of a read: the number of bytes; zero at an end of the stream that the exchange accepts; `None` if there
/// is nothing to read yet.
#[inline(always)] // on the path of every call
pub(super) fn taken(
    read: io::Result<usize>,
    exchange: &mut Exchange,
    write_error: &mut Option<io::Error>,
) -> Result<Option<usize>, ErrorKind> {
    match read {
        Ok(0) => {
            // The system reports a reset only once, and the write got this report. So this may not be a proper end.
            if let Some(error) = write_error.take() {
                return Err(error.into());
            }
            exchange.handle_eof()?;
            Ok(Some(0))
        }
        Ok(n) => Ok(Some(n)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        // TLS ended without a close message (RFC 9112 §9.8). A framed body then fails as incomplete, by the exchange; a
        // body that only the end delimits may be cut, and fails by this error.
        Err(error) if is_truncation(&error) => {
            exchange.handle_eof()?;
            Err(error.into())
        }
        Err(error) => Err(error.into()),
    }
}

fn is_truncation(error: &io::Error) -> bool {
    let fault = error.get_ref().and_then(|inner| inner.downcast_ref());
    matches!(fault, Some(TlsFault::Truncated))
}

/// Whether the head of a response is reported although its body is buffered: the client may not want the body.
pub(super) fn is_redirection(response: &Response) -> bool {
    (300..400).contains(&response.status())
}

#[derive(Debug)]
pub(super) enum Progress {
    /// There may be more to read.
    More,
    /// There may be more to read, in the next iteration.
    Budget,
    /// Nothing more is waiting.
    Drained,
    /// Reading must pause, or the connection is no longer there.
    Stop,
    /// The response is complete. Whether its head came in an earlier read.
    Complete(Reuse, bool),
}

impl Progress {
    /// After a read that returned `WouldBlock`.
    #[inline]
    pub(super) fn without_bytes<S>(stream: &Transport<S>, exchange: &Exchange) -> Self {
        match stream.has_more() {
            true => Self::before_more(stream, exchange),
            false => Self::Drained,
        }
    }

    /// When there may be more to read. What costs far more than its bytes is read once in each iteration: a coded body,
    /// and lean records of TLS.
    #[inline]
    pub(super) fn before_more<S>(stream: &Transport<S>, exchange: &Exchange) -> Self {
        match exchange.has_decoder() || stream.is_lean() {
            true => Self::Budget,
            false => Self::More,
        }
    }
}

/// What a connection has that expects nothing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Look {
    Nothing,
    /// Nothing yet, but there may be more to read.
    More,
    Bytes,
    /// The stream has ended or failed.
    Ended,
}

/// Bodies with at least this much to come are read into the response directly.
const DIRECT_READ: u64 = 16 * 1024;

/// The most that one direct read makes room for.
const MOST_DIRECT: usize = 1024 * 1024;

/// Reads that look what follows a response. With TLS, more than one of them is needed only for an incomplete record, or
/// for records that bring nothing.
const LOOKS_BEHIND: usize = 4;

/// Reads on one connection in one iteration.
pub(super) const READS_PER_ITERATION: usize = 16;
