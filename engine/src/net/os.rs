//! The network of the operating system: mio for readiness, non-blocking TCP and Unix sockets. Names and TLS are handled
//! elsewhere.
//!
//! Reads and writes use rustix instead of mio's `Read` and `Write`: rustix appends to the spare capacity of a vector
//! without zeroing it first, sends with `MSG_NOSIGNAL`, and receives with `recv`, which costs the kernel less than
//! `read`.

use std::io::{self, IoSlice};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::event::Source;
use mio::{Interest, Poll};
use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags};
use socket2::{Domain, Protocol, SockAddr, Socket, TcpKeepalive, Type};

use super::shortage::{recognized, recognized_in_connect};
use super::sleep::Sleep;
use super::{Address, Event, Net, SocketOptions, Token, Waker};

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
    /// Created by the first call of `waker`.
    wake_state: Option<WakeState>,
    /// State of a xorshift generator; never zero.
    random: u64,
}

impl OsNet {
    /// Opens a queue of readiness events.
    ///
    /// # Errors
    /// The system's error if no descriptor is left.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            poll: Poll::new().map_err(recognized)?,
            events: mio::Events::with_capacity(EVENTS_PER_POLL),
            wake_state: None,
            random: random_seed(),
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
                )
                .map_err(recognized)?;
                socket.set_tcp_nodelay(options.nodelay)?;
                if let Some(idle) = options.keepalive {
                    let time = idle.clamp(SHORTEST_KEEPALIVE, LONGEST_KEEPALIVE);
                    let times = TcpKeepalive::new().with_time(time).with_interval(time);
                    socket.set_tcp_keepalive(&times)?;
                }
                if let Some(device) = &options.device {
                    bind_device(&socket, device)?;
                }
                if options.bind.is_some() || options.local_ports.is_some() {
                    bind(&socket, *address, options)?;
                }
                match socket.connect(&SockAddr::from(*address)) {
                    Ok(()) => {}
                    Err(error) if connect_in_progress(&error) => {}
                    Err(error) => return Err(recognized_in_connect(error, *address)),
                }
                Stream(StreamKind::Tcp(mio::net::TcpStream::from_std(
                    socket.into(),
                )))
            }
            Address::Unix(path) => {
                let unix = connect_unix(path).map_err(recognized)?;
                Stream(StreamKind::Unix(unix))
            }
        };
        let registry = self.poll.registry();
        let interest = Interest::READABLE | Interest::WRITABLE;
        registry
            .register(stream.source(), mio::Token(token.0), interest)
            .map_err(recognized)?;
        Ok(stream)
    }

    fn connected(&mut self, stream: &Stream) -> io::Result<bool> {
        let (failed, peer) = match &stream.0 {
            StreamKind::Tcp(tcp) => (tcp.take_error()?, tcp.peer_addr().err()),
            StreamKind::Unix(unix) => (unix.take_error()?, unix.peer_addr().err()),
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
            match rustix::net::recv(&*stream, &mut *buf, RecvFlags::empty()) {
                Err(Errno::INTR) => continue,
                result => return Ok(result?.0),
            }
        }
    }

    fn read_append(&mut self, stream: &mut Stream, buf: &mut Vec<u8>) -> io::Result<usize> {
        loop {
            match rustix::net::recv(&*stream, spare_capacity(buf), RecvFlags::empty()) {
                Err(Errno::INTR) => continue,
                result => return Ok(result?.0),
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
                Err(Errno::INTR) => continue,
                result => return Ok(result?),
            }
        }
    }

    fn poll(&mut self, events: &mut Vec<Event>, timeout: Option<Duration>) -> io::Result<()> {
        let woken = self
            .wake_state
            .as_ref()
            .is_some_and(|wake_state| wake_state.sleep.begin());
        let timeout = if woken { Some(Duration::ZERO) } else { timeout };
        let polled = self.poll.poll(&mut self.events, timeout);
        if let Some(wake_state) = &self.wake_state {
            wake_state.sleep.end();
        }
        match polled {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            result => result?,
        }
        let others = self.events.iter().filter(|event| event.token() != WAKER);
        events.extend(others.map(|event| {
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

    fn waker(&mut self) -> io::Result<Waker> {
        if let Some(wake_state) = &self.wake_state {
            return Ok(wake_state.waker.clone());
        }
        let source = mio::Waker::new(self.poll.registry(), WAKER).map_err(recognized)?;
        let source = Arc::new(source);
        let sleep = Arc::new(Sleep::default());
        let waker = Waker::new({
            let (source, sleep) = (Arc::downgrade(&source), Arc::clone(&sleep));
            move || {
                if sleep.interrupt()
                    && let Some(source) = source.upgrade()
                {
                    // This fails only for a closed descriptor, and this one is open.
                    let _ = source.wake();
                }
            }
        });
        let wake_state = self.wake_state.insert(WakeState {
            waker,
            sleep,
            _source: source,
        });
        Ok(wake_state.waker.clone())
    }

    fn close(&mut self, stream: Stream) {
        // Closing the only descriptor of the socket also removes it from the queue.
        drop(stream);
    }

    fn local_address(&self, stream: &Stream) -> Option<Address> {
        match &stream.0 {
            StreamKind::Tcp(tcp) => tcp.local_addr().ok().map(Address::Tcp),
            StreamKind::Unix(_) => None,
        }
    }

    fn random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }
}

/// The waker, and whether it must use a system call.
#[derive(Debug)]
struct WakeState {
    waker: Waker,
    sleep: Arc<Sleep>,
    /// Closed with the network, since wakers hold only a weak reference.
    _source: Arc<mio::Waker>,
}

/// A TCP or Unix stream socket of [`OsNet`].
#[derive(Debug)]
pub struct Stream(StreamKind);

#[derive(Debug)]
enum StreamKind {
    Tcp(mio::net::TcpStream),
    Unix(mio::net::UnixStream),
}

impl Stream {
    fn source(&mut self) -> &mut dyn Source {
        match &mut self.0 {
            StreamKind::Tcp(tcp) => tcp,
            StreamKind::Unix(unix) => unix,
        }
    }
}

impl AsFd for Stream {
    #[inline]
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.0 {
            StreamKind::Tcp(tcp) => tcp.as_fd(),
            StreamKind::Unix(unix) => unix.as_fd(),
        }
    }
}

/// A stream that leaves the engine is an ordinary descriptor. It is still non-blocking.
impl From<Stream> for OwnedFd {
    fn from(stream: Stream) -> Self {
        match stream.0 {
            StreamKind::Tcp(tcp) => tcp.into(),
            StreamKind::Unix(unix) => unix.into(),
        }
    }
}

/// Binds a socket to its local address and the first port that is free.
#[cold]
fn bind(socket: &Socket, to: SocketAddr, options: &SocketOptions) -> io::Result<()> {
    let any: IpAddr = match to {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let ip = options.bind.unwrap_or(any);
    let ports = options.local_ports.clone().unwrap_or(0..=0);
    let mut last = io::ErrorKind::AddrInUse.into();
    for port in ports {
        match socket.bind(&SockAddr::from(SocketAddr::new(ip, port))) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => last = error,
            bound => return bound,
        }
    }
    Err(last)
}

#[cfg(target_os = "linux")]
fn bind_device(socket: &Socket, device: &str) -> io::Result<()> {
    socket.bind_device(Some(device.as_bytes()))
}

#[cfg(not(target_os = "linux"))]
fn bind_device(_: &Socket, _: &str) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

fn connect_unix(path: &Path) -> io::Result<mio::net::UnixStream> {
    match path.as_os_str().as_bytes() {
        #[cfg(target_os = "linux")]
        [0, name @ ..] => {
            use std::os::linux::net::SocketAddrExt as _;
            let address = std::os::unix::net::SocketAddr::from_abstract_name(name)?;
            mio::net::UnixStream::connect_addr(&address)
        }
        _ => mio::net::UnixStream::connect(path),
    }
}

fn connect_in_progress(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    // A signal does not end the attempt either.
    matches!(errno, Some(Errno::INPROGRESS | Errno::INTR))
}

/// A seed that differs between clients and between runs: the keys of the standard library's hasher are random.
fn random_seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0u8) | 1
}

/// The token of the waker, which [`Token`] reserves.
const WAKER: mio::Token = mio::Token(usize::MAX);
/// The times of keep-alive probes that Linux accepts.
const SHORTEST_KEEPALIVE: Duration = Duration::from_secs(1);
const LONGEST_KEEPALIVE: Duration = Duration::from_secs(32_767);
/// Events that one poll reports; the next poll reports the rest.
const EVENTS_PER_POLL: usize = 1024;

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_wake_ends_the_next_poll_and_only_that() {
        let mut net = OsNet::new().unwrap();
        let waker = net.waker().unwrap();
        let mut events = Vec::new();
        waker.wake();
        net.waker().unwrap().wake();
        net.poll(&mut events, None).unwrap();
        assert!(events.is_empty());
        let began = Instant::now();
        let pause = Duration::from_millis(5);
        net.poll(&mut events, Some(pause)).unwrap();
        assert!(
            began.elapsed() >= pause,
            "two wakes before a poll end only one poll"
        );
    }

    #[test]
    fn keep_alive_times_are_those_that_the_system_accepts() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let to = Address::Tcp(listener.local_addr().unwrap());
        for (milliseconds, seconds) in [(200, 1), (5_900, 5), (40_000_000, 32_767)] {
            let options = SocketOptions {
                keepalive: Some(Duration::from_millis(milliseconds)),
                ..SocketOptions::default()
            };
            let mut net = OsNet::new().unwrap();
            let stream = net.connect(Token(0), &to, &options).unwrap();
            let socket = socket2::SockRef::from(&stream);
            let expected = Duration::from_secs(seconds);
            assert_eq!(socket.tcp_keepalive_time().unwrap(), expected);
            assert_eq!(socket.tcp_keepalive_interval().unwrap(), expected);
        }
    }

    #[test]
    fn the_first_free_local_port_is_taken() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let to = Address::Tcp(listener.local_addr().unwrap());
        // A pair of ports, of which the lower one is in use.
        let (taken, free) = loop {
            let taken = std::net::TcpListener::bind("0.0.0.0:0").unwrap();
            let port = taken.local_addr().unwrap().port();
            let next = port.checked_add(1);
            if let Some(next) = next
                && std::net::TcpListener::bind(("0.0.0.0", next)).is_ok()
            {
                break (taken, next);
            }
        };
        let taken_port = taken.local_addr().unwrap().port();
        let connect = |ports| {
            let options = SocketOptions {
                local_ports: Some(ports),
                ..SocketOptions::default()
            };
            let mut net = OsNet::new().unwrap();
            let stream = net.connect(Token(0), &to, &options)?;
            Ok::<_, io::Error>(net.local_address(&stream))
        };
        let Some(Address::Tcp(local)) = connect(taken_port..=free).unwrap() else {
            panic!("a TCP stream has a local address");
        };
        assert_eq!(local.port(), free);
        let none_free = connect(taken_port..=taken_port).unwrap_err();
        assert_eq!(none_free.kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn a_device_that_does_not_exist_is_an_error() {
        let options = SocketOptions {
            device: Some("no-such-device".into()),
            ..SocketOptions::default()
        };
        let to = Address::Tcp("127.0.0.1:9".parse().unwrap());
        let connected = OsNet::new().unwrap().connect(Token(0), &to, &options);
        assert!(connected.is_err());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_path_that_begins_with_nul_is_an_abstract_name() {
        use std::os::linux::net::SocketAddrExt as _;
        let name = format!("courser-test-{}", std::process::id());
        let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
        let listener = std::os::unix::net::UnixListener::bind_addr(&address).unwrap();
        let to = Address::Unix(Path::new(&format!("\0{name}")).into());
        assert_eq!(to.to_string(), format!("unix:@{name}"));
        let mut net = OsNet::new().unwrap();
        let stream = net
            .connect(Token(0), &to, &SocketOptions::default())
            .unwrap();
        listener.accept().unwrap();
        assert!(net.connected(&stream).unwrap());
    }

    #[test]
    fn a_wake_from_another_thread_is_never_lost() {
        let mut net = OsNet::new().unwrap();
        let waker = net.waker().unwrap();
        let (send, received) = mpsc::channel();
        let (go_on, wait) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            for n in 0..2_000 {
                send.send(n).unwrap();
                waker.wake();
                // Every other number needs its own wake. Each of the others may share the wake of its successor.
                if n % 2 == 0 {
                    wait.recv().unwrap();
                }
            }
        });
        let mut events = Vec::new();
        let mut last = None;
        while last != Some(1_999) {
            net.poll(&mut events, None).unwrap();
            while let Ok(n) = received.try_recv() {
                last = Some(n);
                if n % 2 == 0 {
                    go_on.send(()).unwrap();
                }
            }
        }
        thread.join().unwrap();
        assert!(events.is_empty());
    }

    #[test]
    fn a_waker_may_outlive_its_network() {
        let waker = OsNet::new().unwrap().waker().unwrap();
        waker.wake();
        waker.wake();
    }
}
