//! Entries of queues, and what completes them.

use jiff::Timestamp;

use super::answer::Answer;
use super::host::HostId;
use super::link::{Demand, UrlId};

/// The number of an entry in the queue of a host. Later entries have larger numbers; no number is used twice.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct EntryId(pub i64);

impl EntryId {
    /// Before the first entry.
    pub const START: Self = Self(0);
}

/// A URL that the run has to ask.
#[derive(Clone, Debug)]
pub struct Queued {
    /// The entry, to complete it.
    pub entry: EntryId,
    /// The host in whose queue it is.
    pub host: HostId,
    /// The URL's number.
    pub id: UrlId,
    /// The URL, without fragment.
    pub url: String,
    /// What is wanted from it.
    pub demand: Demand,
    /// What is known from earlier; `None` if the URL was never asked.
    pub past: Option<Past>,
}

/// What is known about a URL that was asked before.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Past {
    /// The last answer.
    pub answer: Answer,
    /// Whether the answer was given in this run; a further link wants more from the URL.
    pub in_this_run: bool,
}

/// A URL that was asked.
#[derive(Clone, Debug)]
pub struct Completed {
    /// The entry.
    pub entry: EntryId,
    /// The host in whose queue it is.
    pub host: HostId,
    /// The URL's number.
    pub id: UrlId,
    /// What the answer met.
    pub demand: Demand,
    /// The answer; `None` if the earlier one is still good enough.
    pub answer: Option<Answer>,
    /// The URL's changes of state, in order.
    pub changes: Vec<Change>,
    /// The names of elements, if they are wanted: in the caller's encoding.
    pub anchors: Option<Box<[u8]>>,
}

/// A change of a URL's state.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Change {
    /// When.
    pub at: Timestamp,
    /// The status of the answer.
    pub status: Option<u16>,
    /// Why, in words.
    pub why: String,
}
