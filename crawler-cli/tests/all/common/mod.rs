//! Runs the program as a user does, and a scripted web server: the test maps each request to the exact bytes of its
//! response.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

pub(crate) mod authority;
pub(crate) mod cluster;
pub(crate) mod proxy;
pub(crate) mod service;
pub(crate) mod terminal;

/// The program with these arguments and without the proxies of the environment. A search gets `--robots=off` unless its
/// arguments decide about robots.txt: the scripted hosts have none.
pub(crate) fn crawler(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_crawler-cli"));
    for name in ["http_proxy", "https_proxy", "all_proxy", "no_proxy"] {
        command
            .env_remove(name)
            .env_remove(name.to_ascii_uppercase());
    }
    for name in ["CURL_CA_BUNDLE", "SSL_CERT_FILE"] {
        command.env_remove(name);
    }
    let (name, rest) = args.split_at(args.len().min(1));
    command.args(name);
    let decides_robots = |arg: &&str| arg.contains("--robots");
    if name == ["find"] && !rest.iter().any(decides_robots) {
        command.arg("--robots=off");
    }
    command.args(rest).stdin(Stdio::null());
    command
}

pub(crate) fn find(args: &[&str]) -> Output {
    let output = crawler(&[&["find"], args].concat()).output();
    output.expect("the program runs")
}

/// The lines, sorted.
pub(crate) fn lines(bytes: &[u8]) -> Vec<String> {
    let mut lines: Vec<String> = String::from_utf8_lossy(bytes)
        .lines()
        .map(str::to_owned)
        .collect();
    lines.sort();
    lines
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The reaction to a request.
pub(crate) enum Answer {
    /// Sends exactly these bytes and closes the connection.
    Bytes(Vec<u8>),
    /// Resets the connection.
    Reset,
    /// Sends nothing until the client closes the connection.
    Stall,
}

impl From<Vec<u8>> for Answer {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

/// Accepts connections on a free port until it is dropped. Each is served in a thread of its own.
pub(crate) struct Acceptor {
    pub(crate) address: SocketAddr,
    is_over: Arc<AtomicBool>,
}

impl Acceptor {
    pub(crate) fn start(ip: &str, serve: impl Fn(TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((ip, 0)).expect("a free port");
        let address = listener.local_addr().expect("an address");
        let is_over = Arc::new(AtomicBool::new(false));
        let (over, serve) = (Arc::clone(&is_over), Arc::new(serve));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if over.load(Ordering::SeqCst) {
                    return;
                }
                let serve = Arc::clone(&serve);
                thread::spawn(move || serve(stream));
            }
        });
        Self { address, is_over }
    }
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        // Wakes the thread.
        let _ = TcpStream::connect(self.address);
    }
}

/// A port of loopback on which connections are refused. No other program gets it before this is dropped.
pub(crate) struct ClosedPort(socket2::Socket);

impl ClosedPort {
    pub(crate) fn new() -> Self {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None);
        let socket = socket.expect("a socket");
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        // Nobody listens.
        socket.bind(&any.into()).expect("a free port");
        Self(socket)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        let address = self.0.local_addr().expect("an address");
        address.as_socket().expect("an address of IP")
    }
}

/// A server on a free loopback port that runs until it is dropped. One exchange for each connection.
pub(crate) struct Script {
    scheme: &'static str,
    pub(crate) address: SocketAddr,
    _acceptor: Acceptor,
    log: Arc<Mutex<Vec<String>>>,
    most_at_once: Arc<AtomicUsize>,
}

trait Stream: Read + Write + Send {}

impl<T: Read + Write + Send> Stream for T {}

impl Script {
    /// Starts the server. `answer` gets method and target, as in `GET /pub/`, and may block.
    pub(crate) fn start<A: Into<Answer>>(
        answer: impl Fn(&str) -> A + Send + Sync + 'static,
    ) -> Self {
        Self::serve("http", |stream| Box::new(stream), answer)
    }

    /// [`Self::start`] for answers that depend on the whole head of a request.
    pub(crate) fn start_with_heads<A: Into<Answer>>(
        answer: impl Fn(&str) -> A + Send + Sync + 'static,
    ) -> Self {
        Self::serve_heads("http", |stream| Box::new(stream), answer)
    }

    /// [`Self::start`] over TLS.
    pub(crate) fn start_tls(
        config: Arc<ServerConfig>,
        answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static,
    ) -> Self {
        let open = move |stream| -> Box<dyn Stream> {
            let session = ServerConnection::new(Arc::clone(&config)).expect("a session");
            Box::new(StreamOwned::new(session, stream))
        };
        Self::serve("https", open, answer)
    }

    fn serve<A: Into<Answer>>(
        scheme: &'static str,
        open: impl Fn(TcpStream) -> Box<dyn Stream> + Send + Sync + 'static,
        answer: impl Fn(&str) -> A + Send + Sync + 'static,
    ) -> Self {
        Self::serve_heads(scheme, open, move |head| answer(&request_of(head)))
    }

    fn serve_heads<A: Into<Answer>>(
        scheme: &'static str,
        open: impl Fn(TcpStream) -> Box<dyn Stream> + Send + Sync + 'static,
        answer: impl Fn(&str) -> A + Send + Sync + 'static,
    ) -> Self {
        let log = Arc::new(Mutex::new(Vec::new()));
        let most_at_once = Arc::new(AtomicUsize::new(0));
        let (requests, most) = (Arc::clone(&log), Arc::clone(&most_at_once));
        let at_once = AtomicUsize::new(0);
        let acceptor = Acceptor::start("127.0.0.1", move |stream| {
            let socket = stream.try_clone().expect("another descriptor");
            let stream = open(stream);
            most.fetch_max(at_once.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            exchange(
                stream,
                &socket,
                &requests,
                &|head| answer(head).into(),
                || {
                    at_once.fetch_sub(1, Ordering::SeqCst);
                },
            );
        });
        Self {
            scheme,
            address: acceptor.address,
            _acceptor: acceptor,
            log,
            most_at_once,
        }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}://{}{path}", self.scheme, self.address)
    }

    /// The requests so far, in order of arrival.
    pub(crate) fn requests(&self) -> Vec<String> {
        let heads = self.heads();
        heads.iter().map(|head| request_of(head)).collect()
    }

    /// The complete heads of the requests so far, in order of arrival.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.log.lock().expect("no test panicked here").clone()
    }

    /// The largest number of connections that were open at the same time.
    pub(crate) fn most_at_once(&self) -> usize {
        self.most_at_once.load(Ordering::SeqCst)
    }
}

/// Method and target.
fn request_of(head: &str) -> String {
    let line = head.lines().next().unwrap_or("");
    line.rsplit_once(' ')
        .map_or("", |(request, _)| request)
        .to_owned()
}

fn exchange(
    stream: Box<dyn Stream>,
    socket: &TcpStream,
    log: &Mutex<Vec<String>>,
    answer: &dyn Fn(&str) -> Answer,
    before_end: impl FnOnce(),
) {
    let mut reader = BufReader::new(stream);
    let head = read_head(&mut reader);
    if head.is_empty() {
        return before_end();
    }
    log.lock()
        .expect("no test panicked here")
        .push(head.clone());
    let response = answer(&head);
    before_end();
    // The client may have closed the connection.
    let _ = match response {
        Answer::Bytes(bytes) => reader.get_mut().write_all(&bytes),
        Answer::Reset => socket2::SockRef::from(socket).set_linger(Some(Duration::ZERO)),
        Answer::Stall => reader.read(&mut [0]).map(|_| ()),
    };
}

/// Reads the head of a request. Empty if the client sends none.
pub(crate) fn read_head(reader: &mut BufReader<impl Read>) -> String {
    let mut head = String::new();
    while reader.read_line(&mut head).is_ok_and(|n| n > 0) && !head.ends_with("\r\n\r\n") {}
    head
}

/// A response with this status, these additional header fields and this body. It closes the connection.
pub(crate) fn response(status: u16, headers: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let length = body.as_ref().len();
    let mut response = format!(
        "HTTP/1.1 {status} X\r\nContent-Length: {length}\r\nConnection: close\r\n{headers}\r\n"
    )
    .into_bytes();
    response.extend_from_slice(body.as_ref());
    response
}

/// A response with an index page as nginx writes it.
pub(crate) fn page(hrefs: &[&str]) -> Vec<u8> {
    response(200, "Content-Type: text/html\r\n", index(hrefs))
}

/// The body of [`page`].
pub(crate) fn index(hrefs: &[&str]) -> String {
    let mut body = "<html><h1>Index of /</h1><hr><pre><a href=\"../\">../</a>\r\n".to_owned();
    for href in hrefs {
        body += &format!("<a href=\"{href}\">x</a>\r\n");
    }
    body + "</pre><hr></body></html>\r\n"
}

/// Bytes in gzip.
pub(crate) fn gzip(bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes.as_ref()).expect("into memory");
    encoder.finish().expect("into memory")
}
