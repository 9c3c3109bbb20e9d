//! A mirror: a folder of downloads from which files are deleted that are gone on the server. What was put there by earlier
//! runs is in the [`record`]; the [`guard`] decides whether anything is deleted; this file performs that.
//!
//! A file is gone if the listing of its directory was read in this run and does not have it, or if its directory is gone.
//! So nothing is deleted below a directory that was left out, or outside the starts of the search.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use super::disk::{Existing, FileMetadata, Removed, Root};
use super::names::{Base, Name};
use guard::judge;
use record::{Fate, Record, Seen};
pub(super) use record::{Known, Put};

mod about;
mod guard;
mod record;

pub(in crate::find) use about::About;
pub(in crate::find) use guard::Outcome;
pub use guard::{MostDeleted, Refusal};
pub(in crate::find) use record::RecordError;

/// What a mirror does beside downloads.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum MirrorEvent<'a> {
    /// In a dry run: this file would be downloaded.
    WouldDownload {
        /// The URL of the file.
        url: &'a str,
        /// The path on disk.
        file: &'a Path,
    },
    /// In a dry run: this file would be deleted.
    WouldDelete(&'a Path),
    /// This file was deleted: it is gone on the server.
    Deleted(&'a Path),
    /// This file is gone on the server, but was left: it is not as the mirror has put it there.
    Left(&'a Path),
    /// This file is gone on the server, but could not be deleted.
    NotDeleted(&'a Path, &'a io::Error),
    /// Nothing was deleted, although files are gone on the server.
    Refused(&'a Refusal),
}

/// What was seen of a server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::find) enum Sighting {
    File,
    Directory,
    /// A directory whose listing was read.
    Read,
    /// A name that may be a file or a directory, and that nobody asks about.
    Name,
}

/// The deletions of a mirror.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(in crate::find) struct Deletions {
    /// Files that were deleted.
    pub(in crate::find) deleted: u64,
    /// Files that are gone on the server and should have been deleted.
    pub(in crate::find) refused: u64,
}

/// The mirror of one search.
#[derive(Debug)]
pub(in crate::find) struct Mirror {
    record: Record,
    most: MostDeleted,
    /// Why the record could not be written or read.
    broken: Option<String>,
    deletions: Deletions,
    stage: Stage,
}

/// How far the deletions are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Stage {
    /// Nothing is deleted yet.
    Open,
    /// So many files were deleted that were in the way of other ones, which are downloaded now.
    Cleared(u64),
    /// It is decided what is deleted.
    Settled,
}

impl Mirror {
    /// Opens the record of the folder.
    pub(super) fn open(
        folder: &Path,
        about: &About,
        most: MostDeleted,
        dry: bool,
    ) -> Result<Self, RecordError> {
        Ok(Self {
            record: Record::open(folder, about, dry)?,
            most,
            broken: None,
            deletions: Deletions::default(),
            stage: Stage::Open,
        })
    }

    /// Whether the folder is not the mirror of another search.
    pub(super) fn check_search(folder: &Path, about: &About, dry: bool) -> Result<(), RecordError> {
        Record::check(folder, about, dry)
    }

    pub(in crate::find) fn deletions(&self) -> Deletions {
        self.deletions
    }

    pub(in crate::find) fn is_settled(&self) -> bool {
        self.stage == Stage::Settled
    }

    /// Notes what was seen of the server.
    pub(super) fn note(&mut self, root: &Root, base: Option<&Base>, sighting: Sighting, url: &str) {
        let file = |url: &str| root.key(Name::of(url, base).segments());
        let directory = |url: &str| {
            let url = match url.ends_with('/') {
                true => url,
                false => &format!("{url}/"),
            };
            root.key(Name::of(url, base).directories())
        };
        let noted = match sighting {
            Sighting::File => self.record.note(&file(url), Seen::File),
            Sighting::Directory => self.record.note(&directory(url), Seen::Directory),
            Sighting::Read => self.record.note(&directory(url), Seen::Read),
            Sighting::Name => {
                let noted = self.record.note(&file(url), Seen::File);
                noted.and(self.record.note(&directory(url), Seen::Directory))
            }
        };
        self.check(noted);
    }

    /// What is known about the file with this name, if an earlier run has put it there and it is unchanged.
    pub(super) fn known(&mut self, root: &Root, name: &Name, found: FileMetadata) -> Option<Known> {
        let known = self.record.known(&root.key(name.segments()));
        self.check(known).flatten().filter(|known| known.is(found))
    }

    /// Records a file that is about to get its name.
    pub(super) fn put(&mut self, root: &Root, name: &Name, put: Put<'_>) -> io::Result<()> {
        let stored = self.record.put(&root.key(name.segments()), put);
        self.check_write(stored)
    }

    /// A file did not get its name after all.
    pub(super) fn forget(&mut self, root: &Root, name: &Name) {
        let forgotten = self.record.forget(&root.key(name.segments()));
        self.check(forgotten);
    }

    /// Whether a file has to wait until it is decided what is deleted, because a file or directory of an earlier run is in
    /// its way: the server has one in place of the other now.
    pub(super) fn is_blocked(&mut self, root: &Root, name: &Name) -> bool {
        if self.stage != Stage::Open {
            return false;
        }
        let directory = root.key(name.segments());
        let below = self.record.has_below(&directory);
        if self.check(below) == Some(true) {
            return true;
        }
        let above = name.directories();
        (1..=above.len()).any(|end| {
            let known = self.record.known(&root.key(&above[..end]));
            self.check(known).flatten().is_some()
        })
    }

    /// Decides what is deleted, and deletes it; in a dry run, only tells. While files wait, whose keys are given, only what
    /// is in their way is deleted, and the rest after them: then it is certain that the run is complete.
    pub(in crate::find) fn settle(
        &mut self,
        root: &Root,
        mut outcome: Outcome,
        waiting: &BTreeSet<Vec<u8>>,
        dry: bool,
        tell: &mut dyn FnMut(MirrorEvent<'_>),
    ) {
        let cleared = match self.stage {
            Stage::Cleared(cleared) => cleared,
            _ => 0,
        };
        self.stage = Stage::Settled;
        let counted = self.record.census();
        let mut census = self.check(counted).unwrap_or_default();
        let left = census.gone;
        census.gone += cleared;
        census.known += cleared;
        outcome.record = self.broken.clone();
        if let Err(refusal) = judge(&outcome, census, self.most) {
            // What is gone is not known if a listing was not read.
            let is_open = matches!(refusal, Refusal::Unread(_)) && self.has_files();
            let is_broken = outcome.record.is_some();
            if census.gone > 0 || is_open || is_broken {
                self.deletions.refused += left.max(u64::from(is_broken));
                let refusal = match cleared {
                    0 => refusal,
                    _ => Refusal::Late(cleared, Box::new(refusal)),
                };
                tell(MirrorEvent::Refused(&refusal));
            }
            return;
        }
        let before = self.deletions.deleted;
        if left > 0 {
            let swept = self.sweep(root, waiting, dry, tell);
            if let Err(error) = swept {
                self.deletions.refused += 1;
                tell(MirrorEvent::Refused(&Refusal::Record(error.to_string())));
            }
        }
        if !waiting.is_empty() {
            self.stage = Stage::Cleared(self.deletions.deleted - before);
        }
    }

    /// Whether earlier runs have put files there.
    fn has_files(&mut self) -> bool {
        let some = self.record.after(b"");
        self.check(some)
            .is_some_and(|some| some.iter().any(|(_, is_old)| *is_old))
    }

    /// Deletes what is gone; if files wait, only what is in their way.
    fn sweep(
        &mut self,
        root: &Root,
        waiting: &BTreeSet<Vec<u8>>,
        dry: bool,
        tell: &mut dyn FnMut(MirrorEvent<'_>),
    ) -> rusqlite::Result<()> {
        let (record, deletions) = (&self.record, &mut self.deletions);
        record.each(|key, fate, _| {
            if fate != Fate::Gone || !(waiting.is_empty() || is_in_way(key, waiting)) {
                return Ok(());
            }
            let name = Name::of_key(key);
            let path = root.path_of(&name);
            let Some(known) = record.known(key)? else {
                return Ok(());
            };
            if dry {
                if let Ok(Existing::File(found)) = root.existing(&name)
                    && known.is(found)
                {
                    tell(MirrorEvent::WouldDelete(&path));
                }
                return Ok(());
            }
            match root.remove(&name, |found| known.is(found)) {
                Ok(removed) => {
                    record.forget(key)?;
                    match removed {
                        Removed::Done => {
                            deletions.deleted += 1;
                            tell(MirrorEvent::Deleted(&path));
                        }
                        Removed::Changed => tell(MirrorEvent::Left(&path)),
                        Removed::Absent => {}
                    }
                }
                Err(error) => {
                    deletions.refused += 1;
                    tell(MirrorEvent::NotDeleted(&path, &error));
                }
            }
            Ok(())
        })
    }

    /// Notes an error of the record: after one, nothing is deleted.
    fn check<T>(&mut self, done: rusqlite::Result<T>) -> Option<T> {
        done.map_err(|error| {
            self.broken.get_or_insert_with(|| error.to_string());
        })
        .ok()
    }

    fn check_write(&mut self, done: rusqlite::Result<()>) -> io::Result<()> {
        if let Err(error) = &done {
            self.broken.get_or_insert_with(|| error.to_string());
        }
        done.map_err(io::Error::other)
    }
}

/// Whether a file is where a waiting one needs a directory, or below the place of a waiting one.
fn is_in_way(key: &[u8], waiting: &BTreeSet<Vec<u8>>) -> bool {
    let below = [key, b"/"].concat();
    let first = waiting.range(below.clone()..).next();
    let slashes = key.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    first.is_some_and(|first| first.starts_with(&below))
        || slashes
            .into_iter()
            .any(|(at, _)| waiting.contains(&key[..at]))
}
