//! The directories of a host that the crawl may go below.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;

use crate::find::path;

/// The starts of a crawl, each named by a number.
#[derive(Debug, Default)]
pub(super) struct Starts {
    all: Vec<Start>,
    by_directory: HashMap<Arc<str>, usize>,
    /// How many were given, and not added by links.
    given: usize,
}

#[derive(Debug)]
struct Start {
    /// The directory's canonical path, ending in `/`.
    directory: Arc<str>,
    /// The same, decoded.
    path: Vec<u8>,
    /// It is one of the things to be found; and not only the place that links may lead to.
    is_found: bool,
}

impl Starts {
    /// The start at this directory, which may be new: a canonical path that ends in `/`.
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

    /// Makes the start one of the things to be found. Returns whether it was one before.
    pub(super) fn mark_found(&mut self, number: usize) -> bool {
        mem::replace(&mut self.all[number].is_found, true)
    }

    /// The start at exactly this directory.
    pub(super) fn at(&self, directory: &str) -> Option<usize> {
        self.by_directory.get(directory).copied()
    }

    /// Whether there is a start at this directory that is found by itself.
    pub(super) fn is_found_at(&self, directory: &str) -> bool {
        self.at(directory)
            .is_some_and(|start| self.all[start].is_found)
    }

    /// The start that holds this path and no further start that does.
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

    /// All that are there by now were given, and another run of the crawl is given them as well.
    pub(super) fn note_given(&mut self) {
        self.given = self.all.len();
    }

    /// The directories that were added since then, and whether each is found.
    pub(super) fn added(&self) -> Vec<(String, bool)> {
        let added = self.all[self.given..].iter();
        let added = added.map(|start| (start.directory.to_string(), start.is_found));
        added.collect()
    }

    /// Adds those that an earlier run had added.
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
    fn the_innermost_start_holds_a_path() {
        let mut starts = Starts::default();
        let (a, b) = (starts.add("/a/"), starts.add("/a/b/"));
        assert_eq!(starts.add("/a/"), a);
        for (path, start) in [
            ("/a/", Some(a)),
            ("/a/x", Some(a)),
            ("/a/b", Some(a)),
            ("/a/b/c/x", Some(b)),
            ("/b/", None),
        ] {
            assert_eq!(starts.innermost(path), start, "{path}");
        }
        assert!(!starts.mark_found(b) && starts.mark_found(b));
        assert!(starts.is_found_at("/a/b/") && !starts.is_found_at("/a/"));
    }

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
