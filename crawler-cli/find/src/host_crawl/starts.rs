//! The directories of a host below which the crawl may go.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;

use listing::path;

/// The starts of a host crawl, identified by their index.
#[derive(Debug, Default)]
pub(super) struct Starts {
    all: Vec<Start>,
    by_directory: HashMap<Arc<str>, usize>,
    /// The number of starts that were given; further starts were added by links.
    given: usize,
}

#[derive(Debug)]
struct Start {
    /// The canonical path of the directory, ending in `/`.
    directory: Arc<str>,
    /// The directory, decoded.
    path: Vec<u8>,
    /// Whether the start is itself a finding, and not only a directory that links may lead to.
    is_found: bool,
}

impl Starts {
    /// Returns the start at this directory (a canonical path that ends in `/`), and adds it if necessary.
    pub(super) fn add(&mut self, directory: &str) -> usize {
        if let Some(number) = self.at(directory) {
            return number;
        }
        let number = self.all.len();
        let shared: Arc<str> = directory.into();
        self.by_directory.insert(Arc::clone(&shared), number);
        self.all.push(Start {
            directory: shared,
            path: path::decode(directory),
            is_found: false,
        });
        number
    }

    /// Makes the start a finding. Returns whether it was one before.
    pub(super) fn mark_found(&mut self, number: usize) -> bool {
        mem::replace(&mut self.all[number].is_found, true)
    }

    /// The start at exactly this directory.
    pub(super) fn at(&self, directory: &str) -> Option<usize> {
        self.by_directory.get(directory).copied()
    }

    /// Whether there is a start at this directory that is itself a finding.
    pub(super) fn is_found_at(&self, directory: &str) -> bool {
        self.at(directory)
            .is_some_and(|start| self.all[start].is_found)
    }

    /// The innermost start that contains this path.
    pub(super) fn innermost(&self, canonical: &str) -> Option<usize> {
        path::directories(canonical).find_map(|directory| self.at(directory))
    }

    pub(super) fn directory(&self, number: usize) -> &str {
        &self.all[number].directory
    }

    /// The directory, decoded.
    pub(super) fn path(&self, number: usize) -> &[u8] {
        &self.all[number].path
    }

    pub(super) fn contains(&self, number: usize) -> bool {
        number < self.all.len()
    }

    /// Counts all present starts as given: a later run is given them again.
    pub(super) fn note_given(&mut self) {
        self.given = self.all.len();
    }

    /// The starts that were added later, and whether each is itself a finding.
    pub(super) fn added(&self) -> Vec<(String, bool)> {
        let added = self.all[self.given..].iter();
        let added = added.map(|start| (start.directory.to_string(), start.is_found));
        added.collect()
    }

    /// Adds the starts that an earlier run had added.
    pub(super) fn restore(&mut self, added: Vec<(String, bool)>) {
        self.note_given();
        for (directory, is_found) in added {
            let number = self.add(&directory);
            self.all[number].is_found |= is_found;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_that_links_have_added_come_back() {
        let mut starts = Starts::default();
        starts.add("/a/");
        starts.note_given();
        let late = starts.add("/%C3%A9/");
        starts.mark_found(late);
        let mut again = Starts::default();
        again.add("/a/");
        again.restore(starts.added());
        assert_eq!(again.added(), [("/%C3%A9/".to_owned(), true)]);
        assert_eq!(again.path(late), "/é/".as_bytes());
    }
}
