//! The stream to a server: asks for TLS as `sslmode` says, and ends when the server does not answer.
//!
//! A server that was stopped, and a network that swallows everything, keep a connection open for ever: the client library has
//! no limit for that, and the limits of the server do not help then.

use std::error::Error;
use std::future::Future;
use std::io;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use postgres::Socket;
use postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::time::{Instant, Sleep, sleep, timeout};
use tokio_postgres_rustls::MakeRustlsConnect;

/// Makes streams.
#[derive(Clone)]
pub(super) struct Link {
    /// `None` for a stream without TLS.
    pub(super) tls: Option<MakeRustlsConnect>,
    /// Whether a server without TLS is refused.
    pub(super) needs_tls: bool,
    /// How long a server may be silent until the stream is made.
    pub(super) connect: Duration,
    /// How long it may be silent afterwards, when it owes an answer.
    pub(super) answer: Duration,
    /// The name of the server.
    pub(super) name: String,
}

type Failure = Box<dyn Error + Send + Sync>;
type Encrypted = <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream;
type Connecting<T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + Send>>;

/// The request for TLS: its length and its number.
const ASK_FOR_TLS: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

impl MakeTlsConnect<Socket> for Link {
    type Stream = Watched<Either>;
    type TlsConnect = Self;
    type Error = Failure;

    fn make_tls_connect(&mut self, name: &str) -> Result<Self, Failure> {
        Ok(Self {
            name: name.to_owned(),
            ..self.clone()
        })
    }
}

impl TlsConnect<Socket> for Link {
    type Stream = Watched<Either>;
    type Error = Failure;
    type Future = Connecting<Self::Stream>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move {
            let (connect, answer) = (self.connect, self.answer);
            let stream = timeout(connect, self.negotiate(socket)).await;
            let stream = stream.map_err(|_| silent(connect))??;
            Ok(Watched::new(stream, answer))
        })
    }
}

impl Link {
    async fn negotiate(mut self, mut socket: Socket) -> Result<Either, Failure> {
        let Some(tls) = &mut self.tls else {
            return Ok(Either::Plain(socket));
        };
        socket.write_all(&ASK_FOR_TLS).await?;
        match socket.read_u8().await? {
            b'S' => {}
            b'N' if !self.needs_tls => return Ok(Either::Plain(socket)),
            b'N' => return Err("the server does not support TLS".into()),
            // An error, in the words of a server that cannot begin a process.
            _ => return Err(io::Error::other("the server refuses connections").into()),
        }
        let connect = MakeTlsConnect::<Socket>::make_tls_connect(tls, &self.name)?;
        let stream = connect.connect(socket).await.map_err(cause)?;
        Ok(Either::Encrypted(Box::new(stream)))
    }
}

/// What TLS says about a server is no failure of the network.
fn cause(error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => error.to_string().into(),
        _ => error.into(),
    }
}

fn silent(limit: Duration) -> io::Error {
    let text = format!("the server has been silent for {limit:?}");
    io::Error::new(io::ErrorKind::TimedOut, text)
}

/// A stream with or without TLS.
pub(super) enum Either {
    Plain(Socket),
    Encrypted(Box<Encrypted>),
}

/// A stream that fails when the server owes an answer and is silent.
pub(super) struct Watched<S> {
    stream: S,
    limit: Duration,
    /// Whether the server owes an answer. Invariant: the timer counts if it does.
    is_owed: bool,
    timer: Pin<Box<Sleep>>,
    /// The last bytes that were received.
    tail: [u8; READY.len() + 1],
    has_failed: bool,
}

/// The end of each answer, ReadyForQuery, but for the state of the transaction.
const READY: [u8; 5] = [b'Z', 0, 0, 0, 5];

impl<S> Watched<S> {
    fn new(stream: S, limit: Duration) -> Self {
        Self {
            stream,
            limit,
            is_owed: false,
            timer: Box::pin(sleep(limit)),
            tail: [0; READY.len() + 1],
            has_failed: false,
        }
    }

    /// Something was sent, or is to be sent.
    fn owe(&mut self) {
        if !mem::replace(&mut self.is_owed, true) {
            self.timer.as_mut().reset(Instant::now() + self.limit);
        }
    }

    fn receive(&mut self, bytes: &[u8]) {
        let kept = bytes.len().min(self.tail.len());
        self.tail.rotate_left(kept);
        let place = self.tail.len() - kept;
        self.tail[place..].copy_from_slice(&bytes[bytes.len() - kept..]);
        self.is_owed = !self.tail.starts_with(&READY);
        self.timer.as_mut().reset(Instant::now() + self.limit);
    }

    /// What a stream that waits says: it waits, or fails. The task is woken when the limit is over.
    fn wait<T>(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        if self.has_failed || self.is_owed && self.timer.as_mut().poll(cx).is_ready() {
            self.has_failed = true;
            return Poll::Ready(Err(silent(self.limit)));
        }
        Poll::Pending
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        if self.has_failed
            || Pin::new(&mut self.stream)
                .poll_read(cx, buffer)?
                .is_pending()
        {
            return self.wait(cx);
        }
        self.receive(&buffer.filled()[before..]);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.owe();
        // Wakes the task when the limit is over, too, although nobody reads yet.
        if let Poll::Ready(failed) = self.wait(cx) {
            return Poll::Ready(failed);
        }
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.stream).poll_flush(cx) {
            Poll::Pending => self.wait(cx),
            ready => ready,
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.stream).poll_shutdown(cx) {
            Poll::Pending => self.wait(cx),
            ready => ready,
        }
    }
}

impl TlsStream for Watched<Either> {
    fn channel_binding(&self) -> ChannelBinding {
        match &self.stream {
            Either::Plain(_) => ChannelBinding::none(),
            Either::Encrypted(stream) => stream.channel_binding(),
        }
    }
}

impl AsyncRead for Either {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_read(cx, buffer),
            Self::Encrypted(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Either {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_write(cx, bytes),
            Self::Encrypted(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_flush(cx),
            Self::Encrypted(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_shutdown(cx),
            Self::Encrypted(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::duplex;

    use super::*;

    const LIMIT: Duration = Duration::from_millis(50);

    fn run<T>(test: impl Future<Output = T>) -> T {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().build().expect("a runtime");
        runtime.block_on(test)
    }

    #[test]
    fn a_server_that_owes_nothing_may_be_silent() {
        run(async {
            let (stream, mut server) = duplex(64);
            let mut stream = Watched::new(stream, LIMIT);
            stream.write_all(b"query").await.expect("sent");
            // The end of the answer in each way that it can be split.
            for split in 0..6 {
                let mut answer = vec![b'D', b'1'];
                answer.extend_from_slice(&READY);
                answer.push(b'I');
                let (first, second) = answer.split_at(2 + split);
                for part in [first, second] {
                    server.write_all(part).await.expect("sent");
                    stream
                        .read_exact(&mut vec![0; part.len()])
                        .await
                        .expect("received");
                }
                assert!(!stream.is_owed, "{split}");
            }
            sleep(LIMIT * 2).await;
            let read = timeout(LIMIT * 2, stream.read_u8()).await;
            read.expect_err("still waits");
        });
    }

    #[test]
    fn a_server_that_owes_an_answer_may_not() {
        for answer in [&b""[..], b"Z\0\0\0\x05", b"D\0\0\0\x05I"] {
            run(async {
                let (stream, mut server) = duplex(64);
                let mut stream = Watched::new(stream, LIMIT);
                stream.write_all(b"query").await.expect("sent");
                server.write_all(answer).await.expect("sent");
                let mut received = Vec::new();
                let error = stream.read_to_end(&mut received).await;
                assert_eq!(error.expect_err("silent").kind(), io::ErrorKind::TimedOut);
                assert_eq!(received, answer);
                // It has failed for good.
                server.write_all(b"late").await.expect("sent");
                stream.read_u8().await.expect_err("failed");
                stream.write_u8(0).await.expect_err("failed");
            });
        }
    }

    #[test]
    fn a_server_that_reads_nothing_is_silent_too() {
        run(async {
            let (stream, _server) = duplex(8);
            let mut stream = Watched::new(stream, LIMIT);
            let error = stream.write_all(&[0; 64]).await.expect_err("silent");
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        });
    }
}
