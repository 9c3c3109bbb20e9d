//! Connections with limits: their number, the size of a request, and the time for it.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, sleep};

use super::AdminLimits;

/// A listener that accepts no more connections than allowed; further ones wait in the queue of the system.
pub(super) struct Limited {
    listener: TcpListener,
    free: Arc<Semaphore>,
    patience: Duration,
}

impl Limited {
    pub(super) fn new(listener: TcpListener, limits: AdminLimits) -> Self {
        Self {
            listener,
            free: Arc::new(Semaphore::new(limits.connections.max(1))),
            patience: limits.patience,
        }
    }
}

impl Listener for Limited {
    type Io = Timed;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Timed, SocketAddr) {
        // The semaphore is never closed.
        let permit = Arc::clone(&self.free).acquire_owned().await.ok();
        let (stream, address) = Listener::accept(&mut self.listener).await;
        let timed = Timed {
            stream,
            patience: self.patience,
            end: Box::pin(sleep(self.patience)),
            read: 0,
            _permit: permit,
        };
        (timed, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that ends when a request takes too long or is too large. The time begins anew with each part of an answer
/// that the client takes, not with each byte that it sends.
pub(super) struct Timed {
    stream: TcpStream,
    patience: Duration,
    end: Pin<Box<Sleep>>,
    /// Bytes that were read since the last answer.
    read: usize,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Timed {
    /// # Errors
    /// The time is over.
    fn check_time(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        match self.end.as_mut().poll(context) {
            Poll::Ready(()) => Err(io::ErrorKind::TimedOut.into()),
            Poll::Pending => Ok(()),
        }
    }
}

impl AsyncRead for Timed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check_time(context)?;
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        self.read += buffer.filled().len() - before;
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
        self.check_time(context)?;
        let written = ready!(Pin::new(&mut self.stream).poll_write(context, bytes))?;
        let end = Instant::now() + self.patience;
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

/// The most that is read of a request, with a body that nobody asked for.
const LARGEST_REQUEST: usize = 64 << 10;
