//! How a connection comes to be: a name is looked up, its addresses are raced, handshakes follow, and the connection
//! joins the pool. All of it is one place in the pool, and no call's own: whoever is first in the queue when the
//! connection is ready gets it.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use super::Engine;
use crate::client::Moment;
use crate::client::hosts::Addresses;
use crate::client::names::Names;
use crate::client::router::Router;
use crate::error::{DnsError, Error, ErrorKind, Phase, ProxyFault, Sent, SocksReply, TimeLimit};
use crate::net::{Address, Net, Waker};
use crate::policy::{Found, Race, RaceStep, later, literal, rotate};
use crate::reactor::{ConnKey, HostKey, OpeningKey, PoolSlot, Step, TimerOwner};
use crate::time::Time;

/// Names, and the openings that wait for them.
#[derive(Debug)]
pub(crate) struct Naming {
    pub(super) names: Names,
    waker: Waker,
    /// By the name in lower case, its last dot included: that makes another question. Entries of openings that are over
    /// go with the answer, or when they need the room.
    waiting: HashMap<String, Vec<OpeningKey>>,
}

impl Naming {
    pub(super) fn new(names: Names, waker: Waker) -> Self {
        Self {
            names,
            waker,
            waiting: HashMap::new(),
        }
    }
}

/// A connection on its way into the pool.
#[derive(Debug)]
pub(crate) struct Opening {
    slot: PoolSlot,
    began: Time,
    /// When it began to look up names, the last time.
    resolving: Time,
    stage: Stage,
    resolve: Option<Duration>,
    /// Of `resolve`: what earlier times took.
    resolve_before: Duration,
    connect: Duration,
    /// The address of the server behind a SOCKS5 proxy.
    behind: Option<IpAddr>,
    /// The other addresses of that server that may be tried, the next one last.
    behind_left: Vec<IpAddr>,
    /// Why the last address was not reached.
    error: Option<Error>,
    /// When those who wait for it are to go to another address instead, if there is one; again and again.
    fail_over_at: Option<Time>,
}

#[derive(Debug)]
enum Stage {
    /// Until the name is known, at that time at the latest.
    Resolving(Option<Time>),
    Racing {
        race: Race,
        /// The attempts that are running, in the order in which they were begun.
        running: Vec<ConnKey>,
        /// When all of them must be over.
        until: Option<Time>,
    },
    /// The handshakes.
    Handshaking(ConnKey),
}

impl Opening {
    /// What it waits for.
    pub(super) fn phase(&self) -> Phase {
        match self.stage {
            Stage::Resolving(_) => Phase::Resolve,
            Stage::Racing { .. } => Phase::Connect,
            // The reactor knows which one.
            Stage::Handshaking(_) => Phase::Tls,
        }
    }

    /// The connection that it is about, or the last one if there are several.
    pub(super) fn conn(&self) -> Option<ConnKey> {
        match &self.stage {
            Stage::Resolving(_) => None,
            Stage::Racing { running, .. } => running.last().copied(),
            Stage::Handshaking(conn) => Some(*conn),
        }
    }
}

impl<R: Router, N: Net> Engine<R, N> {
    pub(super) fn begin_opening(&mut self, host_key: HostKey) {
        let now = self.reactor.now();
        let Some(host) = self.hosts.get(host_key) else {
            return;
        };
        let slot = PoolSlot {
            host: host_key,
            id: host.pool.opened(),
        };
        let key = self.openings.insert(Opening {
            slot,
            began: now,
            resolving: now,
            stage: Stage::Resolving(None),
            resolve: None,
            resolve_before: Duration::ZERO,
            connect: Duration::ZERO,
            behind: None,
            behind_left: Vec::new(),
            error: None,
            fail_over_at: None,
        });
        host.pool.set_opening(slot.id, key);
        self.hosts.use_host(host_key);
        self.hosts.use_leave(host_key);
        self.hosts.touch(host_key);
        self.resolve(key);
    }

    // ---- names

    /// Looks up the next name that an opening needs, and begins the race when all are known.
    fn resolve(&mut self, key: OpeningKey) {
        let now = self.reactor.now();
        let Some(opening) = self.openings.get_mut(key) else {
            return;
        };
        let Some(host) = self.hosts.get(opening.slot.host) else {
            return;
        };
        let (name, port) = match (&host.socks_target, &host.addresses) {
            (Some((target, port)), _) if opening.behind.is_none() => (&**target, *port),
            (_, Addresses::Named(name, port)) => (&**name, *port),
            (_, Addresses::Known(addresses)) => {
                let avoided = &self.avoided;
                let order = rotate(addresses, turn(&mut host.openings), |address| {
                    avoided.has(now, address)
                });
                return self.begin_race(key, order);
            }
        };
        let Some(naming) = &mut self.names else {
            return;
        };
        match naming.names.lookup(now, name, port, &naming.waker) {
            Found::Pending => {
                let limit = self.timeouts.resolve;
                let until = limit.and_then(|limit| opening.resolving.checked_add(limit));
                opening.stage = Stage::Resolving(until);
                let waiting = naming.waiting.entry(name.to_ascii_lowercase()).or_default();
                if waiting.len() == waiting.capacity() {
                    // An answer may never come, and openings do all the time.
                    waiting.retain(|waits| self.openings.get(*waits).is_some());
                }
                waiting.push(key);
                if let Some(until) = until {
                    self.set_alarm(TimerOwner::Opening(key), until);
                }
            }
            Found::Addresses(addresses) => self.resolved(key, &addresses),
            Found::Failed(error) => self.resolve_failed(key, error.into()),
        }
    }

    /// Wakes up for an opening or a host at that time. Most openings are over long before.
    pub(super) fn set_alarm(&mut self, owner: TimerOwner, at: Time) {
        self.reactor.set_timer(owner, at);
        let owners = self.openings.len() + self.hosts.len();
        let (openings, hosts) = (&self.openings, &self.hosts);
        self.reactor.tidy_timers(owners, |owner, at| match owner {
            TimerOwner::Opening(key) => openings.get(key).is_some(),
            TimerOwner::Host(key) => hosts.has_alarm(key, at),
            TimerOwner::FairQueue => hosts.has_turns_alarm(at),
            TimerOwner::Conn(_) | TimerOwner::Call(_) => true,
        });
    }

    /// A name that an opening needs is known.
    fn resolved(&mut self, key: OpeningKey, addresses: &[IpAddr]) {
        let now = self.reactor.now();
        let Some(opening) = self.openings.get_mut(key) else {
            return;
        };
        let (Some(host), Some(naming)) = (self.hosts.get(opening.slot.host), &self.names) else {
            return;
        };
        let of = match (&host.socks_target, &host.addresses) {
            (Some((target, _)), _) if opening.behind.is_none() => Some(target),
            (_, Addresses::Named(name, _)) => Some(name),
            (_, Addresses::Known(_)) => None,
        };
        let looked_up = of.is_some_and(|name| literal(name).is_none());
        if looked_up {
            let took = now.saturating_duration_since(opening.resolving);
            opening.resolve = Some(opening.resolve_before + took);
        }
        if let (Some((_, port)), None) = (&host.socks_target, opening.behind) {
            // The proxy connects, to one address at a time. Its own addresses, which come next, count the opening.
            let start = host.openings;
            let last = |ip| self.avoided.has(now, &SocketAddr::new(ip, *port).into());
            let order = naming.names.order(addresses, start, &last);
            let first = order.first().copied();
            let mut left: Vec<IpAddr> = order.into_iter().rev().collect();
            left.retain(|ip| self.addresses.allows(*ip));
            return match (left.pop(), first) {
                (Some(ip), _) => {
                    opening.behind = Some(ip);
                    opening.behind_left = left;
                    self.resolve(key);
                }
                (None, Some(ip)) => self.resolve_failed(key, ErrorKind::Denied(ip)),
                (None, None) => self.resolve_failed(key, DnsError::NoAddresses.into()),
            };
        }
        let start = turn(&mut host.openings);
        let Addresses::Named(_, port) = host.addresses else {
            return;
        };
        let last = |ip| self.avoided.has(now, &SocketAddr::new(ip, port).into());
        let order = naming.names.order(addresses, start, &last);
        if order.is_empty() {
            return self.resolve_failed(key, DnsError::NoAddresses.into());
        }
        if let (Some(observer), Addresses::Named(name, _), true) =
            (&self.observer, &host.addresses, looked_up)
        {
            observer.tell(&Moment::Resolved {
                name,
                addresses: &order,
            });
        }
        let order = order.into_iter().map(|ip| SocketAddr::new(ip, port).into());
        self.begin_race(key, order.collect());
    }

    fn resolve_failed(&mut self, key: OpeningKey, kind: ErrorKind) {
        let opening = self.openings.get(key);
        let host = opening.and_then(|opening| self.hosts.get(opening.slot.host));
        let kind = match (kind, host) {
            // The name was the proxy's, unless it is the one that a SOCKS5 proxy is to be told the address of.
            (ErrorKind::Dns(error), Some(host))
                if host.proxy.is_some()
                    && (host.socks_target.is_none()
                        || opening.is_some_and(|opening| opening.behind.is_some())) =>
            {
                ProxyFault::Name(error).into()
            }
            (kind, _) => kind,
        };
        let error = Error::new(kind, Phase::Resolve, Sent::Nothing);
        self.fail_opening(key, Some(error));
    }

    /// Takes in what the resolver has answered.
    pub(super) fn take_answers(&mut self) {
        let now = self.reactor.now();
        while let Some(naming) = &mut self.names
            && let Some((name, found)) = naming.names.poll(now)
        {
            for opening in naming.waiting.remove(&*name).unwrap_or_default() {
                let waits = self.openings.get(opening).map(|opening| &opening.stage);
                if !matches!(waits, Some(Stage::Resolving(_))) {
                    continue;
                }
                match &found {
                    Found::Addresses(addresses) => self.resolved(opening, addresses),
                    Found::Failed(error) => self.resolve_failed(opening, error.clone().into()),
                    Found::Pending => {}
                }
            }
        }
    }

    // ---- the race

    fn begin_race(&mut self, key: OpeningKey, order: Vec<Address>) {
        let now = self.reactor.now();
        let limit = self.timeouts.connect;
        // A short limit is shared out, lest the first address use it up.
        let share = limit.map(|limit| limit / order.len().max(1) as u32);
        let delay = share.into_iter().chain([self.attempt_delay]).min();
        let delay = delay.unwrap_or_default();
        let balanced = self.balance.is_some();
        if let Some(opening) = self.openings.get_mut(key) {
            opening.fail_over_at = balanced.then(|| later(now, self.attempt_delay));
            opening.stage = Stage::Racing {
                race: Race::new(now, order, delay),
                running: Vec::new(),
                until: limit.and_then(|limit| now.checked_add(limit)),
            };
            self.race_on(key);
        }
    }

    /// Begins the attempts that are due.
    fn race_on(&mut self, key: OpeningKey) {
        let now = self.reactor.now();
        while let Some(opening) = self.openings.get_mut(key) {
            let Stage::Racing {
                race,
                running,
                until,
            } = &mut opening.stage
            else {
                return;
            };
            let slot = opening.slot;
            let Some(host) = self.hosts.get(slot.host) else {
                return;
            };
            let before = running.len();
            let room = !host.pool.is_full();
            let handshakes = !host.handshakes.is_empty();
            match race.poll(now, room && !self.hosts.is_full()) {
                RaceStep::Begin(address) => {
                    if let Some(observer) = &self.observer {
                        observer.tell(&Moment::Connecting { remote: &address });
                    }
                    let connected = match address.ip().filter(|ip| !self.addresses.allows(*ip)) {
                        Some(denied) => Err(ErrorKind::Denied(denied)),
                        None => self
                            .reactor
                            .connect(slot, key, &address, handshakes)
                            .map_err(ErrorKind::from),
                    };
                    match connected {
                        Ok(conn) => running.push(conn),
                        Err(kind) => {
                            let error = Error::new(kind, Phase::Connect, Sent::Nothing)
                                .with_remote(Some(address.clone()));
                            if let Some(observer) = &self.observer {
                                observer.tell(&Moment::ConnectFailed { error: &error });
                            }
                            opening.error = Some(error);
                            race.handle_failed(now);
                            self.avoided.note_failed(now, &address);
                            continue;
                        }
                    }
                }
                RaceStep::Replace => {
                    let slowest = running.remove(0);
                    if let Some(address) = self.reactor.remote(slowest).cloned() {
                        self.reactor.close(slowest);
                        race.handle_replaced(address.clone());
                        self.avoided.note_failed(now, &address);
                    }
                    self.note_racing(slot.host, before, before - 1);
                    continue;
                }
                RaceStep::Wait(next) => {
                    let due = next
                        .into_iter()
                        .chain(*until)
                        .chain(opening.fail_over_at)
                        .min();
                    if let (Some(due), Some(&conn)) = (due, running.last()) {
                        self.reactor.set_connect_due(conn, due);
                    }
                    return;
                }
                RaceStep::Lost => return self.fail_opening(key, None),
            }
            self.note_racing(slot.host, before, before + 1);
        }
    }

    /// The number of addresses that an opening tries at the same time has changed.
    fn note_racing(&mut self, host_key: HostKey, before: usize, now: usize) {
        if let Some(host) = self.hosts.get(host_key) {
            host.pool.set_racing(before, now);
            self.hosts.touch(host_key);
        }
    }

    /// The time has come that an opening was waiting for: for another attempt, or for giving up.
    pub(super) fn opening_due(&mut self, key: OpeningKey) {
        let now = self.reactor.now();
        let Some(opening) = self.openings.get_mut(key) else {
            return;
        };
        let (until, running) = match &opening.stage {
            Stage::Resolving(until) => {
                if until.is_some_and(|until| until <= now) {
                    self.resolve_failed(key, TimeLimit::Resolve.into());
                }
                return;
            }
            Stage::Racing { until, running, .. } => (until, running),
            Stage::Handshaking(_) => return,
        };
        if until.is_some_and(|until| until <= now) {
            let remote = running.last().and_then(|conn| self.reactor.remote(*conn));
            let late = Error::new(TimeLimit::Connect, Phase::Connect, Sent::Nothing)
                .with_remote(remote.cloned());
            return self.fail_opening(key, Some(late));
        }
        let host = opening.slot.host;
        let impatient = opening.fail_over_at.is_some_and(|until| until <= now);
        if impatient {
            opening.fail_over_at = Some(later(now, self.attempt_delay));
        }
        self.race_on(key);
        if impatient {
            self.move_waiting(host);
        }
    }

    /// An address was not reached.
    pub(super) fn attempt_failed(&mut self, key: OpeningKey, conn: ConnKey, error: Error) {
        let now = self.reactor.now();
        let Some(opening) = self.openings.get_mut(key) else {
            return;
        };
        let Stage::Racing { race, running, .. } = &mut opening.stage else {
            return;
        };
        let before = running.len();
        running.retain(|running| *running != conn);
        race.handle_failed(now);
        let address = error.remote().cloned();
        if let Some(observer) = &self.observer {
            observer.tell(&Moment::ConnectFailed { error: &error });
        }
        opening.error = Some(error);
        let host = opening.slot.host;
        self.note_racing(host, before, before - 1);
        if let Some(address) = address {
            self.avoided.note_failed(now, &address);
        }
        self.race_on(key);
    }

    /// An address was reached: the race is over.
    pub(super) fn attempt_succeeded(&mut self, key: OpeningKey, conn: ConnKey) {
        let now = self.reactor.now();
        let Some(opening) = self.openings.get_mut(key) else {
            self.reactor.close(conn);
            return;
        };
        let (host, behind) = (opening.slot.host, opening.behind);
        let racing = now.saturating_duration_since(opening.began);
        opening.connect = racing.saturating_sub(opening.resolve.unwrap_or_default());
        let Stage::Racing { running, .. } = &mut opening.stage else {
            return;
        };
        let mut overtaken = true;
        let running = std::mem::take(running);
        self.note_racing(host, running.len(), 1);
        for rival in running {
            if rival == conn {
                overtaken = false;
                continue;
            }
            let address = self.reactor.remote(rival).cloned();
            self.reactor.close(rival);
            if let (true, Some(address)) = (overtaken, address) {
                self.avoided.note_failed(now, &address);
            }
        }
        let address = self.reactor.remote(conn);
        if let (Some(observer), Some(remote)) = (&self.observer, address) {
            observer.tell(&Moment::Connected {
                remote,
                local: self.reactor.local(conn),
            });
        }
        if let Some(address) = address {
            self.avoided.note_reached(address);
        }
        let steps = self.hosts.get(host).map(|host| host.handshakes.clone());
        let steps = match (steps, behind) {
            (Some(steps), Some(ip)) => Some(Step::with_socks_address(&steps, ip)),
            (steps, _) => steps,
        };
        match steps {
            Some(steps) if !steps.is_empty() => {
                if let Some(opening) = self.openings.get_mut(key) {
                    opening.stage = Stage::Handshaking(conn);
                }
                self.reactor.begin_handshakes(conn, key, steps);
            }
            _ => self.opening_ready(key, conn),
        }
    }

    /// A handshake failed: again if a SOCKS5 proxy did not reach an address and the server has others, else the end.
    pub(super) fn handshake_failed(&mut self, key: OpeningKey, error: Error) {
        let now = self.reactor.now();
        let unreached = matches!(
            error.kind(),
            ErrorKind::Proxy(ProxyFault::Socks(
                SocksReply::NetworkUnreachable
                    | SocksReply::HostUnreachable
                    | SocksReply::ConnectionRefused
                    | SocksReply::AddressTypeNotSupported
            ))
        );
        if unreached
            && let Some(opening) = self.openings.get_mut(key)
            && let Some(host) = self.hosts.get(opening.slot.host)
            && let (Some(ip), Some((_, port))) = (opening.behind, &host.socks_target)
        {
            let address = SocketAddr::new(ip, *port).into();
            self.avoided.note_failed(now, &address);
            if let Some(next) = opening.behind_left.pop() {
                opening.behind = Some(next);
                opening.resolving = now;
                opening.resolve_before = opening.resolve.unwrap_or_default();
                return self.resolve(key);
            }
        }
        self.fail_opening(key, Some(error));
    }

    /// The connection can be used.
    pub(super) fn opening_ready(&mut self, key: OpeningKey, conn: ConnKey) {
        let Some(opening) = self.openings.remove(key) else {
            return;
        };
        self.reactor
            .set_opened(conn, opening.resolve, opening.connect);
        if let (Some(observer), Some(remote)) = (&self.observer, self.reactor.remote(conn)) {
            let opened = self.reactor.opened(conn);
            let answer = opened.and_then(|opened| opened.proxy_answer.as_ref());
            observer.tell(&Moment::Ready {
                remote,
                tls: opened.and_then(|opened| opened.tls_info.as_ref()),
                proxy_head: answer.map(|(_, head)| &**head),
            });
        }
        let random = self.reactor.random();
        let now = self.reactor.now();
        let slot = opening.slot;
        if let Some(host) = self.hosts.get(slot.host) {
            host.pool.set_conn(slot.id, conn);
            let next = host.pool.connected(now, slot.id, random);
            if host.gate.is_some() {
                return self.opened_gated(slot.host, conn, next);
            }
            self.hosts.touch(slot.host);
            self.put(conn, next);
        }
    }

    /// There will be no connection: one of those who wait for it gets the error.
    pub(super) fn fail_opening(&mut self, key: OpeningKey, error: Option<Error>) {
        let now = self.reactor.now();
        let Some(opening) = self.openings.remove(key) else {
            return;
        };
        self.close_attempts(&opening);
        let error = error
            .or(opening.error)
            .unwrap_or_else(|| Error::new(TimeLimit::Connect, Phase::Connect, Sent::Nothing));
        let host = opening.slot.host;
        let waiter = self
            .hosts
            .get(host)
            .and_then(|host| host.pool.open_failed(now, opening.slot.id));
        self.hosts.touch(host);
        if let Some(call) = waiter {
            self.end_attempt(call, error);
        }
    }

    /// Nobody waits for it any more.
    pub(super) fn cancel_opening(&mut self, key: OpeningKey) {
        let Some(opening) = self.openings.remove(key) else {
            return;
        };
        self.close_attempts(&opening);
        if let Some(host) = self.hosts.get(opening.slot.host) {
            host.pool.closed(opening.slot.id);
        }
        self.hosts.touch(opening.slot.host);
    }

    fn close_attempts(&mut self, opening: &Opening) {
        match &opening.stage {
            Stage::Racing { running, .. } => {
                for &conn in running {
                    self.reactor.close(conn);
                }
                self.note_racing(opening.slot.host, running.len(), 0);
            }
            Stage::Handshaking(conn) => {
                self.reactor.close(*conn);
            }
            // Whoever it was for will not find it.
            Stage::Resolving(_) => {}
        }
    }
}

/// Counts the openings of a host.
fn turn(openings: &mut usize) -> usize {
    let turn = *openings;
    *openings = turn.wrapping_add(1);
    turn
}
