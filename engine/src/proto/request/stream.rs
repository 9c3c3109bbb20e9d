//! Bodies that come while the request is sent, and their framing (RFC 9112 §6, §7.1).

use std::any::Any;
use std::io::{self, Read, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::{Buf as _, Bytes};

use crate::error::Misuse;

/// A source of a request body that gives piece after piece, and says when it has the next one. See
/// [`Request::body_source`](crate::Request::body_source).
///
/// Streams of the `futures` crates and bodies of the `http_body` crate have methods of their own:
/// `Request::body_of_stream`, `Request::body_of`. [`Request::body_channel`](crate::Request::body_channel) is for pieces
/// that another thread or task makes.
///
/// ```
/// use std::io;
/// use std::task::{Context, Poll};
/// use courser::{BodySource, Bytes, Request};
///
/// struct Countdown(u32);
///
/// impl BodySource for Countdown {
///     fn poll_piece(&mut self, _: &mut Context<'_>) -> Poll<io::Result<Option<Bytes>>> {
///         let Some(next) = self.0.checked_sub(1) else {
///             return Poll::Ready(Ok(None));
///         };
///         self.0 = next;
///         Poll::Ready(Ok(Some(Bytes::from(format!("{next}\n")))))
///     }
/// }
///
/// let mut request = Request::put("/countdown", "");
/// request.body_source(Countdown(10), None);
/// ```
pub trait BodySource: Send + 'static {
    /// The next piece of the body; `None` is its end, after which the source is not asked again. If there is no piece
    /// yet, the source keeps the waker of the context, and wakes when there is.
    ///
    /// # Errors
    /// Ends the call with [`Misuse::BodySource`](crate::Misuse::BodySource).
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Option<Bytes>>>;
}

/// A body that is read while it is sent.
pub(super) struct Stream {
    source: Source,
    pub(super) length: Option<u64>,
    produced: u64,
    /// Nobody can resume the call: the source may not say that it has no bytes yet.
    must_not_block: bool,
    /// The current piece, framed; sent in part.
    pub(super) buffer: Vec<u8>,
    state: StreamState,
    /// What the source has panicked with.
    pub(super) panic: Option<Panic>,
}

/// What foreign code has panicked with. The event loop raises this panic again when its own state is whole.
pub(crate) type Panic = Box<dyn Any + Send>;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum StreamState {
    /// Not read yet: the request can still be sent again.
    Fresh,
    Reading,
    Ended,
}

/// The result of [`Stream::fill`].
pub(in crate::proto) enum Fill {
    /// The buffer holds the next piece.
    Filled,
    /// The source has no data at the moment.
    Pending,
    /// The whole stream was framed before.
    Ended,
}

impl Stream {
    pub(super) fn new(source: Source, length: Option<u64>) -> Self {
        Self {
            source,
            length,
            produced: 0,
            must_not_block: false,
            buffer: Vec::new(),
            state: StreamState::Fresh,
            panic: None,
        }
    }

    /// Whether the stream can be sent from its beginning.
    pub(super) fn is_replayable(&self) -> bool {
        self.state == StreamState::Fresh || matches!(self.source, Source::Opened { .. })
    }

    /// Goes back to the beginning, if the stream can be opened again.
    pub(super) fn rewind(&mut self) {
        if let Source::Opened { reader, .. } = &mut self.source {
            *reader = None;
            self.state = StreamState::Fresh;
            self.produced = 0;
            self.buffer.clear();
        }
    }

    /// Whether the source wakes someone when it has its next piece.
    pub(super) fn wakes(&self) -> bool {
        matches!(self.source, Source::Pieces(_))
    }

    /// Sets whether a source that wakes nobody may say that it has no bytes yet.
    pub(super) fn set_may_block(&mut self, may_block: bool) {
        self.must_not_block = !may_block && !self.wakes();
    }

    pub(super) fn set_waker(&mut self, waker: Waker) {
        if let Source::Pieces(pieces) = &mut self.source {
            pieces.waker = Some(waker);
        }
    }

    /// Reads the next piece of the source and frames it in the buffer, whose content was sent.
    pub(super) fn fill(&mut self, trailers: &[u8]) -> Result<Fill, Misuse> {
        if self.state == StreamState::Ended {
            return Ok(Fill::Ended);
        }
        self.state = StreamState::Reading;
        self.buffer.clear();
        self.buffer.resize(CHUNK_SIZE_LINE + STREAM_PIECE, 0);
        let room = match self.length {
            Some(declared) => usize::try_from(declared - self.produced).unwrap_or(usize::MAX),
            None => STREAM_PIECE,
        };
        let piece = &mut self.buffer[CHUNK_SIZE_LINE..][..room.min(STREAM_PIECE)];
        let read = loop {
            let read = catch_unwind(AssertUnwindSafe(|| self.source.read(piece)));
            match read.unwrap_or_else(|panic| {
                self.panic = Some(panic);
                Err(io::Error::other("the source has panicked"))
            }) {
                Ok(n) => break n.min(piece.len()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.buffer.clear();
                    if self.must_not_block {
                        return Err(Misuse::NotResumable);
                    }
                    return Ok(Fill::Pending);
                }
                Err(error) => return Err(Misuse::BodySource(error)),
            }
        };
        self.produced += read as u64;
        self.buffer.truncate(CHUNK_SIZE_LINE + read);
        match self.length {
            Some(declared) => {
                self.buffer.drain(..CHUNK_SIZE_LINE);
                let produced = self.produced;
                if produced == declared {
                    self.state = StreamState::Ended;
                } else if read == 0 {
                    return Err(Misuse::BodyLength { declared, produced });
                }
            }
            None => self.frame_chunk(read, trailers),
        }
        if let (StreamState::Ended, Source::Opened { reader, .. }) = (self.state, &mut self.source)
        {
            *reader = None; // the file is not kept open
        }
        if self.buffer.is_empty() {
            return Ok(Fill::Ended);
        }
        Ok(Fill::Filled)
    }

    fn frame_chunk(&mut self, read: usize, trailers: &[u8]) {
        if read == 0 {
            self.state = StreamState::Ended;
            self.buffer.clear();
            self.buffer.extend_from_slice(b"0\r\n");
            self.buffer.extend_from_slice(trailers);
            self.buffer.extend_from_slice(b"\r\n");
            return;
        }
        // The size line ends just before the data. Leading zeros fill its place (RFC 9112 §7.1 allows them).
        let mut line = &mut self.buffer[..CHUNK_SIZE_LINE];
        let written = write!(line, "{read:06x}\r\n");
        debug_assert!(
            written.is_ok() && line.is_empty(),
            "six digits and CRLF fill the room"
        );
        self.buffer.extend_from_slice(b"\r\n");
    }
}

/// The stream of a copy of the request: the same if it can be opened again, or else one of the same length from which
/// nothing can be read.
impl Clone for Stream {
    fn clone(&self) -> Self {
        match &self.source {
            Source::Opened { open, .. } => {
                let (open, reader) = (Arc::clone(open), None);
                Self::new(Source::Opened { open, reader }, self.length)
            }
            Source::Read(_) | Source::Pieces(_) => Self {
                state: StreamState::Ended,
                ..Self::new(Source::Read(Box::new(io::empty())), self.length)
            },
        }
    }
}

/// Where the bytes of a stream come from.
pub(super) enum Source {
    Read(Box<dyn Read + Send>),
    /// A reader that can be opened again. It is `None` before the first read.
    Opened {
        open: Arc<Open>,
        reader: Option<Box<dyn Read + Send>>,
    },
    Pieces(Pieces),
}

pub(super) type Open = dyn Fn() -> io::Result<Box<dyn Read + Send>> + Send + Sync;

/// The pieces of a [`BodySource`], as a reader.
pub(super) struct Pieces {
    source: Box<dyn BodySource>,
    /// The rest of the last piece.
    rest: Bytes,
    waker: Option<Waker>,
}

impl Source {
    pub(super) fn pieces(source: impl BodySource) -> Self {
        Self::Pieces(Pieces {
            source: Box::new(source),
            rest: Bytes::new(),
            waker: None,
        })
    }
}

impl Read for Source {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Read(read) => read.read(buf),
            Self::Opened { open, reader } => match reader {
                Some(reader) => reader.read(buf),
                None => reader.insert(open()?).read(buf),
            },
            Self::Pieces(pieces) => pieces.read(buf),
        }
    }
}

impl Read for Pieces {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let waker = self.waker.as_ref().unwrap_or(Waker::noop());
        let mut empty = 0;
        while self.rest.is_empty() {
            match self.source.poll_piece(&mut Context::from_waker(waker)) {
                Poll::Ready(Ok(Some(piece))) => self.rest = piece,
                Poll::Ready(Ok(None)) => return Ok(0),
                Poll::Ready(Err(error)) => return Err(final_error(error)),
                Poll::Pending => return Err(io::ErrorKind::WouldBlock.into()),
            }
            empty += 1;
            if self.rest.is_empty() && empty >= EMPTY_PIECES {
                // The other calls of the thread come first.
                waker.wake_by_ref();
                return Err(io::ErrorKind::WouldBlock.into());
            }
        }
        let n = self.rest.len().min(buf.len());
        buf[..n].copy_from_slice(&self.rest[..n]);
        self.rest.advance(n);
        Ok(n)
    }
}

/// An error of a source that says "not yet" is an error all the same: the source has a waker for that.
fn final_error(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => io::Error::other(error),
        _ => error,
    }
}

/// Pieces without bytes that are taken at a time.
const EMPTY_PIECES: usize = 16;

/// Bytes that are read from a body stream at a time.
const STREAM_PIECE: usize = 16 * 1024;

/// Bytes of six hexadecimal digits and CRLF.
const CHUNK_SIZE_LINE: usize = 8;
