//! Links: what sources contribute to a run.

use url::Url;

use super::host::{Host, HostId};
use super::record::LinkId;
use verdict::{Reference, Verdict};

/// The number of a URL in a store.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct UrlId(pub i64);

/// A place that refers to a URL.
#[derive(Clone, Debug)]
pub struct Link {
    /// The URL as it is printed: as given, or as resolved against its base.
    pub spelling: Box<str>,
    /// What it leads to.
    pub target: Target,
    /// The place.
    pub reference: Reference,
    /// Whether the place is in a fetched page. An interrupted run fetches no page again, so it keeps such links; the
    /// others are added again.
    pub is_in_page: bool,
}

/// What a link leads to.
#[derive(Clone, Debug)]
pub enum Target {
    /// A URL to ask. Its fragment is not part of its identity.
    Ask(Url, Demand),
    /// Nothing to ask: the verdict is known at once, perhaps with more about the cause. The identity is the spelling.
    Local(Verdict, Option<String>),
}

/// What is wanted from a URL. The demands of all links to it are joined.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Demand {
    /// The user named it, in arguments, a list or a local file: robots.txt does not apply.
    pub given: bool,
    /// A private address may be dialled for it: the user named it, or what leads to it has a private address.
    pub private: bool,
    /// Its links are wanted: its body is read.
    pub links: bool,
    /// How many links lead from what the user named to it; the least of all ways. At most 65,535.
    pub depth: u16,
}

impl Demand {
    /// The demand of two links to one URL.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        Self {
            given: self.given || other.given,
            private: self.private || other.private,
            links: self.links || other.links,
            depth: self.depth.min(other.depth),
        }
    }

    /// Whether an answer to the demand `asked` also answers this demand. If links are wanted, they are also found again
    /// when the URL turns out to be nearer than thought, because their own depths change.
    pub fn is_met_by(self, asked: Self) -> bool {
        (asked.given || !self.given)
            && (asked.private || !self.private)
            && (!self.links || (asked.links && asked.depth <= self.depth))
    }
}

/// What became of links that were added.
#[derive(Clone, Debug, Default)]
pub struct Added {
    /// Hosts that had no entry in this run before, in the order of their first links.
    pub new_hosts: Vec<Host>,
    /// How many entries joined the queues of hosts, by host.
    pub queued: Vec<(HostId, u32)>,
    /// Links to URLs that are judged already in this run, or need not be asked.
    pub judged: Vec<JudgedLink>,
    /// URLs that were completed and are queued again, because more is wanted from them by now than was met.
    pub again: Vec<UrlId>,
}

/// A link to a URL that is judged already.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct JudgedLink {
    /// The index of the link in the batch; among those of all pages of the batch, if pages contributed them.
    pub index: usize,
    /// The URL.
    pub id: UrlId,
    /// The spelling.
    pub link: LinkId,
    /// Whether what is known answers this link. If not, the URL is queued again.
    pub is_met: bool,
}
