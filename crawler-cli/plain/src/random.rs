//! Random numbers for pauses: not for secrets, and the same again for the same seed.

use std::hash::{BuildHasher as _, DefaultHasher, Hash as _, Hasher as _, RandomState};

/// A sequence of random numbers (SplitMix64).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence of this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number, evenly distributed.
    pub fn next_number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

/// A seed that differs between runs: the standard library's hasher keys are random.
pub fn fresh_seed() -> u64 {
    RandomState::new().hash_one(0u8)
}

/// A seed that differs between hosts.
pub fn seed_of_host(seed: u64, host: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (seed, host).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_names_a_sequence() {
        let numbers = |seed| {
            let mut random = Random::new(seed);
            [(); 3].map(|()| random.next_number())
        };
        assert_eq!(numbers(7), numbers(7));
        assert_ne!(numbers(7), numbers(8));
        assert_ne!(seed_of_host(7, "http://a/"), seed_of_host(7, "http://b/"));
        assert_ne!(fresh_seed(), fresh_seed());
    }
}
