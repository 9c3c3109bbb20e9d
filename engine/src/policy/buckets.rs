//! The buckets in which times are counted: linear within each power of two.

/// The bucket of a number: below 2^`BITS` each number has one, and then each power of two has 2^`BITS`.
pub(crate) fn bucket<const BITS: u32>(number: u64) -> usize {
    let row = (number >> BITS)
        .checked_ilog2()
        .map_or(0, |power| power + 1);
    let step = (number >> row.saturating_sub(1)) & mask(BITS);
    ((u64::from(row) << BITS) + step) as usize
}

/// The greatest number of a bucket.
pub(crate) fn bucket_end<const BITS: u32>(bucket: usize) -> u64 {
    let (row, step) = (bucket as u64 >> BITS, bucket as u64 & mask(BITS));
    match row {
        0 => step,
        row => (((1 << BITS) + step + 1) << (row - 1)) - 1,
    }
}

const fn mask(bits: u32) -> u64 {
    (1 << bits) - 1
}
