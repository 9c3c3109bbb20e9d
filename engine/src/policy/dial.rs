//! In which order the addresses of an upstream are tried, and when the next attempt begins (RFC 8305 §5).
//!
//! An opening is a race. The first address is tried at once, and another one each time an attempt fails or the attempt
//! delay has passed. The first connection that is established wins; the driver closes the others. All of them count
//! against the limits on connections.

use std::collections::{HashMap, VecDeque};
use std::mem;
use std::time::Duration;

use super::later;
use crate::address::Address;
use crate::time::Time;

/// The order in which opening number `start` tries equivalent addresses. Those for which `last` is true come after all
/// others. The families alternate (RFC 8305 §4). In RFC 8305 IPv6 is always first; here the families are first in turn,
/// and so are the addresses of each family, so that the connections are spread over all of them.
pub(crate) fn interleave<T: Clone>(
    addresses: &[T],
    start: usize,
    is_ipv6: impl Fn(&T) -> bool,
    last: impl Fn(&T) -> bool,
) -> Vec<T> {
    let all = addresses.iter().cloned();
    let (avoided, good): (Vec<T>, Vec<T>) = all.partition(|address| last(address));
    let mut order = Vec::with_capacity(addresses.len());
    for group in [good, avoided] {
        let (mut v6, mut v4): (Vec<T>, Vec<T>) = group.into_iter().partition(&is_ipv6);
        let mut turn = start;
        if !v6.is_empty() && !v4.is_empty() {
            turn = start / 2;
            if start % 2 == 1 {
                mem::swap(&mut v6, &mut v4);
            }
        }
        for family in [&mut v6, &mut v4] {
            let places = turn % family.len().max(1);
            family.rotate_left(places);
        }
        let longest = v6.len().max(v4.len());
        let (mut first, mut second) = (v6.into_iter(), v4.into_iter());
        for _ in 0..longest {
            order.extend(first.next());
            order.extend(second.next());
        }
    }
    order
}

/// Addresses that failed recently, or that were slower than another one by more than the attempt delay. For a while,
/// all hosts with these addresses try them last.
#[derive(Debug)]
pub(crate) struct Avoided {
    hold: Duration,
    until: HashMap<Address, Time>,
    /// In the order of their ends. An address that failed again, or was reached, leaves an outdated entry.
    order: VecDeque<(Time, Address)>,
}

impl Avoided {
    pub(crate) fn new(hold: Duration) -> Self {
        Self {
            hold,
            until: HashMap::new(),
            order: VecDeque::new(),
        }
    }

    pub(crate) fn note_failed(&mut self, now: Time, address: &Address) {
        let until = later(now, self.hold);
        self.until.insert(address.clone(), until);
        self.order.push_back((until, address.clone()));
        while let Some((end, _)) = self.order.front()
            && (*end <= now || self.order.len() > MOST_AVOIDED)
            && let Some((end, address)) = self.order.pop_front()
        {
            if self.until.get(&address) == Some(&end) {
                self.until.remove(&address);
            }
        }
    }

    pub(crate) fn note_reached(&mut self, address: &Address) {
        self.until.remove(address);
    }

    pub(crate) fn clear(&mut self) {
        self.until.clear();
        self.order.clear();
    }

    pub(crate) fn has(&self, now: Time, address: &Address) -> bool {
        self.until.get(address).is_some_and(|until| now < *until)
    }
}

/// One opening over the addresses of an upstream.
#[derive(Debug)]
pub(crate) struct Race {
    /// Addresses to try, the next one first.
    queue: VecDeque<Address>,
    addresses: usize,
    running: usize,
    /// When the next attempt begins while others are running.
    next_at: Time,
    /// How many attempts were ended because there was no room for more.
    replaced: usize,
    /// The machine had no descriptor for the last attempt, and no attempt of this race has ended since.
    refused: bool,
    delay: Duration,
}

/// What to do in a race.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum RaceStep {
    /// Try this address in parallel to the running attempts.
    Begin(Address),
    /// End the attempt that has run longest, and report it with [`Race::handle_replaced`].
    Replace,
    /// Nothing now. Poll again at this time, or after an event.
    Wait(Option<Time>),
    /// Every address has failed.
    Lost,
}

impl Race {
    /// A race over addresses in this order. Each has `delay` before the next one is tried in parallel.
    pub(crate) fn new(now: Time, order: Vec<Address>, delay: Duration) -> Self {
        Self {
            delay,
            addresses: order.len(),
            queue: order.into(),
            running: 0,
            next_at: now,
            replaced: 0,
            refused: false,
        }
    }

    /// `room`: another connection may be opened in addition to those of this race. Without room, the slowest attempt is
    /// replaced and tried again later, each round with twice the time, so that a slow address is reached, too. There is
    /// no room either while the machine has no descriptor for another attempt: the running ones may have taken the last
    /// descriptors.
    pub(crate) fn poll(&mut self, now: Time, room: bool) -> RaceStep {
        let room = room && !self.refused;
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
        self.refused = false;
        // Attempts that replace one another need some time each, whatever the delay.
        let in_turn = !room || self.replaced > 0;
        let delay = self
            .delay
            .max(if in_turn { LEAST_TURN } else { Duration::ZERO });
        self.next_at = later(now, delay.saturating_mul(1 << round));
        RaceStep::Begin(address)
    }

    /// A running attempt failed: the next one may begin at once.
    pub(crate) fn handle_failed(&mut self, now: Time) {
        self.running -= 1;
        self.refused = false;
        self.next_at = now;
    }

    /// An attempt has not begun: this machine has no descriptor for it. Its address is the next one again, once an
    /// attempt has ended or the delay has passed.
    pub(crate) fn handle_refused(&mut self, address: Address) {
        self.running -= 1;
        self.refused = true;
        self.queue.push_front(address);
    }

    /// A running attempt was replaced.
    pub(crate) fn handle_replaced(&mut self, address: Address) {
        self.running -= 1;
        self.refused = false;
        self.replaced += 1;
        self.queue.push_back(address);
    }
}

/// How many failed addresses are remembered.
const MOST_AVOIDED: usize = 4096;

/// The least time of an attempt before it is replaced.
const LEAST_TURN: Duration = Duration::from_millis(1);

/// The time stops doubling after so many rounds; by then it is longer than any limit.
const MOST_ROUNDS: usize = 16;

/// The most attempts of one opening at the same time.
const MOST_RACING: usize = 8;

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn addresses(n: u8) -> Vec<Address> {
        (1..=n)
            .map(|n| Address::Tcp(([10, 0, 0, n], 80).into()))
            .collect()
    }

    #[test]
    fn addresses_and_families_are_first_in_turn_and_failed_ones_last() {
        let order = |addresses: &str, start, last: &[&str]| {
            let all: Vec<&str> = addresses.split_whitespace().collect();
            let order = interleave(&all, start, |ip| ip.contains(':'), |ip| last.contains(ip));
            order.join(" ")
        };
        for (start, expected) in [(0, "a b c"), (1, "b c a"), (2, "c a b"), (4, "b c a")] {
            assert_eq!(order("a b c", start, &[]), expected);
        }
        assert_eq!(order("a b c", usize::MAX, &["c"]), "b a c");
        assert_eq!(order("a b c", 0, &["a", "b", "c"]), "a b c");
        assert_eq!(order("::1", 7, &[]), "::1");
        assert_eq!(order("", 5, &[]), "");

        let mixed = "a b c ::1 ::2";
        for (start, expected) in [
            (0, "::1 a ::2 b c"),
            (1, "a ::1 b ::2 c"),
            (2, "::2 b ::1 c a"),
            (3, "b ::2 c ::1 a"),
            (5, "c ::1 a ::2 b"),
        ] {
            assert_eq!(order(mixed, start, &[]), expected);
        }
        assert_eq!(order(mixed, 3, &["::1", "::2"]), "a b c ::2 ::1");
        assert_eq!(order(mixed, 0, &["::1", "a"]), "::2 b c ::1 a");
    }

    #[test]
    fn failed_addresses_are_forgotten_in_time_and_bounded() {
        let start = Time::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let address = |n: u32| Address::Tcp((Ipv4Addr::from_bits(n), 80).into());
        let mut avoided = Avoided::new(Duration::from_secs(30));
        avoided.note_failed(at(0), &address(1));
        avoided.note_failed(at(10), &address(1));
        assert!(avoided.has(at(39), &address(1)));
        assert!(!avoided.has(at(40), &address(1)));
        avoided.note_reached(&address(1));
        assert!(!avoided.has(at(10), &address(1)));
        for n in 0..2 * MOST_AVOIDED as u32 {
            avoided.note_failed(at(50), &address(n));
            assert!(avoided.has(at(50), &address(n)));
        }
        assert_eq!(avoided.until.len(), MOST_AVOIDED);
        assert_eq!(avoided.order.len(), MOST_AVOIDED);
        avoided.note_failed(at(90), &address(7));
        assert_eq!(avoided.until.len(), 1);
    }

    #[test]
    fn the_next_attempt_begins_after_the_delay_or_a_failure() {
        let (now, all) = (Time::now(), addresses(3));
        let delay = Duration::from_millis(250);
        let mut race = Race::new(now, all.clone(), delay);
        let begin = |n: usize| RaceStep::Begin(all[n].clone());
        assert_eq!(race.poll(now, false), begin(0));
        assert_eq!(race.poll(now, true), RaceStep::Wait(Some(now + delay)));
        // Black-holed: the second address after the delay. Refused: the third one at once.
        assert_eq!(race.poll(now + delay, true), begin(1));
        race.handle_failed(now + delay);
        assert_eq!(race.poll(now + delay, true), begin(2));
        assert_eq!(race.poll(now + delay, true), RaceStep::Wait(None));
        race.handle_failed(now + delay);
        race.handle_failed(now + delay);
        assert_eq!(race.poll(now + delay, true), RaceStep::Lost);
    }

    #[test]
    fn without_a_descriptor_the_slowest_gives_way_after_the_delay() {
        let (mut now, all) = (Time::now(), addresses(3));
        let delay = Duration::from_millis(250);
        let mut race = Race::new(now, all.clone(), delay);
        let begin = |n: usize| RaceStep::Begin(all[n].clone());
        assert_eq!(race.poll(now, true), begin(0));
        now = now + delay;
        // The first attempt may still succeed, so it is not ended at once.
        assert_eq!(race.poll(now, true), begin(1));
        race.handle_refused(all[1].clone());
        assert_eq!(race.poll(now, true), RaceStep::Wait(Some(now + delay)));
        now = now + delay;
        assert_eq!(race.poll(now, true), RaceStep::Replace);
        race.handle_replaced(all[0].clone());
        assert_eq!(race.poll(now, true), begin(1));
        // An attempt that fails leaves its descriptor.
        now = now + delay;
        assert_eq!(race.poll(now, true), begin(2));
        race.handle_refused(all[2].clone());
        race.handle_failed(now);
        assert_eq!(race.poll(now, true), begin(2));
    }

    #[test]
    fn without_room_the_slowest_gives_way_with_growing_patience() {
        let (mut now, all) = (Time::now(), addresses(2));
        let delay = Duration::from_millis(250);
        let mut race = Race::new(now, all.clone(), delay);
        for (attempt, patience) in [(0, 250), (1, 250), (0, 500), (1, 500), (0, 1000)] {
            assert_eq!(race.poll(now, false), RaceStep::Begin(all[attempt].clone()));
            let due = now + Duration::from_millis(patience);
            assert_eq!(race.poll(now, false), RaceStep::Wait(Some(due)));
            now = due;
            assert_eq!(race.poll(now, false), RaceStep::Replace);
            race.handle_replaced(all[attempt].clone());
        }
        // Not even without a delay is an attempt replaced as soon as it has begun.
        let mut race = Race::new(now, addresses(3), Duration::ZERO);
        let mut steps = 0;
        let wait = loop {
            match race.poll(now, race.running < 2) {
                RaceStep::Begin(_) => steps += 1,
                RaceStep::Replace => race.handle_replaced(all[0].clone()),
                step => break step,
            }
            assert!(steps < 10, "attempts replace one another without a pause");
        };
        assert_eq!(wait, RaceStep::Wait(Some(now + LEAST_TURN)));
        // A single address is not replaced.
        let mut race = Race::new(now, addresses(1), delay);
        assert!(matches!(race.poll(now, false), RaceStep::Begin(_)));
        assert_eq!(race.poll(now + delay, false), RaceStep::Wait(None));
    }
}
