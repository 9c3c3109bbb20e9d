//! In which order the addresses of an upstream are tried, and how long each may take.

use std::time::{Duration, Instant};

/// Where the next connection starts: each one address further than the one before.
#[derive(Debug, Default)]
pub(crate) struct RoundRobin {
    next: usize,
}

impl RoundRobin {
    /// Begins an opening over `addresses` (at least one).
    pub(crate) fn dial(&mut self, addresses: usize, now: Instant) -> Dial {
        let first = self.next % addresses;
        self.next = (first + 1) % addresses;
        Dial {
            first,
            tried: 0,
            addresses,
            began: now,
        }
    }
}

/// One opening: every address once, until one is reached.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dial {
    first: usize,
    tried: usize,
    addresses: usize,
    began: Instant,
}

impl Dial {
    /// The address to try now.
    pub(crate) fn address(&self) -> usize {
        (self.first + self.tried) % self.addresses
    }

    /// Goes on to the next address; false when all have been tried.
    pub(crate) fn advance(&mut self) -> bool {
        self.tried += 1;
        self.tried < self.addresses
    }

    /// Until when the current address may take, of the limit for all: an equal part of what is left, so that one
    /// that swallows packets leaves time for the others.
    pub(crate) fn due(&self, now: Instant, limit: Option<Duration>) -> Option<Instant> {
        let end = self.began.checked_add(limit?)?;
        let left = (self.addresses - self.tried).max(1) as u32;
        Some(now + end.saturating_duration_since(now) / left)
    }

    /// When the opening began.
    pub(crate) fn began(&self) -> Instant {
        self.began
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_robin_and_slices() {
        let now = Instant::now();
        let mut order = RoundRobin::default();
        let firsts: Vec<_> = (0..5).map(|_| order.dial(3, now).address()).collect();
        assert_eq!(firsts, [0, 1, 2, 0, 1]);
        let mut dial = order.dial(3, now);
        let mut tried = vec![dial.address()];
        while dial.advance() {
            tried.push(dial.address());
        }
        assert_eq!(tried, [2, 0, 1]);

        let seconds = Duration::from_secs;
        let mut dial = order.dial(3, now);
        assert_eq!(dial.due(now, Some(seconds(9))), Some(now + seconds(3)));
        dial.advance();
        assert_eq!(
            dial.due(now + seconds(3), Some(seconds(9))),
            Some(now + seconds(6))
        );
        assert_eq!(dial.due(now, None), None);
    }
}
