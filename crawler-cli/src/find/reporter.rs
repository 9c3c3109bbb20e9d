//! Who is told of a search, and writes its results.

use std::ops::ControlFlow;

use super::event::Event;
use super::state::StateError;
use super::summary::Summary;

/// Gets what a search reports, and writes its results.
///
/// The search alone commits: it asks for the [results](Self::results) that are to be written, keeps them together with
/// what was done, and then has them [written](Self::write).
pub trait Reporter {
    /// Something was found, or has happened. When it breaks, the search stops and nothing more is reported.
    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()>;

    /// The results that are to be written now, and where in the file that they go to, if it is one. `None`: they may wait
    /// for longer.
    fn results(&mut self) -> Option<Results<'_>>;

    /// Writes these results, which are kept by now.
    fn write(&mut self);

    /// These results could not be kept, and must not be written.
    fn reject(&mut self, error: StateError);

    /// The search is over: adds the last results.
    fn finish(&mut self, summary: &Summary);
}

/// Results that are about to be written.
#[derive(Clone, Copy, Debug, Default)]
pub struct Results<'a> {
    /// The text.
    pub bytes: &'a [u8],
    /// Where in the file, if they go to one.
    pub place: Option<u64>,
}

/// Hears of events, and leaves results to them.
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
