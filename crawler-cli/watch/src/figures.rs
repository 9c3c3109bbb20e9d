//! What the service counts. The thread that asks writes, others read: plain atomics, no locks.
//!
//! Metrics are made of these numbers; their names are those of the metrics without the prefix.

mod histogram;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use verdict::life::State;
use verdict::{Class, Verdict};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge;

pub use histogram::{Histogram, quantile};

/// A number that is set.
pub type Gauge = gauge::Gauge<u64, AtomicU64>;

/// A share, from 0 to 1.
pub type Ratio = gauge::Gauge<f64, AtomicU64>;

/// Everything that is counted about checks.
///
/// ```
/// use verdict::{Cause, Class, Verdict};
/// use watch::figures::{Code, Figures};
///
/// let figures = Figures::default();
/// figures.results.note(Verdict::Failed(Cause::Status410), Some(410));
/// let all: Vec<_> = figures.results.iter().collect();
/// assert_eq!(all, [(Class::Negative, Code::Status(410), 1)]);
/// ```
#[derive(Debug, Default)]
pub struct Figures {
    /// `check_results_total{class,code}`.
    pub results: Results,
    /// What is asked.
    pub requests: Requests,
    /// Changes of state.
    pub changes: Changes,
    /// How far the work is behind.
    pub backlog: Backlog,
    /// The guards.
    pub guards: GuardFigures,
    /// Reconciling.
    pub cycles: CycleFigures,
    /// What the store is asked by the thread that asks the hosts.
    pub keeping: KeepingFigures,
    /// When the loop of the thread that asks ran last: milliseconds since 1970.
    pub ticked_at: Gauge,
}

/// How often each verdict was given.
pub struct Results {
    counts: Box<[[AtomicU64; CODES]; Class::ALL.len()]>,
}

/// The label `code`: what the last answer said.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Code {
    /// No answer.
    None,
    /// Any status from 200 to 299.
    Good,
    /// Another status.
    Status(u16),
    /// A number beyond 599.
    Other,
}

impl Code {
    /// The code of a status.
    pub fn of(status: Option<u16>) -> Self {
        match status {
            None => Self::None,
            Some(200..=299) => Self::Good,
            Some(status) if usize::from(status) < CODES - 1 => Self::Status(status),
            Some(_) => Self::Other,
        }
    }

    fn index(self) -> usize {
        match self {
            Self::None => 0,
            Self::Good => 200,
            Self::Status(status) => usize::from(status),
            Self::Other => CODES - 1,
        }
    }

    fn at(index: usize) -> Self {
        match index {
            0 => Self::None,
            200 => Self::Good,
            index if index == CODES - 1 => Self::Other,
            index => Self::Status(u16::try_from(index).unwrap_or(u16::MAX)),
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Good => f.write_str("2xx"),
            Self::Status(status) => status.fmt(f),
            Self::Other => f.write_str("other"),
        }
    }
}

impl Results {
    /// Counts a verdict.
    pub fn note(&self, verdict: Verdict, status: Option<u16>) {
        let class = place(&Class::ALL, verdict.class());
        self.counts[class][Code::of(status).index()].fetch_add(1, Ordering::Relaxed);
    }

    /// What was counted, without zeros.
    pub fn iter(&self) -> impl Iterator<Item = (Class, Code, u64)> {
        Class::ALL
            .into_iter()
            .zip(self.counts.iter())
            .flat_map(|(class, counts)| {
                let counts = counts.iter().map(|count| count.load(Ordering::Relaxed));
                let counts = counts.enumerate();
                counts
                    .filter(|(_, count)| *count > 0)
                    .map(move |(index, count)| (class, Code::at(index), count))
            })
    }

    /// All verdicts.
    pub fn total(&self) -> u64 {
        self.iter().map(|(_, _, count)| count).sum()
    }
}

impl Default for Results {
    fn default() -> Self {
        Self {
            counts: Box::new([const { [const { AtomicU64::new(0) }; CODES] }; Class::ALL.len()]),
        }
    }
}

impl fmt::Debug for Results {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Requests: `check_requests_total{method,reason}`, `check_duration_seconds{phase}`, `check_inflight` and the like.
#[derive(Debug, Default)]
pub struct Requests {
    /// By method and reason.
    counts: [[Counter; Reason::ALL.len()]; Method::ALL.len()],
    /// How long each phase took.
    phases: [Histogram; Phase::ALL.len()],
    /// `check_inflight`: requests that wait for their answers.
    pub in_flight: Gauge,
    /// Requests on connections that were used before, of those that have ended: `conn_reuse_ratio`.
    pub reused: Counter,
    /// TLS handshakes that resumed a session: `tls_resumed_total`.
    pub resumed: Counter,
}

/// The method of a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Method {
    /// `HEAD`
    Head,
    /// `GET`
    Get,
}

/// Why a request is sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Reason {
    /// The first request for a URL that is due, and what its redirects lead to.
    First,
    /// A GET that confirms what HEAD said.
    Confirm,
    /// A request that tells whether the host works, or what it sends for paths that do not exist.
    Control,
    /// A canary.
    Canary,
    /// A further attempt.
    Retry,
    /// `robots.txt`
    Robots,
}

/// A part of a request's time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Phase {
    /// Looking up the name.
    Dns,
    /// Connecting.
    Connect,
    /// The TLS handshake.
    Tls,
    /// The wait for the first byte of the answer.
    FirstByte,
    /// All of it.
    Total,
}

impl Method {
    /// All methods.
    pub const ALL: [Self; 2] = [Self::Head, Self::Get];

    /// The label.
    pub fn name(self) -> &'static str {
        match self {
            Self::Head => "HEAD",
            Self::Get => "GET",
        }
    }
}

impl Reason {
    /// All reasons.
    pub const ALL: [Self; 6] = [
        Self::First,
        Self::Confirm,
        Self::Control,
        Self::Canary,
        Self::Retry,
        Self::Robots,
    ];

    /// The label.
    pub fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Confirm => "confirm",
            Self::Control => "control",
            Self::Canary => "canary",
            Self::Retry => "retry",
            Self::Robots => "robots",
        }
    }
}

impl Phase {
    /// All phases.
    pub const ALL: [Self; 5] = [
        Self::Dns,
        Self::Connect,
        Self::Tls,
        Self::FirstByte,
        Self::Total,
    ];

    /// The label.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dns => "dns",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::FirstByte => "first_byte",
            Self::Total => "total",
        }
    }
}

impl Requests {
    /// Counts a request.
    pub fn note(&self, method: Method, reason: Reason) {
        self.counts[place(&Method::ALL, method)][place(&Reason::ALL, reason)].inc();
    }

    /// Requests with this method and reason.
    pub fn count(&self, method: Method, reason: Reason) -> u64 {
        self.counts[place(&Method::ALL, method)][place(&Reason::ALL, reason)].get()
    }

    /// Notes how long a phase took.
    pub fn note_phase(&self, phase: Phase, took: Duration) {
        self.phase(phase).note(took);
    }

    /// How long a phase took.
    pub fn phase(&self, phase: Phase) -> &Histogram {
        &self.phases[place(&Phase::ALL, phase)]
    }
}

/// Changes of state: `check_transitions_total{from,to}`.
#[derive(Debug, Default)]
pub struct Changes {
    counts: [[Counter; State::ALL.len()]; State::ALL.len()],
    /// `check_prunes_total`
    pub pruned: Counter,
    /// `check_false_prunes_total`: pruned, and alive later.
    pub false_prunes: Counter,
}

impl Changes {
    /// Counts a change.
    pub fn note(&self, from: State, to: State) {
        self.counts[usize::from(from.code())][usize::from(to.code())].inc();
        if to == State::Pruned {
            self.pruned.inc();
        }
        if from == State::Pruned && to == State::Alive {
            self.false_prunes.inc();
        }
    }

    /// What was counted, without zeros.
    pub fn iter(&self) -> impl Iterator<Item = (State, State, u64)> {
        let pairs = State::ALL
            .into_iter()
            .flat_map(|from| State::ALL.map(|to| (from, to)));
        pairs
            .map(|(from, to)| {
                let count = &self.counts[usize::from(from.code())][usize::from(to.code())];
                (from, to, count.get())
            })
            .filter(|(_, _, count)| *count > 0)
    }
}

/// How far the work is behind. Read from the store every few seconds.
#[derive(Debug, Default)]
pub struct Backlog {
    urls: [Gauge; State::ALL.len()],
    /// `check_private_urls`: URLs at private addresses, which are not asked.
    pub private: Gauge,
    /// `check_hosts{state="ready"}`: hosts that are worked on.
    pub hosts_ready: Gauge,
    /// `check_hosts{state="held"}`
    pub hosts_held: Gauge,
    /// `check_hosts{state="throttled"}`: hosts that wait because they asked for it.
    pub hosts_throttled: Gauge,
    /// `check_hosts{state="failing"}`: hosts whose last answers were none.
    pub hosts_failing: Gauge,
    /// `check_due_lag_seconds`: for how many milliseconds the oldest URL is due.
    pub lag: Gauge,
    /// `check_staleness_ratio`: the share of the URLs that are past due by more than 2.4 minutes.
    pub staleness: Ratio,
    /// `host_limited_seconds_total`, in microseconds: nothing was to be done, although URLs were due and connections left,
    /// because of the limits of their hosts.
    pub host_limited: Counter,
    /// `cpu_limited_seconds_total`, in microseconds: the thread that asks was busy.
    pub cpu_limited: Counter,
}

impl Backlog {
    /// `check_urls{state}`
    pub fn urls(&self, state: State) -> &Gauge {
        &self.urls[usize::from(state.code())]
    }
}

/// The guards.
#[derive(Debug, Default)]
pub struct GuardFigures {
    /// `check_guard_active{kind="self"}`: 0 or 1.
    pub own_network: Gauge,
    /// `check_guard_active{kind="host"}`: how many hosts are held.
    pub hosts: Gauge,
    /// `check_guard_active{kind="budget"}`: 1 while a URL waits for the budget of pruning.
    pub budget: Gauge,
    /// `check_void_total`: verdicts that were taken while a guard was on.
    pub void: Counter,
    /// `check_quarantined`: URLs that are held.
    pub quarantined: Gauge,
}

/// Reconciling.
#[derive(Debug, Default)]
pub struct CycleFigures {
    /// Cycles that have ended.
    pub ended: Counter,
    /// URLs that cycles asked.
    pub asked: Counter,
    /// How long a cycle took.
    pub took: Histogram,
}

/// What the thread that asks the hosts sends to the store.
#[derive(Debug, Default)]
pub struct KeepingFigures {
    /// Outcomes that are not stored yet.
    pub unstored: Gauge,
    /// Outcomes that were stored.
    pub stored: Counter,
    /// Outcomes whose URL was not due any more: nothing was stored.
    pub stale: Counter,
    /// How long outcomes waited for their transaction: `check_commit_wait_seconds`.
    pub commit: Histogram,
    /// 1 while the store takes nothing, so that nothing is asked.
    pub is_stopped: Gauge,
}

fn place<T: Copy + PartialEq, const N: usize>(all: &[T; N], one: T) -> usize {
    // All values are in the list; the last one takes what is not.
    all.iter().position(|other| *other == one).unwrap_or(N - 1)
}

/// Statuses up to 599, and one place for all others.
const CODES: usize = 601;
