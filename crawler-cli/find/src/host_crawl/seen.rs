//! The set of URLs that a crawl knows of its host. Fingerprints take less memory than the URLs.

use std::collections::hash_map::{DefaultHasher, RandomState};
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher as _, Hash as _, Hasher as _};

use listing::Entry;

/// The known URLs of a host. All spellings of a URL share one key.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Everything that was queued, found or left out.
    known: HashSet<u128>,
    /// Further pages of directories.
    pages: HashSet<u128>,
    /// Directories of several pages, each with the fingerprint of a page.
    parts: HashSet<u128>,
    /// Redirects of pages and their targets. At most one for each page.
    moves: HashMap<u128, u128>,
    /// Keys of the fingerprints.
    seeds: [u64; 2],
}

impl Seen {
    /// An empty set.
    pub(super) fn new() -> Self {
        Self {
            // Random in the same way as the keys of the standard library's maps.
            seeds: [0; 2].map(|_: u64| RandomState::new().hash_one(0)),
            ..Self::default()
        }
    }

    /// Takes over the set of an earlier run.
    pub(super) fn restore(&mut self, seeds: [u64; 2], known: Vec<u128>) {
        self.seeds = seeds;
        self.known = known.into_iter().collect();
    }

    /// Adds a key. Returns its fingerprint if it is new.
    pub(super) fn insert(&mut self, key: &str) -> Option<u128> {
        let fingerprint = self.fingerprint(key);
        self.known.insert(fingerprint).then_some(fingerprint)
    }

    pub(super) fn contains(&self, key: &str) -> bool {
        self.known.contains(&self.fingerprint(key))
    }

    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    pub(super) fn fingerprints(&self) -> impl Iterator<Item = u128> {
        self.known.iter().copied()
    }

    pub(super) fn seeds(&self) -> [u64; 2] {
        self.seeds
    }

    /// Adds a further page of a directory. Returns whether it is new.
    pub(super) fn insert_page(&mut self, target: &str) -> bool {
        let fingerprint = self.fingerprint(target);
        self.pages.insert(fingerprint)
    }

    /// Adds a page of a directory with several pages. Returns whether no earlier one lists the same.
    pub(super) fn insert_part(&mut self, directory: &str, listing: u64) -> bool {
        let fingerprint = self.fingerprint(&format!("{listing:x} {directory}"));
        self.parts.insert(fingerprint)
    }

    pub(super) fn pages(&self) -> usize {
        self.pages.len()
    }

    /// Records a redirect. Returns whether the known redirects, of which at most `most` are followed, lead back to
    /// `from`.
    pub(super) fn insert_move(&mut self, from: &str, to: &str, most: u32) -> bool {
        let [from, to] = [from, to].map(|url| self.fingerprint(url));
        self.moves.insert(from, to);
        let mut next = Some(to);
        for _ in 0..=most {
            match next {
                Some(next) if next == from => return true,
                Some(at) => next = self.moves.get(&at).copied(),
                None => break,
            }
        }
        false
    }

    /// A fingerprint of all entries of a listing.
    pub(super) fn listing(&self, entries: &[Entry]) -> u64 {
        let mut hasher = self.hasher(0);
        for entry in entries {
            (&entry.name, entry.size, entry.modified).hash(&mut hasher);
        }
        hasher.finish()
    }

    /// A fingerprint of 128 bits, from two keyed hashes: a collision is improbable even among 10^9 keys.
    fn fingerprint(&self, key: &str) -> u128 {
        let hash = |seed| {
            let mut hasher = self.hasher(seed);
            key.hash(&mut hasher);
            u128::from(hasher.finish())
        };
        (hash(0) << 64) | hash(1)
    }

    /// A hasher keyed with one of the seeds.
    fn hasher(&self, seed: usize) -> DefaultHasher {
        let mut hasher = DefaultHasher::new();
        self.seeds[seed].hash(&mut hasher);
        hasher
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_is_known_again_by_another_crawl() {
        let mut seen = Seen::new();
        let fingerprint = seen.insert("/a/").expect("new");
        assert_eq!(seen.insert("/a/"), None);
        let mut again = Seen::new();
        assert!(!again.contains("/a/"));
        again.restore(seen.seeds(), vec![fingerprint]);
        assert!(again.contains("/a/") && !again.contains("/b/"));
        assert_eq!(again.fingerprints().collect::<Vec<_>>(), [fingerprint]);
    }
}
