//! Gathers what a source refers to in batches.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crossbeam_channel::Sender;

use super::resolve::Resolved;
use super::{Batch, Problem, ProblemKind};
use store::{Link, Target};
use verdict::Reference;

/// Where the reader puts what it reads of one source.
pub(super) struct Outlet {
    source: Arc<str>,
    batches: Sender<Batch>,
    batch: Batch,
    /// Problems of lines that were reported.
    line_problems: u64,
    stop: Arc<AtomicBool>,
    is_stopped: bool,
}

/// A place in a source.
#[derive(Clone, Copy)]
pub(super) struct Place<'p> {
    pub(super) line: u32,
    pub(super) column: u32,
    /// The link as written.
    pub(super) written: &'p str,
    pub(super) text: &'p str,
}

impl Outlet {
    pub(super) fn new(source: Arc<str>, batches: Sender<Batch>, stop: Arc<AtomicBool>) -> Self {
        Self {
            source,
            batches,
            batch: Batch::default(),
            line_problems: 0,
            is_stopped: stop.load(Ordering::Relaxed),
            stop,
        }
    }

    /// Whether nobody wants more, so that the reading ends.
    pub(super) fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    /// Adds what a place refers to.
    pub(super) fn add(&mut self, place: Place<'_>, resolved: Resolved) {
        match resolved {
            Resolved::Unsupported => self.batch.unsupported += 1,
            Resolved::Excluded => self.batch.excluded += 1,
            Resolved::Checked(spelling, target) => {
                // What is not valid is spelled as written.
                let is_resolved =
                    matches!(target, Target::Local(..)) && *spelling != *place.written;
                self.batch.links.push(Link {
                    spelling,
                    target,
                    reference: Reference {
                        source: self.source.clone(),
                        line: Some(place.line),
                        column: Some(place.column),
                        written: is_resolved.then(|| place.written.to_owned()),
                        text: place.text.to_owned(),
                    },
                    is_in_page: false,
                });
                if self.batch.links.len() >= BATCH {
                    self.flush();
                }
            }
        }
    }

    /// Adds a problem of the source.
    pub(super) fn problem(&mut self, line: Option<u32>, kind: ProblemKind, detail: String) {
        self.batch.problems.push(Problem {
            source: self.source.clone(),
            line,
            kind,
            detail,
        });
        if self.batch.problems.len() >= BATCH {
            self.flush();
        }
    }

    /// Adds a problem of a line. Of many, the first are reported, and at the end the number of the others.
    pub(super) fn line_problem(&mut self, line: u32, kind: ProblemKind, detail: String) {
        self.line_problems += 1;
        self.batch.wrong_lines += 1;
        if self.line_problems <= LINE_PROBLEMS {
            self.problem(Some(line), kind, detail);
        }
    }

    /// Reports how many lines had problems that were not reported.
    pub(super) fn end_of_lines(&mut self) {
        let more = self.line_problems.saturating_sub(LINE_PROBLEMS);
        if more > 0 {
            let lines = if more == 1 { "line is" } else { "lines are" };
            let detail = format!("{more} more {lines} wrong");
            self.problem(None, ProblemKind::Malformed, detail);
        }
    }

    /// Sends what there is. Waits while batches that were sent before are not taken.
    pub(super) fn flush(&mut self) {
        let batch = std::mem::take(&mut self.batch);
        if !batch.is_empty() && self.batches.send(batch).is_err() {
            self.is_stopped = true;
        }
        self.is_stopped |= self.stop.load(Ordering::Relaxed);
    }
}

/// Most places of a batch.
const BATCH: usize = 256;
/// Most lines of a source whose problems are reported one by one.
const LINE_PROBLEMS: u64 = 100;
