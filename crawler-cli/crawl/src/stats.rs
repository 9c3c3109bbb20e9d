//! The statistics of a crawl: counts, latencies and reasons to wait, for each host. Pure. Memory is bounded for each host,
//! however long the crawl runs.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::time::{Duration, Instant};

use courser::{ErrorKind, Rate};
use serde::{Deserialize, Serialize};

/// The statistics of one crawl. After a resume, hosts and latencies cover the current run only; the other numbers cover
/// all runs.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    before: Totals,
    hosts: Vec<HostStats>,
    /// The indices of the hosts by their names.
    indices: HashMap<String, usize>,
    failed: BTreeMap<Class, u64>,
    unread: BTreeMap<Class, u64>,
    held: Duration,
    cpu: Duration,
}

impl Stats {
    /// Continues the counts of an earlier run.
    pub fn resume(&mut self, before: Totals) {
        self.failed = before.failed.iter().copied().collect();
        self.unread = before.unread.iter().copied().collect();
        self.held = before.held;
        self.before = before;
    }

    pub fn totals(&self) -> Totals {
        let classes = |counts: &BTreeMap<Class, u64>| {
            let counts = counts.iter().map(|(&class, &count)| (class, count));
            counts.collect()
        };
        Totals {
            failed: classes(&self.failed),
            unread: classes(&self.unread),
            held: self.held,
            cpu: self.cpu,
            bytes: self.bytes(),
            connections: self.connections(),
        }
    }

    /// The index of the host with this name, which is added if it is new. Beyond 10,000 hosts, all further ones are
    /// counted together.
    pub fn add_host(&mut self, name: &str) -> usize {
        let is_known = self.indices.contains_key(name);
        let name = match is_known || self.indices.len() < MOST_HOSTS {
            true => name,
            false => FURTHER_HOSTS,
        };
        if let Some(&index) = self.indices.get(name) {
            return index;
        }
        self.indices.insert(name.to_owned(), self.hosts.len());
        self.hosts.push(HostStats {
            name: name.to_owned(),
            ..HostStats::default()
        });
        self.hosts.len() - 1
    }

    /// The largest rate of requests to a host.
    pub fn note_rate(&mut self, host: usize, rate: Option<Rate>) {
        if let Some(host) = self.hosts.get_mut(host) {
            host.rate = rate;
        }
    }

    /// A request was submitted to the client.
    pub fn handle_sent(&mut self, host: usize) {
        if let Some(host) = self.hosts.get_mut(host) {
            host.requests += 1;
            host.in_flight += 1;
        }
    }

    /// A part of a response body arrived: `bytes` that the later [`Exchange`] does not contain.
    pub fn handle_bytes(&mut self, host: usize, bytes: u64) {
        if let Some(host) = self.hosts.get_mut(host) {
            host.bytes += bytes;
            host.silence = None;
        }
    }

    /// A complete response arrived.
    pub fn handle_answer(&mut self, host: usize, status: u16, exchange: &Exchange) {
        self.over(host, exchange);
        // A missing robots.txt is not a failure.
        if status >= 400 && !(exchange.robots && status < 500) {
            *self.failed.entry(Class::Status(status)).or_default() += 1;
        }
        if let Some(host) = self.hosts.get_mut(host) {
            host.answers += 1;
            host.silence = None;
            let class = usize::from(status / 100).min(host.statuses.len() - 1);
            host.statuses[class] += 1;
            host.slowest = host.slowest.max(exchange.took);
            host.total = host.total.saturating_add(exchange.took);
        }
    }

    /// A request failed without a complete response.
    pub fn handle_failure(&mut self, host: usize, class: Class, exchange: &Exchange) {
        self.over(host, exchange);
        *self.failed.entry(class).or_default() += 1;
        if let Some(host) = self.hosts.get_mut(host) {
            host.failures += 1;
            let before = host.silence.map_or(0, |(_, failures)| failures);
            host.silence = Some((class, before + 1));
        }
    }

    /// A URL was given up.
    pub fn handle_unread(&mut self, class: Class) {
        *self.unread.entry(class).or_default() += 1;
    }

    /// What is left to do at a host.
    pub fn handle_standing(&mut self, host: usize, standing: Standing) {
        if let Some(host) = self.hosts.get_mut(host) {
            if standing.is_given_up && !host.standing.is_given_up {
                host.abandoned = host.standing.left.max(standing.left);
            }
            host.standing = standing;
        }
    }

    /// For this time nothing was in flight, because no host might be asked yet.
    pub fn handle_held(&mut self, time: Duration) {
        self.held = self.held.saturating_add(time);
    }

    /// The processor time of this run so far.
    pub fn handle_cpu(&mut self, total: Duration) {
        self.cpu = self.before.cpu.saturating_add(total);
    }

    /// The hosts, in the order in which they were added.
    pub fn hosts(&self) -> &[HostStats] {
        &self.hosts
    }

    /// The mean latency of all answers; `None` without answers.
    pub fn mean(&self) -> Option<Duration> {
        let answers: u64 = self.hosts.iter().map(|host| host.answers).sum();
        let total: Duration = self.hosts.iter().map(|host| host.total).sum();
        (answers > 0).then(|| mean(total, answers))
    }

    /// The longest latency of an answer.
    pub fn slowest(&self) -> Duration {
        let slowest = self.hosts.iter().map(|host| host.slowest);
        slowest.max().unwrap_or_default()
    }

    /// Failed attempts by class, including those that a later attempt repaired.
    pub fn failed(&self) -> &BTreeMap<Class, u64> {
        &self.failed
    }

    /// URLs that were given up, by class.
    pub fn unread(&self) -> &BTreeMap<Class, u64> {
        &self.unread
    }

    /// Time in which no host might be asked, because of back-off, rates or robots.txt.
    pub fn held(&self) -> Duration {
        self.held
    }

    /// The rate that a crawl of this duration waited for: at this rate, the requests to a host need most of the time.
    pub fn held_by(&self, elapsed: Duration) -> Option<Rate> {
        let hosts = self.hosts.iter().filter(|host| host.name != FURTHER_HOSTS);
        let held = |host: &HostStats| {
            let rate = host.rate?;
            let waits = host.requests.saturating_sub(rate.burst.get()) as f64;
            let needed = rate.per.as_secs_f64() * waits / rate.count.get() as f64;
            (needed >= LEAST_HELD && needed * 2.0 >= elapsed.as_secs_f64()).then_some(rate)
        };
        hosts.filter_map(held).next()
    }

    /// Processor time of all runs.
    pub fn cpu(&self) -> Duration {
        self.cpu
    }

    /// Bytes of HTTP received.
    pub fn bytes(&self) -> u64 {
        let here = self.hosts.iter().map(|host| host.bytes);
        self.before.bytes + here.sum::<u64>()
    }

    /// Requests in flight.
    pub fn in_flight(&self) -> usize {
        self.hosts.iter().map(|host| host.in_flight).sum()
    }

    /// Requests sent in this run.
    pub fn requests(&self) -> u64 {
        self.hosts.iter().map(|host| host.requests).sum()
    }

    /// Connections opened, and requests on reused connections.
    pub fn connections(&self) -> (u64, u64) {
        let of_each = self.hosts.iter().map(|host| (host.opened, host.reused));
        of_each.fold(self.before.connections, |sum, host| {
            (sum.0 + host.0, sum.1 + host.1)
        })
    }

    /// Counts what answered and failed requests have in common.
    fn over(&mut self, host: usize, exchange: &Exchange) {
        if let Some(host) = self.hosts.get_mut(host) {
            host.in_flight = host.in_flight.saturating_sub(1);
            host.bytes += exchange.bytes;
            host.opened += u64::from(exchange.connection == Some(Connection::Opened));
            host.reused += u64::from(exchange.connection == Some(Connection::Reused));
        }
    }
}

/// The numbers that a resumed crawl continues.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Totals {
    failed: Vec<(Class, u64)>,
    unread: Vec<(Class, u64)>,
    held: Duration,
    cpu: Duration,
    bytes: u64,
    connections: (u64, u64),
}

impl Totals {
    /// Forgets the URLs that were given up: they are asked for again.
    pub fn forget_unread(&mut self) {
        self.unread.clear();
    }
}

/// One request and its result.
#[derive(Clone, Copy, Debug)]
pub struct Exchange {
    /// From the submission to the client until the end.
    pub took: Duration,
    /// Bytes of HTTP received.
    pub bytes: u64,
    /// `None` if the request had no connection.
    pub connection: Option<Connection>,
    /// Whether the request was for robots.txt.
    pub robots: bool,
}

/// The connection of a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Connection {
    /// Opened for this request.
    Opened,
    /// Opened before.
    Reused,
}

/// The statistics of one host.
#[derive(Clone, Debug, Default)]
pub struct HostStats {
    /// Scheme and authority.
    pub name: String,
    /// Requests sent.
    pub requests: u64,
    /// Requests in flight.
    pub in_flight: usize,
    /// Complete responses.
    pub answers: u64,
    /// Requests without a complete response.
    pub failures: u64,
    /// Responses by the first digit of their status; invalid statuses are counted in `[0]` and `[6]`.
    pub statuses: [u64; 7],
    /// Bytes of HTTP received.
    pub bytes: u64,
    /// Connections opened.
    pub opened: u64,
    /// Requests on reused connections.
    pub reused: u64,
    /// The last failure, and how many requests in a row have failed; `None`: the last one was answered.
    pub silence: Option<(Class, u64)>,
    /// What is left to do.
    pub standing: Standing,
    /// URLs that were left when the host was given up.
    pub abandoned: u64,
    /// The longest latency of an answer.
    pub slowest: Duration,
    total: Duration,
    /// The largest rate of requests.
    rate: Option<Rate>,
}

impl HostStats {
    /// The mean latency of the answers.
    pub fn mean(&self) -> Duration {
        mean(self.total, self.answers)
    }
}

fn mean(total: Duration, answers: u64) -> Duration {
    total / u32::try_from(answers.max(1)).unwrap_or(u32::MAX)
}

/// What is left to do at a host.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Standing {
    /// What holds the next request back; `None`: nothing but answers in flight.
    pub waiting: Option<Waiting>,
    /// URLs that were found and not asked to the end.
    pub left: u64,
    /// Whether the host was given up.
    pub is_given_up: bool,
}

/// Why nothing may be sent to a host, and until when.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Waiting {
    /// The reason.
    pub reason: Reason,
    /// The end of the wait.
    pub until: Instant,
}

/// A reason to send nothing to a host.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Reason {
    /// The crawler's own rate limit.
    Rate,
    /// robots.txt is being fetched, or asks for a delay.
    Robots,
    /// The host asked for fewer requests, or failed.
    BackOff,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rate => "rate",
            Self::Robots => "robots.txt",
            Self::BackOff => "back-off",
        })
    }
}

/// A class of failures.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub enum Class {
    /// The server answered with this status.
    Status(u16),
    /// A time limit was exceeded.
    Timeout,
    /// The host name could not be resolved.
    Dns,
    /// The host could not be reached.
    Connect,
    /// TLS failed.
    Tls,
    /// A proxy failed.
    Proxy,
    /// The connection was lost, or the response was not HTTP.
    Broken,
    /// The page was incomplete.
    CutShort,
    /// The page is not a listing.
    NotListing,
    /// A redirect that is not followed.
    Redirect,
    /// Forbidden by robots.txt.
    Robots,
    /// A limit of the crawler.
    Limit,
    /// A file could not be written, or differs from what was expected.
    Download,
    /// Anything else.
    Other,
}

impl Class {
    /// The class of an error of the engine.
    pub fn of_error(error: &courser::Error) -> Self {
        use courser::Phase;
        match error.kind() {
            ErrorKind::Timeout(_) => Self::Timeout,
            ErrorKind::Dns(_) => Self::Dns,
            ErrorKind::Tls(_) => Self::Tls,
            ErrorKind::Proxy(_) => Self::Proxy,
            ErrorKind::Limit(_) => Self::Limit,
            ErrorKind::Io(_) if error.phase() == Phase::Connect => Self::Connect,
            ErrorKind::Io(_) | ErrorKind::Peer(_) => Self::Broken,
            _ => Self::Other,
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Status(status) => return write!(f, "status {status}"),
            Self::Timeout => "timeout",
            Self::Dns => "no such host",
            Self::Connect => "connecting failed",
            Self::Tls => "TLS",
            Self::Proxy => "proxy",
            Self::Broken => "broken answer",
            Self::CutShort => "cut short",
            Self::NotListing => "no listing",
            Self::Redirect => "redirect",
            Self::Robots => "robots.txt",
            Self::Limit => "limit",
            Self::Download => "download",
            Self::Other => "other",
        })
    }
}

/// The largest number of hosts that are counted one by one.
const MOST_HOSTS: usize = 10_000;

/// The name of all hosts beyond these.
const FURTHER_HOSTS: &str = "further hosts";

/// A rate that holds a crawl for less than this, in seconds, is not worth a word.
const LEAST_HELD: f64 = 1.0;

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use super::*;

    #[test]
    fn a_rate_holds_a_crawl_if_its_requests_need_most_of_the_time() {
        for (requests, per_second, elapsed, is_held) in [
            (101, 10, 10_100, true),
            (101, 10, 19_900, true),
            // Answers were slower than the rate.
            (101, 10, 20_100, false),
            (101, 0, 10_100, false),
            // Nobody notices.
            (5, 10, 400, false),
        ] {
            let mut stats = Stats::default();
            let host = stats.add_host("http://a");
            let rate = NonZeroU64::new(per_second).map(Rate::per_second);
            stats.note_rate(host, rate);
            (0..requests).for_each(|_| stats.handle_sent(host));
            let held = stats.held_by(Duration::from_millis(elapsed));
            assert_eq!(held, rate.filter(|_| is_held), "{requests} {elapsed}");
        }
    }
}
