//! The hosts of a crawl, in the order in which they were first met.

use std::collections::HashMap;

use url::{Position, Url};

/// The hosts of a crawl, each with the work that is to be done there.
#[derive(Debug)]
pub struct Hosts<W> {
    all: Vec<Host<W>>,
    /// By the URL of the root.
    by_root: HashMap<Url, HostId>,
}

/// Names a host of a crawl.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct HostId(pub usize);

/// One host.
#[derive(Debug)]
pub(super) struct Host<W> {
    pub(super) work: W,
    /// What stands before a path in its URLs.
    pub(super) base: String,
    /// Whether requests to the host go through a proxy.
    pub(super) is_proxied: bool,
    /// Requests that the client has.
    pub(super) in_flight: usize,
}

impl<W> Default for Hosts<W> {
    fn default() -> Self {
        Self {
            all: Vec::new(),
            by_root: HashMap::new(),
        }
    }
}

impl<W> Hosts<W> {
    /// Adds the host of this URL, which is that of its root.
    pub fn add(&mut self, root: Url, is_proxied: bool, work: W) -> HostId {
        let id = HostId(self.all.len());
        self.all.push(Host {
            work,
            base: root[..Position::BeforePath].to_owned(),
            is_proxied,
            in_flight: 0,
        });
        self.by_root.insert(root, id);
        id
    }

    /// The host with this root.
    pub fn at(&self, root: &Url) -> Option<HostId> {
        self.by_root.get(root).copied()
    }

    /// How many hosts there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The names of all hosts.
    pub fn ids(&self) -> impl Iterator<Item = HostId> + use<W> {
        (0..self.all.len()).map(HostId)
    }

    /// The work at a host.
    pub fn work(&mut self, id: HostId) -> &mut W {
        &mut self.all[id.0].work
    }

    /// The work at all hosts.
    pub fn works(&self) -> impl Iterator<Item = &W> {
        self.all.iter().map(|host| &host.work)
    }

    /// The work at all hosts.
    pub fn works_mut(&mut self) -> impl Iterator<Item = (HostId, &mut W)> {
        let all = self.all.iter_mut().enumerate();
        all.map(|(index, host)| (HostId(index), &mut host.work))
    }

    pub(super) fn host(&mut self, id: HostId) -> &mut Host<W> {
        &mut self.all[id.0]
    }
}
