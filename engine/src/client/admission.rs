//! Whether an attempt may start, and at which address: breakers, the balancer of several addresses, and health checks.
//!
//! An attempt that may start holds a permit, which is given back with what the attempt says about the host. To the rest
//! of the client, each address of a balanced upstream is a host with a pool of its own.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use super::ObserverEvent;
use super::hosts::Hosts;
use super::telemetry::Telemetry;
use crate::address::Address;
use crate::client::progress::{ActiveCall, CallProgress};
use crate::error::{Error, Phase, Sent};
use crate::policy::{
    AttemptPermit, Balancer, Breaker, BreakerConfig, FailureClass, Health, HealthCheck, Retry,
    health_of, later,
};
use crate::proto::{BodyMode, Request, Response};
use crate::reactor::{CallKey, HostKey, Overrides};
use crate::time::Time;

/// Decides whether attempts may start.
pub(super) struct Admission {
    breaker: Option<BreakerConfig>,
    balance: Option<Box<Balance>>,
    /// Whether attempts need a permit.
    is_on: bool,
}

/// The addresses of a client that spreads its calls over them.
#[derive(Debug)]
pub(super) struct Balance {
    balancer: Balancer,
    /// By the number of the address, as `checks`.
    hosts: Vec<HostKey>,
    checks: Vec<Check>,
    /// Health checks that are on their way.
    checking: usize,
}

/// What health checks have found out about an address.
#[derive(Clone, Copy, Debug, Default)]
struct Check {
    /// When the next check begins; `None` while one is on its way.
    next: Option<Time>,
    failures: u32,
}

/// How an address of a client with [`HostConfig::balance`](crate::HostConfig::balance) fares.
///
/// ```
/// # fn example(client: &courser::HostClient) {
/// for address in client.addresses() {
///     println!("{}: {} in flight, out: {}", address.remote, address.in_flight, address.is_out());
/// }
/// # }
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct AddressState {
    /// The address.
    pub remote: Address,
    /// Calls on their way to it.
    pub in_flight: u32,
    /// Its failures, or its answers' slowness, have put it out until then.
    pub ejected_until: Option<Instant>,
    /// The [health check](crate::BalanceConfig::health_check) finds it down.
    pub down: bool,
}

impl AddressState {
    /// Whether it gets no calls, as long as enough others are left.
    pub fn is_out(&self) -> bool {
        self.down || self.ejected_until.is_some()
    }
}

impl Balance {
    pub(super) fn new(now: Time, balancer: Balancer, hosts: Vec<HostKey>) -> Self {
        let check = Check {
            next: Some(now),
            failures: 0,
        };
        Self {
            balancer,
            checks: vec![check; hosts.len()],
            hosts,
            checking: 0,
        }
    }

    /// The host of an address.
    fn host(&self, number: u32) -> Option<HostKey> {
        self.hosts.get(number as usize).copied()
    }

    /// The number of the address of a host.
    fn number(&self, host: HostKey) -> Option<usize> {
        self.hosts.iter().position(|known| *known == host)
    }

    /// An attempt at an address has ended.
    fn attempt_ended(
        &mut self,
        number: usize,
        health: Health,
        latency: Option<Duration>,
        now: Time,
        hosts: &Hosts,
        telemetry: &Telemetry,
    ) {
        let ejected = self.balancer.end(now.instant(), number, health, latency);
        let until = self.balancer.ejected_until(number);
        if ejected
            && let Some(host) = self.host(number as u32).and_then(|key| hosts.get_ref(key))
            && let Some(remote) = host.route.addresses.only()
        {
            telemetry.notify(|| ObserverEvent::Ejected { remote, until });
        }
    }
}

impl Admission {
    pub(super) fn new(breaker: Option<BreakerConfig>) -> Self {
        Self {
            is_on: breaker.is_some(),
            breaker,
            balance: None,
        }
    }

    /// Calls are spread over several addresses from now on.
    pub(super) fn set_balance(&mut self, balance: Balance) {
        self.is_on = true;
        self.balance = Some(Box::new(balance));
    }

    /// Whether attempts need a permit at all.
    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.is_on
    }

    /// Whether calls are spread over several addresses.
    pub(super) fn balances(&self) -> bool {
        self.balance.is_some()
    }

    /// How the addresses fare, if there are several.
    pub(super) fn addresses(&self, hosts: &Hosts) -> impl Iterator<Item = AddressState> {
        let balance = self.balance.iter();
        balance.flat_map(move |balance| {
            let numbered = balance.hosts.iter().enumerate();
            numbered.filter_map(move |(number, host)| {
                Some(AddressState {
                    remote: hosts.get_ref(*host)?.route.addresses.only()?.clone(),
                    in_flight: balance.balancer.in_flight(number),
                    ejected_until: balance.balancer.ejected_until(number),
                    down: balance.balancer.is_down(number),
                })
            })
        })
    }

    /// The host that keeps what all addresses have in common.
    pub(super) fn leader(&self, host: HostKey) -> HostKey {
        let balance = self.balance.as_ref();
        let first = balance.and_then(|balance| balance.hosts.first());
        first.copied().unwrap_or(host)
    }

    // ---- permits

    /// Gives an attempt of a call its permit, and chooses the address that is the call's host from now on.
    ///
    /// # Errors
    /// When the breaker, or the first of several breakers, lets attempts through again.
    #[cold]
    pub(super) fn admit(
        &mut self,
        call: &mut ActiveCall,
        hosts: &mut Hosts,
        now: Time,
        random: u64,
    ) -> Result<(), Instant> {
        let now = now.instant();
        let mut pass_breaker = |host: Option<HostKey>| {
            let host = host.and_then(|key| hosts.get(key));
            let (Some(config), Some(host)) = (&self.breaker, host) else {
                return Ok(None);
            };
            let new = || Box::new(Breaker::new(config.clone()));
            let breaker = host.breaker.get_or_insert_with(new);
            breaker.admit(now).map(Some)
        };
        let Some(balance) = &mut self.balance else {
            call.client.permit = Some(AttemptPermit {
                breaker: pass_breaker(call.host)?,
                address: None,
            });
            return Ok(());
        };
        if let Some(number) = call.client.health_check {
            call.host = balance.host(number);
            return Ok(());
        }
        let mut denied = 0;
        let mut soonest = None;
        loop {
            let skip = call.client.tried | denied;
            let balancer = &mut balance.balancer;
            let mut picked = balancer.pick(now, random, |number| skip & bit(number) != 0);
            if picked.is_none() {
                call.client.tried = 0;
                picked = balancer.pick(now, random, |number| denied & bit(number) != 0);
            }
            let Some(number) = picked else {
                return Err(soonest.unwrap_or(now));
            };
            call.host = balance.host(number as u32);
            match pass_breaker(call.host) {
                Ok(breaker) => {
                    balance.balancer.begin(number);
                    let address = Some(number as u32);
                    call.client.permit = Some(AttemptPermit { breaker, address });
                    return Ok(());
                }
                Err(until) => {
                    denied |= bit(number);
                    soonest = Some(soonest.map_or(until, |soonest| until.min(soonest)));
                }
            }
        }
    }

    /// An attempt of a call has ended: by an answer, whose status counts, or by an error. The call's next attempt goes to
    /// another address.
    #[cold]
    pub(super) fn attempt_ended(
        &mut self,
        key: CallKey,
        call: &mut ActiveCall,
        error: Option<&Error>,
        now: Time,
        hosts: &mut Hosts,
        telemetry: &Telemetry,
    ) {
        let Some(permit) = call.client.permit.take() else {
            return;
        };
        let status = call.response.status();
        let latency = match (call.timestamps.assigned, call.timestamps.first_byte) {
            (Some(from), Some(to)) if error.is_none() => Some(to.saturating_duration_since(from)),
            _ => None,
        };
        if let Some(number) = permit.address {
            call.client.tried |= bit(number as usize);
        }
        let host = call.host.and_then(|host| hosts.get(host));
        if let (Some(pass), Some(host)) = (permit.breaker, host)
            && let Some(breaker) = &mut host.breaker
        {
            let health = error.map_or_else(|| breaker.judge(status), health_of);
            if let Some(state) = breaker.record(now.instant(), pass, health) {
                telemetry.breaker_changed(key, call, state);
            }
        }
        if let (Some(number), Some(balance)) = (permit.address, &mut self.balance) {
            let failures = &balance.balancer.config().statuses;
            let health = match error {
                Some(error) => health_of(error),
                None if failures.contains(status) => Health::Failure,
                None => Health::Success,
            };
            balance.attempt_ended(number as usize, health, latency, now, hosts, telemetry);
        }
    }

    /// An attempt of a call has ended that says nothing about the host.
    #[cold]
    pub(super) fn give_back(
        &mut self,
        call: &mut ActiveCall,
        now: Time,
        hosts: &mut Hosts,
        telemetry: &Telemetry,
    ) {
        let Some(permit) = call.client.permit.take() else {
            return;
        };
        if let Some(pass) = permit.breaker
            && let Some(host) = call.host.and_then(|host| hosts.get(host))
            && let Some(breaker) = &mut host.breaker
        {
            breaker.record(now.instant(), pass, Health::Unknown);
        }
        if let (Some(number), Some(balance)) = (permit.address, &mut self.balance) {
            balance.attempt_ended(
                number as usize,
                Health::Unknown,
                None,
                now,
                hosts,
                telemetry,
            );
        }
    }

    // ---- other addresses

    /// Whether a call that has failed may go on at another address at once, as far as the budget for retries allows.
    pub(super) fn may_fail_over(
        &self,
        call: &ActiveCall,
        error: &Error,
        max_attempts: u32,
    ) -> bool {
        let Some(balance) = &self.balance else {
            return false;
        };
        let here = call.host.and_then(|host| balance.number(host));
        let tried = call.client.tried | here.map_or(0, bit);
        let has_others = (0..balance.hosts.len()).any(|number| tried & bit(number) == 0);
        balance.balancer.config().fail_over
            && has_others
            && call.client.health_check.is_none()
            && call.client.failures < max_attempts
            && FailureClass::of(error).is_some()
            && call.request.is_replayable()
            && (error.sent() == Sent::Nothing || call.request.is_idempotent())
    }

    /// An opening of a host takes long. That is a failure of the address, whichever call waits for it. Returns the mark of
    /// the address among those that a call has tried; `None` if there is one address only.
    pub(super) fn note_slow(
        &mut self,
        host: HostKey,
        now: Time,
        hosts: &Hosts,
        telemetry: &Telemetry,
    ) -> Option<u64> {
        let balance = self.balance.as_mut()?;
        let here = balance.number(host)?;
        balance.balancer.begin(here);
        balance.attempt_ended(here, Health::Failure, None, now, hosts, telemetry);
        Some(bit(here))
    }

    /// Whether a call that has tried these addresses can go to another one.
    pub(super) fn has_other(&self, tried: u64) -> bool {
        let balance = self.balance.as_ref();
        balance.is_some_and(|balance| balance.balancer.has_other(|at| tried & bit(at) != 0))
    }

    // ---- health checks

    /// Health checks on their way; they are no caller's calls.
    pub(super) fn checking(&self) -> usize {
        self.balance.as_ref().map_or(0, |balance| balance.checking)
    }

    /// When the next health check of a host begins.
    pub(super) fn next_check(&self, host: HostKey) -> Option<Time> {
        let balance = self.balance.as_ref()?;
        balance.balancer.config().health_check.as_ref()?;
        balance.checks.get(balance.number(host)?)?.next
    }

    /// The health check of a host as a call, if it is time for it.
    pub(super) fn begin_check(&mut self, host: HostKey, now: Time) -> Option<ActiveCall> {
        self.next_check(host).filter(|next| *next <= now)?;
        let balance = self.balance.as_mut()?;
        let number = balance.number(host)?;
        let check = balance.balancer.config().health_check.as_ref()?;
        balance.checks[number].next = None;
        balance.checking += 1;
        Some(check_call(now, number as u32, check))
    }

    /// A call has ended. If the call was a health check, what it found counts, and the host that was checked is returned.
    pub(super) fn end_check(
        &mut self,
        call: &ActiveCall,
        error: Option<&Error>,
        now: Time,
        hosts: &Hosts,
        telemetry: &Telemetry,
    ) -> Option<HostKey> {
        let number = call.client.health_check? as usize;
        let balance = self.balance.as_mut()?;
        let check = balance.balancer.config().health_check.as_ref()?;
        let is_well = error.is_none() && check.expected.contains(call.response.status());
        // Without a connection because there is so much to do, the check says nothing about the address.
        let was_asked = error.is_none_or(|error| error.phase() != Phase::Queue);
        let max_failures = check.failures.get();
        let known = &mut balance.checks[number];
        known.next = Some(later(now, check.interval.max(LEAST_INTERVAL)));
        if is_well {
            known.failures = 0;
        } else if was_asked {
            known.failures = known.failures.saturating_add(1);
        }
        let changed = if is_well {
            balance.balancer.set_up(now.instant(), number)
        } else {
            known.failures >= max_failures && was_asked && balance.balancer.set_down(number)
        };
        balance.checking -= 1;
        let host = balance.hosts[number];
        if changed
            && let Some(remote) = hosts
                .get_ref(host)
                .and_then(|host| host.route.addresses.only())
        {
            telemetry.notify(|| match is_well {
                true => ObserverEvent::Readmitted { remote },
                false => ObserverEvent::Ejected {
                    remote,
                    until: None,
                },
            });
        }
        Some(host)
    }
}

/// The mark of an address among those that a call has tried; with more than 64, some have the same.
fn bit(number: usize) -> u64 {
    1 << (number % 64)
}

/// A health check as a call.
fn check_call(now: Time, number: u32, check: &HealthCheck) -> ActiveCall {
    let request = Request::get(&*check.target);
    let once = Retry {
        max_attempts: NonZeroU32::MIN.saturating_add(1), // a connection may have died
        ..Retry::default()
    };
    ActiveCall {
        no_adaptive_limit: true,
        client: CallProgress {
            health_check: Some(number),
            ..CallProgress::default()
        },
        deadline: Some(later(now, check.timeout)),
        mode: BodyMode::Discard,
        overrides: Some(Box::new(Overrides {
            retry: Some(once),
            ..Overrides::default()
        })),
        ..ActiveCall::new(now, request, Response::new())
    }
}

/// However often an address is to be checked, calls go on between two checks.
const LEAST_INTERVAL: Duration = Duration::from_millis(1);
