//! A [`Plan`] describes a run, a [`Run`] measures it, and a [`Record`] holds the results. They are the same for every
//! client, so that the results can be compared.
//!
//! There is no pause after the warm-up: clocks and counters are read when its last response arrives, and everything
//! after that counts.

use std::error::Error;
use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::{Duration, Instant};

use courser::Bytes;
use hdrhistogram::Histogram;
use hyper::Uri;
use nix::sys::resource::{UsageWho, getrusage};
use serde::{Deserialize, Serialize};

use crate::alloc;

/// The options of a run.
#[derive(clap::Args, Clone, Debug)]
pub struct Plan {
    /// The URL to request: http, or https (not limit)
    pub url: Target,

    /// Connections, each with one request at a time
    #[arg(short, long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    pub connections: u32,

    /// Requests on each connection at a time (limit and pipeline only)
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub depth: u32,

    /// Requests to measure, instead of a time
    #[arg(long, conflicts_with = "seconds")]
    pub requests: Option<u64>,

    /// How many seconds to measure
    #[arg(long, default_value = "2", value_parser = seconds)]
    pub seconds: Duration,

    /// The method
    #[arg(long, default_value = "GET")]
    pub method: String,

    /// Bytes of the body of each request
    #[arg(long, default_value_t = 0)]
    pub body: usize,

    /// Requests per second, sent when they are due, even if earlier ones have no response yet (an open loop). Latencies
    /// count from the time at which the request was due, so they include waiting for a connection
    #[arg(long, requires = "requests")]
    pub rate: Option<f64>,

    /// Requests before the measurement begins
    #[arg(long, default_value_t = 0)]
    pub warm_up: u64,

    /// The file with the certificate that https servers must have
    #[arg(long)]
    pub root: Option<PathBuf>,
}

impl Plan {
    /// The number of simultaneous requests.
    #[must_use]
    pub fn at_once(&self) -> u32 {
        self.connections.saturating_mul(self.depth)
    }

    /// The body of a request, if it has one. All requests of a run share its memory.
    #[must_use]
    pub fn body(&self) -> Option<Bytes> {
        (self.body > 0).then(|| vec![b'b'; self.body].into())
    }
}

/// Parses a number of seconds.
///
/// # Errors
/// The text is not a number, or the number cannot be a duration.
pub fn seconds(text: &str) -> Result<Duration, Box<dyn Error + Send + Sync>> {
    Ok(Duration::try_from_secs_f64(text.parse()?)?)
}

/// The parts of a URL, with the resolved address of its host.
#[derive(Clone, Debug)]
pub struct Target {
    /// The URL as given.
    pub url: String,
    /// The host, with the port if the URL has one.
    pub authority: String,
    /// Path and query.
    pub path: String,
    /// The first address of the host.
    pub address: SocketAddr,
}

impl Target {
    /// The scheme of the URL.
    #[must_use]
    pub fn scheme(&self) -> &str {
        self.url.split(':').next().unwrap_or_default()
    }

    /// The host without the port.
    #[must_use]
    pub fn host(&self) -> &str {
        match self.authority.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
            _ => &self.authority,
        }
    }
}

impl FromStr for Target {
    type Err = Box<dyn Error + Send + Sync>;

    fn from_str(url: &str) -> Result<Self, Self::Err> {
        let uri: Uri = url.parse()?;
        let (port, authority) = match (uri.scheme_str(), uri.authority()) {
            (Some("http"), Some(authority)) => (80, authority),
            (Some("https"), Some(authority)) => (443, authority),
            _ => return Err("neither an http nor an https URL".into()),
        };
        let port = authority.port_u16().unwrap_or(port);
        let address = (authority.host(), port).to_socket_addrs()?.next();
        Ok(Self {
            url: url.to_owned(),
            authority: authority.to_string(),
            path: uri
                .path_and_query()
                .map_or("/", |path| path.as_str())
                .to_owned(),
            address: address.ok_or("the host has no address")?,
        })
    }
}

/// One run. The client [claims](Self::claim) each request before it sends it, and reports the end of each request.
#[derive(Debug)]
pub struct Run {
    /// Number of requests that may still start; `None` if the run ends by time.
    left: Option<u64>,
    duration: Duration,
    /// Requests per second of an open loop.
    rate: Option<f64>,
    claimed: u64,
    warm_up_left: u64,
    began: Instant,
    /// The counters at the end of the warm-up; before that, at its start.
    start: Snapshot,
    latency: Histogram<u64>,
    /// The first failure, which ends the run.
    failure: Option<String>,
}

impl Run {
    /// Starts the warm-up.
    ///
    /// # Errors
    /// The counters of the system cannot be read, or the histogram cannot be created.
    pub fn new(plan: &Plan) -> Result<Self, Box<dyn Error>> {
        let now = Instant::now();
        Ok(Self {
            left: plan.requests.map(|requests| requests + plan.warm_up),
            duration: plan.seconds,
            rate: plan.rate,
            claimed: 0,
            warm_up_left: plan.warm_up,
            began: now,
            start: Snapshot::take(now)?,
            latency: Histogram::new_with_bounds(1, LONGEST_NS, LATENCY_DIGITS)?,
            failure: None,
        })
    }

    /// The time at which the next request is due: now, or at a fixed rate that does not depend on earlier requests, which
    /// may be a later time or one that has passed. `None` at the end of the run. Its latency counts from this time.
    #[inline]
    pub fn claim(&mut self, now: Instant) -> Option<Instant> {
        if self.failure.is_some() {
            return None;
        }
        match &mut self.left {
            Some(left) => *left = left.checked_sub(1)?,
            None if self.warm_up_left > 0 || now - self.start.at < self.duration => {}
            None => return None,
        }
        let number = self.claimed;
        self.claimed += 1;
        let due = |rate: f64| self.began + Duration::from_secs_f64(number as f64 / rate);
        Some(self.rate.map_or(now, due))
    }

    /// Counts a request that was due at `since` and ended with `status`. A status of 400 or above is a failure.
    #[inline]
    pub fn answered(&mut self, status: u16, since: Instant, now: Instant) {
        if status >= 400 {
            self.failed(&format_args!("status {status}"));
        } else {
            self.completed(since, now);
        }
    }

    /// Counts a successful request.
    #[inline]
    pub fn completed(&mut self, since: Instant, now: Instant) {
        if self.warm_up_left == 0 {
            let nanos = (now - since).as_nanos().try_into().unwrap_or(LONGEST_NS);
            return self.latency.saturating_record(nanos);
        }
        self.warm_up_left -= 1;
        // If this fails, which it did not at the start, the measurement keeps its old start.
        if self.warm_up_left == 0
            && let Ok(snapshot) = Snapshot::take(now)
        {
            self.start = snapshot;
        }
    }

    /// A request has failed: a measurement with failures says nothing.
    #[cold]
    pub fn failed(&mut self, error: &dyn fmt::Display) {
        self.failure.get_or_insert_with(|| error.to_string());
    }

    /// Ends the measurement.
    ///
    /// # Errors
    /// A request failed, there was none, or the counters of the system cannot be read.
    pub fn finish(self) -> Result<Record, Box<dyn Error>> {
        let end = Snapshot::take(Instant::now())?;
        if let Some(failure) = self.failure {
            return Err(failure.into());
        }
        let requests = self.latency.len();
        if requests == 0 {
            return Err("no request was measured".into());
        }
        let each = |sum: f64| sum / requests as f64;
        let quantile = |at| self.latency.value_at_quantile(at) as f64 / 1e3;
        Ok(Record {
            requests,
            requests_per_second: requests as f64 / (end.at - self.start.at).as_secs_f64(),
            user_us: each((end.user - self.start.user).as_secs_f64() * 1e6),
            system_us: each((end.system - self.start.system).as_secs_f64() * 1e6),
            server_us: 0.0,
            own: Some(Own {
                allocations: each((end.allocations - self.start.allocations) as f64),
                p50_us: quantile(0.5),
                p90_us: quantile(0.9),
                p99_us: quantile(0.99),
                p999_us: quantile(0.999),
            }),
        })
    }
}

/// The counters of the process at one time.
#[derive(Debug)]
struct Snapshot {
    at: Instant,
    user: Duration,
    system: Duration,
    allocations: u64,
}

impl Snapshot {
    fn take(at: Instant) -> Result<Self, Box<dyn Error>> {
        let [user, system] = cpu_time(UsageWho::RUSAGE_SELF)?;
        Ok(Self {
            at,
            user,
            system,
            allocations: alloc::in_process(),
        })
    }
}

/// The user time and system time used so far.
///
/// # Errors
/// The system cannot report the times.
pub fn cpu_time(who: UsageWho) -> Result<[Duration; 2], Box<dyn Error>> {
    let usage = getrusage(who)?;
    let times = [usage.user_time(), usage.system_time()];
    Ok(times.map(|time| {
        Duration::from_micros(time.tv_sec() as u64 * 1_000_000 + time.tv_usec() as u64)
    }))
}

/// The results of a run after its warm-up. Times and allocations are per request.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Record {
    /// Requests.
    pub requests: u64,
    /// Requests per second.
    pub requests_per_second: f64,
    /// Processor time outside the kernel, in microseconds.
    pub user_us: f64,
    /// Processor time in the kernel, in microseconds.
    pub system_us: f64,
    /// Processor time of the server in µs, including the time for accepting connections; 0 where only the client knows.
    pub server_us: f64,
    /// Numbers that only our own tools report; `None` for wrk and the clients in Go.
    pub own: Option<Own>,
}

/// What a client knows of itself.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Own {
    /// Calls of the allocator.
    pub allocations: f64,
    /// The median latency, in microseconds.
    pub p50_us: f64,
    /// The latency that 90 % of the requests did not exceed.
    pub p90_us: f64,
    /// The same for 99 %.
    pub p99_us: f64,
    /// The same for 99.9 %.
    pub p999_us: f64,
}

/// How long to sleep before `due`. The timers of the system are too coarse for the last part, which is spent polling
/// for responses.
#[must_use]
pub fn sleep(now: Instant, due: Instant) -> Duration {
    (due - now).saturating_sub(TIMER)
}

/// Precision of the timers of the system.
const TIMER: Duration = Duration::from_millis(1);
/// Highest latency in the histogram: larger ones, which occur far behind a schedule, count as an hour.
const LONGEST_NS: u64 = 3_600_000_000_000;
const LATENCY_DIGITS: u8 = 3;

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use clap::Parser;

    use super::{Plan, Run};

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        plan: Plan,
    }

    fn run(args: &[&str]) -> Run {
        let url = "http://127.0.0.1:1/";
        Run::new(&Cli::parse_from(["test", url].iter().chain(args)).plan).unwrap()
    }

    #[test]
    fn only_requests_after_the_warm_up_count() {
        let mut run = run(&["--requests", "3", "--warm-up", "2"]);
        let mut now = Instant::now();
        let mut begun = 0;
        while let Some(due) = run.claim(now) {
            begun += 1;
            now += Duration::from_micros(if begun <= 2 { 1_000_000 } else { 50 });
            run.answered(200, due, now);
        }
        assert_eq!((begun, run.latency.len()), (5, 3));
        assert!(run.latency.max() < 51_000);
    }

    #[test]
    fn time_begins_after_the_warm_up() {
        let mut run = run(&["--seconds", "1", "--warm-up", "1"]);
        let begin = Instant::now();
        let later = begin + Duration::from_secs(5);
        assert_eq!(run.claim(later), Some(later));
        run.completed(begin, later);
        assert!(run.claim(later + Duration::from_millis(999)).is_some());
        assert_eq!(run.claim(later + Duration::from_secs(1)), None);
    }

    /// A stall is in the latencies of all requests that were due during it.
    #[test]
    fn requests_are_due_at_the_rate() {
        let mut run = run(&["--rate", "200", "--requests", "1000"]);
        let stalled = run.began + Duration::from_secs(1);
        for number in 0..1000 {
            let due = run.began + Duration::from_millis(5 * number);
            assert_eq!(run.claim(stalled), Some(due));
            run.completed(due, stalled.max(due));
        }
        assert_eq!(run.claim(stalled), None);
        assert!(run.latency.max() >= 1_000_000_000);
    }

    #[test]
    fn a_failure_ends_the_run() {
        let mut run = run(&["--seconds", "60"]);
        let now = Instant::now();
        assert_eq!(run.claim(now), Some(now));
        run.answered(503, now, now);
        assert_eq!(run.claim(now), None);
        assert_eq!(run.finish().unwrap_err().to_string(), "status 503");
    }
}
