//! What changes in a host crawl, for whoever keeps it on disk: the URLs to ask for, the directories known, and the
//! listings of which only a part was looked at. A host crawl that is made again from it goes on where the other one was.
//!
//! A URL that is being asked for stays in the journal until everything that its answer brings is there too, so that a
//! crawl that is cut off at any moment asks for it again and loses nothing.

use std::mem;
use std::sync::Arc;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::probe::{Clock, PartialListing};
use super::task::{Ancestors, Task, TaskKind, UndecidedEntry};
use super::{Counts, HostCrawl, Sink};
use crate::find::cause::Cause;
use crate::find::expr::Memo;
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
    seeds: [u64; 2],
    next_number: u64,
    clock: Option<i64>,
    heads: bool,
    counts: Counts,
    sitemaps: bool,
    /// The directories that were added to what is searched by links, and whether each is one of the things to be found.
    starts: Vec<(String, bool)>,
}

/// What was written down.
#[derive(Clone, Debug, Default)]
pub struct Saved {
    /// What stood beside the URLs.
    pub snapshot: Snapshot,
    /// What [`Change::Held`] had: number, text and place.
    pub held: Vec<(u64, String, Place)>,
    /// What was seen.
    pub known: Vec<u128>,
    /// How many URLs are to be asked for, which come when [`HostCrawl::wants_back`] says so.
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
    /// Starts that were given, and not added by links.
    given: usize,
}

/// A [`Task`], written down.
#[derive(Deserialize, Serialize)]
struct Written {
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

    fn task(self, number: u64) -> Task {
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

/// What the rest of the host crawl does with its URLs.
impl HostCrawl {
    /// To be asked for, as soon as may be.
    pub(super) fn queue(&mut self, task: Task) {
        let task = self.written(task);
        self.queue.push_next(task);
    }

    /// Writes down that this is to be asked for, unless that is written already.
    pub(super) fn written(&mut self, mut task: Task) -> Task {
        self.keep(task.number);
        if task.number == 0 {
            task.number = self.number();
            if self.journal.on {
                let change = Change::Queued(task.number, text(&Written::of(&task)));
                self.journal.changes.push(change);
            }
        }
        task
    }

    /// A listing of which a part was looked at.
    pub(super) fn hold(&mut self, mut held: PartialListing) {
        self.keep(held.task.number);
        if self.journal.on {
            let place = Place {
                at: held.entries_len - held.entries.len() - usize::from(held.first.is_some()),
                memo: held
                    .first
                    .as_ref()
                    .map(|(_, memo)| memo.as_bytes().to_vec()),
            };
            let listing = (!mem::replace(&mut held.is_written, true)).then(|| {
                let first = held.first.iter().map(|(entry, _)| entry);
                let rest = held.entries.as_slice();
                held.entries_len = rest.len() + usize::from(held.first.is_some());
                text(&WrittenListing {
                    task: Written::of(&held.task),
                    shape: held.shape,
                    directories: held.directories.clone(),
                    entries: first.chain(rest).cloned().collect(),
                })
            });
            let place = match listing {
                Some(_) => Place { at: 0, ..place },
                None => place,
            };
            let change = Change::Held(held.task.number, listing, place);
            self.journal.changes.push(change);
        }
        self.partial.push_back(held);
    }

    /// The answer to this is being looked at.
    pub(super) fn begin(&mut self, number: u64) {
        self.journal.current = Some((number, false));
    }

    /// Another one is looked at in between.
    pub(super) fn set_aside(&mut self) -> Option<(u64, bool)> {
        self.journal.current.take()
    }

    pub(super) fn take_up(&mut self, current: Option<(u64, bool)>) {
        self.journal.current = current;
    }

    fn keep(&mut self, number: u64) {
        if let Some((current, kept)) = &mut self.journal.current {
            *kept |= *current == number;
        }
    }

    /// All that the answer brought is written down.
    pub(super) fn end(&mut self) {
        if let Some((number, false)) = self.journal.current.take() {
            self.forget(number);
        }
    }

    /// This is done.
    pub(super) fn forget(&mut self, number: u64) {
        if self.journal.on && number != 0 {
            self.journal.changes.push(Change::Done(number));
        }
    }

    pub(super) fn note_known(&mut self, fingerprint: u128) {
        if self.journal.on {
            self.journal.changes.push(Change::Known(fingerprint));
        }
    }

    pub(super) fn is_spilled(&self) -> bool {
        self.journal.spilled > 0
    }
}

/// For whoever keeps it on disk.
impl HostCrawl {
    /// Keeps a journal from now on; what is there already is in it.
    pub fn keep_journal(&mut self) {
        self.journal.on = true;
        self.journal.given = self.starts.len();
        self.journal.changes.push(Change::Begun);
        for task in self.queue.take_ready() {
            let task = self.written(Task { number: 0, ..task });
            self.queue.push_next(task);
        }
        let known = self
            .known
            .iter()
            .map(|&fingerprint| Change::Known(fingerprint));
        self.journal.changes.extend(known);
    }

    /// What has changed since the last time.
    pub fn take_changes(&mut self) -> Vec<Change> {
        mem::take(&mut self.journal.changes)
    }

    /// What it needs to go on beside its URLs.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            seeds: self.seeds,
            next_number: self.next_number,
            clock: self.clock.ahead(),
            heads: self.heads,
            counts: self.counts,
            sitemaps: self.has_sitemaps,
            starts: self.starts[self.journal.given..]
                .iter()
                .map(|start| (start.directory.to_string(), start.is_found))
                .collect(),
        }
    }

    /// Goes on where another host crawl with the same starts was. What cannot be read again is told.
    ///
    /// # Errors
    /// The text that is none of a host crawl's.
    pub fn restore(&mut self, saved: Saved) -> Result<(), String> {
        self.journal.on = true;
        self.journal.spilled = saved.spilled;
        self.journal.given = self.starts.len();
        self.has_sitemaps |= saved.snapshot.sitemaps;
        for (directory, is_found) in saved.snapshot.starts {
            self.note_start(directory, is_found);
        }
        self.seeds = saved.snapshot.seeds;
        self.next_number = saved.snapshot.next_number;
        self.clock = saved.snapshot.clock.map_or(Clock::Unknown, Clock::Ahead);
        self.heads = saved.snapshot.heads;
        self.counts = saved.snapshot.counts;
        self.known = saved.known.into_iter().collect();
        self.queue.take_ready();
        for (number, text, place) in saved.held {
            let held: WrittenListing = serde_json::from_str(&text).map_err(|_| text.clone())?;
            self.check(&held.task)?;
            let entries_len = held.entries.len();
            let mut entries = held.entries.into_iter();
            if place.at > 0 {
                entries.nth(place.at - 1);
            }
            let memo = place.memo.map(|memo| Memo::from_bytes(&memo));
            let first = memo.and_then(|memo| Some((entries.next()?, memo)));
            self.partial.push_back(PartialListing {
                task: held.task.task(number),
                shape: held.shape,
                directories: held.directories,
                entries,
                entries_len,
                is_written: true,
                first,
            });
        }
        Ok(())
    }

    /// Takes back URLs that were spilled, or saved; none: there are no more. What may not be asked for by what is known
    /// meanwhile of the host is given up.
    ///
    /// # Errors
    /// The text that is none of a host crawl's.
    pub fn add_back(
        &mut self,
        now: Instant,
        queued: Vec<(u64, String)>,
        sink: Sink<'_>,
    ) -> Result<(), String> {
        self.journal.spilled = match queued.len() {
            0 => 0,
            count => self.journal.spilled.saturating_sub(count as u64),
        };
        for (number, text) in queued {
            let written: Written = serde_json::from_str(&text).map_err(|_| text.clone())?;
            self.check(&written)?;
            let task = written.task(number);
            self.undecided += usize::from(task.kind == TaskKind::File);
            match self.given_up.clone() {
                Some(cause) => self.drop_task(now, task, &cause, sink),
                None if !self.is_allowed(&task.target) => {
                    self.drop_task(now, task, &Cause::Robots, sink);
                }
                None => self.queue.push_next(task),
            }
        }
        // No answer may come that would.
        self.resume(now, sink);
        Ok(())
    }

    fn check(&self, written: &Written) -> Result<(), String> {
        match written.start < self.starts.len() {
            true => Ok(()),
            false => Err(written.target.clone()),
        }
    }

    /// Once all changes are on disk: the URLs that are better left there, because there are so many.
    pub fn spill(&mut self) -> Vec<u64> {
        if !self.journal.on || self.queue.ready().len() <= MOST_READY {
            return Vec::new();
        }
        // The oldest ones: it takes long until they are next.
        let spilled = self
            .queue
            .take_last(MOST_READY / 2, |task| task.kind != TaskKind::File);
        self.journal.spilled += spilled.len() as u64;
        spilled.iter().map(|task| task.number).collect()
    }

    /// How many of the spilled URLs it can do with now.
    pub fn wants_back(&self) -> usize {
        // What waits for its time is in memory, too. Before robots.txt is known, nothing can be asked for.
        let has_few = self.queue.len() < FEW_READY;
        match self.is_spilled() && has_few && !self.awaits_robots() {
            true => MOST_READY / 2,
            false => 0,
        }
    }
}

fn text(value: &impl Serialize) -> String {
    // Nothing in it can fail: no maps, no foreign types.
    serde_json::to_string(value).unwrap_or_default()
}

/// URLs in memory before some are left on disk.
const MOST_READY: usize = 100_000;
/// URLs in memory before some come back.
const FEW_READY: usize = 1000;
