//! In which order the addresses of an upstream are tried, and when the next attempt begins (RFC 8305 §5).
//!
//! An opening is a race: the first address is tried at once, and another one each time an attempt fails or the attempt
//! delay has passed without success. The first connection that is up wins, and the others are closed by the driver. All
//! of them count against the caps on connections.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::later;
use crate::net::Address;

/// Where the next opening starts: each one address further than the one before, and addresses that failed lately last.
#[derive(Debug, Default)]
pub(crate) struct DialOrder {
    next: usize,
    /// Addresses that failed, or were overtaken by another, and until when they are tried last.
    avoided: Vec<(Address, Instant)>,
}

impl DialOrder {
    /// The order for one opening.
    pub(crate) fn order(&mut self, now: Instant, addresses: &[Address]) -> Vec<Address> {
        let first = self.turn() % addresses.len().max(1);
        self.avoided.retain(|(_, until)| *until > now);
        let rotated = (0..addresses.len()).map(|at| &addresses[(first + at) % addresses.len()]);
        let (mut order, last): (Vec<_>, Vec<_>) = rotated
            .cloned()
            .partition(|address| !self.is_avoided(address));
        order.extend(last);
        order
    }

    /// Counts openings, for an order that is made elsewhere.
    pub(crate) fn turn(&mut self) -> usize {
        let turn = self.next;
        self.next = turn.wrapping_add(1);
        turn
    }

    fn is_avoided(&self, address: &Address) -> bool {
        self.avoided.iter().any(|(avoided, _)| avoided == address)
    }

    /// An address failed, or another one was faster by more than the attempt delay.
    pub(crate) fn avoid(&mut self, now: Instant, address: &Address) {
        self.reached(address);
        if self.avoided.len() < MOST_AVOIDED {
            self.avoided
                .push((address.clone(), later(now, AVOIDED_FOR)));
        }
    }

    /// An address works.
    pub(crate) fn reached(&mut self, address: &Address) {
        self.avoided.retain(|(avoided, _)| avoided != address);
    }
}

/// One opening over the addresses of an upstream.
#[derive(Debug)]
pub(crate) struct Race {
    /// Addresses to try, the next one in front.
    queue: VecDeque<Address>,
    addresses: usize,
    running: usize,
    /// When the next attempt begins although others are running.
    next_at: Instant,
    /// How many attempts were given up for want of room.
    replaced: usize,
}

/// What to do in a race.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum RaceStep {
    /// Try this address beside those that are being tried.
    Begin(Address),
    /// Give up the attempt that has been running for longest, and say so with [`Race::handle_replaced`].
    Replace,
    /// Nothing now; at that time again, if nothing happens before.
    Wait(Option<Instant>),
    /// Every address has failed.
    Lost,
}

impl Race {
    /// A race over addresses in that order.
    pub(crate) fn new(now: Instant, order: Vec<Address>) -> Self {
        Self {
            addresses: order.len(),
            queue: order.into(),
            running: 0,
            next_at: now,
            replaced: 0,
        }
    }

    /// `room`: another connection may be begun beside those of this race. Without room the slowest gives way, and is
    /// tried again later, each round with twice the patience, so that an address that is only slow is reached too.
    pub(crate) fn poll(&mut self, now: Instant, delay: Duration, room: bool) -> RaceStep {
        match self.running {
            0 if self.queue.is_empty() => return RaceStep::Lost,
            0 => {}
            _ if self.queue.is_empty() || self.running >= MOST_RACING => {
                return RaceStep::Wait(None);
            }
            _ if self.next_at > now => return RaceStep::Wait(Some(self.next_at)),
            _ if !room => return RaceStep::Replace,
            _ => {}
        }
        let Some(address) = self.queue.pop_front() else {
            return RaceStep::Lost;
        };
        self.running += 1;
        let round = (self.replaced / self.addresses).min(MOST_ROUNDS) as u32;
        self.next_at = later(now, delay.saturating_mul(1 << round));
        RaceStep::Begin(address)
    }

    /// A running attempt failed: the next one is due at once.
    pub(crate) fn handle_failed(&mut self, now: Instant) {
        self.running -= 1;
        self.next_at = now;
    }

    /// A running attempt has given way.
    pub(crate) fn handle_replaced(&mut self, address: Address) {
        self.running -= 1;
        self.replaced += 1;
        self.queue.push_back(address);
    }
}

/// For how long an address that failed is tried last.
const AVOIDED_FOR: Duration = Duration::from_secs(60);

/// An upstream whose addresses have all failed is not worth a longer list.
const MOST_AVOIDED: usize = 64;

/// Patience stops doubling; by then it is longer than any limit.
const MOST_ROUNDS: usize = 16;

/// Attempts of one opening at the same time.
const MOST_RACING: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(n: u8) -> Vec<Address> {
        (1..=n)
            .map(|n| Address::Tcp(([10, 0, 0, n], 80).into()))
            .collect()
    }

    #[test]
    fn round_robin_with_failed_addresses_last() {
        let (now, all) = (Instant::now(), addresses(3));
        let mut order = DialOrder::default();
        let pick = |order: &mut DialOrder, now| -> Vec<usize> {
            let order = order.order(now, &all);
            order
                .iter()
                .map(|a| all.iter().position(|b| a == b).expect("one of them"))
                .collect()
        };
        assert_eq!(pick(&mut order, now), [0, 1, 2]);
        assert_eq!(pick(&mut order, now), [1, 2, 0]);
        order.avoid(now, &all[2]);
        assert_eq!(pick(&mut order, now), [0, 1, 2]);
        assert_eq!(pick(&mut order, now), [0, 1, 2]);
        assert_eq!(pick(&mut order, now), [1, 0, 2]);
        assert_eq!(pick(&mut order, now + AVOIDED_FOR), [2, 0, 1]);
        order.avoid(now, &all[0]);
        order.reached(&all[0]);
        assert_eq!(pick(&mut order, now), [0, 1, 2]);
    }

    #[test]
    fn the_next_attempt_begins_after_the_delay_or_a_failure() {
        let (now, all) = (Instant::now(), addresses(3));
        let delay = Duration::from_millis(250);
        let mut race = Race::new(now, all.clone());
        let begin = |n: usize| RaceStep::Begin(all[n].clone());
        assert_eq!(race.poll(now, delay, false), begin(0));
        assert_eq!(
            race.poll(now, delay, true),
            RaceStep::Wait(Some(now + delay))
        );
        // Black-holed: the second one after the delay; refused: the third one at once.
        assert_eq!(race.poll(now + delay, delay, true), begin(1));
        race.handle_failed(now + delay);
        assert_eq!(race.poll(now + delay, delay, true), begin(2));
        assert_eq!(race.poll(now + delay, delay, true), RaceStep::Wait(None));
        race.handle_failed(now + delay);
        race.handle_failed(now + delay);
        assert_eq!(race.poll(now + delay, delay, true), RaceStep::Lost);
    }

    #[test]
    fn without_room_the_slowest_gives_way_with_growing_patience() {
        let (mut now, all) = (Instant::now(), addresses(2));
        let delay = Duration::from_millis(250);
        let mut race = Race::new(now, all.clone());
        for (attempt, patience) in [(0, 250), (1, 250), (0, 500), (1, 500), (0, 1000)] {
            assert_eq!(
                race.poll(now, delay, false),
                RaceStep::Begin(all[attempt].clone())
            );
            let due = now + Duration::from_millis(patience);
            assert_eq!(race.poll(now, delay, false), RaceStep::Wait(Some(due)));
            now = due;
            assert_eq!(race.poll(now, delay, false), RaceStep::Replace);
            race.handle_replaced(all[attempt].clone());
        }
        // A single address has nobody to give way to.
        let mut race = Race::new(now, addresses(1));
        assert!(matches!(race.poll(now, delay, false), RaceStep::Begin(_)));
        assert_eq!(race.poll(now + delay, delay, false), RaceStep::Wait(None));
    }
}
