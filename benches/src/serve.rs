//! A very cheap server for all measurements: one thread, one epoll loop, canned responses. It parses only the path, the
//! end of a request, and the length of a POST body.
//!
//! It is not a complete HTTP server: it does not understand chunked request bodies, and limits heads to 64 KiB.
//!
//! | path | response |
//! |---|---|
//! | `/`, `/13`, `/files/` and anything after that | 13 bytes |
//! | `/1k`, `/16k`, `/1m` | this number of bytes |
//! | `/chunked` | 16 KiB in chunks of 4 KiB |
//! | `/headers` | 13 bytes after a head of 20 fields |
//! | `/close` | 13 bytes, then the connection is closed |
//! | `/entries/`, `/directories/` and below | listings of a tree of 10,000,000 files in 10,000 directories, and of one of 1,001,001 directories |
//! | `/gather/N` | 13 bytes, when N connections wait for them: the client then has N connections |
//! | other | 404 |
//!
//! `HEAD` gets only the head. Pipelined requests get their responses in order.

use std::collections::VecDeque;
use std::error::Error;
use std::fs;
use std::io::{self, IoSlice, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, LazyLock};

use memchr::memmem;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::SocketFlags;
use rustls::ServerConnection;
use rustls::server::ServerConfig;

use crate::tls;

/// Serves canned responses on the loopback until its input ends or it is terminated.
#[derive(clap::Parser, Debug)]
pub struct Args {
    /// Port to listen on; 0 lets the system choose
    #[arg(long, default_value_t = 0)]
    port: u16,

    /// Speak TLS, with a new certificate that is written to this file
    #[arg(long)]
    tls: Option<PathBuf>,
}

/// Runs the tool. When the server listens, prints its address as a line; at the end, how many requests it answered and how
/// many connections it accepted.
///
/// # Errors
/// The system cannot listen, or the certificate cannot be created or written.
pub fn run(args: &Args) -> Result<ExitCode, Box<dyn Error>> {
    let mut server = Server::bind(args.port)?;
    if let Some(file) = &args.tls {
        let (config, certificate) = tls::server()?;
        fs::write(file, certificate)?;
        server = server.with_tls(config);
    }
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{}", server.address())?;
    stdout.flush()?;
    let [requests, connections] = server.run(Some(rustix::stdio::stdin()))?;
    writeln!(stdout, "{requests} {connections}")?;
    Ok(ExitCode::SUCCESS)
}

/// A listening server.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    epoll: OwnedFd,
    /// The index of a connection is its number in events.
    connections: Vec<Option<Connection>>,
    free: Vec<usize>,
    /// Buffer for reads of all connections. A connection keeps its own bytes only for an incomplete request.
    buffer: Box<[u8]>,
    tls: Option<Arc<ServerConfig>>,
    /// Connections whose `/gather` waits for other connections.
    gathered: Vec<usize>,
    accepted: u64,
    answered: u64,
}

impl Server {
    /// Listens on the loopback address; port 0 lets the system choose.
    ///
    /// # Errors
    /// The system cannot listen on the port.
    pub fn bind(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        listener.set_nonblocking(true)?;
        // The standard library lets only 128 connections wait.
        rustix::net::listen(&listener, BACKLOG)?;
        // Accepted connections inherit this option.
        rustix::net::sockopt::set_tcp_nodelay(&listener, true)?;
        let address = listener.local_addr()?;
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let level = EventFlags::IN;
        epoll::add(&epoll, &listener, EventData::new_u64(LISTENER), level)?;
        Ok(Self {
            listener,
            address,
            epoll,
            connections: Vec::new(),
            free: Vec::new(),
            buffer: vec![0; READ_BYTES].into(),
            tls: None,
            gathered: Vec::new(),
            accepted: 0,
            answered: 0,
        })
    }

    /// Adds TLS.
    #[must_use]
    pub fn with_tls(mut self, config: Arc<ServerConfig>) -> Self {
        self.tls = Some(config);
        self
    }

    /// The address on which the server listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `input` ends; forever without an input, or with one that cannot be polled (a regular file). Returns how
    /// many requests were answered, and how many connections accepted.
    ///
    /// # Errors
    /// The event queue failed. An error of a connection only ends this connection.
    pub fn run(mut self, input: Option<BorrowedFd<'_>>) -> io::Result<[u64; 2]> {
        if let Some(input) = input {
            match epoll::add(
                &self.epoll,
                input,
                EventData::new_u64(INPUT),
                EventFlags::IN,
            ) {
                Ok(()) | Err(Errno::PERM) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let mut events = Vec::with_capacity(EVENTS);
        loop {
            events.clear();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            for event in &events {
                let flags = event.flags;
                match event.data.u64() {
                    LISTENER => self.accept(),
                    INPUT if input.is_some_and(ended) => {
                        return Ok([self.answered, self.accepted]);
                    }
                    INPUT => {}
                    number => self.serve((number - FIRST_CONNECTION) as usize, flags),
                }
            }
        }
    }

    fn accept(&mut self) {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        // Any error ends the round: no connection is waiting, or no descriptor is left. The listener is polled
        // level-triggered, so that waiting connections are reported again.
        while let Ok(socket) = rustix::net::accept_with(&self.listener, flags) {
            let at = self.free.pop().unwrap_or_else(|| {
                self.connections.push(None);
                self.connections.len() - 1
            });
            let edges = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
            let data = EventData::new_u64(FIRST_CONNECTION + at as u64);
            let session = self.tls.clone().map(ServerConnection::new).transpose();
            if let Ok(session) = session
                && epoll::add(&self.epoll, &socket, data, edges).is_ok()
            {
                self.accepted += 1;
                self.connections[at] = Some(Connection::new(socket.into(), session));
            } else {
                self.free.push(at);
            }
        }
    }

    fn serve(&mut self, at: usize, flags: EventFlags) {
        let Some(connection) = &mut self.connections[at] else {
            return;
        };
        let closed = flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
        let outcome = connection.drive(&mut self.buffer, closed);
        self.answered += std::mem::take(&mut connection.answered);
        if outcome.is_err() {
            self.connections[at] = None;
            self.free.push(at);
        } else if let Some(crowd) = connection.gathers.take() {
            self.gathered.push(at);
            if self.gathered.len() >= crowd {
                self.answer_gathered();
            }
        }
    }

    fn answer_gathered(&mut self) {
        for at in std::mem::take(&mut self.gathered) {
            if let Some(connection) = &mut self.connections[at] {
                connection.owe(Answer::to(b"GET / "));
                self.serve(at, EventFlags::OUT);
            }
        }
    }
}

#[derive(Debug)]
struct Connection {
    socket: TcpStream,
    session: Option<Box<ServerConnection>>,
    /// The beginning of a request that is not complete yet.
    partial: Vec<u8>,
    /// Bytes of a request body still to be received; then `after_body` is sent.
    body_left: u64,
    after_body: Option<Answer>,
    /// Responses that the socket had no room for. Nothing is read while this is not empty.
    unsent: VecDeque<&'static [u8]>,
    last: bool,
    /// Requests whose answers are not counted by the server yet.
    answered: u64,
    /// The connection waits in `/gather` for this number of connections.
    gathers: Option<usize>,
}

impl Connection {
    fn new(socket: TcpStream, session: Option<ServerConnection>) -> Self {
        Self {
            socket,
            session: session.map(|mut session| {
                session.set_buffer_limit(None);
                Box::new(session)
            }),
            partial: Vec::new(),
            body_left: 0,
            after_body: None,
            unsent: VecDeque::new(),
            last: false,
            answered: 0,
            gathers: None,
        }
    }

    /// Writes and reads until the socket is not ready for either. A read that does not fill the buffer is the last one
    /// before the next edge, unless the peer has `closed`. An error is the end of the connection, by plan or not.
    fn drive(&mut self, buffer: &mut [u8], closed: bool) -> io::Result<()> {
        if let Some(session) = self.session.take() {
            return self.drive_tls(session, buffer);
        }
        loop {
            self.flush()?;
            if !self.unsent.is_empty() {
                return Ok(());
            }
            let Some(read) = ready(self.socket.read(buffer))? else {
                return Ok(());
            };
            if read == 0 {
                return Err(over());
            }
            self.take(&buffer[..read])?;
            if read < buffer.len() && !closed {
                return self.flush();
            }
        }
    }

    /// [`Self::drive`] with TLS.
    fn drive_tls(
        &mut self,
        mut session: Box<ServerConnection>,
        buffer: &mut [u8],
    ) -> io::Result<()> {
        'drive: loop {
            for bytes in self.unsent.drain(..) {
                session.writer().write_all(bytes)?;
            }
            if self.last {
                session.send_close_notify();
            }
            while session.wants_write() {
                if ready(session.write_tls(&mut self.socket))?.is_none() {
                    break 'drive;
                }
            }
            match ready(session.read_tls(&mut self.socket))? {
                None if !self.last => break,
                Some(1..) if !self.last => {}
                _ => return Err(over()),
            }
            session.process_new_packets().map_err(io::Error::other)?;
            while let Some(read) = ready(session.reader().read(buffer))? {
                if read == 0 {
                    return Err(over());
                }
                self.take(&buffer[..read])?;
            }
        }
        self.session = Some(session);
        Ok(())
    }

    /// Sends as many of the unsent bytes as the socket has room for.
    fn flush(&mut self) -> io::Result<()> {
        while let Some(first) = self.unsent.front() {
            let sent = if self.unsent.len() == 1 {
                self.socket.write(first)
            } else {
                let mut parts = [IoSlice::new(&[]); WRITE_PARTS];
                let count = self.unsent.len().min(WRITE_PARTS);
                for (part, bytes) in parts.iter_mut().zip(&self.unsent) {
                    *part = IoSlice::new(bytes);
                }
                self.socket.write_vectored(&parts[..count])
            };
            match ready(sent)? {
                Some(sent) => self.advance(sent),
                None => return Ok(()),
            }
        }
        if self.last { Err(over()) } else { Ok(()) }
    }

    fn advance(&mut self, mut sent: usize) {
        while let Some(first) = self.unsent.front_mut() {
            if sent < first.len() {
                *first = &first[sent..];
                return;
            }
            sent -= first.len();
            self.unsent.pop_front();
        }
    }

    /// Responds to all requests that end in `bytes`, and keeps the beginning of an incomplete one.
    fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.partial.is_empty() {
            let used = self.answer(bytes);
            self.partial.extend_from_slice(&bytes[used..]);
        } else {
            let mut joined = std::mem::take(&mut self.partial);
            joined.extend_from_slice(bytes);
            let used = self.answer(&joined);
            joined.drain(..used);
            self.partial = joined;
        }
        if self.partial.len() > READ_BYTES {
            return Err(over());
        }
        Ok(())
    }

    /// Responds to complete requests. Returns the number of bytes of complete requests and of request bodies.
    fn answer(&mut self, bytes: &[u8]) -> usize {
        let mut used = 0;
        loop {
            let body = self.body_left.min((bytes.len() - used) as u64);
            used += body as usize;
            self.body_left -= body;
            if self.body_left > 0 {
                return used;
            }
            if let Some(answer) = self.after_body.take() {
                self.owe(answer);
            }
            let rest = &bytes[used..];
            if self.last || rest.is_empty() {
                return bytes.len();
            }
            let Some(end) = memmem::find(rest, b"\r\n\r\n") else {
                return used;
            };
            let head = &rest[..end + 4];
            used += head.len();
            self.gathers = crowd(head);
            if self.gathers.is_some() {
                return used;
            }
            match body_length(head) {
                0 => self.owe(Answer::to(head)),
                length => {
                    self.body_left = length;
                    self.after_body = Some(Answer::to(head));
                }
            }
        }
    }

    fn owe(&mut self, answer: Answer) {
        self.answered += 1;
        self.unsent.push_back(answer.bytes);
        self.last = answer.last;
    }
}

fn over() -> io::Error {
    io::ErrorKind::UnexpectedEof.into()
}

/// What was done, or `None` if the socket is not ready.
fn ready(done: io::Result<usize>) -> io::Result<Option<usize>> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        done => done.map(Some),
    }
}

#[derive(Debug)]
struct Answer {
    bytes: &'static [u8],
    last: bool,
}

impl Answer {
    fn to(head: &[u8]) -> Self {
        let mut words = head.splitn(3, |&byte| byte == b' ');
        let method = words.next().unwrap_or_default();
        let canned = &*CANNED;
        let found = match words.next().unwrap_or_default() {
            b"/" | b"/13" => &canned.small,
            b"/1k" => &canned.kib,
            b"/16k" => &canned.kib16,
            b"/1m" => &canned.mib,
            b"/chunked" => &canned.chunked,
            b"/headers" => &canned.headers,
            b"/close" => &canned.close,
            path if path.starts_with(b"/files/") => &canned.small,
            path if path.starts_with(b"/entries/") => listing(&canned.entries, path),
            path if path.starts_with(b"/directories/") => listing(&canned.directories, path),
            _ => &canned.missing,
        };
        let length = if method == b"HEAD" {
            found.head
        } else {
            found.bytes.len()
        };
        Self {
            bytes: &found.bytes[..length],
            last: std::ptr::eq(found, &canned.close),
        }
    }
}

/// The listing of a directory, whose path ends with a slash, in a tree whose root has a path of two slashes.
fn listing<'l>(of_depths: &'l [Response], path: &[u8]) -> &'l Response {
    let depth = memchr::memchr_iter(b'/', path).count().saturating_sub(2);
    &of_depths[depth.min(of_depths.len() - 1)]
}

/// The number N of a request for `/gather/N`.
fn crowd(head: &[u8]) -> Option<usize> {
    let rest = head.strip_prefix(b"GET /gather/")?;
    let number = rest.split(|&byte| byte == b' ').next()?;
    std::str::from_utf8(number).ok()?.parse().ok()
}

/// The length of the request body. Only POST has one here.
fn body_length(head: &[u8]) -> u64 {
    if !head.starts_with(b"POST ") {
        return 0;
    }
    head.split(|&byte| byte == b'\n')
        .filter_map(|line| line.split_at_checked(FIELD.len()))
        .find(|(name, _)| name.eq_ignore_ascii_case(FIELD))
        .and_then(|(_, value)| std::str::from_utf8(value).ok()?.trim().parse().ok())
        .unwrap_or(0)
}

/// Whether the input has ended. Its content is ignored.
fn ended(input: BorrowedFd<'_>) -> bool {
    let mut ignored = [0; 512];
    matches!(
        rustix::io::read(input.as_fd(), &mut ignored),
        Ok(0) | Err(_)
    )
}

struct Canned {
    small: Response,
    kib: Response,
    kib16: Response,
    mib: Response,
    chunked: Response,
    headers: Response,
    close: Response,
    missing: Response,
    /// By depth.
    entries: Vec<Response>,
    directories: Vec<Response>,
}

struct Response {
    bytes: Vec<u8>,
    /// The length of the head.
    head: usize,
}

static CANNED: LazyLock<Canned> = LazyLock::new(|| Canned {
    small: sized("200 OK", "", SMALL),
    kib: sized("200 OK", "", &filler(1 << 10)),
    kib16: sized("200 OK", "", &filler(16 << 10)),
    mib: sized("200 OK", "", &filler(1 << 20)),
    chunked: chunked(&filler(16 << 10), 4 << 10),
    headers: sized(
        "200 OK",
        &"X-Field: the value of a field\r\n".repeat(17),
        SMALL,
    ),
    close: sized("200 OK", "Connection: close\r\n", SMALL),
    missing: sized("404 Not Found", "", b"no such path\n"),
    entries: ENTRIES.listings(),
    directories: DIRECTORIES.listings(),
});

/// The shape of a tree of listings.
pub(crate) struct Tree {
    /// How many subdirectories a directory of each depth has.
    fans: &'static [usize],
    /// How many files a directory without subdirectories has.
    files: usize,
}

pub(crate) const ENTRIES: Tree = Tree {
    fans: &[10_000],
    files: 1000,
};
pub(crate) const DIRECTORIES: Tree = Tree {
    fans: &[1000, 1000],
    files: 1,
};

impl Tree {
    pub(crate) fn directories(&self) -> usize {
        let level = |depth| self.fans[..depth].iter().product::<usize>();
        (0..=self.fans.len()).map(level).sum()
    }

    pub(crate) fn files(&self) -> usize {
        self.fans.iter().product::<usize>() * self.files
    }

    /// The listing of each depth, as nginx writes it.
    fn listings(&self) -> Vec<Response> {
        let directories = |&fan: &usize| listed((0..fan).map(|n| format!("directory-{n}/")));
        let files = listed((0..self.files).map(|n| format!("file-{n}.bin")));
        self.fans.iter().map(directories).chain([files]).collect()
    }
}

fn listed(names: impl Iterator<Item = String>) -> Response {
    let row = |name: String| {
        let size = if name.ends_with('/') { "-" } else { "1" };
        let pad = " ".repeat(51_usize.saturating_sub(name.len()));
        format!("<a href=\"{name}\">{name}</a>{pad}22-Nov-2026 02:50 {size:>19}\r\n")
    };
    let rows: String = names.map(row).collect();
    let page = format!(
        "<html>\r\n<head><title>Index of /</title></head>\r\n<body>\r\n\
         <h1>Index of /</h1><hr><pre><a href=\"../\">../</a>\r\n{rows}</pre><hr></body>\r\n</html>\r\n"
    );
    let fields = format!(
        "Content-Type: text/html\r\nContent-Length: {}\r\n",
        page.len()
    );
    response("200 OK", &fields, page.as_bytes())
}

fn sized(status: &str, fields: &str, body: &[u8]) -> Response {
    let length = body.len();
    response(
        status,
        &format!("Content-Type: text/plain\r\n{fields}Content-Length: {length}\r\n"),
        body,
    )
}

fn chunked(body: &[u8], chunk: usize) -> Response {
    let mut coded = Vec::new();
    for piece in body.chunks(chunk) {
        coded.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        coded.extend_from_slice(piece);
        coded.extend_from_slice(b"\r\n");
    }
    coded.extend_from_slice(b"0\r\n\r\n");
    let fields = "Content-Type: text/plain\r\nTransfer-Encoding: chunked\r\n";
    response("200 OK", fields, &coded)
}

fn response(status: &str, fields: &str, body: &[u8]) -> Response {
    let mut bytes = format!("HTTP/1.1 {status}\r\nServer: serve\r\n{fields}\r\n").into_bytes();
    let head = bytes.len();
    bytes.extend_from_slice(body);
    Response { bytes, head }
}

fn filler(length: usize) -> Vec<u8> {
    (b'a'..=b'z').cycle().take(length).collect()
}

const SMALL: &[u8] = b"Hello, world!";
const FIELD: &[u8] = b"content-length:";

const LISTENER: u64 = 0;
const INPUT: u64 = 1;
const FIRST_CONNECTION: u64 = 2;

const BACKLOG: i32 = 4096;
const EVENTS: usize = 1024;
const READ_BYTES: usize = 64 << 10;
/// Slices in one vectored write; the system takes at most 1024.
const WRITE_PARTS: usize = 64;

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpStream};
    use std::thread;

    use super::{Answer, CANNED, SMALL, Server};

    /// A server that runs until the test program ends.
    fn start() -> SocketAddr {
        let server = Server::bind(0).unwrap();
        let address = server.address();
        thread::spawn(move || server.run(None));
        address
    }

    /// Sends `parts` one by one, ends the request side, and returns all that comes back.
    fn exchange(address: SocketAddr, parts: &[&[u8]]) -> Vec<u8> {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        for part in parts {
            stream.write_all(part).unwrap();
        }
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut received = Vec::new();
        stream.read_to_end(&mut received).unwrap();
        received
    }

    #[test]
    fn small_response_ends_with_its_body() {
        let received = exchange(start(), &[b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"]);
        assert_eq!(received, CANNED.small.bytes);
        assert!(received.ends_with(SMALL));
    }

    #[test]
    fn request_in_single_bytes() {
        let request = b"GET /1k HTTP/1.1\r\nHost: a\r\n\r\n";
        let parts: Vec<&[u8]> = request.chunks(1).collect();
        assert_eq!(exchange(start(), &parts), CANNED.kib.bytes);
    }

    #[test]
    fn pipelined_requests_are_answered_in_order() {
        let request = b"GET /1m HTTP/1.1\r\n\r\nHEAD /16k HTTP/1.1\r\n\r\nGET /chunked HTTP/1.1\r\n\r\nGET /x HTTP/1.1\r\n\r\n";
        let expected = [
            &CANNED.mib.bytes[..],
            &CANNED.kib16.bytes[..CANNED.kib16.head],
            &CANNED.chunked.bytes,
            &CANNED.missing.bytes,
        ];
        assert_eq!(exchange(start(), &[request]), expected.concat());
    }

    #[test]
    fn post_body_is_skipped_wherever_it_is_cut() {
        let request = b"POST /13 HTTP/1.1\r\ncontent-LENGTH: 8\r\n\r\nab\r\n\r\ncdGET /headers HTTP/1.1\r\n\r\n";
        let expected = [
            &CANNED.small.bytes[..],
            Answer::to(b"GET /headers HTTP/1.1").bytes,
        ]
        .concat();
        let address = start();
        for at in 0..request.len() {
            let (first, second) = request.split_at(at);
            assert_eq!(exchange(address, &[first, second]), expected, "cut at {at}");
        }
    }

    #[test]
    fn close_ends_the_connection_after_the_answer() {
        let received = exchange(start(), &[b"GET /close HTTP/1.1\r\n\r\n"]);
        assert_eq!(received, CANNED.close.bytes);
    }

    #[test]
    fn who_gathers_waits_for_the_others() {
        let address = start();
        let ask = || {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(b"GET /gather/2 HTTP/1.1\r\n\r\n").unwrap();
            stream
        };
        let mut first = ask();
        first.set_nonblocking(true).unwrap();
        // Another connection was served after the first request, so the server has read the first request.
        exchange(address, &[b"GET / HTTP/1.1\r\n\r\n"]);
        assert!(first.read(&mut [0]).is_err());
        first.set_nonblocking(false).unwrap();
        for mut stream in [ask(), first] {
            let mut received = vec![0; CANNED.small.bytes.len()];
            stream.read_exact(&mut received).unwrap();
            assert_eq!(received, CANNED.small.bytes);
        }
    }
}
