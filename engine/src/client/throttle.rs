//! The throttle: the rates of a host and of all hosts.

use std::collections::VecDeque;

use super::hosts::Hosts;
use crate::policy::{Rates, Throttle};
use crate::reactor::HostKey;
use crate::time::Time;

/// The throttle over all hosts of a client together, which are served one after the other.
#[derive(Debug)]
pub(super) struct Throttling {
    /// Whether there is a rate over all hosts.
    is_fair: bool,
    requests: Throttle,
    /// Connections for these requests are opened at no higher rate, so that not all hosts open one for the single
    /// request that may begin. They take no token of `requests`: an unreachable host keeps no other back.
    openings: Throttle,
    /// The fair queue: hosts with waiting calls, the next one first.
    ready: VecDeque<HostKey>,
    /// Hosts that need a connection.
    opening: VecDeque<HostKey>,
    /// When the fair queue is served again without another cause.
    timer: Option<Time>,
    /// That time has come.
    due: bool,
}

/// The throttle of one host.
#[derive(Debug)]
pub(crate) struct HostThrottle {
    /// The rules. Either all hosts of a client have rules, or none has.
    rules: Option<Box<Throttle>>,
    /// Whether the host is in the fair queue.
    is_ready: bool,
    permit: OpenPermit,
}

/// Whether a host may open a connection, under a rate over all hosts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum OpenPermit {
    /// The host has not asked.
    None,
    Asked,
    /// The host may open one connection.
    Given,
}

impl HostThrottle {
    pub(super) fn new(rules: Option<Rates>) -> Self {
        Self {
            rules: rules.map(|rates| Box::new(Throttle::new(rates))),
            is_ready: false,
            permit: OpenPermit::None,
        }
    }

    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.rules.is_some()
    }

    /// How many calls may begin now by the rules of the host alone, whether or not connections are free.
    pub(super) fn room(&mut self, now: Time) -> usize {
        self.rules().map_or(usize::MAX, |rules| rules.room(now))
    }

    /// The rules of the host, with the calls that they have counted.
    pub(super) fn rules(&mut self) -> Option<&mut Throttle> {
        self.rules.as_deref_mut()
    }

    /// Until when the host must be kept, because a new entry for the same host would let more calls begin.
    pub(super) fn counts_until(&self, now: Time) -> Option<Time> {
        self.rules.as_ref()?.counts_until(now)
    }

    /// The host opens a connection and uses up its permit.
    pub(super) fn use_permit(&mut self) {
        self.permit = OpenPermit::None;
    }
}

impl Throttling {
    /// A throttle with rules for each future host of `hosts`, and rules for all of them together.
    pub(super) fn new(each: Rates, total: Rates, hosts: &mut Hosts) -> Self {
        let is_fair = total.iter().any(Option::is_some);
        if is_fair || each.iter().any(Option::is_some) {
            hosts.set_throttle(each);
        }
        Self {
            is_fair,
            requests: Throttle::new(total),
            openings: Throttle::new(total),
            ready: VecDeque::new(),
            opening: VecDeque::new(),
            timer: None,
            due: false,
        }
    }

    /// Whether hosts begin calls in the order of the fair queue.
    pub(super) fn is_fair(&self) -> bool {
        self.is_fair
    }

    // ---- calls

    /// Whether the rate over all hosts lets a call begin.
    pub(super) fn has_room(&mut self, now: Time) -> bool {
        self.requests.room(now) > 0
    }

    /// Whether a call may begin outside the fair queue: no host waits in it, and the rate over all hosts allows a call.
    pub(super) fn may_begin(&mut self, now: Time) -> bool {
        self.ready.is_empty() && self.has_room(now)
    }

    /// A call of a host has begun.
    pub(super) fn call_begun(&mut self, now: Time, key: HostKey, hosts: &mut Hosts) {
        if let Some(rules) = hosts.get(key).and_then(|host| host.throttle.rules()) {
            rules.pass(now);
        }
        self.requests.pass(now);
    }

    /// Puts a host into the fair queue, because it may have a call to begin.
    pub(super) fn line_up(&mut self, key: HostKey, hosts: &mut Hosts) {
        if let Some(host) = hosts.get(key).filter(|_| self.is_fair)
            && !std::mem::replace(&mut host.throttle.is_ready, true)
        {
            self.ready.push_back(key);
        }
    }

    /// The next host of the fair queue, if a call may begin now.
    pub(super) fn next_ready(&mut self, now: Time, hosts: &mut Hosts) -> Option<HostKey> {
        while !self.ready.is_empty() && self.has_room(now) {
            let key = self.ready.pop_front()?;
            if let Some(host) = hosts.get(key) {
                host.throttle.is_ready = false;
                return Some(key);
            }
        }
        None
    }

    // ---- connections

    /// Whether a host may open a connection now. If not, the host is serviced again when it may.
    pub(super) fn may_open(&mut self, now: Time, key: HostKey, hosts: &mut Hosts) -> bool {
        let Some(host) = hosts.get(key).filter(|_| self.is_fair) else {
            return true;
        };
        let permit = &mut host.throttle.permit;
        match permit {
            OpenPermit::Asked => false,
            OpenPermit::Given => true,
            OpenPermit::None if self.opening.is_empty() && self.open(now) => {
                *permit = OpenPermit::Given;
                true
            }
            OpenPermit::None => {
                *permit = OpenPermit::Asked;
                self.opening.push_back(key);
                false
            }
        }
    }

    /// Gives permits to the hosts that have asked for one, as many as the rate allows.
    pub(super) fn give_permits(&mut self, now: Time, hosts: &mut Hosts) {
        while !self.opening.is_empty() && self.open(now) {
            let mut asked = std::iter::from_fn(|| self.opening.pop_front());
            // Dropped hosts need no permit.
            let Some(key) = asked.find(|key| hosts.get_ref(*key).is_some()) else {
                return;
            };
            if let Some(host) = hosts.get(key) {
                host.throttle.permit = OpenPermit::Given;
            }
            hosts.touch(key);
        }
    }

    /// Whether an opening may begin now. If so, it is counted.
    fn open(&mut self, now: Time) -> bool {
        let may = self.openings.room(now) > 0;
        if may {
            self.openings.pass(now);
        }
        may
    }

    // ---- the timer of the fair queue

    /// Returns the time at which the fair queue must be served next, if that time has changed.
    pub(super) fn plan(&mut self, now: Time) -> Option<Time> {
        let request = (!self.ready.is_empty()).then(|| self.requests.opens_at(now).unwrap_or(now));
        let opening =
            (!self.opening.is_empty()).then(|| self.openings.opens_at(now).unwrap_or(now));
        let at = request.into_iter().chain(opening).min();
        let news = at.filter(|_| self.timer != at);
        self.timer = at;
        news
    }

    /// Whether the timer of the fair queue is set to this time.
    pub(super) fn has_timer(&self, at: Time) -> bool {
        self.timer == Some(at)
    }

    /// The timer of the fair queue has fired.
    pub(super) fn timer_fired(&mut self) {
        (self.timer, self.due) = (None, true);
    }

    /// Whether the timer of the fair queue has fired since the last call of this method.
    #[inline]
    pub(super) fn take_due(&mut self) -> bool {
        std::mem::take(&mut self.due)
    }
}
