//! The trait for the receiver of a crawl's events and results, which the crawl commits. One trait for all verbs.

use std::ops::{ControlFlow, Range};

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

    /// Drops the results that were not written: they could not be saved, and others will find them again.
    fn discard(&mut self) {}

    /// Adds results of a process that was killed before it wrote them.
    fn inherit(&mut self, _results: &[u8]) {}

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
    /// The entries among the results, each with its URL, in their order. What is before the first one and after the last
    /// one belongs to no entry. Known only to reporters of a search that several processes share.
    pub entries: &'a [ResultEntry],
}

/// An entry among the results.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ResultEntry {
    /// The URL of the entry.
    pub url: String,
    /// The bytes that are about the entry.
    pub range: Range<usize>,
}

/// Passes events to a closure, which writes results itself.
pub(crate) struct Callback<F>(pub(crate) F);

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
