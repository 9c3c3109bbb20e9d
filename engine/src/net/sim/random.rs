//! The random numbers of the simulation: a splitmix64 generator, so that a seed gives the same run everywhere.

use std::ops::RangeInclusive;
use std::time::Duration;

/// A seeded generator of numbers, durations and decisions.
///
/// ```
/// use courser::net::sim::{Probability, Random};
///
/// let mut random = Random::new(7);
/// assert_eq!(random.number(), Random::new(7).number());
/// assert!((10..=20).contains(&random.within(10..=20)));
/// assert!(!random.roll(Probability::NEVER) && random.roll(Probability::ALWAYS));
/// ```
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator that gives the same numbers for the same seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number, any of 2^64.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number in the range; its start if the range is empty.
    pub fn within(&mut self, range: RangeInclusive<usize>) -> usize {
        let (start, end) = range.into_inner();
        match end.checked_sub(start) {
            None => start,
            Some(usize::MAX) => self.number() as usize,
            Some(span) => start + (self.number() % (span as u64 + 1)) as usize,
        }
    }

    /// A duration in the range, in whole microseconds above its start.
    pub fn duration(&mut self, range: &RangeInclusive<Duration>) -> Duration {
        let span = range.end().saturating_sub(*range.start());
        let span = u64::try_from(span.as_micros()).unwrap_or(u64::MAX - 1);
        *range.start() + Duration::from_micros(self.number() % (span + 1))
    }

    /// Decides whether an event with this probability happens.
    pub fn roll(&mut self, probability: Probability) -> bool {
        // Nothing is drawn for a probability of zero, so that a disabled fault does not change the rest of a run.
        probability.0 != 0 && self.number() % u64::from(ONE) < u64::from(probability.0)
    }

    /// One of the choices.
    ///
    /// # Panics
    /// If there is no choice.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        assert!(!choices.is_empty(), "nothing to choose from");
        &choices[self.within(0..=choices.len() - 1)]
    }

    /// An independent generator, for a part of the run that draws at its own pace.
    pub fn fork(&mut self) -> Self {
        Self(self.number())
    }
}

/// A probability in thousandths. Default: never.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Probability(u16);

impl Probability {
    /// Never.
    pub const NEVER: Self = Self(0);
    /// Always.
    pub const ALWAYS: Self = Self(ONE);

    /// So many times in a thousand, at most 1,000.
    pub const fn per_mille(n: u16) -> Self {
        Self(if n < ONE { n } else { ONE })
    }
}

const ONE: u16 = 1000;
