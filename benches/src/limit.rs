//! The limit of this machine: raw sockets and one epoll loop without parsing. The first exchange shows the length of a
//! response and whether the connection ends after it; from then on, bytes are counted. No client can be faster.
//!
//! All responses of the server must have the same length.

use std::error::Error;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

use crate::measure::{Plan, Record, Run, sleep};

/// Measures the highest rate that a client could reach on this machine.
///
/// # Errors
/// The server cannot be reached, or closed a connection too early.
pub(crate) fn measure(plan: &Plan) -> Result<Record, Box<dyn Error>> {
    if plan.url.scheme() != "http" {
        return Err("the limit has no TLS".into());
    }
    let request = request(plan);
    let answer = Answer::to(plan, &request)?;
    let mut limit = Limit {
        answer,
        address: plan.url.address,
        request: request.len(),
        requests: request.repeat(plan.depth as usize),
        run: Run::new(plan)?,
        next: None,
        epoll: epoll::create(CreateFlags::CLOEXEC)?,
        connections: Vec::new(),
        free: Vec::new(),
        running: 0,
    };
    limit.open(plan)?;
    limit.serve_all()?;
    limit.run.finish()
}

struct Limit {
    answer: Answer,
    address: SocketAddr,
    /// Bytes of one request.
    request: usize,
    /// The encoded requests that a connection has at the same time, one after the other.
    requests: Vec<u8>,
    run: Run,
    /// When the next request is due, if that is claimed.
    next: Option<Instant>,
    epoll: OwnedFd,
    connections: Vec<Connection>,
    /// Connections that wait until a request is due. A connection occurs once for each request that it may have.
    free: Vec<usize>,
    /// Number of requests without a response.
    running: usize,
}

impl Limit {
    fn open(&mut self, plan: &Plan) -> Result<(), Box<dyn Error>> {
        for at in 0..plan.connections as usize {
            let stream = self.connect(at)?;
            let connection = Connection::new(stream, plan.depth as usize);
            self.connections.push(connection);
            self.free.extend((0..plan.depth).map(|_| at));
        }
        Ok(())
    }

    /// Sends requests when they are due, and takes the responses, until the end of the run.
    fn serve_all(&mut self) -> Result<(), Box<dyn Error>> {
        let mut buffer = vec![0; READ_BYTES];
        let mut events = Vec::with_capacity(self.connections.len());
        let mut now = Instant::now();
        loop {
            while self.next.is_none_or(|due| due <= now)
                && let Some(at) = self.free.pop()
            {
                if !self.ask(at, now) {
                    break;
                }
                self.connections[at].send(&self.requests)?;
            }
            if self.running == 0 && self.next.is_none() {
                return Ok(());
            }
            let patience = self.next.map(|due| sleep(now, due).try_into());
            let patience: Option<Timespec> = patience.transpose()?;
            events.clear();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), patience.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            now = Instant::now();
            for event in &events {
                self.serve(event.data.u64() as usize, &mut buffer, now)?;
            }
        }
    }

    fn connect(&mut self, at: usize) -> Result<TcpStream, Box<dyn Error>> {
        // On the loopback, connecting takes almost no time, so it may block.
        let stream = TcpStream::connect(self.address)?;
        if !self.answer.is_last {
            stream.set_nodelay(true)?;
        }
        let mut edges = EventFlags::IN | EventFlags::ET;
        if self.requests.len() > FITS {
            edges |= EventFlags::OUT;
        }
        epoll::add(&self.epoll, &stream, EventData::new_u64(at as u64), edges)?;
        Ok(stream)
    }

    /// Puts a request on a connection if one is due.
    fn ask(&mut self, at: usize, now: Instant) -> bool {
        let due = self.next.take().or_else(|| self.run.claim(now));
        if let Some(due) = due.filter(|due| *due <= now) {
            self.running += 1;
            self.connections[at].ask(due, self.request, self.answer.length);
            return true;
        }
        self.next = due;
        self.free.push(at);
        false
    }

    /// Reads the responses that have arrived, and sends the same number of requests.
    fn serve(&mut self, at: usize, buffer: &mut [u8], now: Instant) -> Result<(), Box<dyn Error>> {
        let connection = &mut self.connections[at];
        connection.send(&self.requests)?;
        connection.receive(buffer)?;
        while self.connections[at].received >= self.answer.length {
            let connection = &mut self.connections[at];
            connection.received -= self.answer.length;
            self.run.completed(connection.answered(), now);
            self.running -= 1;
            if self.answer.is_last {
                self.connections[at].stream = self.connect(at)?;
            }
            self.ask(at, now);
        }
        Ok(self.connections[at].send(&self.requests)?)
    }
}

struct Connection {
    stream: TcpStream,
    /// The start time of each request, in a ring with a place for each simultaneous request.
    since: Box<[Instant]>,
    /// The place of the first request without a response.
    first: usize,
    /// Number of requests without a response.
    count: usize,
    /// Bytes of these requests still to be sent.
    unsent: usize,
    /// Bytes of their responses still to be received.
    left: usize,
    /// Received bytes of the first of these responses.
    received: usize,
}

impl Connection {
    fn new(stream: TcpStream, depth: usize) -> Self {
        Self {
            stream,
            since: vec![Instant::now(); depth].into(),
            first: 0,
            count: 0,
            unsent: 0,
            left: 0,
            received: 0,
        }
    }

    fn ask(&mut self, since: Instant, request: usize, answer: usize) {
        let mut at = self.first + self.count;
        if at >= self.since.len() {
            at -= self.since.len();
        }
        self.since[at] = since;
        self.count += 1;
        self.unsent += request;
        self.left += answer;
    }

    /// The first request has its response. Returns its start time.
    fn answered(&mut self) -> Instant {
        let since = self.since[self.first];
        self.first += 1;
        if self.first == self.since.len() {
            self.first = 0;
        }
        self.count -= 1;
        since
    }

    /// Sends as much as the socket takes. The unsent bytes are always a suffix of `requests`, because they end with a
    /// whole request.
    fn send(&mut self, requests: &[u8]) -> Result<(), Errno> {
        while self.unsent > 0 {
            let bytes = &requests[requests.len() - self.unsent..];
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            match rustix::net::send(&self.stream, bytes, flags) {
                Ok(sent) => self.unsent -= sent,
                Err(Errno::AGAIN) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads until a read does not fill the buffer.
    fn receive(&mut self, buffer: &mut [u8]) -> Result<(), Box<dyn Error>> {
        while self.left > 0 {
            let flags = RecvFlags::DONTWAIT;
            let read = match rustix::net::recv(&self.stream, &mut *buffer, flags) {
                Ok((0, _)) => return Err("the server closed a connection".into()),
                Ok((read, _)) => read,
                Err(Errno::AGAIN) => break,
                Err(error) => return Err(error.into()),
            };
            let left = self.left.checked_sub(read);
            self.left = left.ok_or("answers differ in length")?;
            self.received += read;
            if read < buffer.len() {
                break;
            }
        }
        Ok(())
    }
}

/// The properties of each response.
struct Answer {
    length: usize,
    /// The server closes the connection after it.
    is_last: bool,
}

impl Answer {
    /// Learns the properties by one exchange: the response ends when the server is silent for a while.
    fn to(plan: &Plan, request: &[u8]) -> Result<Self, Box<dyn Error>> {
        let mut stream = TcpStream::connect(plan.url.address)?;
        stream.write_all(request)?;
        let mut buffer = vec![0; READ_BYTES];
        let mut length = 0;
        stream.set_read_timeout(Some(FIRST_ANSWER))?;
        let is_last = loop {
            match stream.read(&mut buffer) {
                Ok(0) if length == 0 => return Err("the server closed the connection".into()),
                Ok(0) => break true,
                Ok(read) => length += read,
                Err(error) if length > 0 && error.kind() == ErrorKind::WouldBlock => break false,
                Err(error) => return Err(error.into()),
            }
            stream.set_read_timeout(Some(QUIET))?;
        };
        if is_last && plan.depth > 1 {
            return Err("the server closes connections, so nothing can be pipelined".into());
        }
        Ok(Self { length, is_last })
    }
}

fn request(plan: &Plan) -> Vec<u8> {
    let (method, path, host) = (&plan.method, &plan.url.path, &plan.url.authority);
    let body = plan.body().unwrap_or_default();
    let length = match body.len() {
        0 => String::new(),
        length => format!("Content-Length: {length}\r\n"),
    };
    let mut request =
        format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n{length}\r\n").into_bytes();
    request.extend(body);
    request
}

const READ_BYTES: usize = 64 << 10;
/// Bytes of requests that fit into the empty send buffer of a socket with any settings of the system.
const FITS: usize = 4 << 10;
/// How long the first answer may take.
const FIRST_ANSWER: Duration = Duration::from_secs(10);
/// The silence after which the first answer is complete.
const QUIET: Duration = Duration::from_millis(100);
