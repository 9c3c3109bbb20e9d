//! One request and its response on one connection (RFC 9112 §6, §9), as a state machine over bytes.
//!
//! The driver writes what [`poll_send`](Exchange::poll_send) returns, passes what it reads to
//! [`handle_read`](Exchange::handle_read), reports the end of the stream with [`handle_eof`](Exchange::handle_eof), and
//! stops when [`done`](Exchange::done) says whether the connection may serve another exchange. The outcome never
//! depends on how the input is split into reads. Connections, time, retries and redirects belong to the layers above.
//!
//! Framing of the response, in the order of RFC 9112 §6.3:
//!
//! | response | body |
//! |---|---|
//! | to HEAD; 1xx, 204, 304 | none, whatever the headers say |
//! | 2xx to CONNECT, 101 to an Upgrade | none; the connection is handed over |
//! | Transfer-Encoding: chunked | chunked; if there is also a Content-Length, the connection is closed afterwards |
//! | Transfer-Encoding: identity, in a lenient reading | as without it, and the connection is closed afterwards |
//! | any other Transfer-Encoding, or any in HTTP/1.0 | error |
//! | Content-Length | that many bytes |
//! | neither | until the connection closes |

use std::time::Duration;

use super::chunked::{Chunk, ChunkDecoder};
use super::coding::{self, Codings, Decoded, Decoder};
use super::head::{self, Framing, HeadScan, TransferEncoding};
use super::request::{Fill, Outline, RequestKind};
use super::response::{HeadParts, Inner, decoder_cap, range};
use super::{Limits, Request, Response, Version};
use crate::error::{ErrorKind, LimitExceeded, Misuse, PeerFault, Phase, Sent};

/// One request and its response on one connection.
///
/// ```
/// use courser::proto::steps::{BodyMode, Defaults, Exchange, Reuse, SendStep};
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
    send: SendState,
    recv: RecvState,
    mode: BodyMode,
    request: Outline,
    /// Why the connection must close after this exchange, if that is known already.
    close: Option<CloseReason>,
    /// The response has no body by its kind, and its head does not say that the length is 0.
    stray_body: bool,
    /// `Keep-Alive: timeout=N` of the response, in seconds.
    keep_alive_timeout: Option<u32>,
    /// The codings that the request offered, to be decoded in the body.
    codings: Codings,
    /// Decodes the body; present until the decoded body is complete.
    decoder: Option<Box<Decoder>>,
    stream_buffer: usize,
    /// Take lines that the grammar does not permit and that are harmless.
    lenient: bool,
    early: bool,
    interim: usize,
    sent: u64,
    received: u64,
}

/// What is done with the body of the response.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BodyMode {
    /// The whole body goes to the response. An error beyond [`Limits::body_bytes`].
    Buffer,
    /// The body goes to the response, and a consumer takes it from there. The driver stops reading when too much waits.
    Stream,
    /// The body is dropped: no caller waits for it, and the connection shall serve again.
    Discard,
}

/// Whether the connection may serve another exchange.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Reuse {
    /// It may: the end of the message was seen, and neither side announced the end of the connection.
    Keep,
    /// It may not, for this reason.
    Close(CloseReason),
}

/// Why a connection is not used again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum CloseReason {
    /// The request had `Connection: close`.
    RequestSaidClose,
    /// The response had `Connection: close`.
    ResponseSaidClose,
    /// An HTTP/1.0 response without `Connection: keep-alive` (RFC 9112 §9.3).
    Http10,
    /// The end of the connection was the end of the body.
    UntilClose,
    /// Length headers that contradict each other, or that stand in a response without a body (RFC 9112 §6.3).
    AmbiguousFraming,
    /// The peer sent bytes after the end of the response.
    Surplus,
    /// The response was complete, or refused the request, before the whole request was sent, or came before it.
    EarlyResponse,
    /// The connection has switched protocols (101, or 2xx to CONNECT).
    HandedOver,
    /// While the connection was idle, the peer closed it or sent something.
    PeerClosed,
}

/// What the driver has to do for the request.
#[derive(Debug)]
pub enum SendStep<'a> {
    /// Write these bytes, the first slice before the second, then report the count to [`Exchange::handle_sent`].
    Write([&'a [u8]; 2]),
    /// Wait for 100 (Continue) before the body, at most this long. Then call [`Exchange::handle_continue_timeout`].
    AwaitContinue(Duration),
    /// Wait until the source of the body has data.
    AwaitSource,
    /// Nothing: the whole request is sent.
    Done,
}

#[derive(Debug)]
enum SendState {
    /// The encoded head with a small body in one buffer, and a larger body in another: so many bytes of both are left.
    Fixed(usize),
    /// The head alone, from this offset: its body waits for 100 (Continue), or is a stream.
    Head(usize),
    AwaitContinue,
    /// After its head: a body from memory, or the current piece of a stream, from this offset.
    Body(usize),
    /// The source of the stream had no bytes.
    AwaitSource,
    Done,
}

#[derive(Debug)]
enum RecvState {
    Head {
        scan: HeadScan,
        /// Where this head begins in the buffer of the response.
        start: usize,
    },
    Length(u64),
    Chunked(ChunkDecoder),
    Trailers {
        start: usize,
        /// The bytes that came last. Lines end only in CRLF, and CR stands nowhere else.
        last: u32,
    },
    UntilClose,
    /// The framing has ended; the decoder still has output.
    Decoding,
    Done,
}

impl Exchange {
    /// An exchange that is over.
    pub(crate) fn over() -> Self {
        Self {
            send: SendState::Done,
            recv: RecvState::Done,
            mode: BodyMode::Discard,
            request: Outline::default(),
            close: None,
            stray_body: false,
            keep_alive_timeout: None,
            codings: Codings::default(),
            decoder: None,
            stream_buffer: usize::MAX,
            lenient: false,
            early: false,
            interim: 0,
            sent: 0,
            received: 0,
        }
    }

    /// Begins the exchange of an encoded request.
    pub fn new(request: &Request, mode: BodyMode) -> Self {
        let mut exchange = Self::over();
        exchange.begin(request, mode);
        exchange
    }

    /// Begins the exchange of another encoded request on the same connection. What was set for the reading of responses
    /// still holds.
    #[inline(always)] // on the path of every call
    pub(crate) fn begin(&mut self, request: &Request, mode: BodyMode) {
        // Written one by one: few of them change from one request to the next.
        self.request = request.outline();
        self.send = match self.request.streams || self.request.awaits_continue {
            true => SendState::Head(0),
            false => SendState::Fixed(self.request.length),
        };
        self.recv = RecvState::Head {
            scan: HeadScan::new(self.lenient),
            start: 0,
        };
        self.mode = mode;
        self.close = request
            .says_close()
            .then_some(CloseReason::RequestSaidClose);
        self.stray_body = false;
        self.keep_alive_timeout = None;
        self.codings = request.codings();
        if self.decoder.is_some() {
            self.decoder = None;
        }
        self.early = false;
        self.interim = 0;
        self.sent = 0;
        self.received = 0;
    }

    /// What the driver has to do next for the request.
    ///
    /// # Errors
    /// The stream of the body failed, or has another length than was declared.
    #[inline]
    pub fn poll_send<'r>(&mut self, request: &'r mut Request) -> Result<SendStep<'r>, Misuse> {
        if let SendState::Fixed(left @ 1..) = self.send {
            return Ok(SendStep::Write(unsent(request, left)));
        }
        self.poll_send_in_steps(request)
    }

    fn poll_send_in_steps<'r>(&mut self, request: &'r mut Request) -> Result<SendStep<'r>, Misuse> {
        loop {
            match self.send {
                SendState::Head(at) if at < request.encoded().len() => {
                    if at == 0 {
                        request.rewind_stream();
                    }
                    return Ok(SendStep::Write([&request.encoded()[at..], &[]]));
                }
                SendState::Head(_) if self.request.awaits_continue => {
                    self.send = SendState::AwaitContinue;
                }
                SendState::Head(_) => self.send = SendState::Body(0),
                SendState::AwaitContinue => {
                    let wait = request.expects().unwrap_or_default();
                    return Ok(SendStep::AwaitContinue(wait));
                }
                SendState::Body(at) if at < request.separate_body().len() => {
                    return Ok(SendStep::Write([&request.separate_body()[at..], &[]]));
                }
                SendState::Body(at) if at < request.stream_pending().len() => {
                    return Ok(SendStep::Write([&request.stream_pending()[at..], &[]]));
                }
                SendState::Body(_) | SendState::AwaitSource if self.request.streams => {
                    self.send = match request.fill_stream()? {
                        Fill::Filled => SendState::Body(0),
                        Fill::Pending => {
                            self.send = SendState::AwaitSource;
                            return Ok(SendStep::AwaitSource);
                        }
                        Fill::Ended => SendState::Done,
                    };
                }
                _ => {
                    self.send = SendState::Done;
                    return Ok(SendStep::Done);
                }
            }
        }
    }

    /// Reads what is wrong by the grammar and harmless for the framing, as browsers do; see
    /// [`HostConfig::ignore_invalid_headers`](crate::HostConfig::ignore_invalid_headers). To be called before the first
    /// read.
    pub fn ignore_invalid_headers(&mut self) {
        self.lenient = true;
        if let RecvState::Head { scan, .. } = &mut self.recv {
            *scan = HeadScan::new(true);
        }
    }

    /// Reports that `n` bytes of the last [`SendStep::Write`] were written.
    #[inline]
    pub fn handle_sent(&mut self, n: usize) {
        self.sent += n as u64;
        match &mut self.send {
            SendState::Fixed(left) => {
                *left = left.saturating_sub(n);
                if *left == 0 {
                    self.send = SendState::Done;
                }
            }
            SendState::Head(at) | SendState::Body(at) => *at += n,
            SendState::AwaitContinue | SendState::AwaitSource | SendState::Done => {}
        }
    }

    /// Sets how many bytes of the request were written, and whether these are all: for requests that are written
    /// together with others.
    #[inline]
    pub(crate) fn set_sent(&mut self, bytes: u64, whole: bool) {
        self.sent = bytes;
        if whole {
            self.send = SendState::Done;
        }
    }

    /// Reports that the server has not answered `Expect: 100-continue` in time. The body is sent now (RFC 9110
    /// §10.1.1).
    pub fn handle_continue_timeout(&mut self) {
        if self.awaits_continue() {
            self.send = SendState::Body(0);
        }
    }

    /// Whether the body waits for 100 (Continue).
    pub fn awaits_continue(&self) -> bool {
        matches!(self.send, SendState::AwaitContinue)
    }

    /// Whether the source of the body had no bytes when it was asked last.
    #[inline]
    pub fn awaits_source(&self) -> bool {
        matches!(self.send, SendState::AwaitSource)
    }

    /// Parses what was read, and returns how many bytes of it belong to this exchange. If there are fewer than given,
    /// the response is complete, and the rest is surplus (or belongs to the new protocol after a hand-over).
    ///
    /// # Errors
    /// A malformed response or an exceeded limit. The connection must be closed.
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

    /// Like [`handle_read`](Self::handle_read), but the bytes that are left over belong to the next exchange.
    #[inline]
    pub(crate) fn handle_own(
        &mut self,
        input: &[u8],
        response: &mut Response,
        limits: &Limits,
    ) -> Result<usize, ErrorKind> {
        self.received += input.len() as u64;
        let mut used = self.take_usual(input, response, limits);
        if used == 0 {
            let sink = &mut Sink { response, limits };
            while used < input.len() && !matches!(self.recv, RecvState::Done) {
                match self.handle_piece(&input[used..], sink)? {
                    0 => break,
                    n => used += n,
                }
            }
            if self.decoder.is_some() {
                self.finish_decoding(response)?;
            }
        }
        self.received -= (input.len() - used) as u64;
        Ok(used)
    }

    /// Takes a whole response of the usual kind: its head is that of the response before, and says the length of its body
    /// and nothing else. Returns its length, or 0 if the response is another one, or is not whole.
    #[inline(always)] // on the path of every call
    fn take_usual(&mut self, input: &[u8], response: &mut Response, limits: &Limits) -> usize {
        let is_usual = self.request.is_usual
            && matches!(self.recv, RecvState::Head { .. })
            && matches!(self.send, SendState::Done)
            && self.mode == BodyMode::Buffer;
        let inner = &mut *response.0;
        let (head, body) = (inner.kept_length(), inner.first_body);
        let rest = input.len().saturating_sub(head) as u64;
        if !is_usual
            || body == 0
            || body > rest
            || limits.body_bytes.is_some_and(|most| body > most)
            || inner.repeat_head(input, limits).is_none()
        {
            return 0;
        }
        let end = head + body as usize;
        inner.body.extend_from_slice(&input[head..end]);
        self.recv = RecvState::Done;
        end
    }

    /// Parses one part of the response, or a head together with a body of known length, which is the usual case.
    /// Returns 0 only when the framing has ended.
    fn handle_piece(&mut self, input: &[u8], sink: &mut Sink<'_>) -> Result<usize, ErrorKind> {
        let mut used = 0;
        if let RecvState::Head { .. } = self.recv {
            used = self.handle_head_bytes(input, sink)?;
        }
        match &mut self.recv {
            RecvState::Length(left) if used < input.len() => {
                let rest = &input[used..];
                let n = usize::try_from(*left).map_or(rest.len(), |left| left.min(rest.len()));
                *left -= n as u64;
                let ended = *left == 0;
                self.append_body(&rest[..n], sink)?;
                if ended {
                    self.recv = RecvState::Done;
                }
                Ok(used + n)
            }
            _ if used > 0 => Ok(used),
            RecvState::Chunked(_) => self.handle_chunks(input, sink),
            RecvState::Trailers { .. } => {
                let used = self.handle_trailer_bytes(input, sink)?;
                if self.request.reading.keeps_chunks {
                    self.append_body(&input[..used], sink)?;
                }
                Ok(used)
            }
            RecvState::UntilClose => {
                let before = match &self.decoder {
                    Some(decoder) => decoder.received(),
                    None => sink.response.0.body.len() as u64,
                };
                if let Some(limit) = self.body_limit(sink.limits)
                    && before + input.len() as u64 > limit
                {
                    let room = (limit - before) as usize;
                    self.append_body(&input[..room], sink)?;
                    return Err(LimitExceeded::BodyBytes(limit).into());
                }
                self.append_body(input, sink)?;
                Ok(input.len())
            }
            _ => Ok(0),
        }
    }

    #[inline(always)] // into its only caller
    fn handle_head_bytes(&mut self, input: &[u8], sink: &mut Sink<'_>) -> Result<usize, ErrorKind> {
        let inner = &mut *sink.response.0;
        let used = if let Some(length) = inner.repeat_head(input, sink.limits) {
            length
        } else if inner.buffer.is_empty()
            && let Some(length) = head::parse_plain(input, sink.limits, inner)
        {
            inner.buffer.extend_from_slice(&input[..length]);
            inner.framing = Framing::of(&inner.buffer, &inner.fields);
            inner.first = inner.head.clone();
            inner.first_body = inner.framing.only_length(&inner.head);
            length
        } else {
            match self.gather_head(input, sink)? {
                (used, true) => used,
                (used, false) => return Ok(used),
            }
        };
        self.handle_head(sink)?;
        Ok(used)
    }

    /// Collects a part of a head that is not plain or that does not come in one read, and parses the head once it is
    /// complete. Returns how many bytes it used, and whether the head is complete.
    #[cold]
    fn gather_head(
        &mut self,
        input: &[u8],
        sink: &mut Sink<'_>,
    ) -> Result<(usize, bool), ErrorKind> {
        let RecvState::Head { scan, start } = &mut self.recv else {
            return Ok((0, false));
        };
        let (inner, limits) = (&mut *sink.response.0, sink.limits);
        *start = (*start).min(inner.buffer.len()); // the response may have been cleared since
        let room = limits.head_bytes.saturating_sub(inner.buffer.len());
        let within = &input[..input.len().min(room)];
        let end = scan.handle_piece(within, limits.header_line)?;
        if end.is_none() && within.len() < input.len() {
            return Err(LimitExceeded::HeadBytes(limits.head_bytes).into());
        }
        let n = end.unwrap_or(within.len());
        inner.buffer.extend_from_slice(&input[..n]);
        if end.is_some() {
            let dropped = scan.parse(inner, *start, limits)?;
            inner.framing = Framing::of(&inner.buffer, &inner.fields[range(&inner.head.fields)]);
            if dropped > 0 {
                inner.dropped_lines += dropped;
                // Another reader may take such a line for one about the connection.
                self.close.get_or_insert(CloseReason::AmbiguousFraming);
            }
        }
        Ok((n, end.is_some()))
    }

    #[inline(always)] // into its only caller
    fn handle_head(&mut self, sink: &mut Sink<'_>) -> Result<(), ErrorKind> {
        let inner = &mut *sink.response.0;
        let status = inner.head.status;
        if status < 200 && !(status == 101 && self.request.kind == RequestKind::Upgrade) {
            return self.handle_interim(sink);
        }
        if let Some(Err(_)) = inner.framing.content_length {
            // The head has an invalid length, or several.
            let fields = &inner.fields[range(&inner.head.fields)];
            inner.framing.content_length = Some(head::content_length(&inner.buffer, fields));
        }
        self.recv = self.body_of(inner, sink.limits)?;
        if self.is_sending() {
            self.handle_early_head(status);
        }
        if !self.codings.is_empty() {
            self.begin_decoding(sink)?;
        }
        Ok(())
    }

    /// The final head has come before the whole request was sent. The rest is sent all the same, unless the server does
    /// not want it: it has not asked for the body (RFC 9110 §10.1.1), or refuses the request and closes (RFC 9112 §9.5).
    #[cold]
    fn handle_early_head(&mut self, status: u16) {
        let is_refused = self.close.is_some() && !(200..300).contains(&status);
        if is_refused || self.awaits_continue() {
            self.stop_sending();
        }
    }

    #[cold]
    fn handle_interim(&mut self, sink: &mut Sink<'_>) -> Result<(), ErrorKind> {
        let (inner, most) = (&mut *sink.response.0, sink.limits.interim_responses);
        let head = std::mem::take(&mut inner.head);
        if head.status == 101 {
            return Err(PeerFault::UnexpectedUpgrade.into());
        }
        if self.interim == most {
            return Err(LimitExceeded::InterimResponses(most).into());
        }
        self.interim += 1;
        if head.status == 100 {
            self.handle_continue_timeout();
        }
        inner.interim.push(head);
        self.recv = RecvState::Head {
            scan: HeadScan::new(self.lenient),
            start: inner.buffer.len(),
        };
        Ok(())
    }

    /// How the body of the final response is framed (RFC 9112 §6.3). Notes in `close` whether the connection must
    /// close.
    #[inline(always)] // into its only caller
    fn body_of(&mut self, inner: &Inner, limits: &Limits) -> Result<RecvState, ErrorKind> {
        let Inner { head, framing, .. } = inner;
        let (status, version) = (head.status, head.version);
        self.keep_alive_timeout = framing.keep_alive_timeout;
        if framing.close {
            self.close.get_or_insert(CloseReason::ResponseSaidClose);
        } else if version == Version::Http10 && !framing.keep_alive {
            self.close.get_or_insert(CloseReason::Http10);
        }
        let usual = status == 200 && self.request.kind == RequestKind::Ordinary;
        if !usual && self.is_bodiless(status, framing)? {
            return Ok(RecvState::Done);
        }
        let transfer_encoding = match framing.transfer_encoding {
            TransferEncoding::Identity if self.lenient => {
                self.close.get_or_insert(CloseReason::AmbiguousFraming);
                TransferEncoding::Absent
            }
            transfer_encoding => transfer_encoding,
        };
        match (transfer_encoding, framing.content_length.transpose()?) {
            (TransferEncoding::Absent, length)
                if length.is_none() || self.request.reading.ignores_length =>
            {
                self.close.get_or_insert(CloseReason::UntilClose);
                Ok(RecvState::UntilClose)
            }
            (TransferEncoding::Absent, Some(0)) => Ok(RecvState::Done),
            (TransferEncoding::Absent, Some(length)) => match self.body_limit(limits) {
                Some(limit) if length > limit => Err(LimitExceeded::BodyBytes(limit).into()),
                _ => Ok(RecvState::Length(length)),
            },
            (TransferEncoding::Chunked, length) if version == Version::Http11 => {
                if length.is_some() {
                    self.close.get_or_insert(CloseReason::AmbiguousFraming);
                }
                let decoder = ChunkDecoder::new(self.lenient, self.body_limit(limits));
                Ok(RecvState::Chunked(decoder))
            }
            _ => Err(PeerFault::UnsupportedTransferEncoding.into()),
        }
    }

    /// Whether the response has no body, whatever its headers say.
    ///
    /// # Errors
    /// 204 or 304 with an invalid `Content-Length`: another reader may take what follows for a body.
    #[cold]
    fn is_bodiless(&mut self, status: u16, framing: &Framing) -> Result<bool, PeerFault> {
        let handed_over = status == 101
            || (self.request.kind == RequestKind::Connect && (200..300).contains(&status));
        if handed_over && self.early {
            return Err(PeerFault::Unsolicited);
        }
        if handed_over {
            self.close = Some(CloseReason::HandedOver);
            return Ok(true);
        }
        let never_has_body = matches!(status, 204 | 304);
        if self.request.kind != RequestKind::Head && !never_has_body {
            return Ok(false);
        }
        if let (true, Some(Err(fault))) = (never_has_body, framing.content_length) {
            return Err(fault);
        }
        let ambiguous = matches!(framing.content_length, Some(Err(_)))
            || !matches!(
                framing.transfer_encoding,
                TransferEncoding::Absent | TransferEncoding::Chunked
            )
            // No server may send a length with 204 (RFC 9110 §8.6): a body may follow.
            || (status == 204
                && (framing.transfer_encoding != TransferEncoding::Absent
                    || matches!(framing.content_length, Some(Ok(1..)))));
        if ambiguous {
            self.close.get_or_insert(CloseReason::AmbiguousFraming);
        }
        self.stray_body = !matches!(framing.content_length, Some(Ok(0)));
        Ok(true)
    }

    fn handle_chunks(&mut self, input: &[u8], sink: &mut Sink<'_>) -> Result<usize, ErrorKind> {
        let mut pos = 0;
        loop {
            let RecvState::Chunked(decoder) = &mut self.recv else {
                return Ok(0);
            };
            let begun = pos;
            let chunk = decoder.next(input, &mut pos, sink.limits)?;
            if self.request.reading.keeps_chunks {
                self.append_body(&input[begun..pos], sink)?;
            }
            match chunk {
                Chunk::Data(_) if self.request.reading.keeps_chunks => {}
                Chunk::Data(n) => self.append_body(&input[pos - n..pos], sink)?,
                Chunk::More => return Ok(pos),
                Chunk::Last => break,
            }
        }
        self.recv = RecvState::Trailers {
            start: sink.response.0.buffer.len(),
            last: b'\n'.into(),
        };
        Ok(pos)
    }

    fn handle_trailer_bytes(
        &mut self,
        input: &[u8],
        sink: &mut Sink<'_>,
    ) -> Result<usize, ErrorKind> {
        let RecvState::Trailers { start, last } = &mut self.recv else {
            return Ok(0);
        };
        let (buffer, most) = (&mut sink.response.0.buffer, sink.limits.trailer_bytes);
        *start = (*start).min(buffer.len()); // the response may have been cleared since
        for (at, &byte) in input.iter().enumerate() {
            let is_after_cr = last.to_le_bytes()[0] == b'\r';
            if byte == 0 || is_after_cr != (byte == b'\n') {
                return Err(PeerFault::BadTrailer.into());
            }
            buffer.push(byte);
            *last = *last << 8 | u32::from(byte);
            if last.to_be_bytes().ends_with(b"\n\r\n") {
                let start = *start;
                self.recv = RecvState::Done;
                self.finish_trailers(start, sink)?;
                return Ok(at + 1);
            }
            if buffer.len() - *start > most {
                return Err(LimitExceeded::TrailerBytes(most).into());
            }
        }
        Ok(input.len())
    }

    fn finish_trailers(&mut self, start: usize, sink: &mut Sink<'_>) -> Result<(), ErrorKind> {
        let inner = &mut *sink.response.0;
        let first = inner.fields.len();
        if inner.is_cleared {
            // The trailers take the place of what a cleared response has kept.
            inner.first = HeadParts::default();
        }
        if inner.buffer.len() - start > 2 {
            let dropped = head::parse_trailers(inner, start, sink.limits, self.lenient)?;
            inner.dropped_lines += dropped;
            if dropped > 0 {
                self.close.get_or_insert(CloseReason::AmbiguousFraming);
            }
        }
        inner.trailers = first as u32..inner.fields.len() as u32;
        Ok(())
    }

    /// Reports the end of the stream.
    ///
    /// # Errors
    /// The response was not complete.
    pub fn handle_eof(&mut self) -> Result<(), PeerFault> {
        match self.recv {
            RecvState::UntilClose if self.is_held() => {
                self.recv = RecvState::Decoding;
                Ok(())
            }
            // Here no framing confirms that the body is empty, so an empty coded body counts as broken.
            RecvState::UntilClose if self.decoder.as_ref().is_some_and(|d| !d.is_complete()) => {
                Err(PeerFault::BadContentCoding)
            }
            RecvState::UntilClose => {
                self.recv = RecvState::Done;
                Ok(())
            }
            RecvState::Decoding | RecvState::Done => Ok(()),
            RecvState::Head { .. } if self.received == 0 => Err(PeerFault::Empty),
            _ => Err(PeerFault::Truncated),
        }
    }

    /// How many bytes are left of a body of known length. A driver may append these to the body of the response itself
    /// and report them to [`handle_body_appended`](Self::handle_body_appended). `None` if the body is not of this kind,
    /// is dropped, or is decoded.
    pub fn body_left(&self) -> Option<u64> {
        match self.recv {
            RecvState::Length(left) if self.mode != BodyMode::Discard && self.decoder.is_none() => {
                Some(left)
            }
            _ => None,
        }
    }

    /// Reports `n` bytes that the driver has appended to the body of the response. Bytes beyond
    /// [`body_left`](Self::body_left) are surplus and are cut off.
    pub fn handle_body_appended(&mut self, n: usize, response: &mut Response) {
        let RecvState::Length(left) = &mut self.recv else {
            return;
        };
        let own = usize::try_from(*left).map_or(n, |left| left.min(n));
        *left -= own as u64;
        if *left == 0 {
            self.recv = RecvState::Done;
        }
        self.received += own as u64;
        if own < n {
            response.0.body.truncate(response.0.body.len() - (n - own));
            self.close.get_or_insert(CloseReason::Surplus);
        }
    }

    /// Sets how many decoded bytes may wait in the body of the response in [`BodyMode::Stream`], at least 1. At this
    /// length, decoding [stops](Self::is_held). By default there is no limit.
    pub fn set_stream_buffer(&mut self, bytes: usize) {
        self.stream_buffer = bytes.max(1);
    }

    /// Whether decoding has stopped because the consumer of the body is slow. The driver then reads no more, and calls
    /// [`handle_room`](Self::handle_room) once the consumer has taken some of the body.
    #[inline]
    pub fn is_held(&self) -> bool {
        self.decoder.as_ref().is_some_and(|d| d.is_held())
    }

    /// Continues to decode what was received: the body of the response has room again.
    ///
    /// # Errors
    /// A malformed coding or an exceeded limit. The connection must be closed.
    pub fn handle_room(
        &mut self,
        response: &mut Response,
        limits: &Limits,
    ) -> Result<(), ErrorKind> {
        let sink = &mut Sink { response, limits };
        let (mode, hold_at) = (self.mode, self.stream_buffer);
        if let Some(decoder) = &mut self.decoder {
            decoder.handle_room(&mut sink.decoded(mode, hold_at))?;
            self.finish_decoding(response)?;
        }
        Ok(())
    }

    /// The answer may have come before the request was sent. The connection closes after it, and is handed over to nobody.
    pub(crate) fn expect_early(&mut self) {
        self.early = true;
        self.close.get_or_insert(CloseReason::EarlyResponse);
    }

    /// The bytes that have come were not for this exchange, and no head has come.
    pub(crate) fn disown_received(&mut self) {
        self.received = 0;
    }

    pub(crate) fn mode(&self) -> BodyMode {
        self.mode
    }

    /// Sends nothing more. If the request was not sent completely, the connection must close after this exchange.
    pub(crate) fn stop_sending(&mut self) {
        if self.is_sending() {
            self.close.get_or_insert(CloseReason::EarlyResponse);
            self.send = SendState::Done;
        }
    }

    /// From now on, drops the body: the call is over, and the connection shall serve again.
    pub fn discard(&mut self) {
        self.mode = BodyMode::Discard;
        self.decoder = None;
        match &mut self.recv {
            RecvState::Decoding => self.recv = RecvState::Done,
            RecvState::Chunked(decoder) => decoder.limit_data(u64::MAX),
            _ => {}
        }
    }

    /// From now on, drops the body, which may be read up to `most` bytes so that the connection can serve again. False
    /// if that is not worth it: the rest is longer, its end is the end of the connection, or the connection closes
    /// anyway.
    pub(crate) fn discard_within(&mut self, most: u64) -> bool {
        let is_short = match self.recv {
            RecvState::Length(left) => left <= most,
            RecvState::Chunked(_) | RecvState::Trailers { .. } => true,
            _ => false,
        };
        let worth = is_short && !self.will_close() && !self.is_sending();
        if worth {
            self.discard();
            if let RecvState::Chunked(decoder) = &mut self.recv {
                decoder.limit_data(most);
            }
        }
        worth
    }

    /// `Some` if the response is complete: whether the connection can serve another exchange.
    #[inline]
    pub fn done(&self) -> Option<Reuse> {
        if !matches!(self.recv, RecvState::Done) {
            return None;
        }
        Some(match self.close {
            None if self.is_sending() => Reuse::Close(CloseReason::EarlyResponse),
            None => Reuse::Keep,
            Some(reason) => Reuse::Close(reason),
        })
    }

    /// Whether it is certain already that the connection ends with this exchange.
    pub(crate) fn will_close(&self) -> bool {
        self.close.is_some()
    }

    /// Whether a body may follow that must not be there: a faulty server sends one after the answer to HEAD, a 204 or a
    /// 304.
    #[inline]
    pub(crate) fn may_have_stray_body(&self) -> bool {
        self.stray_body
    }

    /// Whether the final head has been received.
    pub fn has_head(&self) -> bool {
        !matches!(self.recv, RecvState::Head { .. })
    }

    /// Whether some of the request is still to be sent.
    #[inline]
    pub fn is_sending(&self) -> bool {
        !matches!(self.send, SendState::Done)
    }

    /// How far the exchange has got, for the error if the call fails now.
    pub fn sent(&self) -> Sent {
        match (self.sent, self.received) {
            (_, 1..) => Sent::ReplyBegun,
            (0, 0) => Sent::Nothing,
            (_, 0) => Sent::NoReplyByte,
        }
    }

    /// The phase of the call that the exchange is in.
    #[inline]
    pub fn phase(&self) -> Phase {
        match self.recv {
            RecvState::Head { .. } if self.received == 0 && self.is_sending() => Phase::Send,
            RecvState::Head { .. } if self.received == 0 => Phase::FirstByte,
            RecvState::Head { .. } => Phase::Head,
            _ => Phase::Body,
        }
    }

    /// Bytes of the response that have come.
    #[cfg(feature = "steps")]
    pub fn received(&self) -> u64 {
        self.received
    }

    /// The time for which the server keeps an idle connection (`Keep-Alive: timeout=N`), if it was given.
    #[inline]
    pub fn keep_alive_timeout(&self) -> Option<Duration> {
        self.keep_alive_timeout
            .map(|seconds| Duration::from_secs(seconds.into()))
    }

    #[inline]
    fn append_body(&mut self, bytes: &[u8], sink: &mut Sink<'_>) -> Result<(), ErrorKind> {
        if let Some(decoder) = &mut self.decoder {
            let out = &mut sink.decoded(self.mode, self.stream_buffer);
            decoder.handle_input(bytes, out)?;
        } else if self.mode != BodyMode::Discard {
            sink.response.0.body.extend_from_slice(bytes);
        }
        Ok(())
    }

    /// Begins to decode the body if the final head names codings that the request asked for.
    #[cold]
    fn begin_decoding(
        &mut self,
        Sink { response, limits }: &mut Sink<'_>,
    ) -> Result<(), ErrorKind> {
        // The codings were applied to the whole representation (RFC 9110 §14.4). A part of it (206) has neither their
        // beginning nor their end.
        if self.mode == BodyMode::Discard
            || matches!(self.recv, RecvState::Done)
            || response.status() == 206
        {
            return Ok(());
        }
        let stack = coding::stack(response.header_all("content-encoding"), self.codings)?;
        if stack[0].is_none() {
            return Ok(());
        }
        let decoder = response.0.decoder.take().unwrap_or_default();
        self.decoder.insert(decoder).begin(stack, limits)?;
        response.0.decoded = true;
        Ok(())
    }

    /// Once the framing has ended, checks that the codings have ended, too.
    #[cold]
    fn finish_decoding(&mut self, response: &mut Response) -> Result<(), PeerFault> {
        if !matches!(self.recv, RecvState::Done | RecvState::Decoding) {
            return Ok(());
        }
        let Some(decoder) = &mut self.decoder else {
            return Ok(());
        };
        if decoder.is_held() {
            self.recv = RecvState::Decoding;
            return Ok(());
        }
        if !decoder.is_complete() && decoder.received() > 0 {
            self.recv = RecvState::Decoding; // never becomes `Done`
            return Err(PeerFault::BadContentCoding);
        }
        self.recv = RecvState::Done;
        self.give_back(response);
        Ok(())
    }

    /// Whether the exchange still has a decoder, which the response is to get back.
    #[inline]
    pub(crate) fn has_decoder(&self) -> bool {
        self.decoder.is_some()
    }

    /// Returns the decoder to the response, for its next body.
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

/// Where the bytes of a response go, and their limits.
struct Sink<'a> {
    response: &'a mut Response,
    limits: &'a Limits,
}

impl Sink<'_> {
    /// The body, for the bytes of a decoder.
    fn decoded(&mut self, mode: BodyMode, stream_buffer: usize) -> Decoded<'_> {
        let (most, hold_at) = match mode {
            BodyMode::Buffer => (self.limits.decoded_bytes, usize::MAX),
            BodyMode::Stream | BodyMode::Discard => (None, stream_buffer),
        };
        Decoded {
            body: &mut self.response.0.body,
            limits: self.limits,
            most,
            hold_at,
        }
    }
}

/// The last `left` bytes of the request in memory.
#[inline]
fn unsent(request: &Request, left: usize) -> [&[u8]; 2] {
    let [head, body] = request.in_memory();
    match left.checked_sub(body.len()) {
        Some(left) => [&head[head.len().saturating_sub(left)..], body],
        None => [&body[body.len() - left..], &[]],
    }
}
