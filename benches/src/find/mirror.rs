//! A server of generated listings. The listing of each depth is made once. It has one thread for each connection, all
//! on one core.

use std::fmt::Write as _;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::process::stay_on;

/// The number of subdirectories of a directory at each depth, and of files in each directory of the lowest depth.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    fans: Vec<usize>,
    files: usize,
}

impl Shape {
    pub(super) fn new(fans: &[usize], files: usize) -> Self {
        Self {
            fans: fans.to_vec(),
            files,
        }
    }

    pub(super) fn directories(&self) -> usize {
        let levels = self.fans.iter().scan(1, |above, fan| {
            *above *= fan;
            Some(*above)
        });
        1 + levels.sum::<usize>()
    }

    pub(super) fn files(&self) -> usize {
        self.fans.iter().product::<usize>() * self.files
    }

    /// The names in a directory of this depth.
    fn names(&self, depth: usize) -> Vec<String> {
        match self.fans.get(depth) {
            Some(&fan) => (0..fan).map(|n| format!("directory-{n}/")).collect(),
            None => (0..self.files).map(|n| format!("file-{n}.bin")).collect(),
        }
    }

    /// The response with the listing of a directory of this depth, as nginx writes it.
    fn answer(&self, depth: usize) -> Vec<u8> {
        let mut page = "<html>\r\n<head><title>Index of /</title></head>\r\n<body>\r\n\
                        <h1>Index of /</h1><hr><pre><a href=\"../\">../</a>\r\n"
            .to_owned();
        for name in self.names(depth) {
            let size = if name.ends_with('/') { "-" } else { "1" };
            let pad = " ".repeat(51_usize.saturating_sub(name.len()));
            let row = format!("<a href=\"{name}\">{name}</a>{pad}22-Nov-2026 02:50 {size:>19}\r\n");
            page.push_str(&row);
        }
        page.push_str("</pre><hr></body>\r\n</html>\r\n");
        let mut answer = String::new();
        // Writing to memory cannot fail.
        let _ = write!(
            answer,
            "HTTP/1.1 200 OK\r\nServer: nginx\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n{page}",
            page.len()
        );
        answer.into_bytes()
    }
}

/// The running server. It stops when dropped.
#[derive(Debug)]
pub(super) struct Mirror {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// The response for each depth.
    answers: Vec<Vec<u8>>,
    requests: AtomicUsize,
    connections: AtomicUsize,
    is_over: AtomicBool,
}

impl Mirror {
    pub(super) fn start(shape: &Shape, core: usize) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            answers: (0..=shape.fans.len())
                .map(|depth| shape.answer(depth))
                .collect(),
            requests: AtomicUsize::new(0),
            connections: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
        });
        let own = Arc::clone(&shared);
        thread::spawn(move || {
            // Best effort. The threads of the connections inherit the core of this thread.
            let _ = stay_on(core);
            for stream in listener.incoming().flatten() {
                if own.is_over.load(Ordering::Relaxed) {
                    return;
                }
                own.connections.fetch_add(1, Ordering::Relaxed);
                let shared = Arc::clone(&own);
                // An error only ends its connection.
                thread::spawn(move || shared.serve(stream));
            }
        });
        Ok(Self { address, shared })
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    pub(super) fn requests(&self) -> usize {
        self.shared.requests.load(Ordering::Relaxed)
    }

    pub(super) fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::Relaxed)
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        // Wakes the accepting thread.
        let _ = TcpStream::connect_timeout(&self.address, Duration::from_secs(1));
    }
}

impl Shared {
    fn serve(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut buffer = Vec::new();
        let mut chunk = [0; 4096];
        loop {
            while memchr::memmem::find(&buffer, b"\r\n\r\n").is_none() {
                match stream.read(&mut chunk)? {
                    0 => return Ok(()),
                    n => buffer.extend_from_slice(&chunk[..n]),
                }
            }
            // The client does not pipeline: the buffer holds one request.
            let target = buffer.split(|&byte| byte == b' ').nth(1).unwrap_or(b"/");
            let depth = target
                .iter()
                .filter(|&&byte| byte == b'/')
                .count()
                .saturating_sub(1);
            let answer = &self.answers[depth.min(self.answers.len() - 1)];
            self.requests.fetch_add(1, Ordering::Relaxed);
            stream.write_all(answer)?;
            buffer.clear();
        }
    }
}
