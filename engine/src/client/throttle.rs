//! The throttle: the rates of a host and of all hosts.

use super::hosts::Hosts;
use crate::policy::{FairQueue, Throttle, ThrottleConfig};
use crate::reactor::HostKey;
use crate::time::Time;

/// The throttle over all hosts of a client together.
#[derive(Debug)]
pub(super) struct Throttling {
    /// `None` without a rate over all hosts.
    fair_queue: Option<Box<FairQueue<HostKey>>>,
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
    pub(super) fn new(rules: Option<&ThrottleConfig>) -> Self {
        Self {
            rules: rules.map(|rules| Box::new(Throttle::new(rules))),
            is_ready: false,
            permit: OpenPermit::None,
        }
    }

    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.rules.is_some()
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
    pub(super) fn new(each: ThrottleConfig, total: &ThrottleConfig, hosts: &mut Hosts) -> Self {
        let throttle = Self {
            fair_queue: (!total.is_open()).then(|| Box::new(FairQueue::new(total))),
        };
        if !each.is_open() || !total.is_open() || each.counts_bytes {
            hosts.set_throttle(each);
        }
        throttle
    }

    /// Whether hosts begin calls in the order of the fair queue.
    pub(super) fn is_fair(&self) -> bool {
        self.fair_queue.is_some()
    }

    // ---- calls

    /// Whether the rate over all hosts lets a call begin.
    pub(super) fn has_room(&mut self, now: Time) -> bool {
        let queue = self.fair_queue.as_mut();
        queue.is_none_or(|queue| queue.has_room(now))
    }

    /// Whether a call may begin outside the fair queue: no host waits in it, and the rate over all hosts allows a call.
    pub(super) fn may_begin(&mut self, now: Time) -> bool {
        let queue = self.fair_queue.as_mut();
        queue.is_none_or(|queue| queue.ready.is_empty() && queue.has_room(now))
    }

    /// A call has begun.
    pub(super) fn call_begun(&mut self, now: Time) {
        if let Some(queue) = &mut self.fair_queue {
            queue.pass(now);
        }
    }

    /// Puts a host into the fair queue, because it may have a call to begin.
    pub(super) fn line_up(&mut self, key: HostKey, hosts: &mut Hosts) {
        if let (Some(queue), Some(host)) = (&mut self.fair_queue, hosts.get(key))
            && !std::mem::replace(&mut host.throttle.is_ready, true)
        {
            queue.ready.push_back(key);
        }
    }

    /// The next host of the fair queue, if a call may begin now.
    pub(super) fn next_ready(&mut self, now: Time, hosts: &mut Hosts) -> Option<HostKey> {
        let queue = self.fair_queue.as_mut()?;
        while !queue.ready.is_empty() && queue.has_room(now) {
            let key = queue.ready.pop_front()?;
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
        let (Some(queue), Some(host)) = (&mut self.fair_queue, hosts.get(key)) else {
            return true;
        };
        let permit = &mut host.throttle.permit;
        match permit {
            OpenPermit::Asked => false,
            OpenPermit::Given => true,
            OpenPermit::None if queue.opening.is_empty() && queue.open(now) => {
                *permit = OpenPermit::Given;
                true
            }
            OpenPermit::None => {
                *permit = OpenPermit::Asked;
                queue.opening.push_back(key);
                false
            }
        }
    }

    /// Gives permits to the hosts that have asked for one, as many as the rate allows.
    pub(super) fn give_permits(&mut self, now: Time, hosts: &mut Hosts) {
        while let Some(queue) = &mut self.fair_queue
            && !queue.opening.is_empty()
            && queue.open(now)
        {
            let mut asked = std::iter::from_fn(|| queue.opening.pop_front());
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

    // ---- the timer of the fair queue

    /// Returns the time at which the fair queue must be served next, if that time has changed.
    pub(super) fn plan(&mut self, now: Time) -> Option<Time> {
        let queue = self.fair_queue.as_mut()?;
        let at = queue.next_at(now);
        let news = at.filter(|_| queue.timer != at);
        queue.timer = at;
        news
    }

    /// Whether the timer of the fair queue is set to this time.
    pub(super) fn has_timer(&self, at: Time) -> bool {
        let queue = self.fair_queue.as_ref();
        queue.is_some_and(|queue| queue.timer == Some(at))
    }

    /// The timer of the fair queue has fired.
    pub(super) fn timer_fired(&mut self) {
        if let Some(queue) = &mut self.fair_queue {
            queue.timer = None;
            queue.due = true;
        }
    }

    /// Whether the timer of the fair queue has fired since the last call of this method.
    #[inline]
    pub(super) fn take_due(&mut self) -> bool {
        let queue = self.fair_queue.as_mut();
        queue.is_some_and(|queue| std::mem::take(&mut queue.due))
    }
}
