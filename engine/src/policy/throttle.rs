//! What keeps the calls of a host back in addition to connections: rates.

use std::collections::VecDeque;
use std::time::Duration;

use super::{Rate, RateLimiter, later};
use crate::time::Time;

/// The rules of one host; the fields are those of `HostConfig`.
#[derive(Clone, Debug, Default)]
pub(crate) struct ThrottleConfig {
    pub(crate) rate: Option<Rate>,
    pub(crate) min_delay: Option<Duration>,
    /// The host has rates of bytes as well. These keep no call back, but the host must be kept for them.
    pub(crate) counts_bytes: bool,
}

impl ThrottleConfig {
    /// Whether no call is ever kept back.
    pub(crate) fn is_open(&self) -> bool {
        self.rate.is_none() && self.min_delay.is_none()
    }
}

/// The throttle of one host. Invariant: every call that begins calls [`pass`](Self::pass) at that moment, so that no
/// more calls than allowed begin in any window.
#[derive(Debug)]
pub(crate) struct Throttle {
    /// A call begins only if all rates allow it.
    rates: [Option<RateLimiter>; 2],
}

impl Throttle {
    pub(crate) fn new(config: &ThrottleConfig) -> Self {
        let delay = config.min_delay.map(Rate::every);
        Self {
            rates: [config.rate, delay].map(|rate| rate.map(RateLimiter::new)),
        }
    }

    /// How many calls may begin now.
    pub(crate) fn room(&mut self, now: Time) -> usize {
        let rates = self.rates.iter_mut().flatten();
        let room = rates.map(|rate| rate.available(now.instant())).min();
        room.map_or(usize::MAX, |room| {
            usize::try_from(room).unwrap_or(usize::MAX)
        })
    }

    /// Counts a call that begins. There must be room for it.
    pub(crate) fn pass(&mut self, now: Time) {
        for rate in self.rates.iter_mut().flatten() {
            rate.charge(now.instant(), 1);
        }
    }

    /// When the rates allow the next call; `None` if they allow it now.
    pub(crate) fn opens_at(&mut self, now: Time) -> Option<Time> {
        let rates = self.rates.iter_mut().flatten();
        let at = rates.map(|rate| match rate.ready_at(now.instant(), 1) {
            Some(at) => Time::of(at),
            None => later(now, Duration::MAX),
        });
        at.max().filter(|at| *at > now)
    }

    /// Until when the host must be kept, because a new throttle would let more calls begin; `None` if it can be
    /// dropped.
    pub(crate) fn counts_until(&self, now: Time) -> Option<Time> {
        let rates = self.rates.iter().flatten();
        let at = rates.filter_map(RateLimiter::rests_at).max()?;
        (at > now.instant()).then(|| Time::of(at))
    }
}

/// Rates over many hosts, which are served one after the other. `H` names a host.
#[derive(Debug)]
pub(crate) struct FairQueue<H> {
    requests: Throttle,
    /// Connections for these requests are opened at no higher rate, so that not all hosts open one for the single
    /// request that may begin. They take no token of `requests`: an unreachable host keeps no other back.
    openings: Throttle,
    /// Hosts with waiting calls, the next one first.
    pub(crate) ready: VecDeque<H>,
    /// Hosts that need a connection.
    pub(crate) opening: VecDeque<H>,
    /// When the driver checks again by itself.
    pub(crate) timer: Option<Time>,
    /// That time has come.
    pub(crate) due: bool,
}

impl<H> FairQueue<H> {
    pub(crate) fn new(config: &ThrottleConfig) -> Self {
        Self {
            requests: Throttle::new(config),
            openings: Throttle::new(config),
            ready: VecDeque::new(),
            opening: VecDeque::new(),
            timer: None,
            due: false,
        }
    }

    /// Whether a request may begin now.
    pub(crate) fn has_room(&mut self, now: Time) -> bool {
        self.requests.room(now) > 0
    }

    /// Counts a request that begins. There must be room for it.
    pub(crate) fn pass(&mut self, now: Time) {
        self.requests.pass(now);
    }

    /// Whether an opening may begin now. If so, it is counted.
    pub(crate) fn open(&mut self, now: Time) -> bool {
        let may = self.openings.room(now) > 0;
        if may {
            self.openings.pass(now);
        }
        may
    }

    /// When a waiting host may be served.
    pub(crate) fn next_at(&mut self, now: Time) -> Option<Time> {
        let request = (!self.ready.is_empty()).then(|| self.requests.opens_at(now).unwrap_or(now));
        let opening =
            (!self.opening.is_empty()).then(|| self.openings.opens_at(now).unwrap_or(now));
        request.into_iter().chain(opening).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_is_late_and_not_now() {
        let now = Time::now();
        let config = ThrottleConfig {
            min_delay: Some(Duration::MAX),
            ..ThrottleConfig::default()
        };
        let (mut throttle, mut fair_queue) = (Throttle::new(&config), FairQueue::new(&config));
        throttle.pass(now);
        fair_queue.pass(now);
        fair_queue.ready.push_back(1);
        let year = now + Duration::from_secs(31_536_000);
        assert!(throttle.opens_at(now).is_some_and(|at| at > year));
        assert!(fair_queue.next_at(now).is_some_and(|at| at > year));
    }
}
