//! The server's side of a scenario: a listener whose connections follow steps, over TCP or TLS, and which keeps every
//! byte that it gets.
//!
//! Unlike `tests::script`, the bytes that it sends may name the addresses of all peers of the scenario.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use socket2::SockRef;
use tests::script::PATIENCE;

use super::scenario::Places;

/// What one peer does.
#[derive(Clone)]
pub(crate) enum Peer {
    /// The nth connection follows the nth list; later ones are closed at once.
    Play(Vec<Vec<Step>>),
    /// Every connection follows the same list.
    Every(Vec<Step>),
    /// The only connection follows the list. Listens on `[::1]`; `{A}` has the brackets.
    PlayV6(Vec<Step>),
    /// Bound and not listening: connections are refused.
    Refusing,
}

/// One step of a connection. A list that is at its end waits for the client to close.
#[derive(Clone)]
pub(crate) enum Step {
    /// Reads one request, head and body.
    Take,
    /// Reads one request's head.
    TakeHead,
    /// Reads so many bytes.
    TakeBytes(usize),
    /// Sends these bytes, with the addresses of the peers filled in.
    Send(Vec<u8>),
    /// Reads requests and answers each by its target until the client closes; what has no route is 404.
    Routes(Arc<Vec<(String, Vec<u8>)>>),
    /// Goes on under TLS.
    Tls(Arc<ServerConfig>),
    /// Ends the outgoing direction, properly under TLS.
    HalfClose,
    /// Ends the connection; under TLS without `close_notify`.
    Close,
    /// Ends the connection with RST.
    Reset,
}

/// A peer at work. Dropping it ends nothing: [`Running::settle`] does.
pub(crate) struct Running {
    address: SocketAddr,
    log: Arc<SharedLog>,
}

#[derive(Default)]
struct SharedLog {
    log: Mutex<Vec<Connection>>,
    changed: Condvar,
}

struct Connection {
    client: SocketAddr,
    received: Vec<u8>,
    ended: bool,
    /// A second handle, to cut what outlives the client.
    socket: Option<TcpStream>,
}

impl Peer {
    /// Listens on a free port. Connections are served once `places` is filled.
    pub(crate) fn listen(self, places: &Arc<OnceLock<Places>>) -> io::Result<Running> {
        let log = Arc::new(SharedLog::default());
        let peer = match self {
            Self::Refusing => {
                let address = tests::script::refused();
                return Ok(Running { address, log });
            }
            peer => peer,
        };
        let listener = match peer {
            Self::PlayV6(_) => TcpListener::bind("[::1]:0")?,
            _ => TcpListener::bind("127.0.0.1:0")?,
        };
        let address = listener.local_addr()?;
        let (shared, places) = (Arc::clone(&log), Arc::clone(places));
        thread::spawn(move || peer.accept_all(&listener, &shared, &places));
        Ok(Running { address, log })
    }

    /// Ends with the sentinel of [`Running::settle`].
    fn accept_all(
        &self,
        listener: &TcpListener,
        shared: &Arc<SharedLog>,
        places: &Arc<OnceLock<Places>>,
    ) {
        for (number, socket) in listener.incoming().flatten().enumerate() {
            let Ok(client) = socket.peer_addr() else {
                continue;
            };
            shared.change(|log| {
                log.push(Connection {
                    client,
                    received: Vec::new(),
                    ended: false,
                    socket: socket.try_clone().ok(),
                });
            });
            let steps = match self {
                Self::Play(lists) => lists.get(number).cloned(),
                Self::Every(steps) => Some(steps.clone()),
                Self::PlayV6(steps) => (number == 0).then(|| steps.clone()),
                Self::Refusing => None,
            };
            let mut serving = Serving {
                number,
                stream: Stream::Plain(socket),
                waiting: Vec::new(),
                shared: Arc::clone(shared),
                places: Arc::clone(places),
            };
            thread::spawn(move || {
                // However it ends, the client's side of it is what is compared.
                let _ = serving.follow(&steps.unwrap_or_else(|| vec![Step::Close]));
                let shared = Arc::clone(&serving.shared);
                shared.change(|log| log[number].socket = None);
                drop(serving);
                shared.change(|log| log[number].ended = true);
            });
        }
    }
}

impl Running {
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until every connection of the client, which has ended, is over, and returns what each received, in the
    /// order of their acceptance.
    pub(crate) fn settle(self) -> Vec<Vec<u8>> {
        // Connections are accepted in their order, so that none can come after this one.
        let Ok(sentinel) = TcpStream::connect(self.address) else {
            return Vec::new();
        };
        let Ok(own) = sentinel.local_addr() else {
            return Vec::new();
        };
        drop(sentinel);
        let (mut log, timeout) = (self.log.changed)
            .wait_timeout_while(self.log.lock(), PATIENCE, |log| {
                !log.iter().any(|c| c.client == own) || !log.iter().all(|c| c.ended)
            })
            .unwrap_or_else(PoisonError::into_inner);
        if timeout.timed_out() {
            for socket in log.iter().filter_map(|c| c.socket.as_ref()) {
                let _ = socket.shutdown(Shutdown::Both);
            }
        }
        let connections = log.drain(..).filter(|c| c.client != own);
        connections.map(|c| c.received).collect()
    }
}

impl SharedLog {
    fn lock(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Vec<Connection>)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }
}

enum Stream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ServerConnection, Stream>>),
}

impl Stream {
    fn tcp(&self) -> &TcpStream {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(tls) => tls.sock.tcp(),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(buffer),
            Self::Tls(tls) => tls.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.write(bytes),
            Self::Tls(tls) => tls.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(socket) => socket.flush(),
            Self::Tls(tls) => tls.flush(),
        }
    }
}

/// One connection.
struct Serving {
    number: usize,
    stream: Stream,
    /// Received and not yet consumed by a step.
    waiting: Vec<u8>,
    shared: Arc<SharedLog>,
    places: Arc<OnceLock<Places>>,
}

impl Serving {
    fn follow(&mut self, steps: &[Step]) -> io::Result<()> {
        let socket = self.stream.tcp();
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_write_timeout(Some(PATIENCE))?;
        for step in steps {
            match step {
                Step::Take => drop(self.take(true)?),
                Step::TakeHead => drop(self.take(false)?),
                Step::TakeBytes(count) => {
                    self.fill(*count)?;
                    self.waiting.drain(..*count);
                }
                Step::Send(bytes) => {
                    let filled = self.places().fill(bytes);
                    self.send(&filled)?;
                }
                Step::Routes(routes) => loop {
                    let request = self.take(true)?;
                    let target = request.split(|b| *b == b' ').nth(1).unwrap_or_default();
                    let route = routes.iter().find(|(t, _)| t.as_bytes() == target);
                    let answer = route.map_or(NOT_FOUND, |(_, answer)| answer.as_slice());
                    let filled = self.places().fill(answer);
                    self.send(&filled)?;
                },
                Step::Tls(config) => self.start_tls(config)?,
                Step::HalfClose => {
                    if let Stream::Tls(tls) = &mut self.stream {
                        tls.conn.send_close_notify();
                        tls.flush()?;
                    }
                    self.stream.tcp().shutdown(Shutdown::Write)?;
                }
                Step::Close => return self.stream.tcp().shutdown(Shutdown::Both),
                Step::Reset => {
                    return SockRef::from(self.stream.tcp()).set_linger(Some(Duration::ZERO));
                }
            }
        }
        while self.receive()? > 0 {}
        Ok(())
    }

    fn places(&self) -> Places {
        self.places.wait().clone()
    }

    fn start_tls(&mut self, config: &Arc<ServerConfig>) -> io::Result<()> {
        let mut tls = ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
        let plain = self.stream.tcp().try_clone()?;
        let mut under = std::mem::replace(&mut self.stream, Stream::Plain(plain));
        let done = tls.complete_io(&mut under);
        self.stream = Stream::Tls(Box::new(StreamOwned::new(tls, under)));
        done.map(drop)
    }

    /// Reads one request and returns it.
    fn take(&mut self, with_body: bool) -> io::Result<Vec<u8>> {
        let head = self.find(0, b"\r\n\r\n")?;
        let mut end = head;
        if with_body {
            let text = String::from_utf8_lossy(&self.waiting[..head]).to_ascii_lowercase();
            let field = |name: &str| {
                let mut lines = text.lines().filter_map(|line| line.split_once(':'));
                lines.find_map(|(n, value)| (n == name).then(|| value.trim().to_owned()))
            };
            if field("transfer-encoding").is_some() {
                end = self.find(head.saturating_sub(2), b"\r\n0\r\n\r\n")?;
            } else if let Some(length) = field("content-length") {
                end = head + length.parse::<usize>().map_err(io::Error::other)?;
            }
        }
        self.fill(end)?;
        Ok(self.waiting.drain(..end).collect())
    }

    /// Where the first `mark` at or after `from` ends.
    fn find(&mut self, from: usize, mark: &[u8]) -> io::Result<usize> {
        loop {
            let searched = self.waiting.get(from..).unwrap_or_default();
            if let Some(at) = searched.windows(mark.len()).position(|w| w == mark) {
                return Ok(from + at + mark.len());
            }
            if self.receive()? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    fn fill(&mut self, count: usize) -> io::Result<()> {
        while self.waiting.len() < count {
            if self.receive()? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(())
    }

    fn receive(&mut self) -> io::Result<usize> {
        let mut buffer = [0; 16 * 1024];
        let count = self.stream.read(&mut buffer)?;
        let bytes = &buffer[..count];
        self.waiting.extend_from_slice(bytes);
        let number = self.number;
        self.shared
            .change(|log| log[number].received.extend_from_slice(bytes));
        Ok(count)
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)?;
        self.stream.flush()
    }
}

const NOT_FOUND: &[u8] = b"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone";
