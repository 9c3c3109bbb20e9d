//! The race over the addresses of a host (RFC 8305 §5): attempts begin one after the other until one of them connects.

use std::time::Duration;

use super::{Opened, Opener, Stage};
use crate::address::Address;
use crate::client::ObserverEvent;
use crate::client::hosts::Hosts;
use crate::error::{Error, ErrorKind, Phase, Sent, Shortage};
use crate::net::Net;
use crate::policy::{Race, RaceStep, later};
use crate::reactor::{ConnKey, HostKey, OpeningKey, Server, Step};

impl<N: Net> Opener<'_, N> {
    pub(super) fn begin_race(&mut self, key: OpeningKey, order: Vec<Address>) -> Option<Opened> {
        let now = self.reactor.now();
        let delay = self.connector.attempt_delay;
        let opening = self.connector.openings.get_mut(key)?;
        opening.fail_over_at = self.connector.fails_over.then(|| later(now, delay));
        let limit = opening.limits.connect;
        opening.until = limit.and_then(|limit| now.checked_add(limit));
        // A short limit is divided among the addresses, so that the first address does not use up all of it.
        let share = limit.map(|limit| limit / order.len().max(1) as u32);
        let delay = share.map_or(delay, |share| share.min(delay));
        let race = Race::new(now, order, delay);
        let running = Vec::new();
        opening.stage = Stage::Racing { race, running };
        self.go_on_racing(key)
    }

    /// Begins the attempts that are due.
    pub(super) fn go_on_racing(&mut self, key: OpeningKey) -> Option<Opened> {
        let now = self.reactor.now();
        loop {
            let opening = self.connector.openings.get_mut(key)?;
            let socks_server = opening.socks_server(&self.hosts.get(opening.slot.host)?.route);
            let Stage::Racing { race, running } = &mut opening.stage else {
                return None;
            };
            let slot = opening.slot;
            let host = self.hosts.get(slot.host)?;
            let before = running.len();
            let room = !host.pool.is_full();
            let has_handshakes = !host.route.handshakes.is_empty();
            let own = host.route.allowed.clone();
            let allowed = match host.route.proxy {
                Some(_) => &self.connector.allowed_proxies,
                None => own.as_deref().unwrap_or(&self.connector.allowed),
            };
            let server = match host.route.proxy {
                None => Server::Remote,
                Some(_) => Server::Behind(socks_server),
            };
            match race.poll(now, room && !self.hosts.cap.is_full()) {
                RaceStep::Begin(address) => {
                    self.telemetry
                        .notify(|| ObserverEvent::Connecting { remote: &address });
                    let connected = match address.ip().filter(|ip| !allowed.allows(*ip)) {
                        Some(denied) => Err(ErrorKind::Denied(denied)),
                        None => self
                            .reactor
                            .connect(slot, key, &address, server, has_handshakes)
                            .map_err(ErrorKind::from),
                    };
                    match connected {
                        Ok(conn) => {
                            running.push(conn);
                            self.hosts.cap.note_opened();
                            note_racing(self.hosts, slot.host, before, before + 1);
                        }
                        Err(kind) => {
                            let error = Error::new(kind, Phase::Connect, Sent::Nothing)
                                .with_remote(Some(address.clone()));
                            self.telemetry
                                .notify(|| ObserverEvent::ConnectFailed { error: &error });
                            // No other address can be tried either; but each has local ports of its own.
                            if let ErrorKind::Shortage(shortage) = *error.kind()
                                && shortage != Shortage::Ports
                            {
                                race.handle_refused(address);
                                if running.is_empty() {
                                    return self.fail(key, Some(error));
                                }
                                self.note_shortage(shortage);
                                continue;
                            }
                            opening.error = Some(error);
                            race.handle_failed(now);
                            self.connector.avoided.note_failed(now, &address);
                        }
                    }
                }
                RaceStep::Replace => {
                    let slowest = running.remove(0);
                    if let Some(address) = self.reactor.remote(slowest).cloned() {
                        self.reactor.close(slowest);
                        race.handle_replaced(address.clone());
                        self.connector.avoided.note_failed(now, &address);
                    }
                    note_racing(self.hosts, slot.host, before, before - 1);
                }
                RaceStep::Wait(next) => {
                    let due = next
                        .into_iter()
                        .chain(opening.until)
                        .chain(opening.fail_over_at);
                    if let (Some(due), Some(&conn)) = (due.min(), running.last()) {
                        self.reactor.set_connect_due(conn, due);
                    }
                    return None;
                }
                RaceStep::Lost => return self.fail(key, None),
            }
        }
    }

    /// The host of a slow opening: the calls that wait for this opening should go to another address. `None` if the
    /// opening is not slow yet.
    pub(in crate::client) fn slow_host(&mut self, key: OpeningKey) -> Option<HostKey> {
        let now = self.reactor.now();
        let opening = self.connector.openings.get_mut(key)?;
        let is_over = opening.until.is_some_and(|until| until <= now);
        let is_racing = matches!(opening.stage, Stage::Racing { .. }) && !is_over;
        if !is_racing || opening.fail_over_at.is_none_or(|at| at > now) {
            return None;
        }
        let pause = self.connector.attempt_delay.max(LEAST_PAUSE);
        opening.fail_over_at = Some(later(now, pause));
        Some(opening.slot.host)
    }

    /// An address was not reached.
    pub(in crate::client) fn attempt_failed(
        &mut self,
        key: OpeningKey,
        conn: ConnKey,
        error: Error,
    ) -> Option<Opened> {
        let now = self.reactor.now();
        let opening = self.connector.openings.get_mut(key)?;
        let Stage::Racing { race, running } = &mut opening.stage else {
            return None;
        };
        let before = running.len();
        running.retain(|running| *running != conn);
        race.handle_failed(now);
        self.telemetry
            .notify(|| ObserverEvent::ConnectFailed { error: &error });
        if let Some(address) = error.remote() {
            self.connector.avoided.note_failed(now, address);
        }
        opening.error = Some(error);
        note_racing(self.hosts, opening.slot.host, before, before - 1);
        self.go_on_racing(key)
    }

    /// An address was reached: the race is over.
    pub(in crate::client) fn attempt_succeeded(
        &mut self,
        key: OpeningKey,
        conn: ConnKey,
    ) -> Option<Opened> {
        let now = self.reactor.now();
        let Some(opening) = self.connector.openings.get_mut(key) else {
            self.reactor.close(conn);
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
        note_racing(self.hosts, host, running.len(), 1);
        for rival in running {
            if rival == conn {
                overtaken = false;
                continue;
            }
            let address = self.reactor.remote(rival).cloned();
            self.reactor.close(rival);
            if let (true, Some(address)) = (overtaken, address) {
                self.connector.avoided.note_failed(now, &address);
            }
        }
        if let Some(remote) = self.reactor.remote(conn) {
            self.telemetry.notify(|| ObserverEvent::Connected {
                remote,
                local: self.reactor.local(conn),
            });
            self.connector.avoided.note_reached(remote);
        }
        let mut steps = self.hosts.get(host)?.route.handshakes.clone();
        if let Some(ip) = socks_address {
            steps = Step::with_socks_address(&steps, ip);
        }
        if steps.is_empty() {
            return self.ready(key, conn);
        }
        opening.stage = Stage::Handshaking(conn);
        let limit = opening.limits.handshake;
        self.reactor.begin_handshakes(conn, key, steps, limit);
        None
    }
}

/// Records that an opening now tries `now` addresses at the same time, and before that `before`.
pub(super) fn note_racing(hosts: &mut Hosts, host_key: HostKey, before: usize, now: usize) {
    if let Some(host) = hosts.get(host_key) {
        host.pool.set_racing(before, now);
        hosts.touch(host_key);
    }
}

/// The least time between two complaints about a slow opening. No delay between attempts may be shorter (RFC 8305 §5).
const LEAST_PAUSE: Duration = Duration::from_millis(10);
