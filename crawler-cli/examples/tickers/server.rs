//! A server that allows ten requests in a window and answers more with 429, as it answers some of those that it allows.
//! Keeps a journal of what it was asked.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The largest number of requests in a window.
pub(crate) const MOST: usize = 10;

/// What the server was asked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Journal {
    /// How often each path was answered with each status.
    pub(crate) answers: BTreeMap<(String, u16), u32>,
    /// How many requests came while there were ten in the window.
    pub(crate) over: u32,
    /// The number of requests.
    pub(crate) requests: u32,
    recent: VecDeque<Instant>,
}

impl Journal {
    /// Answers a request that comes now.
    fn answer(&mut self, path: &str, window: Duration, now: Instant) -> u16 {
        while self
            .recent
            .front()
            .is_some_and(|first| now - *first >= window)
        {
            self.recent.pop_front();
        }
        self.requests += 1;
        self.recent.push_back(now);
        let status = match self.recent.len() > MOST {
            true => {
                self.over += 1;
                429
            }
            false if is_delisted(path) => 404,
            false => {
                let throttled = self.answers.get(&(path.to_owned(), 429));
                let mut hasher = DefaultHasher::new();
                (path, throttled).hash(&mut hasher);
                match hasher.finish() % 50 {
                    0 => 429,
                    _ => 200,
                }
            }
        };
        *self.answers.entry((path.to_owned(), status)).or_default() += 1;
        status
    }

    /// How many answers had this status.
    pub(crate) fn count(&self, status: u16) -> u32 {
        let answers = self
            .answers
            .iter()
            .filter(|((_, answer), _)| *answer == status);
        answers.map(|(_, count)| count).sum()
    }
}

/// Whether a path is that of a company that is listed no more: each hundredth.
pub(crate) fn is_delisted(path: &str) -> bool {
    path.ends_with("00")
}

/// Starts the server on a free port.
pub(crate) fn start(window: Duration) -> io::Result<(SocketAddr, Arc<Mutex<Journal>>)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let journal = Arc::new(Mutex::new(Journal::default()));
    let of_thread = Arc::clone(&journal);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let journal = Arc::clone(&of_thread);
            // A client that is killed in the middle of a request is no failure of the server.
            thread::spawn(move || drop(serve(&stream, window, &journal)));
        }
    });
    Ok((address, journal))
}

fn serve(stream: &TcpStream, window: Duration, journal: &Mutex<Journal>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let path = line.split(' ').nth(1).unwrap_or("/").to_owned();
        while line.trim_end() != "" {
            line.clear();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
        }
        let status = {
            let mut journal = journal.lock().unwrap_or_else(PoisonError::into_inner);
            journal.answer(&path, window, Instant::now())
        };
        let head = match status {
            200 => "200 OK",
            404 => "404 Not Found",
            _ => "429 Too Many Requests",
        };
        let body = format!("filing of {path}\n");
        let length = body.len();
        write!(
            &mut &*stream,
            "HTTP/1.1 {head}\r\nContent-Length: {length}\r\n\r\n{body}"
        )?;
    }
}
