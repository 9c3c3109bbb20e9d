//! Connections that have left the engine for another protocol, with their TLS sessions.

#[cfg(feature = "tokio")]
mod on_tokio;

use std::collections::VecDeque;
use std::io::{self, IoSlice, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::time::Duration;

use socket2::SockRef;

#[cfg(feature = "tokio")]
pub use on_tokio::AsyncUpgraded;

use super::os::{self, Stream};
use super::session::LowerStream;
use super::tls::MIN_BUFFER;
use super::transport::{Sessions, Transport};

/// A connection that has switched to another protocol: after a 101 (Switching Protocols) to a request with `Upgrade`,
/// or after a 2xx to CONNECT (RFC 9110 §7.8, §9.3.6). [`Response::take_upgraded`](crate::Response::take_upgraded) gives
/// it. It belongs to no client any more: no limit, rate or timeout of a client holds for it.
///
/// Reading and writing block, unless [`set_nonblocking`](Self::set_nonblocking) is called. With TLS, they encrypt and
/// decrypt, also inside the session with an https proxy. What the server has sent along with its answer is read first.
///
/// ```
/// use std::io::{Read, Write};
/// use courser::{HostClient, HostConfig, Request, Response, Upstream};
/// # let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
/// # let address = server.local_addr().unwrap();
/// # std::thread::spawn(move || { let (mut s, _) = server.accept().unwrap(); let mut b = [0; 999]; s.read(&mut b).unwrap();
/// #     s.write_all(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n").unwrap();
/// #     let n = s.read(&mut b).unwrap(); s.write_all(&b[..n]).unwrap(); });
///
/// let mut client = HostClient::new(Upstream::tcp([address]), HostConfig::default())?;
/// let mut request = Request::get("/");
/// request.add_header("Connection", "Upgrade").add_header("Upgrade", "echo");
/// let mut response = Response::new();
/// client.call(&mut request, &mut response)?;
/// let mut connection = response.take_upgraded().ok_or("the server stays with HTTP")?;
/// connection.write_all(b"hello")?;
/// let mut answer = [0; 5];
/// connection.read_exact(&mut answer)?;
/// assert_eq!(&answer, b"hello");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Upgraded {
    stream: Stream,
    session: Option<Box<Sessions>>,
    /// Plaintext that has come and that the reader has not taken.
    received: VecDeque<u8>,
    /// Plaintext that the writer has given and that is not sent: with TLS only.
    unsent: Vec<u8>,
    /// For ciphertext: with TLS only.
    scratch: Vec<u8>,
}

impl Upgraded {
    /// `early` is what the peer has sent in the new protocol already.
    pub(crate) fn new(transport: Transport<Stream>, early: Vec<u8>) -> Self {
        let (stream, session) = transport.into_parts();
        let upgraded = Self {
            stream,
            session,
            received: early.into(),
            unsent: Vec::new(),
            scratch: Vec::new(),
        };
        // Cannot fail: the socket is open.
        let _ = upgraded.set_nonblocking(false);
        upgraded
    }

    /// Whether the connection has TLS, with the server or with a proxy.
    pub fn is_secure(&self) -> bool {
        self.session.is_some()
    }

    /// Whether reads and writes return [`WouldBlock`](io::ErrorKind::WouldBlock) instead of waiting. Default: no. A
    /// program that waits for the descriptor first reads until `WouldBlock`: bytes may be decrypted already.
    ///
    /// # Errors
    /// The system's error.
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        SockRef::from(&self.stream).set_nonblocking(nonblocking)
    }

    /// How long a read waits before it returns [`WouldBlock`](io::ErrorKind::WouldBlock); `None`, the default, is
    /// without a limit.
    ///
    /// # Errors
    /// The system's error; a time of zero.
    pub fn set_read_timeout(&self, limit: Option<Duration>) -> io::Result<()> {
        SockRef::from(&self.stream).set_read_timeout(limit)
    }

    /// The same for writes.
    ///
    /// # Errors
    /// The system's error; a time of zero.
    pub fn set_write_timeout(&self, limit: Option<Duration>) -> io::Result<()> {
        SockRef::from(&self.stream).set_write_timeout(limit)
    }

    /// Sends what is not sent yet and says that nothing follows: with TLS by `close_notify`, then by the end of the
    /// stream. The other direction stays open. If the peer has cut the connection already, that is no error.
    ///
    /// # Errors
    /// As [`write`](Write::write).
    pub fn shutdown(&mut self) -> io::Result<()> {
        self.flush()?;
        if let Some(session) = &mut self.session {
            session.close_notify(&mut Socket::new(&mut self.stream));
        }
        match SockRef::from(&self.stream).shutdown(Shutdown::Write) {
            // The peer has cut the connection: nothing follows.
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
            outcome => outcome,
        }
    }

    /// The descriptor, and what the peer has sent already: for programs that go on with types of their own. A
    /// connection with TLS comes back, since its session is not in the descriptor.
    ///
    /// # Errors
    /// The connection has TLS.
    pub fn into_descriptor(self) -> Result<(OwnedFd, Vec<u8>), Self> {
        if self.is_secure() {
            return Err(self);
        }
        Ok((self.stream.into(), self.received.into()))
    }

    /// The same connection for programs on tokio, without blocking.
    ///
    /// # Errors
    /// The system's error.
    ///
    /// # Panics
    /// Without a runtime of tokio with I/O around the caller.
    #[cfg(feature = "tokio")]
    pub fn into_tokio(self) -> io::Result<AsyncUpgraded> {
        AsyncUpgraded::new(self)
    }

    /// Sends plaintext that the writer has given.
    fn send(&mut self) -> io::Result<()> {
        while let Some(session) = &mut self.session
            && !self.unsent.is_empty()
        {
            self.scratch.resize(SCRATCH, 0);
            let mut lower = Socket::new(&mut self.stream);
            let parts = [IoSlice::new(&self.unsent)];
            let scratch = &mut self.scratch;
            match session.call(&mut lower, |tls, lower| tls.write(lower, scratch, &parts)) {
                Ok(n) => drop(self.unsent.drain(..n)),
                // Only the session wants to be called again.
                Err(error) if is_would_block(&error) && !lower.blocked => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl Read for Upgraded {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.received.read(buf)?;
        if n > 0 || buf.is_empty() {
            return Ok(n);
        }
        let Some(session) = &mut self.session else {
            return os::receive(&self.stream, buf);
        };
        self.scratch.resize(SCRATCH, 0);
        loop {
            let mut lower = Socket::new(&mut self.stream);
            match session.call(&mut lower, |tls, lower| tls.read(lower, &mut self.scratch)) {
                Ok(n) => {
                    let taken = n.min(buf.len());
                    buf[..taken].copy_from_slice(&self.scratch[..taken]);
                    self.received.extend(&self.scratch[taken..n]);
                    return Ok(taken);
                }
                // Records without content have come: the session limits how many.
                Err(error) if is_would_block(&error) && !lower.blocked => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// With TLS, a write takes at most 16 KiB and sends as much as there is room for; [`flush`](Write::flush) sends the rest.
impl Write for Upgraded {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        if self.session.is_none() {
            return os::send(&self.stream, &[IoSlice::new(buf)]);
        }
        self.send()?;
        let taken = buf.len().min(MOST_UNSENT);
        self.unsent.extend_from_slice(&buf[..taken]);
        match self.send() {
            Err(error) if !is_would_block(&error) => Err(error),
            _ => Ok(taken),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.send()
    }
}

impl AsFd for Upgraded {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl AsRawFd for Upgraded {
    fn as_raw_fd(&self) -> RawFd {
        self.stream.as_fd().as_raw_fd()
    }
}

impl std::fmt::Debug for Upgraded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Upgraded")
            .field("stream", &self.stream)
            .field("is_secure", &self.is_secure())
            .finish_non_exhaustive()
    }
}

/// The socket below a session.
struct Socket<'a> {
    stream: &'a mut Stream,
    /// The socket had nothing to read, or no room.
    blocked: bool,
}

impl<'a> Socket<'a> {
    fn new(stream: &'a mut Stream) -> Self {
        Self {
            stream,
            blocked: false,
        }
    }

    fn note<T>(&mut self, outcome: io::Result<T>) -> io::Result<T> {
        self.blocked |= outcome.as_ref().is_err_and(is_would_block);
        outcome
    }
}

impl LowerStream for Socket<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = os::receive(self.stream, buf);
        self.note(read)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = os::send(self.stream, &[IoSlice::new(bytes)]);
        self.note(written)
    }
}

fn is_would_block(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}

/// Twice, for a session inside another one.
const SCRATCH: usize = 2 * MIN_BUFFER;

/// Bytes of plaintext that wait to be sent.
const MOST_UNSENT: usize = 16 * 1024;
