//! The checksums of the files to download: which lists the servers have, and what those that were read say. The lists are
//! read on demand; lists that were read are forgotten when there are too many. No I/O.

use std::collections::{HashMap, HashSet};

use super::sums::{DIRECTORY_LISTS, FILE_SUFFIXES, ListKind, Sum, Sums, kind_of};
use crate::crawl::file_names::fnv1a;
use crate::find::path;

/// The lists of checksums of a search.
#[derive(Debug, Default)]
pub(super) struct Checks {
    /// Hashes of the URLs of all lists that were found.
    listed: HashSet<u64>,
    /// The lists that were read, by their URLs; `None`: could not be read.
    read: HashMap<String, Option<Sums>>,
    /// The number of names in them.
    names: usize,
}

/// What is known about the checksum of a file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Lookup {
    /// The checksum; `None` if no list has the file.
    Known(Option<Sum>),
    /// This list has to be read first.
    Ask(String),
    /// This list is there, but could not be read.
    Unread(String),
}

impl Checks {
    /// Notes a file that was found on the server, if it is a list.
    pub(super) fn note(&mut self, url: &str) {
        let name = url.rsplit('/').next().unwrap_or(url);
        if kind_of(&path::decode(name)).is_some() && self.listed.len() < MOST_LISTS {
            self.listed.insert(fnv1a(url.as_bytes()));
        }
    }

    /// Looks a file up.
    pub(super) fn look_up(&self, url: &str) -> Lookup {
        let (folder, name) = match url.rfind('/') {
            Some(at) => url.split_at(at + 1),
            None => ("", url),
        };
        let of_file = FILE_SUFFIXES.iter().map(|suffix| {
            let suffix = String::from_utf8_lossy(suffix);
            (format!("{url}{suffix}"), ListKind::File)
        });
        let of_folder = DIRECTORY_LISTS.iter().map(|list| {
            let list = String::from_utf8_lossy(list);
            (format!("{folder}{list}"), ListKind::Directory)
        });
        let name = path::decode(name);
        for (list, kind) in of_file.chain(of_folder) {
            if list == url || !self.listed.contains(&fnv1a(list.as_bytes())) {
                continue;
            }
            match self.read.get(&list) {
                None => return Lookup::Ask(list),
                Some(None) => return Lookup::Unread(list),
                Some(Some(sums)) => {
                    if let Some(sum) = sums.of(&name, kind) {
                        return Lookup::Known(Some(sum));
                    }
                }
            }
        }
        Lookup::Known(None)
    }

    /// Takes a list that was read; `None`: it could not be read.
    pub(super) fn take(&mut self, list: String, text: Option<&[u8]>) {
        // A page that says that the list is not there has no checksums either.
        let sums = text.map(Sums::parse).filter(|sums| !sums.is_empty());
        let names = sums.as_ref().map_or(1, Sums::len);
        if self.names.saturating_add(names) > MOST_NAMES {
            self.read.clear();
            self.names = 0;
        }
        self.names += names;
        self.read.insert(list, sums);
    }
}

/// The most lists of which the URLs are remembered, in 16 bytes each. Files of further lists are not checked.
const MOST_LISTS: usize = 4_000_000;
/// The most names of lists that were read.
const MOST_NAMES: usize = 200_000;
