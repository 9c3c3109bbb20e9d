//! What keeps the calls of a host back in addition to connections: rates.

use std::time::Duration;

use super::{Rate, RateLimiter, later};
use crate::time::Time;

/// The rates of requests to one host, or to all. A call begins only if all of them allow it.
pub(crate) type Rates = [Option<Rate>; 2];

/// The throttle of one host. Invariant: every call that begins calls [`pass`](Self::pass) at that moment, so that no
/// more calls than allowed begin in any window.
#[derive(Debug)]
pub(crate) struct Throttle {
    rates: [Option<RateLimiter>; 2],
}

impl Throttle {
    pub(crate) fn new(rates: Rates) -> Self {
        Self {
            rates: rates.map(|rate| rate.map(RateLimiter::new)),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_is_late_and_not_now() {
        let now = Time::now();
        let mut throttle = Throttle::new([Some(Rate::every(Duration::MAX)), None]);
        throttle.pass(now);
        let year = now + Duration::from_secs(31_536_000);
        assert!(throttle.opens_at(now).is_some_and(|at| at > year));
    }
}
