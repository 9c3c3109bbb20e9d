//! The events of a check.

use super::record::Checked;
use super::sources::Problem;
use super::summary::Summary;
use store::StoreError;
use verdict::guard::Guard;

/// The events that [`Checker::run`](super::Checker::run) reports.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A URL was judged, and this is what there is to say about it, with all places that are known. For places that are
    /// found later the URL comes [again](Checked::before).
    Checked(&'a Checked),
    /// A source could not be read, or not completely.
    Problem(&'a Problem),
    /// A guard was turned on or off.
    Guard(&'a GuardChange),
    /// The state could not be saved. The check ends.
    StateFailed(&'a StoreError),
    /// The network cannot be used at all: the TLS settings are wrong, or the operating system refuses. The check ends.
    NetworkFailed(&'a (dyn std::error::Error + 'static)),
    /// The check has no more work for now and is about to wait: the time to show progress and to write out what was
    /// gathered. Comes at least ten times a second, and once at the end.
    Progress(&'a Summary),
}

/// A guard was turned on or off.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct GuardChange {
    /// The guard.
    pub guard: Guard,
    /// The host that the guard is about: scheme and authority. `None`: the own network.
    pub host: Option<String>,
    /// Whether the guard is on now.
    pub is_on: bool,
    /// Why, in words: `20 of 24 hosts that answered before fail now`.
    pub detail: String,
}
