//! A TCP proxy on loopback that stands for a network with faults: it delays, stalls, keeps answers back, cuts connections and
//! refuses new ones.
//!
//! Used by the tests of the library as well, so this file needs nothing of the others here.
#![allow(
    dead_code,
    reason = "each test program is compiled with this module, and none uses all of it"
)]

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use socket2::{Domain, SockRef, Socket, Type};

/// A proxy. Its connections are cut when it is dropped.
pub(crate) struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    gate: Mutex<Gate>,
}

/// What happens to what arrives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Mode {
    /// It is passed on.
    Through,
    /// It is passed on after a while.
    Delay(Duration),
    /// It is kept until there is another mode. Connections are accepted.
    Stall,
    /// What the server sends is kept until there is another mode: what it was asked for is done, and nobody is told.
    HoldAnswers,
    /// It is passed on until the server sends something with these bytes, such as `COMMIT`: all connections are reset before
    /// that arrives, and the mode is `Through`.
    CutAt(&'static [u8]),
}

/// Whether connections are accepted.
enum Gate {
    Open {
        listener: Arc<TcpListener>,
        thread: JoinHandle<()>,
    },
    /// Keeps the port without listening.
    Closed(Socket),
    /// Only while it changes.
    Moving,
}

struct Shared {
    server: SocketAddr,
    state: Mutex<State>,
    changed: Condvar,
    /// How many connections were accepted.
    accepted: AtomicU64,
}

struct State {
    mode: Mode,
    /// Counts the cuts: a connection from before the last one ends.
    cuts: u64,
    /// The threads that pass something on.
    running: usize,
}

/// One side of the proxy passes bytes to the other.
struct Pump {
    pair: Arc<[TcpStream; 2]>,
    /// The side that is read: 0 is the client, 1 the server.
    from: usize,
    cuts: u64,
    shared: Arc<Shared>,
}

/// How often a thread that waits for bytes looks whether its connection was cut.
const LOOK: Duration = Duration::from_millis(20);

impl Proxy {
    /// A proxy to this port of loopback.
    pub(crate) fn new(port: u16) -> Self {
        let shared = Arc::new(Shared {
            server: (Ipv4Addr::LOCALHOST, port).into(),
            state: Mutex::new(State {
                mode: Mode::Through,
                cuts: 0,
                running: 0,
            }),
            changed: Condvar::new(),
            accepted: AtomicU64::new(0),
        });
        let socket = bound((Ipv4Addr::LOCALHOST, 0).into());
        let address = socket.local_addr().expect("an address");
        Self {
            address: address.as_socket().expect("an address of IP"),
            gate: Mutex::new(Gate::open(socket, &shared)),
            shared,
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// The address of a database, by way of the proxy.
    pub(crate) fn url(&self, url: &str) -> String {
        let server = format!(":{}/", self.shared.server.port());
        assert!(url.contains(&server), "{url} is not behind the proxy");
        url.replace(&server, &format!(":{}/", self.port()))
    }

    /// How many connections were accepted.
    pub(crate) fn accepted(&self) -> u64 {
        self.shared.accepted.load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self, mode: Mode) {
        self.shared.state().mode = mode;
        self.shared.changed.notify_all();
    }

    /// Resets all connections. New ones are accepted.
    pub(crate) fn cut(&self) {
        let mut state = self.shared.state();
        state.cuts += 1;
        self.shared.changed.notify_all();
        while state.running > 0 {
            let waited = self.shared.changed.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Refuses new connections. Those that there are stay.
    pub(crate) fn refuse(&self) {
        let mut gate = self.gate.lock().expect("no panic");
        if let Gate::Open { listener, thread } = std::mem::replace(&mut *gate, Gate::Moving) {
            // The port stays ours: two sockets may have it, and this one does not listen.
            let closed = bound(self.address);
            // Wakes the thread.
            SockRef::from(&*listener)
                .shutdown(Shutdown::Both)
                .expect("a listener");
            thread.join().expect("no panic");
            *gate = Gate::Closed(closed);
        }
    }

    /// Accepts new connections again.
    pub(crate) fn accept(&self) {
        let mut gate = self.gate.lock().expect("no panic");
        *gate = match std::mem::replace(&mut *gate, Gate::Moving) {
            Gate::Closed(socket) => Gate::open(socket, &self.shared),
            open => open,
        };
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.refuse();
        self.cut();
    }
}

impl Gate {
    fn open(socket: Socket, shared: &Arc<Shared>) -> Self {
        socket.listen(128).expect("a port of its own");
        let listener = Arc::new(TcpListener::from(socket));
        let thread = {
            let (listener, shared) = (Arc::clone(&listener), Arc::clone(shared));
            thread::spawn(move || {
                // Ends when the listener is shut down.
                while let Ok((client, _)) = listener.accept() {
                    Shared::begin(&shared, client);
                }
            })
        };
        Self::Open { listener, thread }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(shared: &Arc<Self>, client: TcpStream) {
        shared.accepted.fetch_add(1, Ordering::Relaxed);
        let Ok(server) = TcpStream::connect(shared.server) else {
            reset(&client);
            return;
        };
        for side in [&client, &server] {
            side.set_nodelay(true).expect("a socket");
            side.set_read_timeout(Some(LOOK)).expect("a socket");
            side.set_write_timeout(Some(LOOK)).expect("a socket");
        }
        let pair = Arc::new([client, server]);
        let mut state = shared.state();
        for from in [0, 1] {
            let pump = Pump {
                pair: Arc::clone(&pair),
                from,
                cuts: state.cuts,
                shared: Arc::clone(shared),
            };
            state.running += 1;
            thread::spawn(move || pump.run());
        }
    }
}

impl Pump {
    fn run(self) {
        self.pass();
        if self.is_cut() {
            self.pair.iter().for_each(reset);
        }
        let Self { pair, shared, .. } = self;
        // The last thread of a pair closes it.
        drop(pair);
        shared.state().running -= 1;
        shared.changed.notify_all();
    }

    /// Passes bytes on until one side ends, or the connection is cut.
    fn pass(&self) {
        let (mut from, mut to) = (&self.pair[self.from], &self.pair[1 - self.from]);
        let mut buffer = vec![0; 64 * 1024];
        while !self.is_cut() {
            let count = match from.read(&mut buffer) {
                Ok(count) => count,
                Err(error) if waits(&error) => continue,
                Err(_) => break,
            };
            self.wait_for_passage(&buffer[..count]);
            let mut rest = &buffer[..count];
            while !rest.is_empty() && !self.is_cut() {
                match to.write(rest) {
                    Ok(count) => rest = &rest[count..],
                    Err(error) if waits(&error) => {}
                    Err(_) => return,
                }
            }
            if count == 0 {
                break;
            }
        }
        if !self.is_cut() {
            // A side that is gone already needs no end.
            let _ = to.shutdown(Shutdown::Write);
        }
    }

    fn is_cut(&self) -> bool {
        self.shared.state().cuts > self.cuts
    }

    fn wait_for_passage(&self, bytes: &[u8]) {
        let mut state = self.shared.state();
        loop {
            let holds = match state.mode {
                Mode::Through => false,
                Mode::Delay(time) => {
                    drop(state);
                    thread::sleep(time);
                    return;
                }
                Mode::Stall => true,
                Mode::HoldAnswers => self.from == 1,
                Mode::CutAt(end) => {
                    let mut windows = bytes.windows(end.len());
                    if self.from == 1 && windows.any(|window| window == end) {
                        state.mode = Mode::Through;
                        state.cuts += 1;
                        self.shared.changed.notify_all();
                    }
                    false
                }
            };
            if !holds || state.cuts > self.cuts {
                return;
            }
            let waited = self.shared.changed.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// A socket that has the port, and may share it.
fn bound(address: SocketAddr) -> Socket {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    socket.set_reuse_address(true).expect("a socket");
    socket.set_reuse_port(true).expect("a socket");
    socket.bind(&address.into()).expect("a port");
    socket
}

/// Lets the socket end with a reset when it is closed.
fn reset(side: &TcpStream) {
    SockRef::from(side)
        .set_linger(Some(Duration::ZERO))
        .expect("a socket");
}

fn waits(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
    )
}
