//! The same for programs on tokio.

use std::io::{self, Read as _, Write as _};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::Upgraded;

/// An [`Upgraded`] connection that tasks of tokio read and write. A library for WebSockets or HTTP/2 can take it.
///
/// ```
/// use courser::{Call, Client, Config, Request, Response, Shared, SharedConfig};
/// use tokio::io::{AsyncReadExt, AsyncWriteExt};
/// # use std::io::{Read as _, Write as _};
/// # let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
/// # let url = format!("http://{}/", server.local_addr().unwrap());
/// # std::thread::spawn(move || { let (mut s, _) = server.accept().unwrap(); let mut b = [0; 999]; s.read(&mut b).unwrap();
/// #     s.write_all(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n").unwrap();
/// #     let n = s.read(&mut b).unwrap(); s.write_all(&b[..n]).unwrap(); });
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
/// # runtime.block_on(async {
///
/// let client = Shared::spawn(SharedConfig::default(), |_| Client::new(Config::default()))?;
/// let mut request = Request::get(&url);
/// request.add_header("Connection", "Upgrade").add_header("Upgrade", "echo");
/// let mut done = client.send(Call::new(request, Response::new())).await;
/// done.outcome?;
/// let connection = done.response.take_upgraded().ok_or("the server stays with HTTP")?;
/// let mut connection = connection.into_tokio()?;
/// connection.write_all(b"hello").await?;
/// connection.flush().await?;
/// let mut answer = [0; 5];
/// connection.read_exact(&mut answer).await?;
/// assert_eq!(&answer, b"hello");
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct AsyncUpgraded(AsyncFd<Upgraded>);

impl AsyncUpgraded {
    pub(super) fn new(connection: Upgraded) -> io::Result<Self> {
        connection.set_nonblocking(true)?;
        #[expect(
            deprecated,
            reason = "the successor is unsafe for the sake of types whose descriptor may change, unlike `Upgraded`"
        )]
        let registered = AsyncFd::new(connection)?;
        Ok(Self(registered))
    }

    /// Calls `operation` whenever the socket has room, until it does not block.
    fn poll_write_with<T>(
        &mut self,
        context: &mut Context<'_>,
        mut operation: impl FnMut(&mut Upgraded) -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        loop {
            let mut ready = ready!(self.0.poll_write_ready_mut(context))?;
            if let Ok(outcome) = ready.try_io(|fd| operation(fd.get_mut())) {
                return Poll::Ready(outcome);
            }
        }
    }
}

impl AsyncRead for AsyncUpgraded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let room = buffer.initialize_unfilled();
        // What has come already has no event.
        let n = self.0.get_mut().received.read(room)?;
        if n > 0 || room.is_empty() {
            buffer.advance(n);
            return Poll::Ready(Ok(()));
        }
        loop {
            let mut ready = ready!(self.0.poll_read_ready_mut(context))?;
            if let Ok(read) = ready.try_io(|fd| fd.get_mut().read(room)) {
                buffer.advance(read?);
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl AsyncWrite for AsyncUpgraded {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_with(context, |connection| connection.write(bytes))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_write_with(context, Upgraded::flush)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_write_with(context, Upgraded::shutdown)
    }
}
