//! What a command says on standard error while it runs: messages, and the progress line.

use std::io::{self, IsTerminal as _, Write as _};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::live::{Live, Progress, Viewed};
use super::waits::Waits;
use plain::terminal;

/// The messages that are not written yet, and the line.
#[derive(Debug)]
pub(super) struct Messages {
    /// The name of the command stands in front of each message.
    command: &'static str,
    waiting: Vec<u8>,
    live: Live,
    waits: Waits,
    /// A signal asks the run to end.
    interrupted: Arc<AtomicBool>,
}

impl Messages {
    pub(super) fn new(
        command: &'static str,
        progress: Progress,
        interrupted: Arc<AtomicBool>,
    ) -> Self {
        Self {
            command,
            waiting: Vec::new(),
            live: Live::new(progress),
            waits: Waits::default(),
            interrupted,
        }
    }

    pub(super) fn add(&mut self, text: &str) {
        let text = format!("crawler-cli {}: {text}", self.command);
        let text = terminal::neutralise(&text);
        self.waiting.extend_from_slice(text.as_bytes());
        self.waiting.push(b'\n');
    }

    /// Results and the line share one terminal.
    pub(super) fn share_terminal(&self) -> bool {
        self.live.is_shown() && io::stdout().is_terminal()
    }

    /// Draws the line, and says what hosts were given up. Long waits are messages where there is no line, if
    /// `tells_waits`. The run ends after a signal: here, between two turns, so that what is kept of a run is of whole turns.
    pub(super) fn progress(&mut self, summary: &impl Viewed, tells_waits: bool) -> ControlFlow<()> {
        let now = Instant::now();
        self.live.draw(summary, now);
        let mut lines = self.waits.given_up(summary.stats());
        if tells_waits && !self.live.is_shown() {
            lines.extend(self.waits.begun(summary.stats(), now, jiff::Zoned::now));
        }
        lines.iter().for_each(|line| self.add(line));
        match self.interrupted.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    /// Writes the messages.
    pub(super) fn write(&mut self) {
        if !self.waiting.is_empty() {
            let messages = std::mem::take(&mut self.waiting);
            self.live.suspend(|| {
                // An error on standard error cannot be reported anywhere.
                let _ = io::stderr().write_all(&messages);
            });
        }
    }

    /// Runs `write`, which writes to the terminal of the line. `ends_line`: it writes whole lines.
    pub(super) fn suspend<T>(&mut self, ends_line: bool, write: impl FnOnce() -> T) -> T {
        match ends_line {
            true => self.live.suspend(write),
            false => self.live.remove(write),
        }
    }

    /// Removes the line.
    pub(super) fn finish(&mut self) {
        self.live.finish();
    }
}
