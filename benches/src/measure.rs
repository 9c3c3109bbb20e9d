//! What a run is ([`Plan`]), what is measured while it runs ([`Run`]), and what comes out ([`Record`]): the same for
//! every client, so that their numbers can be compared.
//!
//! A run begins with a warm-up, and does not stop after it. The clocks and counters are read when the last answer of the
//! warm-up has come, and everything after it counts.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::fs;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use hyper::{Method, Uri};
use nix::sys::resource::{UsageWho, getrusage};
use serde_json::Value;

use crate::{alloc, interrupt, report};

/// The options that all load generators share.
#[derive(clap::Args, Clone, Debug)]
pub struct Plan {
    /// What to ask for: an http URL, or an https one (not limit, host, call and pipeline)
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

    /// Requests per second, sent when they are due whether or not those before them are answered (an open loop). A
    /// latency is counted from when its request was due, so what waits for a connection is in it
    #[arg(short = 'R', long, value_parser = rate)]
    pub rate: Option<f64>,

    /// Requests before the measurement begins [default: 10 for each at a time; none with --rate]
    #[arg(long)]
    pub warm_up: Option<u64>,

    /// The file with the certificate that https URLs must have
    #[arg(long)]
    pub root: Option<PathBuf>,

    /// Whether to tell on stderr how far the run is.
    #[arg(skip)]
    pub progress: bool,

    /// Whether the run goes on when there are only errors.
    #[arg(skip)]
    pub persistent: bool,
}

impl Plan {
    /// Requests that are made before those that count.
    #[must_use]
    pub fn warm_up(&self) -> u64 {
        let usual = match self.rate {
            Some(_) => 0,
            None => 10 * u64::from(self.at_once()),
        };
        self.warm_up.unwrap_or(usual)
    }

    /// Requests at a time.
    #[must_use]
    pub fn at_once(&self) -> u32 {
        self.connections.saturating_mul(self.depth)
    }

    /// The method of each request that names none itself.
    #[must_use]
    pub fn method(&self) -> &str {
        match (&self.method, &self.data) {
            (Some(method), _) => method,
            (None, Some(_)) => "POST",
            (None, None) => "GET",
        }
    }

    /// The body of requests that have one.
    ///
    /// # Errors
    /// It is in a file that cannot be read.
    pub fn body(&self) -> Result<Option<Vec<u8>>, Box<dyn Error>> {
        let Some(data) = &self.data else {
            return Ok(None);
        };
        let Some(path) = data.strip_prefix('@') else {
            return Ok(Some(data.as_bytes().to_vec()));
        };
        let body = fs::read(path).map_err(|error| format!("{path}: {error}"))?;
        Ok(Some(body))
    }
}

/// Whether `--data` goes out with requests of that method.
#[must_use]
pub fn takes_body(method: &str) -> bool {
    !matches!(method, "GET" | "HEAD")
}

/// A method that can be measured.
///
/// # Errors
/// CONNECT, or no method at all.
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

/// A length of time from a number with a unit (ms, s, m, h), or of seconds.
///
/// # Errors
/// Not a number, or none that is a length of time.
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

impl Target {
    /// What stands before `://`.
    #[must_use]
    pub fn scheme(&self) -> &str {
        self.url.split(':').next().unwrap_or_default()
    }

    /// Another URL of the same host.
    #[must_use]
    pub fn with_path(&self, path: &str) -> String {
        format!("{}://{}{path}", self.scheme(), self.authority)
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
    began: Instant,
    requests: u64,
    bytes_in: u64,
    /// By status, from 0 on.
    statuses: Box<[u64]>,
    errors: u64,
    /// So often each. What an error says may depend on the peer, so there are [`MOST_KINDS`] at most.
    errors_by_kind: BTreeMap<String, u64>,
    errors_in_a_row: u32,
    most_errors_in_a_row: u32,
    latency: Histogram<u64>,
    connections_opened: u64,
    followed: Option<Followed>,
    ended_early: Option<&'static str>,
    /// When it is looked again whether the user has enough, which is too dear for each request.
    next_look: Instant,
    progress: Option<Progress>,
}

impl Run {
    /// Begins the warm-up.
    ///
    /// # Errors
    /// The histogram or the system's counters cannot be had.
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
            most_errors_in_a_row: if plan.persistent { u32::MAX } else { HOPELESS },
            latency: Histogram::new_with_bounds(1, LONGEST_NS, LATENCY_DIGITS)?,
            connections_opened: 0,
            followed: None,
            ended_early: None,
            next_look: now,
            progress: plan.progress.then(Progress::default),
        })
    }

    /// When the warm-up began.
    #[must_use]
    pub fn began(&self) -> Instant {
        self.began
    }

    /// Whether another request shall begin.
    #[inline]
    pub fn admit(&mut self, now: Instant) -> bool {
        if !self.goes_on(now) {
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

    /// Whether nothing has put an end to the run: neither the user nor errors.
    #[inline]
    pub fn goes_on(&mut self, now: Instant) -> bool {
        if now >= self.next_look {
            self.look(now);
        }
        self.ended_early.is_none()
    }

    /// Whether the user has enough, so that calls in flight need not be waited for.
    pub fn is_interrupted(&mut self) -> bool {
        if interrupt::noticed() {
            self.ended_early.get_or_insert(INTERRUPTED);
        }
        self.ended_early == Some(INTERRUPTED)
    }

    #[cold]
    fn look(&mut self, now: Instant) {
        self.next_look = now + LOOK;
        self.is_interrupted();
        if let Some(progress) = &mut self.progress {
            progress.tell(now, now - self.start.at, self.requests, self.errors);
        }
    }

    /// Counts the bytes that a request has brought.
    #[inline]
    pub fn received(&mut self, bytes: u64) {
        if self.warm_up_left == 0 {
            self.bytes_in += bytes;
        }
    }

    /// The run has followed a schedule.
    pub fn followed(&mut self, followed: Followed) {
        self.followed = Some(followed);
    }

    /// A request has ended with `status`. One of 400 and above is an error: it is not what was asked for.
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

    /// A request has ended well.
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

    /// A request has failed.
    #[cold]
    pub fn failed(&mut self, error: &dyn fmt::Display) {
        self.errors += 1;
        self.errors_in_a_row = self.errors_in_a_row.saturating_add(1);
        if self.errors_in_a_row >= self.most_errors_in_a_row {
            self.ended_early.get_or_insert(ONLY_ERRORS);
        }
        let mut kind = error.to_string();
        if self.errors_by_kind.len() >= MOST_KINDS && !self.errors_by_kind.contains_key(&kind) {
            kind = OTHER_KINDS.to_owned();
        }
        *self.errors_by_kind.entry(kind).or_default() += 1;
    }

    /// Counts connections that were opened.
    pub fn opened(&mut self, count: u64) {
        self.connections_opened += count;
    }

    /// Ends the measurement. `client` is the name in the record.
    ///
    /// # Errors
    /// The system's counters cannot be had.
    pub fn finish(mut self, client: &str) -> Result<Record, Box<dyn Error>> {
        let end = Snapshot::take(Instant::now())?;
        if let Some(progress) = &mut self.progress {
            progress.clear();
        }
        // Without any, sums are all that there is to tell.
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
    /// 90 % were.
    pub p90_us: f64,
    /// 99 % were.
    pub p99_us: f64,
    /// 99.9 % were.
    pub p999_us: f64,
    /// What only the process itself knows that has measured; parts of it are in its JSON.
    pub details: Details,
}

/// What a run has measured besides numbers to compare.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Details {
    /// Bytes of HTTP received; `None` for clients that do not say.
    pub bytes_in: Option<u64>,
    /// Answers after the warm-up by status; none for clients that do not say.
    pub statuses: BTreeMap<u16, u64>,
    /// Errors, in the warm-up too, by what happened.
    pub errors_by_kind: BTreeMap<String, u64>,
    /// What became of the schedule, in an open loop.
    pub followed: Option<Followed>,
    /// Why it ended before it was to.
    pub ended_early: Option<&'static str>,
    /// All latencies, in nanoseconds.
    pub latency: Option<Histogram<u64>>,
}

/// What became of a schedule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Followed {
    /// Requests per second after the ramp.
    pub rate: f64,
    /// How long the rate rose.
    pub ramp: Duration,
    /// Requests sent, in the warm-up too.
    pub sent: u64,
    /// Requests that were due before the end and were not sent, since all connections were in use.
    pub unsent: u64,
    /// The most that were due and not sent at one time.
    pub most_behind: u64,
}

impl Record {
    /// Prints it: as one line of JSON, or for a reader.
    pub fn print(&self, json: bool) {
        if json {
            println!("{}", report::json(self));
        } else {
            print!("{}", report::Text(self));
        }
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
            p90_us: number("p90_us")?,
            p99_us: number("p99_us")?,
            p999_us: number("p999_us")?,
            details: Details::default(),
        })
    }
}

/// A line on stderr that says how far a run is, written over itself.
#[derive(Debug, Default)]
struct Progress {
    /// When it was written last, and the requests then.
    last: Option<(Instant, u64)>,
}

impl Progress {
    fn tell(&mut self, now: Instant, elapsed: Duration, requests: u64, errors: u64) {
        let (at, before) = *self.last.get_or_insert((now, requests));
        let since = now - at;
        if since < PROGRESS {
            return;
        }
        let rate = (requests.saturating_sub(before)) as f64 / since.as_secs_f64();
        eprint!(
            "\r\x1b[K{:.0} s: {requests} requests, {rate:.0}/s, {errors} errors",
            elapsed.as_secs_f64()
        );
        self.last = Some((now, requests));
    }

    fn clear(&mut self) {
        if self.last.take().is_some() {
            eprint!("\r\x1b[K");
        }
    }
}

/// How often it is looked whether the user has enough.
pub const LOOK: Duration = Duration::from_millis(100);
/// How often the progress is told.
const PROGRESS: Duration = Duration::from_millis(500);
/// Errors in a row after which a run ends: the server is gone.
const HOPELESS: u32 = 1000;
const INTERRUPTED: &str = "interrupted";
const ONLY_ERRORS: &str = "too many errors in a row";
/// Kinds of errors that are counted apart.
const MOST_KINDS: usize = 32;
const OTHER_KINDS: &str = "others";
/// HTTP's have three digits.
const STATUSES: usize = 1000;
/// Longer ones first: `ms` ends in `s`.
const UNITS: [(&str, f64); 4] = [("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
/// Latencies above an hour count as an hour: far behind a schedule they are long.
const LONGEST_NS: u64 = 3_600_000_000_000;
const LATENCY_DIGITS: u8 = 3;
/// One in each nanosecond, which is what times are counted in.
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
    fn allowed_errors_do_not_end_the_run() {
        let plan = Plan {
            persistent: true,
            ..plan(&["-d", "60"])
        };
        let mut run = Run::new(&plan).unwrap();
        let now = Instant::now();
        for _ in 0..2 * super::HOPELESS {
            assert!(run.admit(now));
            run.answered(503, now, now);
        }
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
