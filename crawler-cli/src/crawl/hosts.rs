//! The hosts of a crawl, in the order of their discovery, each with its work.

use std::collections::HashMap;

use url::{Position, Url};

/// The hosts of a crawl, each with the work to be done there.
#[derive(Debug)]
pub struct Hosts<W> {
    all: Vec<Host<W>>,
    /// By the URL of the root of the host.
    by_root: HashMap<Url, HostId>,
}

/// The index of a host in its crawl.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct HostId(pub usize);

/// One host.
#[derive(Debug)]
pub(super) struct Host<W> {
    pub(super) work: W,
    /// Scheme and authority: the part of its URLs before the path.
    pub(super) base: String,
    /// Whether requests to the host go through a proxy.
    pub(super) is_proxied: bool,
    /// Calls to the host in the client.
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
    /// Adds a host. `root` is the URL of its root.
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

    /// The host with this root URL.
    pub fn at(&self, root: &Url) -> Option<HostId> {
        self.by_root.get(root).copied()
    }

    /// The number of hosts.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there are no hosts.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The ids of all hosts.
    pub fn ids(&self) -> impl Iterator<Item = HostId> + use<W> {
        (0..self.all.len()).map(HostId)
    }

    /// The work at one host.
    pub fn work(&mut self, id: HostId) -> &mut W {
        &mut self.all[id.0].work
    }

    /// The work at all hosts.
    pub fn works(&self) -> impl Iterator<Item = &W> {
        self.all.iter().map(|host| &host.work)
    }

    /// The ids and the work of all hosts.
    pub fn works_mut(&mut self) -> impl Iterator<Item = (HostId, &mut W)> {
        let all = self.all.iter_mut().enumerate();
        all.map(|(index, host)| (HostId(index), &mut host.work))
    }

    pub(super) fn host(&mut self, id: HostId) -> &mut Host<W> {
        &mut self.all[id.0]
    }
}
