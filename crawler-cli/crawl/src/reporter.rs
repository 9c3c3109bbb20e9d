//! The trait for the receiver of a crawl's events and results, which the crawl commits. One trait for all verbs.

use std::ops::ControlFlow;

/// What a verb reports.
pub trait Reports {
    /// What happens during a run.
    type Event<'a>;
    /// The progress or the outcome of a run.
    type Summary;
    /// Why results could not be saved.
    type StateError;
}

/// Receives the events of a run of the verb `V` and writes its results.
///
/// Only the run commits: it asks for the [results](Self::results) to write, saves them together with its progress,
/// and then has them [written](Self::write).
pub trait Reporter<V: Reports> {
    /// Receives an event. `Break` stops the run, and nothing more is reported.
    fn event(&mut self, event: &V::Event<'_>) -> ControlFlow<()>;

    /// The results to write now, and their offset if they go to a file. `None`: the results may wait.
    fn results(&mut self) -> Option<Results<'_>>;

    /// Writes the results, which have been saved.
    fn write(&mut self);

    /// The results could not be saved and must not be written.
    fn reject(&mut self, error: V::StateError);

    /// The run has ended: adds the last results.
    fn finish(&mut self, summary: &V::Summary);
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
pub struct Callback<F>(pub F);

impl<V: Reports, F: FnMut(&V::Event<'_>) -> ControlFlow<()>> Reporter<V> for Callback<F> {
    fn event(&mut self, event: &V::Event<'_>) -> ControlFlow<()> {
        (self.0)(event)
    }

    fn results(&mut self) -> Option<Results<'_>> {
        Some(Results::default())
    }

    fn write(&mut self) {}

    fn reject(&mut self, _: V::StateError) {}

    fn finish(&mut self, _: &V::Summary) {}
}
