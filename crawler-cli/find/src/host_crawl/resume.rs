//! Saves and restores a host crawl: hands out its journal, and takes back what an earlier run saved. If very many tasks
//! are ready, most of them are left on disk for a while.

use super::HostCrawl;
use super::journal::{Change, Journal, KeptCrawl, Snapshot};
use super::task::{Task, TaskKind};
use crate::cause::Cause;
use crate::visitor::Turn;

impl HostCrawl {
    /// Starts to keep the journal, with everything that is known now.
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

    /// A later run of the same search asks again for what is given up, so that entries wait for that run with what they
    /// are, instead of being decided without the server's answer.
    pub fn expect_later_run(&mut self) {
        self.journal.expect_later_run();
    }

    /// The changes since the last call.
    pub fn take_changes(&mut self) -> Vec<Change> {
        self.journal.take_changes()
    }

    /// The state of the crawl beside its tasks.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            seeds: self.seen.seeds(),
            next_number: self.journal.last_number(),
            clock: self.probes.ahead(),
            heads: self.probes.uses_head(),
            counts: self.counts,
            linked_pages: self.linked_pages,
            starts: self.starts.added(),
        }
    }

    /// Continues an earlier host crawl with the same starts.
    ///
    /// # Errors
    /// A text in the saved state that is not of a host crawl.
    pub fn restore(&mut self, saved: KeptCrawl) -> Result<(), String> {
        let KeptCrawl {
            snapshot,
            held,
            known,
            files,
            spilled,
        } = saved;
        self.journal.restore(snapshot.next_number, spilled);
        self.starts.restore(snapshot.starts);
        self.seen.restore(snapshot.seeds, known);
        self.probes.restore(snapshot.heads, snapshot.clock);
        self.linked_pages = snapshot.linked_pages;
        self.counts = snapshot.counts;
        self.queue.take_ready();
        for (number, text, place) in held {
            let listing = Journal::listing(number, &text, place)?;
            self.check(listing.task.start, &text)?;
            self.probes.hold(listing);
        }
        for (number, text) in files {
            self.files.push_last(Task::parse(number, &text)?);
        }
        Ok(())
    }

    /// Takes back tasks that were spilled or saved; an empty list means that there are no more. Gives up tasks that
    /// robots.txt forbids, or whose host was given up meanwhile.
    ///
    /// # Errors
    /// A text that is not a task of a host crawl.
    pub fn add_back(
        &mut self,
        turn: &mut Turn<'_>,
        queued: Vec<(u64, String)>,
    ) -> Result<(), String> {
        self.journal.take_spilled(queued.len());
        for (number, text) in queued {
            let task = Task::parse(number, &text)?;
            self.check(task.start, &text)?;
            if task.kind == TaskKind::File {
                self.probes.add_undecided();
            }
            match self.given_up.clone() {
                Some(cause) => self.drop_task(turn, task, &cause),
                None if !self.is_allowed(&task.target) => {
                    self.drop_task(turn, task, &Cause::Robots);
                }
                // Files that failed before come after those that were not asked for.
                None if task.kind == TaskKind::Wanted => self.files.push_last(task),
                None => self.queue.push_next(task),
            }
        }
        // There may be no further reply that would resume the waiting listings.
        self.resume(turn);
        Ok(())
    }

    fn check(&self, start: usize, text: &str) -> Result<(), String> {
        match self.starts.contains(start) {
            true => Ok(()),
            false => Err(text.to_owned()),
        }
    }

    /// To be called when all changes are on disk. Returns the numbers of tasks to leave there, because there are too
    /// many.
    pub fn spill(&mut self) -> Vec<u64> {
        if !self.journal.is_kept() || self.queue.ready().len() <= MOST_READY {
            return Vec::new();
        }
        // The oldest tasks: they would be requested last.
        let is_light = |task: &Task| task.kind != TaskKind::File;
        let spilled = self.queue.take_last(MOST_READY / 2, is_light);
        self.journal.add_spilled(spilled.len());
        spilled.iter().map(|task| task.number).collect()
    }

    /// How many spilled tasks the crawl can take back now.
    pub fn wants_back(&self) -> usize {
        // Postponed tasks count too. Until robots.txt is known, no task could be requested.
        let has_few = self.queue.len() < FEW_READY;
        match self.journal.spilled() > 0 && has_few && !self.awaits_robots() {
            true => MOST_READY / 2,
            false => 0,
        }
    }
}

/// The number of ready tasks in memory above which some are left on disk.
pub(super) const MOST_READY: usize = 100_000;
/// The number of tasks in memory below which some come back.
const FEW_READY: usize = 1000;
