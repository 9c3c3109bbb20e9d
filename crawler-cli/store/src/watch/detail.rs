//! What is read about watched URLs.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::due::Lane;
use crate::{Event, Host, UrlId};
use verdict::Answer;
use verdict::life::{Record as Life, State};

/// A URL that is or was watched.
#[derive(Clone, Debug)]
pub struct WatchedUrl {
    /// Its number.
    pub id: UrlId,
    /// The URL as it is printed: as it was given, without fragment.
    pub url: String,
    /// When it was first submitted.
    pub added: Timestamp,
    /// The last answer; `None` if it was never asked.
    pub answer: Option<Answer>,
    /// Its life.
    pub life: Life,
    /// When it is due next, and in which lane; `None` if it is not to be asked.
    pub due: Option<(Lane, Timestamp)>,
    /// In how many sets it is.
    pub sets: u32,
    /// Since when it is in no set; `None` while it is in one.
    pub left_at: Option<Timestamp>,
}

/// Everything about one URL.
#[derive(Clone, Debug)]
pub struct UrlDetail {
    /// What is read about each URL.
    pub url: WatchedUrl,
    /// Its host.
    pub host: Host,
    /// The names of its sets.
    pub sets: Vec<String>,
    /// Its changes of state, oldest first: at most the last 100.
    pub events: Vec<Event>,
}

/// How many watched URLs there are. Kept up to date by each transaction, and read at once.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct WatchCounts {
    /// The URLs that are in a set, by their states.
    pub states: BTreeMap<State, u64>,
    /// Those of them that have a due row, by lane.
    pub due: BTreeMap<Lane, u64>,
    /// The members of all sets.
    pub members: u64,
    /// The URLs that are in no set any more, and whose history is kept.
    pub kept: u64,
    /// The hosts with a URL that is in a set.
    pub hosts: u64,
    /// The URLs that are in a set, and whose last answer was that their host has a private address, which is not asked.
    pub private: u64,
}

impl WatchCounts {
    /// How many URLs are in a set.
    pub fn urls(&self) -> u64 {
        self.states.values().sum()
    }
}

/// The watched URLs of a host.
#[derive(Clone, Debug)]
pub struct HostDetail {
    /// The host, and what is known about it.
    pub host: Host,
    /// How many of its URLs are in a set.
    pub urls: u64,
    /// How many of its URLs are in [`Lane::Held`].
    pub held: u64,
    /// When its next URL is due by schedule.
    pub next: Option<Timestamp>,
    /// When its next URL in doubt is due.
    pub next_doubt: Option<Timestamp>,
}
