//! A filter in front of the table of keys: most keys that are looked up are new, and a look at the table costs a page.

/// Tells most keys that are not in a set, and never denies one that is (a Bloom filter whose bits of a key are in one
/// word). It has 10 bits a key, and lets 2 to 3 % of the others through when it is full.
#[derive(Debug)]
pub(super) struct Filter {
    words: Vec<u64>,
    count: usize,
    room: usize,
}

impl Filter {
    /// A filter for this many keys.
    pub(super) fn with_room(room: usize) -> Self {
        Self {
            words: vec![0; room / 64 * 10 + 10],
            count: 0,
            room,
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.count >= self.room
    }

    pub(super) fn insert(&mut self, key: i64) {
        let (place, bits) = self.place(key);
        self.words[place] |= bits;
        self.count += 1;
    }

    /// Whether the key may have been inserted.
    pub(super) fn may_have(&self, key: i64) -> bool {
        let (place, bits) = self.place(key);
        self.words[place] & bits == bits
    }

    /// The word and the four bits of a key. Keys are hashes: the upper bits choose the word, so that keys in their order
    /// go to words in their order, the lower ones the bits.
    fn place(&self, key: i64) -> (usize, u64) {
        let hash = (key as u64) ^ (1 << 63);
        let place = (u128::from(hash) * self.words.len() as u128) >> 64;
        let bits = [0, 6, 12, 18].map(|shift| 1 << (hash >> shift & 63));
        (
            place as usize,
            bits.into_iter().fold(0, |all, bit: u64| all | bit),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plain::random::Random;

    #[test]
    fn what_was_inserted_is_never_denied_and_most_else_is() {
        let mut random = Random::new(7);
        let mut keys = || random.next_number() as i64;
        let inserted: Vec<i64> = (0..10_000).map(|_| keys()).collect();
        let mut filter = Filter::with_room(inserted.len());
        for &key in &inserted {
            assert!(!filter.is_full());
            filter.insert(key);
        }
        assert!(filter.is_full());
        assert!(inserted.iter().all(|&key| filter.may_have(key)));
        let others = (0..10_000).filter(|_| filter.may_have(keys())).count();
        assert!(others < 400, "{others}");
        for edge in [i64::MIN, -1, 0, i64::MAX] {
            filter.insert(edge);
            assert!(filter.may_have(edge));
        }
    }
}
