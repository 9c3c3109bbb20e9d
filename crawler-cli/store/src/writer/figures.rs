//! What a writer counts.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// What a writer counts. Reading the numbers disturbs no thread.
#[derive(Debug, Default)]
pub struct WriterFigures {
    /// Groups that were committed.
    pub groups: AtomicU64,
    /// Operations that were committed.
    pub operations: AtomicU64,
    /// Operations that failed for a reason of their own.
    pub failures: AtomicU64,
    /// How often a group could not be stored, because the store could not be written.
    pub refusals: AtomicU64,
    /// Operations that are kept until the store can be written.
    pub kept: AtomicUsize,
    /// How long groups took, from the begin to the end of the commit, in microseconds.
    pub micros: Buckets,
    /// How many rows groups had, as the operations estimate them.
    pub rows: Buckets,
}

impl WriterFigures {
    pub(super) fn committed(&self, operations: usize, rows: usize, took: Duration) {
        let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        self.groups.fetch_add(1, Ordering::Relaxed);
        self.operations
            .fetch_add(number(operations), Ordering::Relaxed);
        self.rows.observe(number(rows));
        self.micros
            .observe(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
    }
}

/// Counts numbers by their size. Bucket `n` has the numbers up to [`Buckets::bound`] of `n` that no bucket before has.
///
/// ```
/// use store::Buckets;
///
/// let buckets = Buckets::default();
/// for number in [0, 1, 2, 3, 1000] {
///     buckets.observe(number);
/// }
/// assert_eq!(buckets.counts()[..3], [2, 1, 1]);
/// assert_eq!(Buckets::bound(10), 1024);
/// assert_eq!((buckets.counts()[10], buckets.sum()), (1, 1006));
/// ```
#[derive(Debug, Default)]
pub struct Buckets {
    counts: [AtomicU64; Self::COUNT],
    sum: AtomicU64,
}

impl Buckets {
    /// The number of buckets. The last one has all that is larger than the bound of the one before.
    pub const COUNT: usize = 28;

    /// Counts a number.
    pub fn observe(&self, number: u64) {
        let bits = u64::BITS - number.saturating_sub(1).leading_zeros();
        let place = (bits as usize).min(Self::COUNT - 1);
        self.counts[place].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(number, Ordering::Relaxed);
    }

    /// The largest number of a bucket: 2 to the power of its place.
    pub fn bound(place: usize) -> u64 {
        1 << place.min(63)
    }

    /// How many numbers each bucket has.
    pub fn counts(&self) -> [u64; Self::COUNT] {
        std::array::from_fn(|place| self.counts[place].load(Ordering::Relaxed))
    }

    /// The sum of all numbers.
    pub fn sum(&self) -> u64 {
        self.sum.load(Ordering::Relaxed)
    }
}
