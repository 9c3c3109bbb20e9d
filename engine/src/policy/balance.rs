//! Which of several addresses with the same content gets a call: in turn or by load, without addresses that fail.
//!
//! An address that fails several times in a row, or that is much slower than the others, is ejected for a while, longer
//! each time. If too many are ejected at once, the cause is not the addresses, and all are used (the panic threshold).

use std::cmp::Reverse;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use super::breaker::{BreakerPermit, Health, Statuses};

/// How calls are spread.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Spread {
    /// In turn.
    #[default]
    RoundRobin,
    /// Two addresses are drawn at random; the one with fewer calls in flight gets the call.
    LeastInFlight,
}

/// The rules of a [`Balancer`].
#[derive(Clone, Debug, PartialEq)]
pub struct BalanceConfig {
    /// How calls are spread. Default: in turn.
    pub spread: Spread,
    /// An address is ejected after so many failures in a row. Default 5; `None`: never.
    pub eject_after: Option<NonZeroU32>,
    /// An address is ejected if its answers take so many times as long as the median of all addresses. Both are moving
    /// averages over about 20 answers. Default: none.
    pub slow_factor: Option<f64>,
    /// How long the first ejection takes. Each further ejection in a row takes twice as long as the one before. Default
    /// 10 s.
    pub eject_for: Duration,
    /// The longest ejection. Default 5 minutes.
    pub max_eject_for: Duration,
    /// If less than this part of the addresses is left, all are used; from 0 to 1. Default 0.3.
    pub panic_below: f64,
    /// Statuses that count as failures. Default 500 and 502 to 504, as for a [`BreakerConfig`](super::BreakerConfig).
    pub statuses: Statuses,
    /// Whether a call that failed at one address is tried at another at once, at each address at most once. This needs
    /// that nothing of the call was sent, or that its method is idempotent (RFC 9110 §9.2.2) and the
    /// [budget](crate::HostConfig::retry_budget) allows a retry. Default true.
    pub fail_over: bool,
}

impl Default for BalanceConfig {
    fn default() -> Self {
        Self {
            spread: Spread::RoundRobin,
            eject_after: NonZeroU32::new(5),
            slow_factor: None,
            eject_for: Duration::from_secs(10),
            max_eject_for: Duration::from_secs(300),
            panic_below: 0.3,
            statuses: Statuses::of_failures(),
            fail_over: true,
        }
    }
}

/// Chooses one of several addresses, numbered from 0, for each call. Has no clock and no randomness of its own.
///
/// ```
/// use std::time::{Duration, Instant};
/// use courser::policy::{BalanceConfig, Balancer, Health};
///
/// let mut balancer = Balancer::new(BalanceConfig::default(), 3);
/// let now = Instant::now();
/// let mut pick = |balancer: &mut Balancer| balancer.pick(now, 0, |_| false);
/// let picks: Vec<_> = (0..4).filter_map(|_| pick(&mut balancer)).collect();
/// assert_eq!(picks, [0, 1, 2, 0]);
/// // The first address fails five times in a row and is not used for ten seconds.
/// for _ in 0..5 {
///     balancer.begin(0);
///     balancer.end(now, 0, Health::Failure, None);
/// }
/// assert!((0..8).all(|_| pick(&mut balancer) != Some(0)));
/// assert_eq!(balancer.ejected_until(0), Some(now + Duration::from_secs(10)));
/// ```
#[derive(Clone, Debug)]
pub struct Balancer {
    config: BalanceConfig,
    places: Vec<Place>,
    /// How many turns are to be left out before the first pick.
    start: u64,
    /// Scratch memory.
    usable: Vec<usize>,
}

#[derive(Clone, Debug, Default)]
struct Place {
    /// The address is one of those to choose from. Other places are empty, and are used again.
    present: bool,
    /// How many turns the address has got below its share.
    owed: i64,
    in_flight: u32,
    failures_in_a_row: u32,
    ejected_until: Option<Instant>,
    /// Ejections in a row, without an equally long time of health between them.
    ejections: u32,
    /// When the address returned last.
    back_at: Option<Instant>,
    /// Moving average in seconds, and over how many answers.
    latency: f64,
    answers: u32,
}

impl Balancer {
    /// A balancer over this number of addresses.
    pub fn new(config: BalanceConfig, addresses: usize) -> Self {
        Self {
            config,
            start: 0,
            places: vec![Place::new(); addresses],
            usable: Vec::with_capacity(addresses),
        }
    }

    /// The configuration.
    pub fn config(&self) -> &BalanceConfig {
        &self.config
    }

    /// Adds an address, and returns its number, which may be that of an address that was [removed](Self::remove).
    pub fn add(&mut self) -> usize {
        let is_free = |place: &Place| !place.present && place.in_flight == 0;
        match self.places.iter().position(is_free) {
            Some(at) => {
                self.places[at] = Place::new();
                at
            }
            None => {
                self.places.push(Place::new());
                self.places.len() - 1
            }
        }
    }

    /// Removes an address: it is not chosen any more. Its number is used again once its calls in flight have ended.
    pub fn remove(&mut self, at: usize) {
        if let Some(place) = self.places.get_mut(at) {
            place.present = false;
        }
    }

    /// Whether an address has this number.
    pub fn is_present(&self, at: usize) -> bool {
        self.places.get(at).is_some_and(|place| place.present)
    }

    /// Lets the turns of [`Spread::RoundRobin`] begin with turn number `turn`, modulo the number of addresses at the first
    /// pick, instead of turn 0. With random numbers, many programs do not all begin with the same address.
    pub fn start_at(&mut self, turn: u64) {
        self.start = turn;
    }

    /// Chooses an address that `skip` does not exclude. `random` is a uniformly distributed number. `None` if every
    /// address is excluded.
    pub fn pick(
        &mut self,
        now: Instant,
        random: u64,
        skip: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        self.take_back(now);
        let panics = self.panics();
        let mut usable = std::mem::take(&mut self.usable);
        usable.clear();
        usable.extend((0..self.places.len()).filter(|at| {
            let place = &self.places[*at];
            place.present && !skip(*at) && (panics || !place.is_out())
        }));
        let pick = match self.config.spread {
            Spread::RoundRobin => {
                for _ in 0..std::mem::take(&mut self.start) % self.places.len().max(1) as u64 {
                    self.in_turn(&usable);
                }
                self.in_turn(&usable)
            }
            Spread::LeastInFlight => self.less_loaded(&usable, random),
        };
        self.usable = usable;
        // If none is usable, only addresses that are out are left.
        pick.or_else(|| {
            let others = (0..self.places.len()).filter(|at| self.is_present(*at) && !skip(*at));
            others.min_by_key(|at| (self.places[*at].ejected_until, *at))
        })
    }

    /// Whether there is an address in use that `skip` does not exclude.
    pub fn has_other(&self, skip: impl Fn(usize) -> bool) -> bool {
        let mut places = self.places.iter().enumerate();
        places.any(|(at, place)| place.present && !skip(at) && !place.is_out())
    }

    /// Counts a call to this address as in flight.
    pub fn begin(&mut self, at: usize) {
        if let Some(place) = self.places.get_mut(at) {
            place.in_flight += 1;
        }
    }

    /// Counts the end of a call. Returns true if the address is ejected now.
    pub fn end(
        &mut self,
        now: Instant,
        at: usize,
        health: Health,
        latency: Option<Duration>,
    ) -> bool {
        let Some(place) = self.places.get_mut(at) else {
            return false;
        };
        place.in_flight = place.in_flight.saturating_sub(1);
        if !place.present {
            return false;
        }
        if let Some(latency) = latency {
            place.answers = place.answers.saturating_add(1);
            let part = 1.0 / f64::from(place.answers.min(AVERAGED));
            place.latency += (latency.as_secs_f64() - place.latency) * part;
        }
        match health {
            Health::Unknown => return false,
            Health::Failure => place.failures_in_a_row = place.failures_in_a_row.saturating_add(1),
            Health::Success => {
                place.failures_in_a_row = 0;
                let ejection = ejection(&self.config, place.ejections);
                let back = place.back_at.filter(|_| place.ejected_until.is_none());
                if back.is_some_and(|back| now.saturating_duration_since(back) >= ejection) {
                    place.ejections = 0; // healthy for as long as the last ejection
                }
            }
        }
        let most = self.config.eject_after;
        let fails = most.is_some_and(|most| place.failures_in_a_row >= most.get());
        if place.ejected_until.is_some() || !(fails || self.is_slow(at)) {
            return false;
        }
        let place = &mut self.places[at];
        place.ejections = place.ejections.saturating_add(1);
        place.failures_in_a_row = 0;
        (place.latency, place.answers) = (0.0, 0);
        let until = now.checked_add(ejection(&self.config, place.ejections));
        place.ejected_until = Some(until.unwrap_or(now));
        true
    }

    /// The end of the ejection of an address, if it is ejected.
    pub fn ejected_until(&self, at: usize) -> Option<Instant> {
        self.places.get(at)?.ejected_until
    }

    /// Calls in flight to an address.
    pub fn in_flight(&self, at: usize) -> u32 {
        self.places.get(at).map_or(0, |place| place.in_flight)
    }

    /// Whether so many addresses are out that all are used.
    fn panics(&self) -> bool {
        let present = self.places.iter().filter(|place| place.present);
        let left = present.clone().filter(|place| !place.is_out());
        (left.count() as f64) < self.config.panic_below * present.count() as f64
    }

    /// Returns addresses whose ejection is over.
    fn take_back(&mut self, now: Instant) {
        for place in &mut self.places {
            if place.ejected_until.take_if(|until| *until <= now).is_some() {
                place.back_at = Some(now);
                place.owed = 0;
            }
        }
    }

    /// Every address is owed its share of a turn, and the one that is owed most gets the call and pays for all.
    fn in_turn(&mut self, usable: &[usize]) -> Option<usize> {
        for &at in usable {
            self.places[at].owed += 1;
        }
        let owed = |at: &usize| (self.places[*at].owed, Reverse(*at));
        let most = usable.iter().copied().max_by_key(owed)?;
        self.places[most].owed -= usable.len() as i64;
        Some(most)
    }

    /// Of two different addresses drawn at random, the one with fewer calls in flight.
    fn less_loaded(&self, usable: &[usize], random: u64) -> Option<usize> {
        let first = drawn(usable.len(), random as u32);
        let second = drawn(usable.len().saturating_sub(1), (random >> 32) as u32);
        let second = second + usize::from(second >= first);
        let two = [first, second].into_iter().filter_map(|n| usable.get(n));
        two.copied().min_by_key(|at| self.places[*at].in_flight)
    }

    /// Whether the answers of an address take much longer than those of the others.
    fn is_slow(&self, at: usize) -> bool {
        let Some(factor) = self.config.slow_factor else {
            return false;
        };
        let known = |place: &&Place| place.present && place.answers >= AVERAGED && !place.is_out();
        let place = &self.places[at];
        let all = self.places.iter().filter(known);
        let mut all: Vec<f64> = all.map(|place| place.latency).collect();
        if !known(&place) || all.len() < 3 {
            return false;
        }
        all.sort_by(f64::total_cmp);
        place.latency > factor * all[all.len() / 2]
    }
}

impl Place {
    fn new() -> Self {
        Self {
            present: true,
            ..Self::default()
        }
    }

    /// Whether the address is not used, except below the panic threshold.
    fn is_out(&self) -> bool {
        self.ejected_until.is_some()
    }
}

/// The permit of an attempt, to be returned with its outcome.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AttemptPermit {
    /// The permit of the host's breaker, if the host has one.
    pub(crate) breaker: Option<BreakerPermit>,
    /// The address that was chosen, if there was a choice.
    pub(crate) address: Option<u32>,
}

/// How long an ejection takes, if it is number `ejections` in a row.
fn ejection(config: &BalanceConfig, ejections: u32) -> Duration {
    let doubled = 2u32.saturating_pow(ejections.saturating_sub(1));
    let longer = config.eject_for.saturating_mul(doubled);
    longer.min(config.max_eject_for)
}

/// A number below `count`, from a uniformly distributed one; 0 if there is none.
fn drawn(count: usize, random: u32) -> usize {
    ((u64::from(random) * count as u64) >> 32) as usize
}

/// Answers that the moving average of latencies covers.
const AVERAGED: u32 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(balancer: &mut Balancer, now: Instant, picks: u32) -> Vec<u32> {
        let mut counts = vec![0; balancer.places.len()];
        for n in 1..=u64::from(picks) {
            let random = n.wrapping_mul(6_364_136_223_846_793_005);
            let mixed = random ^ random.rotate_left(32);
            let at = balancer.pick(now, mixed, |_| false).expect("an address");
            counts[at] += 1;
        }
        counts
    }

    fn fail(balancer: &mut Balancer, now: Instant, at: usize, times: u32) -> bool {
        let mut ejected = false;
        for _ in 0..times {
            balancer.begin(at);
            ejected |= balancer.end(now, at, Health::Failure, None);
        }
        ejected
    }

    #[test]
    fn turns_begin_anywhere() {
        let now = Instant::now();
        let picks = |start, addresses| -> Vec<usize> {
            let mut balancer = Balancer::new(BalanceConfig::default(), addresses);
            balancer.start_at(start);
            let picks = (0..6).filter_map(|_| balancer.pick(now, 0, |_| false));
            picks.collect()
        };
        assert_eq!(picks(0, 3), [0, 1, 2, 0, 1, 2]);
        assert_eq!(picks(1, 3), [1, 2, 0, 1, 2, 0]);
        assert_eq!(picks(u64::MAX, 2), [1, 0, 1, 0, 1, 0]);
        assert!(picks(7, 0).is_empty());
    }

    #[test]
    fn the_less_loaded_of_two() {
        let now = Instant::now();
        let config = BalanceConfig {
            spread: Spread::LeastInFlight,
            ..BalanceConfig::default()
        };
        let mut balancer = Balancer::new(config, 3);
        for _ in 0..10 {
            balancer.begin(1);
        }
        let counts = counts(&mut balancer, now, 3000);
        assert_eq!(counts[1], 0, "it is never the less loaded one");
        assert!(counts[0] > 1000 && counts[2] > 1000, "{counts:?}");
    }

    #[test]
    fn who_fails_is_left_alone_longer_each_time() {
        let mut now = Instant::now();
        let mut balancer = Balancer::new(BalanceConfig::default(), 3);
        assert!(!fail(&mut balancer, now, 0, 4));
        balancer.end(now, 0, Health::Success, None);
        assert!(!fail(&mut balancer, now, 0, 4));
        for seconds in [10, 20, 40, 80, 160, 300, 300] {
            assert!(fail(&mut balancer, now, 0, 5), "{seconds}");
            let until = now + Duration::from_secs(seconds);
            assert_eq!(balancer.ejected_until(0), Some(until));
            assert_eq!(
                counts(&mut balancer, until - Duration::from_nanos(1), 6),
                [0, 3, 3]
            );
            now = until;
            assert_eq!(counts(&mut balancer, now, 6), [2, 2, 2]);
        }
        // Healthy for as long as it was ejected: the next ejection is a first one again.
        now += Duration::from_secs(300);
        balancer.end(now, 0, Health::Success, None);
        fail(&mut balancer, now, 0, 5);
        assert_eq!(
            balancer.ejected_until(0),
            Some(now + Duration::from_secs(10))
        );
    }

    #[test]
    fn when_most_fail_all_are_used() {
        let now = Instant::now();
        let mut balancer = Balancer::new(BalanceConfig::default(), 4);
        fail(&mut balancer, now, 0, 5);
        fail(&mut balancer, now, 1, 5);
        assert_eq!(counts(&mut balancer, now, 4), [0, 0, 2, 2]);
        fail(&mut balancer, now, 2, 5);
        assert_eq!(counts(&mut balancer, now, 8), [2, 2, 2, 2]);
    }

    #[test]
    fn addresses_come_and_go() {
        let now = Instant::now();
        let mut balancer = Balancer::new(BalanceConfig::default(), 0);
        assert_eq!(balancer.pick(now, 0, |_| false), None);
        assert_eq!([(); 2].map(|()| balancer.add()), [0, 1]);
        assert_eq!(counts(&mut balancer, now, 4), [2, 2]);
        // The number of an address with calls in flight is not used again before they have ended.
        balancer.begin(0);
        balancer.remove(0);
        assert!(!balancer.is_present(0) && balancer.is_present(1));
        assert_eq!(balancer.add(), 2);
        assert_eq!(counts(&mut balancer, now, 6), [0, 3, 3]);
        assert!(!fail(&mut balancer, now, 0, 9), "it is gone");
        balancer.end(now, 0, Health::Failure, None);
        assert_eq!((balancer.add(), balancer.ejected_until(0)), (0, None));
        assert_eq!(counts(&mut balancer, now, 6), [2, 2, 2]);
        for at in 0..3 {
            balancer.remove(at);
        }
        assert!(!balancer.has_other(|_| false));
        assert_eq!(balancer.pick(now, 0, |_| false), None);
    }

    #[test]
    fn another_one_than_the_one_that_failed() {
        let now = Instant::now();
        for spread in [Spread::RoundRobin, Spread::LeastInFlight] {
            let config = BalanceConfig {
                spread,
                ..BalanceConfig::default()
            };
            let mut balancer = Balancer::new(config, 2);
            assert!(
                (0..20).all(|random| balancer.pick(now, random << 30, |at| at == 0) == Some(1))
            );
            // An ejected address is better than the same one again.
            fail(&mut balancer, now, 1, 5);
            assert!(!balancer.has_other(|at| at == 0));
            assert_eq!(balancer.pick(now, 7, |at| at == 0), Some(1));
            assert_eq!(balancer.pick(now, 7, |_| true), None);
        }
    }

    #[test]
    fn who_is_much_slower_is_ejected() {
        let now = Instant::now();
        let config = BalanceConfig {
            slow_factor: Some(3.0),
            ..BalanceConfig::default()
        };
        let mut balancer = Balancer::new(config, 4);
        let mut ejected = Vec::new();
        for _ in 0..25 {
            for at in 0..4 {
                let ms = if at == 2 { 500 } else { 100 + 10 * at as u64 };
                balancer.begin(at);
                if balancer.end(now, at, Health::Success, Some(Duration::from_millis(ms))) {
                    ejected.push(at);
                }
            }
        }
        assert_eq!(ejected, [2]);
        assert_eq!(balancer.in_flight(2), 0);
    }
}
