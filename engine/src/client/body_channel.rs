//! Request bodies whose pieces come from another thread or task.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;

use crate::proto::{BodySource, Request};
use crate::sync::{Condvar, Mutex, MutexGuard, lock};

impl Request {
    /// Sets a body whose pieces are sent by the returned sender, from any thread or task: exactly `length` bytes, or,
    /// with `None`, all pieces until [`finish`](BodySender::finish), in the chunked coding. At most `capacity` bytes
    /// wait in the channel (and one piece, however large): then the sender waits.
    ///
    /// The body can be sent once. If the call ends early, the sender gets [`BodyClosed`].
    ///
    /// ```
    /// use courser::{HostClient, HostConfig, Request, Response};
    /// # let server = std::net::TcpListener::bind("127.0.0.1:0")?;
    /// # let upstream: courser::Upstream = server.local_addr()?.to_string().parse()?;
    /// # std::thread::spawn(move || { use std::io::*; let (mut s, _) = server.accept().unwrap(); let mut all = Vec::new();
    /// #     let mut b = [0; 999]; while !all.ends_with(b"0\r\n\r\n") { let n = s.read(&mut b).unwrap(); all.extend(&b[..n]); }
    /// #     s.write_all(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n").unwrap(); });
    ///
    /// let mut request = Request::put("/log", "");
    /// let sender = request.body_channel(None, 64 * 1024);
    /// let writer = std::thread::spawn(move || {
    ///     for line in 0..100 {
    ///         sender.send(format!("line {line}\n"))?;
    ///     }
    ///     sender.finish();
    ///     Ok::<(), courser::BodyClosed>(())
    /// });
    /// let mut client = HostClient::new(upstream, HostConfig::default())?;
    /// let mut response = Response::new();
    /// client.call(&mut request, &mut response)?;
    /// assert_eq!(response.status(), 201);
    /// writer.join().unwrap()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn body_channel(&mut self, length: Option<u64>, capacity: usize) -> BodySender {
        let channel = Arc::new(Channel {
            capacity,
            state: Mutex::default(),
            room: Condvar::new(),
        });
        self.body_source(Receiving(Arc::clone(&channel)), length);
        BodySender { channel }
    }
}

/// Sends the pieces of a request body; see [`Request::body_channel`], which has an example. A sender that is dropped
/// before [`finish`](Self::finish) fails the call, so that no cut body is taken for a whole one.
pub struct BodySender {
    channel: Arc<Channel>,
}

/// The call of a [`BodySender`] takes no more pieces: it has ended, or the length of the body is reached.
///
/// ```
/// let mut request = courser::Request::post("/", "");
/// let sender = request.body_channel(None, 1_000);
/// drop(request);
/// assert_eq!(sender.send("x"), Err(courser::BodyClosed));
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BodyClosed;

impl fmt::Display for BodyClosed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the call takes no more pieces of its body")
    }
}

impl std::error::Error for BodyClosed {}

impl BodySender {
    /// Sends a piece. Blocks while the channel is full, so not for the thread that drives the client.
    ///
    /// # Errors
    /// The call takes no more pieces.
    pub fn send(&self, piece: impl Into<Bytes>) -> Result<(), BodyClosed> {
        let mut state = lock(&self.channel.state);
        while self.channel.is_full(&state) {
            let waited = self.channel.room.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
        Channel::put(state, piece.into())
    }

    /// Sends a piece. Awaits room while the channel is full. If the future is dropped before it is ready, the piece is
    /// not sent.
    ///
    /// # Errors
    /// The call takes no more pieces.
    pub async fn send_async(&mut self, piece: impl Into<Bytes>) -> Result<(), BodyClosed> {
        poll_fn(|context| self.poll_ready(context)).await?;
        Channel::put(lock(&self.channel.state), piece.into())
    }

    /// Ready when the next [`send`](Self::send) does not block.
    ///
    /// # Errors
    /// The call takes no more pieces.
    pub fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BodyClosed>> {
        let mut state = lock(&self.channel.state);
        if state.closed {
            return Poll::Ready(Err(BodyClosed));
        }
        if self.channel.is_full(&state) {
            state.sender = Some(context.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }

    /// Ends the body.
    pub fn finish(self) {
        self.channel.end(Ok(()));
    }

    /// Fails the call with [`Misuse::BodySource`](crate::Misuse::BodySource) and this error, once the pieces before are
    /// sent.
    pub fn abort(self, error: io::Error) {
        self.channel.end(Err(error));
    }
}

impl Drop for BodySender {
    fn drop(&mut self) {
        let cut = "the sender of the body was dropped before its end";
        self.channel.end(Err(io::Error::other(cut)));
    }
}

impl fmt::Debug for BodySender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = lock(&self.channel.state).held;
        f.debug_struct("BodySender").field("held", &held).finish()
    }
}

struct Channel {
    capacity: usize,
    state: Mutex<State>,
    /// Notified when the channel has room, or is closed.
    room: Condvar,
}

#[derive(Default)]
struct State {
    pieces: VecDeque<Bytes>,
    /// Bytes of the pieces.
    held: usize,
    /// How the body ends, after the pieces.
    end: Option<io::Result<()>>,
    /// The call takes no more pieces.
    closed: bool,
    /// The call, if it waits for a piece.
    receiver: Option<Waker>,
    /// The task of the sender, if it waits for room.
    sender: Option<Waker>,
}

impl Channel {
    fn is_full(&self, state: &State) -> bool {
        !state.closed && state.held > 0 && state.held >= self.capacity
    }

    fn put(mut state: MutexGuard<'_, State>, piece: Bytes) -> Result<(), BodyClosed> {
        if state.closed {
            return Err(BodyClosed);
        }
        if piece.is_empty() {
            return Ok(());
        }
        state.held += piece.len();
        state.pieces.push_back(piece);
        wake_receiver(state);
        Ok(())
    }

    /// Sets how the body ends, unless that is set.
    fn end(&self, end: io::Result<()>) {
        let mut state = lock(&self.state);
        if state.end.is_none() {
            state.end = Some(end);
            wake_receiver(state);
        }
    }
}

fn wake_receiver(mut state: MutexGuard<'_, State>) {
    let receiver = state.receiver.take();
    drop(state);
    if let Some(receiver) = receiver {
        receiver.wake();
    }
}

/// The end of a channel from which the call takes pieces.
struct Receiving(Arc<Channel>);

impl Receiving {
    fn wake_sender(&self, mut state: MutexGuard<'_, State>) {
        let sender = state.sender.take();
        drop(state);
        self.0.room.notify_all();
        if let Some(sender) = sender {
            sender.wake();
        }
    }
}

impl BodySource for Receiving {
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Option<Bytes>>> {
        let mut state = lock(&self.0.state);
        if let Some(piece) = state.pieces.pop_front() {
            state.held -= piece.len();
            self.wake_sender(state);
            return Poll::Ready(Ok(Some(piece)));
        }
        match state.end.take() {
            Some(end) => Poll::Ready(end.map(|()| None)),
            None => {
                state.receiver = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Drop for Receiving {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.closed = true;
        let pieces = std::mem::take(&mut state.pieces);
        state.held = 0;
        self.wake_sender(state);
        drop(pieces);
    }
}
