//! The wall clock: what people and the store call the time; and the processor time. Monotonic time is that of the client's network
//! ([`Scheduler::now`](super::scheduler::Scheduler::now)).

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use courser::net::Net;
use jiff::{SignedDuration, Timestamp};
use rustix::time::{ClockId, clock_gettime};

/// Tells the wall-clock time, which may jump in both directions.
pub trait Clock {
    /// The time now.
    fn now(&self) -> Timestamp;
}

/// The clock of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// Processor time, from a moment on.
#[derive(Clone, Copy, Debug)]
pub struct CpuTime {
    clock: ClockId,
    began: Duration,
}

impl CpuTime {
    /// That of this thread.
    pub fn of_thread() -> Self {
        Self::of(ClockId::ThreadCPUTime)
    }

    /// That of all threads of this process.
    pub fn of_process() -> Self {
        Self::of(ClockId::ProcessCPUTime)
    }

    fn of(clock: ClockId) -> Self {
        let began = now(clock);
        Self { clock, began }
    }

    pub fn elapsed(self) -> Duration {
        now(self.clock).saturating_sub(self.began)
    }
}

fn now(clock: ClockId) -> Duration {
    Duration::try_from(clock_gettime(clock)).unwrap_or_default()
}

/// A wall clock that runs with the monotonic time of a network, from a given time on, and that can be set. For simulated
/// networks, whose time is virtual. Clones are the same clock.
///
/// ```
/// use std::time::Duration;
/// use courser::net::sim::SimNet;
/// use crawl::clock::{Clock, NetClock};
/// use jiff::{SignedDuration, Timestamp};
///
/// let net = SimNet::new(1);
/// let clock = NetClock::new(net.clone(), "2026-01-01T00:00:00Z".parse::<Timestamp>()?);
/// net.advance(Duration::from_secs(90));
/// assert_eq!(clock.now().to_string(), "2026-01-01T00:01:30Z");
/// clock.step(SignedDuration::from_hours(-24));
/// assert_eq!(clock.now().to_string(), "2025-12-31T00:01:30Z");
/// # Ok::<(), jiff::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct NetClock<N> {
    net: N,
    began: Instant,
    /// The wall-clock time at `began`, as the clock is set now.
    epoch: Rc<Cell<Timestamp>>,
}

impl<N: Net> NetClock<N> {
    /// A clock that shows `epoch` now.
    pub fn new(net: N, epoch: Timestamp) -> Self {
        Self {
            began: net.now(),
            epoch: Rc::new(Cell::new(epoch)),
            net,
        }
    }

    /// Sets the clock forward, or back by a negative time. Monotonic time does not change. The clock stays within the
    /// times that a [`Timestamp`] can hold.
    pub fn step(&self, by: SignedDuration) {
        self.epoch.set(add(self.epoch.get(), by));
    }
}

impl<N: Net> Clock for NetClock<N> {
    fn now(&self) -> Timestamp {
        let passed = self.net.now().saturating_duration_since(self.began);
        let passed = SignedDuration::try_from(passed).unwrap_or(SignedDuration::MAX);
        add(self.epoch.get(), passed)
    }
}

fn add(to: Timestamp, by: SignedDuration) -> Timestamp {
    match to.saturating_add(by) {
        Ok(sum) => sum,
        // Only spans with units of a day and more fail.
        Err(_) => to,
    }
}
