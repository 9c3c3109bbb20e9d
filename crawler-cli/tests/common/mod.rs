//! A web server whose every answer is a line of the test: path in, exact bytes out.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// Serves on a free loopback port until the process ends; one exchange per connection.
pub(crate) struct Script {
    pub(crate) address: SocketAddr,
    log: Arc<Mutex<Vec<String>>>,
    most_at_once: Arc<AtomicUsize>,
}

impl Script {
    /// `answer` gets the method and the target, as in `GET /pub/`, and may block.
    pub(crate) fn start(answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let log = Arc::new(Mutex::new(Vec::new()));
        let at_once = Arc::new(AtomicUsize::new(0));
        let most_at_once = Arc::new(AtomicUsize::new(0));
        let (shared_log, most) = (Arc::clone(&log), Arc::clone(&most_at_once));
        let answer = Arc::new(answer);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (log, at_once, most) = (
                    Arc::clone(&shared_log),
                    Arc::clone(&at_once),
                    Arc::clone(&most),
                );
                let answer = Arc::clone(&answer);
                thread::spawn(move || {
                    most.fetch_max(at_once.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    exchange(stream, &log, &*answer, || {
                        at_once.fetch_sub(1, Ordering::SeqCst);
                    });
                });
            }
        });
        Self {
            address,
            log,
            most_at_once,
        }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The requests so far, in order of arrival.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.log.lock().expect("no test panicked here").clone()
    }

    /// The largest number of connections that were open at a time.
    #[allow(
        dead_code,
        reason = "each test program is compiled with this module, and not all count connections"
    )]
    pub(crate) fn most_at_once(&self) -> usize {
        self.most_at_once.load(Ordering::SeqCst)
    }
}

fn exchange(
    stream: TcpStream,
    log: &Mutex<Vec<String>>,
    answer: &dyn Fn(&str) -> Vec<u8>,
    before_end: impl FnOnce(),
) {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    let mut request = String::new();
    while reader.read_line(&mut line).is_ok_and(|n| n > 0) {
        if request.is_empty() {
            request = line
                .rsplit_once(' ')
                .map_or("", |(request, _)| request)
                .to_owned();
        }
        if line == "\r\n" {
            break;
        }
        line.clear();
    }
    log.lock()
        .expect("no test panicked here")
        .push(request.clone());
    let response = answer(&request);
    before_end();
    // The client may have gone.
    let _ = reader.get_mut().write_all(&response);
}

/// An HTTP response with this status, these extra headers and this body; the connection closes after it.
pub(crate) fn response(status: u16, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status} X\r\nContent-Length: {length}\r\nConnection: close\r\n{headers}\r\n{body}")
        .into_bytes()
}

/// An index page as nginx writes it.
pub(crate) fn page(hrefs: &[&str]) -> Vec<u8> {
    response(200, "Content-Type: text/html\r\n", &index(hrefs))
}

/// The body of [`page`].
pub(crate) fn index(hrefs: &[&str]) -> String {
    let mut body = "<html><h1>Index of /</h1><hr><pre><a href=\"../\">../</a>\r\n".to_owned();
    for href in hrefs {
        body += &format!("<a href=\"{href}\">x</a>\r\n");
    }
    body + "</pre><hr></body></html>\r\n"
}
