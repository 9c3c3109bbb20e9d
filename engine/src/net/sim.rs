//! The simulated network: a [`Net`] with a virtual clock, a seed, faults, and servers that run inside it.
//!
//! A [`SimNet`] is a discrete-event simulation in one thread. Time stands still but in [`poll`](Net::poll), which
//! jumps to the next thing that happens, so that hours of timeouts take microseconds; and everything that chance
//! decides comes from the seed, so that a run can be had again by its seed.
//!
//! It keeps to the contract of [`Net`] and uses all the freedom that the contract leaves: bytes arrive in pieces of
//! any size, reads and writes are cut short, wake-ups are spurious or early, events come in any order, a reset
//! destroys unread data or not, and an error is told once only, as Linux does it. What it leaves out: the receive
//! window (what a server sends always arrives), reordering and loss (TCP hides them), and the client's half close
//! (the engine never does one).
//!
//! ```
//! use std::time::Duration;
//! use courser::net::sim::{HttpServer, Link, SimNet};
//! use courser::net::{Address, Net, SocketOptions, Token};
//! use std::io::IoSlice;
//!
//! let to = Address::Tcp("10.0.0.1:80".parse()?);
//! let server = HttpServer::default();
//! let mut net = SimNet::new(42);
//! net.listen(to.clone(), Link::default(), server.clone());
//!
//! // A client that drives the network by hand; `HostClient::with_net` does all of this.
//! let mut events = Vec::new();
//! let mut stream = net.connect(Token(0), &to, &SocketOptions::default())?;
//! net.poll(&mut events, None)?;
//! assert!(events[0].writable && net.connected(&stream)?);
//! net.write(&mut stream, &[IoSlice::new(b"GET / HTTP/1.1\r\nHost: sim\r\nX-Id: 7\r\n\r\n")])?;
//!
//! let (mut head, mut piece) = (Vec::new(), [0; 512]);
//! while !head.windows(4).any(|end| end == b"\r\n\r\n") {
//!     net.poll(&mut events, Some(Duration::from_secs(1)))?;
//!     while let Ok(n @ 1..) = net.read(&mut stream, &mut piece) {
//!         head.extend_from_slice(&piece[..n]);
//!     }
//! }
//! assert!(String::from_utf8_lossy(&head).contains("X-Id: 7\r\n"));
//! assert_eq!(server.journal()[0].id, 7);
//! net.close(stream);
//! assert_eq!(net.open_streams(), 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::cell::{RefCell, RefMut};
use std::fmt;
use std::io::{self, IoSlice};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::{Address, Event, Net, SocketOptions, Token, Waker};

mod http;
mod names;
mod random;
mod server;
#[cfg(test)]
mod tests;
mod trace;
mod world;

pub use http::{Behaviour, Heard, HttpServer};
pub use names::{Asked, SimResolver};
pub use random::{Odds, Random};
pub use server::{Peer, SimServer};
pub use trace::{Entry, Trace};

use world::World;

/// A simulated network. Clones are handles on the same one: a client takes one, the test keeps another to look at it.
#[derive(Clone)]
pub struct SimNet(Rc<RefCell<World>>);

impl SimNet {
    /// A network without any server, whose chance comes from `seed`.
    pub fn new(seed: u64) -> Self {
        Self(Rc::new(RefCell::new(World::new(seed))))
    }

    /// Puts a server at an address; the link says how the way there behaves. Connects to an address without a server
    /// are refused.
    pub fn listen(&self, at: Address, link: Link, server: impl SimServer + 'static) {
        self.world().listen(at, link, Box::new(server));
    }

    /// The resolver of this network, for [`Client::with_net`](crate::Client::with_net). `names` says what each question
    /// gets; it runs inside `poll` and must not touch the network. Replaces the one before.
    pub fn resolver(&self, names: impl FnMut(&mut Random, &str) -> Asked + 'static) -> SimResolver {
        self.world().names.serve(Box::new(names))
    }

    /// Questions to the [`resolver`](Self::resolver) that were not answered yet.
    pub fn open_questions(&self) -> usize {
        self.world().names.open_questions().count()
    }

    /// Limits how many streams can be open at a time: connects beyond it fail with `EMFILE`. Default: none.
    pub fn set_descriptors(&self, limit: usize) {
        self.world().descriptors = limit;
    }

    /// How often [`poll`](Net::poll) returns before its time with nothing. Default: never.
    pub fn set_early_wakeups(&self, odds: Odds) {
        self.world().early_wakeups = odds;
    }

    /// Makes the `nth` call of [`connect`](Net::connect), [`connected`](Net::connected), [`read`](Net::read),
    /// [`read_append`](Net::read_append) or [`write`](Net::write) fail, counted from 0 over all of them.
    pub fn fail_call(&self, nth: u64, failure: Failure) {
        self.world().failing = Some((nth, failure));
    }

    /// How many of the calls that [`fail_call`](Self::fail_call) counts there were.
    pub fn calls(&self) -> u64 {
        self.world().calls
    }

    /// Lets time pass without anyone looking, as if the caller had been busy. What happens meanwhile is found by the
    /// next [`poll`](Net::poll).
    pub fn advance(&self, time: Duration) {
        self.world().advance(time);
    }

    /// Streams that were opened and not yet closed.
    pub fn open_streams(&self) -> usize {
        self.world().open
    }

    /// The most streams that were ever open at a time.
    pub fn peak_streams(&self) -> usize {
        self.world().peak
    }

    /// Everything that happened so far, in order. The same seed and the same calls give the same trace.
    pub fn trace(&self) -> Vec<Entry> {
        self.world().trace.clone()
    }

    /// How many entries [`trace`](Self::trace) has.
    pub fn traced(&self) -> usize {
        self.world().trace.len()
    }

    /// Whether what happens is traced, which takes memory for all of it. Default: it is.
    pub fn set_tracing(&self, on: bool) {
        self.world().tracing = on;
    }

    fn world(&self) -> RefMut<'_, World> {
        self.0.borrow_mut()
    }
}

impl Net for SimNet {
    type Stream = SimStream;

    fn now(&self) -> Instant {
        self.0.borrow().now()
    }

    fn connect(
        &mut self,
        token: Token,
        to: &Address,
        options: &SocketOptions,
    ) -> io::Result<SimStream> {
        let id = self.world().connect(token, to)?;
        let ip = options.bind.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
        // Not unique for ever, as port numbers are not.
        let port = 1024 + u16::try_from(id % 60_000).unwrap_or(0);
        Ok(SimStream {
            id,
            local: matches!(to, Address::Tcp(_)).then(|| SocketAddr::new(ip, port).into()),
        })
    }

    fn connected(&mut self, stream: &SimStream) -> io::Result<bool> {
        self.world().connected(stream.id)
    }

    fn read(&mut self, stream: &mut SimStream, buf: &mut [u8]) -> io::Result<usize> {
        self.world().read(stream.id, buf)
    }

    fn read_append(&mut self, stream: &mut SimStream, buf: &mut Vec<u8>) -> io::Result<usize> {
        let start = buf.len();
        buf.resize(buf.capacity(), 0);
        let result = self.world().read(stream.id, &mut buf[start..]);
        buf.truncate(start + result.as_ref().map_or(0, |n| *n));
        result
    }

    fn write(&mut self, stream: &mut SimStream, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.world().write(stream.id, parts)
    }

    /// # Panics
    /// With "simulation deadlock" when nothing would ever end the wait (the client has lost a wake-up, or waits for a
    /// silent server without a limit), and with "simulation livelock" when time stands still for too long: here, or
    /// in any of the other calls without a `poll` between them.
    fn poll(&mut self, events: &mut Vec<Event>, timeout: Option<Duration>) -> io::Result<()> {
        self.world().poll(events, timeout);
        Ok(())
    }

    /// A wake makes the poll that is running (it comes from a server then) or else the next one return at once,
    /// without letting time pass. Wakes from the simulation's thread keep a run repeatable; when another thread's
    /// arrives is chance. A poll that has nothing to wait for panics as always: it does not wait for other threads.
    fn waker(&mut self) -> io::Result<Waker> {
        let woken = Arc::clone(&self.world().woken);
        Ok(Waker::new(move || woken.store(true, Ordering::Release)))
    }

    fn close(&mut self, stream: SimStream) {
        self.world().close(stream.id);
    }

    fn local_address(&self, stream: &SimStream) -> Option<Address> {
        stream.local.clone()
    }

    fn random(&mut self) -> u64 {
        self.world().jitter.number()
    }
}

impl fmt::Debug for SimNet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let world = self.0.borrow();
        f.debug_struct("SimNet")
            .field("now", &world.elapsed)
            .field("open", &world.open)
            .field("calls", &world.calls)
            .finish_non_exhaustive()
    }
}

/// One connection of a [`SimNet`].
#[derive(Debug)]
pub struct SimStream {
    id: u64,
    local: Option<Address>,
}

/// How the way to a server behaves.
#[derive(Clone, Debug)]
pub struct Link {
    /// Time that each segment takes, in each direction. Segments never overtake each other. Default: 1 ms.
    pub latency: RangeInclusive<Duration>,
    /// Bytes that travel together: what is sent in one go arrives in pieces of these sizes. Default: 1460.
    pub segment: RangeInclusive<usize>,
    /// Bytes that the client can write before the server has taken them; the next write says `WouldBlock`. Default:
    /// 64 KiB.
    pub window: usize,
    /// What goes wrong on the way. Default: nothing.
    pub faults: Faults,
}

impl Default for Link {
    fn default() -> Self {
        let millisecond = Duration::from_millis(1);
        Self {
            latency: millisecond..=millisecond,
            segment: 1460..=1460,
            window: 64 * 1024,
            faults: Faults::default(),
        }
    }
}

/// How often what goes wrong on a [`Link`]. Default: never.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// Per connect: `EMFILE` at once.
    pub no_descriptor: Odds,
    /// Per connect: `ENOBUFS` at once.
    pub no_buffers: Odds,
    /// Per connect: `EADDRNOTAVAIL` at once.
    pub no_port: Odds,
    /// Per connect: refused after a round trip (at once on a Unix socket).
    pub refused: Odds,
    /// Per connect: `EHOSTUNREACH` after three round trips.
    pub unreachable: Odds,
    /// Per connect: no answer at all.
    pub black_hole: Odds,
    /// Per segment: lost with the whole connection, which both sides see reset.
    pub reset: Odds,
    /// Per segment: lost with everything after it, in both directions, and nobody is told.
    pub stall: Odds,
    /// Per read: fewer bytes than there are; the rest follows with an event of its own.
    pub short_read: Odds,
    /// Per write: fewer bytes than there is room for; an event follows.
    pub short_write: Odds,
    /// Per read and write: `WouldBlock` although there is something to read or room to write; an event follows.
    pub would_block: Odds,
    /// Per event: another one soon after, for no reason.
    pub spurious: Odds,
}

/// How the call chosen by [`SimNet::fail_call`] fails.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Failure {
    /// `EMFILE` from a connect, `ECONNREFUSED` from `connected`, `ECONNRESET` from a read or a write.
    Error,
    /// `WouldBlock` from a read or a write, "not yet" from `connected`, with an event to follow; `EADDRNOTAVAIL` from
    /// a connect.
    NotNow,
    /// One byte, if there is one, from a read or a write, with an event for the rest; the others do not fail.
    OneByte,
}
