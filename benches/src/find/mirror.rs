//! A server of generated listings. The listing of each depth is made once; a case can add random faults. It has one
//! thread for each connection, all on one core.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
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

    /// The paths of all entries.
    pub(super) fn paths(&self) -> BTreeSet<String> {
        let mut level = vec!["/".to_owned()];
        let mut all: BTreeSet<String> = level.iter().cloned().collect();
        for depth in 0..=self.fans.len() {
            let names = self.names(depth);
            let below = level
                .iter()
                .flat_map(|above| names.iter().map(move |name| format!("{above}{name}")));
            level = below.collect();
            all.extend(level.iter().cloned());
        }
        all
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

/// Random faults, chosen by a seed and the number of the request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Faults {
    seed: u64,
}

/// A fault of one response.
enum Fault {
    Reset,
    Error,
    Busy,
    /// No response.
    Stall,
    CutShort,
}

impl Faults {
    pub(super) fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// The fault of this response. 12 of 100 responses have one.
    fn of(self, request: u64) -> Option<Fault> {
        let random = splitmix(self.seed ^ splitmix(request));
        if random % 100 >= 12 {
            return None;
        }
        Some(match random / 100 % 5 {
            0 => Fault::Reset,
            1 => Fault::Error,
            2 => Fault::Busy,
            3 => Fault::Stall,
            _ => Fault::CutShort,
        })
    }
}

/// A finaliser of 64 bits (Steele, Lea, Flood: Fast splittable pseudorandom number generators).
fn splitmix(value: u64) -> u64 {
    let mut mixed = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
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
    faults: Option<Faults>,
    requests: AtomicU64,
    connections: AtomicUsize,
    is_over: AtomicBool,
}

impl Mirror {
    pub(super) fn start(shape: &Shape, faults: Option<Faults>, core: usize) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            answers: (0..=shape.fans.len())
                .map(|depth| shape.answer(depth))
                .collect(),
            faults,
            requests: AtomicU64::new(0),
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
        usize::try_from(self.shared.requests.load(Ordering::Relaxed)).unwrap_or(usize::MAX)
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
            let number = self.requests.fetch_add(1, Ordering::Relaxed);
            match self.faults.and_then(|faults| faults.of(number)) {
                None => stream.write_all(answer)?,
                Some(Fault::Error) => stream.write_all(ERROR)?,
                Some(Fault::Busy) => stream.write_all(BUSY)?,
                Some(Fault::CutShort) => return stream.write_all(&answer[..answer.len() / 2]),
                Some(Fault::Stall) => {
                    // Waits until the client closes the connection.
                    return stream.read(&mut chunk).map(|_| ());
                }
                Some(Fault::Reset) => {
                    return rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO))
                        .map_err(Into::into);
                }
            }
            buffer.clear();
        }
    }
}

const ERROR: &[u8] = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n";
const BUSY: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n";
