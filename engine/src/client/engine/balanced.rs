//! Several addresses that share the calls: each has a pool of its own, and is a host to the rest of the engine.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use super::Engine;
use super::guarded::bit;
use crate::client::ObserverEvent;
use crate::client::router::Router;
use crate::error::{Error, Phase, Sent};
use crate::net::{Address, Net};
use crate::policy::{Balancer, FailureClass, Health, HealthCheck, Retry, later};
use crate::proto::{BodyMode, Request, Response};
use crate::reactor::{ActiveCall, CallKey, CallState, HostKey, Overrides};
use crate::time::Time;

/// The addresses of a client that spreads its calls over them.
#[derive(Debug)]
pub(crate) struct Balance {
    pub(super) balancer: Balancer,
    /// By the number of the address, as `checks`.
    hosts: Vec<HostKey>,
    checks: Vec<Check>,
    /// Checks that are on their way.
    checking: usize,
}

/// What is known of an address by asking it.
#[derive(Clone, Copy, Debug, Default)]
struct Check {
    /// When it is asked next; `None` while that is under way.
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
    pub(in crate::client) fn new(now: Time, balancer: Balancer, hosts: Vec<HostKey>) -> Self {
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

    /// That address, as a host.
    pub(super) fn host(&self, at: u32) -> Option<HostKey> {
        self.hosts.get(at as usize).copied()
    }

    /// The number of an address.
    fn number(&self, host: HostKey) -> Option<usize> {
        self.hosts.iter().position(|known| *known == host)
    }
}

impl<R: Router, N: Net> Engine<R, N> {
    pub(in crate::client) fn set_balance(&mut self, balance: Balance) {
        self.connector.set_fails_over();
        self.guarded = true;
        self.balance = Some(Box::new(balance));
    }

    /// How the addresses fare, of a client with [`HostConfig::balance`](crate::HostConfig::balance); else none.
    pub fn addresses(&self) -> impl Iterator<Item = AddressState> {
        let balance = self.balance.iter();
        balance.flat_map(|balance| {
            let hosts = balance.hosts.iter().enumerate();
            hosts.filter_map(|(at, host)| {
                Some(AddressState {
                    remote: self.hosts.get_ref(*host)?.addresses.only()?.clone(),
                    in_flight: balance.balancer.in_flight(at),
                    ejected_until: balance.balancer.ejected_until(at),
                    down: balance.balancer.is_down(at),
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

    /// Health checks on their way; they are no caller's calls.
    pub(super) fn checking(&self) -> usize {
        self.balance.as_ref().map_or(0, |balance| balance.checking)
    }

    /// Whether a call that has failed goes on at another address at once. `most` attempts are allowed in all.
    pub(super) fn fails_over(&mut self, key: CallKey, error: &Error, most: u32) -> bool {
        let (Some(balance), Some(call)) = (&self.balance, self.reactor.call_ref(key)) else {
            return false;
        };
        let unsent = error.sent() == Sent::Nothing;
        let Some(host) = call.host else {
            return false;
        };
        let tried = call.tried | balance.number(host).map_or(0, bit);
        let others = (0..balance.hosts.len()).any(|at| tried & bit(at) == 0);
        balance.balancer.config().fail_over
            && others
            && call.check.is_none()
            && call.failures < most
            && FailureClass::of(error).is_some()
            && call.request.is_replayable()
            && (unsent || call.request.is_idempotent())
            && (unsent || self.withdraw(host))
    }

    /// An opening to one of several addresses takes long: those who wait for it go elsewhere, if there are others.
    pub(super) fn move_waiting(&mut self, host_key: HostKey) {
        let Some(balance) = &mut self.balance else {
            return;
        };
        let Some(here) = balance.number(host_key) else {
            return;
        };
        // A failure of the address, whoever waits for it.
        let now = self.reactor.now();
        balance.balancer.begin(here);
        self.note_address(now, here, Health::Failure, None);
        // All of them first: where nobody else may be asked, a call comes back to where it was.
        let mut waiting = Vec::new();
        if let Some(host) = self.hosts.get(host_key) {
            waiting.extend(std::iter::from_fn(|| host.pool.oldest_waiter()));
        }
        let mut staying = Vec::new();
        for key in waiting {
            let Some(call) = self.reactor.call(key) else {
                continue;
            };
            let fresh = matches!(call.state, CallState::Waiting { id, .. } if id.is_fresh());
            let tried = call.tried | bit(here);
            let others = |balance: &Balance| balance.balancer.has_other(|at| tried & bit(at) != 0);
            if call.check.is_none() && self.balance.as_deref().is_some_and(others) {
                call.tried = tried;
                self.give_leave_back(key);
                match fresh {
                    true => self.requeue(key),
                    false => self.send_again(key),
                }
            } else {
                staying.push((key, fresh));
            }
        }
        // In the order in which they were: those who need a new connection from the back, the others from the front.
        let (fresh, others): (Vec<_>, Vec<_>) = staying.into_iter().partition(|(_, fresh)| *fresh);
        for (key, fresh) in fresh.into_iter().chain(others.into_iter().rev()) {
            if let Some(host) = self.hosts.get(host_key) {
                let waiting = match fresh {
                    true => host.pool.requeue(key),
                    false => host.pool.put_back(key),
                };
                self.reactor.wait(key, waiting);
            }
        }
        self.hosts.touch(host_key);
    }

    // ---- health checks

    /// When that address is to be asked how it is.
    pub(super) fn next_check(&self, host: HostKey) -> Option<Time> {
        let balance = self.balance.as_ref()?;
        balance.balancer.config().health_check.as_ref()?;
        balance.checks.get(balance.number(host)?)?.next
    }

    /// Asks an address how it is, if it is time to.
    pub(super) fn check_health(&mut self, host: HostKey) {
        let now = self.reactor.now();
        if self.next_check(host).is_none_or(|next| next > now) {
            return;
        }
        let Some(balance) = &mut self.balance else {
            return;
        };
        let (Some(at), Some(check)) = (
            balance.number(host),
            &balance.balancer.config().health_check,
        ) else {
            return;
        };
        balance.checks[at].next = None;
        balance.checking += 1;
        let call = check_call(now, at as u32, check);
        let key = self.reactor.insert_call(call);
        self.following.push_back(key);
    }

    /// If a call is a health check, takes it out and heeds how it ended.
    pub(super) fn ends_check(&mut self, key: CallKey, error: Option<&Error>) -> bool {
        let now = self.reactor.now();
        let Some(call) = self.reactor.call(key) else {
            return false;
        };
        let (Some(at), Some(balance)) = (call.check, &mut self.balance) else {
            return false;
        };
        let (at, status) = (at as usize, call.response.status());
        let Some(check) = &balance.balancer.config().health_check else {
            return false;
        };
        let well = error.is_none() && check.expected.contains(status);
        // Without a connection because there is so much to do, it says nothing about the address.
        let asked = error.is_none_or(|error| error.phase() != Phase::Queue);
        let most = check.failures.get();
        let known = &mut balance.checks[at];
        known.next = Some(later(now, check.interval.max(LEAST_INTERVAL)));
        if well {
            known.failures = 0;
        } else if asked {
            known.failures = known.failures.saturating_add(1);
        }
        let changed = if well {
            balance.balancer.set_up(now.instant(), at)
        } else {
            known.failures >= most && asked && balance.balancer.set_down(at)
        };
        balance.checking -= 1;
        let host = balance.hosts[at];
        if changed && let Some(remote) = self.hosts.get_ref(host).and_then(|h| h.addresses.only()) {
            self.telemetry.notify(|| match well {
                true => ObserverEvent::Readmitted { remote },
                false => ObserverEvent::Ejected {
                    remote,
                    until: None,
                },
            });
        }
        if let Some(call) = self.reactor.remove_call(key) {
            self.reactor.put_spare(call.response);
        }
        self.hosts.touch(host);
        true
    }
}

/// However often an address is to be asked, others have their turn.
const LEAST_INTERVAL: Duration = Duration::from_millis(1);

/// The call that a health check is.
fn check_call(now: Time, at: u32, check: &HealthCheck) -> ActiveCall {
    let request = Request::get(&*check.target);
    let once = Retry {
        max_attempts: NonZeroU32::MIN.saturating_add(1), // a connection may have died
        ..Retry::default()
    };
    ActiveCall {
        check: Some(at),
        deadline: Some(later(now, check.timeout)),
        mode: BodyMode::Discard,
        overrides: Some(Box::new(Overrides {
            retry: Some(once),
            ..Overrides::default()
        })),
        ..ActiveCall::new(now, request, Response::new())
    }
}
