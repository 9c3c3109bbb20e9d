//! The names that a large page had so far, as 64-bit hashes: 16 bytes for each name, about.

use std::collections::HashSet;
use std::hash::BuildHasherDefault;

use super::children::AlreadyHashed;

/// A set of hashes. It is many small sets, so that the memory does not double when it grows.
#[derive(Debug, Default)]
pub(super) struct NameSet {
    parts: Vec<HashSet<u64, BuildHasherDefault<AlreadyHashed>>>,
}

impl NameSet {
    pub(super) fn insert(&mut self, hash: u64) {
        if self.parts.is_empty() {
            self.parts.resize_with(PARTS, HashSet::default);
        }
        self.parts[part(hash)].insert(hash);
    }

    pub(super) fn contains(&self, hash: u64) -> bool {
        let part = self.parts.get(part(hash));
        part.is_some_and(|part| part.contains(&hash))
    }
}

/// The other bits of the hash decide about the place in the part.
fn part(hash: u64) -> usize {
    ((hash >> 32) % PARTS as u64) as usize
}

const PARTS: usize = 256;
