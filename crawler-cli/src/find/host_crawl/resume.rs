//! Keeping a host crawl on disk, and going on with one that was kept: its journal is taken out, and all that a new crawl
//! needs comes back. URLs that wait in great number are left on the disk for a while.

use std::time::Instant;

use super::HostCrawl;
use super::journal::{Change, Journal, KeptCrawl, Snapshot, Written};
use super::task::{Task, TaskKind};
use crate::find::cause::Cause;
use crate::find::visitor::Visitor;

impl HostCrawl {
    /// Keeps a journal from now on; what is there already is in it.
    pub fn keep_journal(&mut self) {
        self.journal.start();
        self.starts.note_given();
        for task in self.queue.take_ready() {
            let task = self.journal.written(Task { number: 0, ..task });
            self.queue.push_next(task);
        }
        for fingerprint in self.seen.fingerprints() {
            self.journal.note_known(fingerprint);
        }
    }

    /// What has changed since the last time.
    pub fn take_changes(&mut self) -> Vec<Change> {
        self.journal.take_changes()
    }

    /// What the crawl needs to go on beside its URLs.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            seeds: self.seen.seeds(),
            next_number: self.journal.last_number(),
            clock: self.probes.ahead(),
            heads: self.probes.uses_head(),
            counts: self.counts,
            sitemaps: self.has_sitemaps,
            starts: self.starts.added(),
        }
    }

    /// Goes on where another host crawl with the same starts was.
    ///
    /// # Errors
    /// The text that is none of a host crawl's.
    pub fn restore(&mut self, saved: KeptCrawl) -> Result<(), String> {
        let KeptCrawl {
            snapshot,
            held,
            known,
            spilled,
        } = saved;
        self.journal.restore(snapshot.next_number, spilled);
        self.starts.restore(snapshot.starts);
        self.seen.restore(snapshot.seeds, known);
        self.probes.restore(snapshot.heads, snapshot.clock);
        self.has_sitemaps |= snapshot.sitemaps;
        self.counts = snapshot.counts;
        self.queue.take_ready();
        for (number, text, place) in held {
            let listing = Journal::listing(number, &text, place)?;
            self.check(listing.task.start, &text)?;
            self.probes.hold(listing);
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
        visitor: &mut dyn Visitor,
    ) -> Result<(), String> {
        self.journal.take_spilled(queued.len());
        for (number, text) in queued {
            let written = Written::parse(&text)?;
            self.check(written.start(), &text)?;
            let task = written.task(number);
            if task.kind == TaskKind::File {
                self.probes.add_undecided();
            }
            match self.given_up.clone() {
                Some(cause) => self.drop_task(now, task, &cause, visitor),
                None if !self.is_allowed(&task.target) => {
                    self.drop_task(now, task, &Cause::Robots, visitor);
                }
                None => self.queue.push_next(task),
            }
        }
        // No answer may come that would.
        self.resume(now, visitor);
        Ok(())
    }

    fn check(&self, start: usize, text: &str) -> Result<(), String> {
        match self.starts.contains(start) {
            true => Ok(()),
            false => Err(text.to_owned()),
        }
    }

    /// Once all changes are on disk: the URLs that are better left there, because there are so many.
    pub fn spill(&mut self) -> Vec<u64> {
        if !self.journal.is_kept() || self.queue.ready().len() <= MOST_READY {
            return Vec::new();
        }
        // The oldest ones: it takes long until they are next.
        let is_light = |task: &Task| task.kind != TaskKind::File;
        let spilled = self.queue.take_last(MOST_READY / 2, is_light);
        self.journal.add_spilled(spilled.len());
        spilled.iter().map(|task| task.number).collect()
    }

    /// How many of the spilled URLs the crawl can do with now.
    pub fn wants_back(&self) -> usize {
        // What waits for its time is in memory, too. Before robots.txt is known, nothing can be asked for.
        let has_few = self.queue.len() < FEW_READY;
        match self.journal.is_spilled() && has_few && !self.awaits_robots() {
            true => MOST_READY / 2,
            false => 0,
        }
    }
}

/// URLs in memory before some are left on disk.
pub(super) const MOST_READY: usize = 100_000;
/// URLs in memory before some come back.
const FEW_READY: usize = 1000;
