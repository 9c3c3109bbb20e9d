//! The network as the engine sees it: non-blocking streams, one queue of readiness events, one clock.
//!
//! The engine reaches the operating system only through [`Net`]. [`os`] implements it with real sockets. `sim` (feature
//! `sim`) is a simulated network with a virtual clock and a seed, on which the same reactor and the same clients run.

use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub mod os;
pub mod resolve;
pub(crate) mod session;
mod shortage;
#[cfg(feature = "sim")]
pub mod sim;
pub(crate) mod sleep;
mod socket_hook;
#[cfg_attr(not(feature = "tls"), path = "no_tls.rs")]
pub(crate) mod tls;
pub(crate) mod transport;
pub(crate) mod upgraded;

pub use crate::address::Address;
use crate::hook::Hook;
pub use socket_hook::SocketHook;

/// Non-blocking streams with edge-triggered readiness, a clock and a source of randomness.
///
/// The contract that the reactor relies on:
///
/// - [`connect`](Net::connect) starts a connection and registers it under `token` for both directions. From the first
///   event for the token on, [`connected`](Net::connected) can tell how the attempt ended.
/// - Events are edge-triggered. After a readable event the reader reads until `WouldBlock`, or until a read returns
///   fewer bytes than there was room for. Data that comes afterwards has a new event. After an event with
///   [`closed`](Event::closed), the reader reads until the end of the stream or an error, whatever the lengths.
/// - After a `WouldBlock` from [`write`](Net::write), or a short write, a writable event follows once there is room.
/// - Events may be spurious: a call after an event may return `WouldBlock`.
/// - No call blocks, except [`poll`](Net::poll), which blocks no longer than its timeout.
pub trait Net {
    /// One connection, connecting or connected. Dropping a stream without [`close`](Net::close) leaks it.
    type Stream;

    /// The monotonic time.
    fn now(&self) -> Instant;

    /// Starts a connection to `to`. Its events have `token`.
    ///
    /// # Errors
    /// An error that the system reports at once: a refused Unix socket, no route... An error that wraps a
    /// [`Shortage`](crate::error::Shortage) says that this machine has no descriptor left, or the like: the call then
    /// waits for a connection of the client, and the address is not blamed.
    fn connect(
        &mut self,
        token: Token,
        to: &Address,
        options: &SocketOptions,
    ) -> io::Result<Self::Stream>;

    /// Whether the connection is established. `Ok(false)` means not yet: wait for the next event. An error means that
    /// the attempt failed.
    fn connected(&mut self, stream: &Self::Stream) -> io::Result<bool>;

    /// Reads into `buf`. `Ok(0)` is the end of the stream when `buf` is not empty.
    fn read(&mut self, stream: &mut Self::Stream, buf: &mut [u8]) -> io::Result<usize>;

    /// Appends to `buf` at most as many bytes as it has spare capacity, which must not be zero. For large bodies, whose
    /// bytes are then written to memory once only.
    fn read_append(&mut self, stream: &mut Self::Stream, buf: &mut Vec<u8>) -> io::Result<usize>;

    /// Writes the parts in order, with one system call. May write fewer bytes than there are.
    fn write(&mut self, stream: &mut Self::Stream, parts: &[IoSlice<'_>]) -> io::Result<usize>;

    /// Whether a read that returned `n` bytes with room for `room` has emptied the socket, so that later data has a new
    /// event. A network that returns short reads for other reasons implements this method.
    #[inline]
    fn left_nothing(&self, stream: &Self::Stream, n: usize, room: usize) -> bool {
        let _ = stream;
        n < room
    }

    /// Waits for events, at most `timeout` (`None`: without limit), and appends them to `events`. May return early
    /// without events, and does so when it is [woken](Net::waker).
    fn poll(&mut self, events: &mut Vec<Event>, timeout: Option<Duration>) -> io::Result<()>;

    /// A handle that ends a [`poll`](Net::poll) early, from any thread. Every call returns a handle to the same waker.
    ///
    /// # Errors
    /// The system's error if no descriptor is left for the first waker.
    fn waker(&mut self) -> io::Result<Waker>;

    /// A descriptor for the event loop of the caller: it becomes readable when the next [`poll`](Net::poll) would return
    /// at once. The caller looks for events by `poll` without a timeout of its own, and waits for the descriptor in
    /// between. A poll that returns fewer than 1,000 events has returned all that there were.
    ///
    /// # Errors
    /// [`Unsupported`](io::ErrorKind::Unsupported) for a network that has no such descriptor, which is the default; the
    /// system's error if no descriptor is left.
    fn descriptor(&mut self) -> io::Result<OwnedFd> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Closes the connection and its descriptor at once. Its token has no further events, except those that an earlier
    /// `poll` returned already.
    fn close(&mut self, stream: Self::Stream);

    /// Takes a connection out of this network, for another protocol: a socket of its own, without events. A network
    /// whose connections are no sockets closes the connection, which is the default.
    fn release(&mut self, stream: Self::Stream) -> Option<os::Stream> {
        self.close(stream);
        None
    }

    /// The local address of the connection, if the system knows it.
    fn local_address(&self, stream: &Self::Stream) -> Option<Address>;

    /// A random number, for jitter. Not fit for secrets.
    fn random(&mut self) -> u64;
}

/// Ends a [`Net::poll`] early: the running one, or else the next one.
///
/// What the waking thread did before the call is visible to the polling thread after that poll. Several wakes may end
/// one poll together, so the polling thread must check everything for which it may have been woken.
///
/// ```
/// use courser::net::{Net, os::OsNet};
///
/// let mut net = OsNet::new()?;
/// let waker = net.waker()?;
/// let thread = std::thread::spawn(move || waker.wake());
/// let mut events = Vec::new();
/// net.poll(&mut events, None)?; // returns, although nothing happens
/// assert!(events.is_empty());
/// # thread.join().unwrap();
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Waker(Hook<dyn Fn() + Send + Sync>);

impl Waker {
    /// For other implementations of [`Net`]: `wake` ends their `poll`. It is called from any thread and must not block.
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Hook(Arc::new(wake)))
    }

    /// Ends the running `poll`, or else the next one. Never blocks. Does nothing if the network was dropped.
    pub fn wake(&self) {
        (self.0.0)();
    }
}

/// Names a connection in [`Event`]s. The reactor gives each connection its own token, never uses a token twice (on
/// 32-bit targets: not for the next 4,095 connections in the same place), and never uses `usize::MAX`.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Token(pub usize);

/// A readiness event of one connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Event {
    /// The connection.
    pub token: Token,
    /// There may be data, the end of the stream, or an error to read.
    pub readable: bool,
    /// There may be room to write, or the connection attempt has ended.
    pub writable: bool,
    /// The peer has closed its side, or the connection has failed.
    pub closed: bool,
}

/// Options that are set on each new socket.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SocketOptions {
    /// `TCP_NODELAY`. Default: on, since a request is written at once.
    pub nodelay: bool,
    /// Idle time before TCP keep-alive probes, and the time between two of them (`TCP_KEEPIDLE`, `TCP_KEEPINTVL`), in
    /// whole seconds from 1 to 32,767; other times are rounded to these. Default: no probes, since idle connections are
    /// kept for seconds only.
    pub keepalive: Option<Duration>,
    /// Local address to connect from. Default: chosen by the system.
    pub bind: Option<IpAddr>,
    /// The local ports to connect from, tried one after the other from the lowest. If none is free, the attempt fails
    /// with the system's error, "address in use". Default: chosen by the system.
    pub local_ports: Option<RangeInclusive<u16>>,
    /// The network interface to connect through (`SO_BINDTODEVICE`), by its name. Old systems (Linux before 5.7) allow
    /// this to privileged processes only; on systems other than Linux, an attempt with this option fails. Default: chosen
    /// by the system.
    pub device: Option<String>,
    /// For how long the thread that drives the client looks for events again and again before it sleeps. An answer that
    /// comes meanwhile is read without the wait for the system to wake the thread: between two processes of one machine,
    /// that was three tenths of a call's time. Meanwhile the thread uses a processor alone. Also set on each socket as
    /// `SO_BUSY_POLL`, in whole microseconds, where the system has this option and allows it (Linux, with
    /// `CAP_NET_ADMIN`). Not for clients that a [`Driver`](crate::shared::Driver) polls: they never sleep themselves.
    /// Default: sleep at once.
    pub busy_poll: Option<Duration>,
    /// What the program does itself when a connection is opened. Default: nothing.
    pub hook: Option<SocketHook>,
}

impl Default for SocketOptions {
    fn default() -> Self {
        Self {
            nodelay: true,
            keepalive: None,
            bind: None,
            local_ports: None,
            device: None,
            busy_poll: None,
            hook: None,
        }
    }
}
