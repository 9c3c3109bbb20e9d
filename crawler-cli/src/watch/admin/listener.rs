//! Connections with limits: their number, the size of a request, and the time for it.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::time::{Instant, Sleep, sleep};

use super::AdminLimits;
use super::slot::{Slot, State};

/// A listener that keeps no more connections than allowed: for a new one, the one is closed whose client has been waited
/// for longest. So clients that send or take nothing keep nobody out, and no request is cut off that is being answered.
pub(super) struct Limited {
    listener: TcpListener,
    open: Vec<Place>,
    limits: AdminLimits,
}

/// A connection that is open.
struct Place {
    slot: Slot,
    /// To drop this ends the connection.
    end: oneshot::Sender<()>,
}

impl Limited {
    pub(super) fn new(listener: TcpListener, limits: AdminLimits) -> Self {
        Self {
            listener,
            open: Vec::new(),
            limits,
        }
    }

    /// A place for a new connection; `None`: all requests are being answered.
    fn take_place(&mut self) -> Option<(Slot, oneshot::Receiver<()>)> {
        self.open.retain(|place| !place.end.is_closed());
        if self.open.len() >= self.limits.connections.max(1) {
            let waiting = self.open.iter().enumerate();
            let waiting =
                waiting.filter_map(|(index, place)| Some((place.slot.waits_since()?, index)));
            let (_, index) = waiting.min()?;
            self.open.swap_remove(index);
        }
        let (slot, (end, ended)) = (Slot::default(), oneshot::channel());
        self.open.push(Place {
            slot: slot.clone(),
            end,
        });
        Some((slot, ended))
    }
}

impl Listener for Limited {
    type Io = Timed;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Timed, SocketAddr) {
        let (stream, address) = Listener::accept(&mut self.listener).await;
        let (slot, ended) = loop {
            match self.take_place() {
                Some(place) => break place,
                // Further clients wait in the queue of the system.
                None => sleep(LOOK_AGAIN).await,
            }
        };
        let timed = Timed {
            stream,
            slot,
            ended,
            limits: self.limits,
            end: Box::pin(sleep(self.limits.head)),
            began: Instant::now(),
            read: 0,
        };
        (timed, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

impl Connected<IncomingStream<'_, Limited>> for Slot {
    fn connect_info(stream: IncomingStream<'_, Limited>) -> Self {
        stream.io().slot.clone()
    }
}

/// A connection that ends when a request takes too long or is too large, or when another one needs its place. A byte of a
/// head that comes late gains no time; a part of a body does, and a part of an answer that the client takes.
pub(super) struct Timed {
    stream: TcpStream,
    slot: Slot,
    /// Ends when the place is given to another connection.
    ended: oneshot::Receiver<()>,
    limits: AdminLimits,
    end: Pin<Box<Sleep>>,
    /// When the request began.
    began: Instant,
    /// Bytes that were read since the last answer.
    read: usize,
}

impl Timed {
    /// # Errors
    /// The time is over, or another connection has the place.
    fn check_end(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        if Pin::new(&mut self.ended).poll(context).is_ready() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        while self.end.as_mut().poll(context).is_ready() {
            if self.slot.state() != State::Answers {
                return Err(io::ErrorKind::TimedOut.into());
            }
            // The client waits for this service.
            let end = Instant::now() + self.limits.head;
            self.end.as_mut().reset(end);
        }
        Ok(())
    }

    fn was_read(&mut self, count: usize) {
        let now = Instant::now();
        if self.read == 0 && count > 0 {
            self.began = now;
            self.end.as_mut().reset(now + self.limits.head);
        } else if count > 0 && self.slot.state() == State::ReadsBody {
            let end = (now + self.limits.head).min(self.began + self.limits.whole);
            self.end.as_mut().reset(end);
        }
        self.read += count;
    }
}

impl AsyncRead for Timed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check_end(context)?;
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        self.was_read(buffer.filled().len() - before);
        match self.read > LARGEST_REQUEST {
            true => Poll::Ready(Err(io::ErrorKind::InvalidData.into())),
            false => Poll::Ready(Ok(())),
        }
    }
}

impl AsyncWrite for Timed {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check_end(context)?;
        let written = ready!(Pin::new(&mut self.stream).poll_write(context, bytes))?;
        let end = Instant::now() + self.limits.patience;
        self.end.as_mut().reset(end);
        self.read = 0;
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// The most that is read of a request: the largest body, in small chunks, with its head.
const LARGEST_REQUEST: usize = 9 << 20;
/// How soon a place is looked for again while all requests are being answered.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
