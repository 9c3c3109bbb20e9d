//! What a crawl costs, and what it waits for: counts, latencies and reasons, of each host and over time. Pure: the
//! driver tells what happens and when. However long the crawl, it all stays within fixed bounds for each host.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use courser::ErrorKind;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// The figures of one crawl. Of one that was gone on with, hosts, latencies and what happened when are of the last run
/// alone; the rest is of all.
#[derive(Clone, Debug)]
pub struct Stats {
    began: Instant,
    before: Totals,
    hosts: Vec<HostStats>,
    latency: Latency,
    timeline: Timeline,
    failed: BTreeMap<Class, u64>,
    unread: BTreeMap<Class, u64>,
    held: Duration,
    cpu: Duration,
}

impl Stats {
    /// Of a crawl that begins at `now`.
    pub fn new(now: Instant) -> Self {
        Self {
            began: now,
            before: Totals::default(),
            hosts: Vec::new(),
            latency: Latency::new(),
            timeline: Timeline::new(),
            failed: BTreeMap::new(),
            unread: BTreeMap::new(),
            held: Duration::ZERO,
            cpu: Duration::ZERO,
        }
    }

    /// Goes on where a crawl with these totals was cut off.
    pub(crate) fn go_on(&mut self, before: Totals) {
        self.failed = before.failed.iter().copied().collect();
        self.unread = before.unread.iter().copied().collect();
        self.held = before.held;
        self.before = before;
    }

    pub(crate) fn totals(&self) -> Totals {
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

    /// Adds a host, and tells its number: hosts are counted from 0 on.
    pub fn add_host(&mut self, name: &str) -> usize {
        let latency = (self.hosts.len() < HOSTS_WITH_LATENCY).then(Latency::new);
        self.hosts.push(HostStats::new(name, latency));
        self.hosts.len() - 1
    }

    /// A request was handed to the client.
    pub fn handle_sent(&mut self, host: usize) {
        if let Some(host) = self.hosts.get_mut(host) {
            host.requests += 1;
            host.in_flight += 1;
        }
    }

    /// So many bytes of a response came that is not whole yet. Those of an [`Exchange`] are the others.
    pub fn handle_bytes(&mut self, now: Instant, host: usize, bytes: u64) {
        self.slot(now).bytes += bytes;
        if let Some(host) = self.hosts.get_mut(host) {
            host.bytes += bytes;
        }
    }

    /// A response came whole.
    pub fn handle_answer(&mut self, now: Instant, host: usize, status: u16, exchange: &Exchange) {
        self.over(host, exchange);
        self.latency.record(exchange.took);
        // To have no robots.txt is no failure.
        let failed = status >= 400 && !(exchange.robots && status < 500);
        if failed {
            *self.failed.entry(Class::Status(status)).or_default() += 1;
        }
        let slot = self.slot(now);
        slot.add(exchange);
        slot.failed += u64::from(failed);
        if let Some(host) = self.hosts.get_mut(host) {
            host.answers += 1;
            let class = usize::from(status / 100).min(host.statuses.len() - 1);
            host.statuses[class] += 1;
            host.slowest = host.slowest.max(exchange.took);
            host.total = host.total.saturating_add(exchange.took);
            if let Some(latency) = &mut host.latency {
                latency.record(exchange.took);
            }
        }
    }

    /// A request failed without a whole response.
    pub fn handle_failure(&mut self, now: Instant, host: usize, class: Class, exchange: &Exchange) {
        self.over(host, exchange);
        *self.failed.entry(class).or_default() += 1;
        let slot = self.slot(now);
        slot.failed += 1;
        if let Some(host) = self.hosts.get_mut(host) {
            host.failures += 1;
        }
    }

    /// A URL was given up.
    pub fn handle_unread(&mut self, class: Class) {
        *self.unread.entry(class).or_default() += 1;
    }

    /// What a host's next request waits for, and until when; `None` if it waits for nothing but answers.
    pub fn handle_waiting(&mut self, host: usize, waiting: Option<Waiting>) {
        if let Some(host) = self.hosts.get_mut(host) {
            host.waiting = waiting;
        }
    }

    /// The crawl had nothing in flight for so long, because no host could be asked yet.
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

    /// How long all answers took.
    pub fn latency(&self) -> &Latency {
        &self.latency
    }

    /// What happened when.
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// Attempts that failed, those among them that a later attempt made good.
    pub fn failed(&self) -> &BTreeMap<Class, u64> {
        &self.failed
    }

    /// URLs that were given up.
    pub fn unread(&self) -> &BTreeMap<Class, u64> {
        &self.unread
    }

    /// Time in which no host could be asked: back-off, rates, robots.txt.
    pub fn held(&self) -> Duration {
        self.held
    }

    /// Processor time of the crawl.
    pub fn cpu(&self) -> Duration {
        self.cpu
    }

    /// Bytes of HTTP received.
    pub fn bytes(&self) -> u64 {
        let here = self.hosts.iter().map(|host| host.bytes);
        self.before.bytes + here.sum::<u64>()
    }

    /// Requests under way.
    pub fn in_flight(&self) -> usize {
        self.hosts.iter().map(|host| host.in_flight).sum()
    }

    /// Connections opened, and requests that ran on one that was open before.
    pub fn connections(&self) -> (u64, u64) {
        let of_each = self.hosts.iter().map(|host| (host.opened, host.reused));
        of_each.fold(self.before.connections, |sum, host| {
            (sum.0 + host.0, sum.1 + host.1)
        })
    }

    fn slot(&mut self, now: Instant) -> &mut Slot {
        let at = now.saturating_duration_since(self.began);
        self.timeline.slot(at)
    }

    /// What an answered or failed request has in common.
    fn over(&mut self, host: usize, exchange: &Exchange) {
        if let Some(host) = self.hosts.get_mut(host) {
            host.in_flight = host.in_flight.saturating_sub(1);
            host.bytes += exchange.bytes;
            host.opened += u64::from(exchange.connection == Some(Connection::Opened));
            host.reused += u64::from(exchange.connection == Some(Connection::Reused));
        }
    }
}

/// What a crawl that is gone on with takes over from the runs before.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Totals {
    failed: Vec<(Class, u64)>,
    unread: Vec<(Class, u64)>,
    held: Duration,
    cpu: Duration,
    bytes: u64,
    connections: (u64, u64),
}

/// One request and what came of it.
#[derive(Clone, Copy, Debug)]
pub struct Exchange {
    /// From the client's taking it up to its end.
    pub took: Duration,
    /// Bytes of HTTP received.
    pub bytes: u64,
    /// `None` if it had none.
    pub connection: Option<Connection>,
    /// It was for robots.txt.
    pub robots: bool,
}

/// The connection of a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Connection {
    /// Opened for it.
    Opened,
    /// Open before.
    Reused,
}

/// The figures of one host.
#[derive(Clone, Debug)]
pub struct HostStats {
    /// Its scheme and authority.
    pub name: String,
    /// Requests sent.
    pub requests: u64,
    /// Requests under way.
    pub in_flight: usize,
    /// Whole responses.
    pub answers: u64,
    /// Requests that ended without one.
    pub failures: u64,
    /// Responses by the first digit of their status; what no standard knows is in `[0]` and `[6]`.
    pub statuses: [u64; 7],
    /// Bytes of HTTP received.
    pub bytes: u64,
    /// Connections opened.
    pub opened: u64,
    /// Requests on a connection that was open before.
    pub reused: u64,
    /// What its next request waits for.
    pub waiting: Option<Waiting>,
    /// The longest answer.
    pub slowest: Duration,
    total: Duration,
    /// Only of the first [`HOSTS_WITH_LATENCY`].
    latency: Option<Latency>,
}

impl HostStats {
    fn new(name: &str, latency: Option<Latency>) -> Self {
        Self {
            name: name.to_owned(),
            requests: 0,
            in_flight: 0,
            answers: 0,
            failures: 0,
            statuses: [0; 7],
            bytes: 0,
            opened: 0,
            reused: 0,
            waiting: None,
            slowest: Duration::ZERO,
            total: Duration::ZERO,
            latency,
        }
    }

    /// The mean of its answers.
    pub fn mean(&self) -> Duration {
        let answers = u32::try_from(self.answers.max(1)).unwrap_or(u32::MAX);
        self.total / answers
    }

    /// How long its answers took; `None` of a host that came after a great many others.
    pub fn latency(&self) -> Option<&Latency> {
        self.latency.as_ref()
    }
}

/// Why nothing is sent to a host.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Waiting {
    /// Why.
    pub reason: Reason,
    /// Until when.
    pub until: Instant,
}

/// Why nothing is sent to a host.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Reason {
    /// Our own limit on requests or bytes in a time.
    Rate,
    /// robots.txt: it is being fetched, or asks for a delay.
    Robots,
    /// The host asked for less, or failed.
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

/// What kind of failure it was.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub enum Class {
    /// The server answered with this status.
    Status(u16),
    /// Time ran out.
    Timeout,
    /// No such host.
    Dns,
    /// The host could not be reached.
    Connect,
    /// TLS failed.
    Tls,
    /// A proxy failed.
    Proxy,
    /// The connection was lost, or what came was not HTTP.
    Broken,
    /// The page ended too early.
    CutShort,
    /// The page is no listing.
    NotListing,
    /// A redirect that is not followed.
    Redirect,
    /// robots.txt does not want it.
    Robots,
    /// A limit of ours.
    Limit,
    /// A file could not be written, or was another one than expected.
    Download,
    /// Anything else.
    Other,
}

impl Class {
    /// What a request failed for.
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

/// Durations, of which the share below each is known to two digits.
#[derive(Clone, Debug)]
pub struct Latency {
    /// In microseconds.
    histogram: Histogram<u32>,
    max: u64,
}

impl Latency {
    fn new() -> Self {
        Self {
            histogram: Histogram::new(2).expect("two digits are allowed"),
            max: 0,
        }
    }

    fn record(&mut self, time: Duration) {
        let micros = micros(time);
        self.max = self.max.max(micros);
        // It grows with its values; only a number beyond all memory would not fit.
        let _ = self.histogram.record(micros);
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// What a share of `q` (0 to 1) does not exceed; zero if there are none.
    pub fn quantile(&self, q: f64) -> Duration {
        Duration::from_micros(self.histogram.value_at_quantile(q).min(self.max))
    }

    /// The greatest.
    pub fn max(&self) -> Duration {
        Duration::from_micros(self.max)
    }
}

/// The crawl in slots of equal length. When there would be too many, each two become one.
#[derive(Clone, Debug)]
pub struct Timeline {
    width: Duration,
    slots: Vec<Slot>,
}

impl Timeline {
    fn new() -> Self {
        Self {
            width: FIRST_WIDTH,
            slots: Vec::new(),
        }
    }

    /// How long a slot is.
    pub fn width(&self) -> Duration {
        self.width
    }

    /// The slots up to the last in which something happened.
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// The slot of the moment so long after the beginning.
    fn slot(&mut self, at: Duration) -> &mut Slot {
        let mut index = at.as_micros() / self.width.as_micros().max(1);
        while index >= SLOTS as u128 {
            let halves = std::mem::take(&mut self.slots);
            self.slots = halves.chunks(2).map(Slot::sum).collect();
            self.width *= 2;
            index = at.as_micros() / self.width.as_micros();
        }
        // Below SLOTS, as the loop has seen to it.
        let index = index as usize;
        if self.slots.len() <= index {
            self.slots.resize_with(index + 1, Slot::new);
        }
        &mut self.slots[index]
    }
}

/// What happened in a slot of time.
#[derive(Clone, Debug)]
pub struct Slot {
    /// Whole responses.
    pub answers: u64,
    /// Those with a status of 400 or more, and requests without one.
    pub failed: u64,
    /// Bytes received.
    pub bytes: u64,
    /// The longest answer.
    pub slowest: Duration,
    /// Answers by the magnitude of their latency, four to each doubling.
    magnitudes: [u32; MAGNITUDES],
}

impl Slot {
    fn new() -> Self {
        Self {
            answers: 0,
            failed: 0,
            bytes: 0,
            slowest: Duration::ZERO,
            magnitudes: [0; MAGNITUDES],
        }
    }

    fn add(&mut self, exchange: &Exchange) {
        self.answers += 1;
        self.bytes += exchange.bytes;
        self.slowest = self.slowest.max(exchange.took);
        let count = &mut self.magnitudes[magnitude(micros(exchange.took))];
        *count = count.saturating_add(1);
    }

    fn sum(slots: &[Self]) -> Self {
        let mut sum = Self::new();
        for slot in slots {
            sum.answers += slot.answers;
            sum.failed += slot.failed;
            sum.bytes += slot.bytes;
            sum.slowest = sum.slowest.max(slot.slowest);
            for (count, more) in sum.magnitudes.iter_mut().zip(slot.magnitudes) {
                *count = count.saturating_add(more);
            }
        }
        sum
    }

    /// What a share of `q` (0 to 1) of the answers does not exceed, to about a fifth; `None` if there are none.
    pub fn quantile(&self, q: f64) -> Option<Duration> {
        let all: u64 = self.magnitudes.iter().map(|&count| u64::from(count)).sum();
        let wanted = ((all as f64 * q).ceil() as u64).max(1);
        let mut sum = 0;
        let at = self.magnitudes.iter().position(|&count| {
            sum += u64::from(count);
            sum >= wanted
        })?;
        Some(Duration::from_micros(largest_of(at)).min(self.slowest))
    }
}

/// Which quarter of a doubling it is in.
fn magnitude(micros: u64) -> usize {
    let micros = micros.max(4);
    let doubling = micros.ilog2();
    let quarter = (micros >> (doubling - 2)) & 3;
    ((doubling as usize - 2) * 4 + quarter as usize).min(MAGNITUDES - 1)
}

/// The largest number of a magnitude.
fn largest_of(magnitude: usize) -> u64 {
    let doubling = magnitude / 4;
    let quarter = magnitude as u64 % 4;
    ((5 + quarter) << doubling) - 1
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Each has a histogram of some 10 KiB.
const HOSTS_WITH_LATENCY: usize = 256;

/// Slots of time, of some 500 bytes each.
const SLOTS: usize = 240;

const FIRST_WIDTH: Duration = Duration::from_millis(10);

/// Up to more than two minutes.
const MAGNITUDES: usize = 104;

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(took: u64, connection: Connection) -> Exchange {
        Exchange {
            took: Duration::from_micros(took),
            bytes: 100,
            connection: Some(connection),
            robots: false,
        }
    }

    #[test]
    fn each_host_has_its_figures() {
        let now = Instant::now();
        let mut stats = Stats::new(now);
        let (a, b) = (stats.add_host("http://a"), stats.add_host("http://b"));
        for host in [a, a, b] {
            stats.handle_sent(host);
        }
        assert_eq!(stats.in_flight(), 3);
        stats.handle_answer(now, a, 200, &exchange(1000, Connection::Opened));
        stats.handle_answer(now, a, 503, &exchange(3000, Connection::Reused));
        let robots = Exchange {
            robots: true,
            bytes: 0,
            ..exchange(2000, Connection::Reused)
        };
        stats.handle_answer(now, a, 404, &robots);
        let none = Exchange {
            connection: None,
            bytes: 0,
            ..exchange(9, Connection::Opened)
        };
        stats.handle_failure(now, b, Class::Connect, &none);
        assert_eq!((stats.in_flight(), stats.bytes()), (0, 200));
        assert_eq!(stats.connections(), (1, 2));
        let [a, b] = stats.hosts() else {
            panic!("two hosts")
        };
        assert_eq!((a.statuses[2], a.statuses[5], a.answers), (1, 1, 3));
        assert_eq!((b.failures, b.answers, b.requests), (1, 0, 1));
        assert_eq!(a.mean(), Duration::from_millis(2));
        assert_eq!(
            stats.failed().iter().collect::<Vec<_>>(),
            [(&Class::Status(503), &1), (&Class::Connect, &1)]
        );
    }

    #[test]
    fn quantiles_have_two_digits() {
        let mut latency = Latency::new();
        assert_eq!(latency.quantile(0.5), Duration::ZERO);
        for ms in 1..=1000 {
            latency.record(Duration::from_millis(ms));
        }
        for (q, ms) in [(0.5, 500), (0.95, 950), (0.99, 990), (1.0, 1000)] {
            let micros = latency.quantile(q).as_micros();
            let expected = ms * 1000;
            assert!(micros.abs_diff(expected) * 100 <= expected, "{q}: {micros}");
        }
    }

    #[test]
    fn a_long_crawl_has_no_more_slots_than_a_short_one() {
        let began = Instant::now();
        let mut stats = Stats::new(began);
        let host = stats.add_host("http://a");
        for second in 0..5000 {
            let now = began + Duration::from_secs(second);
            stats.handle_answer(now, host, 200, &exchange(1 << 10, Connection::Reused));
        }
        let timeline = stats.timeline();
        assert!(timeline.slots().len() <= SLOTS);
        let answers: u64 = timeline.slots().iter().map(|slot| slot.answers).sum();
        assert_eq!(answers, 5000);
        let covered = timeline.width() * timeline.slots().len() as u32;
        assert!(covered >= Duration::from_secs(5000));
        assert_eq!(
            timeline.slots()[3].quantile(0.5),
            Some(Duration::from_micros(1 << 10))
        );
        assert_eq!(Slot::new().quantile(0.5), None);
    }

    #[test]
    fn magnitudes_hold_their_numbers() {
        for micros in [4, 5, 7, 8, 100, 1000, 1023, 1024, 1_000_000, 100_000_000] {
            let at = magnitude(micros);
            assert!(micros <= largest_of(at), "{micros}");
            assert!(at == 0 || micros > largest_of(at - 1), "{micros}");
        }
        assert_eq!(magnitude(u64::MAX), MAGNITUDES - 1);
    }
}
