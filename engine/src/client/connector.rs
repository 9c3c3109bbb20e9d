//! How a connection is opened: the name is looked up, the addresses are raced, handshakes follow, and the connection
//! joins the pool of its host.
//!
//! This process is an *opening*. An opening holds one slot of the pool and belongs to no call: when the connection is
//! ready, the first call of the queue gets the connection. The connector keeps the openings, the names, the addresses
//! that failed lately, and the policy on addresses. An [`Opened`] tells the engine how an opening ended.

mod race;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use super::hosts::{Addresses, HostRoute, Hosts};
use super::names::Names;
use super::telemetry::Telemetry;
use super::throttle::Throttling;
use super::{HostConfig, ObserverEvent};
use crate::address::Address;
use crate::client::progress::Reactor;
use crate::error::{
    DnsError, Error, ErrorKind, Phase, ProxyFault, Sent, Shortage, SocksReply, TimeLimit,
};
use crate::net::Net;
use crate::policy::{
    AddressPolicy, AfterShortage, Avoided, Pool, Race, Timeouts, interleave, literal,
};
use crate::reactor::{
    CallKey, CallState, ConnKey, HostKey, OpeningKey, PoolSlot, Slab, TimerOwner, of,
};
use crate::time::Time;

/// The openings of a client, its name lookups, and the addresses that failed lately.
pub(super) struct Connector {
    openings: Slab<Opening, of::Opening>,
    pub(super) names: Option<Names>,
    /// Which addresses of servers may be connected to, here or by a SOCKS5 proxy.
    allowed: AddressPolicy,
    /// Which addresses of proxies may be connected to.
    pub(super) allowed_proxies: AddressPolicy,
    /// The addresses at which an attempt has failed lately: other addresses come first for a while.
    pub(super) avoided: Avoided,
    attempt_delay: Duration,
    random_start: bool,
    timeouts: Timeouts,
    /// Whether calls that wait for a slow opening go to another host: another address of the same upstream.
    pub(super) fails_over: bool,
}

/// Opens connections: the connector, with the parts of the engine that it works on.
pub(super) struct Opener<'a, N: Net> {
    pub(super) connector: &'a mut Connector,
    pub(super) reactor: &'a mut Reactor<N>,
    pub(super) hosts: &'a mut Hosts,
    pub(super) throttle: &'a Throttling,
    pub(super) telemetry: &'a Telemetry,
}

/// How an opening has ended.
pub(super) enum Opened {
    /// The connection is ready. It has the slot of the opening.
    Ready { slot: PoolSlot, conn: ConnKey },
    /// There is no connection. `call` gets the error: the call that the opening was for, if a time limit has passed, or else
    /// the call that has waited longest.
    Failed { call: CallKey, error: Error },
    /// There is no connection, but these are the addresses of the name whose addresses are hosts of their own.
    Resolved(Vec<IpAddr>),
}

/// An opening: one slot of a pool, and the stage that the opening has reached.
#[derive(Debug)]
struct Opening {
    slot: PoolSlot,
    /// Other hosts waited for room when the opening got its room under the cap, so that it keeps the room during lookups.
    keeps_room: bool,
    began: Time,
    /// When the last lookup of a name began.
    lookup_began: Time,
    stage: Stage,
    /// The end of the time limit for the lookup of the name, or for all attempts of the race together.
    until: Option<Time>,
    /// The call that the opening is for. The connection may serve another one.
    call: Option<CallKey>,
    limits: Timeouts,
    /// Whether these are limits of the call that the opening is for, and not the client's.
    has_own_limits: bool,
    /// How long all lookups took; `None` if no lookup was needed, or before the first one has ended.
    resolve: Option<Duration>,
    /// The part of `resolve` that earlier lookups took.
    resolve_before: Duration,
    connect: Duration,
    /// The address of the server that the SOCKS5 proxy must connect to.
    socks_address: Option<IpAddr>,
    /// The other addresses of the server that may be tried, in reverse order.
    socks_addresses_left: Vec<IpAddr>,
    /// Why the last address was not reached.
    error: Option<Error>,
    /// When calls that wait for this opening go to another address, if there is one. Set again after each time.
    fail_over_at: Option<Time>,
}

#[derive(Debug)]
enum Stage {
    /// No lookup is in flight: the opening has just begun, or its name has just been answered.
    Begun,
    /// The name is being looked up.
    Resolving(Arc<str>),
    Racing {
        race: Race,
        /// The running attempts, in the order in which they began.
        running: Vec<ConnKey>,
    },
    Handshaking(ConnKey),
}

impl Opening {
    /// The address of the server, if the SOCKS5 proxy is told an address.
    fn socks_server(&self, route: &HostRoute) -> Option<Address> {
        let (_, port) = route.socks_target.as_ref()?;
        Some(SocketAddr::new(self.socks_address?, *port).into())
    }
}

impl Connector {
    pub(super) fn new(config: &HostConfig, names: Option<Names>) -> Self {
        Self {
            openings: Slab::new(),
            names,
            allowed: config.addresses.clone(),
            allowed_proxies: AddressPolicy::allow_all(),
            avoided: Avoided::new(config.avoid_failed),
            attempt_delay: config.attempt_delay,
            random_start: config.random_start,
            timeouts: config.timeouts.clone(),
            fails_over: false,
        }
    }

    /// The phase of an opening, and the address that it is connecting or connected to.
    pub(super) fn waits_for<N: Net>(
        &self,
        reactor: &Reactor<N>,
        key: OpeningKey,
    ) -> (Phase, Option<Address>) {
        let Some(opening) = self.openings.get(key) else {
            return (Phase::Queue, None);
        };
        let (phase, conn) = match &opening.stage {
            Stage::Begun | Stage::Resolving(_) => (Phase::Resolve, None),
            Stage::Racing { running, .. } => (Phase::Connect, running.last()),
            Stage::Handshaking(conn) => (
                reactor.handshake_phase(*conn).unwrap_or(Phase::Tls),
                Some(conn),
            ),
        };
        let remote = conn.and_then(|conn| reactor.remote(*conn));
        (phase, remote.cloned())
    }

    /// The order in which an opening tries the addresses of a name: those that have failed lately come last. `start` counts
    /// the openings.
    fn order(&self, now: Time, ips: &[IpAddr], port: u16, start: usize) -> Vec<IpAddr> {
        interleave(ips, start, IpAddr::is_ipv6, |ip| {
            let address = SocketAddr::new(*ip, port).into();
            self.avoided.has(now, &address)
        })
    }

    /// The addresses that may be connected to, or all if none may.
    fn usable(&self, addresses: &[IpAddr]) -> Vec<IpAddr> {
        let allowed = addresses.iter().copied();
        let allowed: Vec<_> = allowed.filter(|ip| self.allowed.allows(*ip)).collect();
        match allowed.is_empty() {
            true => addresses.to_vec(),
            false => allowed,
        }
    }

    /// The addresses that a name has now, as far as the cache knows. Addresses that are no longer fresh are looked up.
    pub(super) fn lookup(&mut self, now: Time, name: &str, port: u16) -> Option<Vec<IpAddr>> {
        let found = self.names.as_mut()?.lookup(now, name, port)?;
        Some(self.usable(&found.ok()?))
    }
}

impl<N: Net> Opener<'_, N> {
    /// Sets a timer. Most openings end long before their timer, so timers that no owner needs are removed at times.
    pub(super) fn set_timer(&mut self, owner: TimerOwner, at: Time) {
        self.reactor.common.timers.set(owner, at);
        let owners = self.connector.openings.len() + self.hosts.len();
        let timers = &mut self.reactor.common.timers;
        timers.tidy_client_entries(owners, |owner, at| match owner {
            TimerOwner::Opening(key) => self.connector.openings.get(key).is_some(),
            TimerOwner::Host(key) => self.hosts.has_timer(key, at),
            TimerOwner::FairQueue => self.throttle.has_timer(at),
            TimerOwner::Shortage => self.hosts.cap.has_timer(at),
            TimerOwner::Conn(_) | TimerOwner::Call(_) => true,
        });
    }

    // ---- begin and end of an opening

    /// Opens a connection for a host, in a slot of its pool.
    pub(super) fn open(&mut self, host_key: HostKey) -> Option<Opened> {
        let now = self.reactor.now();
        let keeps_room = self.hosts.cap.is_contended();
        let host = self.hosts.get(host_key)?;
        let call = host.pool.opens_for();
        let own = call.and_then(|call| self.reactor.call_ref(call)?.own_timeouts());
        let (has_own_limits, own) = (own.is_some(), own.cloned());
        let limits = own.unwrap_or_else(|| self.connector.timeouts.clone());
        let slot = PoolSlot {
            host: host_key,
            id: host.pool.opened(),
        };
        let key = self.connector.openings.insert(|| Opening {
            slot,
            keeps_room,
            began: now,
            lookup_began: now,
            stage: Stage::Begun,
            until: None,
            call,
            limits,
            has_own_limits,
            resolve: None,
            resolve_before: Duration::ZERO,
            connect: Duration::ZERO,
            socks_address: None,
            socks_addresses_left: Vec::new(),
            error: None,
            fail_over_at: None,
        });
        if self.connector.random_start && host.route.openings.is_none() {
            host.route.openings = Some(self.reactor.common.net.random() as usize);
        }
        host.pool.set_opening(slot.id, key);
        host.throttle.use_permit();
        self.hosts.use_host(host_key);
        self.hosts.touch(host_key);
        self.resolve(key)
    }

    /// The timer of an opening has fired: begins another attempt, or ends the opening at its time limit.
    pub(super) fn opening_due(&mut self, key: OpeningKey) -> Option<Opened> {
        let now = self.reactor.now();
        let opening = self.connector.openings.get(key)?;
        let is_late = opening.until.is_some_and(|until| until <= now);
        match &opening.stage {
            Stage::Resolving(_) if is_late => self.resolve_failed(key, TimeLimit::Resolve.into()),
            Stage::Racing { running, .. } if is_late => {
                let remote = running.last().and_then(|conn| self.reactor.remote(*conn));
                let late = Error::new(TimeLimit::Connect, Phase::Connect, Sent::Nothing)
                    .with_remote(remote.cloned());
                self.fail(key, Some(late))
            }
            Stage::Racing { .. } => self.go_on_racing(key),
            Stage::Begun | Stage::Resolving(_) | Stage::Handshaking(_) => None,
        }
    }

    /// A handshake has failed. If a SOCKS5 proxy did not reach an address and the server has another one, the opening
    /// tries the next address; else the opening fails.
    pub(super) fn handshake_failed(&mut self, key: OpeningKey, error: Error) -> Option<Opened> {
        let now = self.reactor.now();
        if is_unreached(&error)
            && let Some(opening) = self.connector.openings.get_mut(key)
            && let Some(host) = self.hosts.get(opening.slot.host)
            && let Some(address) = opening.socks_server(&host.route)
        {
            self.connector.avoided.note_failed(now, &address);
            if let Some(next) = opening.socks_addresses_left.pop() {
                opening.socks_address = Some(next);
                opening.lookup_began = now;
                opening.resolve_before = opening.resolve.unwrap_or_default();
                return self.resolve(key);
            }
        }
        self.fail(key, Some(error))
    }

    /// The handshakes are done, or there were none.
    pub(super) fn ready(&mut self, key: OpeningKey, conn: ConnKey) -> Option<Opened> {
        let opening = self.connector.openings.remove(key)?;
        self.reactor
            .set_opened(conn, opening.resolve, opening.connect);
        if let Some(remote) = self.reactor.remote(conn) {
            let opened = self.reactor.opened(conn);
            let answer = opened.and_then(|opened| opened.proxy_answer.as_ref());
            self.telemetry.notify(|| ObserverEvent::Ready {
                remote,
                tls: opened.and_then(|opened| opened.tls_info.as_ref()),
                proxy_head: answer.map(|(_, head)| &**head),
            });
        }
        Some(Opened::Ready {
            slot: opening.slot,
            conn,
        })
    }

    /// An opening has failed. The call that it was for gets the error if a time limit has passed, or else the call that
    /// has waited longest.
    fn fail(&mut self, key: OpeningKey, error: Option<Error>) -> Option<Opened> {
        let now = self.reactor.now();
        let opening = self.connector.openings.remove(key)?;
        self.end_stage(key, &opening);
        let error = error
            .or(opening.error)
            .unwrap_or_else(|| Error::new(TimeLimit::Connect, Phase::Connect, Sent::Nothing));
        let slot = opening.slot;
        // The call that the opening was for, and its place in the wait queue, if it still waits there.
        let waiting = opening.call.and_then(|key| {
            let call = self.reactor.call_ref(key)?;
            match call.state {
                CallState::Waiting { id, .. } if call.host == Some(slot.host) => Some((key, id)),
                _ => None,
            }
        });
        let call = match error.kind() {
            // The call waits like a call at the cap on connections, unless no connection of the client can make room.
            ErrorKind::Shortage(shortage) => {
                self.leave_pool(slot, |pool| pool.open_refused(now, slot.id))?;
                match self.note_shortage(*shortage) {
                    AfterShortage::Wait(_) => None,
                    AfterShortage::Fail => self.hosts.get(slot.host)?.pool.oldest_waiter(),
                }
            }
            ErrorKind::Timeout(_) if opening.has_own_limits || waiting.is_some() => {
                let needless = self.leave_pool(slot, |pool| {
                    pool.open_refused(now, slot.id);
                    waiting.and_then(|(_, id)| pool.give_up(id))
                })?;
                if let Some(opening) = needless {
                    self.cancel(opening);
                }
                waiting.map(|(call, _)| call)
            }
            _ => self.leave_pool(slot, |pool| pool.open_failed(now, slot.id))?,
        };
        call.map(|call| Opened::Failed { call, error })
    }

    /// Tells the pool of an opening that the opening has ended without a connection.
    fn leave_pool<T>(
        &mut self,
        slot: PoolSlot,
        tell: impl FnOnce(&mut Pool<OpeningKey, ConnKey, CallKey>) -> T,
    ) -> Option<T> {
        let told = tell(&mut self.hosts.get(slot.host)?.pool);
        self.hosts.touch(slot.host);
        Some(told)
    }

    /// This machine had no descriptor for a connection.
    fn note_shortage(&mut self, shortage: Shortage) -> AfterShortage {
        let after = self.hosts.cap.note_shortage(self.reactor.now(), shortage);
        if let AfterShortage::Wait(Some(until)) = after {
            self.set_timer(TimerOwner::Shortage, until);
        }
        after
    }

    /// Ends an opening that no call needs any more.
    pub(super) fn cancel(&mut self, key: OpeningKey) {
        let Some(opening) = self.connector.openings.remove(key) else {
            return;
        };
        self.end_stage(key, &opening);
        self.leave_pool(opening.slot, |pool| pool.closed(opening.slot.id));
    }

    /// Closes the connections of an opening that has ended, and cancels its lookup if no other opening waits for it.
    fn end_stage(&mut self, key: OpeningKey, opening: &Opening) {
        match &opening.stage {
            Stage::Begun => {}
            Stage::Resolving(name) => {
                if !opening.keeps_room {
                    self.hosts.lookup_ended(opening.slot.host);
                }
                if let Some(names) = &mut self.connector.names {
                    names.leave(name, key);
                }
            }
            Stage::Racing { running, .. } => {
                for &conn in running {
                    self.reactor.close(conn);
                }
                race::note_racing(self.hosts, opening.slot.host, running.len(), 0);
            }
            Stage::Handshaking(conn) => {
                self.reactor.close(*conn);
            }
        }
    }

    // ---- names

    /// Looks up the next name that an opening needs, and begins the race when all names are known.
    fn resolve(&mut self, key: OpeningKey) -> Option<Opened> {
        let now = self.reactor.now();
        let opening = self.connector.openings.get_mut(key)?;
        let host = self.hosts.get(opening.slot.host)?;
        let (name, port) = match (&host.route.socks_target, &host.route.addresses) {
            (Some((target, port)), _) if opening.socks_address.is_none() => (&**target, *port),
            (_, Addresses::Named(name, port) | Addresses::Spread(name, port)) => (&**name, *port),
            (_, Addresses::Known(addresses)) => {
                let avoided = &self.connector.avoided;
                let start = next_start(&mut host.route.openings);
                let is_ipv6 = |address: &Address| address.ip().is_some_and(|ip| ip.is_ipv6());
                let order = interleave(addresses, start, is_ipv6, |it| avoided.has(now, it));
                return self.begin_race(key, order);
            }
        };
        let names = self.connector.names.as_mut()?;
        match names.lookup(now, name, port) {
            None => {
                let name = names.wait(name, key);
                let opening = self.connector.openings.get_mut(key)?;
                opening.stage = Stage::Resolving(name);
                let limit = opening.limits.resolve;
                opening.until = limit.and_then(|limit| opening.lookup_began.checked_add(limit));
                let until = opening.until;
                if !opening.keeps_room {
                    self.hosts.lookup_began(opening.slot.host);
                }
                if let Some(until) = until {
                    self.set_timer(TimerOwner::Opening(key), until);
                }
                None
            }
            Some(Ok(addresses)) => self.resolved(key, &addresses),
            Some(Err(error)) => self.resolve_failed(key, error.into()),
        }
    }

    /// A name that an opening needs is known.
    fn resolved(&mut self, key: OpeningKey, addresses: &[IpAddr]) -> Option<Opened> {
        let now = self.reactor.now();
        let opening = self.connector.openings.get_mut(key)?;
        let host = self.hosts.get(opening.slot.host)?;
        let name = match (&host.route.socks_target, &host.route.addresses) {
            (Some((target, _)), _) if opening.socks_address.is_none() => Some(target),
            (_, Addresses::Named(name, _) | Addresses::Spread(name, _)) => Some(name),
            (_, Addresses::Known(_)) => None,
        };
        let looked_up = name.is_some_and(|name| literal(name).is_none());
        if looked_up {
            let took = now.saturating_duration_since(opening.lookup_began);
            opening.resolve = Some(opening.resolve_before + took);
        }
        if host.route.socks_target.is_some() && opening.socks_address.is_none() {
            return self.resolved_behind_socks(key, addresses);
        }
        if matches!(host.route.addresses, Addresses::Spread(..)) {
            // The addresses are hosts of their own.
            let usable = self.connector.usable(addresses);
            let slot = self.connector.openings.remove(key)?.slot;
            self.leave_pool(slot, |pool| pool.closed(slot.id));
            return Some(Opened::Resolved(usable));
        }
        if self.hosts.cap.is_exceeded() {
            // Meanwhile other connections have taken all room. The call waits like a call at the cap.
            let slot = self.connector.openings.remove(key)?.slot;
            self.leave_pool(slot, |pool| pool.open_refused(now, slot.id));
            return None;
        }
        let opening = self.connector.openings.get(key)?;
        let host = self.hosts.get(opening.slot.host)?;
        let start = next_start(&mut host.route.openings);
        let Addresses::Named(name, port) = &host.route.addresses else {
            return None;
        };
        let order = self.connector.order(now, addresses, *port, start);
        if looked_up {
            self.telemetry.notify(|| ObserverEvent::Resolved {
                name,
                addresses: &order,
            });
        }
        let order = order.iter().map(|ip| SocketAddr::new(*ip, *port).into());
        let order = order.collect();
        self.begin_race(key, order)
    }

    /// The name of the server behind a SOCKS5 proxy is known. The proxy connects to one of its addresses at a time. The
    /// opening is counted later, when the addresses of the proxy itself are known.
    fn resolved_behind_socks(&mut self, key: OpeningKey, addresses: &[IpAddr]) -> Option<Opened> {
        let now = self.reactor.now();
        let opening = self.connector.openings.get(key)?;
        let host = self.hosts.get(opening.slot.host)?;
        let (_, port) = host.route.socks_target.as_ref()?;
        let start = host.route.openings.unwrap_or_default();
        let order = self.connector.order(now, addresses, *port, start);
        let first = order.first().copied();
        let mut left: Vec<IpAddr> = order.into_iter().rev().collect();
        let allowed = host.route.allowed.as_deref();
        let allowed = allowed.unwrap_or(&self.connector.allowed);
        left.retain(|ip| allowed.allows(*ip));
        match (left.pop(), first) {
            (Some(ip), _) => {
                let opening = self.connector.openings.get_mut(key)?;
                opening.socks_address = Some(ip);
                opening.socks_addresses_left = left;
                self.resolve(key)
            }
            (None, Some(ip)) => self.resolve_failed(key, ErrorKind::Denied(ip)),
            (None, None) => self.resolve_failed(key, DnsError::NoAddresses.into()),
        }
    }

    fn resolve_failed(&mut self, key: OpeningKey, kind: ErrorKind) -> Option<Opened> {
        let opening = self.connector.openings.get(key);
        let host = opening.and_then(|opening| self.hosts.get(opening.slot.host));
        let kind = match (kind, host) {
            (ErrorKind::Dns(DnsError::Shortage(shortage)), _) => ErrorKind::Shortage(shortage),
            // The failed name is the name of the proxy, except when the server's name is looked up for a SOCKS5 proxy.
            (ErrorKind::Dns(error), Some(host))
                if host.route.proxy.is_some()
                    && (host.route.socks_target.is_none()
                        || opening.is_some_and(|opening| opening.socks_address.is_some())) =>
            {
                ProxyFault::Name(error).into()
            }
            (kind, _) => kind,
        };
        let error = Error::new(kind, Phase::Resolve, Sent::Nothing);
        self.fail(key, Some(error))
    }

    /// Takes the answers of the resolver, and returns the openings that ended because of them.
    pub(super) fn take_answers(&mut self) -> Vec<Opened> {
        let now = self.reactor.now();
        let mut ended = Vec::new();
        while let Some(names) = &mut self.connector.names
            && let Some((openings, found)) = names.poll(now)
        {
            for &key in &openings {
                if let Some(opening) = self.connector.openings.get_mut(key) {
                    opening.stage = Stage::Begun;
                    if !opening.keeps_room {
                        self.hosts.lookup_ended(opening.slot.host);
                    }
                }
            }
            for key in openings {
                ended.extend(match &found {
                    Ok(addresses) => self.resolved(key, addresses),
                    Err(error) => self.resolve_failed(key, error.clone().into()),
                });
            }
        }
        ended
    }
}

/// Whether a SOCKS5 proxy says that it could not reach the address.
fn is_unreached(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Proxy(ProxyFault::Socks(
            SocksReply::NetworkUnreachable
                | SocksReply::HostUnreachable
                | SocksReply::ConnectionRefused
                | SocksReply::AddressTypeNotSupported
        ))
    )
}

/// Counts an opening of a host. Each opening starts with the next address.
fn next_start(openings: &mut Option<usize>) -> usize {
    let start = openings.unwrap_or_default();
    *openings = Some(start.wrapping_add(1));
    start
}
