//! Counters and histograms over many calls. Recording a call takes a few additions and allocates nothing.

use std::fmt;
use std::time::Duration;

use super::Timings;
use crate::client::progress::ActiveCall;
use crate::error::ErrorKind;
use crate::policy::buckets::{self, bucket_end};
use crate::sync::{Mutex, MutexGuard, lock};

/// Statistics of the calls of a client so far: a snapshot.
///
/// A call is counted when it ends.
///
/// ```
/// # fn example(client: &courser::Shared<courser::HostClient>) {
/// let stats = client.stats();
/// println!("{} calls, {} failed, {} in flight", stats.calls, stats.failed(), stats.in_flight);
/// println!("p99 {:?}, at most {:?}", stats.total.quantile(0.99), stats.total.max());
/// # }
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Calls that have ended, successful or not.
    pub calls: u64,
    /// Complete responses by the first digit of their status: `[4]` counts 4xx. `[0]` is always zero, and `[6]` to
    /// `[9]` count statuses outside the standards.
    pub statuses: [u64; 10],
    /// Calls that failed, by cause.
    pub failures: Failures,
    /// Retries: attempts after the first attempt of a call.
    pub retries: u64,
    /// Calls whose last attempt ran on a connection that had been open before.
    pub reused: u64,
    /// Calls that waited for a rate.
    pub held: u64,
    /// Attempts that ended by [`TimeLimit::Adaptive`](crate::error::TimeLimit::Adaptive), because they waited for the
    /// first byte longer than usual for their host.
    pub adaptive_timeouts: u64,
    /// The limit that [`HostConfig::adaptive`](crate::HostConfig::adaptive) set for the latest attempt; if several
    /// clients are merged, the longest of their limits. `None` if there is no such limit.
    pub first_byte_limit: Option<Duration>,
    /// Calls that have not ended.
    pub in_flight: usize,
    /// The time of a whole call, successful or not.
    pub total: Histogram,
    /// The time until a call had a connection.
    pub queued: Histogram,
    /// The time of the name lookups of a connection. Counted once for each connection, as are `connect` and `tls`, when
    /// the first call on the connection ends.
    pub resolve: Histogram,
    /// The time that a connection took to reach an address, after the lookups.
    pub connect: Histogram,
    /// The time of the TLS handshake with the server.
    pub tls: Histogram,
    /// The time until the first byte of the response.
    pub first_byte: Histogram,
}

impl Stats {
    /// Calls that failed, for any cause.
    pub fn failed(&self) -> u64 {
        let mut failures = self.failures.clone();
        failures.each_mut().into_iter().map(|n| *n).sum()
    }

    /// Adds the numbers of another client.
    pub fn merge(&mut self, other: &Self) {
        let mut other = other.clone();
        self.first_byte_limit = self.first_byte_limit.max(other.first_byte_limit);
        self.in_flight += other.in_flight;
        for (sum, n) in self.counters().zip(other.counters()) {
            *sum += *n;
        }
        for (sum, more) in self.times().into_iter().zip(other.times()) {
            sum.merge(more);
        }
    }

    fn counters(&mut self) -> impl Iterator<Item = &mut u64> {
        let statuses = self.statuses.iter_mut();
        let others = [
            &mut self.calls,
            &mut self.retries,
            &mut self.reused,
            &mut self.held,
            &mut self.adaptive_timeouts,
        ];
        statuses.chain(self.failures.each_mut()).chain(others)
    }

    /// The histograms, in the order in which [`Recorder::record`] has their times.
    fn times(&mut self) -> [&mut Histogram; 6] {
        [
            &mut self.total,
            &mut self.queued,
            &mut self.resolve,
            &mut self.connect,
            &mut self.tls,
            &mut self.first_byte,
        ]
    }
}

/// Failed calls by the kind of their error.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Failures {
    /// [`ErrorKind::Misuse`].
    pub misuse: u64,
    /// [`ErrorKind::Peer`] and [`ErrorKind::Redirect`].
    pub peer: u64,
    /// [`ErrorKind::Limit`].
    pub limit: u64,
    /// [`ErrorKind::Io`].
    pub io: u64,
    /// [`ErrorKind::Timeout`].
    pub timeout: u64,
    /// [`ErrorKind::Tls`].
    pub tls: u64,
    /// [`ErrorKind::Dns`].
    pub dns: u64,
    /// [`ErrorKind::Proxy`].
    pub proxy: u64,
    /// [`ErrorKind::Denied`] and [`ErrorKind::DeniedName`].
    pub denied: u64,
    /// [`ErrorKind::Cancelled`].
    pub cancelled: u64,
    /// [`ErrorKind::Stopped`].
    pub stopped: u64,
    /// [`ErrorKind::BreakerOpen`].
    pub breaker_open: u64,
    /// [`ErrorKind::Shortage`].
    pub shortage: u64,
}

impl Failures {
    /// The number for this kind.
    fn of(&mut self, kind: &ErrorKind) -> &mut u64 {
        match kind {
            ErrorKind::Misuse(_) => &mut self.misuse,
            ErrorKind::Peer(_) | ErrorKind::Redirect { .. } => &mut self.peer,
            ErrorKind::Limit(_) => &mut self.limit,
            ErrorKind::Io(_) => &mut self.io,
            ErrorKind::Timeout(_) => &mut self.timeout,
            ErrorKind::Tls(_) => &mut self.tls,
            ErrorKind::Dns(_) => &mut self.dns,
            ErrorKind::Proxy(_) => &mut self.proxy,
            ErrorKind::Denied(_) | ErrorKind::DeniedName(_) => &mut self.denied,
            ErrorKind::Cancelled => &mut self.cancelled,
            ErrorKind::Stopped(_) => &mut self.stopped,
            ErrorKind::BreakerOpen(_) => &mut self.breaker_open,
            ErrorKind::Shortage(_) => &mut self.shortage,
        }
    }

    fn each_mut(&mut self) -> [&mut u64; 13] {
        [
            &mut self.misuse,
            &mut self.peer,
            &mut self.limit,
            &mut self.io,
            &mut self.timeout,
            &mut self.tls,
            &mut self.dns,
            &mut self.proxy,
            &mut self.denied,
            &mut self.cancelled,
            &mut self.stopped,
            &mut self.breaker_open,
            &mut self.shortage,
        ]
    }
}

/// A histogram of durations from 1 µs to 19 hours, with a precision of 1/16 of the duration.
///
/// ```
/// # let stats = courser::Stats::default();
/// let histogram = stats.total;
/// for (up_to, count) in histogram.buckets() {
///     println!("{up_to:?}: {count}");
/// }
/// ```
#[derive(Clone, Default)]
pub struct Histogram {
    /// Empty if nothing records.
    counts: Box<[u64]>,
    count: u64,
    /// In microseconds.
    sum: u64,
    max: u64,
}

impl Histogram {
    /// The number of durations.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The longest duration, in whole microseconds.
    pub fn max(&self) -> Duration {
        Duration::from_micros(self.max)
    }

    /// The mean; zero if there are no durations.
    pub fn mean(&self) -> Duration {
        Duration::from_micros(self.sum.checked_div(self.count).unwrap_or(0))
    }

    /// The duration that a share of `q` (0 to 1) does not exceed, rounded up to the end of its bucket; zero if there
    /// are no durations.
    pub fn quantile(&self, q: f64) -> Duration {
        let rank = (q.clamp(0.0, 1.0) * self.count as f64).ceil() as u64;
        let mut seen = 0;
        for (up_to, count) in self.buckets() {
            seen += count;
            if seen >= rank.max(1) {
                return up_to.min(self.max());
            }
        }
        Duration::ZERO
    }

    /// The buckets that are not empty, in order: the longest duration of the bucket, and the number of its durations.
    pub fn buckets(&self) -> impl Iterator<Item = (Duration, u64)> + '_ {
        let all = self.counts.iter().copied().enumerate();
        all.filter(|(_, count)| *count > 0)
            .map(|(index, count)| (Duration::from_micros(bucket_end::<STEP_BITS>(index)), count))
    }

    fn record(&mut self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.counts[bucket(micros)] += 1;
        self.count += 1;
        self.sum = self.sum.saturating_add(micros);
        self.max = self.max.max(micros);
    }

    /// Adds the durations of another histogram.
    pub fn merge(&mut self, other: &Self) {
        if self.counts.is_empty() {
            self.counts = other.counts.clone();
        } else {
            for (sum, n) in self.counts.iter_mut().zip(&other.counts) {
                *sum += n;
            }
        }
        self.count += other.count;
        self.sum = self.sum.saturating_add(other.sum);
        self.max = self.max.max(other.max);
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Histogram")
            .field("count", &self.count)
            .field("mean", &self.mean())
            .field("p50", &self.quantile(0.5))
            .field("p99", &self.quantile(0.99))
            .field("max", &self.max())
            .finish()
    }
}

/// Collects [`Stats`]. One thread records: it waits for the lock only while another thread reads.
#[derive(Debug)]
pub struct Recorder(Mutex<Stats>);

impl Default for Recorder {
    /// Has the memory of all that it will record.
    fn default() -> Self {
        let mut stats = Stats::default();
        for histogram in stats.times() {
            histogram.counts = vec![0; BUCKETS].into();
        }
        Self(Mutex::new(stats))
    }
}

impl Recorder {
    /// No foreign code runs under this lock, so the numbers are valid even if the lock is poisoned.
    pub(super) fn lock(&self) -> MutexGuard<'_, Stats> {
        lock(&self.0)
    }

    /// Counts a call that has ended.
    pub(super) fn record(&self, call: &ActiveCall) {
        let (timestamps, timings) = (&call.timestamps, Timings::of(&call.timestamps));
        let stats = &mut *self.lock();
        stats.calls += 1;
        *match &call.outcome {
            Ok(()) => &mut stats.statuses[usize::from(call.response.status() / 100).min(9)],
            Err(error) => stats.failures.of(error.kind()),
        } += 1;
        stats.retries += u64::from(timestamps.attempts.saturating_sub(1));
        stats.reused += u64::from(timestamps.reused);
        stats.held += u64::from(timestamps.held);
        let times = [
            Some(timings.total),
            timings.queued,
            timings.resolve,
            timings.connect,
            timings.tls,
            timings.first_byte,
        ];
        for (histogram, time) in stats.times().into_iter().zip(times) {
            if let Some(time) = time {
                histogram.record(time);
            }
        }
    }

    /// Counts a failed call that has no report.
    pub(crate) fn failed(&self, kind: &ErrorKind) {
        let stats = &mut *self.lock();
        stats.calls += 1;
        *stats.failures.of(kind) += 1;
    }

    pub(crate) fn snapshot(&self) -> Stats {
        self.lock().clone()
    }
}

/// The last bucket also counts greater numbers.
fn bucket(micros: u64) -> usize {
    buckets::bucket::<STEP_BITS>(micros).min(BUCKETS - 1)
}

const STEP_BITS: u32 = 4;
/// Up to 2^36 µs.
const BUCKETS: usize = (36 - STEP_BITS as usize + 1) << STEP_BITS;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_falls_into_a_bucket_that_ends_close_above_it() {
        let numbers = (0..5_000).chain((4..36).flat_map(|power| {
            let two = 1_u64 << power;
            [two - 1, two, two + 1, two + two / 3]
        }));
        for micros in numbers {
            let end = bucket_end::<STEP_BITS>(bucket(micros));
            assert!(
                end >= micros && end - micros <= micros / 16,
                "{micros} {end}"
            );
            assert_ne!(bucket(end), bucket(end + 1));
        }
        assert_eq!(bucket((1 << 36) - 1), BUCKETS - 1);
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_mean_and_max() {
        let mut histogram = Recorder::default().snapshot().total;
        for millis in 1..=100 {
            histogram.record(Duration::from_millis(millis));
        }
        assert_eq!(
            (histogram.count(), histogram.max()),
            (100, Duration::from_millis(100))
        );
        assert_eq!(histogram.mean(), Duration::from_micros(50_500));
        for (q, millis) in [(0.0, 1), (0.5, 50), (0.99, 99), (1.0, 100), (7.0, 100)] {
            let exact = Duration::from_millis(millis);
            let found = histogram.quantile(q);
            assert!(
                found >= exact && found <= exact + exact / 16,
                "{q} {found:?}"
            );
        }
        let other = histogram.clone();
        histogram.merge(&other);
        assert_eq!(histogram.count(), 200);
        let mut none = Histogram::default();
        assert_eq!(
            (none.quantile(0.5), none.mean()),
            (Duration::ZERO, Duration::ZERO)
        );
        none.merge(&other);
        assert_eq!(none.count(), 100);
    }

    #[test]
    fn failures_count_by_kind() {
        let recorder = Recorder::default();
        recorder.failed(&ErrorKind::Cancelled);
        recorder.failed(&crate::error::Stopped::Panicked.into());
        recorder.failed(&crate::error::Misuse::NoAddress.into());
        let mut stats = recorder.snapshot();
        assert_eq!((stats.calls, stats.failed()), (3, 3));
        let failures = &stats.failures;
        assert_eq!(
            (failures.cancelled, failures.stopped, failures.misuse),
            (1, 1, 1)
        );
        stats.merge(&recorder.snapshot());
        assert_eq!((stats.calls, stats.failures.cancelled), (6, 2));
    }
}
