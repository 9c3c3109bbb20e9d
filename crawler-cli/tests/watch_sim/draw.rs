//! Random decisions of simulations, from a seed.

use plain::random::Random;

/// Draws random decisions. Times are in seconds.
pub(crate) struct Draw(pub(crate) Random);

impl Draw {
    /// From 0 to 1.
    pub(crate) fn luck(&mut self) -> f64 {
        (self.0.next_number() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub(crate) fn chance(&mut self, share: f64) -> bool {
        self.luck() < share
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.luck() * limit as f64) as usize
    }

    pub(crate) fn time(&mut self, from: i64, to: i64) -> i64 {
        from + (self.luck() * (to - from) as f64) as i64
    }
}

pub(crate) const MINUTE: i64 = 60;
pub(crate) const HOUR: i64 = 60 * MINUTE;
pub(crate) const DAY: i64 = 24 * HOUR;
