//! The rejected-URL filter: knows most URLs that are not rejected without a look at their rows.
//!
//! A URL is rejected while it is `GONE` or `PRUNED` and not due. The filter is asked only when URLs are submitted. What the filter
//! says yes to is looked up; what it says no to is surely not rejected. So a filter that says yes to everything gives
//! the same results, and a filter that is missing, old or damaged is no error: that is what it is replaced with until it
//! is built again from the store.
//!
//! The filter is a split-block Bloom filter (Putze, Sanders, Singler 2007; Apache Parquet's `BloomFilter.md`): a key sets one bit in each of the
//! eight words of one block of 32 bytes, one line of a cache. With 17 bits a key about 0.1 % of other URLs get a yes. Keys
//! are never taken out: a URL that came back gets a yes until the filter is built again.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use plain::files::{beside, replace};

/// What the name of the file of the filter ends with.
pub(crate) const REJECTED: &str = "-rejected";

/// The key of a URL.
pub(crate) fn key_of(url: &str) -> u128 {
    xxh3_128(url.as_bytes())
}

/// Tells most keys that are not in a set, and never denies one that is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Rejected {
    /// Empty: the filter says yes to everything.
    blocks: Vec<[u32; 8]>,
    /// How many keys were inserted.
    count: u64,
    /// How many keys it is made for.
    room: u64,
}

/// Up to where in the changes of state a filter has the URLs that were rejected.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Covered {
    /// The cursor of the last change.
    pub cursor: i64,
    /// A hash of that change: the same cursor of another store is another change.
    pub change: u64,
}

impl Rejected {
    /// A filter that says yes to everything.
    pub(crate) fn everything() -> Self {
        Self {
            blocks: Vec::new(),
            count: 0,
            room: 0,
        }
    }

    /// An empty filter for this many keys, and at least some thousand.
    pub(crate) fn with_room(room: u64) -> Self {
        let room = room.clamp(LEAST, MOST);
        let blocks = (room * BITS).div_ceil(256);
        Self {
            blocks: vec![[0; 8]; usize::try_from(blocks).unwrap_or(1)],
            count: 0,
            room,
        }
    }

    /// Whether the filter says yes to everything.
    pub(crate) fn is_everything(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Whether more keys were inserted than it is made for: it says yes more often than it should.
    pub(crate) fn is_full(&self) -> bool {
        !self.is_everything() && self.count > self.room
    }

    pub(crate) fn insert(&mut self, key: u128) {
        if self.is_everything() {
            return;
        }
        let (place, bits) = self.place(key);
        for (word, bit) in self.blocks[place].iter_mut().zip(bits) {
            *word |= bit;
        }
        self.count += 1;
    }

    /// Whether the key may have been inserted.
    pub(crate) fn may_have(&self, key: u128) -> bool {
        if self.is_everything() {
            return true;
        }
        let (place, bits) = self.place(key);
        let block = self.blocks[place];
        block.iter().zip(bits).all(|(word, bit)| word & bit != 0)
    }

    /// The block of a key, and its bit in each word.
    fn place(&self, key: u128) -> (usize, [u32; 8]) {
        let upper = key >> 64;
        let place = (upper * self.blocks.len() as u128) >> 64;
        let bits = SALTS.map(|salt| 1 << ((key as u32).wrapping_mul(salt) >> 27));
        (place as usize, bits)
    }

    /// The content of the file: all numbers little-endian, with a hash of what is before it at the end.
    fn to_bytes(&self, covered: Covered) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD + self.blocks.len() * 32 + 8);
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(HASH);
        let blocks = self.blocks.len() as u64;
        for number in [
            blocks,
            self.count,
            self.room,
            covered.cursor as u64,
            covered.change,
        ] {
            bytes.extend(number.to_le_bytes());
        }
        for word in self.blocks.iter().flatten() {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(xxh3_64(&bytes).to_le_bytes());
        bytes
    }

    /// `None` for anything but what [`Rejected::to_bytes`] makes.
    fn from_bytes(bytes: &[u8]) -> Option<(Self, Covered)> {
        let (content, hash) = bytes.split_last_chunk::<8>()?;
        if xxh3_64(content) != u64::from_le_bytes(*hash) {
            return None;
        }
        let rest = content.strip_prefix(&MAGIC[..])?;
        let rest = rest.strip_prefix(&VERSION.to_le_bytes()[..])?;
        let mut rest = rest.strip_prefix(&HASH[..])?;
        let mut numbers = [0; 5];
        for number in &mut numbers {
            let (first, others) = rest.split_first_chunk::<8>()?;
            (*number, rest) = (u64::from_le_bytes(*first), others);
        }
        let [blocks, count, room, cursor, change] = numbers;
        let (words, odd) = rest.as_chunks::<32>();
        if !odd.is_empty() || words.len() as u64 != blocks || words.is_empty() {
            return None;
        }
        let block = |bytes: &[u8; 32]| {
            let (words, _) = bytes.as_chunks::<4>();
            std::array::from_fn(|place| u32::from_le_bytes(words[place]))
        };
        let rejected = Self {
            blocks: words.iter().map(block).collect(),
            count,
            room,
        };
        let covered = Covered {
            cursor: cursor as i64,
            change,
        };
        Some((rejected, covered))
    }

    /// Replaces the file of the store with this database. After a crash the file is the old one or the new one.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn save(&self, database: &Path, covered: Covered) -> io::Result<()> {
        let path = file_of(database);
        let bytes = self.to_bytes(covered);
        replace(&path, &beside(&path, ".new"), 0o600, &bytes)
    }

    /// Reads the file of the store with this database. `None` if there is none, or it is not what was written.
    pub(crate) fn load(database: &Path) -> Option<(Self, Covered)> {
        let path = file_of(database);
        let length = fs::metadata(&path).ok()?.len();
        // Not ours: no filter is as large.
        if length > MOST * BITS / 8 + 4096 {
            return None;
        }
        Self::from_bytes(&fs::read(&path).ok()?)
    }
}

/// The file of the filter.
fn file_of(database: &Path) -> PathBuf {
    beside(database, REJECTED)
}

const MAGIC: [u8; 8] = *b"Crsr-rej";
const VERSION: u32 = 1;
const HASH: [u8; 12] = *b"xxh3-128/sbb";
const HEAD: usize = 64;
/// Bits a key: some 0.1 % of other keys get a yes.
const BITS: u64 = 17;
/// The room of a filter for a store that rejects nothing: 17 KiB.
const LEAST: u64 = 8192;
/// The memory has a limit: 270 MiB. With more keys the filter says yes more often.
const MOST: u64 = 1 << 27;
/// The factors that choose the bits: those of Apache Parquet.
const SALTS: [u32; 8] = [
    0x47b6_137b,
    0x4497_4d91,
    0x8824_ad5b,
    0xa2b7_289d,
    0x7054_95c7,
    0x2df1_424b,
    0x9efc_4947,
    0x5c6b_fb31,
];

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u64) -> u128 {
        key_of(&format!("http://a/{number}"))
    }

    fn filled() -> Rejected {
        let mut filter = Rejected::with_room(20_000);
        for number in 0..20_000 {
            assert!(!filter.is_full());
            filter.insert(key(number));
        }
        filter
    }

    const COVERED: Covered = Covered {
        cursor: 7,
        change: 0x1234,
    };

    #[test]
    fn what_was_inserted_is_never_denied_and_most_else_is() {
        let filter = filled();
        assert!((0..20_000).all(|number| filter.may_have(key(number))));
        let wrong = (20_000..120_000)
            .filter(|&number| filter.may_have(key(number)))
            .count();
        assert!(wrong < 200, "{wrong} of 100,000");
    }

    #[test]
    fn a_filter_without_bits_says_yes() {
        let mut filter = Rejected::everything();
        filter.insert(key(1));
        assert!(filter.may_have(key(2)) && !filter.is_full());
    }

    #[test]
    fn a_filter_with_too_many_keys_says_so() {
        let mut filter = Rejected::with_room(0);
        (0..=LEAST).for_each(|number| filter.insert(key(number)));
        assert!(filter.is_full());
    }

    #[test]
    fn the_file_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let database = folder.path().join("urls.db");
        assert_eq!(Rejected::load(&database), None);
        let filter = filled();
        filter.save(&database, COVERED).expect("written");
        assert_eq!(Rejected::load(&database), Some((filter, COVERED)));
        let names = fs::read_dir(folder.path()).expect("readable").count();
        assert_eq!(names, 1);
    }

    #[test]
    fn any_damage_is_no_filter() {
        let bytes = Rejected::with_room(0).to_bytes(COVERED);
        assert!(Rejected::from_bytes(&bytes).is_some());
        for place in (0..bytes.len()).step_by(97).chain(0..HEAD) {
            let mut damaged = bytes.clone();
            damaged[place] ^= 0x10;
            assert_eq!(Rejected::from_bytes(&damaged), None, "byte {place}");
            assert_eq!(Rejected::from_bytes(&bytes[..place]), None, "{place} bytes");
        }
        // Another version, with the right hash.
        let mut newer = bytes[..bytes.len() - 8].to_vec();
        newer[8] += 1;
        newer.extend(xxh3_64(&newer).to_le_bytes());
        assert_eq!(Rejected::from_bytes(&newer), None);
    }

    #[test]
    fn the_format_does_not_change() {
        let mut filter = Rejected::with_room(0);
        filter.insert(key_of("https://example.com/"));
        let hash = xxh3_64(&filter.to_bytes(COVERED));
        assert_eq!(hash, FORMAT, "{hash:#x}");
    }

    /// The hash of a file of version 1.
    const FORMAT: u64 = 0x197b_b8c9_81de_cab7;
}
