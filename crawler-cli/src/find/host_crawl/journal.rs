//! What changes in a host crawl, for whoever keeps it on disk: the URLs to ask for, the directories known, and the
//! listings of which only a part was looked at. A host crawl that is made again from it goes on where the other one was.
//!
//! A URL that is being asked for stays in the journal until everything that its answer brings is there too, so that a
//! crawl that is cut off at any moment asks for it again and loses nothing.

use std::mem;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Counts;
use super::probes::PartialListing;
use super::task::{Task, TaskKind, UndecidedEntry};
use crate::find::expr::Memo;
use crate::find::link::Ancestors;
use crate::find::listing::{Directories, Entry, Shape};
use crate::find::range::{ListedTime, SizeRange};

/// One change. Numbers name what is to be done, each once in the life of a crawl.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Change {
    /// The crawl begins.
    Begun,
    /// This is to be asked for.
    Queued(u64, String),
    /// It is done, or given up.
    Done(u64),
    /// Of the listing that this URL brought, so much was looked at: the rest, as text, and the place in it.
    Held(u64, Option<String>, Place),
    /// A directory was seen.
    Known(u128),
}

/// How far a listing was looked at.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Place {
    /// Entries that are done with.
    at: usize,
    /// How far the expression has come with the next one, if it waits for an answer.
    memo: Option<Vec<u8>>,
}

/// What a host crawl needs to go on beside its URLs.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Snapshot {
    /// Keys of the fingerprints.
    pub(super) seeds: [u64; 2],
    pub(super) next_number: u64,
    pub(super) clock: Option<i64>,
    pub(super) heads: bool,
    pub(super) counts: Counts,
    pub(super) sitemaps: bool,
    /// The directories that were added to what is searched by links, and whether each is one of the things to be found.
    pub(super) starts: Vec<(String, bool)>,
}

/// What was written down.
#[derive(Clone, Debug, Default)]
pub struct KeptCrawl {
    /// What stood beside the URLs.
    pub snapshot: Snapshot,
    /// What [`Change::Held`] had: number, text and place.
    pub held: Vec<(u64, String, Place)>,
    /// What was seen.
    pub known: Vec<u128>,
    /// How many URLs are to be asked for, which come when `HostCrawl::wants_back` says so.
    pub spilled: u64,
}

/// The journal of a host crawl.
#[derive(Debug, Default)]
pub(super) struct Journal {
    /// Whether it is kept at all.
    on: bool,
    changes: Vec<Change>,
    /// The URL whose answer is being looked at, and whether it was put back somewhere.
    current: Option<(u64, bool)>,
    /// URLs that are on disk only.
    spilled: u64,
    /// The last number that was given to a URL or a request.
    last_number: u64,
}

/// A [`Task`], written down.
#[derive(Deserialize, Serialize)]
pub(super) struct Written {
    target: String,
    path: Option<String>,
    kind: TaskKind,
    start: usize,
    depth: u32,
    redirects: u32,
    is_found: bool,
    above: Vec<u64>,
    open: Option<WrittenEntry>,
}

#[derive(Deserialize, Serialize)]
struct WrittenEntry {
    memo: Vec<u8>,
    listing: Option<Shape>,
    size: Option<SizeRange>,
    modified: Option<ListedTime>,
}

/// A [`Held`], written down.
#[derive(Deserialize, Serialize)]
struct WrittenListing {
    task: Written,
    shape: Shape,
    directories: Directories,
    entries: Vec<Entry>,
}

impl Written {
    /// Reads what a journal has.
    ///
    /// # Errors
    /// The text, if it is none of a host crawl's.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|_| text.to_owned())
    }

    /// The start that it is below.
    pub(super) fn start(&self) -> usize {
        self.start
    }

    fn of(task: &Task) -> Self {
        Self {
            target: task.target.clone(),
            path: task.path.clone(),
            kind: task.kind,
            start: task.start,
            depth: task.depth,
            redirects: task.redirects,
            is_found: task.is_found,
            above: Ancestors::listings(task.above.as_ref()).collect(),
            open: task.open.as_ref().map(|open| WrittenEntry {
                memo: open.memo.as_bytes().to_vec(),
                listing: open.listing,
                size: open.size,
                modified: open.modified,
            }),
        }
    }

    /// The task of this number.
    pub(super) fn task(self, number: u64) -> Task {
        let above = self.above.into_iter().rev().fold(None, |next, listing| {
            Some(Arc::new(Ancestors { listing, next }))
        });
        Task {
            number,
            path: self.path,
            redirects: self.redirects,
            is_found: self.is_found,
            above,
            open: self.open.map(|open| {
                Box::new(UndecidedEntry {
                    memo: Memo::from_bytes(&open.memo),
                    listing: open.listing,
                    size: open.size,
                    modified: open.modified,
                })
            }),
            ..Task::new(self.target, self.kind, self.start, self.depth)
        }
    }
}

/// URLs and listings.
impl Journal {
    /// A number that none had before.
    pub(super) fn number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    /// The last one of them.
    pub(super) fn last_number(&self) -> u64 {
        self.last_number
    }

    /// Writes down that this is to be asked for, unless that is written already.
    pub(super) fn written(&mut self, mut task: Task) -> Task {
        self.keep(task.number);
        if task.number == 0 {
            task.number = self.number();
            if self.on {
                let change = Change::Queued(task.number, text(&Written::of(&task)));
                self.changes.push(change);
            }
        }
        task
    }

    /// Writes down a listing of which a part was looked at.
    pub(super) fn note_listing(&mut self, held: &mut PartialListing) {
        self.keep(held.task.number);
        if !self.on {
            return;
        }
        let memo = held.first.as_ref();
        let memo = memo.map(|(_, memo)| memo.as_bytes().to_vec());
        let is_new = !mem::replace(&mut held.is_written, true);
        let change = if is_new {
            let first = held.first.iter().map(|(entry, _)| entry);
            let rest = held.entries.as_slice();
            held.entries_len = rest.len() + usize::from(held.first.is_some());
            let listing = text(&WrittenListing {
                task: Written::of(&held.task),
                shape: held.shape,
                directories: held.directories.clone(),
                entries: first.chain(rest).cloned().collect(),
            });
            let place = Place { at: 0, memo };
            Change::Held(held.task.number, Some(listing), place)
        } else {
            let left = held.entries.len() + usize::from(held.first.is_some());
            let at = held.entries_len - left;
            Change::Held(held.task.number, None, Place { at, memo })
        };
        self.changes.push(change);
    }

    /// Reads a listing that was written down.
    ///
    /// # Errors
    /// The text, if it is none of a host crawl's.
    pub(super) fn listing(number: u64, text: &str, place: Place) -> Result<PartialListing, String> {
        let held: WrittenListing = serde_json::from_str(text).map_err(|_| text.to_owned())?;
        let entries_len = held.entries.len();
        let mut entries = held.entries.into_iter();
        if place.at > 0 {
            entries.nth(place.at - 1);
        }
        let memo = place.memo.map(|memo| Memo::from_bytes(&memo));
        let first = memo.and_then(|memo| Some((entries.next()?, memo)));
        Ok(PartialListing {
            task: held.task.task(number),
            shape: held.shape,
            directories: held.directories,
            entries,
            entries_len,
            is_written: true,
            first,
        })
    }

    /// The answer to this is being looked at.
    pub(super) fn begin(&mut self, number: u64) {
        self.current = Some((number, false));
    }

    /// Another answer is looked at in between.
    pub(super) fn set_aside(&mut self) -> Option<(u64, bool)> {
        self.current.take()
    }

    /// The answer that was set aside is looked at again.
    pub(super) fn take_up(&mut self, current: Option<(u64, bool)>) {
        self.current = current;
    }

    fn keep(&mut self, number: u64) {
        if let Some((current, kept)) = &mut self.current {
            *kept |= *current == number;
        }
    }

    /// All that the answer brought is written down.
    pub(super) fn end(&mut self) {
        if let Some((number, false)) = self.current.take() {
            self.forget(number);
        }
    }

    /// This is done.
    pub(super) fn forget(&mut self, number: u64) {
        if self.on && number != 0 {
            self.changes.push(Change::Done(number));
        }
    }

    /// This was seen.
    pub(super) fn note_known(&mut self, fingerprint: u128) {
        if self.on {
            self.changes.push(Change::Known(fingerprint));
        }
    }
}

/// Changes, and URLs that are on disk only.
impl Journal {
    /// Is kept from now on.
    pub(super) fn start(&mut self) {
        self.on = true;
        self.changes.push(Change::Begun);
    }

    /// Is kept from now on, and goes on where another one was.
    pub(super) fn restore(&mut self, last_number: u64, spilled: u64) {
        self.on = true;
        self.last_number = last_number;
        self.spilled = spilled;
    }

    pub(super) fn is_kept(&self) -> bool {
        self.on
    }

    /// What has changed since the last time.
    pub(super) fn take_changes(&mut self) -> Vec<Change> {
        mem::take(&mut self.changes)
    }

    /// Whether some URLs are on disk only.
    pub(super) fn is_spilled(&self) -> bool {
        self.spilled > 0
    }

    /// So many more URLs are on disk only.
    pub(super) fn add_spilled(&mut self, count: usize) {
        self.spilled += count as u64;
    }

    /// So many URLs came back; none: there are no more.
    pub(super) fn take_spilled(&mut self, count: usize) {
        self.spilled = match count {
            0 => 0,
            count => self.spilled.saturating_sub(count as u64),
        };
    }
}

fn text(value: &impl Serialize) -> String {
    // Nothing in it can fail: no maps, no foreign types.
    serde_json::to_string(value).unwrap_or_default()
}
