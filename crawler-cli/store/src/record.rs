//! What is read for reports.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::host::HostId;
use super::link::UrlId;
use verdict::Answer;
use verdict::life::{Record as Life, State};
use verdict::{Class, Reference};

/// The number of a distinct spelling of a URL in a run. Spellings that are found later have larger numbers.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct LinkId(pub i64);

impl LinkId {
    /// Before the first link.
    pub const START: Self = Self(0);
}

/// Which records are read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Selection {
    /// All.
    All,
    /// Those of URLs that are judged in this run.
    Judged,
    /// Those of URLs that are not judged.
    Unjudged,
}

/// A URL in one of its spellings, with the places that spell it so.
#[derive(Clone, Debug)]
pub struct Record {
    /// The spelling's number.
    pub link: LinkId,
    /// The URL's number.
    pub id: UrlId,
    /// The host; `None` for what is never asked.
    pub host: Option<HostId>,
    /// The URL as it is printed.
    pub spelling: String,
    /// What was answered in this run; `None` if it is not judged.
    pub answer: Option<Answer>,
    /// The URL's life after the answer; `None` for what is never asked.
    pub life: Option<Life>,
    /// Whether the answer is that of an earlier run, which was still good enough.
    pub is_reused: bool,
    /// The places, in the order in which they were found.
    pub references: Vec<Reference>,
}

/// What is known about a URL.
#[derive(Clone, Debug)]
pub struct UrlHistory {
    /// Its number.
    pub id: UrlId,
    /// The URL, without fragment.
    pub url: String,
    /// The last answer.
    pub answer: Option<Answer>,
    /// Its life until then.
    pub life: Option<Life>,
    /// Its changes of state, oldest first: at most the last 100.
    pub events: Vec<Event>,
}

/// The place of an event in the order of events: unique, and later events have larger ones.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Cursor(pub i64);

impl Cursor {
    /// Before the first event.
    pub const START: Self = Self(0);

    /// After the last event, and after all that are to come.
    pub const END: Self = Self(i64::MAX);
}

/// How many numbers each restore of a backup leaves out: more than there are changes in years.
pub(crate) const SKIPPED: i64 = 1 << 32;

/// A change of a URL's state.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Event {
    /// Its place in the order of events.
    pub cursor: Cursor,
    /// When.
    pub at: Timestamp,
    /// The URL.
    pub url: String,
    /// The state before: that after the URL's previous change.
    pub from: State,
    /// The state after.
    pub to: State,
    /// The status of the answer.
    pub status: Option<u16>,
    /// Why, in words.
    pub why: String,
}

/// How many URLs of a run have which verdict and state.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Counts {
    /// URLs by the classes of their verdicts.
    pub classes: BTreeMap<Class, u64>,
    /// URLs by their states; what is never asked has none.
    pub states: BTreeMap<State, u64>,
    /// URLs that are to be asked.
    pub queued: u64,
}
