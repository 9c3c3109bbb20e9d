//! What a run is ([`Plan`]), what is measured while it runs ([`Run`]), and what comes out ([`Record`]): the same for
//! every client, so that their numbers can be compared.
//!
//! A run has a warm-up without an end that anybody notices: the clocks and counters are read when the last answer of
//! the warm-up has come, and everything after it counts.

use std::error::Error;
use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use hyper::Uri;
use nix::sys::resource::{UsageWho, getrusage};
use serde_json::{Value, json};

use crate::alloc;

/// The options that all load generators share.
#[derive(clap::Args, Clone, Debug)]
pub struct Plan {
    /// What to ask for: an http URL, or an https one (courser and reqwest only)
    pub url: Target,

    /// Connections, each with one request at a time
    #[arg(short, long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    pub connections: u32,

    /// Requests on each connection at a time (pipeline only)
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub depth: u32,

    /// Requests to measure, instead of a time
    #[arg(short = 'n', long, conflicts_with = "duration")]
    pub requests: Option<u64>,

    /// Seconds to measure
    #[arg(short, long, default_value = "2", value_parser = seconds)]
    pub duration: Duration,

    /// Requests before the measurement begins [default: 10 for each connection]
    #[arg(long)]
    pub warm_up: Option<u64>,

    /// The file with the certificate that https URLs must have
    #[arg(long)]
    pub root: Option<PathBuf>,
}

impl Plan {
    /// Requests that are made before those that count.
    #[must_use]
    pub fn warm_up(&self) -> u64 {
        self.warm_up
            .unwrap_or(10 * u64::from(self.connections * self.depth))
    }
}

/// A length of time from a number of seconds.
///
/// # Errors
/// Not a number, or none that is a length of time.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let number: f64 = text
        .parse()
        .map_err(|_| "not a number of seconds".to_owned())?;
    Duration::try_from_secs_f64(number).map_err(|error| error.to_string())
}

/// A URL taken apart, its host resolved.
#[derive(Clone, Debug)]
pub struct Target {
    /// As given.
    pub url: String,
    /// The host, with the port where the URL has one.
    pub authority: String,
    /// Path and query.
    pub path: String,
    /// The first address of the host.
    pub address: SocketAddr,
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

/// One run. The client asks [`admit`](Run::admit) before each request and reports each end.
#[derive(Debug)]
pub struct Run {
    /// Requests still to begin; `None` when time decides.
    tickets: Option<u64>,
    duration: Duration,
    connections: u32,
    warm_up_left: u64,
    /// What the counters said when the warm-up ended, or at first while it lasts.
    start: Snapshot,
    requests: u64,
    errors: u64,
    first_error: Option<String>,
    errors_in_a_row: u32,
    latency: Histogram<u64>,
    connections_opened: u64,
}

impl Run {
    /// Begins the warm-up.
    ///
    /// # Errors
    /// The histogram or the system's counters cannot be had.
    pub fn new(plan: &Plan) -> Result<Self, Box<dyn Error>> {
        Ok(Self {
            tickets: plan.requests.map(|requests| requests + plan.warm_up()),
            duration: plan.duration,
            connections: plan.connections,
            warm_up_left: plan.warm_up(),
            start: Snapshot::take(Instant::now())?,
            requests: 0,
            errors: 0,
            first_error: None,
            errors_in_a_row: 0,
            latency: Histogram::new_with_bounds(1, LONGEST_NS, LATENCY_DIGITS)?,
            connections_opened: 0,
        })
    }

    /// Whether another request shall begin.
    pub fn admit(&mut self, now: Instant) -> bool {
        if self.errors_in_a_row >= HOPELESS {
            return false;
        }
        match &mut self.tickets {
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
            None => self.warm_up_left > 0 || now - self.start.at < self.duration,
        }
    }

    /// A request has ended with `status`. One of 400 and above is an error: it is not what was asked for.
    pub fn answered(&mut self, status: u16, sent: Instant, now: Instant) {
        if status >= 400 {
            self.failed(&format_args!("status {status}"));
        } else {
            self.completed(sent, now);
        }
    }

    /// A request has ended well.
    pub fn completed(&mut self, sent: Instant, now: Instant) {
        self.errors_in_a_row = 0;
        if self.warm_up_left > 0 {
            self.warm_up_left -= 1;
            if self.warm_up_left == 0 {
                self.start_over(now);
            }
            return;
        }
        self.requests += 1;
        let nanos = (now - sent).as_nanos().try_into().unwrap_or(LONGEST_NS);
        self.latency.saturating_record(nanos);
    }

    /// A request has failed. The first reason is kept.
    pub fn failed(&mut self, error: &dyn fmt::Display) {
        self.errors += 1;
        self.errors_in_a_row += 1;
        self.first_error.get_or_insert_with(|| error.to_string());
    }

    /// So many connections were opened.
    pub fn opened(&mut self, count: u64) {
        self.connections_opened += count;
    }

    /// Ends the measurement. `client` is the name in the record.
    ///
    /// # Errors
    /// No request has succeeded after the warm-up, or the system's counters cannot be had.
    pub fn finish(self, client: &str) -> Result<Record, Box<dyn Error>> {
        let end = Snapshot::take(Instant::now())?;
        if let Some(error) = &self.first_error {
            eprintln!("{client}: {} errors, the first: {error}", self.errors);
        }
        if self.requests == 0 {
            return Err("no request was measured".into());
        }
        let requests = self.requests as f64;
        let seconds = (end.at - self.start.at).as_secs_f64();
        let quantile = |at| self.latency.value_at_quantile(at) as f64 / 1e3;
        Ok(Record {
            client: client.to_owned(),
            connections: self.connections,
            requests: self.requests,
            errors: self.errors,
            seconds,
            requests_per_second: requests / seconds,
            user_us: (end.user - self.start.user).as_secs_f64() * 1e6 / requests,
            system_us: (end.system - self.start.system).as_secs_f64() * 1e6 / requests,
            allocations: (end.allocations - self.start.allocations) as f64 / requests,
            connections_opened: (self.connections_opened > 0).then_some(self.connections_opened),
            p50_us: quantile(0.5),
            p99_us: quantile(0.99),
            p999_us: quantile(0.999),
        })
    }

    fn start_over(&mut self, now: Instant) {
        // It worked when the run began; if it does not now, the measurement goes on from there.
        if let Ok(snapshot) = Snapshot::take(now) {
            self.start = snapshot;
        }
    }
}

/// The process's counters at a moment.
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

/// User and system time spent so far.
///
/// # Errors
/// Whatever the system says.
pub fn cpu_time(who: UsageWho) -> Result<[Duration; 2], Box<dyn Error>> {
    let usage = getrusage(who)?;
    let times = [usage.user_time(), usage.system_time()];
    Ok(times.map(|time| {
        Duration::from_micros(time.tv_sec() as u64 * 1_000_000 + time.tv_usec() as u64)
    }))
}

/// What a run has measured. Times and allocations are per request.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The name of the client.
    pub client: String,
    /// Connections asked for.
    pub connections: u32,
    /// Requests answered after the warm-up.
    pub requests: u64,
    /// Requests that failed, in the warm-up too.
    pub errors: u64,
    /// How long the measurement took.
    pub seconds: f64,
    /// Answered requests per second.
    pub requests_per_second: f64,
    /// Processor time outside the kernel, in microseconds.
    pub user_us: f64,
    /// Processor time in the kernel, in microseconds.
    pub system_us: f64,
    /// Calls of the allocator.
    pub allocations: f64,
    /// Connections opened, in the warm-up too; `None` for clients that do not say.
    pub connections_opened: Option<u64>,
    /// Half of the requests were answered within these microseconds.
    pub p50_us: f64,
    /// 99 % were.
    pub p99_us: f64,
    /// 99.9 % were.
    pub p999_us: f64,
}

impl Record {
    /// Prints it: as one line of JSON, or for a reader.
    pub fn print(&self, json: bool) {
        if json {
            println!("{}", self.to_json());
        } else {
            println!("{self}");
        }
    }

    /// As JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "client": self.client,
            "connections": self.connections,
            "requests": self.requests,
            "errors": self.errors,
            "seconds": self.seconds,
            "requests_per_second": self.requests_per_second,
            "user_us": self.user_us,
            "system_us": self.system_us,
            "allocations": self.allocations,
            "connections_opened": self.connections_opened,
            "p50_us": self.p50_us,
            "p99_us": self.p99_us,
            "p999_us": self.p999_us,
        })
    }

    /// From the JSON that another process has printed; `None` if it is not that.
    #[must_use]
    pub fn from_json(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        let number = |name: &str| value[name].as_f64();
        let count = |name: &str| value[name].as_u64();
        Some(Self {
            client: value["client"].as_str()?.to_owned(),
            connections: count("connections")?.try_into().ok()?,
            requests: count("requests")?,
            errors: count("errors")?,
            seconds: number("seconds")?,
            requests_per_second: number("requests_per_second")?,
            user_us: number("user_us")?,
            system_us: number("system_us")?,
            allocations: number("allocations")?,
            connections_opened: count("connections_opened"),
            p50_us: number("p50_us")?,
            p99_us: number("p99_us")?,
            p999_us: number("p999_us")?,
        })
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            requests,
            errors,
            seconds,
            ..
        } = self;
        writeln!(
            f,
            "{}: {requests} requests, {errors} errors in {seconds:.2} s",
            self.client
        )?;
        writeln!(f, "  requests/s        {:.0}", self.requests_per_second)?;
        writeln!(f, "  user µs/req       {:.2}", self.user_us)?;
        writeln!(f, "  system µs/req     {:.2}", self.system_us)?;
        writeln!(f, "  allocations/req   {:.3}", self.allocations)?;
        match self.connections_opened {
            Some(opened) => writeln!(
                f,
                "  connections       {opened} opened for {}",
                self.connections
            )?,
            None => writeln!(f, "  connections       {}", self.connections)?,
        }
        let Self {
            p50_us,
            p99_us,
            p999_us,
            ..
        } = self;
        write!(
            f,
            "  latency µs        p50 {p50_us:.0}, p99 {p99_us:.0}, p99.9 {p999_us:.0}"
        )
    }
}

/// Errors in a row after which a run ends: there is nobody to talk to.
const HOPELESS: u32 = 1000;
/// Latencies above a minute count as a minute.
const LONGEST_NS: u64 = 60_000_000_000;
const LATENCY_DIGITS: u8 = 3;

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use clap::Parser;

    use super::{Plan, Record, Run};

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        plan: Plan,
    }

    fn plan(args: &[&str]) -> Plan {
        let url = "http://127.0.0.1:1/";
        Cli::parse_from(["test", url].iter().chain(args)).plan
    }

    #[test]
    fn only_requests_after_the_warm_up_count() {
        let mut run = Run::new(&plan(&["-n", "3", "--warm-up", "2"])).unwrap();
        let mut now = Instant::now();
        let mut begun = 0;
        while run.admit(now) {
            begun += 1;
            let sent = now;
            now += Duration::from_micros(if begun <= 2 { 1_000_000 } else { 50 });
            run.answered(200, sent, now);
        }
        assert_eq!((begun, run.requests), (5, 3));
        assert!(run.latency.max() < 51_000);
    }

    #[test]
    fn time_begins_after_the_warm_up() {
        let mut run = Run::new(&plan(&["-d", "1", "--warm-up", "1"])).unwrap();
        let begin = Instant::now();
        let later = begin + Duration::from_secs(5);
        assert!(run.admit(later));
        run.completed(begin, later);
        assert!(run.admit(later + Duration::from_millis(999)));
        assert!(!run.admit(later + Duration::from_secs(1)));
    }

    #[test]
    fn failures_alone_end_the_run() {
        let mut run = Run::new(&plan(&["-d", "60"])).unwrap();
        let now = Instant::now();
        let mut begun = 0;
        while run.admit(now) {
            begun += 1;
            run.answered(503, now, now);
        }
        assert_eq!(begun, super::HOPELESS);
        assert!(run.finish("test").is_err());
    }

    #[test]
    fn record_survives_json() {
        let record = Record {
            client: "host".to_owned(),
            connections: 64,
            requests: 3,
            errors: 1,
            seconds: 0.5,
            requests_per_second: 6.0,
            user_us: 1.5,
            system_us: 2.5,
            allocations: 0.0,
            connections_opened: None,
            p50_us: 10.0,
            p99_us: 20.0,
            p999_us: 30.0,
        };
        assert_eq!(
            Record::from_json(&record.to_json().to_string()),
            Some(record)
        );
    }
}
