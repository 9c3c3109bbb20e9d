//! Which URLs are known, and what was said about them: a few bytes for each URL of a run. Pure.
//!
//! The keys are hashes of 128 bits with a seed that is drawn for the run: nobody can choose URLs whose hashes are the same,
//! and two URLs of a run have the same hash with a probability that does not matter (10^-24 for 10^7 URLs).
//!
//! The map is a linear hash table: many small buckets, of which one is split at a time when there are too many URLs for
//! all. So the memory is that of the URLs, some 25 bytes for each, and at no time are there two copies of all.

use std::collections::HashMap;

use crate::record::Said;
use store::Demand;

/// All URLs of a run.
pub(super) struct Urls {
    /// Of `n` buckets, the one of a hash is named by its last bits: as many as number `n` buckets, or one less if they
    /// name a bucket that is not there yet.
    buckets: Vec<Vec<Slot>>,
    len: usize,
    /// What was said about URLs: few different things about very many URLs.
    said: Vec<Said>,
    numbers: HashMap<Said, u16>,
}

/// What is known about a URL.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Known {
    /// The URL waits or is asked: its place among those that are.
    Waiting(u32),
    /// This was said, and this is wanted by all places.
    Said(Said, Demand),
}

/// A URL in its bucket, without gaps.
#[derive(Clone, Copy)]
struct Slot {
    hash: [u8; 16],
    value: [[u8; 2]; 3],
}

/// [`Known`] in six bytes: flags, then the number of what was said and the depth; or the halves of a place.
type Value = [u16; 3];

const WAITING: u16 = 1;
const GIVEN: u16 = 2;
const PRIVATE: u16 = 4;
const LINKS: u16 = 8;

impl Urls {
    pub(super) fn new() -> Self {
        Self {
            buckets: vec![Vec::new()],
            len: 0,
            said: Vec::new(),
            numbers: HashMap::new(),
        }
    }

    /// What is known about the URL with this hash.
    pub(super) fn get(&self, hash: u128) -> Option<Known> {
        let bucket = &self.buckets[self.bucket(hash)];
        let hash = hash.to_ne_bytes();
        let slot = bucket.iter().find(|slot| slot.hash == hash)?;
        Some(self.read(slot.value.map(u16::from_ne_bytes)))
    }

    /// Notes what is known about a URL by now.
    pub(super) fn insert(&mut self, hash: u128, known: Known) {
        let value = self.write(known).map(u16::to_ne_bytes);
        let bucket = self.bucket(hash);
        let key = hash.to_ne_bytes();
        // A URL that was asked is one of the last.
        let mut slots = self.buckets[bucket].iter_mut().rev();
        match slots.find(|slot| slot.hash == key) {
            Some(slot) => slot.value = value,
            None => self.add(hash, known),
        }
    }

    /// Notes what is known about a URL that is new.
    pub(super) fn add(&mut self, hash: u128, known: Known) {
        let value = self.write(known).map(u16::to_ne_bytes);
        let bucket = self.bucket(hash);
        let hash = hash.to_ne_bytes();
        push(&mut self.buckets[bucket], Slot { hash, value });
        self.len += 1;
        if self.len > self.buckets.len() * BUCKET {
            self.split();
        }
    }

    /// The bucket of a hash.
    fn bucket(&self, hash: u128) -> usize {
        let mask = self.buckets.len().next_power_of_two() - 1;
        let bucket = hash as usize & mask;
        match bucket < self.buckets.len() {
            true => bucket,
            false => bucket & (mask >> 1),
        }
    }

    /// Makes the next bucket, from the one that had its hashes.
    fn split(&mut self) {
        let new = self.buckets.len();
        let old = new & !(1 << new.ilog2());
        self.buckets.push(Vec::new());
        for slot in std::mem::take(&mut self.buckets[old]) {
            let bucket = self.bucket(u128::from_ne_bytes(slot.hash));
            push(&mut self.buckets[bucket], slot);
        }
    }

    fn read(&self, [flags, first, second]: Value) -> Known {
        if flags & WAITING != 0 {
            return Known::Waiting(u32::from(first) << 16 | u32::from(second));
        }
        let demand = Demand {
            given: flags & GIVEN != 0,
            private: flags & PRIVATE != 0,
            links: flags & LINKS != 0,
            depth: second,
        };
        Known::Said(self.said[usize::from(first)], demand)
    }

    fn write(&mut self, known: Known) -> Value {
        match known {
            Known::Waiting(place) => [WAITING, (place >> 16) as u16, place as u16],
            Known::Said(said, demand) => {
                let flag = |is_set: bool, flag| if is_set { flag } else { 0 };
                let flags = flag(demand.given, GIVEN)
                    | flag(demand.private, PRIVATE)
                    | flag(demand.links, LINKS);
                [flags, self.number(said), demand.depth]
            }
        }
    }

    fn number(&mut self, said: Said) -> u16 {
        if let Some(&number) = self.numbers.get(&said) {
            return number;
        }
        // A server can invent statuses. Without them, there are less than 8,000 things to say.
        if said.status.is_some() && self.said.len() >= MOST_WITH_STATUS {
            return self.number(Said {
                status: None,
                ..said
            });
        }
        let number = u16::try_from(self.said.len()).unwrap_or(u16::MAX);
        self.said.push(said);
        self.numbers.insert(said, number);
        number
    }
}

/// Buckets grow by a few places at a time, not to the double size.
fn push(bucket: &mut Vec<Slot>, slot: Slot) {
    if bucket.len() == bucket.capacity() {
        bucket.reserve_exact(4);
    }
    bucket.push(slot);
}

/// URLs in a bucket in the mean. A search compares as many hashes.
const BUCKET: usize = 40;

/// The largest number of different things said that have a status.
const MOST_WITH_STATUS: usize = 57_000;

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::record::Standing;
    use plain::random::Random;
    use verdict::{Cause, Verdict};

    fn said(status: u16) -> Said {
        Said {
            verdict: Verdict::Failed(Cause::Status4xx(status)),
            status: Some(status),
            standing: Standing::Warns,
            is_redirected: status.is_multiple_of(2),
            is_moved: false,
        }
    }

    #[test]
    fn what_is_noted_is_known() {
        let (mut urls, mut model) = (Urls::new(), HashMap::new());
        let mut random = Random::new(3);
        for round in 0..60_000u32 {
            let number = u128::from(random.next_number() % 20_000);
            // Some hashes have the same last bits, and one is zero.
            let hash = match number % 3 {
                0 if number < 600 => number << 64,
                _ => number.wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835),
            };
            let known = match round % 3 {
                0 => Known::Waiting(round << 11),
                _ => {
                    let demand = Demand {
                        given: round & 4 != 0,
                        private: round & 8 != 0,
                        links: round & 16 != 0,
                        depth: round as u16,
                    };
                    Known::Said(said(400 + (round % 99) as u16), demand)
                }
            };
            assert_eq!(urls.get(hash), model.get(&hash).copied());
            urls.insert(hash, known);
            model.insert(hash, known);
        }
        for (hash, known) in model {
            assert_eq!(urls.get(hash), Some(known));
        }
    }

    #[test]
    fn memory_follows_the_number_of_urls() {
        let mut urls = Urls::new();
        let mut random = Random::new(5);
        let count = 300_000;
        for _ in 0..count {
            let [high, low] = [(); 2].map(|()| u128::from(random.next_number()));
            urls.insert(high << 64 | low, Known::Waiting(0));
        }
        let room = urls.buckets.iter().map(Vec::capacity).sum::<usize>() * size_of::<Slot>();
        let bytes = room + urls.buckets.capacity() * size_of::<Vec<Slot>>();
        assert!(bytes < count * 26, "{bytes}");
        let longest = urls.buckets.iter().map(Vec::len).max();
        assert!(longest < Some(4 * BUCKET), "{longest:?}");
        assert_eq!((urls.len, urls.buckets.len()), (count, count / BUCKET));
    }

    #[test]
    fn a_server_that_invents_statuses_is_cut_short() {
        let mut urls = Urls::new();
        for status in 0..=u16::MAX {
            let said = Said {
                status: Some(status),
                ..said(404)
            };
            urls.insert(1, Known::Said(said, Demand::default()));
        }
        let expected = Said {
            status: None,
            ..said(404)
        };
        assert_eq!(urls.get(1), Some(Known::Said(expected, Demand::default())));
    }
}
