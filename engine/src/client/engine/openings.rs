//! How a connection comes to be: a name is looked up, its addresses are raced, handshakes follow, and the connection
//! joins the pool. All of it is one place in the pool, and no call's own: whoever is first in the queue when the
//! connection is ready gets it.

use std::time::{Duration, Instant};

use super::Engine;
use crate::client::hosts::Addresses;
use crate::client::router::Router;
use crate::error::{Error, Phase, Sent, TimeLimit};
use crate::net::{Address, Net};
use crate::policy::{Race, RaceStep};
use crate::reactor::{At, Key};

/// A connection on its way into the pool.
#[derive(Debug)]
pub(crate) struct Opening {
    at: At,
    began: Instant,
    stage: Stage,
    resolve: Option<Duration>,
    connect: Duration,
    /// Why the last address was not reached.
    error: Option<Error>,
}

#[derive(Debug)]
enum Stage {
    Racing {
        race: Race,
        /// The attempts that are running, in the order in which they were begun.
        running: Vec<Key>,
        /// When all of them must be over.
        until: Option<Instant>,
    },
    /// The handshakes.
    SettingUp(Key),
}

impl Opening {
    /// What it waits for.
    pub(super) fn phase(&self) -> Phase {
        match self.stage {
            Stage::Racing { .. } => Phase::Connect,
            // The reactor knows which one.
            Stage::SettingUp(_) => Phase::Tls,
        }
    }

    /// The connection that it is about, or the last one if there are several.
    pub(super) fn conn(&self) -> Option<Key> {
        match &self.stage {
            Stage::Racing { running, .. } => running.last().copied(),
            Stage::SettingUp(conn) => Some(*conn),
        }
    }
}

impl<R: Router, N: Net> Engine<R, N> {
    pub(super) fn begin_opening(&mut self, host_key: Key) {
        let now = self.reactor.now();
        let Some(host) = self.hosts.get(host_key) else {
            return;
        };
        let slot = host.pool.opened();
        let order = match &host.addresses {
            Addresses::Known(addresses) => host.order.order(now, addresses),
        };
        let until = self
            .timeouts
            .connect
            .and_then(|limit| now.checked_add(limit));
        let at = At {
            host: host_key,
            slot,
        };
        let key = self.openings.insert(Opening {
            at,
            began: now,
            stage: Stage::Racing {
                race: Race::new(now, order),
                running: Vec::new(),
                until,
            },
            resolve: None,
            connect: Duration::ZERO,
            error: None,
        });
        host.pool.set_conn(slot, key);
        self.hosts.touch(host_key);
        self.race_on(key);
    }

    /// Begins the attempts that are due.
    fn race_on(&mut self, key: Key) {
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
            let at = opening.at;
            let Some(host) = self.hosts.get(at.host) else {
                return;
            };
            let before = running.len();
            let room = !host.pool.is_full();
            match race.poll(now, self.attempt_delay, room && !self.hosts.is_full()) {
                RaceStep::Begin(address) => match self.reactor.connect(at, key, &address) {
                    Ok(conn) => running.push(conn),
                    Err(error) => {
                        let error = Error::new(error, Phase::Connect, Sent::Nothing);
                        opening.error = Some(error.with_remote(Some(address.clone())));
                        race.handle_failed(now);
                        self.avoid(at.host, &address);
                        continue;
                    }
                },
                RaceStep::Replace => {
                    let slowest = running.remove(0);
                    if let Some(address) = self.reactor.remote(slowest).cloned() {
                        self.reactor.close(slowest);
                        race.handle_replaced(address.clone());
                        self.avoid(at.host, &address);
                    }
                    self.note_racing(at.host, before, before - 1);
                    continue;
                }
                RaceStep::Wait(next) => {
                    let due = next.into_iter().chain(*until).min();
                    if let (Some(due), Some(&conn)) = (due, running.last()) {
                        self.reactor.set_connect_due(conn, due);
                    }
                    return;
                }
                RaceStep::Lost => return self.fail_opening(key, None),
            }
            self.note_racing(at.host, before, before + 1);
        }
    }

    /// The number of addresses that an opening tries at the same time has changed.
    fn note_racing(&mut self, host_key: Key, before: usize, now: usize) {
        if let Some(host) = self.hosts.get(host_key) {
            host.pool.set_racing(before, now);
            self.hosts.touch(host_key);
        }
    }

    fn avoid(&mut self, host: Key, address: &Address) {
        let now = self.reactor.now();
        if let Some(host) = self.hosts.get(host) {
            host.order.avoid(now, address);
        }
    }

    /// The time has come that an opening was waiting for: for another attempt, or for giving up.
    pub(super) fn opening_due(&mut self, key: Key) {
        let now = self.reactor.now();
        let Some(opening) = self.openings.get_mut(key) else {
            return;
        };
        let Stage::Racing { until, running, .. } = &opening.stage else {
            return;
        };
        if until.is_some_and(|until| until <= now) {
            let remote = running.last().and_then(|conn| self.reactor.remote(*conn));
            let late = Error::new(TimeLimit::Connect, Phase::Connect, Sent::Nothing)
                .with_remote(remote.cloned());
            return self.fail_opening(key, Some(late));
        }
        self.race_on(key);
    }

    /// An address was not reached.
    pub(super) fn attempt_failed(&mut self, key: Key, conn: Key, error: Error) {
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
        opening.error = Some(error);
        let host = opening.at.host;
        self.note_racing(host, before, before - 1);
        if let Some(address) = address {
            self.avoid(host, &address);
        }
        self.race_on(key);
    }

    /// An address was reached: the race is over.
    pub(super) fn attempt_succeeded(&mut self, key: Key, conn: Key) {
        let now = self.reactor.now();
        let Some(opening) = self.openings.get_mut(key) else {
            self.reactor.close(conn);
            return;
        };
        let host = opening.at.host;
        opening.connect = now.saturating_duration_since(opening.began);
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
                self.avoid(host, &address);
            }
        }
        if let (Some(address), Some(host)) = (self.reactor.remote(conn), self.hosts.get(host)) {
            host.order.reached(address);
        }
        let steps = self.hosts.get(host).map(|host| host.set_up.clone());
        match steps {
            Some(steps) if !steps.is_empty() => {
                if let Some(opening) = self.openings.get_mut(key) {
                    opening.stage = Stage::SettingUp(conn);
                }
                self.reactor.set_up(conn, key, steps);
            }
            _ => self.opening_ready(key, conn),
        }
    }

    /// The connection can be used.
    pub(super) fn opening_ready(&mut self, key: Key, conn: Key) {
        let Some(opening) = self.openings.remove(key) else {
            return;
        };
        self.reactor
            .set_opened(conn, opening.resolve, opening.connect);
        let random = self.reactor.random();
        let now = self.reactor.now();
        let at = opening.at;
        if let Some(host) = self.hosts.get(at.host) {
            host.pool.set_conn(at.slot, conn);
            let next = host.pool.connected(now, at.slot, random);
            self.hosts.touch(at.host);
            self.put(conn, next);
        }
    }

    /// There will be no connection: one of those who wait for it gets the error.
    pub(super) fn fail_opening(&mut self, key: Key, error: Option<Error>) {
        let now = self.reactor.now();
        let Some(opening) = self.openings.remove(key) else {
            return;
        };
        self.close_attempts(&opening);
        let error = error
            .or(opening.error)
            .unwrap_or_else(|| Error::new(TimeLimit::Connect, Phase::Connect, Sent::Nothing));
        let host = opening.at.host;
        let waiter = self
            .hosts
            .get(host)
            .and_then(|host| host.pool.open_failed(now, opening.at.slot));
        self.hosts.touch(host);
        if let Some(call) = waiter {
            self.end_attempt(call, error);
        }
    }

    /// Nobody waits for it any more.
    pub(super) fn cancel_opening(&mut self, key: Key) {
        let Some(opening) = self.openings.remove(key) else {
            return;
        };
        self.close_attempts(&opening);
        if let Some(host) = self.hosts.get(opening.at.host) {
            host.pool.closed(opening.at.slot);
        }
        self.hosts.touch(opening.at.host);
    }

    fn close_attempts(&mut self, opening: &Opening) {
        match &opening.stage {
            Stage::Racing { running, .. } => {
                for &conn in running {
                    self.reactor.close(conn);
                }
                self.note_racing(opening.at.host, running.len(), 0);
            }
            Stage::SettingUp(conn) => {
                self.reactor.close(*conn);
            }
        }
    }
}
