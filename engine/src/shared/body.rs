//! Streamed bodies: read on any thread, or awaited, while a worker receives them.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};

use super::slot::{self, BodyPart};
use super::thread::Command;
use super::{Sending, Ticket};
use crate::client::{Completion, Report, memory_of};
use crate::error::{Error, Misuse, Phase, Sent};
use crate::proto::Response;

/// A streamed call in flight: a future, for any executor, of the head of the response and of the body. There is a body
/// unless the call failed. Dropping the future before it is ready cancels the call.
///
/// Made by [`Shared::send_streaming`](crate::Shared::send_streaming), which has an example.
#[derive(Debug)]
#[must_use = "dropping it cancels the call"]
pub struct Streaming(pub(super) Sending);

impl Streaming {
    /// A handle on the call, unless the call was refused or its head has come. With a clone of the handle, a body of the
    /// request that had no bytes for a while goes on, also after the head has come.
    ///
    /// ```
    /// use courser::{Call, HostClient, Request, Response, Shared};
    ///
    /// fn upload(client: &Shared<HostClient>, request: Request) {
    ///     let streaming = client.send_streaming(Call::new(request, Response::new()));
    ///     if let Some(ticket) = streaming.ticket() {
    ///         ticket.resume(); // the source has bytes again
    ///     }
    /// }
    /// # let _ = upload;
    /// ```
    pub fn ticket(&self) -> Option<Ticket> {
        self.0.ticket()
    }
}

impl Future for Streaming {
    type Output = (Completion, Option<SharedBody>);

    /// # Panics
    /// If the future is polled again after it was ready.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let ticket = self.0.ticket();
        Pin::new(&mut self.0).poll(context).map(|head| {
            let ticket = ticket.filter(|_| head.outcome.is_ok());
            (head, ticket.map(SharedBody::new))
        })
    }
}

/// The body of a response that a [`Shared`](crate::Shared) client receives. A slow reader delays no other call: the
/// client stops reading from the connection while one chunk waits for the reader and one more waits in the client. Each
/// chunk has at most [`stream_buffer`](crate::HostConfig::stream_buffer) bytes and the bytes of one read more. Dropping
/// the body before its end closes the connection.
///
/// There are three ways to read: blocking, as [`std::io::Read`]; awaited, by [`chunk`](Self::chunk); and polled, by
/// [`poll_read`](Self::poll_read). With features, the body is also a `Stream` and an `AsyncRead` of the `futures` crates
/// (`futures`), an `AsyncRead` of tokio (`tokio`), and a `Body` of the `http_body` crate (`http-body`).
///
/// ```
/// # fn example(client: &courser::Shared<courser::HostClient>) -> Result<(), Box<dyn std::error::Error>> {
/// let (mut request, mut response) = (courser::Request::get("/large.iso"), courser::Response::new());
/// let mut body = client.open(&mut request, &mut response)?;
/// std::io::copy(&mut body, &mut std::io::sink())?;
/// let report = body.finish()?;
/// println!("{:?}", report.timings().total);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct SharedBody {
    ticket: Ticket,
    chunk: Vec<u8>,
    /// How many bytes of the chunk the reader has taken.
    taken: usize,
    /// A clone of the chunk that the reader took as a whole. When the reader has dropped it, its memory is used again.
    last: Bytes,
    state: State,
    /// The trailers were given as a frame of the `http_body` crate.
    #[cfg(feature = "http-body")]
    gave_trailers: bool,
}

#[derive(Debug)]
enum State {
    Open,
    Ended(Box<(Report, Option<Response>)>),
    Failed,
}

impl SharedBody {
    pub(super) fn new(ticket: Ticket) -> Self {
        Self {
            ticket,
            chunk: Vec::new(),
            taken: 0,
            last: Bytes::new(),
            state: State::Open,
            #[cfg(feature = "http-body")]
            gave_trailers: false,
        }
    }

    /// Waits for bytes and takes them; 0 is the end (or an empty `buf`).
    ///
    /// # Errors
    /// Why the body ended early; [`Misuse::OwnThread`] in a callback on one of the client's own threads.
    pub fn read_some(&mut self, buf: &mut [u8]) -> Result<usize, Error> {
        while !buf.is_empty() && self.wants_more()? {
            self.ticket.workers.may_block().map_err(body_error)?;
            let take = |state: &mut slot::State| state.take_chunk(&mut self.chunk);
            let part = self.ticket.slot.wait_for(take);
            self.take(part)?;
        }
        Ok(self.copy_to(buf))
    }

    /// As [`read_some`](Self::read_some), for an executor: wakes the task when more bytes have come.
    ///
    /// # Errors
    /// Why the body ended early.
    pub fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<Result<usize, Error>> {
        if !buf.is_empty() {
            ready!(self.poll_more(context))?;
        }
        Poll::Ready(Ok(self.copy_to(buf)))
    }

    /// Awaits bytes, and takes all that have come without a copy; `None` is the end. No bytes are lost if the future is
    /// dropped before it is ready. When the caller drops a chunk before the next one is read, its memory is used again.
    ///
    /// # Errors
    /// Why the body ended early.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        poll_fn(|context| self.poll_chunk(context)).await
    }

    /// As [`chunk`](Self::chunk), for the implementation of a stream.
    ///
    /// # Errors
    /// Why the body ended early.
    pub fn poll_chunk(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Error>> {
        ready!(self.poll_more(context))?;
        let mut chunk = Bytes::from(std::mem::take(&mut self.chunk));
        chunk.advance(std::mem::take(&mut self.taken));
        self.last = chunk.clone();
        Poll::Ready(Ok((!chunk.is_empty()).then_some(chunk)))
    }

    /// Waits until there are bytes in the chunk, or until the end.
    fn poll_more(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        while self.wants_more()? {
            let take = |state: &mut slot::State| state.take_chunk(&mut self.chunk);
            let part = ready!(self.ticket.slot.poll_for(context, take));
            self.take(part)?;
        }
        Poll::Ready(Ok(()))
    }

    /// Reads the rest of the body, drops the bytes, and returns the report of the call.
    ///
    /// # Errors
    /// Why the body ended early.
    pub fn finish(mut self) -> Result<Report, Error> {
        let mut rest = [0; 8192];
        while self.read_some(&mut rest)? > 0 {}
        self.report()
            .cloned()
            .ok_or_else(|| body_error(Misuse::UnknownBody))
    }

    /// The report of the call, once the end has been read.
    pub fn report(&self) -> Option<&Report> {
        match &self.state {
            State::Ended(end) => Some(&end.0),
            State::Open | State::Failed => None,
        }
    }

    /// The trailers, once the end has been read.
    pub fn trailers(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let end = match &self.state {
            State::Ended(end) => end.1.as_ref(),
            State::Open | State::Failed => None,
        };
        end.into_iter().flat_map(|response| response.trailers())
    }

    /// Whether reading has failed.
    #[cfg(any(feature = "futures", feature = "http-body"))]
    pub(super) fn has_failed(&self) -> bool {
        matches!(self.state, State::Failed)
    }

    /// Notes that the trailers were given as a frame. Returns whether they were given before.
    #[cfg(feature = "http-body")]
    pub(super) fn note_trailers_given(&mut self) -> bool {
        std::mem::replace(&mut self.gave_trailers, true)
    }

    /// Whether no byte of the chunk is left, and more of the body may come.
    fn wants_more(&mut self) -> Result<bool, Error> {
        if self.taken < self.chunk.len() {
            return Ok(false);
        }
        self.chunk.clear();
        self.taken = 0;
        match self.state {
            State::Open => {
                if self.chunk.capacity() == 0 {
                    self.chunk = memory_of(std::mem::take(&mut self.last));
                }
                Ok(true)
            }
            State::Ended(_) => Ok(false),
            State::Failed => Err(body_error(Misuse::UnknownBody)),
        }
    }

    fn take(&mut self, part: BodyPart) -> Result<(), Error> {
        match part {
            BodyPart::Chunk => {
                let slot = &self.ticket.slot;
                let taken = Command::ChunkTaken(Arc::clone(slot));
                self.ticket.workers.send(slot.worker(), taken);
            }
            BodyPart::End(Ok(end)) => self.state = State::Ended(end),
            BodyPart::End(Err(error)) => {
                self.state = State::Failed;
                return Err(error);
            }
        }
        Ok(())
    }

    fn copy_to(&mut self, buf: &mut [u8]) -> usize {
        let waiting = &self.chunk[self.taken..];
        let n = waiting.len().min(buf.len());
        buf[..n].copy_from_slice(&waiting[..n]);
        self.taken += n;
        n
    }
}

fn body_error(misuse: Misuse) -> Error {
    Error::new(misuse, Phase::Body, Sent::ReplyBegun)
}

impl io::Read for SharedBody {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        Ok(self.read_some(buf)?)
    }
}

impl Drop for SharedBody {
    fn drop(&mut self) {
        if matches!(self.state, State::Open) {
            self.ticket.cancel();
        }
    }
}
