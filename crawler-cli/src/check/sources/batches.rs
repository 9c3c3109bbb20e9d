//! The way from the threads that read sources to the thread that checks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError};
use url::Url;

use super::{Occurrence, Problem};

/// A part of what the sources say. A batch belongs to one source.
#[derive(Debug, Default)]
pub struct Batch {
    /// A page that was given as an input: its spelling and its URL.
    pub page: Option<(Box<str>, Url)>,
    /// Places that refer to URLs.
    pub occurrences: Vec<Occurrence>,
    /// What is wrong with the source.
    pub problems: Vec<Problem>,
    /// How many links have a scheme that is not checked: `mailto:`, `tel:`, `data:`.
    pub unsupported: u64,
    /// How many lines are not what they should be, also those without a problem of their own among `problems`.
    pub wrong_lines: u64,
    /// How many links `--exclude` or `--include` left out.
    pub excluded: u64,
}

/// What all sources say, in the order of the inputs, of the paths in a folder, and of the places in a file. The number of
/// batches that wait is bounded. Dropping it stops the threads that read.
#[derive(Debug)]
pub struct Batches {
    /// The batches of each file or other source. The oldest file is always being read, so that waiting for its batches
    /// ends.
    files: Receiver<Receiver<Batch>>,
    /// The file whose batches are taken.
    current: Option<Receiver<Batch>>,
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
    pub(super) fn new(files: Receiver<Receiver<Batch>>, stop: Arc<AtomicBool>) -> Self {
        Self {
            files,
            current: None,
            stop,
        }
    }

    /// The next batch. Waits for it for no longer than `wait`, which may be zero.
    pub fn next(&mut self, wait: Duration) -> Next {
        let deadline = Instant::now() + wait;
        while !self.stop.load(Ordering::Relaxed) {
            let Some(current) = &self.current else {
                match self.files.recv_deadline(deadline) {
                    Ok(file) => self.current = Some(file),
                    Err(RecvTimeoutError::Timeout) => return Next::Nothing,
                    Err(RecvTimeoutError::Disconnected) => return Next::End,
                }
                continue;
            };
            match current.recv_deadline(deadline) {
                Ok(batch) => return Next::Batch(batch),
                Err(RecvTimeoutError::Timeout) => return Next::Nothing,
                Err(RecvTimeoutError::Disconnected) => self.current = None,
            }
        }
        Next::End
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
