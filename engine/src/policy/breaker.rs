//! A circuit breaker: whether calls to a peer that fails are let through at all.
//!
//! ```text
//!            too many failures                  the pause is over
//!  Closed ───────────────────────▶ Open(until) ───────────────────▶ HalfOpen: a few probes
//!     ▲                              ▲                                │        │
//!     │                              └──────── a probe failed ────────┘        │
//!     └─────────────────────────────────── enough probes succeeded ────────────┘
//! ```

use std::io;
use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use crate::error::{Error, ErrorKind, Phase, ProxyFault};

/// When a [`Breaker`] opens, and for how long.
///
/// ```
/// use std::time::Instant;
/// use courser::policy::BreakerConfig;
/// use courser::{Client, Config, ErrorKind, HostConfig, Response};
///
/// // Each host has its own breaker. Here, a host that failed twice in a row gets no calls for 5 s.
/// let breaker = BreakerConfig { consecutive: 2.try_into().ok(), ..BreakerConfig::default() };
/// let mut client = Client::new(Config {
///     host: HostConfig { breaker: Some(breaker), ..HostConfig::default() },
///     ..Config::default()
/// })?;
/// let mut response = Response::new();
/// for _ in 0..2 {
///     client.get("http://127.0.0.1:1/", &mut response).unwrap_err(); // refused
/// }
/// let error = client.get("http://127.0.0.1:1/", &mut response).unwrap_err();
/// let ErrorKind::BreakerOpen(until) = error.kind() else { panic!("{error}") };
/// assert!(*until > Instant::now(), "the error has the end of the pause");
/// # Ok::<(), courser::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct BreakerConfig {
    /// The time over which outcomes are counted. Default 10 s.
    pub window: Duration,
    /// With fewer outcomes in the window, the ratio is not checked. Default 20.
    pub min_volume: NonZeroU32,
    /// The breaker opens if more than this part of the outcomes are failures; from 0 to 1. Default 0.5.
    pub failure_ratio: f64,
    /// The breaker opens after so many failures in a row, whatever the volume. Default: none.
    pub consecutive: Option<NonZeroU32>,
    /// How long the breaker stays open the first time. Default 5 s.
    pub open_for: Duration,
    /// Each time a probe fails, the breaker stays open for twice as long, at most this long. Default 60 s.
    pub max_open_for: Duration,
    /// How many calls the half-open breaker lets through at the same time. Default 1.
    pub probes: NonZeroU32,
    /// How many successes in a row close the breaker. Default 1.
    pub successes: NonZeroU32,
    /// Statuses that count as failures. Default 500 and 502 to 504. Others count as successes, also those about the
    /// request (404, 410) and those that ask for a pause (429).
    pub statuses: Statuses,
}

impl Default for BreakerConfig {
    fn default() -> Self {
        Self {
            window: Duration::from_secs(10),
            min_volume: NonZeroU32::new(20).unwrap_or(NonZeroU32::MIN),
            failure_ratio: 0.5,
            consecutive: None,
            open_for: Duration::from_secs(5),
            max_open_for: Duration::from_secs(60),
            probes: NonZeroU32::MIN,
            successes: NonZeroU32::MIN,
            statuses: Statuses::of_failures(),
        }
    }
}

/// A set of status codes.
///
/// ```
/// use courser::policy::Statuses;
///
/// let busy = Statuses::none().and(429..=429).and(502..=504);
/// assert!(busy.contains(503) && !busy.contains(500));
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Statuses(Vec<RangeInclusive<u16>>);

impl Statuses {
    /// No status.
    pub const fn none() -> Self {
        Self(Vec::new())
    }

    /// Statuses of peers that failed: 500, and 502 to 504.
    pub(crate) fn of_failures() -> Self {
        Self::none().and(500..=500).and(502..=504)
    }

    /// Adds these codes.
    pub fn and(mut self, codes: RangeInclusive<u16>) -> Self {
        self.0.push(codes);
        self
    }

    /// Whether the set has this code.
    pub fn contains(&self, code: u16) -> bool {
        self.0.iter().any(|codes| codes.contains(&code))
    }
}

/// What a breaker lets through.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum BreakerState {
    /// All calls.
    Closed,
    /// No calls, until this time.
    Open(Instant),
    /// A few probes, until their outcomes are known.
    HalfOpen,
}

/// What the end of a call says about the peer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Health {
    /// The peer did its work, whatever its answer says about the request.
    Success,
    /// The peer failed.
    Failure,
    /// Nothing is known, for example because the call was cancelled. Counts neither way.
    Unknown,
}

/// The circuit breaker of one peer. Has no clock: callers pass the time.
///
/// ```
/// use std::num::NonZeroU32;
/// use std::time::{Duration, Instant};
/// use courser::policy::{Breaker, BreakerConfig, BreakerState, Health};
///
/// let config = BreakerConfig { consecutive: NonZeroU32::new(2), ..BreakerConfig::default() };
/// let mut breaker = Breaker::new(config);
/// let now = Instant::now();
/// for _ in 0..2 {
///     let pass = breaker.admit(now).unwrap();
///     breaker.record(now, pass, Health::Failure);
/// }
/// let until = now + Duration::from_secs(5);
/// assert_eq!(breaker.admit(now), Err(until));
/// // After the pause, one call is let through; its outcome decides.
/// let probe = breaker.admit(until).unwrap();
/// assert_eq!(breaker.state(until), BreakerState::HalfOpen);
/// breaker.record(until, probe, Health::Success);
/// assert_eq!(breaker.state(until), BreakerState::Closed);
/// ```
#[derive(Clone, Debug)]
pub struct Breaker {
    config: BreakerConfig,
    /// Open also if that time has passed and no call has asked since.
    state: BreakerState,
    /// In the half-open state: the calls that were let through and have not ended, and the successes in a row.
    probes: u32,
    successes: u32,
    /// How often the state has changed. Permits of an earlier state say nothing about the current one.
    era: u64,
    window: Window,
    failures_in_a_row: u32,
    /// How long the breaker was open last; zero since it was closed.
    open_for: Duration,
}

/// The permit to make one call, to be returned with its outcome.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[must_use = "a probe whose outcome is never recorded keeps others from being let through"]
pub struct BreakerPermit {
    era: u64,
}

impl Breaker {
    /// A closed breaker.
    pub fn new(config: BreakerConfig) -> Self {
        Self {
            window: Window::new(config.window),
            config,
            state: BreakerState::Closed,
            probes: 0,
            successes: 0,
            era: 0,
            failures_in_a_row: 0,
            open_for: Duration::ZERO,
        }
    }

    /// The configuration.
    pub fn config(&self) -> &BreakerConfig {
        &self.config
    }

    /// The state at this time.
    pub fn state(&self, now: Instant) -> BreakerState {
        match self.state {
            BreakerState::Open(until) if until <= now => BreakerState::HalfOpen,
            state => state,
        }
    }

    /// The end of the open state, also if that has passed and no call has asked since.
    pub(crate) fn opens(&self) -> Option<Instant> {
        match self.state {
            BreakerState::Open(until) => Some(until),
            BreakerState::Closed | BreakerState::HalfOpen => None,
        }
    }

    /// Asks for the permit to make a call.
    ///
    /// # Errors
    /// When to ask again. If the breaker is half open and all probes are in flight, this is `now`: the next outcome
    /// decides.
    pub fn admit(&mut self, now: Instant) -> Result<BreakerPermit, Instant> {
        if let BreakerState::Open(until) = self.state {
            if now < until {
                return Err(until);
            }
            self.change(BreakerState::HalfOpen);
        }
        if self.state == BreakerState::HalfOpen {
            if self.probes >= self.config.probes.get() {
                return Err(now);
            }
            self.probes += 1;
        }
        Ok(BreakerPermit { era: self.era })
    }

    /// What the status of an answer says about the peer.
    pub fn judge(&self, status: u16) -> Health {
        match self.config.statuses.contains(status) {
            true => Health::Failure,
            false => Health::Success,
        }
    }

    /// Records the outcome of a call. Returns the new state if it has changed.
    pub fn record(
        &mut self,
        now: Instant,
        pass: BreakerPermit,
        health: Health,
    ) -> Option<BreakerState> {
        if pass.era != self.era {
            return None; // the call began in an earlier state
        }
        match (self.state, health) {
            (BreakerState::Open(_), _) | (BreakerState::Closed, Health::Unknown) => return None,
            (BreakerState::HalfOpen, Health::Unknown) => {
                self.probes = self.probes.saturating_sub(1);
                return None;
            }
            (BreakerState::HalfOpen, Health::Success) => {
                self.probes = self.probes.saturating_sub(1);
                self.successes += 1;
                if self.successes < self.config.successes.get() {
                    return None;
                }
                self.window = Window::new(self.config.window);
                self.failures_in_a_row = 0;
                self.open_for = Duration::ZERO;
                self.change(BreakerState::Closed);
            }
            (BreakerState::HalfOpen, Health::Failure) => self.open(now),
            (BreakerState::Closed, Health::Success) => {
                self.window.add(now, false);
                self.failures_in_a_row = 0;
                return None;
            }
            (BreakerState::Closed, Health::Failure) => {
                self.window.add(now, true);
                self.failures_in_a_row = self.failures_in_a_row.saturating_add(1);
                let (volume, failures) = self.window.sums(now);
                let row = self.config.consecutive;
                let too_many = row.is_some_and(|most| self.failures_in_a_row >= most.get())
                    || volume >= u64::from(self.config.min_volume.get())
                        && failures as f64 > self.config.failure_ratio * volume as f64;
                if !too_many {
                    return None;
                }
                self.open(now);
            }
        }
        Some(self.state(now))
    }

    fn open(&mut self, now: Instant) {
        self.open_for = match self.open_for {
            Duration::ZERO => self.config.open_for,
            before => before.saturating_mul(2),
        };
        self.open_for = self.open_for.min(self.config.max_open_for);
        let until = now.checked_add(self.open_for);
        self.change(BreakerState::Open(until.unwrap_or(now)));
    }

    fn change(&mut self, state: BreakerState) {
        self.state = state;
        (self.probes, self.successes) = (0, 0);
        self.era += 1;
    }
}

/// What the error of an attempt says about the peer.
pub(crate) fn health_of(error: &Error) -> Health {
    let is_failure = matches!(
        error.kind(),
        ErrorKind::Peer(_)
            | ErrorKind::Tls(_)
            | ErrorKind::Io(_)
            | ErrorKind::Proxy(_)
            | ErrorKind::Dns(_)
            | ErrorKind::Timeout(_)
    );
    match is_failure && !is_unasked(error) && !is_local(error) {
        true => Health::Failure,
        false => Health::Unknown,
    }
}

/// What the error of an attempt says about one of several addresses. An address to which this machine has no way is
/// left out while others are there.
pub(crate) fn health_of_address(error: &Error) -> Health {
    match is_local(error) {
        true => Health::Failure,
        false => health_of(error),
    }
}

/// Whether nothing was asked of the peer, because of this program or this machine alone: a call that waited for a
/// connection, a lookup that waited for others, a resolver that is not usable, no descriptor left.
fn is_unasked(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::Dns(error) | ErrorKind::Proxy(ProxyFault::Name(error)) => error.is_local(),
        ErrorKind::Shortage(_) => true,
        _ => error.phase() == Phase::Queue,
    }
}

/// Whether an attempt found no way to the network of the host: a firewall of this machine, an interface that is down,
/// no route, no address to connect from.
fn is_local(error: &Error) -> bool {
    let ErrorKind::Io(cause) = error.kind() else {
        return false;
    };
    error.phase() == Phase::Connect
        && matches!(
            cause.kind(),
            io::ErrorKind::PermissionDenied
                | io::ErrorKind::NetworkDown
                | io::ErrorKind::NetworkUnreachable
                | io::ErrorKind::AddrNotAvailable
                | io::ErrorKind::AddrInUse
        )
}

/// The outcomes in the window, in slices of a tenth. The oldest slice is dropped as a whole.
#[derive(Clone, Debug)]
struct Window {
    slice: Duration,
    start: Option<Instant>,
    /// Volume and failures of a slice, and the number of the slice, counted from the start.
    slices: [(u64, u64, u64); SLICES],
}

impl Window {
    fn new(length: Duration) -> Self {
        Self {
            slice: (length / SLICES as u32).max(Duration::from_nanos(1)),
            start: None,
            slices: [(0, 0, 0); SLICES],
        }
    }

    fn add(&mut self, now: Instant, failure: bool) {
        let number = self.number(now);
        let slice = &mut self.slices[number as usize % SLICES];
        if slice.2 != number {
            *slice = (0, 0, number);
        }
        slice.0 += 1;
        slice.1 += u64::from(failure);
    }

    fn sums(&mut self, now: Instant) -> (u64, u64) {
        let number = self.number(now);
        let oldest = (number + 1).saturating_sub(SLICES as u64);
        let current = self.slices.iter().filter(|slice| slice.2 >= oldest);
        current.fold((0, 0), |sum, slice| (sum.0 + slice.0, sum.1 + slice.1))
    }

    fn number(&mut self, now: Instant) -> u64 {
        let start = *self.start.get_or_insert(now);
        let slices = now.saturating_duration_since(start).as_nanos() / self.slice.as_nanos();
        slices.try_into().unwrap_or(u64::MAX)
    }
}

const SLICES: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{DnsError, Sent, Shortage, TimeLimit, TlsFault};

    fn config() -> BreakerConfig {
        BreakerConfig {
            min_volume: NonZeroU32::new(4).expect("not zero"),
            ..BreakerConfig::default()
        }
    }

    fn run(breaker: &mut Breaker, now: Instant, outcomes: &[Health]) -> Option<BreakerState> {
        let mut last = None;
        for &health in outcomes {
            let pass = breaker.admit(now).expect("not open");
            last = breaker.record(now, pass, health);
        }
        last
    }

    use Health::{Failure, Success, Unknown};

    #[test]
    fn what_this_machine_lacks_says_nothing_about_a_host() {
        let health = |kind: ErrorKind, phase| {
            let error = Error::new(kind, phase, Sent::Nothing);
            assert_eq!(health_of(&error), health_of_address(&error));
            health_of(&error)
        };
        for ours in [
            DnsError::QueueFull(100),
            DnsError::NotAsked,
            DnsError::Config("no servers".into()),
            DnsError::Unanswered,
        ] {
            for kind in [ours.clone().into(), ProxyFault::Name(ours).into()] {
                assert_eq!(health(kind, Phase::Resolve), Unknown);
            }
        }
        for theirs in [
            DnsError::NotFound,
            DnsError::Timeout,
            DnsError::ServerFailure(2),
        ] {
            for kind in [theirs.clone().into(), ProxyFault::Name(theirs).into()] {
                assert_eq!(health(kind, Phase::Resolve), Failure);
            }
        }
        let shortage = ErrorKind::Shortage(Shortage::Memory);
        assert_eq!(health(shortage, Phase::Connect), Unknown);
        assert_eq!(health(TimeLimit::Total.into(), Phase::Queue), Unknown);
        assert_eq!(health(TlsFault::UnknownIssuer.into(), Phase::Tls), Failure);
    }

    #[test]
    fn it_opens_by_ratio_with_enough_volume_only() {
        let now = Instant::now();
        let mut breaker = Breaker::new(config());
        assert_eq!(
            run(&mut breaker, now, &[Failure, Failure, Unknown, Failure]),
            None
        );
        let open = BreakerState::Open(now + Duration::from_secs(5));
        assert_eq!(run(&mut breaker, now, &[Failure]), Some(open));
        assert_eq!(breaker.state(now), open);
        // Half of them may fail.
        let mut breaker = Breaker::new(config());
        let half = [Success, Failure, Success, Failure, Success, Failure];
        assert_eq!(run(&mut breaker, now, &half), None);
        assert_eq!(run(&mut breaker, now, &[Failure]), Some(open));
    }

    #[test]
    fn old_failures_are_forgotten() {
        let start = Instant::now();
        let mut breaker = Breaker::new(config());
        run(&mut breaker, start, &[Failure; 3]);
        let later = start + Duration::from_secs(11);
        assert_eq!(run(&mut breaker, later, &[Failure; 3]), None);
        assert!(run(&mut breaker, later, &[Failure]).is_some());
    }

    #[test]
    fn failures_in_a_row_open_it_whatever_the_volume() {
        let now = Instant::now();
        let config = BreakerConfig {
            consecutive: NonZeroU32::new(3),
            ..BreakerConfig::default()
        };
        let mut breaker = Breaker::new(config);
        let mixed = [Failure, Failure, Success, Failure, Failure];
        assert_eq!(run(&mut breaker, now, &mixed), None);
        assert!(run(&mut breaker, now, &[Failure]).is_some());
    }

    #[test]
    fn probes_decide_and_the_pause_doubles() {
        let mut now = Instant::now();
        let config = BreakerConfig {
            consecutive: Some(NonZeroU32::MIN),
            probes: NonZeroU32::new(2).expect("not zero"),
            successes: NonZeroU32::new(2).expect("not zero"),
            ..BreakerConfig::default()
        };
        let mut breaker = Breaker::new(config);
        let early = breaker.admit(now).expect("closed");
        run(&mut breaker, now, &[Failure]);
        for seconds in [5, 10, 20, 40, 60, 60] {
            let until = now + Duration::from_secs(seconds);
            assert_eq!(breaker.admit(now), Err(until));
            assert_eq!(breaker.admit(until - Duration::from_nanos(1)), Err(until));
            now = until;
            assert_eq!(breaker.state(now), BreakerState::HalfOpen);
            let probe = breaker.admit(now).expect("a probe");
            let other = breaker.admit(now).expect("another probe");
            assert_eq!(breaker.admit(now), Err(now));
            // A permit of an earlier state counts nothing; one with an unknown outcome makes room for another.
            assert_eq!(breaker.record(now, early, Failure), None);
            assert_eq!(breaker.record(now, other, Unknown), None);
            let _ = breaker.admit(now).expect("room again");
            assert!(breaker.record(now, probe, Failure).is_some());
        }
        now += Duration::from_secs(60);
        assert_eq!(
            run(&mut breaker, now, &[Success, Success]),
            Some(BreakerState::Closed)
        );
        // Begins anew.
        run(&mut breaker, now, &[Failure]);
        assert_eq!(breaker.admit(now), Err(now + Duration::from_secs(5)));
    }

    #[test]
    fn statuses_that_are_answers_are_no_failures() {
        let breaker = Breaker::new(BreakerConfig::default());
        for status in [200, 304, 404, 410, 429, 501, 505] {
            assert_eq!(breaker.judge(status), Success, "{status}");
        }
        for status in [500, 502, 503, 504] {
            assert_eq!(breaker.judge(status), Failure, "{status}");
        }
    }
}
