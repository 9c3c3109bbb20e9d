//! How long to wait for the first byte of an answer, learned from the latencies of recent answers.

use std::time::{Duration, Instant};

use super::buckets::{bucket, bucket_end};

/// A limit that follows the usual latency: the 95th percentile of recent latencies times a factor, within bounds.
///
/// ```
/// use std::time::{Duration, Instant};
/// use courser::policy::AdaptiveTimeout;
///
/// let mut limit = AdaptiveTimeout { min_samples: 10, ..AdaptiveTimeout::default() }.start();
/// let now = Instant::now();
/// assert_eq!(limit.timeout(), Duration::from_secs(30)); // no latency is known yet
/// for _ in 0..10 {
///     limit.record(now, Duration::from_millis(200));
/// }
/// let timeout = limit.timeout();
/// assert!(timeout >= Duration::from_millis(600) && timeout <= Duration::from_millis(700));
/// ```
///
/// In a client, for each host, so that a call that gets no answer is tried again and does not wait longer:
///
/// ```
/// # fn example(upstream: courser::Upstream) -> Result<(), courser::Error> {
/// use courser::policy::{AdaptiveTimeout, FailureClass, RetryOn, RetryRule};
/// use courser::{HostClient, HostConfig, Retry};
///
/// let rule = RetryRule::new(RetryOn::Failure(FailureClass::FirstByteTimeout));
/// let config = HostConfig {
///     adaptive: Some(AdaptiveTimeout::default()),
///     retry: Retry { rules: vec![rule], ..Retry::default() },
///     stats: true,
///     ..HostConfig::default()
/// };
/// let client = HostClient::new(upstream, config)?;
/// println!("{:?} at present", client.stats().first_byte_limit);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdaptiveTimeout {
    /// The percentile is multiplied by this; at least 1. Default 3.
    pub factor: f64,
    /// The shortest limit. Default 250 ms.
    pub min: Duration,
    /// The longest limit, and the limit until enough latencies are known. Default 30 s.
    pub max: Duration,
    /// How many latencies are enough. Default 20.
    pub min_samples: u32,
    /// After this time, a latency counts half. Default 30 s.
    pub half_life: Duration,
}

impl Default for AdaptiveTimeout {
    fn default() -> Self {
        Self {
            factor: 3.0,
            min: Duration::from_millis(250),
            max: Duration::from_secs(30),
            min_samples: 20,
            half_life: Duration::from_secs(30),
        }
    }
}

impl AdaptiveTimeout {
    /// The state of one host, without any latency.
    pub fn start(self) -> Latencies {
        Latencies {
            rules: self,
            counts: Box::new([0; BUCKETS]),
            sum: 0,
            seen: 0,
            halved_at: None,
        }
    }
}

/// The latencies of one host; recent ones count most. Stored in steps of an eighth, in less than 1 KiB.
#[derive(Clone, Debug)]
pub struct Latencies {
    rules: AdaptiveTimeout,
    counts: Box<[u16; BUCKETS]>,
    sum: u32,
    /// Latencies recorded, at most `min_samples`.
    seen: u32,
    halved_at: Option<Instant>,
}

impl Latencies {
    /// Records how long the first byte of an answer took. An answer that did not come within the limit is recorded with
    /// the limit, so that the limit grows if the server has become slower.
    pub fn record(&mut self, now: Instant, latency: Duration) {
        let halved_at = *self.halved_at.get_or_insert(now);
        let since = now.saturating_duration_since(halved_at);
        let half_life = self.rules.half_life.max(Duration::from_nanos(1));
        let halves = (since.as_nanos() / half_life.as_nanos()).min(16) as u32;
        if halves > 0 {
            self.halve(halves);
            self.halved_at = Some(now);
        }
        let micros = u32::try_from(latency.as_micros()).unwrap_or(u32::MAX);
        let bucket = bucket::<EIGHTHS>(micros.into());
        if self.counts[bucket] == u16::MAX {
            self.halve(1);
        }
        self.counts[bucket] += 1;
        self.sum += 1;
        self.seen = self.seen.saturating_add(1).min(self.rules.min_samples);
    }

    /// The current limit.
    pub fn timeout(&self) -> Duration {
        let Some(usual) = self.percentile(95) else {
            return self.rules.max;
        };
        let limit = usual.as_secs_f64() * self.rules.factor.max(1.0);
        let limit = Duration::try_from_secs_f64(limit).unwrap_or(self.rules.max);
        limit.max(self.rules.min).min(self.rules.max)
    }

    /// The latency that `percent` percent of the latencies do not exceed, rounded up by at most an eighth; `None` while
    /// too few are known.
    pub fn percentile(&self, percent: u32) -> Option<Duration> {
        if self.seen < self.rules.min_samples || self.sum == 0 {
            return None;
        }
        let rank = (u64::from(self.sum) * u64::from(percent.min(100)))
            .div_ceil(100)
            .max(1);
        let mut below = 0;
        for (bucket, &count) in self.counts.iter().enumerate() {
            below += u64::from(count);
            if below >= rank {
                // A little more than the longest latency in the bucket.
                return Some(Duration::from_micros(bucket_end::<EIGHTHS>(bucket) + 1));
            }
        }
        None
    }

    fn halve(&mut self, times: u32) {
        self.sum = 0;
        for count in self.counts.iter_mut() {
            *count = count.checked_shr(times).unwrap_or(0);
            self.sum += u32::from(*count);
        }
    }
}

/// Each power of two of microseconds from 8 on has eight buckets, and each microsecond below has one.
const EIGHTHS: u32 = 3;
/// Enough for more than an hour.
const BUCKETS: usize = 30 * 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn it_follows_a_server_that_becomes_slow_and_fast_again() {
        let mut now = Instant::now();
        let mut limit = AdaptiveTimeout::default().start();
        let mut run = |limit: &mut Latencies, latency: Duration| {
            for _ in 0..600 {
                now += ms(100);
                let seen = latency.min(limit.timeout());
                limit.record(now, seen);
            }
            limit.timeout()
        };
        let fast = run(&mut limit, ms(200));
        assert!(fast >= ms(600) && fast <= ms(700), "{fast:?}");
        // Slower than the limit: the limit grows until answers come in time.
        let slow = run(&mut limit, ms(2000));
        assert!(slow >= ms(2000), "{slow:?}");
        run(&mut limit, ms(20));
        run(&mut limit, ms(20));
        let fast = run(&mut limit, ms(20));
        assert_eq!(fast, ms(250));
    }

    #[test]
    fn a_few_that_are_slow_do_not_count() {
        let now = Instant::now();
        let mut limit = AdaptiveTimeout::default().start();
        assert_eq!(
            (limit.timeout(), limit.percentile(95)),
            (Duration::from_secs(30), None)
        );
        for n in 0..100 {
            limit.record(now, if n % 25 == 0 { ms(20_000) } else { ms(500) });
        }
        assert!(limit.timeout() < ms(1800));
        for _ in 0..100_000 {
            limit.record(now, ms(40_000));
        }
        assert_eq!(limit.timeout(), Duration::from_secs(30));
    }

    #[test]
    fn what_is_old_counts_less_but_is_not_forgotten() {
        let start = Instant::now();
        let mut limit = AdaptiveTimeout::default().start();
        for _ in 0..1000 {
            limit.record(start, ms(1000));
        }
        for _ in 0..30 {
            limit.record(start + Duration::from_secs(300), ms(300));
        }
        assert!(limit.timeout() < ms(1100), "{:?}", limit.timeout());
        // After a long pause, one answer does not change the limit much.
        let mut limit = AdaptiveTimeout::default().start();
        for _ in 0..1000 {
            limit.record(start, ms(1000));
        }
        limit.record(start + Duration::from_secs(60), ms(1));
        assert!(limit.timeout() >= ms(3000));
    }

    /// How far above is in `client/stats.rs`, which has the same buckets.
    #[test]
    fn a_bucket_ends_above_its_latencies() {
        assert!(bucket_end::<EIGHTHS>(bucket::<EIGHTHS>(7)) + 1 > 7);
        assert!(bucket::<EIGHTHS>(u32::MAX.into()) < BUCKETS);
    }
}
