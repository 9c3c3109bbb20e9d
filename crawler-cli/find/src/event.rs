//! The events of a search.

use super::expr::ActError;
use super::found::{Found, Saved, Unread};
use super::state::StateError;
use super::summary::Summary;

/// The events that [`Find::run`](super::Find::run) reports.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A file or directory that matched: `-print`.
    Found(Found<'a>),
    /// Output of another action, to be written unchanged: `-printf`, `-ls`.
    Output(&'a [u8]),
    /// An action failed.
    Failed(&'a ActError),
    /// The state of the search could not be saved. The search ends.
    StateFailed(&'a StateError),
    /// A URL that could not be read, whether or not it would have matched.
    Unread(Unread<'a>),
    /// A URL that was not asked, or not to the end, because the search was stopped. These come at the very end.
    NotReached(&'a str),
    /// A wanted file is complete on disk.
    Downloaded(Saved<'a>),
    /// The search has no more work for now and is about to wait: the time to show progress and to write out what was
    /// gathered. Comes at least ten times a second, and once at the end.
    Progress(&'a Summary),
}
