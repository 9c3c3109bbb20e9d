//! Streamed bodies: read on any thread, or awaited, while a worker receives them.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::slot::BodyPart;
use super::thread::Command;
use super::{Refused, Sending, Ticket};
use crate::client::{Completion, Report};
use crate::error::{Error, Misuse, Phase, Sent};
use crate::proto::Response;

/// A streamed call in flight: a future, for any executor, of the head of the response and of the body. There is a body
/// unless the call failed. Dropping the future before it is ready cancels the call.
///
/// Made by [`Shared::send_streaming`](crate::Shared::send_streaming), which has an example.
#[derive(Debug)]
#[must_use = "dropping it cancels the call"]
pub struct Streaming {
    sending: Sending,
    /// `None` once the head has come.
    ticket: Option<Ticket>,
}

impl Streaming {
    pub(super) fn new(begun: Result<Ticket, Refused>) -> Self {
        Self {
            ticket: begun.as_ref().ok().cloned(),
            sending: Sending::new(begun),
        }
    }
}

impl Future for Streaming {
    type Output = (Completion, Option<SharedBody>);

    /// # Panics
    /// If the future is polled again after it was ready.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.sending).poll(context).map(|head| {
            let ticket = self.ticket.take().filter(|_| head.outcome.is_ok());
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
/// [`poll_read`](Self::poll_read).
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
    state: State,
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
            state: State::Open,
        }
    }

    /// Waits for bytes and takes them; 0 is the end (or an empty `buf`).
    ///
    /// # Errors
    /// Why the body ended early; [`Misuse::OwnThread`] in a callback on one of the client's own threads.
    pub fn read_some(&mut self, buf: &mut [u8]) -> Result<usize, Error> {
        while self.wants_more(buf)? {
            if self.ticket.workers.is_own_thread() {
                return Err(body_error(Misuse::OwnThread));
            }
            let part = self.ticket.slot.wait_chunk(&mut self.chunk);
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
        while self.wants_more(buf)? {
            match self.ticket.slot.poll_chunk(context, &mut self.chunk) {
                Poll::Ready(part) => self.take(part)?,
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(Ok(self.copy_to(buf)))
    }

    /// Awaits bytes, and gives them without copying; `None` is the end. No bytes are lost if the future is dropped
    /// before it is ready.
    ///
    /// # Errors
    /// Why the body ended early.
    pub async fn chunk(&mut self) -> Result<Option<&[u8]>, Error> {
        while self.wants_more(&[0])? {
            let slot = &self.ticket.slot;
            let part = poll_fn(|context| slot.poll_chunk(context, &mut self.chunk)).await;
            self.take(part)?;
        }
        let from = std::mem::replace(&mut self.taken, self.chunk.len());
        let chunk = &self.chunk[from..];
        Ok((!chunk.is_empty()).then_some(chunk))
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

    /// Whether `buf` has room, no byte of the chunk is left, and more of the body may come.
    fn wants_more(&mut self, buf: &[u8]) -> Result<bool, Error> {
        if self.taken < self.chunk.len() || buf.is_empty() {
            return Ok(false);
        }
        self.chunk.clear();
        self.taken = 0;
        match self.state {
            State::Open => Ok(true),
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
    Error::new(misuse, Phase::Body, Sent::Partial)
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
