//! One request and its response on one connection (RFC 9112 §6, §9), as a state machine over bytes.
//!
//! The driver writes what [`poll_send`](Exchange::poll_send) gives, feeds what it reads to
//! [`handle_read`](Exchange::handle_read), tells of the end of the stream with [`handle_eof`](Exchange::handle_eof),
//! and stops when [`done`](Exchange::done) says whether the connection may serve another exchange. How the input is
//! cut into reads never changes the outcome.
//!
//! Framing of the response, in the order of RFC 9112 §6.3:
//!
//! | response | body |
//! |---|---|
//! | to HEAD; 1xx, 204, 304 | none, whatever the headers say |
//! | 2xx to CONNECT, 101 to an Upgrade | none; the connection is handed over |
//! | Transfer-Encoding: chunked | chunked; with Content-Length beside it the connection is closed afterwards |
//! | any other Transfer-Encoding, or any in HTTP/1.0 | error |
//! | Content-Length | that many bytes |
//! | neither | until the connection closes |

use std::time::Duration;

use super::chunked::{Chunk, ChunkDecoder};
use super::coding::{self, Bounds, Codings, Decoder};
use super::head::{self, Framing, HeadScan, TransferEncoding};
use super::request::{Fill, Outline, RequestKind};
use super::response::decoder_cap;
use super::{Limits, Request, Response, Version};
use crate::error::{ErrorKind, LimitExceeded, Misuse, PeerFault, Phase, Sent};
use crate::mutation::{self, Mutation};

/// One request and its response.
///
/// ```
/// use courser::proto::{BodyMode, Defaults, Exchange, Reuse, SendStep};
/// use courser::{Limits, Request, Response};
///
/// let mut request = Request::get("/");
/// request.encode(&Defaults::new("example.com", None))?;
/// let (mut response, limits) = (Response::new(), Limits::default());
/// let mut exchange = Exchange::new(&request, BodyMode::Buffer);
///
/// let SendStep::Write([head, _]) = exchange.poll_send(&mut request)? else { unreachable!() };
/// assert_eq!(head, b"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n");
/// let sent = head.len();
/// exchange.handle_sent(sent);
/// assert!(matches!(exchange.poll_send(&mut request)?, SendStep::Done));
///
/// let reply = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
/// assert_eq!(exchange.handle_read(reply, &mut response, &limits).unwrap(), reply.len());
/// assert_eq!(exchange.done(), Some(Reuse::Keep));
/// assert_eq!(response.body(), b"hi");
/// # Ok::<(), courser::Misuse>(())
/// ```
#[derive(Debug)]
pub struct Exchange {
    send: Send,
    recv: Recv,
    mode: BodyMode,
    kind: RequestKind,
    /// The request's body is a stream.
    streams: bool,
    /// Why the connection must close after this exchange, as far as it is known already.
    close: Option<CloseReason>,
    /// `Keep-Alive: timeout=N` of the response, in seconds.
    keep_alive_timeout: Option<u32>,
    /// What to take off the body.
    codings: Codings,
    /// Of a body whose content codings are taken off, until that is done.
    decoder: Option<Box<Decoder>>,
    stream_buffer: usize,
    interim: usize,
    sent: u64,
    received: u64,
}

/// What becomes of the response's body.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BodyMode {
    /// All of it goes to the response, up to [`Limits::body_bytes`].
    Buffer,
    /// It goes to the response, and a consumer takes it from there; the driver stops reading when too much waits.
    Stream,
    /// It is dropped: nobody wants it, and the connection is to be kept.
    Discard,
}

/// Whether the connection may serve another exchange.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Reuse {
    /// It may: the end of the message was seen, and neither side said close.
    Keep,
    /// It may not, and why.
    Close(CloseReason),
}

/// Why a connection is not used again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum CloseReason {
    /// The request said `Connection: close`.
    RequestSaidClose,
    /// The response said `Connection: close`.
    ResponseSaidClose,
    /// An HTTP/1.0 response without `Connection: keep-alive` (RFC 9112 §9.3).
    Http10,
    /// The body ended with the connection.
    UntilClose,
    /// Length headers that contradict each other, or stand where there is no body to be framed (RFC 9112 §6.3).
    AmbiguousFraming,
    /// Bytes behind the end of the response.
    Surplus,
    /// The final response came before the request was sent whole.
    EarlyResponse,
    /// The connection speaks another protocol now (101, or 2xx to CONNECT).
    HandedOver,
    /// The call failed, was cancelled or timed out.
    Failed,
    /// The peer closed it, or sent something, while it was idle.
    PeerClosed,
    /// Idle for longer than allowed.
    IdleTimeout,
    /// Older than allowed, or used often enough.
    WornOut,
    /// The caller closed it.
    Caller,
}

/// What the sending side wants.
#[derive(Debug)]
pub enum SendStep<'a> {
    /// Write these bytes, the first part before the second, then report the count to [`Exchange::handle_sent`].
    Write([&'a [u8]; 2]),
    /// The body is held back; for at most this long if nothing comes (see [`Exchange::handle_continue_timeout`]).
    AwaitContinue(Duration),
    /// The body's source has nothing just now.
    AwaitSource,
    /// Nothing more to send.
    Done,
}

#[derive(Debug)]
enum Send {
    /// The encoded head with a small body, and behind it a larger body: so many bytes are left of both.
    Fixed(usize),
    /// The head alone, from this offset; the body waits for 100 (Continue).
    HeadThenAwait(usize, Duration),
    AwaitContinue(Duration),
    /// A body in one piece, from this offset, after its head was sent alone.
    Separate(usize),
    /// The head from this offset, then the stream.
    HeadThenStream(usize),
    /// The stream's current piece, from this offset.
    Stream(usize),
    Done,
}

#[derive(Debug)]
enum Recv {
    Head {
        scan: HeadScan,
        /// Where this head starts in the response's buffer.
        start: usize,
    },
    Length(u64),
    Chunked(ChunkDecoder),
    Trailers {
        start: usize,
        line: TrailerLine,
    },
    UntilClose,
    /// The framing has ended; the decoder has still something to give.
    Decoding,
    Done,
}

/// Where the reader is in the trailer section, whose line ends are CRLF only.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum TrailerLine {
    Start,
    StartCr,
    Inside,
    InsideCr,
}

impl Exchange {
    /// Begins the exchange of an encoded request.
    #[inline(always)] // made where it stays, and not moved there
    pub fn new(request: &Request, mode: BodyMode) -> Self {
        let outline = request.outline();
        Self {
            send: match outline {
                Outline { waits: true, .. } => {
                    Send::HeadThenAwait(0, request.expects().unwrap_or_default())
                }
                Outline { streams: true, .. } => Send::HeadThenStream(0),
                Outline { length, .. } => Send::Fixed(length),
            },
            recv: Recv::Head {
                scan: HeadScan::default(),
                start: 0,
            },
            mode,
            kind: outline.kind,
            streams: outline.streams,
            close: request
                .says_close()
                .then_some(CloseReason::RequestSaidClose),
            keep_alive_timeout: None,
            codings: request.codings(),
            decoder: None,
            stream_buffer: usize::MAX,
            interim: 0,
            sent: 0,
            received: 0,
        }
    }

    /// What to send next.
    ///
    /// # Errors
    /// What is wrong with the body's stream.
    #[inline]
    pub fn poll_send<'r>(&mut self, request: &'r mut Request) -> Result<SendStep<'r>, Misuse> {
        if let Send::Fixed(left @ 1..) = self.send {
            return Ok(SendStep::Write(unsent(request, left)));
        }
        self.poll_send_in_steps(request)
    }

    fn poll_send_in_steps<'r>(&mut self, request: &'r mut Request) -> Result<SendStep<'r>, Misuse> {
        loop {
            match self.send {
                Send::Fixed(left @ 1..) => return Ok(SendStep::Write(unsent(request, left))),
                Send::HeadThenAwait(at, _) | Send::HeadThenStream(at)
                    if at < request.encoded().len() =>
                {
                    return Ok(SendStep::Write([&request.encoded()[at..], &[]]));
                }
                Send::HeadThenAwait(_, wait) => self.send = Send::AwaitContinue(wait),
                Send::AwaitContinue(wait) => return Ok(SendStep::AwaitContinue(wait)),
                Send::HeadThenStream(_) => self.send = Send::Stream(0),
                Send::Separate(at) if at < request.separate_body().len() => {
                    return Ok(SendStep::Write([&request.separate_body()[at..], &[]]));
                }
                Send::Stream(at) if at < request.stream_pending().len() => {
                    return Ok(SendStep::Write([&request.stream_pending()[at..], &[]]));
                }
                Send::Stream(_) => match request.fill_stream()? {
                    Fill::Filled => self.send = Send::Stream(0),
                    Fill::Pending => return Ok(SendStep::AwaitSource),
                    Fill::Ended => self.send = Send::Done,
                },
                Send::Fixed(0) | Send::Separate(_) | Send::Done => {
                    self.send = Send::Done;
                    return Ok(SendStep::Done);
                }
            }
        }
    }

    /// Takes note that `n` bytes of the last [`SendStep::Write`] were written.
    #[inline]
    pub fn handle_sent(&mut self, n: usize) {
        self.sent += n as u64;
        match &mut self.send {
            Send::Fixed(left) => {
                *left = left.saturating_sub(n);
                if *left == 0 {
                    self.send = Send::Done;
                }
            }
            Send::HeadThenAwait(at, _)
            | Send::Separate(at)
            | Send::HeadThenStream(at)
            | Send::Stream(at) => *at += n,
            Send::AwaitContinue(_) | Send::Done => {}
        }
    }

    /// The request goes out together with others: so much of it is written, and whether that is all.
    #[inline]
    pub(crate) fn set_sent(&mut self, bytes: u64, whole: bool) {
        self.sent = bytes;
        if whole {
            self.send = Send::Done;
        }
    }

    /// The server has not answered `Expect: 100-continue` in time: the body goes out anyway (RFC 9110 §10.1.1).
    pub fn handle_continue_timeout(&mut self) {
        if let Send::AwaitContinue(_) = self.send {
            self.send = self.body_state();
        }
    }

    /// Whether the body is held back.
    pub fn awaits_continue(&self) -> bool {
        matches!(self.send, Send::AwaitContinue(_))
    }

    fn body_state(&self) -> Send {
        if self.streams {
            Send::Stream(0)
        } else {
            Send::Separate(0)
        }
    }

    /// Takes in what was read and returns how much of it belongs to this exchange. Less than all means that the
    /// response is complete and the rest is surplus (or the new protocol's, after a hand-over).
    ///
    /// # Errors
    /// A broken response or an exceeded limit; the connection must be closed.
    #[inline]
    pub fn handle_read(
        &mut self,
        input: &[u8],
        response: &mut Response,
        limits: &Limits,
    ) -> Result<usize, ErrorKind> {
        let used = self.handle_own(input, response, limits)?;
        if used < input.len() {
            self.close.get_or_insert(CloseReason::Surplus);
        }
        Ok(used)
    }

    /// As [`handle_read`](Self::handle_read), but what is left over is the next exchange's.
    #[inline]
    pub(crate) fn handle_own(
        &mut self,
        input: &[u8],
        response: &mut Response,
        limits: &Limits,
    ) -> Result<usize, ErrorKind> {
        self.received += input.len() as u64;
        let mut used = 0;
        while used < input.len() {
            match self.handle_piece(&input[used..], response, limits)? {
                0 => break,
                n => used += n,
            }
        }
        if self.decoder.is_some() {
            self.finish_decoding(response)?;
        }
        self.received -= (input.len() - used) as u64;
        Ok(used)
    }

    /// One part of the response, or two: nearly always, a head and a body of known length come together. Takes nothing
    /// only when the framing has ended.
    fn handle_piece(
        &mut self,
        input: &[u8],
        response: &mut Response,
        limits: &Limits,
    ) -> Result<usize, ErrorKind> {
        let mut used = 0;
        if let Recv::Head { .. } = self.recv {
            used = self.handle_head_bytes(input, response, limits)?;
        }
        match &mut self.recv {
            Recv::Length(left) if used < input.len() => {
                let rest = &input[used..];
                let n = usize::try_from(*left).map_or(rest.len(), |left| left.min(rest.len()));
                *left -= n as u64;
                let ended = *left == 0;
                self.keep(&rest[..n], response, limits)?;
                if ended {
                    self.recv = Recv::Done;
                }
                Ok(used + n)
            }
            _ if used > 0 => Ok(used),
            _ => self.handle_other_piece(input, response, limits),
        }
    }

    fn handle_other_piece(
        &mut self,
        input: &[u8],
        response: &mut Response,
        limits: &Limits,
    ) -> Result<usize, ErrorKind> {
        match &self.recv {
            Recv::Chunked(_) => self.handle_chunks(input, response, limits),
            Recv::Trailers { .. } => self.handle_trailer_bytes(input, response, limits),
            Recv::UntilClose => {
                let before = match &self.decoder {
                    Some(decoder) => decoder.received(),
                    None => response.0.body.len() as u64,
                };
                if let Some(limit) = self.body_limit(limits)
                    && before + input.len() as u64 > limit
                {
                    let room = (limit - before) as usize;
                    self.keep(&input[..room], response, limits)?;
                    return Err(LimitExceeded::BodyBytes(limit).into());
                }
                self.keep(input, response, limits)?;
                Ok(input.len())
            }
            Recv::Head { .. } | Recv::Length(_) | Recv::Decoding | Recv::Done => Ok(0),
        }
    }

    #[inline(always)] // into its only caller
    fn handle_head_bytes(
        &mut self,
        input: &[u8],
        response: &mut Response,
        limits: &Limits,
    ) -> Result<usize, ErrorKind> {
        let inner = &mut *response.0;
        let plain = match inner.buffer.is_empty() {
            true => head::parse_plain(input, limits, &mut inner.fields, &mut inner.head),
            false => None,
        };
        let used = if let Some(length) = plain {
            inner.buffer.extend_from_slice(&input[..length]);
            length
        } else {
            match self.gather_head(input, response, limits)? {
                (used, true) => used,
                (used, false) => return Ok(used),
            }
        };
        self.handle_head(response, limits)?;
        Ok(used)
    }

    /// Takes in a part of a head that is not plain, or does not come in one piece, and parses it when it is complete.
    /// Returns how much it takes, and whether it is complete.
    #[cold]
    fn gather_head(
        &mut self,
        input: &[u8],
        response: &mut Response,
        limits: &Limits,
    ) -> Result<(usize, bool), ErrorKind> {
        let Recv::Head { scan, start } = &mut self.recv else {
            return Ok((0, false));
        };
        let start = *start;
        let known = response.0.buffer.len() - start;
        let room = limits.head_bytes.saturating_sub(response.0.buffer.len());
        let end = scan.handle_piece(input);
        let n = end.unwrap_or(input.len());
        if n > room {
            response.0.buffer.extend_from_slice(&input[..room]);
            head::check_status_line(&response.0.buffer[start..])?;
            return Err(LimitExceeded::HeadBytes(limits.head_bytes).into());
        }
        response.0.buffer.extend_from_slice(&input[..n]);
        if end.is_some() {
            response.0.head = head::parse_head(
                &mut response.0.buffer,
                start,
                limits.header_count,
                &mut response.0.fields,
            )?;
            return Ok((n, true));
        }
        if known < head::STATUS_LINE_PREFIX {
            head::check_status_line(&response.0.buffer[start..])?;
        }
        Ok((n, false))
    }

    #[inline(always)] // into its only caller
    fn handle_head(&mut self, response: &mut Response, limits: &Limits) -> Result<(), ErrorKind> {
        let head = &response.0.head;
        if head.status < 200 && !(head.status == 101 && self.kind == RequestKind::Upgrade) {
            return self.handle_interim(response, limits);
        }
        let fields = &response.0.fields[head.fields.start as usize..];
        let framing = Framing::of(&response.0.buffer, fields);
        self.recv = self.body_of(head.status, head.version, framing, limits)?;
        if self.is_sending() {
            self.close.get_or_insert(CloseReason::EarlyResponse);
        }
        if self.awaits_continue() {
            self.send = Send::Done; // the server has answered without the body (RFC 9110 §10.1.1)
        }
        if !self.codings.is_empty() {
            self.begin_decoding(response, limits)?;
        }
        Ok(())
    }

    #[cold]
    fn handle_interim(
        &mut self,
        response: &mut Response,
        limits: &Limits,
    ) -> Result<(), ErrorKind> {
        let head = std::mem::take(&mut response.0.head);
        if head.status == 101 {
            return Err(PeerFault::UnexpectedUpgrade.into());
        }
        if self.interim == limits.interim_responses {
            return Err(LimitExceeded::InterimResponses(limits.interim_responses).into());
        }
        self.interim += 1;
        if head.status == 100
            && let Send::AwaitContinue(_) = self.send
        {
            self.send = self.body_state();
        }
        response.0.interim.push(head);
        self.recv = Recv::Head {
            scan: HeadScan::default(),
            start: response.0.buffer.len(),
        };
        Ok(())
    }

    /// How the body of the final response is framed (RFC 9112 §6.3), and whether the connection can outlive it.
    #[inline(always)] // into its only caller
    fn body_of(
        &mut self,
        status: u16,
        version: Version,
        framing: Framing,
        limits: &Limits,
    ) -> Result<Recv, ErrorKind> {
        self.keep_alive_timeout = framing.keep_alive_timeout;
        if framing.close {
            self.close.get_or_insert(CloseReason::ResponseSaidClose);
        } else if version == Version::Http10 && !framing.keep_alive {
            self.close.get_or_insert(CloseReason::Http10);
        }
        let usual = status == 200 && self.kind == RequestKind::Ordinary;
        if !usual && self.is_bodiless(status, &framing) {
            return Ok(Recv::Done);
        }
        match (
            framing.transfer_encoding,
            framing.content_length.transpose()?,
        ) {
            (TransferEncoding::Unsupported, _) => {
                Err(PeerFault::UnsupportedTransferEncoding.into())
            }
            (TransferEncoding::Chunked, _) if version == Version::Http10 => {
                Err(PeerFault::UnsupportedTransferEncoding.into())
            }
            (TransferEncoding::Chunked, length) => {
                if length.is_some() {
                    self.close.get_or_insert(CloseReason::AmbiguousFraming);
                }
                Ok(Recv::Chunked(ChunkDecoder::new()))
            }
            (TransferEncoding::Absent, Some(0)) => Ok(Recv::Done),
            (TransferEncoding::Absent, Some(length)) => match self.body_limit(limits) {
                Some(limit) if length > limit => Err(LimitExceeded::BodyBytes(limit).into()),
                _ => Ok(Recv::Length(length)),
            },
            (TransferEncoding::Absent, None) => {
                self.close.get_or_insert(CloseReason::UntilClose);
                Ok(Recv::UntilClose)
            }
        }
    }

    /// Whether the response has no body, whatever its headers say.
    #[cold]
    fn is_bodiless(&mut self, status: u16, framing: &Framing) -> bool {
        let handed_over =
            status == 101 || (self.kind == RequestKind::Connect && (200..300).contains(&status));
        if handed_over {
            self.close = Some(CloseReason::HandedOver);
            return true;
        }
        if self.kind != RequestKind::Head && !matches!(status, 204 | 304) {
            return false;
        }
        let faulty = matches!(framing.content_length, Some(Err(_)))
            || framing.transfer_encoding == TransferEncoding::Unsupported
            || (status == 204 && framing.transfer_encoding != TransferEncoding::Absent);
        if faulty {
            self.close.get_or_insert(CloseReason::AmbiguousFraming);
        }
        true
    }

    fn handle_chunks(
        &mut self,
        input: &[u8],
        response: &mut Response,
        limits: &Limits,
    ) -> Result<usize, ErrorKind> {
        let limit = self.body_limit(limits);
        let mut pos = 0;
        loop {
            let Recv::Chunked(decoder) = &mut self.recv else {
                return Ok(0);
            };
            match decoder.next(input, &mut pos, limits, limit)? {
                Chunk::Data(n) => self.keep(&input[pos - n..pos], response, limits)?,
                Chunk::More => return Ok(pos),
                Chunk::Last => break,
            }
        }
        self.recv = Recv::Trailers {
            start: response.0.buffer.len(),
            line: TrailerLine::Start,
        };
        Ok(pos)
    }

    fn handle_trailer_bytes(
        &mut self,
        input: &[u8],
        response: &mut Response,
        limits: &Limits,
    ) -> Result<usize, ErrorKind> {
        let Recv::Trailers { start, line } = &mut self.recv else {
            return Ok(0);
        };
        for (at, &byte) in input.iter().enumerate() {
            response.0.buffer.push(byte);
            *line = match (*line, byte) {
                (TrailerLine::Start, b'\r') => TrailerLine::StartCr,
                (TrailerLine::StartCr, b'\n') => {
                    let range = *start..response.0.buffer.len();
                    self.recv = Recv::Done;
                    finish_trailers(range, response, limits)?;
                    return Ok(at + 1);
                }
                (TrailerLine::Inside, b'\r') => TrailerLine::InsideCr,
                (TrailerLine::InsideCr, b'\n') => TrailerLine::Start,
                (TrailerLine::Start | TrailerLine::Inside, byte) if byte != b'\n' => {
                    TrailerLine::Inside
                }
                _ => return Err(PeerFault::BadTrailer.into()),
            };
            if response.0.buffer.len() - *start > limits.trailer_bytes {
                return Err(LimitExceeded::TrailerBytes(limits.trailer_bytes).into());
            }
        }
        Ok(input.len())
    }

    /// Takes in the end of the stream.
    ///
    /// # Errors
    /// The response was not complete.
    pub fn handle_eof(&mut self) -> Result<(), PeerFault> {
        match self.recv {
            Recv::UntilClose if self.is_held() => {
                self.recv = Recv::Decoding;
                Ok(())
            }
            // No framing vouches for an empty body here, so an empty coding is a broken one.
            Recv::UntilClose if self.decoder.as_ref().is_some_and(|d| !d.is_complete()) => {
                Err(PeerFault::BadContentCoding)
            }
            Recv::UntilClose => {
                self.recv = Recv::Done;
                Ok(())
            }
            Recv::Decoding | Recv::Done => Ok(()),
            Recv::Head { .. } if self.received == 0 => Err(PeerFault::Empty),
            Recv::Length(_) if mutation::on(Mutation::TruncatedBody) => {
                self.recv = Recv::Done;
                Ok(())
            }
            _ => Err(PeerFault::Truncated),
        }
    }

    /// How many bytes of body of known length are still to come: a driver can read those into the response itself,
    /// behind what is there, and report to [`handle_body_appended`](Self::handle_body_appended).
    pub fn body_left(&self) -> Option<u64> {
        match self.recv {
            Recv::Length(left) if self.mode != BodyMode::Discard && self.decoder.is_none() => {
                Some(left)
            }
            _ => None,
        }
    }

    /// Takes note of `n` bytes that the driver has appended to the response's body. What is more than
    /// [`body_left`](Self::body_left) is surplus, and is cut off.
    pub fn handle_body_appended(&mut self, n: usize, response: &mut Response) {
        let Recv::Length(left) = &mut self.recv else {
            return;
        };
        let own = usize::try_from(*left).map_or(n, |left| left.min(n));
        *left -= own as u64;
        if *left == 0 {
            self.recv = Recv::Done;
        }
        self.received += own as u64;
        if own < n {
            response.0.body.truncate(response.0.body.len() - (n - own));
            self.close.get_or_insert(CloseReason::Surplus);
        }
    }

    /// Sets how many decoded bytes may wait in the response's body in [`BodyMode::Stream`]. With as many there,
    /// decoding [stops](Self::is_held). Without this, it does not.
    pub fn set_stream_buffer(&mut self, bytes: usize) {
        self.stream_buffer = bytes.max(1);
    }

    /// Whether decoding has stopped because the consumer of the body is behind. The driver then reads no more, and
    /// calls [`handle_room`](Self::handle_room) when the body has become shorter.
    #[inline]
    pub fn is_held(&self) -> bool {
        self.decoder.as_ref().is_some_and(|d| d.is_held())
    }

    /// Goes on to decode what has been received: the response's body has room again.
    ///
    /// # Errors
    /// A broken coding or an exceeded limit; the connection must be closed.
    pub fn handle_room(
        &mut self,
        response: &mut Response,
        limits: &Limits,
    ) -> Result<(), ErrorKind> {
        let bounds = self.bounds(limits);
        if let Some(decoder) = &mut self.decoder {
            decoder.handle_room(&mut response.0.body, bounds)?;
            self.finish_decoding(response)?;
        }
        Ok(())
    }

    pub(crate) fn mode(&self) -> BodyMode {
        self.mode
    }

    /// Gives up what is left to send; the final response has come.
    pub(crate) fn stop_sending(&mut self) {
        self.send = Send::Done;
    }

    /// From now on, drops what comes of the body: the call is over, and the connection is to be kept.
    pub fn discard(&mut self) {
        self.mode = BodyMode::Discard;
        self.decoder = None;
        if matches!(self.recv, Recv::Decoding) {
            self.recv = Recv::Done;
        }
    }

    /// Whether the response is complete, and then whether the connection can serve another exchange.
    #[inline]
    pub fn done(&self) -> Option<Reuse> {
        if !matches!(self.recv, Recv::Done) {
            return None;
        }
        Some(match self.close {
            None => Reuse::Keep,
            Some(reason) => Reuse::Close(reason),
        })
    }

    /// Whether it is known already that the connection ends with this exchange.
    pub(crate) fn will_close(&self) -> bool {
        self.close.is_some()
    }

    /// Whether the final head has been received.
    pub fn has_head(&self) -> bool {
        !matches!(self.recv, Recv::Head { .. })
    }

    /// Whether part of the request is still to be sent.
    #[inline]
    pub fn is_sending(&self) -> bool {
        !matches!(self.send, Send::Done)
    }

    /// How far the request has got, should the call fail now.
    pub fn sent(&self) -> Sent {
        match (self.sent, self.received) {
            (_, 1..) => Sent::Partial,
            (0, 0) => Sent::Nothing,
            (_, 0) => Sent::NoReplyByte,
        }
    }

    /// What the exchange is waiting for.
    #[inline]
    pub fn phase(&self) -> Phase {
        match self.recv {
            Recv::Head { .. } if self.received == 0 && self.is_sending() => Phase::Send,
            Recv::Head { .. } if self.received == 0 => Phase::FirstByte,
            Recv::Head { .. } => Phase::Head,
            _ => Phase::Body,
        }
    }

    /// Bytes of the response received so far.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// The server's `Keep-Alive: timeout=N`, if it gave one.
    #[inline]
    pub fn keep_alive_timeout(&self) -> Option<Duration> {
        self.keep_alive_timeout
            .map(|seconds| Duration::from_secs(seconds.into()))
    }

    #[inline]
    fn keep(
        &mut self,
        bytes: &[u8],
        response: &mut Response,
        limits: &Limits,
    ) -> Result<(), ErrorKind> {
        if self.decoder.is_some() {
            return self.decode(bytes, response, limits);
        }
        if self.mode != BodyMode::Discard {
            response.0.body.extend_from_slice(bytes);
        }
        Ok(())
    }

    #[cold]
    fn decode(
        &mut self,
        bytes: &[u8],
        response: &mut Response,
        limits: &Limits,
    ) -> Result<(), ErrorKind> {
        let bounds = self.bounds(limits);
        match &mut self.decoder {
            Some(decoder) => decoder.handle_input(bytes, &mut response.0.body, bounds),
            None => Ok(()),
        }
    }

    fn bounds<'l>(&self, limits: &'l Limits) -> Bounds<'l> {
        let (decoded, hold_at) = match self.mode {
            BodyMode::Buffer => (limits.decoded_bytes, usize::MAX),
            BodyMode::Stream | BodyMode::Discard => (None, self.stream_buffer),
        };
        Bounds {
            limits,
            decoded,
            hold_at,
        }
    }

    /// The final head is there, and the request asked for decoding.
    #[cold]
    fn begin_decoding(
        &mut self,
        response: &mut Response,
        limits: &Limits,
    ) -> Result<(), ErrorKind> {
        // The codings are those of the whole representation (RFC 9110 §14.4): a part (206) has neither their beginning
        // nor their end.
        if self.mode == BodyMode::Discard
            || matches!(self.recv, Recv::Done)
            || response.status() == 206
        {
            return Ok(());
        }
        let stack = coding::stack(response.header_all("content-encoding"), self.codings)?;
        if stack[0].is_none() {
            return Ok(());
        }
        let decoder = response.0.decoder.take().unwrap_or_else(Decoder::new);
        self.decoder.insert(decoder).begin(stack, limits)?;
        response.0.decoded = true;
        Ok(())
    }

    /// If the framing has ended, sees to it that the codings have, too.
    #[cold]
    fn finish_decoding(&mut self, response: &mut Response) -> Result<(), PeerFault> {
        if !matches!(self.recv, Recv::Done | Recv::Decoding) {
            return Ok(());
        }
        let Some(decoder) = &mut self.decoder else {
            return Ok(());
        };
        if decoder.is_held() {
            self.recv = Recv::Decoding;
            return Ok(());
        }
        if !decoder.is_complete() && decoder.received() > 0 {
            self.recv = Recv::Decoding; // never done
            return Err(PeerFault::BadContentCoding);
        }
        self.recv = Recv::Done;
        decoder.reset(decoder_cap(response.0.retained));
        response.0.decoder = self.decoder.take();
        Ok(())
    }

    /// Whether there is a decoder that the response has not got back.
    #[inline]
    pub(crate) fn has_decoder(&self) -> bool {
        self.decoder.is_some()
    }

    /// Gives the decoder of a body whose end was that of the connection to the response, for the next body.
    #[cold]
    pub(crate) fn give_back(&mut self, response: &mut Response) {
        if let Some(mut decoder) = self.decoder.take() {
            decoder.reset(decoder_cap(response.0.retained));
            response.0.decoder = Some(decoder);
        }
    }

    fn body_limit(&self, limits: &Limits) -> Option<u64> {
        match self.mode {
            BodyMode::Buffer => limits.body_bytes,
            BodyMode::Stream | BodyMode::Discard => None,
        }
    }
}

/// The last `left` bytes of what is in memory.
#[inline]
fn unsent(request: &Request, left: usize) -> [&[u8]; 2] {
    let [head, body] = request.in_memory();
    match left.checked_sub(body.len()) {
        Some(left) => [&head[head.len().saturating_sub(left)..], body],
        None => [&body[body.len() - left..], &[]],
    }
}

fn finish_trailers(
    range: std::ops::Range<usize>,
    response: &mut Response,
    limits: &Limits,
) -> Result<(), ErrorKind> {
    let first = response.0.fields.len();
    if range.len() > 2 {
        head::parse_trailers(
            &response.0.buffer,
            range,
            limits.header_count,
            &mut response.0.fields,
        )?;
    }
    response.0.trailers = first as u32..response.0.fields.len() as u32;
    Ok(())
}
