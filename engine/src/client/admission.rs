//! Whether an attempt may start, and at which address: breakers, and the balancer of several addresses.
//!
//! An attempt that may start holds a permit. The permit is given back with the result of the attempt, which shows the
//! health of the host. For the rest of the client, each address of a balanced upstream is a host with its own pool.

use std::time::{Duration, Instant};

use super::hosts::Hosts;
use super::telemetry::Telemetry;
use super::{CallId, ObserverEvent};
use crate::address::Address;
use crate::client::progress::ActiveCall;
use crate::error::{Error, Sent};
use crate::policy::{
    AttemptPermit, BalanceConfig, Balancer, Breaker, BreakerConfig, FailureClass, Health,
    health_of, health_of_address, later,
};
use crate::reactor::{CallKey, HostKey};
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
    /// The host whose retry budget all addresses share. If the addresses are those of a name, calls wait here until they
    /// are known.
    leader: HostKey,
    /// When the name is looked up again; `None` if the addresses are given.
    next_lookup: Option<Time>,
    /// The number of idle connections to keep, over all addresses.
    min_idle: usize,
    /// The hosts of the addresses. The index is the number of the address.
    hosts: Vec<HostKey>,
}

/// The state of an address of a client with [`HostConfig::balance`](crate::HostConfig::balance).
///
/// ```
/// # fn example(client: &courser::HostClient) {
/// for address in client.addresses() {
///     println!("{}: {} in flight, out until {:?}", address.remote, address.in_flight, address.ejected_until);
/// }
/// # }
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct AddressState {
    /// The address.
    pub remote: Address,
    /// The number of calls in flight to this address.
    pub in_flight: u32,
    /// Until when the address gets no calls, because of failures or slow answers, as long as enough other addresses are
    /// left.
    pub ejected_until: Option<Instant>,
}

impl Balance {
    /// For the addresses of these hosts.
    pub(super) fn new(
        config: BalanceConfig,
        leader: HostKey,
        min_idle: usize,
        hosts: Vec<HostKey>,
    ) -> Self {
        Self {
            balancer: Balancer::new(config, hosts.len()),
            leader,
            next_lookup: None,
            min_idle,
            hosts,
        }
    }

    /// For the addresses of a name, which `leader` looks up.
    pub(super) fn of_name(
        now: Time,
        config: BalanceConfig,
        leader: HostKey,
        min_idle: usize,
    ) -> Self {
        Self {
            next_lookup: Some(now),
            ..Self::new(config, leader, min_idle, Vec::new())
        }
    }

    /// The hosts of the present addresses, with their numbers.
    fn present(&self) -> impl Iterator<Item = (usize, HostKey)> {
        let all = self.hosts.iter().copied().enumerate();
        all.filter(|(number, _)| self.balancer.is_present(*number))
    }

    /// Lets the turns of the addresses begin with this one.
    pub(super) fn start_at(&mut self, turn: u64) {
        self.balancer.start_at(turn);
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
        if ejected
            && let Some(until) = self.balancer.ejected_until(number)
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

    /// Spreads calls over several addresses from now on.
    pub(super) fn set_balance(&mut self, balance: Balance) {
        self.is_on = true;
        self.balance = Some(Box::new(balance));
    }

    /// Whether attempts need a permit at all.
    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.is_on
    }

    /// The state of each address, if calls are spread over several.
    pub(super) fn addresses(&self, hosts: &Hosts) -> impl Iterator<Item = AddressState> {
        let balance = self.balance.iter();
        balance.flat_map(move |balance| {
            balance.present().filter_map(move |(number, host)| {
                Some(AddressState {
                    remote: hosts.get_ref(host)?.route.addresses.only()?.clone(),
                    in_flight: balance.balancer.in_flight(number),
                    ejected_until: balance.balancer.ejected_until(number),
                })
            })
        })
    }

    /// The host whose retry budget all addresses share.
    pub(super) fn leader(&self, host: HostKey) -> HostKey {
        let balance = self.balance.as_ref();
        balance.map_or(host, |balance| balance.leader)
    }

    // ---- the addresses of a name

    /// Whether the name must be looked up now, because its addresses may have changed. The next time is
    /// [`LOOKUP_INTERVAL`] later. Unknown addresses are looked up by the calls that wait for them.
    pub(super) fn must_look_up(&mut self, now: Time) -> Option<HostKey> {
        let balance = self.balance.as_mut()?;
        let due = balance.next_lookup.as_mut().filter(|next| **next <= now)?;
        *due = later(now, LOOKUP_INTERVAL);
        balance.present().next().map(|_| balance.leader)
    }

    /// The host that looks up the name whose addresses are spread over.
    pub(super) fn lookup_host(&self) -> Option<HostKey> {
        let balance = self.balance.as_ref()?;
        balance.next_lookup.map(|_| balance.leader)
    }

    /// Divides the idle connections to keep, at most as many as there may be, among the addresses.
    pub(super) fn share_min_idle(&self, hosts: &mut Hosts) {
        let Some(balance) = &self.balance else {
            return;
        };
        let all = balance.min_idle.min(hosts.cap.max_open());
        let each = all.div_ceil(balance.present().count().max(1));
        for (_, key) in balance.present() {
            if let Some(host) = hosts.get(key) {
                host.pool.set_min_idle(each);
                hosts.touch(key);
            }
        }
    }

    /// The hosts of the addresses.
    pub(super) fn hosts(&self) -> Vec<HostKey> {
        let balance = self.balance.iter();
        balance
            .flat_map(|balance| balance.present().map(|(_, host)| host))
            .collect()
    }

    /// An address has a host, which gets calls from now on.
    pub(super) fn add_address(&mut self, host: HostKey) {
        if let Some(balance) = &mut self.balance {
            let number = balance.balancer.add();
            match balance.hosts.get_mut(number) {
                Some(place) => *place = host,
                None => balance.hosts.push(host),
            }
        }
    }

    /// The host of an address gets no more calls.
    pub(super) fn remove_address(&mut self, host: HostKey) {
        if let Some(balance) = &mut self.balance
            && let Some(number) = balance.number(host)
        {
            balance.balancer.remove(number);
        }
    }

    // ---- permits

    /// Gives an attempt of a call its permit, and chooses the address that is the call's host from now on.
    ///
    /// # Errors
    /// The time when the breaker, or the earliest of several breakers, lets attempts through again.
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
        let mut balance = self.balance.as_mut();
        if let Some(unknown) = balance.take_if(|balance| balance.present().next().is_none()) {
            // The call waits until the addresses of the name are known.
            call.host = Some(unknown.leader);
        }
        let Some(balance) = balance else {
            call.client.permit = AttemptPermit {
                breaker: pass_breaker(call.host)?,
                address: None,
            };
            return Ok(());
        };
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
                    call.client.permit = AttemptPermit { breaker, address };
                    return Ok(());
                }
                Err(until) => {
                    denied |= bit(number);
                    soonest = Some(soonest.map_or(until, |soonest| until.min(soonest)));
                }
            }
        }
    }

    /// Records the end of an attempt, by an answer, whose status counts, or by an error. The next attempt of the call
    /// goes to another address.
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
        let permit = std::mem::take(&mut call.client.permit);
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
                let (call, tag) = (CallId(key), call.tag);
                telemetry.notify(|| ObserverEvent::Breaker { call, tag, state });
            }
        }
        if let (Some(number), Some(balance)) = (permit.address, &mut self.balance) {
            let failures = &balance.balancer.config().statuses;
            let health = match error {
                Some(error) => health_of_address(error),
                None if failures.contains(status) => Health::Failure,
                None => Health::Success,
            };
            balance.attempt_ended(number as usize, health, latency, now, hosts, telemetry);
            if let Some(host) = call.host
                && !balance.balancer.is_present(number as usize)
            {
                hosts.touch(host); // its connection may be idle now, and is closed
            }
        }
    }

    /// Gives back the permit of an attempt whose end says nothing about the health of the host.
    #[cold]
    pub(super) fn give_back(
        &mut self,
        call: &mut ActiveCall,
        now: Time,
        hosts: &mut Hosts,
        telemetry: &Telemetry,
    ) {
        let permit = std::mem::take(&mut call.client.permit);
        if let Some(pass) = permit.breaker
            && let Some(host) = call.host.and_then(|host| hosts.get(host))
            && let Some(breaker) = &mut host.breaker
        {
            breaker.record(now.instant(), pass, Health::Unknown);
        }
        if let (Some(number), Some(balance)) = (permit.address, &mut self.balance) {
            let (number, health) = (number as usize, Health::Unknown);
            balance.attempt_ended(number, health, None, now, hosts, telemetry);
        }
    }

    // ---- other addresses

    /// Whether a failed call may be tried at another address at once. The caller checks the retry budget.
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
        let has_others = balance
            .present()
            .any(|(number, _)| tried & bit(number) == 0);
        balance.balancer.config().fail_over
            && has_others
            && call.client.failures < max_attempts
            && FailureClass::of(error).is_some()
            && call.request.is_replayable()
            && (error.sent() == Sent::Nothing || call.request.is_idempotent())
    }

    /// Counts a slow opening as a failure of its address, whichever calls wait for the opening. Returns the bit of the
    /// address in [`CallProgress::tried`]; `None` if calls are not spread over addresses.
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

    /// Whether a call that has tried these addresses can go to another address.
    pub(super) fn has_other(&self, tried: u64) -> bool {
        let balance = self.balance.as_ref();
        balance.is_some_and(|balance| balance.balancer.has_other(|at| tried & bit(at) != 0))
    }
}

/// The bit of an address in [`CallProgress::tried`]. With more than 64 addresses, some addresses share a bit.
fn bit(number: usize) -> u64 {
    1 << (number % 64)
}

/// How often an upstream's name is looked up in the cache, for addresses that come and go.
const LOOKUP_INTERVAL: Duration = Duration::from_secs(1);
