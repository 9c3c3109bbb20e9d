//! Attempts that must be allowed: their breaker lets them pass, and an address is chosen if there are several that share
//! the calls.

use std::time::{Duration, Instant};

use super::Engine;
use crate::client::router::Router;
use crate::client::{CallId, ObserverEvent};
use crate::error::{Error, ErrorKind, Phase, Sent};
use crate::mutation::{self, Mutation};
use crate::net::Net;
use crate::policy::{Breaker, BreakerState, Health, Leave, health_of};
use crate::reactor::{CallKey, HostKey};
use crate::time::Time;

impl<R: Router, N: Net> Engine<R, N> {
    /// Whether attempts must be allowed at all.
    #[inline]
    pub(super) fn guards(&self) -> bool {
        self.guarded
    }

    /// Whether an attempt of a call may begin now; its host is the address that it goes to. If it may not, the call has
    /// failed.
    #[cold]
    pub(super) fn admits(&mut self, key: CallKey) -> bool {
        match self.choose(key) {
            Ok(()) => true,
            Err(until) => {
                let open = ErrorKind::BreakerOpen(until);
                self.end_call(key, Err(Error::new(open, Phase::Queue, Sent::Nothing)));
                false
            }
        }
    }

    fn choose(&mut self, key: CallKey) -> Result<(), Instant> {
        let now = self.reactor.now().instant();
        let random = self.reactor.random();
        let Some(call) = self.reactor.call(key) else {
            return Ok(());
        };
        let mut admit = |host: Option<HostKey>| {
            let host = host.and_then(|host| self.hosts.get(host));
            let (Some(config), Some(host)) = (&self.breaker, host) else {
                return Ok(None);
            };
            let new = || Box::new(Breaker::new(config.clone()));
            let breaker = host.breaker.get_or_insert_with(new);
            match breaker.admit(now) {
                Err(_) if mutation::on(Mutation::IgnoredBreaker) => Ok(None),
                admitted => admitted.map(Some),
            }
        };
        let Some(balance) = &mut self.balance else {
            call.leave = Some(Leave {
                breaker: admit(call.host)?,
                address: None,
            });
            return Ok(());
        };
        if let Some(at) = call.check {
            call.host = balance.host(at);
            return Ok(());
        }
        let mut denied = 0;
        let mut soonest = None;
        loop {
            let skip = call.tried | denied;
            let mut at = balance.balancer.pick(now, random, |at| skip & bit(at) != 0);
            if at.is_none() {
                call.tried = 0;
                at = balance
                    .balancer
                    .pick(now, random, |at| denied & bit(at) != 0);
            }
            let Some(at) = at else {
                return Err(soonest.unwrap_or(now));
            };
            call.host = balance.host(at as u32);
            match admit(call.host) {
                Ok(breaker) => {
                    balance.balancer.begin(at);
                    let address = Some(at as u32);
                    call.leave = Some(Leave { breaker, address });
                    return Ok(());
                }
                Err(until) => {
                    denied |= bit(at);
                    soonest = Some(soonest.map_or(until, |soonest| until.min(soonest)));
                }
            }
        }
    }

    /// Heeds how an attempt ended; an answer by its status. The call's next attempt goes to another address.
    #[cold]
    pub(super) fn note_health(&mut self, key: CallKey, error: Option<&Error>) {
        let now = self.reactor.now();
        let Some(call) = self.reactor.call(key) else {
            return;
        };
        let Some(leave) = call.leave.take() else {
            return;
        };
        let (tag, status, host) = (call.tag, call.response.status(), call.host);
        let latency = match (call.timestamps.assigned, call.timestamps.first_byte) {
            (Some(from), Some(to)) if error.is_none() => Some(to.saturating_duration_since(from)),
            _ => None,
        };
        if let Some(at) = leave.address {
            call.tried |= bit(at as usize);
        }
        let host = host.and_then(|host| self.hosts.get(host));
        let state = match (leave.breaker, host) {
            (Some(pass), Some(host)) => host.breaker.as_mut().and_then(|breaker| {
                let health = error.map_or_else(|| breaker.judge(status), health_of);
                breaker.record(now.instant(), pass, health)
            }),
            _ => None,
        };
        if let Some(state) = state {
            self.notify_breaker(key, tag, state);
        }
        if let (Some(at), Some(balance)) = (leave.address, &self.balance) {
            let failures = &balance.balancer.config().statuses;
            let health = match error {
                Some(error) => health_of(error),
                None if failures.contains(status) => Health::Failure,
                None => Health::Success,
            };
            self.note_address(now, at as usize, health, latency);
        }
    }

    /// An attempt has ended that says nothing about the host.
    #[cold]
    pub(super) fn give_leave_back(&mut self, key: CallKey) {
        let now = self.reactor.now();
        let Some(call) = self.reactor.call(key) else {
            return;
        };
        let Some(leave) = call.leave.take() else {
            return;
        };
        if let Some(pass) = leave.breaker
            && let Some(host) = call.host.and_then(|host| self.hosts.get(host))
            && let Some(breaker) = &mut host.breaker
        {
            breaker.record(now.instant(), pass, Health::Unknown);
        }
        if let Some(at) = leave.address {
            self.note_address(now, at as usize, Health::Unknown, None);
        }
    }

    /// An attempt at one of several addresses has ended.
    pub(super) fn note_address(
        &mut self,
        now: Time,
        at: usize,
        health: Health,
        latency: Option<Duration>,
    ) {
        let Some(balance) = &mut self.balance else {
            return;
        };
        let ejected = balance.balancer.end(now.instant(), at, health, latency);
        let until = balance.balancer.ejected_until(at);
        if ejected {
            let host = balance.host(at as u32);
            let host = host.and_then(|host| self.hosts.get(host));
            if let Some(remote) = host.and_then(|host| host.addresses.only()) {
                self.telemetry
                    .notify(|| ObserverEvent::Ejected { remote, until });
            }
        }
    }

    fn notify_breaker(&self, key: CallKey, tag: u64, state: BreakerState) {
        self.telemetry.notify(|| ObserverEvent::Breaker {
            call: CallId(key),
            tag,
            state,
        });
    }
}

/// The mark of an address among those that a call has tried; with more than 64, some have the same.
pub(super) fn bit(at: usize) -> u64 {
    1 << (at % 64)
}
