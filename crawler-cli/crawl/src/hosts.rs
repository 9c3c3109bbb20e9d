//! The hosts of a crawl, each with its work.

use std::borrow::Cow;
use std::collections::HashMap;

use courser::{Proxies, proto};
use url::{Position, Url};

use super::identity::{Identities, Identity};
use super::transfer::Transfer;
use plain::origin::root_of;

/// The hosts of a crawl, each with the work to be done there.
#[derive(Debug)]
pub struct Hosts<W> {
    /// `None`: a host was removed, and its id can be given to another one.
    all: Vec<Option<Host<W>>>,
    free: Vec<HostId>,
    /// By the URL of the root of the host.
    by_root: HashMap<Url, HostId>,
    identities: Identities,
    proxies: Proxies,
    /// The number of hosts at which those without work are removed.
    crowd: usize,
}

/// The index of a host in its crawl. The id of a host that was removed is used again.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct HostId(pub usize);

/// One host.
#[derive(Debug)]
pub(super) struct Host<W> {
    pub(super) work: W,
    pub(super) root: Url,
    /// Scheme and authority: the part of its URLs before the path.
    pub(super) base: String,
    /// What requests to the host carry.
    pub(super) identity: Identity,
    /// Calls to the host in the client.
    pub(super) in_flight: usize,
    /// The largest number of them; the scheduler has a limit for all hosts, too.
    pub(super) connections: usize,
    /// The index of the host in the statistics.
    pub(super) stats: usize,
}

impl<W> Hosts<W> {
    /// No hosts. Those that are added get the identities and the proxies of `transfer`.
    pub fn new(transfer: &Transfer) -> Self {
        Self {
            all: Vec::new(),
            free: Vec::new(),
            by_root: HashMap::new(),
            identities: transfer.identities.clone(),
            proxies: transfer.proxies.clone(),
            crowd: LEAST_CROWD,
        }
    }

    /// Adds a host. `root` is the URL of its root, `stats` its index in the statistics.
    pub(super) fn add(&mut self, root: Url, stats: usize, work: W) -> HostId {
        let host = Host {
            work,
            base: root[..Position::BeforePath].to_owned(),
            root: root.clone(),
            identity: self.identities.of(&root),
            in_flight: 0,
            connections: usize::MAX,
            stats,
        };
        let id = match self.free.pop() {
            Some(id) => {
                self.all[id.0] = Some(host);
                id
            }
            None => {
                self.all.push(Some(host));
                HostId(self.all.len() - 1)
            }
        };
        self.by_root.insert(root, id);
        id
    }

    /// What a request of a host carries to this URL. A download may have been redirected to another host, which gets what the
    /// user named for it, and nothing else.
    pub(super) fn identity(&mut self, id: HostId, url: &str) -> Cow<'_, Identity> {
        let host = self.host(id);
        let is_own = url
            .strip_prefix(host.base.as_str())
            .is_some_and(|rest| rest.starts_with(['/', '?', '#']) || rest.is_empty());
        if is_own {
            return Cow::Borrowed(&self.host(id).identity);
        }
        let other = Url::parse(url).map(|url| self.identities.of(&root_of(&url)));
        // A request with another target is refused.
        Cow::Owned(other.unwrap_or_default())
    }

    /// Sets the largest number of requests in flight to a host. The limit for all hosts holds, too.
    pub fn set_connections(&mut self, id: HostId, most: usize) {
        self.host(id).connections = most;
    }

    /// Hosts that are added from now on get these identities and proxies.
    pub fn set_transfer(&mut self, transfer: &Transfer) {
        self.identities = transfer.identities.clone();
        self.proxies = transfer.proxies.clone();
    }

    /// The proxy for the host with this root, without credentials.
    pub fn proxy(&self, root: &Url) -> Option<String> {
        let url = proto::Url::parse(root.as_str()).ok()?;
        self.proxies.pick(&url).map(ToString::to_string)
    }

    /// Removes a host that has no calls.
    pub(super) fn remove(&mut self, id: HostId) -> Option<W> {
        let host = self.all.get_mut(id.0)?.take()?;
        self.by_root.remove(&host.root);
        self.free.push(id);
        Some(host.work)
    }

    /// The host with this root URL.
    pub fn at(&self, root: &Url) -> Option<HostId> {
        self.by_root.get(root).copied()
    }

    /// Whether the hosts without work are to be removed before another is added.
    pub(super) fn is_crowded(&self) -> bool {
        self.len() >= self.crowd
    }

    /// The hosts without work were removed. They are not looked for again before many others have come.
    pub(super) fn handle_tidied(&mut self) {
        self.crowd = LEAST_CROWD.max(self.len() * 2);
    }

    /// The number of hosts.
    pub fn len(&self) -> usize {
        self.all.len() - self.free.len()
    }

    /// Whether there are no hosts.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The ids of all hosts.
    pub fn ids(&self) -> impl Iterator<Item = HostId> {
        let all = self.all.iter().enumerate();
        all.filter(|(_, host)| host.is_some())
            .map(|(index, _)| HostId(index))
    }

    /// The work at one host. The caller may not add to the work: the scheduler does not notice; see
    /// [`work_and_calls`](super::scheduler::Scheduler::work_and_calls).
    pub fn work(&mut self, id: HostId) -> &mut W {
        &mut self.host(id).work
    }

    /// The work at all hosts.
    pub fn works(&self) -> impl Iterator<Item = &W> {
        self.all.iter().flatten().map(|host| &host.work)
    }

    /// The ids and the work of all hosts.
    pub fn works_mut(&mut self) -> impl Iterator<Item = (HostId, &mut W)> {
        let all = self.all.iter_mut().enumerate();
        all.filter_map(|(index, host)| Some((HostId(index), &mut host.as_mut()?.work)))
    }

    /// The index of a host in the statistics.
    pub fn stats(&mut self, id: HostId) -> usize {
        self.host(id).stats
    }

    /// The host with an id that is in use.
    pub(super) fn host(&mut self, id: HostId) -> &mut Host<W> {
        // Ids are given out by `add`, and forgotten by everyone when their host is removed.
        self.all[id.0].as_mut().expect("the host was not removed")
    }
}

/// Hosts in memory, of which some may have no work.
const LEAST_CROWD: usize = 4_000;
