//! Hosts and what is known about them.

use std::time::Duration;

use jiff::Timestamp;

/// The number of a host in a store.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct HostId(pub i64);

/// A host: a scheme, a host name and a port.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Host {
    /// Its number.
    pub id: HostId,
    /// The URL of its root: `https://example.com/`.
    pub root: String,
    /// What is known about it from earlier runs.
    pub facts: HostFacts,
}

/// What was learned about a host.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct HostFacts {
    /// Until when HEAD is not used, because the host does not know it.
    pub no_head_until: Option<Timestamp>,
    /// Until when HEAD is not used, because the host denies what GET finds.
    pub head_lies_until: Option<Timestamp>,
    /// When the host last gave any answer below 500.
    pub answered_at: Option<Timestamp>,
    /// The last control: a request whose answer says whether the host works at all.
    pub control: Option<Control>,
    /// The negative episodes of the host's URLs that were cleared, oldest first: what
    /// [`Cleared`](crate::check::life::Cleared) keeps.
    pub episodes: Vec<Episode>,
}

/// The result of a host's control request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Control {
    /// When it was asked.
    pub at: Timestamp,
    /// The status; `None` if there was no answer.
    pub status: Option<u16>,
}

/// A span in which a URL was negative, and after which it was good again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Episode {
    /// When the URL was good again.
    pub ended: Timestamp,
    /// How long it had been negative; kept to the millisecond.
    pub length: Duration,
}
