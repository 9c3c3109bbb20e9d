//! Web servers on loopback, each a host of its own, which write down who asked and when.

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The servers.
pub(super) struct Sites {
    pub(super) hosts: Vec<String>,
    log: Arc<Mutex<Log>>,
}

/// The requests of each host, in their order.
type Log = BTreeMap<String, Vec<Asked>>;

struct Asked {
    agent: String,
    at: Instant,
}

/// Requests that came too early.
#[derive(Debug, Default)]
pub(super) struct Early {
    pub(super) requests: usize,
    /// How often another worker went on with a host.
    pub(super) hand_overs: usize,
    /// The first requests of other workers that came too early.
    pub(super) at_hand_over: usize,
    /// Others.
    pub(super) else_where: usize,
}

impl Sites {
    pub(super) fn start(count: usize) -> io::Result<Self> {
        let log = Arc::<Mutex<Log>>::default();
        let mut hosts = Vec::new();
        for number in 0..count {
            let address = format!("127.0.{}.{}:0", number / 250, number % 250 + 1);
            let listener = TcpListener::bind(address)?;
            let host = listener.local_addr()?.to_string();
            let (name, log) = (host.clone(), Arc::clone(&log));
            thread::spawn(move || {
                for stream in listener.incoming().flatten() {
                    let (name, log) = (name.clone(), Arc::clone(&log));
                    // A connection that fails is the client's affair.
                    thread::spawn(move || drop(serve(stream, &name, &log)));
                }
            });
            hosts.push(host);
        }
        Ok(Self { hosts, log })
    }

    /// Forgets the requests so far.
    pub(super) fn forget(&self) {
        lock(&self.log).clear();
    }

    /// This many URLs of each host, one in a line.
    pub(super) fn list(&self, urls: usize) -> String {
        let of = |page| {
            self.hosts
                .iter()
                .map(move |host| format!("http://{host}/{page}\n"))
        };
        (0..urls).flat_map(of).collect()
    }

    /// When this client has sent its last request.
    pub(super) fn last_of(&self, agent: &str) -> Option<Instant> {
        let log = lock(&self.log);
        let requests = log.values().flatten();
        let own = requests.filter(|asked| asked.agent == agent);
        own.map(|asked| asked.at).max()
    }

    /// When another client had asked all hosts that this one had asked last at this time; `None` if it has not.
    pub(super) fn taken_over(&self, from: &str, to: &str, time: Instant) -> Option<Instant> {
        let log = lock(&self.log);
        let mut latest = time;
        for requests in log.values() {
            let before = requests.iter().rev().find(|asked| asked.at < time);
            if before.is_some_and(|asked| asked.agent == from) {
                let mut after = requests.iter().filter(|asked| asked.at >= time);
                latest = latest.max(after.find(|asked| asked.agent == to)?.at);
            }
        }
        Some(latest)
    }

    /// The requests that came sooner than this after the one before at the same host.
    pub(super) fn early(&self, least: Duration) -> Early {
        let mut early = Early::default();
        for requests in lock(&self.log).values() {
            early.requests += requests.len();
            for pair in requests.windows(2) {
                let is_other = pair[0].agent != pair[1].agent;
                let is_early = pair[1].at.saturating_duration_since(pair[0].at) < least;
                early.hand_overs += usize::from(is_other);
                early.at_hand_over += usize::from(is_early && is_other);
                early.else_where += usize::from(is_early && !is_other);
            }
        }
        early
    }
}

fn lock(log: &Mutex<Log>) -> MutexGuard<'_, Log> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve(stream: TcpStream, host: &str, log: &Mutex<Log>) -> io::Result<()> {
    let mut out = stream.try_clone()?;
    let mut lines = BufReader::new(stream);
    loop {
        let (mut path, mut agent) = (None, String::new());
        loop {
            let mut line = String::new();
            if lines.read_line(&mut line)? == 0 {
                return Ok(());
            }
            if line == "\r\n" {
                break;
            }
            if let Some(name) = line.to_ascii_lowercase().strip_prefix("user-agent: ") {
                name.trim_end().clone_into(&mut agent);
            }
            path = path.or_else(|| line.split(' ').nth(1).map(str::to_owned));
        }
        let asked = Asked {
            agent,
            at: Instant::now(),
        };
        lock(log).entry(host.to_owned()).or_default().push(asked);
        let page = path.unwrap_or_default();
        let page = page.trim_start_matches('/').parse::<usize>().unwrap_or(9);
        let status = match page % 50 {
            0 => "410 Gone",
            1 => "404 Not Found",
            _ => "200 OK",
        };
        write!(out, "HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n")?;
    }
}
