//! The simulated network: a [`Net`] with a virtual clock, a seed, faults, and servers that run inside it.
//!
//! A [`SimNet`] is a discrete-event simulation in one thread. Time passes only in [`poll`](Net::poll), which jumps to
//! the next event, so that hours of timeouts take microseconds. All random decisions come from the seed, so the seed
//! repeats a run.
//!
//! The simulation keeps the contract of [`Net`] and uses all the freedom that the contract leaves: bytes arrive in
//! pieces of any size, reads and writes are cut short, wake-ups are spurious or early, events come in any order, a
//! reset may destroy unread data, and an error may be reported only once, as on Linux. Not simulated: the receive
//! window (bytes of a server always arrive), reordering and loss (TCP hides them), and half closes by the client (the
//! engine never does one).
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
//! // A client that drives the network by hand. `HostClient::with_net` does all of this.
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
#[cfg(feature = "tls")]
mod tls;
mod trace;
mod world;

pub use http::{Behaviour, HttpServer, ReceivedRequest};
pub use names::{ScriptedAnswer, SimResolver};
pub use random::{Probability, Random};
pub use server::{Peer, SimServer};
#[cfg(feature = "tls")]
pub use tls::TlsServer;
pub use trace::{Entry, Trace};

use world::World;

/// A simulated network. Clones share it: a client takes one, and the test keeps another to look at it.
#[derive(Clone)]
pub struct SimNet(Rc<RefCell<World>>);

impl SimNet {
    /// A network without servers. All its random decisions come from `seed`.
    pub fn new(seed: u64) -> Self {
        Self(Rc::new(RefCell::new(World::new(seed))))
    }

    /// Puts a server at an address. `link` sets how the connections to it behave. Connects to an address without a
    /// server are refused.
    pub fn listen(&self, at: Address, link: Link, server: impl SimServer + 'static) {
        self.world().listen(at, link, Box::new(server));
    }

    /// The resolver of this network, for [`Client::with_net`](crate::Client::with_net). `names` decides the answer to
    /// each question. It runs inside `poll` and must not use the network. Replaces an earlier resolver.
    pub fn resolver(
        &self,
        names: impl FnMut(&mut Random, &str) -> ScriptedAnswer + 'static,
    ) -> SimResolver {
        self.world().names.set_script(Box::new(names))
    }

    /// Sets how many lookups the [`resolver`](Self::resolver) has in flight at a time, as
    /// [`HickoryResolver::max_in_flight`](crate::HickoryResolver::max_in_flight) does. Default: no limit. For use
    /// before the first lookup.
    pub fn set_lookups(&self, in_flight: usize) {
        self.world().names.set_lookups(in_flight);
    }

    /// The longest time from a question about this name to its answer, to its cancellation, or to now if there is
    /// neither. Only with a limit on the [lookups](Self::set_lookups); zero without.
    pub fn longest_lookup(&self, name: &str) -> Duration {
        let mut world = self.world();
        world.take_questions();
        world.names.longest_lookup(name, world.elapsed())
    }

    /// Questions to the [`resolver`](Self::resolver) without an answer so far. Cancelled ones do not count.
    pub fn open_questions(&self) -> usize {
        let mut world = self.world();
        world.take_questions();
        world.names.open_questions().count()
    }

    /// Sets how many streams may be open at a time. Further connects fail with `EMFILE`. Default: no limit.
    pub fn set_descriptors(&self, limit: usize) {
        self.world().descriptors = limit;
    }

    /// Sets how often [`poll`](Net::poll) returns early without events. Default: never.
    pub fn set_early_wakeups(&self, probability: Probability) {
        self.world().early_wakeups = probability;
    }

    /// Makes call number `nth` of [`connect`](Net::connect), [`connected`](Net::connected), [`read`](Net::read),
    /// [`read_append`](Net::read_append) or [`write`](Net::write) fail. All calls are counted together, from 0.
    pub fn fail_call(&self, nth: u64, failure: Failure) {
        self.world().failing = Some((nth, failure));
    }

    /// How many of the calls that [`fail_call`](Self::fail_call) counts were made.
    pub fn calls(&self) -> u64 {
        self.world().calls
    }

    /// Says that the caller acts, for example takes a part of a body, which causes reads. Without this call, many reads of
    /// one connection in a row panic with "one connection holds the client".
    pub fn note_caller(&self) {
        self.world().note_caller();
    }

    /// Lets time pass without a poll, as if the caller had been busy. The next [`poll`](Net::poll) reports what
    /// happened meanwhile.
    pub fn advance(&self, time: Duration) {
        self.world().advance(time);
    }

    /// Streams that are open now.
    pub fn open_streams(&self) -> usize {
        self.world().open
    }

    /// The most streams that were open at the same time.
    pub fn peak_streams(&self) -> usize {
        self.world().peak
    }

    /// All entries of the trace so far, in order. The same seed and the same calls give the same trace.
    pub fn trace(&self) -> Vec<Entry> {
        self.trace_since(0)
    }

    /// The entries of the [`trace`](Self::trace) from this index on.
    pub fn trace_since(&self, entry: usize) -> Vec<Entry> {
        self.world().trace[entry..].to_vec()
    }

    /// The number of entries of the [`trace`](Self::trace).
    pub fn traced(&self) -> usize {
        self.world().trace.len()
    }

    /// Sets whether a trace is kept, which takes memory for each entry. Default: yes.
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
        // Ports repeat after some time, as those of a real system do.
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
    /// With "simulation deadlock" if nothing would ever end the wait (the client has lost a wake-up, or waits for a
    /// silent server without a limit). With "simulation livelock" if time does not pass over too many polls, or over
    /// too many calls without a poll between them.
    fn poll(&mut self, events: &mut Vec<Event>, timeout: Option<Duration>) -> io::Result<()> {
        self.world().poll(events, timeout);
        Ok(())
    }

    /// A wake makes the running poll (if a server wakes) or else the next one return at once, without passing time.
    /// Wakes from the thread of the simulation keep a run repeatable; the arrival of other threads' wakes is not
    /// repeatable. A poll without anything to wait for panics even so: it does not wait for other threads.
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

/// How the connections to a server behave.
#[derive(Clone, Debug)]
pub struct Link {
    /// Time that each segment takes, in each direction. Segments never overtake one another. Default: 1 ms.
    pub latency: RangeInclusive<Duration>,
    /// Bytes that travel together: sent bytes arrive in pieces of these sizes. Default: 1460.
    pub segment: RangeInclusive<usize>,
    /// Bytes that the client can write before the server has taken them; then a write returns `WouldBlock`. Default: 64
    /// KiB.
    pub window: usize,
    /// What goes wrong on the connections. Default: nothing.
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

/// How often each fault happens on a [`Link`]. Default: never.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// For each connect: `EMFILE` at once.
    pub no_descriptor: Probability,
    /// For each connect: `ENOBUFS` at once.
    pub no_buffers: Probability,
    /// For each connect: `EADDRNOTAVAIL` at once.
    pub no_port: Probability,
    /// For each connect: refused after a round trip (at once on a Unix socket).
    pub refused: Probability,
    /// For each connect: `EHOSTUNREACH` after three round trips.
    pub unreachable: Probability,
    /// For each connect: no answer at all.
    pub black_hole: Probability,
    /// For each segment: lost together with the connection, which both sides see reset.
    pub reset: Probability,
    /// For each segment: lost with everything after it, in both directions, without an error.
    pub stall: Probability,
    /// For each read: fewer bytes than there are; the rest has an event of its own.
    pub short_read: Probability,
    /// For each write: fewer bytes than there is room for; an event follows.
    pub short_write: Probability,
    /// For each read and write: `WouldBlock` although there is data or room; an event follows.
    pub would_block: Probability,
    /// For each event: a second one soon after, without a reason.
    pub spurious: Probability,
}

/// How the call that [`SimNet::fail_call`] has chosen fails.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Failure {
    /// `EMFILE` from a connect, `ECONNREFUSED` from `connected`, `ECONNRESET` from a read or a write.
    Error,
    /// `WouldBlock` from a read or a write, "not yet" from `connected`, each with an event later; `EADDRNOTAVAIL` from
    /// a connect.
    NotNow,
    /// At most one byte from a read or a write, with an event for the rest. Other calls do not fail.
    OneByte,
}
