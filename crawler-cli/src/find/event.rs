//! What a search reports.

use super::expr::ActError;
use super::found::{Found, Saved, Unread};
use super::state::StateError;
use super::summary::Summary;

/// What [`Find::run`](super::Find::run)(super::Find::run) reports.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A wanted file or directory: `-print`.
    Found(Found<'a>),
    /// What another action writes to where results go, as it is: `-printf`, `-ls`.
    Output {
        /// What it is written about.
        found: Found<'a>,
        /// The text.
        bytes: &'a [u8],
    },
    /// An action could not be performed.
    Failed(&'a ActError),
    /// The search cannot be kept in its file, and ends.
    Unkept(&'a StateError),
    /// A URL that could not be read, whether or not it would have matched.
    Unread(Unread<'a>),
    /// A wanted file is on the disk.
    Downloaded(Saved<'a>),
    /// The search has done what there was to do and will wait now: the time to show progress and to write out what
    /// was gathered. Comes at least ten times a second, and once at the end.
    Turn(&'a Summary),
}
