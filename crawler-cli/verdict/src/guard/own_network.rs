//! Tells whether the own network fails.
//!
//! With canaries (URLs that the operator names because they always answer), the guard goes on when half of them fail;
//! they are asked when other hosts fail. Without, it goes on when many hosts fail that answered earlier, or when the
//! operating system says so. A list of hosts that never answered is a list of dead hosts.
//!
//! While the guard is on, nothing is asked but rounds: the canaries, or some of the hosts that failed. Three good rounds
//! in a row turn it off, and then the requests grow from a tenth to all of them within a minute.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::hash::Hash;
use std::time::Duration;

use jiff::Timestamp;

use super::{Guard, Reach, Stops};
use crate::life::Held;
use crate::life::time::{after, before, between};

/// What counts as a failure of the own network: `self_network` in the configuration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OwnNetworkRules {
    /// How many hosts that answered earlier must fail. Default: 20.
    pub hosts: u32,
    /// And more than this share of the hosts that were asked, without those that never answered. Default: 0.30.
    pub share: f64,
    /// The time in which they are counted, and which is void when the guard goes on. Default: 60 s.
    pub window: Duration,
}

impl Default for OwnNetworkRules {
    fn default() -> Self {
        Self {
            hosts: 20,
            share: 0.30,
            window: Duration::from_secs(60),
        }
    }
}

/// Something on this machine that makes every host fail.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum LocalSign {
    /// There is no route to a host (`ENETUNREACH`, `EHOSTUNREACH`). Ignored while other hosts answer: a host can have addresses of a
    /// family alone that this machine does not speak.
    NetworkUnreachable,
    /// No name server can be reached. Ignored while other hosts answer.
    ResolverUnreachable,
    /// The process has too many open files (`EMFILE`).
    TooManyFiles,
    /// The wall clock was set.
    ClockStep,
}

/// Why the guard went on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Reason {
    /// Hosts that answered earlier fail.
    Hosts {
        /// How many fail.
        failing: usize,
        /// Of how many that were asked.
        of: usize,
    },
    /// Canaries fail.
    Canaries {
        /// How many fail.
        failing: usize,
        /// Of how many.
        of: usize,
    },
    /// A sign on this machine.
    Local(LocalSign),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hosts { failing, of } => {
                write!(f, "{failing} of {of} hosts fail, and answered before")
            }
            Self::Canaries { failing, of } => write!(f, "{failing} of {of} canaries fail"),
            Self::Local(sign) => f.write_str(match sign {
                LocalSign::NetworkUnreachable => "the network is unreachable",
                LocalSign::ResolverUnreachable => "no name server can be reached",
                LocalSign::TooManyFiles => "too many open files",
                LocalSign::ClockStep => "the clock was set",
            }),
        }
    }
}

/// A change of the guard.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Switch {
    /// The guard went on: stop asking, and void what is held back.
    On(Reason),
    /// The guard went off: ask again what is void.
    Off,
}

/// Who is to be asked in a round.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Round<K> {
    /// All canaries.
    Canaries,
    /// These hosts. There are none if only a sign on this machine turned the guard on: the round is then good.
    Hosts(Vec<K>),
}

/// The guard of the own network. `K` names a host.
#[derive(Clone, Debug)]
pub struct OwnNetwork<K> {
    rules: OwnNetworkRules,
    has_canaries: bool,
    seen: Seen<K>,
    on: Option<On>,
    went_off_at: Option<Timestamp>,
    round_at: Option<Timestamp>,
    stops: Stops,
}

/// The guard while it is on.
#[derive(Clone, Copy, Debug, Default)]
struct On {
    good_rounds: u32,
    rounds: u32,
}

impl<K: Clone + Eq + Hash> Default for OwnNetwork<K> {
    fn default() -> Self {
        Self::new(OwnNetworkRules::default(), false)
    }
}

impl<K: Clone + Eq + Hash> OwnNetwork<K> {
    /// A guard that is off.
    pub fn new(rules: OwnNetworkRules, has_canaries: bool) -> Self {
        Self {
            rules,
            has_canaries,
            seen: Seen::new(rules.window),
            on: None,
            went_off_at: None,
            round_at: None,
            stops: Stops::default(),
        }
    }

    /// A guard that is off, after a restart: it was on at these times. If it was on until the end of the last run, it goes
    /// off now, and goes on again if the network still fails.
    pub fn with_stops(
        rules: OwnNetworkRules,
        has_canaries: bool,
        now: Timestamp,
        mut stops: Stops,
    ) -> Self {
        stops.end(now);
        Self {
            stops,
            ..Self::new(rules, has_canaries)
        }
    }

    /// Uses these rules from now on.
    pub fn set_rules(&mut self, rules: OwnNetworkRules, has_canaries: bool) {
        self.rules = rules;
        self.has_canaries = has_canaries;
        self.seen.window = rules.window;
    }

    /// The wall clock was set forward: nothing ages by that.
    pub fn skip(&mut self, from: Timestamp, to: Timestamp) {
        if self.on.is_none() && from < to {
            self.stops.begin(from);
            self.stops.end(to);
        }
    }

    /// A host answered or failed. `has_answered`: the host answered earlier, in this run or when it was last asked in an
    /// earlier one.
    pub fn handle_host(
        &mut self,
        now: Timestamp,
        host: &K,
        reach: Reach,
        has_answered: bool,
    ) -> Option<Switch> {
        if self.on.is_some() {
            return None;
        }
        self.seen.note(now, host, reach, has_answered);
        if self.has_canaries {
            return None;
        }
        let (failing, of) = (self.seen.failing_known, self.seen.known());
        let is_on = failing >= usize::try_from(self.rules.hosts.max(1)).unwrap_or(usize::MAX)
            && failing as f64 > self.rules.share * of as f64;
        is_on.then(|| self.turn_on(now, Reason::Hosts { failing, of }))
    }

    /// This machine shows a sign.
    pub fn handle_sign(&mut self, now: Timestamp, sign: LocalSign) -> Option<Switch> {
        self.seen.forget(now);
        let is_plain = match sign {
            LocalSign::NetworkUnreachable | LocalSign::ResolverUnreachable => {
                self.seen.answering == 0
            }
            LocalSign::TooManyFiles | LocalSign::ClockStep => true,
        };
        (self.on.is_none() && is_plain).then(|| self.turn_on(now, Reason::Local(sign)))
    }

    /// When the next round is due; `None`: no round is needed. With canaries, a round is also due when hosts fail while
    /// the guard is off.
    pub fn round_at(&mut self, now: Timestamp) -> Option<Timestamp> {
        if let Some(on) = self.on {
            let pause = FIRST_PAUSE
                .saturating_mul(1 << on.rounds.min(10))
                .min(self.rules.window);
            return Some(self.round_at.map_or(now, |at| after(at, pause)));
        }
        self.seen.forget(now);
        let is_suspicious = self.has_canaries
            && self.seen.failing > 0
            && self.seen.failing as f64 > self.rules.share * self.seen.hosts.len() as f64;
        let next = self
            .round_at
            .map_or(now, |at| after(at, self.rules.window / 4));
        is_suspicious.then_some(next)
    }

    /// Who is asked in a round.
    pub fn round(&self) -> Round<K> {
        match self.has_canaries {
            true => Round::Canaries,
            false => Round::Hosts(self.seen.to_ask()),
        }
    }

    /// Takes the result of a round: how many of those who were asked answered.
    pub fn handle_round(
        &mut self,
        now: Timestamp,
        answered: usize,
        asked: usize,
    ) -> Option<Switch> {
        self.round_at = Some(now);
        let failing = asked.saturating_sub(answered);
        let Some(on) = &mut self.on else {
            let is_on = self.has_canaries && asked > 0 && failing.saturating_mul(2) >= asked;
            let reason = Reason::Canaries { failing, of: asked };
            return is_on.then(|| self.turn_on(now, reason));
        };
        let is_good = failing.saturating_mul(2) < asked || asked == 0;
        on.rounds = if is_good {
            0
        } else {
            on.rounds.saturating_add(1)
        };
        on.good_rounds = if is_good { on.good_rounds + 1 } else { 0 };
        if on.good_rounds < GOOD_ROUNDS {
            return None;
        }
        self.on = None;
        self.went_off_at = Some(now);
        self.stops.end(now);
        self.seen = Seen::new(self.rules.window);
        Some(Switch::Off)
    }

    /// Whether the guard is on.
    pub fn is_on(&self) -> bool {
        self.on.is_some()
    }

    /// The guard, for [`Context::guard`](crate::life::Context::guard). What it holds is due at once when it ends.
    pub fn held(&self, now: Timestamp) -> Option<Held> {
        self.on.map(|_| Held {
            by: Guard::OwnNetwork,
            until: now,
        })
    }

    /// The times in which the guard was on.
    pub fn stops(&self) -> &Stops {
        &self.stops
    }

    /// The share of the usual requests that may be sent: none while the guard is on, then from a tenth to all of them
    /// within a minute.
    pub fn share_of_requests(&self, now: Timestamp) -> f64 {
        match (self.on, self.went_off_at) {
            (Some(_), _) => 0.0,
            (None, None) => 1.0,
            (None, Some(at)) => {
                let time = between(at, now).as_secs_f64() / RAMP.as_secs_f64();
                (0.1 + 0.9 * time).min(1.0)
            }
        }
    }

    fn turn_on(&mut self, now: Timestamp, reason: Reason) -> Switch {
        self.on = Some(On::default());
        self.round_at = Some(now);
        self.stops.begin(before(now, self.rules.window));
        Switch::On(reason)
    }
}

/// What hosts were asked in the window, and how each of them did last.
#[derive(Clone, Debug)]
struct Seen<K> {
    window: Duration,
    hosts: HashMap<K, Sight>,
    /// Oldest first, each host once; a host that was asked again since is moved when its turn comes.
    order: VecDeque<(Timestamp, K)>,
    /// Counts of the hosts: those that answered, those that failed, and those that failed and answered earlier.
    answering: usize,
    failing: usize,
    failing_known: usize,
}

#[derive(Clone, Copy, Debug)]
struct Sight {
    at: Timestamp,
    reach: Reach,
    has_answered: bool,
}

impl<K: Clone + Eq + Hash> Seen<K> {
    fn new(window: Duration) -> Self {
        Self {
            window,
            hosts: HashMap::new(),
            order: VecDeque::new(),
            answering: 0,
            failing: 0,
            failing_known: 0,
        }
    }

    fn note(&mut self, now: Timestamp, host: &K, reach: Reach, has_answered: bool) {
        let mut sight = Sight {
            at: now,
            reach,
            has_answered,
        };
        match self.hosts.get(host).copied() {
            Some(last) => {
                sight.has_answered |= last.has_answered || last.reach == Reach::Answered;
                self.count(last, false);
            }
            None => self.order.push_back((now, host.clone())),
        }
        self.count(sight, true);
        self.hosts.insert(host.clone(), sight);
        self.forget(now);
    }

    /// The hosts without those that never answered.
    fn known(&self) -> usize {
        self.answering + self.failing_known
    }

    /// Hosts that failed, those first that answered earlier.
    fn to_ask(&self) -> Vec<K> {
        let failed = |known| {
            let is_one = move |host: &&K| {
                self.hosts.get(*host).is_some_and(|sight| {
                    sight.reach == Reach::Failed && sight.has_answered == known
                })
            };
            self.order.iter().map(|(_, host)| host).filter(is_one)
        };
        failed(true)
            .chain(failed(false))
            .take(ASKED)
            .cloned()
            .collect()
    }

    /// Forgets what is older than the window, and the oldest of too many hosts.
    fn forget(&mut self, now: Timestamp) {
        let oldest = before(now, self.window);
        while let Some((noted_at, _)) = self.order.front()
            && (*noted_at < oldest || self.order.len() > MOST_HOSTS)
            && let Some((noted_at, host)) = self.order.pop_front()
            && let Some(sight) = self.hosts.get(&host).copied()
        {
            if sight.at > noted_at && sight.at >= oldest && self.order.len() < MOST_HOSTS {
                self.order.push_back((sight.at, host));
            } else {
                self.count(sight, false);
                self.hosts.remove(&host);
            }
        }
    }

    fn count(&mut self, sight: Sight, comes: bool) {
        let add = |count: &mut usize| match comes {
            true => *count += 1,
            false => *count -= 1,
        };
        match sight.reach {
            Reach::Answered => add(&mut self.answering),
            Reach::Failed => {
                add(&mut self.failing);
                if sight.has_answered {
                    add(&mut self.failing_known);
                }
            }
        }
    }
}

/// The pause before a round, doubled after each bad one, up to the window.
const FIRST_PAUSE: Duration = Duration::from_secs(5);

const GOOD_ROUNDS: u32 = 3;

const RAMP: Duration = Duration::from_secs(60);

/// How many hosts a round asks.
const ASKED: usize = 5;

/// How many hosts are kept in mind.
const MOST_HOSTS: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_767_225_600 + seconds).unwrap()
    }

    type Own = OwnNetwork<u32>;

    fn fail(
        own: &mut Own,
        now: i64,
        hosts: std::ops::Range<u32>,
        has_answered: bool,
    ) -> Vec<Switch> {
        hosts
            .filter_map(|host| own.handle_host(at(now), &host, Reach::Failed, has_answered))
            .collect()
    }

    fn answer(own: &mut Own, now: i64, hosts: std::ops::Range<u32>) {
        for host in hosts {
            let switch = own.handle_host(at(now), &host, Reach::Answered, false);
            assert_eq!(switch, None);
        }
    }

    #[test]
    fn a_list_of_dead_hosts_is_a_list_of_dead_hosts() {
        let mut own = Own::default();
        assert_eq!(fail(&mut own, 0, 0..5_000, false), []);
        // Nor do they hide that the network fails.
        let reason = Reason::Hosts {
            failing: 20,
            of: 20,
        };
        assert_eq!(fail(&mut own, 1, 5_000..5_020, true), [Switch::On(reason)]);
        assert_eq!(
            reason.to_string(),
            "20 of 20 hosts fail, and answered before"
        );
    }

    #[test]
    fn enough_hosts_that_answered_must_fail_and_more_than_the_share() {
        // (answer, fail, whether the guard is on)
        let table = [
            (0, 19, false),
            (0, 20, true),
            (46, 20, true),
            (47, 20, false),
            (100, 42, false),
            (100, 43, true),
        ];
        for (answering, failing, is_on) in table {
            let mut own = Own::default();
            answer(&mut own, 0, 1_000..1_000 + answering);
            fail(&mut own, 0, 0..failing, true);
            assert_eq!(own.is_on(), is_on, "{answering} {failing}");
        }
    }

    #[test]
    fn a_host_counts_once_and_with_its_last_answer() {
        let mut own = Own::default();
        answer(&mut own, 0, 0..30);
        for _ in 0..100 {
            assert_eq!(fail(&mut own, 1, 0..19, false), []);
        }
        answer(&mut own, 2, 0..1);
        assert_eq!(fail(&mut own, 2, 19..20, false), []);
        // They answered in this run, so they are known.
        let reason = Reason::Hosts {
            failing: 20,
            of: 30,
        };
        assert_eq!(fail(&mut own, 3, 20..21, false), [Switch::On(reason)]);
    }

    #[test]
    fn what_is_older_than_the_window_does_not_count() {
        let mut own = Own::default();
        fail(&mut own, 0, 0..19, true);
        assert_eq!(fail(&mut own, 61, 19..38, true), []);
        assert_eq!(fail(&mut own, 62, 38..39, true).len(), 1);
    }

    #[test]
    fn three_good_rounds_turn_it_off() {
        let mut own = Own::default();
        fail(&mut own, 100, 0..20, true);
        assert_eq!(own.share_of_requests(at(100)), 0.0);
        assert_eq!(own.round(), Round::Hosts(vec![0, 1, 2, 3, 4]));
        let mut now = at(100);
        for (answered, is_off) in [
            (0, false),
            (3, false),
            (2, false),
            (5, false),
            (3, false),
            (3, true),
        ] {
            now = own.round_at(now).unwrap();
            let switch = own.handle_round(now, answered, 5);
            assert_eq!(switch, is_off.then_some(Switch::Off));
        }
        assert_eq!(own.held(now), None);
        assert_eq!(own.share_of_requests(now), 0.1);
        assert_eq!(own.share_of_requests(after(now, RAMP)), 1.0);
        // From the look-back on, nothing ages.
        assert_eq!(
            own.stops().within(Some(at(0)), after(now, RAMP)),
            between(at(40), now)
        );
    }

    #[test]
    fn canaries_alone_decide() {
        let mut own = Own::new(OwnNetworkRules::default(), true);
        assert_eq!(own.round_at(at(0)), None);
        assert_eq!(fail(&mut own, 0, 0..100, true), []);
        assert_eq!(own.round_at(at(1)), Some(at(1)));
        assert_eq!(own.round(), Round::Canaries);
        assert_eq!(own.handle_round(at(1), 3, 4), None);
        assert_eq!(own.round_at(at(2)), Some(at(16)));
        let reason = Reason::Canaries { failing: 2, of: 4 };
        assert_eq!(own.handle_round(at(16), 2, 4), Some(Switch::On(reason)));
    }

    #[test]
    fn local_signs_count_unless_hosts_answer() {
        let table = [
            (LocalSign::NetworkUnreachable, false),
            (LocalSign::ResolverUnreachable, false),
            (LocalSign::TooManyFiles, true),
            (LocalSign::ClockStep, true),
        ];
        for (sign, always) in table {
            let on = Some(Switch::On(Reason::Local(sign)));
            let mut own = Own::default();
            assert_eq!(own.handle_sign(at(0), sign), on);
            assert_eq!(own.handle_sign(at(0), sign), None);
            // There is nobody to ask, so the rounds are good.
            assert_eq!(own.round(), Round::Hosts(vec![]));
            for second in 1..=3 {
                own.handle_round(at(second), 0, 0);
            }
            assert!(!own.is_on());

            let mut own = Own::default();
            answer(&mut own, 0, 0..1);
            assert_eq!(own.handle_sign(at(30), sign).is_some(), always, "{sign:?}");
            let mut own = Own::default();
            answer(&mut own, 0, 0..1);
            assert_eq!(own.handle_sign(at(90), sign), on);
        }
    }

    #[test]
    fn memory_is_limited() {
        let mut own = Own::default();
        for host in 0..50_000 {
            own.handle_host(at(0), &host, Reach::Failed, false);
        }
        assert!(own.seen.hosts.len() <= MOST_HOSTS + 1);
        assert_eq!(own.seen.order.len(), own.seen.hosts.len());
    }
}
