//! The way from the thread that reads sources to the thread that checks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError};

use super::Problem;
use store::Link;

/// A part of what a source or a fetched page says.
#[derive(Debug, Default)]
pub struct Batch {
    /// Places that refer to URLs, and a page that was given as an input.
    pub links: Vec<Link>,
    /// What is wrong with the source.
    pub problems: Vec<Problem>,
    /// How many links have a scheme that is not checked: `mailto:`, `tel:`, `data:`.
    pub unsupported: u64,
    /// How many lines are not what they should be, also those without a problem of their own among `problems`.
    pub wrong_lines: u64,
    /// How many links `--exclude` or `--include` left out.
    pub excluded: u64,
}

impl Batch {
    /// Whether it says nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.links.is_empty()
            && self.problems.is_empty()
            && self.unsupported == 0
            && self.wrong_lines == 0
            && self.excluded == 0
    }
}

/// What all sources say, in the order of the inputs, of the paths in a folder, and of the places in a file. The number of
/// batches that wait is bounded. Dropping it stops the thread that reads.
#[derive(Debug)]
pub struct Batches {
    batches: Receiver<Batch>,
    stop: Arc<AtomicBool>,
}

/// What [`Batches::next`] has to give.
#[derive(Debug)]
pub enum Next {
    /// The next batch.
    Batch(Batch),
    /// There is none yet.
    Nothing,
    /// All sources were read, or the reading was stopped.
    End,
}

impl Batches {
    pub(super) fn new(batches: Receiver<Batch>, stop: Arc<AtomicBool>) -> Self {
        Self { batches, stop }
    }

    /// The next batch. Waits for it for no longer than `wait`, which may be zero.
    pub fn next(&mut self, wait: Duration) -> Next {
        match self.batches.recv_timeout(wait) {
            _ if self.stop.load(Ordering::Relaxed) => Next::End,
            Ok(batch) => Next::Batch(batch),
            Err(RecvTimeoutError::Timeout) => Next::Nothing,
            Err(RecvTimeoutError::Disconnected) => Next::End,
        }
    }

    /// Where the batches come from, for waiting for other things, too.
    pub(crate) fn receiver(&self) -> &Receiver<Batch> {
        &self.batches
    }

    /// Ends the reading. A thread that waits for standard input ends when the input does.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

impl Drop for Batches {
    fn drop(&mut self) {
        self.stop();
    }
}
