//! The network as the engine sees it: non-blocking streams, one readiness queue, one clock.
//!
//! [`Net`] is the only door to the operating system. [`os`] is the real one; `sim` (feature `sim`) is a simulated
//! network with a virtual clock and a seed, on which the same reactor and the same clients run.

use std::fmt;
use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub mod os;
pub mod resolve;
#[cfg(feature = "sim")]
pub mod sim;
pub(crate) mod sleep;
pub(crate) mod tls;
pub(crate) mod transport;

pub use crate::address::Address;

/// Non-blocking streams with edge-triggered readiness, a clock and a source of randomness.
///
/// The contract that the reactor relies on:
///
/// - [`connect`](Net::connect) starts a connection and registers it under `token` for both directions. The first
///   event for the token means that [`connected`](Net::connected) has an answer.
/// - Events are edges. After a readable event the reader reads until `WouldBlock`, or until a read returns fewer
///   bytes than there was room for, whichever comes first; data that arrives afterwards is a new event. An event with
///   [`closed`](Event::closed) is read until the end of the stream or an error whatever the lengths.
/// - After a `WouldBlock` from [`write`](Net::write), or a short write, a writable event follows once there is room.
/// - Events may be spurious: a call that then says `WouldBlock` is normal.
/// - No call blocks, except [`poll`](Net::poll), and that no longer than its timeout.
pub trait Net {
    /// One connection, connecting or connected. Dropping it without [`close`](Net::close) is a leak.
    type Stream;

    /// The monotonic time.
    fn now(&self) -> Instant;

    /// Starts a connection to `to`, to be reported under `token`.
    ///
    /// # Errors
    /// Whatever the system says at once: `EMFILE`, `EADDRNOTAVAIL`, a refused Unix socket...
    fn connect(
        &mut self,
        token: Token,
        to: &Address,
        options: &SocketOptions,
    ) -> io::Result<Self::Stream>;

    /// Whether the connection is up: `Ok(false)` means not yet (wait for the next event), an error that it failed.
    fn connected(&mut self, stream: &Self::Stream) -> io::Result<bool>;

    /// Reads into `buf`. `Ok(0)` is the end of the stream when `buf` is not empty.
    fn read(&mut self, stream: &mut Self::Stream, buf: &mut [u8]) -> io::Result<usize>;

    /// Appends to `buf` at most as much as it has spare capacity (which is not zero): the path for large bodies, which
    /// are written to memory once.
    fn read_append(&mut self, stream: &mut Self::Stream, buf: &mut Vec<u8>) -> io::Result<usize>;

    /// Writes the parts in order, in one call to the system; the count may be short.
    fn write(&mut self, stream: &mut Self::Stream, parts: &[IoSlice<'_>]) -> io::Result<usize>;

    /// Whether a read that returned `n` where there was room for `room` has left nothing behind, so that what comes next
    /// has an event of its own. A network that cuts reads short by itself says so here.
    #[inline]
    fn left_nothing(&self, stream: &Self::Stream, n: usize, room: usize) -> bool {
        let _ = stream;
        n < room
    }

    /// Waits until something happens or `timeout` passes (`None`: without limit) and appends what happened to
    /// `events`. May return early with nothing, and does so when it is [woken](Net::waker).
    fn poll(&mut self, events: &mut Vec<Event>, timeout: Option<Duration>) -> io::Result<()>;

    /// A handle that ends a [`poll`](Net::poll) early, from any thread. All wakers of one network are the same one.
    ///
    /// # Errors
    /// The system's, when it has no descriptor left for the first one.
    fn waker(&mut self) -> io::Result<Waker>;

    /// Ends the connection and frees its descriptor at once. No event for its token follows, except those that a
    /// previous `poll` already returned.
    fn close(&mut self, stream: Self::Stream);

    /// The local end of the connection, if the system knows it.
    fn local_address(&self, stream: &Self::Stream) -> Option<Address>;

    /// A random number, for jitter. Not for secrets.
    fn random(&mut self) -> u64;
}

/// Ends a [`Net::poll`] early: the one that is running, or else the next one.
///
/// What the waking thread did before the call is visible to the polling thread after that poll. Several wakes may end
/// one poll together, so the polling thread looks at everything that it could have been woken for.
///
/// ```
/// use courser::net::{Net, os::OsNet};
///
/// let mut net = OsNet::new()?;
/// let waker = net.waker()?;
/// let thread = std::thread::spawn(move || waker.wake());
/// let mut events = Vec::new();
/// net.poll(&mut events, None)?; // does not wait for ever
/// assert!(events.is_empty());
/// # thread.join().unwrap();
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct Waker(Arc<dyn Fn() + Send + Sync>);

impl Waker {
    /// For networks of your own: `wake` ends their `poll`. It may be called from any thread and must not block.
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(wake))
    }

    /// Ends the `poll` that is running, or else the next one. Never blocks; does nothing once the network is gone.
    pub fn wake(&self) {
        (self.0)();
    }
}

impl fmt::Debug for Waker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waker").finish_non_exhaustive()
    }
}

/// Names a connection in [`Event`]s. The reactor never uses one again for another connection, and never uses
/// `usize::MAX`.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Token(pub usize);

/// Something happened to a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Event {
    /// Which connection.
    pub token: Token,
    /// There may be something to read: data, the end of the stream, or an error.
    pub readable: bool,
    /// There may be room to write, or the connection attempt has ended.
    pub writable: bool,
    /// The peer has closed its side, or the connection has failed.
    pub closed: bool,
}

/// Socket options set on each new connection.
#[derive(Clone, Debug)]
pub struct SocketOptions {
    /// `TCP_NODELAY`. Default: on, since requests are written whole.
    pub nodelay: bool,
    /// Idle time before TCP keep-alive probes (`TCP_KEEPIDLE`). Default: none, since idle connections live for
    /// seconds only.
    pub keepalive: Option<Duration>,
    /// Local address to connect from. Default: the system's choice.
    pub bind: Option<IpAddr>,
}

impl Default for SocketOptions {
    fn default() -> Self {
        Self {
            nodelay: true,
            keepalive: None,
            bind: None,
        }
    }
}
