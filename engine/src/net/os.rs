//! The real network: mio for readiness, non-blocking TCP and Unix sockets.
//!
//! Reads and writes go through rustix rather than through mio's `Read` and `Write`, because it can append to a
//! vector's spare capacity without zeroing it first, and sends with `MSG_NOSIGNAL`.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use mio::event::Source;
use mio::{Interest, Poll};
use rustix::buffer::spare_capacity;
use rustix::net::{SendAncillaryBuffer, SendFlags};
use socket2::{Domain, Protocol, SockAddr, Socket, TcpKeepalive, Type};

use super::{Address, Event, Net, SocketOptions, Token};

/// The operating system's network.
///
/// ```
/// use courser::net::{Net, os::OsNet};
///
/// let mut net = OsNet::new()?;
/// let mut events = Vec::new();
/// net.poll(&mut events, Some(std::time::Duration::ZERO))?;
/// assert!(events.is_empty());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct OsNet {
    poll: Poll,
    events: mio::Events,
    /// State of a xorshift generator; never zero.
    random: u64,
}

impl OsNet {
    /// Opens a readiness queue.
    ///
    /// # Errors
    /// The system's, when it has no descriptor left for one.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            poll: Poll::new()?,
            events: mio::Events::with_capacity(EVENTS_PER_POLL),
            random: seed(),
        })
    }
}

impl Net for OsNet {
    type Stream = Stream;

    fn now(&self) -> Instant {
        Instant::now()
    }

    fn connect(
        &mut self,
        token: Token,
        to: &Address,
        options: &SocketOptions,
    ) -> io::Result<Stream> {
        let mut stream = match to {
            Address::Tcp(address) => {
                let socket = Socket::new(
                    Domain::for_address(*address),
                    Type::STREAM.nonblocking(),
                    Some(Protocol::TCP),
                )?;
                socket.set_tcp_nodelay(options.nodelay)?;
                if let Some(idle) = options.keepalive {
                    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(idle))?;
                }
                if let Some(ip) = options.bind {
                    socket.bind(&SockAddr::from(std::net::SocketAddr::new(ip, 0)))?;
                }
                match socket.connect(&SockAddr::from(*address)) {
                    Ok(()) => {}
                    Err(error) if connect_in_progress(&error) => {}
                    Err(error) => return Err(error),
                }
                Stream(Kind::Tcp(mio::net::TcpStream::from_std(socket.into())))
            }
            Address::Unix(path) => Stream(Kind::Unix(mio::net::UnixStream::connect(path)?)),
        };
        self.poll.registry().register(
            stream.source(),
            mio::Token(token.0),
            Interest::READABLE | Interest::WRITABLE,
        )?;
        Ok(stream)
    }

    fn connected(&mut self, stream: &Stream) -> io::Result<bool> {
        let (failed, peer) = match &stream.0 {
            Kind::Tcp(tcp) => (tcp.take_error()?, tcp.peer_addr().err()),
            Kind::Unix(unix) => (unix.take_error()?, unix.peer_addr().err()),
        };
        match (failed, peer) {
            (Some(error), _) => Err(error),
            (None, None) => Ok(true),
            (None, Some(error)) if error.kind() == io::ErrorKind::NotConnected => Ok(false),
            (None, Some(error)) => Err(error),
        }
    }

    #[inline]
    fn read(&mut self, stream: &mut Stream, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            match rustix::io::read(&*stream, &mut *buf) {
                Err(rustix::io::Errno::INTR) => continue,
                result => return Ok(result?),
            }
        }
    }

    fn read_append(&mut self, stream: &mut Stream, buf: &mut Vec<u8>) -> io::Result<usize> {
        loop {
            match rustix::io::read(&*stream, spare_capacity(buf)) {
                Err(rustix::io::Errno::INTR) => continue,
                result => return Ok(result?),
            }
        }
    }

    #[inline]
    fn write(&mut self, stream: &mut Stream, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        loop {
            let result = match parts {
                [one] => rustix::net::send(&*stream, one, SendFlags::NOSIGNAL),
                many => rustix::net::sendmsg(
                    &*stream,
                    many,
                    &mut SendAncillaryBuffer::default(),
                    SendFlags::NOSIGNAL,
                ),
            };
            match result {
                Err(rustix::io::Errno::INTR) => continue,
                result => return Ok(result?),
            }
        }
    }

    fn poll(&mut self, events: &mut Vec<Event>, timeout: Option<Duration>) -> io::Result<()> {
        match self.poll.poll(&mut self.events, timeout) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            result => result?,
        }
        events.extend(self.events.iter().map(|event| {
            let closed = event.is_read_closed() || event.is_error();
            Event {
                token: Token(event.token().0),
                readable: event.is_readable() || closed,
                writable: event.is_writable(),
                closed,
            }
        }));
        Ok(())
    }

    fn close(&mut self, stream: Stream) {
        // Dropping the descriptor takes it out of the queue too: no one else holds a copy of it.
        drop(stream);
    }

    fn local_address(&self, stream: &Stream) -> Option<Address> {
        match &stream.0 {
            Kind::Tcp(tcp) => tcp.local_addr().ok().map(Address::Tcp),
            Kind::Unix(_) => None,
        }
    }

    fn random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }
}

/// A TCP or Unix stream socket of [`OsNet`].
#[derive(Debug)]
pub struct Stream(Kind);

#[derive(Debug)]
enum Kind {
    Tcp(mio::net::TcpStream),
    Unix(mio::net::UnixStream),
}

impl Stream {
    fn source(&mut self) -> &mut dyn Source {
        match &mut self.0 {
            Kind::Tcp(tcp) => tcp,
            Kind::Unix(unix) => unix,
        }
    }
}

impl AsFd for Stream {
    #[inline]
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.0 {
            Kind::Tcp(tcp) => tcp.as_fd(),
            Kind::Unix(unix) => unix.as_fd(),
        }
    }
}

/// Taken out of the engine, a stream is an ordinary descriptor (still non-blocking).
impl From<Stream> for OwnedFd {
    fn from(stream: Stream) -> Self {
        match stream.0 {
            Kind::Tcp(tcp) => tcp.into(),
            Kind::Unix(unix) => unix.into(),
        }
    }
}

fn connect_in_progress(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::INPROGRESS.raw_os_error())
}

/// A seed that differs between clients and between runs; the standard library's hasher keys are random.
fn seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0u8) | 1
}

/// More ready connections than this are reported by the next poll.
const EVENTS_PER_POLL: usize = 1024;
