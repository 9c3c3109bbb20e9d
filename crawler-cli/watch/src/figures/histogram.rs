//! How long things took.

use super::{AtomicU64, Duration, Ordering};

/// Durations in buckets of 1 ms · 2^n, up to 64 s.
///
/// ```
/// use std::time::Duration;
/// use watch::figures::Histogram;
///
/// let histogram = Histogram::default();
/// histogram.note(Duration::from_millis(3));
/// let buckets: Vec<_> = histogram.buckets().filter(|(_, count)| *count > 0).collect();
/// assert_eq!(buckets, [(Some(Duration::from_millis(4)), 1)]);
/// assert_eq!((histogram.count(), histogram.sum()), (1, Duration::from_millis(3)));
/// ```
#[derive(Debug, Default)]
pub struct Histogram {
    /// The last one has everything that is longer.
    buckets: [AtomicU64; BUCKETS + 1],
    micros: AtomicU64,
}

impl Histogram {
    /// Counts a duration.
    pub fn note(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let millis = micros.div_ceil(1000);
        // 0 and 1 are in the first bucket, then each one is twice as wide as the one before.
        let bucket = millis.max(1).next_power_of_two().trailing_zeros() as usize;
        self.buckets[bucket.min(BUCKETS)].fetch_add(1, Ordering::Relaxed);
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }

    /// The upper ends of the buckets (`None`: infinity) with the number of durations in each, which is not cumulative.
    pub fn buckets(&self) -> impl Iterator<Item = (Option<Duration>, u64)> {
        self.buckets.iter().enumerate().map(|(index, count)| {
            let end = (index < BUCKETS).then(|| Duration::from_millis(1 << index));
            (end, count.load(Ordering::Relaxed))
        })
    }

    /// How many durations were counted.
    pub fn count(&self) -> u64 {
        self.buckets().map(|(_, count)| count).sum()
    }

    /// All durations together.
    pub fn sum(&self) -> Duration {
        Duration::from_micros(self.micros.load(Ordering::Relaxed))
    }
}

/// The time that this share of the durations, such as 0.95, did not exceed, if those of each bucket are spread evenly over it;
/// zero without any. The buckets are those of a [`Histogram`].
pub fn quantile(buckets: &[(Option<Duration>, u64)], share: f64) -> Duration {
    let all: u64 = buckets.iter().map(|(_, count)| count).sum();
    let wanted = all as f64 * share;
    let (mut begin, mut seen) = (Duration::ZERO, 0.0);
    for (end, count) in buckets.iter().filter(|_| all > 0) {
        // What is beyond the last bucket is not known better.
        let Some(end) = *end else { break };
        let count = *count as f64;
        if count > 0.0 && seen + count >= wanted {
            return begin + (end - begin).mul_f64((wanted - seen) / count);
        }
        (begin, seen) = (end, seen + count);
    }
    begin
}

/// 1 ms to 2^16 ms.
const BUCKETS: usize = 17;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_fall_into_the_bucket_whose_end_is_not_below_them() {
        for (micros, end) in [
            (0, Some(1)),
            (1_000, Some(1)),
            (1_001, Some(2)),
            (2_000, Some(2)),
            (65_536_000, Some(65_536)),
            (65_536_001, None),
        ] {
            let histogram = Histogram::default();
            histogram.note(Duration::from_micros(micros));
            let found = histogram.buckets().find(|(_, count)| *count == 1);
            let end = end.map(Duration::from_millis);
            assert_eq!(found.map(|(end, _)| end), Some(end), "{micros}");
        }
    }

    #[test]
    fn quantiles_lie_within_their_bucket() {
        let histogram = Histogram::default();
        for millis in 1..=100 {
            histogram.note(Duration::from_millis(millis));
        }
        let quantile = |histogram: &Histogram, share| {
            super::quantile(&histogram.buckets().collect::<Vec<_>>(), share)
        };
        // 18 of the 32 between 32 and 64 ms, and 31 of the 36 above.
        assert_eq!(quantile(&histogram, 0.5), Duration::from_millis(50));
        let p95 = quantile(&histogram, 0.95).as_millis();
        assert_eq!(p95, 64 + 64 * 31 / 36);
        assert_eq!(quantile(&Histogram::default(), 0.95), Duration::ZERO);
    }
}
