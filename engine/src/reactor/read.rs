//! Reading: bytes that come on a connection go into the response of its call. Reading stops when no more bytes have
//! come, the response is complete, the consumer must take bytes first, or the budget of the iteration is used up.

use std::io;

use super::body_memory::UNCOUNTED;
use super::conn::{Conn, ConnState, ReadPause};
use super::meter::Metered;
use super::{Common, ReactorEvent};
use crate::error::{ErrorKind, TlsFault};
use crate::net::Net;
use crate::net::transport::Transport;
use crate::proto::{BodyMode, CloseReason, Exchange, Response, Reuse};

impl<N: Net> Conn<N> {
    /// Looks, without the limits of the rates of bytes, whether a connection that expects nothing has bytes or has ended.
    pub(super) fn look(&mut self, net: &mut Metered<N>, buffer: &mut [u8]) -> Look {
        net.set_unlimited(true);
        let read = self.stream.read(net, buffer);
        net.set_unlimited(false);
        match read {
            Ok(1..) => Look::Bytes,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => match self.stream.has_more()
            {
                true => Look::More,
                false => Look::Nothing,
            },
            Ok(0) | Err(_) => Look::Ended,
        }
    }

    /// Looks what follows a response that filled the last read.
    pub(super) fn look_behind(&mut self, net: &mut Metered<N>, buffer: &mut [u8]) -> Look {
        for _ in 0..LOOKS_BEHIND {
            match self.look(net, buffer) {
                Look::More => {}
                look => return look,
            }
        }
        Look::More
    }

    /// Whether the peer has sent bytes, or has ended the connection, which no event has reported or will report: behind a
    /// response that filled the last read, and before a call on an idle connection.
    #[cold]
    pub(super) fn has_more(&mut self, net: &mut Metered<N>, buffer: &mut [u8]) -> bool {
        self.look_behind(net, buffer) != Look::Nothing
    }

    /// Lets the connection go on reading in the next iteration.
    pub(super) fn defer_read<C>(&mut self, common: &mut Common<N, C>) {
        if self.read_pause.is_none() {
            self.read_pause = Some(ReadPause::Budget);
            common.left_over.reads.next.push(self.key);
        }
    }

    /// Goes on reading, after the budget of the last iteration was used up.
    pub(super) fn read_on<C>(&mut self, common: &mut Common<N, C>) -> Result<(), ErrorKind> {
        if self.read_pause != Some(ReadPause::Budget) {
            return Ok(());
        }
        self.read_pause = None;
        match self.state {
            ConnState::Idle(_) => self.check_idle(common),
            ConnState::Handshaking(_) => self.drive_handshakes(common),
            _ => self.drive_read(common),
        }
    }

    /// Reads as long as there is more and the budget of the iteration lasts.
    pub(super) fn drive_read<C>(&mut self, common: &mut Common<N, C>) -> Result<(), ErrorKind> {
        let event = self.read(common)?;
        common.events.extend(event);
        Ok(())
    }

    /// As [`drive_read`](Self::drive_read). Returns the end of the response, if it has come, behind all events that are
    /// queued.
    pub(super) fn read<C>(
        &mut self,
        common: &mut Common<N, C>,
    ) -> Result<Option<ReactorEvent>, ErrorKind> {
        for _ in 0..READS_PER_ITERATION {
            match self.read_once(common)? {
                Progress::More => {}
                Progress::Budget => break,
                Progress::Drained => {
                    if let Some(error) = self.write_error.take() {
                        return Err(error.into()); // and no complete response has come
                    }
                    self.arm(common);
                    return Ok(None);
                }
                Progress::Stop => return Ok(None),
                Progress::Complete(reuse, had_head) => {
                    return Ok(self.finish(common, had_head, reuse));
                }
            }
        }
        self.defer_read(common);
        self.arm(common);
        Ok(None)
    }

    fn read_once<C>(&mut self, common: &mut Common<N, C>) -> Result<Progress, ErrorKind> {
        if self.read_pause == Some(ReadPause::Consumer) {
            return Ok(Progress::Stop);
        }
        if self.pipeline.is_some() {
            return self.read_pipeline(common);
        }
        let mut limits = &common.settings.limits;
        let exchange = &mut self.exchange;
        let (mut call, response, held) = match &mut self.state {
            ConnState::Busy(call_key) => match common.calls.get_mut(*call_key) {
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
            return Ok(self.resume_held(common));
        }
        let (read, room) = match exchange.body_left() {
            Some(left) if left >= DIRECT_READ && self.stream.is_plain() => {
                let body = response.body_buffer();
                let most = match exchange.mode() {
                    BodyMode::Stream => super::READ_BUFFER, // no more than this is buffered for the consumer
                    BodyMode::Buffer | BodyMode::Discard => MOST_DIRECT,
                };
                let room = left.min(body.len().clamp(super::READ_BUFFER, most) as u64) as usize;
                // One byte more than the body. If the read then leaves room, nothing follows the body.
                body.reserve_exact(room + 1);
                let room = body.capacity() - body.len();
                let read = self.stream.read_append(&mut common.net, body);
                if let Ok(n @ 1..) = read {
                    exchange.handle_body_appended(n, response);
                }
                (read, room)
            }
            _ => {
                let read = self.stream.read(&mut common.net, &mut common.buffer);
                if let Ok(n @ 1..) = read {
                    if let Some(timestamps) = &mut call {
                        timestamps.first_byte.get_or_insert(common.now);
                    }
                    let input = &common.buffer[..n];
                    let used = exchange.handle_read(input, response, limits)?;
                    if exchange.done() == Some(Reuse::Close(CloseReason::HandedOver)) {
                        response.body_buffer().extend_from_slice(&input[used..]);
                    }
                }
                (read, common.buffer.len())
            }
        };
        let Some(n) = taken(read, exchange, &mut self.write_error)? else {
            return Ok(Progress::without_bytes(&self.stream, exchange));
        };
        if let Some(timestamps) = &mut call {
            timestamps.bytes_in += n as u64;
        }
        if response.body().len() > UNCOUNTED
            && exchange.mode() == BodyMode::Buffer
            && let Some(held) = held
        {
            common.body_memory.grow(held, response.body_buffer())?;
        }
        self.wait.since = common.now;
        let closed = self.closed;
        // After a read that left room, nothing more is waiting. What comes later causes a new event.
        let left_nothing = self.stream.is_drained(&common.net, n, room);
        let progress = match left_nothing && !closed {
            true => Progress::Drained,
            false => Progress::before_more(&self.stream, exchange),
        };
        if let Some(reuse) = exchange.done() {
            let reuse = match reuse {
                Reuse::Keep
                    if !left_nothing && self.has_more(&mut common.net, &mut common.buffer) =>
                {
                    Reuse::Close(CloseReason::Surplus)
                }
                Reuse::Keep if closed => Reuse::Close(CloseReason::PeerClosed),
                reuse => reuse,
            };
            return Ok(Progress::Complete(reuse, had_head));
        }
        if self.wait.continue_at.is_some() && !exchange.awaits_continue() {
            self.wait.continue_at = None;
            self.drive_send(common)?;
        }
        if self.must_pause(common, had_head) {
            return Ok(Progress::Stop);
        }
        Ok(progress)
    }

    /// Goes on after the consumer has made room for more decoded bytes. Decoding may now be complete, or may have
    /// stopped again. Otherwise reading goes on.
    fn resume_held<C>(&mut self, common: &mut Common<N, C>) -> Progress {
        match self.exchange.done() {
            // The read that brought the end may have filled the buffer, so only another read shows whether bytes
            // follow.
            Some(Reuse::Keep) if self.has_more(&mut common.net, &mut common.buffer) => {
                Progress::Complete(Reuse::Close(CloseReason::Surplus), true)
            }
            Some(reuse) => Progress::Complete(reuse, true),
            None if self.must_pause(common, true) => Progress::Stop,
            None => Progress::More,
        }
    }

    /// The event of a complete response.
    #[inline(always)] // into its only caller
    fn finish<C>(
        &mut self,
        common: &mut Common<N, C>,
        had_head: bool,
        reuse: Reuse,
    ) -> Option<ReactorEvent> {
        let exchange = &mut self.exchange;
        let call = match self.state {
            ConnState::Busy(call) => {
                if exchange.has_decoder()
                    && let Some(call) = common.calls.get_mut(call)
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
            common.events.push_back(ReactorEvent::Head(call));
        }
        self.stray_body = exchange.may_have_stray_body();
        let keep_alive = exchange.keep_alive_timeout();
        self.await_decision(&mut common.spares);
        Some(ReactorEvent::Finished {
            conn: self.key,
            call,
            reuse,
            keep_alive,
        })
    }

    /// Reports new bytes of a streamed body. True if reading must pause until the consumer has taken some of them.
    fn must_pause<C>(&mut self, common: &mut Common<N, C>, had_head: bool) -> bool {
        let ConnState::Busy(call_key) = self.state else {
            return false;
        };
        let exchange = &self.exchange;
        let Some(call) = common.calls.get_mut(call_key) else {
            return true;
        };
        if !exchange.has_head() {
            return false;
        }
        if exchange.mode() != BodyMode::Stream {
            if !had_head && is_redirection(&call.response) {
                common.events.push_back(ReactorEvent::Head(call_key));
            }
            return false;
        }
        let waiting = call.response.body().len() - call.taken;
        let is_over = common.body_memory.set_waiting(&mut call.held, waiting) && waiting > 0;
        let pause = waiting >= common.settings.stream_buffer || exchange.is_held() || is_over;
        if pause {
            self.read_pause = Some(ReadPause::Consumer);
        }
        if !had_head {
            common.events.push_back(ReactorEvent::Head(call_key));
        } else if !call.notified {
            common.events.push_back(ReactorEvent::BodyReady(call_key));
        }
        pause
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
