//! The network of the operating system: mio for readiness, non-blocking TCP and Unix sockets. Names and TLS are handled
//! elsewhere.
//!
//! Reads and writes use rustix instead of mio's `Read` and `Write`: rustix appends to the spare capacity of a vector
//! without zeroing it first, sends with `MSG_NOSIGNAL`, and receives with `recv`, which costs the kernel less than
//! `read`.

use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, IoSlice};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::unix::SourceFd;
use mio::{Interest, Poll};
use rustix::buffer::spare_capacity;
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags};
use socket2::{Domain, SockAddr, Socket, TcpKeepalive, Type};

use super::shortage::{recognized, recognized_in_connect};
use super::sleep::Sleep;
use super::socket_hook::Kind;
use super::{Address, Event, Net, SocketOptions, Token, Waker};
use crate::hook::Hook;

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
    /// The caller waits for the descriptor between two polls, which do not wait.
    is_watched: bool,
    /// How long a poll looks for events before it sleeps, as the options of the last connection say.
    busy_poll: Option<Duration>,
    /// Has random keys, which differ between clients and between runs.
    random: RandomState,
    /// How many random numbers there were.
    numbers: u64,
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
            is_watched: false,
            busy_poll: None,
            random: RandomState::new(),
            numbers: 0,
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
        let stream = Stream(open(to, options)?);
        self.busy_poll = options.busy_poll;
        let (descriptor, token) = (stream.0.as_raw_fd(), mio::Token(token.0));
        let (mut source, interest) = (
            SourceFd(&descriptor),
            Interest::READABLE | Interest::WRITABLE,
        );
        let registered = self.poll.registry().register(&mut source, token, interest);
        registered.map_err(recognized)?;
        Ok(stream)
    }

    fn connected(&mut self, stream: &Stream) -> io::Result<bool> {
        match (stream.0.take_error()?, stream.0.peer_addr().err()) {
            (Some(error), _) => Err(error),
            (None, None) => Ok(true),
            (None, Some(error)) if error.kind() == io::ErrorKind::NotConnected => Ok(false),
            (None, Some(error)) => Err(error),
        }
    }

    #[inline]
    fn read(&mut self, stream: &mut Stream, buf: &mut [u8]) -> io::Result<usize> {
        receive(stream, buf)
    }

    fn read_append(&mut self, stream: &mut Stream, buf: &mut Vec<u8>) -> io::Result<usize> {
        let read = || rustix::net::recv(&*stream, spare_capacity(buf), RecvFlags::empty());
        Ok(retry_on_intr(read)?.0)
    }

    #[inline]
    fn write(&mut self, stream: &mut Stream, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        send(stream, parts)
    }

    fn poll(&mut self, events: &mut Vec<Event>, timeout: Option<Duration>) -> io::Result<()> {
        let sleep = self.wake_state.as_ref().map(|state| &state.sleep);
        let woken = match sleep {
            Some(sleep) if self.is_watched => {
                sleep.stay_asleep();
                false
            }
            Some(sleep) => sleep.begin(),
            None => false,
        };
        let timeout = if woken { Some(Duration::ZERO) } else { timeout };
        let polled = match self.busy_poll {
            None => self.poll.poll(&mut self.events, timeout),
            Some(limit) => poll_busily(&mut self.poll, &mut self.events, limit, timeout),
        };
        if let Some(sleep) = sleep.filter(|_| !self.is_watched) {
            sleep.end();
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
        if self.is_watched {
            sleep.stay_asleep();
        }
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

    fn descriptor(&mut self) -> io::Result<OwnedFd> {
        let descriptor = self.poll.registry().as_fd().try_clone_to_owned();
        let descriptor = descriptor.map_err(recognized)?;
        self.is_watched = true;
        Ok(descriptor)
    }

    fn close(&mut self, stream: Stream) {
        // Closing the only descriptor of the socket also removes it from the queue.
        drop(stream);
    }

    fn release(&mut self, stream: Stream) -> Option<Stream> {
        // Fails only for what is not registered, which is as good.
        let mut source = SourceFd(&stream.0.as_raw_fd());
        let _ = self.poll.registry().deregister(&mut source);
        Some(stream)
    }

    fn local_address(&self, stream: &Stream) -> Option<Address> {
        let local = stream.0.local_addr().ok()?;
        local.as_socket().map(Address::Tcp)
    }

    fn random(&mut self) -> u64 {
        self.numbers += 1;
        self.random.hash_one(self.numbers)
    }
}

/// Looks for events for this long, then sleeps for the rest of the timeout.
#[cold]
fn poll_busily(
    poll: &mut Poll,
    events: &mut mio::Events,
    limit: Duration,
    timeout: Option<Duration>,
) -> io::Result<()> {
    let began = Instant::now();
    loop {
        poll.poll(events, Some(Duration::ZERO))?;
        let elapsed = began.elapsed();
        let is_over = timeout.is_some_and(|timeout| timeout <= elapsed);
        if !events.is_empty() || is_over {
            return Ok(());
        }
        if elapsed >= limit {
            return poll.poll(events, timeout.map(|timeout| timeout - elapsed));
        }
    }
}

#[inline]
pub(super) fn receive(stream: &Stream, buf: &mut [u8]) -> io::Result<usize> {
    let read = || rustix::net::recv(stream, &mut *buf, RecvFlags::empty());
    Ok(retry_on_intr(read)?.0)
}

/// Writes the parts in order, with one system call.
#[inline]
pub(super) fn send(stream: &Stream, parts: &[IoSlice<'_>]) -> io::Result<usize> {
    let write = || match parts {
        [one] => rustix::net::send(stream, one, SendFlags::NOSIGNAL),
        many => {
            let no_ancillary = &mut SendAncillaryBuffer::default();
            rustix::net::sendmsg(stream, many, no_ancillary, SendFlags::NOSIGNAL)
        }
    };
    Ok(retry_on_intr(write)?)
}

/// The waker, and whether it must use a system call.
#[derive(Debug)]
struct WakeState {
    waker: Waker,
    sleep: Arc<Sleep>,
    /// Closed with the network, since wakers hold only a weak reference.
    _source: Arc<mio::Waker>,
}

/// A stream socket of [`OsNet`].
#[derive(Debug)]
pub struct Stream(Socket);

impl AsFd for Stream {
    #[inline]
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A stream that leaves the engine is an ordinary descriptor. It is still non-blocking.
impl From<Stream> for OwnedFd {
    fn from(stream: Stream) -> Self {
        stream.0.into()
    }
}

/// Opens a non-blocking socket, and begins to connect it.
fn open(to: &Address, options: &SocketOptions) -> io::Result<Socket> {
    let hook = options.hook.as_ref().map(|hook| &hook.0);
    if let Some(Kind::Connect(Hook(connect))) = hook {
        let socket = Socket::from(connect(to).map_err(recognized)?);
        socket.set_nonblocking(true)?;
        return Ok(socket);
    }
    let (domain, address) = match to {
        Address::Tcp(address) => (Domain::for_address(*address), SockAddr::from(*address)),
        Address::Unix(path) => (Domain::UNIX, SockAddr::unix(path)?),
    };
    let socket = Socket::new(domain, Type::STREAM.nonblocking(), None).map_err(recognized)?;
    if let Address::Tcp(_) = to {
        socket.set_tcp_nodelay(options.nodelay)?;
        if let Some(idle) = options.keepalive {
            let time = idle.clamp(SHORTEST_KEEPALIVE, LONGEST_KEEPALIVE);
            let times = TcpKeepalive::new().with_time(time).with_interval(time);
            socket.set_tcp_keepalive(&times)?;
        }
        if let Some(device) = &options.device {
            bind_device(&socket, device)?;
        }
        if let Some(time) = options.busy_poll {
            busy_poll(&socket, time);
        }
    }
    if let Some(Kind::Configure(Hook(configure))) = hook {
        configure(socket.as_fd(), to)?;
    }
    if let Address::Tcp(address) = to
        && (options.bind.is_some() || options.local_ports.is_some())
    {
        bind(&socket, *address, options)?;
    }
    match (socket.connect(&address), to) {
        (Ok(()), _) => Ok(socket),
        (Err(error), _) if connect_in_progress(&error) => Ok(socket),
        (Err(error), Address::Tcp(address)) => Err(recognized_in_connect(error, *address)),
        (Err(error), Address::Unix(_)) => Err(recognized(error)),
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
fn busy_poll(socket: &Socket, time: Duration) {
    let most = i32::MAX.unsigned_abs();
    let micros = u32::try_from(time.as_micros()).map_or(most, |micros| micros.min(most));
    // Without the privilege, the thread still looks for events itself.
    let _ = socket.set_busy_poll(micros);
}

#[cfg(not(target_os = "linux"))]
fn busy_poll(_: &Socket, _: Duration) {}

#[cfg(target_os = "linux")]
fn bind_device(socket: &Socket, device: &str) -> io::Result<()> {
    socket.bind_device(Some(device.as_bytes()))
}

#[cfg(not(target_os = "linux"))]
fn bind_device(_: &Socket, _: &str) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

fn connect_in_progress(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    // A signal does not end the attempt either.
    matches!(errno, Some(Errno::INPROGRESS | Errno::INTR))
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
    use super::*;
    use crate::net::SocketHook;

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
    fn a_local_address_is_one_of_the_machine() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let to = Address::Tcp(listener.local_addr().unwrap());
        let local = |own: &str| {
            let options = SocketOptions {
                bind: Some(own.parse().unwrap()),
                ..SocketOptions::default()
            };
            let mut net = OsNet::new().unwrap();
            let stream = net.connect(Token(0), &to, &options);
            stream.map(|stream| net.local_address(&stream).unwrap().to_string())
        };
        assert!(local("127.0.0.2").unwrap().starts_with("127.0.0.2:"));
        // No machine has an address of TEST-NET-1.
        let error = local("192.0.2.1").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrNotAvailable);
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

    fn connect_with(hook: SocketHook, to: &Address) -> io::Result<(OsNet, Stream)> {
        let options = SocketOptions {
            hook: Some(hook),
            ..SocketOptions::default()
        };
        let mut net = OsNet::new().unwrap();
        let stream = net.connect(Token(7), to, &options)?;
        Ok((net, stream))
    }

    #[test]
    fn a_hook_opens_any_stream_socket() {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        let to = Address::Tcp("192.0.2.1:80".parse().unwrap());
        let ours = std::sync::Mutex::new(Some(ours));
        let hook = SocketHook::connect({
            let to = to.clone();
            move |address| {
                assert_eq!(address, &to);
                Ok(ours.lock().unwrap().take().unwrap().into())
            }
        });
        let (mut net, mut stream) = connect_with(hook, &to).unwrap();
        assert!(net.connected(&stream).unwrap());
        assert_eq!(net.local_address(&stream), None);
        let nothing = net.read(&mut stream, &mut [0; 8]).unwrap_err();
        assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock, "does not block");
        drop(theirs);
        let mut events = Vec::new();
        while !events.iter().any(|event: &Event| event.closed) {
            net.poll(&mut events, None).unwrap();
        }
        assert!(events.iter().all(|event| event.token == Token(7)));
        assert_eq!(net.read(&mut stream, &mut [0; 8]).unwrap(), 0);
        net.close(stream);
    }

    #[test]
    fn a_hook_configures_a_socket_before_the_socket_is_bound() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let tcp = Address::Tcp(listener.local_addr().unwrap());
        let path = std::env::temp_dir().join(format!("courser-hook-{}", std::process::id()));
        let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        for to in [tcp, Address::Unix(path.clone().into())] {
            let hook = SocketHook::configure({
                let to = to.clone();
                move |socket, address| {
                    assert_eq!(address, &to);
                    let socket = socket2::SockRef::from(&socket);
                    assert!(socket.peer_addr().is_err(), "not connected yet");
                    if let Ok(Some(local)) = socket.local_addr().map(|it| it.as_socket()) {
                        assert_eq!(local.port(), 0, "not bound yet");
                        assert!(socket.tcp_nodelay()?, "the other options are set");
                    }
                    socket.set_linger(Some(Duration::from_secs(3)))
                }
            });
            let (_net, stream) = connect_with(hook, &to).unwrap();
            let linger = socket2::SockRef::from(&stream).linger().unwrap();
            assert_eq!(linger, Some(Duration::from_secs(3)), "{to}");
        }
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn an_error_of_a_hook_is_an_error_of_the_attempt() {
        let to = Address::Tcp("192.0.2.1:80".parse().unwrap());
        let refuse = || io::Error::from(io::ErrorKind::PermissionDenied);
        for hook in [
            SocketHook::configure(move |_, _| Err(refuse())),
            SocketHook::connect(move |_| Err(refuse())),
        ] {
            assert_eq!(hook, hook.clone());
            let error = connect_with(hook, &to).map(drop).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        }
        let none_left = SocketHook::connect(|_| Err(Errno::MFILE.into()));
        let error = connect_with(none_left, &to).map(drop).unwrap_err();
        let inner = error.get_ref().unwrap();
        assert!(inner.is::<crate::error::Shortage>(), "{error:?}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_path_that_begins_with_nul_is_an_abstract_name() {
        use std::os::linux::net::SocketAddrExt as _;
        let name = format!("courser-test-{}", std::process::id());
        let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
        let listener = std::os::unix::net::UnixListener::bind_addr(&address).unwrap();
        let to = Address::Unix(std::path::Path::new(&format!("\0{name}")).into());
        assert_eq!(to.to_string(), format!("unix:@{name}"));
        let mut net = OsNet::new().unwrap();
        let stream = net
            .connect(Token(0), &to, &SocketOptions::default())
            .unwrap();
        listener.accept().unwrap();
        assert!(net.connected(&stream).unwrap());
    }

    /// That no wake is lost meanwhile is in the models of `Shared`.
    #[test]
    fn a_wake_before_a_poll_ends_it_and_may_come_after_the_last_one() {
        let mut net = OsNet::new().unwrap();
        let waker = net.waker().unwrap();
        for _ in 0..2 {
            waker.wake();
            net.poll(&mut Vec::new(), None).unwrap();
        }
        drop(net);
        waker.wake();
    }

    #[test]
    fn a_wake_between_two_polls_makes_the_descriptor_readable() {
        let mut net = OsNet::new().unwrap();
        let before = net.waker().unwrap();
        let descriptor = net.descriptor().unwrap();
        let mut events = Vec::new();
        let is_readable = || {
            let mut polled = [rustix::event::PollFd::new(
                &descriptor,
                rustix::event::PollFlags::IN,
            )];
            let now = rustix::time::Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            };
            rustix::event::poll(&mut polled, Some(&now)).unwrap() == 1
        };
        net.poll(&mut events, Some(Duration::ZERO)).unwrap();
        for waker in [before, net.waker().unwrap()] {
            assert!(!is_readable());
            waker.wake();
            assert!(is_readable());
            waker.wake();
            net.poll(&mut events, Some(Duration::ZERO)).unwrap();
        }
        assert!(!is_readable());
        assert!(events.is_empty());
    }
}
