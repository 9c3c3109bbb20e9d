//! The hosts of a client: for each one a pool, the addresses or the name, and what its requests say by default.
//!
//! A host that something happened to is *touched*, and the engine looks after it before the turn ends; the others cost
//! nothing. Rates are kept by the throttle of each host, and by one for all, under which hosts take turns. With a cap
//! on the connections of all hosts, a host that needs one while the cap is reached waits here: hosts that have none at
//! all come first, and get the next connection that any host gives back.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::mutation::{self, Mutation};
use crate::net::Address;
use crate::policy::queue::{Queue, Ticket};
use crate::policy::{
    Breaker, Counters, FairQueue, Latencies, Pool, PoolConfig, Proxy, RetryAccount, Throttle,
    ThrottleConfig, later,
};
use crate::proto::Defaults;
use crate::reactor::{CallKey, ConnKey, HostKey, OpeningKey, Slab, Step, of};
use crate::time::Time;

#[derive(Debug)]
pub(crate) struct Hosts {
    hosts: Slab<Host, of::Host>,
    /// Hosts to look after. Invariant: a host is in here once if it is `touched`, else not.
    touched: Vec<HostKey>,
    /// Connections of all hosts, and their cap.
    open: usize,
    max_open: usize,
    /// Hosts that wait for room under that cap: without any connection, and with too few. An entry counts if the
    /// host's `want` says so.
    starving: VecDeque<HostKey>,
    hungry: VecDeque<HostKey>,
    /// What a host's throttle is made of, if hosts have one.
    throttles: Option<ThrottleConfig>,
    /// If there is a rate over all hosts.
    fair_queue: Option<Box<FairQueue<HostKey>>>,
    /// Hosts without connections and calls, the one that has been so for longest in front.
    unused: Queue<Unused>,
}

#[derive(Debug)]
pub(crate) struct Host {
    /// Its name in the router.
    pub(crate) name: Box<[u8]>,
    pub(crate) pool: Pool<OpeningKey, ConnKey, CallKey>,
    pub(crate) defaults: Defaults,
    pub(crate) addresses: Addresses,
    /// The handshakes of a new connection.
    pub(crate) handshakes: Arc<[Step]>,
    /// The first of these handshakes is told an address of that name, which we look up; the port is what it is for.
    pub(crate) socks_target: Option<(Box<str>, u16)>,
    /// Through which it is reached; kept because its place in memory is part of the host's name.
    pub(crate) proxy: Option<Arc<Proxy>>,
    /// Whether it is asked at all; from the first attempt on, if it may be that it is not.
    pub(crate) breaker: Option<Box<Breaker>>,
    /// What keeps calls back beside connections; all hosts have one, or none has.
    pub(crate) throttle: Option<Box<Throttle>>,
    /// It is among those that take turns to begin a request.
    is_ready: bool,
    open_permit: OpenPermit,
    /// What there is left of its retry budget, from the first retry on.
    pub(crate) retries: Option<RetryAccount>,
    /// How long its answers have taken of late, if that matters.
    pub(crate) latencies: Option<Box<Latencies>>,
    /// Openings so far: each starts one address further.
    pub(crate) openings: usize,
    touched: bool,
    /// Its part of `Hosts::open`.
    counted: usize,
    want: Want,
    unused: Option<Ticket>,
    /// When it is looked after by itself.
    alarm: Option<Time>,
}

/// Where the connections of a host go.
#[derive(Debug)]
pub(crate) enum Addresses {
    Known(Vec<Address>),
    /// Those of a name, on that port.
    Named(Box<str>, u16),
}

impl Addresses {
    /// The address, if there is just one and it is known.
    pub(crate) fn only(&self) -> Option<&Address> {
        match self {
            Self::Known(addresses) if addresses.len() == 1 => addresses.first(),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Want {
    Nothing,
    More,
    Any,
}

/// Whether a host may open a connection, under a rate over all hosts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum OpenPermit {
    /// It has not asked.
    None,
    Asked,
    /// For one.
    Given,
}

#[derive(Clone, Copy, Debug)]
struct Unused {
    host: HostKey,
    until: Time,
}

impl Hosts {
    pub(crate) fn new(max_open: usize) -> Self {
        Self {
            hosts: Slab::new(),
            touched: Vec::new(),
            open: 0,
            max_open,
            starving: VecDeque::new(),
            hungry: VecDeque::new(),
            throttles: None,
            fair_queue: None,
            unused: Queue::new(),
        }
    }

    /// The hosts that come have throttles, and take turns at one that is for all of them.
    pub(crate) fn set_throttles(&mut self, throttles: ThrottleConfig, total: &ThrottleConfig) {
        if !throttles.is_open() || !total.is_open() || throttles.counts_bytes {
            self.throttles = Some(throttles);
            self.fair_queue = (!total.is_open()).then(|| Box::new(FairQueue::new(total)));
        }
    }

    pub(crate) fn insert(
        &mut self,
        name: Box<[u8]>,
        pool: PoolConfig,
        defaults: Defaults,
        addresses: Addresses,
        handshakes: Arc<[Step]>,
    ) -> HostKey {
        let key = self.hosts.insert(Host {
            name,
            pool: Pool::new(PoolConfig {
                throttled: self.throttles.is_some(),
                ..pool
            }),
            defaults,
            addresses,
            handshakes,
            socks_target: None,
            proxy: None,
            breaker: None,
            throttle: self
                .throttles
                .as_ref()
                .map(|throttle| Box::new(Throttle::new(throttle))),
            is_ready: false,
            open_permit: OpenPermit::None,
            retries: None,
            latencies: None,
            openings: 0,
            touched: false,
            counted: 0,
            want: Want::Nothing,
            unused: None,
            alarm: None,
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

    /// Connections of all hosts.
    pub(crate) fn open(&self) -> usize {
        self.open
    }

    pub(crate) fn counters(&self) -> Counters {
        let mut sum = Counters::default();
        for host in self.hosts.iter() {
            sum += host.pool.counters();
            sum.limit += host
                .throttle
                .as_ref()
                .and_then(|throttle| throttle.limit())
                .unwrap_or(0);
        }
        sum
    }

    // ---- looking after hosts

    /// Something happened to a host that may need looking after. Every change of the number of its connections, and of
    /// the calls that wait, comes here.
    pub(crate) fn touch(&mut self, key: HostKey) {
        let Some(host) = self.hosts.get_mut(key) else {
            return;
        };
        let open = host.pool.open();
        self.open = self.open + open - host.counted;
        host.counted = open;
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

    /// Remembers that a host is to be looked after at that time; false if it was known.
    pub(crate) fn set_alarm(&mut self, key: HostKey, at: Option<Time>) -> bool {
        self.hosts.get_mut(key).is_some_and(|host| {
            let news = at.is_some() && host.alarm != at;
            host.alarm = at;
            news
        })
    }

    /// Whether that is when a host is to be looked after.
    pub(crate) fn has_alarm(&self, key: HostKey, at: Time) -> bool {
        self.hosts
            .get(key)
            .is_some_and(|host| host.alarm == Some(at))
    }

    /// Whether that is when the hosts that take turns are to be looked after.
    pub(crate) fn is_fair_queue_timer(&self, at: Time) -> bool {
        let fair_queue = self.fair_queue.as_ref();
        fair_queue.is_some_and(|fair_queue| fair_queue.timer == Some(at))
    }

    // ---- the cap over all hosts

    pub(crate) fn is_limited(&self) -> bool {
        self.max_open < usize::MAX
    }

    pub(crate) fn most_open(&self) -> usize {
        self.max_open
    }

    pub(crate) fn is_full(&self) -> bool {
        self.open >= self.max_open
    }

    /// A host needs a connection, and there is no room for one.
    pub(crate) fn want(&mut self, key: HostKey) {
        let Some(host) = self.hosts.get_mut(key) else {
            return;
        };
        let (want, queue) = match host.pool.open() {
            _ if mutation::on(Mutation::ForgottenHost) => return,
            0 => (Want::Any, &mut self.starving),
            _ => (Want::More, &mut self.hungry),
        };
        if std::mem::replace(&mut host.want, want) != want {
            queue.push_back(key);
        }
    }

    /// The next host without any connection that waits for room.
    #[inline]
    pub(crate) fn next_starving(&mut self) -> Option<HostKey> {
        while let Some(key) = self.starving.pop_front() {
            if self.stops_wanting(key, Want::Any) {
                return Some(key);
            }
        }
        None
    }

    /// The next host with too few connections that waits for room.
    #[inline]
    pub(crate) fn next_hungry(&mut self) -> Option<HostKey> {
        while let Some(key) = self.hungry.pop_front() {
            if self.stops_wanting(key, Want::More) {
                return Some(key);
            }
        }
        None
    }

    fn stops_wanting(&mut self, key: HostKey, want: Want) -> bool {
        match self.hosts.get_mut(key) {
            Some(host) if host.want == want => {
                host.want = Want::Nothing;
                true
            }
            _ => false,
        }
    }

    /// Whether a host must give back a connection that it could use, because another one has none at all.
    #[inline]
    pub(crate) fn must_yield(&mut self) -> bool {
        while let Some(&key) = self.starving.front() {
            let wanting = self.hosts.get_mut(key).is_some_and(|host| {
                host.want == Want::Any && host.pool.waiting() > 0 && host.pool.open() == 0
            });
            if wanting {
                return self.is_full();
            }
            self.starving.pop_front();
            if let Some(host) = self.hosts.get_mut(key)
                && host.want == Want::Any
            {
                host.want = Want::Nothing;
                self.touch(key);
            }
        }
        false
    }

    // ---- the rate over all hosts

    #[inline]
    pub(crate) fn is_throttled(&self) -> bool {
        self.throttles.is_some()
    }

    pub(crate) fn fair_queue(&mut self) -> Option<&mut FairQueue<HostKey>> {
        self.fair_queue.as_deref_mut()
    }

    /// Whether the time has come that the hosts that take turns waited for.
    #[inline]
    pub(crate) fn fair_queue_is_due(&mut self) -> bool {
        let fair_queue = self.fair_queue.as_mut();
        fair_queue.is_some_and(|fair_queue| std::mem::take(&mut fair_queue.due))
    }

    /// A host may have a call to begin.
    pub(crate) fn line_up(&mut self, key: HostKey) {
        if let (Some(fair_queue), Some(host)) = (&mut self.fair_queue, self.hosts.get_mut(key))
            && !std::mem::replace(&mut host.is_ready, true)
        {
            fair_queue.ready.push_back(key);
        }
    }

    /// The host whose turn it is to begin a call, if one may begin now.
    pub(crate) fn next_ready(&mut self, now: Time) -> Option<HostKey> {
        let fair_queue = self.fair_queue.as_mut()?;
        while !fair_queue.ready.is_empty() && fair_queue.has_room(now) {
            let key = fair_queue.ready.pop_front()?;
            if let Some(host) = self.hosts.get_mut(key) {
                host.is_ready = false;
                return Some(key);
            }
        }
        None
    }

    /// Whether a call may begin beside the turns: nobody else waits.
    pub(crate) fn may_begin(&mut self, now: Time) -> bool {
        let fair_queue = self.fair_queue.as_mut();
        fair_queue.is_none_or(|fair_queue| fair_queue.ready.is_empty() && fair_queue.has_room(now))
    }

    /// The time has come that the hosts that take turns wait for.
    pub(crate) fn fair_queue_timer_fired(&mut self) {
        if let Some(fair_queue) = &mut self.fair_queue {
            fair_queue.timer = None;
            fair_queue.due = true;
        }
    }

    /// Whether a host may open a connection now. If not, it is looked after when it may.
    pub(crate) fn may_open(&mut self, now: Time, key: HostKey) -> bool {
        let (Some(fair_queue), Some(host)) = (&mut self.fair_queue, self.hosts.get_mut(key)) else {
            return true;
        };
        match host.open_permit {
            OpenPermit::Asked => false,
            OpenPermit::Given => true,
            OpenPermit::None if fair_queue.opening.is_empty() && fair_queue.open(now) => {
                host.open_permit = OpenPermit::Given;
                true
            }
            OpenPermit::None => {
                host.open_permit = OpenPermit::Asked;
                fair_queue.opening.push_back(key);
                false
            }
        }
    }

    /// A host opens a connection, with the leave that it has.
    pub(crate) fn use_open_permit(&mut self, key: HostKey) {
        if let Some(host) = self.hosts.get_mut(key) {
            host.open_permit = OpenPermit::None;
        }
    }

    /// Gives the hosts that have asked leave to open a connection, as far as the rate goes.
    pub(crate) fn give_open_permits(&mut self, now: Time) {
        while let Some(fair_queue) = &mut self.fair_queue
            && !fair_queue.opening.is_empty()
            && fair_queue.open(now)
        {
            let asked = std::iter::from_fn(|| fair_queue.opening.pop_front());
            // Those that are gone need none.
            let mut known = asked.filter(|key| self.hosts.get(*key).is_some());
            let Some(key) = known.next() else {
                return;
            };
            if let Some(host) = self.hosts.get_mut(key) {
                host.open_permit = OpenPermit::Given;
            }
            self.touch(key);
        }
    }

    /// When the hosts that take turns are to be looked after, if that is news.
    pub(crate) fn plan_fair_queue(&mut self, now: Time) -> Option<Time> {
        let fair_queue = self.fair_queue.as_mut()?;
        let at = fair_queue.next_at(now);
        let news = at.filter(|_| fair_queue.timer != at);
        fair_queue.timer = at;
        news
    }

    // ---- hosts that nobody uses

    /// A call comes to a host.
    #[inline]
    pub(crate) fn use_host(&mut self, key: HostKey) {
        if let Some(host) = self.hosts.get_mut(key)
            && let Some(ticket) = host.unused.take()
        {
            self.unused.remove(ticket);
        }
    }

    /// Remembers a host that is not used any more.
    pub(crate) fn note_unused(&mut self, now: Time, key: HostKey) {
        if let Some(host) = self.hosts.get_mut(key)
            && host.unused.is_none()
            && host.pool.open() == 0
            && host.pool.waiting() == 0
        {
            // A breaker that is open would be closed again.
            let open = host.breaker.as_ref().and_then(|breaker| breaker.opens());
            let since = open.map_or(now, |until| Time::of(until).max(now));
            let until = later(since, KEPT_UNUSED);
            host.unused = Some(self.unused.push_back(Unused { host: key, until }));
        }
    }

    /// Takes out a host that has been unused for long enough, or that is one too many of those.
    pub(crate) fn drop_unused(&mut self, now: Time) -> Option<(HostKey, Host)> {
        let front = self.unused.front()?;
        if front.until > now && self.unused.len() <= MOST_UNUSED {
            return None;
        }
        self.unused.pop_front();
        self.hosts.get_mut(front.host)?.unused = None;
        Some((front.host, self.hosts.remove(front.host)?))
    }
}

/// How long a host is kept after its last call and its last connection: the next call may come soon.
const KEPT_UNUSED: Duration = Duration::from_secs(10);

/// A crawl meets very many hosts, each one for a moment.
const MOST_UNUSED: usize = 1024;
