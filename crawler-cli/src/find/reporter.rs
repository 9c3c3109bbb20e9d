//! The trait for the receiver of a search's events and results, which the search commits.

use std::ops::ControlFlow;

use super::event::Event;
use super::state::StateError;
use super::summary::Summary;

/// Receives the events of a search and writes its results.
///
/// Only the search commits: it asks for the [results](Self::results) to write, saves them together with its progress,
/// and then has them [written](Self::write).
pub trait Reporter {
    /// Receives an event. `Break` stops the search, and nothing more is reported.
    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()>;

    /// The results to write now, and their offset if they go to a file. `None`: the results may wait.
    fn results(&mut self) -> Option<Results<'_>>;

    /// Writes the results, which have been saved.
    fn write(&mut self);

    /// The results could not be saved and must not be written.
    fn reject(&mut self, error: StateError);

    /// The search has ended: adds the last results.
    fn finish(&mut self, summary: &Summary);
}

/// Results to write.
#[derive(Clone, Copy, Debug, Default)]
pub struct Results<'a> {
    /// The text.
    pub bytes: &'a [u8],
    /// The offset in the file, if they go to a file.
    pub place: Option<u64>,
}

/// Passes events to a closure, which writes results itself.
pub(super) struct Callback<F>(pub(super) F);

impl<F: FnMut(Event<'_>) -> ControlFlow<()>> Reporter for Callback<F> {
    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        (self.0)(*event)
    }

    fn results(&mut self) -> Option<Results<'_>> {
        Some(Results::default())
    }

    fn write(&mut self) {}

    fn reject(&mut self, _: StateError) {}

    fn finish(&mut self, _: &Summary) {}
}
