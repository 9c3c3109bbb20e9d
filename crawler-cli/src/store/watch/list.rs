//! Lists that may have millions of rows: they are read a page at a time, each page after the last row of the one before.

use jiff::Timestamp;

use crate::check::life::State;
use crate::store::{HostId, UrlId};

/// A piece of a list.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Page<T, K> {
    /// The rows.
    pub rows: Vec<T>,
    /// Where the next page begins; `None` if there is none. A page with few rows or none may have a next one: a store looks
    /// at a bounded number of rows for each page, and not all of them may be meant.
    pub next: Option<K>,
}

impl<T, K> Default for Page<T, K> {
    fn default() -> Self {
        Self {
            rows: Vec::new(),
            next: None,
        }
    }
}

/// The URLs that are in a set, and pass all that is given.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct UrlList {
    /// Those of this set.
    pub set: Option<String>,
    /// Those of the host with this root: `https://example.com/`. What is wrong comes first, and what is due first then.
    pub host: Option<String>,
    /// Those in this state.
    pub state: Option<State>,
    /// Those after this one: [`Page::next`] of the page before.
    pub after: Option<UrlKey>,
}

/// A place in a list of URLs. A key fits the list that it came from.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum UrlKey {
    /// After the URL with this number.
    Number(UrlId),
    /// In a list of a host: after this URL of those in this state that are not due in the lane of good URLs.
    OfState(State, UrlId),
    /// In a list of a host: after this URL of those in the lane of good URLs, which is due then.
    Due(Timestamp, UrlId),
}

/// A list of the hosts with URLs in sets.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum HostList {
    /// By their names, those with https first.
    Named {
        /// Names begin with this text; empty for all.
        prefix: String,
        /// After the host with this root.
        after: Option<String>,
    },
    /// Those that have a URL due by schedule, in the order of the times: what has waited longest comes first.
    Waiting {
        /// After this host, whose first URL is due then.
        after: Option<(Timestamp, HostId)>,
    },
}
