//! A [`Plan`] describes a run, a [`Run`] measures it, and a [`Record`] holds the results. They are the same for every
//! client, so that the results can be compared.
//!
//! There is no pause after the warm-up: clocks and counters are read when its last response arrives, and everything
//! after that counts.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::fs;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::{Duration, Instant};

use courser::Bytes;
use hdrhistogram::Histogram;
use hyper::{Method, Uri};
use nix::sys::resource::{UsageWho, getrusage};
use serde_json::Value;

use crate::{alloc, report};

/// The options that all load generators share.
#[derive(clap::Args, Clone, Debug)]
pub struct Plan {
    /// The URL to request: http, or https (not limit, host, call and pipeline)
    pub url: Target,

    /// Connections, each with one request at a time
    #[arg(short, long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    pub connections: u32,

    /// Requests on each connection at a time (limit and pipeline only)
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub depth: u32,

    /// Requests to measure, instead of a time
    #[arg(short = 'n', long, conflicts_with = "duration")]
    pub requests: Option<u64>,

    /// How long to measure: seconds, or with a unit as in 500ms, 10s, 2m, 1h
    #[arg(short, long, value_name = "TIME", default_value = "2", value_parser = duration)]
    pub duration: Duration,

    /// The method [default: GET, or POST with --data]
    #[arg(short = 'X', long, value_parser = method)]
    pub method: Option<String>,

    /// The body of each request whose method is not GET or HEAD; `@FILE` reads it from a file
    #[arg(long)]
    pub data: Option<String>,

    /// Requests per second, sent when they are due, even if earlier ones have no response yet (an open loop). Latencies
    /// count from the time at which the request was due, so they include waiting for a connection
    #[arg(short = 'R', long, value_parser = rate)]
    pub rate: Option<f64>,

    /// Requests before the measurement begins [default: 10 for each simultaneous request; none with --rate]
    #[arg(long)]
    pub warm_up: Option<u64>,

    /// The file with the certificate that https servers must have
    #[arg(long)]
    pub root: Option<PathBuf>,
}

impl Plan {
    /// The number of requests of the warm-up.
    #[must_use]
    pub fn warm_up(&self) -> u64 {
        let usual = match self.rate {
            Some(_) => 0,
            None => 10 * u64::from(self.at_once()),
        };
        self.warm_up.unwrap_or(usual)
    }

    /// The number of simultaneous requests.
    #[must_use]
    pub fn at_once(&self) -> u32 {
        self.connections.saturating_mul(self.depth)
    }

    /// The method of requests without their own method.
    #[must_use]
    pub fn method(&self) -> &str {
        match (&self.method, &self.data) {
            (Some(method), _) => method,
            (None, Some(_)) => "POST",
            (None, None) => "GET",
        }
    }

    /// The body from `--data`. All requests of a run share its memory.
    ///
    /// # Errors
    /// The body is in a file that cannot be read.
    pub fn body(&self) -> Result<Option<Bytes>, Box<dyn Error>> {
        let Some(data) = &self.data else {
            return Ok(None);
        };
        let Some(path) = data.strip_prefix('@') else {
            return Ok(Some(data.clone().into()));
        };
        let body = fs::read(path).map_err(|error| format!("{path}: {error}"))?;
        Ok(Some(body.into()))
    }
}

/// Whether requests with this method carry `--data`.
#[must_use]
pub fn takes_body(method: &str) -> bool {
    !matches!(method, "GET" | "HEAD")
}

/// Parses a method that can be measured.
///
/// # Errors
/// The text is CONNECT or not a method.
pub fn method(text: &str) -> Result<String, String> {
    match text.parse::<Method>() {
        Ok(Method::CONNECT) => Err("CONNECT opens a tunnel, and is no request to measure".into()),
        Ok(_) => Ok(text.to_owned()),
        Err(_) => Err(format!("{text:?} is no method")),
    }
}

fn rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate <= HIGHEST_RATE => Ok(rate),
        _ => Err(format!(
            "not a number of requests per second above 0 and up to {HIGHEST_RATE}"
        )),
    }
}

/// Parses a duration: a number with a unit (ms, s, m, h), or a number of seconds.
///
/// # Errors
/// The text is not a number, or the number cannot be a duration.
pub fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = UNITS
        .iter()
        .find_map(|&(name, unit)| Some((text.strip_suffix(name)?, unit)))
        .unwrap_or((text, 1.0));
    let number: f64 = number
        .parse()
        .map_err(|_| "not a number of seconds, nor one with ms, s, m or h".to_owned())?;
    Duration::try_from_secs_f64(number * unit).map_err(|error| error.to_string())
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

/// One run. The client calls [`admit`](Run::admit) before each request, and reports the end of each request.
#[derive(Debug)]
pub struct Run {
    /// Number of requests that may still start; `None` if the run ends by time.
    tickets: Option<u64>,
    duration: Duration,
    connections: u32,
    warm_up_left: u64,
    /// The counters at the end of the warm-up; before that, at its start.
    start: Snapshot,
    began: Instant,
    requests: u64,
    bytes_in: u64,
    /// The number of responses with each status. The index is the status.
    statuses: Box<[u64]>,
    errors: u64,
    /// The number of errors of each kind. Texts of errors may come from the peer, so there are at most [`MOST_KINDS`].
    errors_by_kind: BTreeMap<String, u64>,
    errors_in_a_row: u32,
    latency: Histogram<u64>,
    connections_opened: u64,
    followed: Option<Followed>,
    ended_early: Option<&'static str>,
}

impl Run {
    /// Starts the warm-up.
    ///
    /// # Errors
    /// The counters of the system cannot be read, or the histogram cannot be created.
    pub fn new(plan: &Plan) -> Result<Self, Box<dyn Error>> {
        let now = Instant::now();
        Ok(Self {
            tickets: plan.requests.map(|requests| requests + plan.warm_up()),
            duration: plan.duration,
            connections: plan.connections,
            warm_up_left: plan.warm_up(),
            start: Snapshot::take(now)?,
            began: now,
            requests: 0,
            bytes_in: 0,
            statuses: vec![0; STATUSES].into(),
            errors: 0,
            errors_by_kind: BTreeMap::new(),
            errors_in_a_row: 0,
            latency: Histogram::new_with_bounds(1, LONGEST_NS, LATENCY_DIGITS)?,
            connections_opened: 0,
            followed: None,
            ended_early: None,
        })
    }

    /// The start of the warm-up.
    #[must_use]
    pub fn began(&self) -> Instant {
        self.began
    }

    /// Whether another request may start.
    #[inline]
    pub fn admit(&mut self, now: Instant) -> bool {
        if !self.goes_on() {
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

    /// Whether the run continues: errors have not ended it.
    #[inline]
    #[must_use]
    pub fn goes_on(&self) -> bool {
        self.ended_early.is_none()
    }

    /// Counts bytes received for a request.
    #[inline]
    pub fn received(&mut self, bytes: u64) {
        if self.warm_up_left == 0 {
            self.bytes_in += bytes;
        }
    }

    /// Stores the result of the schedule.
    pub fn followed(&mut self, followed: Followed) {
        self.followed = Some(followed);
    }

    /// Counts a request that ended with `status`. A status of 400 or above is an error.
    #[inline]
    pub fn answered(&mut self, status: u16, sent: Instant, now: Instant) {
        if self.warm_up_left == 0
            && let Some(count) = self.statuses.get_mut(usize::from(status))
        {
            *count += 1;
        }
        if status >= 400 {
            self.failed(&format_args!("status {status}"));
        } else {
            self.completed(sent, now);
        }
    }

    /// Counts a successful request.
    #[inline]
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

    /// Counts a failed request.
    #[cold]
    pub fn failed(&mut self, error: &dyn fmt::Display) {
        self.errors += 1;
        self.errors_in_a_row = self.errors_in_a_row.saturating_add(1);
        if self.errors_in_a_row >= HOPELESS {
            self.ended_early.get_or_insert(ONLY_ERRORS);
        }
        let mut kind = error.to_string();
        if self.errors_by_kind.len() >= MOST_KINDS && !self.errors_by_kind.contains_key(&kind) {
            kind = OTHER_KINDS.to_owned();
        }
        *self.errors_by_kind.entry(kind).or_default() += 1;
    }

    /// Counts opened connections.
    pub fn opened(&mut self, count: u64) {
        self.connections_opened += count;
    }

    /// Ends the measurement. `client` is the name in the record.
    ///
    /// # Errors
    /// The counters of the system cannot be read.
    pub fn finish(self, client: &str) -> Result<Record, Box<dyn Error>> {
        let end = Snapshot::take(Instant::now())?;
        // Without requests, the sums are reported undivided.
        let requests = self.requests.max(1) as f64;
        let seconds = (end.at - self.start.at).as_secs_f64();
        let quantile = |at| self.latency.value_at_quantile(at) as f64 / 1e3;
        let statuses = (0..).zip(&self.statuses).filter(|(_, count)| **count > 0);
        let details = Details {
            bytes_in: (self.bytes_in > 0).then_some(self.bytes_in),
            statuses: statuses.map(|(status, count)| (status, *count)).collect(),
            errors_by_kind: self.errors_by_kind,
            followed: self.followed,
            ended_early: self.ended_early,
            latency: None,
        };
        Ok(Record {
            client: client.to_owned(),
            connections: self.connections,
            requests: self.requests,
            errors: self.errors,
            seconds,
            requests_per_second: self.requests as f64 / seconds,
            user_us: (end.user - self.start.user).as_secs_f64() * 1e6 / requests,
            system_us: (end.system - self.start.system).as_secs_f64() * 1e6 / requests,
            allocations: (end.allocations - self.start.allocations) as f64 / requests,
            connections_opened: (self.connections_opened > 0).then_some(self.connections_opened),
            p50_us: quantile(0.5),
            p90_us: quantile(0.9),
            p99_us: quantile(0.99),
            p999_us: quantile(0.999),
            details: Details {
                latency: Some(self.latency),
                ..details
            },
        })
    }

    fn start_over(&mut self, now: Instant) {
        // If this fails, which it did not at the start, the measurement keeps its old start.
        if let Ok(snapshot) = Snapshot::take(now) {
            self.start = snapshot;
        }
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

/// The results of a run. Times and allocations are per request.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The name of the client.
    pub client: String,
    /// Connections of the plan.
    pub connections: u32,
    /// Successful requests after the warm-up.
    pub requests: u64,
    /// Failed requests, including those of the warm-up.
    pub errors: u64,
    /// Duration of the measurement.
    pub seconds: f64,
    /// Successful requests per second.
    pub requests_per_second: f64,
    /// Processor time outside the kernel, in microseconds.
    pub user_us: f64,
    /// Processor time in the kernel, in microseconds.
    pub system_us: f64,
    /// Calls of the allocator.
    pub allocations: f64,
    /// Opened connections, including those of the warm-up; `None` for clients that do not report them.
    pub connections_opened: Option<u64>,
    /// The median latency, in microseconds.
    pub p50_us: f64,
    /// The latency that 90 % of the requests did not exceed.
    pub p90_us: f64,
    /// The same for 99 %.
    pub p99_us: f64,
    /// The same for 99.9 %.
    pub p999_us: f64,
    /// Details that only the measuring process has; its JSON contains a part of them.
    pub details: Details,
}

/// Further results of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Details {
    /// Received bytes of HTTP; `None` for clients that do not report them.
    pub bytes_in: Option<u64>,
    /// The number of responses after the warm-up by status; empty for clients that do not report it.
    pub statuses: BTreeMap<u16, u64>,
    /// The number of errors by kind, including those of the warm-up.
    pub errors_by_kind: BTreeMap<String, u64>,
    /// The result of the schedule of an open loop.
    pub followed: Option<Followed>,
    /// Why the run ended early, if it did.
    pub ended_early: Option<&'static str>,
    /// All latencies, in nanoseconds.
    pub latency: Option<Histogram<u64>>,
}

/// The result of a schedule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Followed {
    /// Requests per second.
    pub rate: f64,
    /// Sent requests, including those of the warm-up.
    pub sent: u64,
    /// Requests that were due before the end and were not sent, because all connections were in use.
    pub unsent: u64,
    /// The largest number of requests that were due and not sent at the same time.
    pub most_behind: u64,
}

impl Record {
    /// Prints the record as one line of JSON.
    pub fn print(&self) {
        println!("{}", report::json(self));
    }

    /// Reads a record from the JSON of another process. `None` if the text is not a record.
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
            p90_us: number("p90_us")?,
            p99_us: number("p99_us")?,
            p999_us: number("p999_us")?,
            details: Details::default(),
        })
    }
}

/// Longest wait for a response before the end of the time is checked.
pub const LOOK: Duration = Duration::from_millis(100);
/// Number of consecutive errors after which a run ends.
const HOPELESS: u32 = 1000;
const ONLY_ERRORS: &str = "too many errors in a row";
/// Largest number of kinds of errors that are counted separately.
const MOST_KINDS: usize = 32;
const OTHER_KINDS: &str = "others";
/// Number of possible statuses: a status of HTTP has three digits.
const STATUSES: usize = 1000;
/// Units of time in seconds. Longer names first, because `ms` ends in `s`.
const UNITS: [(&str, f64); 4] = [("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
/// Highest latency in the histogram: larger ones, which occur far behind a schedule, count as an hour.
const LONGEST_NS: u64 = 3_600_000_000_000;
const LATENCY_DIGITS: u8 = 3;
/// Highest rate: one request in each nanosecond, the unit of time.
const HIGHEST_RATE: f64 = 1e9;

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use clap::Parser;

    use crate::report;

    use super::{Details, Plan, Record, Run, duration};

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
        let record = run.finish("test").unwrap();
        assert_eq!((record.requests, record.errors), (0, begun.into()));
        let Details {
            errors_by_kind,
            statuses,
            ..
        } = record.details;
        assert_eq!(
            errors_by_kind,
            [("status 503".to_owned(), begun.into())].into()
        );
        assert!(statuses.is_empty(), "in the warm-up: {statuses:?}");
    }

    #[test]
    fn kinds_of_errors_are_bounded() {
        let mut run = Run::new(&plan(&[])).unwrap();
        for round in 0..2 {
            for number in 0..100 {
                run.failed(&format_args!("reason {number:02}"));
            }
            assert_eq!(run.errors_by_kind.len(), super::MOST_KINDS + 1, "{round}");
        }
        assert_eq!(run.errors_by_kind["reason 31"], 2);
        assert_eq!(run.errors_by_kind["others"], 2 * 68);
    }

    #[test]
    fn durations_have_units() {
        let ms = |text| duration(text).map(|duration| duration.as_millis());
        let read = ["2", "1.5", "500ms", "10s", "2m", "1h"].map(ms);
        assert_eq!(read, [2000, 1500, 500, 10_000, 120_000, 3_600_000].map(Ok));
        for wrong in ["", "s", "1d", "-1", "1 2", "inf"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
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
            p90_us: 15.0,
            p99_us: 20.0,
            p999_us: 30.0,
            details: Details::default(),
        };
        assert_eq!(
            Record::from_json(&report::json(&record).to_string()),
            Some(record)
        );
    }
}
