//! A scripted HTTP server for one test: exact bytes, pauses on command, resets, half closes.
//!
//! Every accepted connection gets a thread that plays a [`Script`], a list of steps that reads like a protocol log:
//!
//! ```
//! use tests::script::{Server, connection};
//!
//! let server = Server::play([
//!     connection().request().send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").request().reset(),
//!     connection().request().send("HTTP/1.1 204 No Content\r\n\r\n"),
//! ]);
//! assert_eq!(server.accepted(), 0);
//! ```
//!
//! A script that has ended keeps the connection open and waits for the client to close it. There are no
//! sleeps: a step waits for bytes, for the end of the stream or for a [`Gate`] that the test opens. Each wait is cut
//! by [`PATIENCE`], so that a broken client fails a test instead of hanging it.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use socket2::Socket;
use tempfile::TempDir;

use crate::tls::{Acceptor, Layers, Session};

/// The longest that any step, and any wait of a test for a step, takes before it is given up.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A server on a free loopback port, or on a Unix socket in a directory of its own. Dropping it cuts all connections.
pub struct Server {
    /// That of a Unix socket.
    directory: Option<TempDir>,
    listener: Arc<Socket>,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

impl Server {
    /// A TCP server whose nth connection plays the nth script; connections beyond the list are closed at once.
    pub fn play(scripts: impl IntoIterator<Item = Script>) -> Self {
        Self::start(Behaviour::List(scripts.into_iter().collect()))
    }

    /// A TCP server that plays the same script on every connection.
    pub fn every(script: Script) -> Self {
        Self::start(Behaviour::Every(script))
    }

    /// A TCP server that answers each request, on any connection, with the bytes that `answer` makes of it.
    pub fn answer(answer: impl Fn(&Request) -> Vec<u8> + Send + Sync + 'static) -> Self {
        Self::start(Behaviour::Answer(Box::new(answer)))
    }

    /// A server on a Unix socket that plays the same script on every connection.
    pub fn on_unix_socket(script: Script) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let listener = UnixListener::bind(directory.path().join(SOCKET)).expect("a Unix socket");
        Self::run(listener.into(), Some(directory), Behaviour::Every(script))
    }

    fn start(behaviour: Behaviour) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("listen on loopback");
        Self::run(listener.into(), None, behaviour)
    }

    fn run(listener: Socket, directory: Option<TempDir>, behaviour: Behaviour) -> Self {
        listener.listen(LISTEN_BACKLOG).expect("a longer queue");
        let listener = Arc::new(listener);
        let shared = Arc::new(Shared {
            behaviour,
            log: Mutex::default(),
            changed: Condvar::new(),
            stopping: AtomicBool::new(false),
        });
        let accepting = thread::spawn({
            let (listener, shared) = (Arc::clone(&listener), Arc::clone(&shared));
            move || accept_all(&listener, &shared)
        });
        Self {
            directory,
            listener,
            shared,
            accepting: Some(accepting),
        }
    }

    /// The TCP address; a test that asks a Unix server for it is wrong.
    pub fn address(&self) -> SocketAddr {
        let address = self.listener.local_addr().expect("a bound address");
        address.as_socket().expect("a TCP server")
    }

    /// The path of the Unix socket; a test that asks a TCP server for it is wrong.
    pub fn path(&self) -> PathBuf {
        let directory = self.directory.as_ref().expect("a Unix server");
        directory.path().join(SOCKET)
    }

    /// How many connections have been accepted so far.
    pub fn accepted(&self) -> usize {
        self.shared.log().accepted
    }

    /// Every request so far, in the order in which their last byte arrived.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.log().requests.clone()
    }

    /// The request lines so far, without their CRLF.
    pub fn lines(&self) -> Vec<String> {
        let log = self.shared.log();
        log.requests.iter().map(Request::line).collect()
    }

    /// The number of the connection that each request came on.
    pub fn served_by(&self) -> Vec<usize> {
        let log = self.shared.log();
        log.requests.iter().map(|r| r.connection).collect()
    }

    /// What [`Script::take`] has read, in order.
    pub fn taken(&self) -> Vec<Vec<u8>> {
        self.shared.log().taken.clone()
    }

    /// The TLS handshakes that were completed, in order.
    pub fn sessions(&self) -> Vec<Session> {
        self.shared.log().sessions.clone()
    }

    /// Waits until every accepted connection is over: with the client gone, none of its sockets may be left.
    pub fn wait_all_ended(&self) {
        let log = self.shared.log();
        let is_served = |log: &mut Log| log.ended < log.accepted;
        let (log, timeout) = (self.shared.changed)
            .wait_timeout_while(log, PATIENCE, is_served)
            .unwrap_or_else(PoisonError::into_inner);
        assert!(!timeout.timed_out(), "connections have not ended: {log:?}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        // Shutting a listener down makes a blocked accept return.
        let _ = self.listener.shutdown(Shutdown::Both);
        for socket in &self.shared.log().sockets {
            let _ = socket.shutdown(Shutdown::Both);
        }
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
    }
}

/// What a server does with its connections.
enum Behaviour {
    /// The nth connection plays the nth script; later ones are closed at once.
    List(Vec<Script>),
    /// All connections play the same script.
    Every(Script),
    /// Each request is answered with the bytes made of it, until the client closes.
    Answer(Box<Answer>),
}

/// Makes the bytes of a response of a request.
type Answer = dyn Fn(&Request) -> Vec<u8> + Send + Sync;

/// A request as it came over the wire.
#[derive(Clone)]
pub struct Request {
    /// Which connection it came on, counted from 0 in the order of their acceptance.
    pub connection: usize,
    /// Head and body, exactly as received (a chunked body with its framing).
    pub bytes: Vec<u8>,
    /// Length of the head, with the empty line that ends it.
    pub head_length: usize,
}

impl Request {
    /// The request line without its CRLF.
    pub fn line(&self) -> String {
        let head = self.head();
        head.split("\r\n").next().unwrap_or_default().to_owned()
    }

    /// The target between the two spaces of the request line.
    pub fn target(&self) -> String {
        let line = self.line();
        line.split(' ').nth(1).unwrap_or_default().to_owned()
    }

    /// The head with the empty line that ends it.
    pub fn head(&self) -> String {
        String::from_utf8_lossy(&self.bytes[..self.head_length]).into_owned()
    }

    /// Everything after the head.
    pub fn body(&self) -> &[u8] {
        &self.bytes[self.head_length..]
    }

    /// The values of all headers called `name`, in any case.
    pub fn header(&self, name: &str) -> Vec<String> {
        let head = self.head();
        let fields = head.split("\r\n").skip(1).filter_map(|l| l.split_once(':'));
        fields
            .filter(|(n, _)| n.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim().to_owned())
            .collect()
    }
}

impl std::fmt::Debug for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "#{} {:?}", self.connection, self.line())
    }
}

/// What one connection does, step by step.
#[derive(Clone, Default)]
pub struct Script(Vec<Step>);

/// An empty script: accepts, then waits for the client to close.
pub fn connection() -> Script {
    Script::default()
}

impl Script {
    /// Reads one request, head and body, and records it.
    pub fn request(self) -> Self {
        self.then(Step::Request)
    }

    /// Reads only the head of a request and records that; its body stays unread.
    pub fn head(self) -> Self {
        self.then(Step::Head)
    }

    /// Reads exactly `count` bytes and records them.
    pub fn take(self, count: usize) -> Self {
        self.then(Step::Take(count))
    }

    /// Serves a TLS handshake. All further steps speak through that session; a second one lies over the first.
    pub fn tls(self, acceptor: &Acceptor) -> Self {
        self.then(Step::Tls(acceptor.clone()))
    }

    /// Ends the TLS session with `close_notify`, and nothing else.
    pub fn close_notify(self) -> Self {
        self.then(Step::CloseNotify)
    }

    /// Sends exactly these bytes.
    pub fn send(self, bytes: impl AsRef<[u8]>) -> Self {
        self.then(Step::Send(bytes.as_ref().into()))
    }

    /// Answers every further request with `bytes`, until the client closes.
    pub fn always(self, bytes: impl AsRef<[u8]>) -> Self {
        self.then(Step::Always(bytes.as_ref().into()))
    }

    /// Waits until the test opens the gate.
    pub fn wait(self, gate: &Gate) -> Self {
        self.then(Step::Wait(gate.clone()))
    }

    /// Shrinks both socket buffers, so that a stalled peer is felt soon.
    pub fn small_buffers(self) -> Self {
        self.then(Step::SmallBuffers)
    }

    /// Ends the outgoing direction (FIN) and goes on reading.
    pub fn half_close(self) -> Self {
        self.then(Step::HalfClose)
    }

    /// Closes the connection (FIN; the system turns it into RST when bytes are unread).
    pub fn close(self) -> Self {
        self.then(Step::Close)
    }

    /// Closes the connection with RST.
    pub fn reset(self) -> Self {
        self.then(Step::Reset)
    }

    fn then(mut self, step: Step) -> Self {
        self.0.push(step);
        self
    }
}

/// A point that scripts wait at until the test lets them go on. Clones are the same gate.
#[derive(Clone, Default)]
pub struct Gate(Arc<(Mutex<GateState>, Condvar)>);

#[derive(Default)]
struct GateState {
    arrived: usize,
    open: bool,
}

impl Gate {
    /// A closed gate.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets every connection pass from now on.
    pub fn open(&self) {
        self.change(|state| state.open = true);
    }

    /// Whether the next to come may pass.
    pub fn is_open(&self) -> bool {
        lock(&self.0.0).open
    }

    /// How many connections have come to the gate, passed or not.
    pub fn arrived(&self) -> usize {
        lock(&self.0.0).arrived
    }

    fn change(&self, change: impl FnOnce(&mut GateState)) {
        change(&mut lock(&self.0.0));
        self.0.1.notify_all();
    }

    fn pass(&self) -> io::Result<()> {
        self.change(|state| state.arrived += 1);
        let waited = (self.0.1)
            .wait_timeout_while(lock(&self.0.0), PATIENCE, |state| !state.open)
            .unwrap_or_else(PoisonError::into_inner);
        match waited.1.timed_out() {
            true => Err(io::ErrorKind::TimedOut.into()),
            false => Ok(()),
        }
    }
}

#[derive(Clone)]
enum Step {
    Request,
    Head,
    Take(usize),
    Tls(Acceptor),
    CloseNotify,
    Send(Arc<[u8]>),
    Always(Arc<[u8]>),
    Wait(Gate),
    SmallBuffers,
    HalfClose,
    Close,
    Reset,
}

struct Shared {
    behaviour: Behaviour,
    log: Mutex<Log>,
    changed: Condvar,
    stopping: AtomicBool,
}

#[derive(Debug, Default)]
struct Log {
    accepted: usize,
    ended: usize,
    requests: Vec<Request>,
    taken: Vec<Vec<u8>>,
    sessions: Vec<Session>,
    /// How each connection's script ended, for the message of a failing test.
    endings: Vec<(usize, io::Result<()>)>,
    /// Connections that a dropped server shuts down.
    sockets: Vec<Arc<Socket>>,
}

impl Shared {
    fn log(&self) -> MutexGuard<'_, Log> {
        lock(&self.log)
    }

    fn change(&self, change: impl FnOnce(&mut Log)) {
        change(&mut self.log());
        self.changed.notify_all();
    }
}

fn accept_all(listener: &Socket, shared: &Arc<Shared>) {
    loop {
        let accepted = listener.accept();
        if shared.stopping.load(Ordering::SeqCst) {
            return;
        }
        let Ok((socket, _)) = accepted else {
            continue;
        };
        let socket = Arc::new(socket);
        let mut index = 0;
        shared.change(|log| {
            index = log.accepted;
            log.accepted += 1;
            log.sockets.push(Arc::clone(&socket));
        });
        let shared = Arc::clone(shared);
        thread::spawn(move || {
            let mut connection = Connection {
                index,
                stream: BufReader::with_capacity(BUFFER, Layers::Plain(socket)),
                shared: Arc::clone(&shared),
            };
            let ending = connection.serve();
            drop(connection);
            shared.change(|log| {
                log.ended += 1;
                log.endings.push((index, ending));
            });
        });
    }
}

/// The server's side of one connection.
struct Connection {
    index: usize,
    stream: BufReader<Layers>,
    shared: Arc<Shared>,
}

impl Connection {
    fn serve(&mut self) -> io::Result<()> {
        self.socket().set_read_timeout(Some(PATIENCE))?;
        self.socket().set_write_timeout(Some(PATIENCE))?;
        // Fails on a Unix socket, which sends each write at once anyway.
        let _ = self.socket().set_tcp_nodelay(true);
        let shared = Arc::clone(&self.shared);
        match &shared.behaviour {
            Behaviour::List(scripts) => match scripts.get(self.index) {
                Some(script) => self.play(script),
                None => self.close(),
            },
            Behaviour::Every(script) => self.play(script),
            Behaviour::Answer(answer) => {
                while let Some(request) = self.read_request(true)? {
                    self.record(request.clone());
                    self.write(&answer(&request))?;
                }
                Ok(())
            }
        }
    }

    fn play(&mut self, script: &Script) -> io::Result<()> {
        for step in &script.0 {
            match step {
                Step::Request | Step::Head => {
                    let whole = matches!(step, Step::Request);
                    match self.read_request(whole)? {
                        Some(request) => self.record(request),
                        None => return Ok(()),
                    }
                }
                Step::Take(count) => {
                    let mut bytes = Vec::new();
                    match self.read_exactly(*count, &mut bytes) {
                        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                            return Ok(());
                        }
                        read => read?,
                    }
                    self.shared.change(|log| log.taken.push(bytes));
                }
                Step::Tls(acceptor) => self.secure(acceptor)?,
                Step::CloseNotify => self.stream.get_mut().close_notify()?,
                Step::Send(bytes) => self.write(bytes)?,
                Step::Always(bytes) => {
                    while let Some(request) = self.read_request(true)? {
                        self.record(request);
                        self.write(bytes)?;
                    }
                    return Ok(());
                }
                Step::Wait(gate) => gate.pass()?,
                Step::SmallBuffers => {
                    self.socket().set_recv_buffer_size(SMALL_BUFFER)?;
                    self.socket().set_send_buffer_size(SMALL_BUFFER)?;
                }
                Step::HalfClose => self.socket().shutdown(Shutdown::Write)?,
                Step::Close => return self.close(),
                Step::Reset => return self.reset(),
            }
        }
        self.await_end()
    }

    fn secure(&mut self, acceptor: &Acceptor) -> io::Result<()> {
        if !self.stream.buffer().is_empty() {
            return Err(io::Error::other("bytes of the client before its handshake"));
        }
        let session = self.stream.get_mut().accept(acceptor)?;
        self.shared.change(|log| log.sessions.push(session));
        Ok(())
    }

    /// Waits for the client to close, whatever it still sends.
    fn await_end(&mut self) -> io::Result<()> {
        match io::copy(&mut self.stream, &mut io::sink()) {
            Err(error) if error.kind() != io::ErrorKind::ConnectionReset => Err(error),
            _ => Ok(()),
        }
    }

    fn close(&mut self) -> io::Result<()> {
        self.hang_up();
        self.socket().shutdown(Shutdown::Both)?;
        Ok(())
    }

    fn reset(&mut self) -> io::Result<()> {
        self.hang_up();
        // With a linger time of zero the close that follows, on dropping the last handle, sends RST.
        self.socket().set_linger(Some(Duration::ZERO))?;
        Ok(())
    }

    /// Leaves the thread's own handle as the only one, so that dropping it closes the descriptor.
    fn hang_up(&self) {
        let own = self.socket();
        self.shared
            .log()
            .sockets
            .retain(|socket| !Arc::ptr_eq(socket, own));
    }

    /// The next request, or `None` if the client closed before its first byte.
    fn read_request(&mut self, with_body: bool) -> io::Result<Option<Request>> {
        let mut bytes = Vec::new();
        while !bytes.ends_with(b"\r\n\r\n") {
            match self.read_line(&mut bytes) {
                Err(_) if bytes.is_empty() => return Ok(None),
                read => read?,
            }
        }
        let mut request = Request {
            connection: self.index,
            head_length: bytes.len(),
            bytes,
        };
        if with_body {
            self.read_body(&mut request)?;
        }
        Ok(Some(request))
    }

    fn read_body(&mut self, request: &mut Request) -> io::Result<()> {
        if let [coding] = request.header("Transfer-Encoding").as_slice() {
            assert_eq!(coding, "chunked", "a coding that the client may not send");
            return self.read_chunks(&mut request.bytes);
        }
        let length = match request.header("Content-Length").as_slice() {
            [] => 0,
            [one] => one.parse().map_err(io::Error::other)?,
            more => return Err(io::Error::other(format!("Content-Length {more:?}"))),
        };
        self.read_exactly(length, &mut request.bytes)
    }

    fn read_chunks(&mut self, bytes: &mut Vec<u8>) -> io::Result<()> {
        loop {
            let begin = bytes.len();
            self.read_line(bytes)?;
            let line = str::from_utf8(&bytes[begin..]).map_err(io::Error::other)?;
            let size = usize::from_str_radix(line.trim_end(), 16).map_err(io::Error::other)?;
            if size == 0 {
                break;
            }
            self.read_exactly(size + 2, bytes)?;
        }
        // Trailer lines up to an empty one.
        loop {
            let begin = bytes.len();
            self.read_line(bytes)?;
            if bytes[begin..] == *b"\r\n" {
                return Ok(());
            }
        }
    }

    fn read_line(&mut self, bytes: &mut Vec<u8>) -> io::Result<()> {
        match self.stream.read_until(b'\n', bytes)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    fn read_exactly(&mut self, count: usize, bytes: &mut Vec<u8>) -> io::Result<()> {
        let begin = bytes.len();
        bytes.resize(begin + count, 0);
        self.stream.read_exact(&mut bytes[begin..])
    }

    fn socket(&self) -> &Arc<Socket> {
        self.stream.get_ref().socket()
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    fn record(&self, request: Request) {
        self.shared.change(|log| log.requests.push(request));
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.hang_up();
    }
}

/// Calls `check` again and again until it holds, as long as [`PATIENCE`] lasts.
pub fn eventually(what: &str, mut check: impl FnMut() -> bool) {
    let started = Instant::now();
    while !check() {
        assert!(started.elapsed() < PATIENCE, "waited in vain until {what}");
        thread::yield_now();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Less than a loopback segment would need smaller writes, each waiting for a delayed acknowledgement.
const SMALL_BUFFER: usize = 128 * 1024;
const LISTEN_BACKLOG: i32 = 1024;
const SOCKET: &str = "http.sock";
/// The most that one read takes.
const BUFFER: usize = 64 * 1024;
