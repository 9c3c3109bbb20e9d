//! The race over the addresses of a host (RFC 8305 §5): attempts begin one after the other until one of them connects.

use std::net::SocketAddr;
use std::time::Duration;

use super::{Connector, Context, Opened, Stage};
use crate::address::Address;
use crate::client::ObserverEvent;
use crate::client::hosts::Hosts;
use crate::error::{Error, ErrorKind, Phase, Sent, Shortage};
use crate::net::Net;
use crate::policy::{Race, RaceStep, later};
use crate::reactor::{ConnKey, HostKey, OpeningKey, Server, Step};
use crate::time::Time;

impl Connector {
    pub(super) fn begin_race<N: Net>(
        &mut self,
        cx: &mut Context<'_, N>,
        key: OpeningKey,
        order: Vec<Address>,
    ) -> Option<Opened> {
        let now = cx.reactor.now();
        let limit = self.openings.get(key)?.limits.connect;
        // A short limit is divided among the addresses, so that the first address does not use up all of it.
        let share = limit.map(|limit| limit / order.len().max(1) as u32);
        let delay = share.into_iter().chain([self.attempt_delay]).min();
        let delay: Duration = delay.unwrap_or_default();
        let opening = self.openings.get_mut(key)?;
        opening.fail_over_at = self.fails_over.then(|| later(now, self.attempt_delay));
        opening.stage = Stage::Racing {
            race: Race::new(now, order, delay),
            running: Vec::new(),
            until: limit.and_then(|limit| now.checked_add(limit)),
        };
        self.go_on_racing(cx, key)
    }

    /// Begins the attempts that are due.
    pub(super) fn go_on_racing<N: Net>(
        &mut self,
        cx: &mut Context<'_, N>,
        key: OpeningKey,
    ) -> Option<Opened> {
        let now = cx.reactor.now();
        loop {
            let opening = self.openings.get_mut(key)?;
            let Stage::Racing {
                race,
                running,
                until,
            } = &mut opening.stage
            else {
                return None;
            };
            let slot = opening.slot;
            let host = cx.hosts.get(slot.host)?;
            let before = running.len();
            let room = !host.pool.is_full();
            let has_handshakes = !host.route.handshakes.is_empty();
            let own = host.route.allowed.clone();
            let allowed = match host.route.proxy {
                Some(_) => &self.allowed_proxies,
                None => own.as_deref().unwrap_or(&self.allowed),
            };
            let server = match (&host.route.proxy, &host.route.socks_target) {
                (None, _) => Server::Remote,
                (Some(_), Some((_, port))) => {
                    let ip = opening.socks_address;
                    Server::Behind(ip.map(|ip| SocketAddr::new(ip, *port).into()))
                }
                (Some(_), None) => Server::Behind(None),
            };
            match race.poll(now, room && !cx.hosts.cap.is_full()) {
                RaceStep::Begin(address) => {
                    cx.telemetry
                        .notify(|| ObserverEvent::Connecting { remote: &address });
                    let connected = match address.ip().filter(|ip| !allowed.allows(*ip)) {
                        Some(denied) => Err(ErrorKind::Denied(denied)),
                        None => cx
                            .reactor
                            .connect(slot, key, &address, server, has_handshakes)
                            .map_err(ErrorKind::from),
                    };
                    match connected {
                        Ok(conn) => {
                            running.push(conn);
                            cx.hosts.cap.note_opened();
                            note_racing(cx.hosts, slot.host, before, before + 1);
                        }
                        Err(kind) => {
                            let shortage = shortage_for_all(&kind);
                            let error = Error::new(kind, Phase::Connect, Sent::Nothing)
                                .with_remote(Some(address.clone()));
                            cx.telemetry
                                .notify(|| ObserverEvent::ConnectFailed { error: &error });
                            if let Some(shortage) = shortage {
                                race.handle_refused(address);
                                if running.is_empty() {
                                    return self.fail(cx, key, Some(error));
                                }
                                self.note_shortage(cx, shortage);
                                continue;
                            }
                            opening.error = Some(error);
                            race.handle_failed(now);
                            self.avoided.note_failed(now, &address);
                        }
                    }
                }
                RaceStep::Replace => {
                    let slowest = running.remove(0);
                    if let Some(address) = cx.reactor.remote(slowest).cloned() {
                        cx.reactor.close(slowest);
                        race.handle_replaced(address.clone());
                        self.avoided.note_failed(now, &address);
                    }
                    note_racing(cx.hosts, slot.host, before, before - 1);
                }
                RaceStep::Wait(next) => {
                    let due = next.into_iter().chain(*until).chain(opening.fail_over_at);
                    if let (Some(due), Some(&conn)) = (due.min(), running.last()) {
                        cx.reactor.set_connect_due(conn, due);
                    }
                    return None;
                }
                RaceStep::Lost => return self.fail(cx, key, None),
            }
        }
    }

    /// The host of a slow opening: the calls that wait for this opening should go to another address. `None` if the
    /// opening is not slow yet.
    pub(in crate::client) fn slow_host(&mut self, now: Time, key: OpeningKey) -> Option<HostKey> {
        let opening = self.openings.get_mut(key)?;
        let is_over = match &opening.stage {
            Stage::Racing { until, .. } => until.is_some_and(|until| until <= now),
            Stage::Begun | Stage::Resolving { .. } | Stage::Handshaking(_) => true,
        };
        if is_over || opening.fail_over_at.is_none_or(|at| at > now) {
            return None;
        }
        opening.fail_over_at = Some(later(now, self.attempt_delay));
        Some(opening.slot.host)
    }

    /// An address was not reached.
    pub(in crate::client) fn attempt_failed<N: Net>(
        &mut self,
        cx: &mut Context<'_, N>,
        key: OpeningKey,
        conn: ConnKey,
        error: Error,
    ) -> Option<Opened> {
        let now = cx.reactor.now();
        let opening = self.openings.get_mut(key)?;
        let Stage::Racing { race, running, .. } = &mut opening.stage else {
            return None;
        };
        let before = running.len();
        running.retain(|running| *running != conn);
        race.handle_failed(now);
        cx.telemetry
            .notify(|| ObserverEvent::ConnectFailed { error: &error });
        if let Some(address) = error.remote() {
            self.avoided.note_failed(now, address);
        }
        opening.error = Some(error);
        note_racing(cx.hosts, opening.slot.host, before, before - 1);
        self.go_on_racing(cx, key)
    }

    /// An address was reached: the race is over.
    pub(in crate::client) fn attempt_succeeded<N: Net>(
        &mut self,
        cx: &mut Context<'_, N>,
        key: OpeningKey,
        conn: ConnKey,
    ) -> Option<Opened> {
        let now = cx.reactor.now();
        let Some(opening) = self.openings.get_mut(key) else {
            cx.reactor.close(conn);
            return None;
        };
        let (host, socks_address) = (opening.slot.host, opening.socks_address);
        let racing = now.saturating_duration_since(opening.began);
        opening.connect = racing.saturating_sub(opening.resolve.unwrap_or_default());
        let Stage::Racing { running, .. } = &mut opening.stage else {
            return None;
        };
        let mut overtaken = true;
        let running = std::mem::take(running);
        note_racing(cx.hosts, host, running.len(), 1);
        for rival in running {
            if rival == conn {
                overtaken = false;
                continue;
            }
            let address = cx.reactor.remote(rival).cloned();
            cx.reactor.close(rival);
            if let (true, Some(address)) = (overtaken, address) {
                self.avoided.note_failed(now, &address);
            }
        }
        if let Some(remote) = cx.reactor.remote(conn) {
            cx.telemetry.notify(|| ObserverEvent::Connected {
                remote,
                local: cx.reactor.local(conn),
            });
            self.avoided.note_reached(remote);
        }
        let steps = cx.hosts.get(host).map(|host| host.route.handshakes.clone());
        let steps = match (steps, socks_address) {
            (Some(steps), Some(ip)) => Some(Step::with_socks_address(&steps, ip)),
            (steps, _) => steps,
        };
        match steps {
            Some(steps) if !steps.is_empty() => {
                opening.stage = Stage::Handshaking(conn);
                let limit = opening.limits.handshake;
                cx.reactor.begin_handshakes(conn, key, steps, limit);
                None
            }
            _ => self.ready(cx, key, conn),
        }
    }
}

/// The shortage, if an error means that no other address can be tried either.
fn shortage_for_all(kind: &ErrorKind) -> Option<Shortage> {
    match kind {
        ErrorKind::Shortage(Shortage::Ports) => None, // each address has ports of its own
        ErrorKind::Shortage(shortage) => Some(*shortage),
        _ => None,
    }
}

/// Records that an opening now tries `now` addresses at the same time, and before that `before`.
pub(super) fn note_racing(hosts: &mut Hosts, host_key: HostKey, before: usize, now: usize) {
    if let Some(host) = hosts.get(host_key) {
        host.pool.set_racing(before, now);
        hosts.touch(host_key);
    }
}
