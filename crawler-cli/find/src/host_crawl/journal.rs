//! The journal of a host crawl, for a state on disk: tasks, known directories, and partly handled listings. A host
//! crawl that is restored from it continues where the other one stopped.
//!
//! A task stays in the journal until everything that its reply leads to is in the journal too. So a crawl that is
//! interrupted at any moment requests the URL again and loses nothing.

use std::mem;

use serde::{Deserialize, Serialize};

use super::Counts;
use super::probes::PartialListing;
use super::task::{Task, TaskKind};
use crate::expr::Memo;

/// One change. Tasks have numbers, each used once in a crawl.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Change {
    /// The crawl begins.
    Begun,
    /// The task with this number and text was queued.
    Queued(u64, String),
    /// The file to download with this number and text was queued.
    Wanted(u64, String),
    /// The task is done or given up.
    Done(u64),
    /// A listing of this task was handled up to this place. The text of the listing is given with the first such
    /// change.
    Listing(u64, Option<String>, ListingProgress),
    /// A URL was given up. The task with this number and text asks for it again in a later run.
    Failed(u64, String),
    /// A directory became known.
    Known(u128),
}

/// How far a listing was handled.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct ListingProgress {
    /// The number of entries that are done.
    at: usize,
    /// The state of the expression for the next entry, if that entry waits for a reply.
    memo: Option<Memo>,
}

/// What is kept of a host crawl beside its tasks.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Snapshot {
    /// The keys of the fingerprints.
    pub(super) seeds: [u64; 2],
    pub(super) next_number: u64,
    pub(super) clock: Option<i64>,
    pub(super) heads: bool,
    pub(super) counts: Counts,
    /// Pages that links led to.
    #[serde(default)]
    pub(super) linked_pages: u64,
    /// The directories that links added to the starts, and whether each is itself a finding.
    pub(super) starts: Vec<(String, bool)>,
}

impl Snapshot {
    /// Takes back that the URLs of these [tasks](Change::Failed) were given up: they are asked for again.
    ///
    /// # Errors
    /// A text that is not a task.
    pub fn retry(&mut self, failed: &[String]) -> Result<(), String> {
        for text in failed {
            let task = Task::parse(0, text)?;
            let unread = u64::from(task.kind != TaskKind::Wanted);
            self.counts.unread = self.counts.unread.saturating_sub(unread);
            if task.kind.is_of_directory() {
                let done = &mut self.counts.directories_done;
                *done = done.saturating_sub(1);
            }
        }
        Ok(())
    }

    /// The counts of the crawl.
    pub fn counts(&self) -> Counts {
        self.counts
    }
}

/// What was kept of a host crawl.
#[derive(Clone, Debug, Default)]
pub struct KeptCrawl {
    /// The state beside the tasks.
    pub snapshot: Snapshot,
    /// Listings, as in [`Change::Listing`]: number, text and place.
    pub held: Vec<(u64, String, ListingProgress)>,
    /// Fingerprints of what is known.
    pub known: Vec<u128>,
    /// The files to download: number and text of each.
    pub files: Vec<(u64, String)>,
    /// The number of other tasks on disk. They are read when `HostCrawl::wants_back` says so.
    pub spilled: u64,
}

/// The journal of a host crawl.
#[derive(Debug, Default)]
pub(super) struct Journal {
    /// Whether the crawl is kept at all.
    on: bool,
    changes: Vec<Change>,
    /// The task whose reply is being handled, and whether the task was queued again.
    current: Option<(u64, bool)>,
    /// The number of tasks that are on disk only.
    spilled: u64,
    /// The last number given to a task or a request.
    last_number: u64,
    /// A later run asks again for what is given up.
    has_later_run: bool,
}

/// Tasks and listings.
impl Journal {
    /// A number that was not used before.
    pub(super) fn number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    /// The last number that was used.
    pub(super) fn last_number(&self) -> u64 {
        self.last_number
    }

    /// Writes the task to the journal and gives it a number, unless it has one.
    pub(super) fn written(&mut self, mut task: Task) -> Task {
        self.keep(task.number);
        if task.number == 0 {
            task.number = self.number();
            if self.on {
                let queued = match task.kind {
                    TaskKind::Wanted => Change::Wanted,
                    _ => Change::Queued,
                };
                self.changes.push(queued(task.number, text(&task)));
            }
        }
        task
    }

    /// Writes the progress of a partly handled listing.
    pub(super) fn note_listing(&mut self, held: &mut PartialListing) {
        self.keep(held.task.number);
        if !self.on {
            return;
        }
        let listing = held.written.is_none().then(|| text(held));
        let written = *held.written.get_or_insert(held.entries.len());
        let place = ListingProgress {
            at: written - held.entries.len(),
            memo: held.memo.clone(),
        };
        let change = Change::Listing(held.task.number, listing, place);
        self.changes.push(change);
    }

    /// Parses a listing of the journal.
    ///
    /// # Errors
    /// The text, if it is not a listing.
    pub(super) fn listing(
        number: u64,
        text: &str,
        place: ListingProgress,
    ) -> Result<PartialListing, String> {
        let mut held: PartialListing = serde_json::from_str(text).map_err(|_| text.to_owned())?;
        held.task.number = number;
        held.written = Some(held.entries.len());
        held.entries.drain(..place.at.min(held.entries.len()));
        held.memo = place.memo.filter(|_| !held.entries.is_empty());
        Ok(held)
    }

    /// Begins to handle the reply to this task. Returns what was begun before, which goes on [after](Self::end) it.
    pub(super) fn begin(&mut self, number: u64) -> Option<(u64, bool)> {
        self.current.replace((number, false))
    }

    fn keep(&mut self, number: u64) {
        if let Some((current, kept)) = &mut self.current {
            *kept |= *current == number;
        }
    }

    /// Everything that the reply leads to is in the journal. The task is done, unless it was queued again.
    pub(super) fn end(&mut self, outer: Option<(u64, bool)>) {
        if let Some((number, false)) = mem::replace(&mut self.current, outer) {
            self.forget(number);
        }
    }

    /// The task is done.
    pub(super) fn forget(&mut self, number: u64) {
        if self.on && number != 0 {
            self.changes.push(Change::Done(number));
        }
    }

    /// The task is given up; a later run may ask for its URL again. What there is to report was reported.
    pub(super) fn fail(&mut self, task: &Task) {
        // An entry that was decided would be reported twice.
        if self.on && task.kind != TaskKind::File {
            let task = Task {
                open: None,
                redirects: 0,
                ..task.clone()
            };
            let number = self.number();
            self.changes.push(Change::Failed(number, text(&task)));
        }
    }

    /// An entry is given up before it is decided: a later run asks about it and decides. Returns whether there may be such
    /// a run.
    pub(super) fn fail_undecided(&mut self, task: &Task) -> bool {
        if self.on && self.has_later_run {
            let number = self.number();
            self.changes.push(Change::Failed(number, text(task)));
        }
        self.on && self.has_later_run
    }

    /// A later run asks again for what is given up.
    pub(super) fn expect_later_run(&mut self) {
        self.has_later_run = true;
    }

    /// A fingerprint became known.
    pub(super) fn note_known(&mut self, fingerprint: u128) {
        if self.on {
            self.changes.push(Change::Known(fingerprint));
        }
    }
}

/// Changes, and tasks that are on disk only.
impl Journal {
    /// Starts to keep the journal.
    pub(super) fn start(&mut self) {
        self.on = true;
        self.changes.push(Change::Begun);
    }

    /// Starts to keep the journal, after an earlier run.
    pub(super) fn restore(&mut self, last_number: u64, spilled: u64) {
        self.on = true;
        self.last_number = last_number;
        self.spilled = spilled;
    }

    pub(super) fn is_kept(&self) -> bool {
        self.on
    }

    /// The changes since the last call.
    pub(super) fn take_changes(&mut self) -> Vec<Change> {
        mem::take(&mut self.changes)
    }

    /// How many tasks are on disk only.
    pub(super) fn spilled(&self) -> u64 {
        self.spilled
    }

    /// Counts further tasks that are on disk only.
    pub(super) fn add_spilled(&mut self, count: usize) {
        self.spilled += count as u64;
    }

    /// Counts tasks that came back from disk; 0 means that there are no more.
    pub(super) fn take_spilled(&mut self, count: usize) {
        self.spilled = match count {
            0 => 0,
            count => self.spilled.saturating_sub(count as u64),
        };
    }
}

fn text(value: &impl Serialize) -> String {
    // Serialisation cannot fail: there are no maps with other keys than strings.
    serde_json::to_string(value).unwrap_or_default()
}
