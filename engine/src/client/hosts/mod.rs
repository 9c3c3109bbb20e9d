//! The hosts of a client. Each host has a pool, a route to open connections, and defaults for its requests.
//!
//! When an event changes a host, the host is *touched*, and the engine services it before the iteration ends. The other
//! hosts cost nothing. If all hosts together have a cap on connections and the cap is reached, a host that needs a
//! connection waits in [`cap`].

mod cap;

use std::sync::Arc;
use std::time::Duration;

use self::cap::{ConnectionCap, UnderCap, Want, next_wanting};
use super::throttle::HostThrottle;
use crate::address::Address;
use crate::policy::queue::{Queue, Ticket};
use crate::policy::{
    AddressPolicy, Breaker, Caps, Counters, Latencies, Pool, PoolConfig, Proxy, Rates,
    RetryAccount, later,
};
use crate::proto::Defaults;
use crate::reactor::{CallKey, ConnKey, HostKey, OpeningKey, Slab, Step, of};
use crate::time::Time;

#[derive(Debug)]
pub(crate) struct Hosts {
    hosts: HostSlab,
    /// The settings of each host's pool.
    pool: PoolConfig,
    /// The throttle rules of each host; `None` if hosts are not throttled.
    throttle: Option<Rates>,
    /// Hosts to be serviced. Invariant: a host is in this list once if it is `touched`, else it is not in the list.
    touched: Vec<HostKey>,
    /// The cap on the connections of all hosts.
    pub(super) cap: ConnectionCap,
    /// Hosts without connections and calls, in the order in which they became unused.
    unused: Queue<Unused>,
    /// The connections that hosts had opened which were dropped.
    opened_before: u64,
}

pub(super) type HostSlab = Slab<Host, of::Host>;

#[derive(Debug)]
pub(crate) struct Host {
    /// The name of the host in the router.
    pub(crate) name: Box<[u8]>,
    pub(crate) pool: Pool<OpeningKey, ConnKey, CallKey>,
    pub(crate) defaults: Defaults,
    pub(crate) route: HostRoute,
    /// Decides whether attempts may start. Made at the first attempt, if the client has breakers.
    pub(crate) breaker: Option<Box<Breaker>>,
    pub(crate) throttle: HostThrottle,
    /// The rest of the retry budget. Made at the first retry.
    pub(crate) retries: Option<RetryAccount>,
    /// How long the latest answers took, if the client has adaptive limits.
    pub(crate) latencies: Option<Box<Latencies>>,
    touched: bool,
    /// The host gets no more calls. It is dropped when its connections have ended.
    pub(crate) leaving: bool,
    under_cap: UnderCap,
    unused: Option<Ticket>,
    /// When the host is serviced without an event.
    timer: Option<Time>,
}

/// How connections to a host are opened.
#[derive(Debug)]
pub(crate) struct HostRoute {
    pub(crate) addresses: Addresses,
    pub(crate) handshakes: Arc<[Step]>,
    /// The name and the port of the server, if this client looks up the name for a SOCKS5 proxy. The SOCKS handshake
    /// then sends the address.
    pub(crate) socks_target: Option<(Box<str>, u16)>,
    /// Kept because the address of this value in memory is part of the host's name.
    pub(crate) proxy: Option<Arc<Proxy>>,
    /// Which addresses of the server may be connected to; `None`: those that the client allows. Kept for the same reason.
    pub(crate) allowed: Option<Arc<AddressPolicy>>,
    /// Counts the openings, perhaps from a random number on: each opening starts with the next address. `None` before the
    /// first opening.
    pub(crate) openings: Option<usize>,
}

impl HostRoute {
    /// A route to these addresses, with these handshakes.
    pub(crate) fn new(addresses: Addresses, handshakes: Arc<[Step]>) -> Self {
        Self {
            addresses,
            handshakes,
            socks_target: None,
            proxy: None,
            allowed: None,
            openings: None,
        }
    }
}

/// Where the connections of a host go.
#[derive(Debug)]
pub(crate) enum Addresses {
    Known(Vec<Address>),
    /// The addresses of this name, with this port.
    Named(Box<str>, u16),
    /// The addresses of this name, with this port. Each address is a host of its own: this host only waits for them.
    Spread(Box<str>, u16),
}

impl Addresses {
    /// The address, if there is exactly one known address.
    pub(crate) fn only(&self) -> Option<&Address> {
        match self {
            Self::Known(addresses) if addresses.len() == 1 => addresses.first(),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Unused {
    host: HostKey,
    until: Time,
}

impl Hosts {
    /// An empty set of hosts, with the settings of each host's pool and a cap on the connections of all hosts.
    pub(crate) fn new(pool: PoolConfig, max_open: usize) -> Self {
        Self {
            hosts: Slab::new(),
            pool,
            throttle: None,
            touched: Vec::new(),
            cap: ConnectionCap::new(max_open),
            unused: Queue::new(),
            opened_before: 0,
        }
    }

    /// Throttles each host that is inserted from now on by these rules.
    pub(super) fn set_throttle(&mut self, each: Rates) {
        self.pool.throttled = true;
        self.throttle = Some(each);
    }

    #[inline]
    pub(super) fn is_throttled(&self) -> bool {
        self.throttle.is_some()
    }

    /// The settings of each host's pool.
    #[inline]
    pub(super) fn pool_config(&self) -> &PoolConfig {
        &self.pool
    }

    pub(crate) fn insert(
        &mut self,
        name: Box<[u8]>,
        defaults: Defaults,
        route: HostRoute,
    ) -> HostKey {
        let key = self.hosts.insert(|| Host {
            name,
            pool: Pool::new(self.pool.clone()),
            defaults,
            route,
            breaker: None,
            throttle: HostThrottle::new(self.throttle),
            retries: None,
            latencies: None,
            touched: false,
            leaving: false,
            under_cap: UnderCap::default(),
            unused: None,
            timer: None,
        });
        self.touch(key);
        key
    }

    #[inline]
    pub(crate) fn get(&mut self, host: HostKey) -> Option<&mut Host> {
        self.hosts.get_mut(host)
    }

    pub(crate) fn get_ref(&self, host: HostKey) -> Option<&Host> {
        self.hosts.get(host)
    }

    pub(crate) fn len(&self) -> usize {
        self.hosts.len()
    }

    pub(crate) fn counters(&self) -> Counters {
        let mut sum = Counters {
            opened: self.opened_before,
            ..Counters::default()
        };
        for host in self.hosts.iter() {
            sum += host.pool.counters();
        }
        sum
    }

    /// Drops a host that has no connections and no calls.
    pub(crate) fn remove(&mut self, key: HostKey) -> Option<Host> {
        let host = self.hosts.remove(key)?;
        self.opened_before += host.pool.counters().opened;
        Some(host)
    }

    // ---- hosts to be serviced

    /// Marks a host to be serviced. Must be called after every change of the host's connections or waiting calls.
    pub(crate) fn touch(&mut self, key: HostKey) {
        let Some(host) = self.hosts.get_mut(key) else {
            return;
        };
        self.cap.count(host);
        if !std::mem::replace(&mut host.touched, true) {
            self.touched.push(key);
        }
    }

    pub(crate) fn next_touched(&mut self) -> Option<HostKey> {
        let key = self.touched.pop()?;
        if let Some(host) = self.hosts.get_mut(key) {
            host.touched = false;
        }
        Some(key)
    }

    /// Sets when a host is to be serviced; true if a timer must be set for that.
    pub(crate) fn set_timer(&mut self, key: HostKey, at: Option<Time>) -> bool {
        self.hosts.get_mut(key).is_some_and(|host| {
            let is_news = at.is_some() && host.timer != at;
            host.timer = at;
            is_news
        })
    }

    /// Whether the host is to be serviced at this time.
    pub(crate) fn has_timer(&self, key: HostKey, at: Time) -> bool {
        self.hosts
            .get(key)
            .is_some_and(|host| host.timer == Some(at))
    }

    // ---- the cap over all hosts

    /// An opening of a host waits for a name, and takes no room under the cap.
    pub(crate) fn lookup_began(&mut self, key: HostKey) {
        if let Some(host) = self.hosts.get_mut(key) {
            self.cap.set_lookups(host, host.under_cap.lookups + 1);
        }
    }

    /// An opening of a host no longer waits for a name.
    pub(crate) fn lookup_ended(&mut self, key: HostKey) {
        if let Some(host) = self.hosts.get_mut(key) {
            self.cap.set_lookups(host, host.under_cap.lookups - 1);
        }
    }

    /// Changes the caps of each host, now and later, and of all hosts together.
    #[cold]
    pub(crate) fn set_caps(&mut self, caps: &Caps) {
        self.pool.max_connections = caps.max_connections.unwrap_or(self.pool.max_connections);
        self.pool.max_waiting = caps.max_waiting.unwrap_or(self.pool.max_waiting);
        if let Some(total) = caps.total_connections {
            self.cap.set_whole(total.get());
        }
        for key in self.hosts.keys_of(|_| true) {
            if let Some(host) = self.hosts.get_mut(key) {
                host.pool.set_caps(caps);
            }
            self.touch(key);
        }
    }

    /// A host needs a connection, and there is no room for one.
    pub(crate) fn want(&mut self, key: HostKey) {
        if let Some(host) = self.hosts.get_mut(key) {
            self.cap.want(key, host);
        }
    }

    /// The next host without any connection that waits for room.
    #[inline]
    pub(crate) fn next_without_connection(&mut self) -> Option<HostKey> {
        next_wanting(
            &mut self.cap.without_connection,
            Want::First,
            &mut self.hosts,
        )
    }

    /// The next host with too few connections that waits for room.
    #[inline]
    pub(crate) fn next_wanting_more(&mut self) -> Option<HostKey> {
        next_wanting(&mut self.cap.wanting_more, Want::More, &mut self.hosts)
    }

    /// Whether a host must give back a connection that it could use, because another host has no connection at all.
    #[inline]
    pub(crate) fn must_yield(&mut self) -> bool {
        let touched = &mut self.touched;
        self.cap.must_yield(&mut self.hosts, |key, host| {
            if !std::mem::replace(&mut host.touched, true) {
                touched.push(key);
            }
        })
    }

    // ---- unused hosts

    /// A host gets a call, and is not unused any more.
    #[inline]
    pub(crate) fn use_host(&mut self, key: HostKey) {
        if let Some(host) = self.hosts.get_mut(key)
            && let Some(ticket) = host.unused.take()
        {
            self.unused.remove(ticket);
        }
    }

    /// Puts a host among the unused ones, if it has no connections and no calls.
    pub(crate) fn note_unused(&mut self, now: Time, key: HostKey) {
        if let Some(host) = self.hosts.get_mut(key)
            && host.unused.is_none()
            && host.pool.open() == 0
            && host.pool.waiting() == 0
        {
            // If the host were dropped, its open breaker would be forgotten.
            let open = host.breaker.as_ref().and_then(|breaker| breaker.opens());
            let since = open.map_or(now, |until| Time::of(until).max(now));
            let until = later(since, KEPT_UNUSED);
            host.unused = Some(self.unused.push_back(Unused { host: key, until }));
        }
    }

    /// Removes a host that has been unused for [`KEPT_UNUSED`], or the oldest one if there are too many.
    pub(crate) fn drop_unused(&mut self, now: Time) -> Option<(HostKey, Host)> {
        let front = self.unused.front()?;
        if front.until > now && self.unused.len() <= MOST_UNUSED {
            return None;
        }
        self.unused.pop_front();
        self.hosts.get_mut(front.host)?.unused = None;
        Some((front.host, self.remove(front.host)?))
    }
}

/// How long a host is kept after its last call and its last connection, because the next call may come soon.
const KEPT_UNUSED: Duration = Duration::from_secs(10);

/// The most unused hosts that are kept. A crawl uses very many hosts, each for a short time.
const MOST_UNUSED: usize = 1024;
