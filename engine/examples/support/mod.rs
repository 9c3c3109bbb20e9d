//! A small HTTP/1.1 server on loopback, so that the examples run without any network: a thread for each connection,
//! and an answer for each request from a function. It is as simple as it can be, and no server for anything else.
#![allow(dead_code, reason = "each example uses a part of it")]

use std::io::{self, BufRead, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// It runs until it is dropped, which cuts all connections.
pub(crate) struct Server {
    address: SocketAddr,
    state: Arc<State>,
    acceptor: Option<JoinHandle<()>>,
}

/// A request, as the server understood it.
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) target: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

/// What is answered.
#[derive(Clone)]
pub(crate) struct Answer {
    status: String,
    headers: String,
    body: Vec<u8>,
    /// How often the body is sent, one after the other, and how long it takes before each time.
    times: usize,
    pause: Duration,
}

struct State {
    answer: Box<dyn Fn(&Asked) -> Answer + Send + Sync>,
    stopped: AtomicBool,
    accepted: AtomicUsize,
    open: Mutex<Vec<TcpStream>>,
}

impl Server {
    /// On a free port.
    pub(crate) fn start(
        answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static,
    ) -> io::Result<Self> {
        Self::start_at(([127, 0, 0, 1], 0).into(), answer)
    }

    /// At that address, where one may have been before.
    pub(crate) fn start_at(
        address: SocketAddr,
        answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let state = Arc::new(State {
            answer: Box::new(answer),
            stopped: AtomicBool::new(false),
            accepted: AtomicUsize::new(0),
            open: Mutex::default(),
        });
        let acceptor = thread::spawn({
            let state = Arc::clone(&state);
            move || accept_all(&listener, &state)
        });
        Ok(Self {
            address,
            state,
            acceptor: Some(acceptor),
        })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// How many connections there were so far.
    pub(crate) fn connections(&self) -> usize {
        self.state.accepted.load(Ordering::SeqCst)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.state.stopped.store(true, Ordering::SeqCst);
        // Wakes the acceptor up.
        let _ = TcpStream::connect(self.address);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
        let mut open = self
            .state
            .open
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for stream in open.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers.find_map(|(of, value)| (of == name).then_some(&**value))
    }
}

impl Answer {
    pub(crate) fn ok(body: impl Into<Vec<u8>>) -> Self {
        Self::new("200 OK", body)
    }

    pub(crate) fn new(status: impl Into<String>, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status: status.into(),
            headers: String::new(),
            body: body.into(),
            times: 1,
            pause: Duration::ZERO,
        }
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push_str(&format!("{name}: {value}\r\n"));
        self
    }

    /// After that time.
    pub(crate) fn after(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    /// The body is so many times as long, and comes piece by piece.
    pub(crate) fn times(mut self, times: usize) -> Self {
        self.times = times;
        self
    }

    fn send(&self, stream: &mut impl Write) -> io::Result<()> {
        let Self {
            status, headers, ..
        } = self;
        let length = self.body.len() * self.times;
        let head = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\n\r\n");
        let mut bytes = head.into_bytes();
        for _ in 0..self.times {
            thread::sleep(self.pause);
            bytes.extend_from_slice(&self.body);
            stream.write_all(&bytes)?;
            bytes.clear();
        }
        Ok(())
    }
}

fn accept_all(listener: &TcpListener, state: &Arc<State>) {
    for stream in listener.incoming() {
        if state.stopped.load(Ordering::SeqCst) {
            return;
        }
        let Ok(stream) = stream else { continue };
        state.accepted.fetch_add(1, Ordering::SeqCst);
        if let Ok(clone) = stream.try_clone() {
            let mut open = state.open.lock().unwrap_or_else(PoisonError::into_inner);
            open.push(clone);
        }
        let state = Arc::clone(state);
        // It ends with the connection, by whichever side.
        thread::spawn(move || serve(stream, &state));
    }
}

fn serve(mut stream: TcpStream, state: &State) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    while let Some(asked) = read_request(&mut reader)? {
        (state.answer)(&asked).send(&mut stream)?;
    }
    stream.shutdown(Shutdown::Both)
}

fn read_request(reader: &mut impl BufRead) -> io::Result<Option<Asked>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split(' ').map(str::to_owned);
    let mut asked = Asked {
        method: words.next().unwrap_or_default(),
        target: words.next().unwrap_or_default(),
        headers: Vec::new(),
        body: Vec::new(),
    };
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        let name = name.to_ascii_lowercase();
        asked.headers.push((name, value.trim().to_owned()));
    }
    let length = asked.header("content-length").and_then(|n| n.parse().ok());
    asked.body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut asked.body)?;
    Ok(Some(asked))
}

/// Uploads 20 MB to a server from a thread of its own, prints the answer, and ends the program: with an error unless the
/// server has counted all bytes.
pub(crate) fn upload_to(server: SocketAddr) {
    let upload = thread::spawn(move || {
        let config = courser::HostConfig::default();
        let upstream = courser::Upstream::tcp([server]);
        let mut client = courser::HostClient::new(upstream, config).expect("a client");
        let mut request = courser::Request::post("/", vec![b'x'; 20_000_000]);
        let mut response = courser::Response::new();
        let answered = client.call(&mut request, &mut response);
        answered.expect("an answer");
        println!("{}", response.text());
        assert_eq!(response.text(), "20000000 bytes");
    });
    thread::spawn(move || std::process::exit(i32::from(upload.join().is_err())));
}
