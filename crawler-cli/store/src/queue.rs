//! Entries of queues, and what completes them.

use jiff::Timestamp;
use url::Url;

use super::host::HostId;
use super::link::{Demand, Link, UrlId};
use verdict::Answer;
use verdict::life::{Record as Life, State, Transition};

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
    pub url: Url,
    /// What is wanted from it.
    pub demand: Demand,
    /// What is known from earlier; `None` if the URL was never asked.
    pub past: Option<Box<Past>>,
}

/// What is known about a URL that was asked before.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Past {
    /// The last answer.
    pub answer: Answer,
    /// Its life until then; `None` for a verdict without life.
    pub life: Option<Life>,
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
    /// The answer, and the URL's life after it; `None` if the earlier ones are still good enough.
    pub judged: Option<(Answer, Option<Life>)>,
    /// The URL's changes of state, in order.
    pub changes: Vec<Change>,
    /// The links of the page, if they are wanted.
    pub links: Vec<Link>,
}

impl Completed {
    /// An answer to everything that was wanted, without life, changes or links.
    pub fn new(queued: &Queued, answer: Answer) -> Self {
        Self {
            entry: queued.entry,
            host: queued.host,
            id: queued.id,
            demand: queued.demand,
            judged: Some((answer, None)),
            changes: Vec::new(),
            links: Vec::new(),
        }
    }
}

/// A change of a URL's state.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Change {
    /// When.
    pub at: Timestamp,
    /// The state before.
    pub from: State,
    /// The state after.
    pub to: State,
    /// The status of the answer.
    pub status: Option<u16>,
    /// Why, in words.
    pub why: String,
}

impl Change {
    /// From a transition of a URL's life. `status`: that of the answer, if an answer caused it.
    pub fn new(transition: &Transition, status: Option<u16>) -> Self {
        Self {
            at: transition.at,
            from: transition.from,
            to: transition.to,
            status,
            why: transition.why.name().into_owned(),
        }
    }
}
