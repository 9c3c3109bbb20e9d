//! The guard of the own network: what is held back, rounds and canaries.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use jiff::Timestamp;
use url::Url;

use super::settings::GuardRules;
use check::task::Outcome;
use store::{DueUrl, HostId, UrlId};
use verdict::guard::{
    HoldBack, LocalSign, OwnNetwork, OwnNetworkRules, Reach, Reason, Round, Stops, Switch,
};
use verdict::life::time::after;

/// The guard of the own network.
pub(super) struct Network {
    guard: OwnNetwork<HostId>,
    rules: OwnNetworkRules,
    canaries: Vec<Url>,
    failed: HoldBack<HostId, (DueUrl, Outcome)>,
    /// Hosts that have answered.
    answering: u64,
    round: Option<AskedRound>,
    /// Hosts that failed in a round and have not answered since. If they fail when the guard is off again, because others
    /// answer, that says nothing about the network.
    failed_in_round: HashSet<HostId>,
    /// Why the guard is on, and since when.
    on: Option<On>,
}

/// The guard is on.
#[derive(Clone, Debug)]
pub(super) struct On {
    pub(super) since: Timestamp,
    pub(super) why: String,
    /// Whether the works were removed, with what they have learned meanwhile.
    pub(super) is_cleared: bool,
    /// Whether hosts that never answered say anything: not about a sign that has nothing to do with the network.
    asks_unknown: bool,
    /// Hosts that rounds have asked, each of them once.
    asked: HashSet<HostId>,
    /// Whether each host answered when a round asked it last.
    answered: HashMap<HostId, bool>,
}

impl On {
    /// Whether most hosts that rounds have asked answer: then those that do not are dead.
    fn most_answer(&self) -> bool {
        let failing = self.answered.values().filter(|answered| !**answered);
        failing.count() * 2 < self.answered.len()
    }
}

/// A round that is under way.
#[derive(Debug, Default)]
struct AskedRound {
    asked: usize,
    answered: usize,
    /// Hosts that did not answer, and had failed in a round before.
    failed_again: usize,
    /// Canaries without an outcome.
    canaries: usize,
    /// URLs without an outcome, and their hosts.
    urls: Vec<(HostId, UrlId)>,
    /// Whether none of the hosts answered earlier. They may be dead: one that answers is enough.
    is_unknown: bool,
}

/// What is done with an outcome.
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all are believed; a box would be an allocation for each"
)]
#[derive(Debug)]
pub(super) enum Sight {
    /// It is believed.
    Believed(DueUrl, Outcome),
    /// It is held back.
    Held,
    /// The URL is to be asked again.
    Again(DueUrl),
    /// The guard went on: these URLs are to be asked again.
    WentOn(Vec<DueUrl>),
}

impl Network {
    pub(super) fn new(rules: &GuardRules, now: Timestamp, stops: Stops) -> Self {
        let has_canaries = !rules.canaries.is_empty();
        Self {
            guard: OwnNetwork::with_stops(rules.network, has_canaries, now, stops),
            rules: rules.network,
            canaries: rules.canaries.clone(),
            failed: HoldBack::new(rules.network.window),
            answering: 0,
            round: None,
            failed_in_round: HashSet::new(),
            on: None,
        }
    }

    /// Uses these rules from now on. A round that is under way goes on with those who were asked.
    pub(super) fn set_rules(&mut self, rules: &GuardRules) {
        self.guard
            .set_rules(rules.network, !rules.canaries.is_empty());
        self.failed.set_window(rules.network.window);
        self.rules = rules.network;
        self.canaries.clone_from(&rules.canaries);
    }

    pub(super) fn on(&self) -> Option<&On> {
        self.on.as_ref()
    }

    pub(super) fn stops(&self) -> &Stops {
        self.guard.stops()
    }

    /// The share of the usual requests that may be sent.
    pub(super) fn share(&self, now: Timestamp) -> f64 {
        self.guard.share_of_requests(now)
    }

    /// A host is known to have answered.
    pub(super) fn note_answering(&mut self) {
        self.answering += 1;
    }

    /// Failures of a host that are held back.
    pub(super) fn held(&self, host: HostId) -> usize {
        self.failed.held(host)
    }

    /// Whether so much is held back that hosts which fail have to wait.
    pub(super) fn is_full(&self) -> bool {
        self.failed.len() >= MOST_HELD
    }

    /// Takes an outcome. `has_answered`: whether the host answered earlier.
    pub(super) fn handle(
        &mut self,
        now: Timestamp,
        due: DueUrl,
        outcome: Outcome,
        has_answered: bool,
    ) -> Sight {
        let host = due.id.host;
        let reach = Reach::of(outcome.answer.verdict);
        let has_failed = reach == Some(Reach::Failed);
        let is_doubtful = is_doubtful(&outcome);
        if reach == Some(Reach::Answered) {
            self.failed_in_round.remove(&host);
        }
        if self.guard.is_on() {
            return match is_doubtful {
                true => Sight::Again(due),
                false => Sight::Believed(due, outcome),
            };
        }
        if reach == Some(Reach::Answered) {
            self.failed.note_answer(host);
        }
        let is_telling = has_answered && !self.failed_in_round.contains(&host);
        let switch = reach.and_then(|reach| self.guard.handle_host(now, &host, reach, is_telling));
        if let Some(Switch::On(reason)) = switch {
            let mut again = self.turn_on(now, &reason);
            if !has_failed {
                // Cannot be: only failures turn the guard on.
                return Sight::Believed(due, outcome);
            }
            again.push(due);
            return Sight::WentOn(again);
        }
        if !is_doubtful || !self.may_go_on() {
            return Sight::Believed(due, outcome);
        }
        match self.failed.hold(now, host, (due, outcome)) {
            Some(failed) => Sight::Believed(failed.0, failed.1),
            None => Sight::Held,
        }
    }

    /// Takes a sign that this machine is at fault. Returns the URLs to ask again if the guard went on.
    pub(super) fn handle_sign(&mut self, now: Timestamp, sign: LocalSign) -> Option<Vec<DueUrl>> {
        match self.guard.handle_sign(now, sign) {
            Some(Switch::On(reason)) => Some(self.turn_on(now, &reason)),
            _ => None,
        }
    }

    /// The wall clock was set forward.
    pub(super) fn skip(&mut self, from: Timestamp, to: Timestamp) {
        self.guard.skip(from, to);
    }

    fn turn_on(&mut self, now: Timestamp, reason: &Reason) -> Vec<DueUrl> {
        self.on = Some(On {
            since: now,
            why: reason.to_string(),
            is_cleared: false,
            asks_unknown: !matches!(
                reason,
                Reason::Local(LocalSign::ClockStep | LocalSign::TooManyFiles)
            ),
            asked: HashSet::new(),
            answered: HashMap::new(),
        });
        self.round = None;
        let failed = self.failed.take_all().into_iter();
        failed.map(|failed| failed.0).collect()
    }

    /// Whether the guard can go on by what hosts do.
    fn may_go_on(&self) -> bool {
        !self.canaries.is_empty() || self.answering >= u64::from(self.rules.hosts)
    }

    /// Failures of which the own network is no longer suspected.
    pub(super) fn believe(&mut self, now: Timestamp) -> Vec<(DueUrl, Outcome)> {
        match self.guard.is_on() {
            true => Vec::new(),
            false => self.failed.believe(now),
        }
    }

    /// When the guard has something to do.
    pub(super) fn next_at(&mut self, now: Timestamp) -> Option<Timestamp> {
        let may_begin = self.round.is_none() && self.on.as_ref().is_none_or(|on| on.is_cleared);
        let round = match may_begin {
            true => self.guard.round_at(now),
            false => None,
        };
        let ramp = (self.share(now) < 1.0 && self.on.is_none())
            .then(|| after(now, Duration::from_secs(1)));
        [round, self.failed.next_at(), ramp]
            .into_iter()
            .flatten()
            .min()
    }

    pub(super) fn tidy(&mut self, now: Timestamp) {
        self.failed.tidy(now);
    }

    pub(super) fn set_cleared(&mut self) {
        if let Some(on) = &mut self.on {
            on.is_cleared = true;
        }
        self.round = None;
    }
}

/// Rounds.
impl Network {
    /// Who is to be asked now, if a round is due.
    pub(super) fn round_due(&mut self, now: Timestamp) -> Option<Round<HostId>> {
        if self.round.is_some() || self.on.as_ref().is_some_and(|on| !on.is_cleared) {
            return None;
        }
        let is_due = self.guard.round_at(now).is_some_and(|at| at <= now);
        is_due.then(|| self.guard.round())
    }

    pub(super) fn canaries(&self) -> &[Url] {
        &self.canaries
    }

    /// The hosts to ask in a round, in this order, of those that answered earlier and those that never did. A host is
    /// asked again after all others, and later if the host failed in a round: some may have died for good.
    pub(super) fn hosts_to_ask(&mut self, known: Vec<HostId>, unknown: Vec<HostId>) -> Vec<HostId> {
        let Some(on) = &mut self.on else {
            return Vec::new();
        };
        let hosts = match known.is_empty() {
            true if on.asks_unknown => unknown,
            _ => known,
        };
        let is_next = |host: &HostId| !on.asked.contains(host);
        let (mut next, mut again): (Vec<_>, Vec<_>) = hosts.into_iter().partition(is_next);
        if next.is_empty() {
            on.asked.clear();
        }
        for hosts in [&mut next, &mut again] {
            hosts.sort_by_key(|host| self.failed_in_round.contains(host));
        }
        next.extend(again);
        next
    }

    /// A round of canaries began.
    pub(super) fn begin_canaries(&mut self, canaries: usize) {
        self.round = Some(AskedRound {
            asked: canaries,
            canaries,
            ..AskedRound::default()
        });
    }

    /// A round began: these URLs are asked, each of another host. `is_unknown`: whether none of the hosts answered
    /// earlier.
    pub(super) fn begin_round(&mut self, urls: Vec<(HostId, UrlId)>, is_unknown: bool) {
        if let Some(on) = &mut self.on {
            on.asked.extend(urls.iter().map(|(host, _)| *host));
        }
        self.round = Some(AskedRound {
            asked: urls.len(),
            urls,
            is_unknown,
            ..AskedRound::default()
        });
    }

    /// A canary answered, or failed.
    pub(super) fn handle_canary(&mut self, outcome: &Outcome) {
        if let Some(round) = &mut self.round {
            round.canaries = round.canaries.saturating_sub(1);
            let is_asked = outcome.answer.attempts > 0;
            let answered = is_asked && Reach::of(outcome.answer.verdict) == Some(Reach::Answered);
            round.answered += usize::from(answered);
        }
    }

    /// A URL has an outcome, which may be one of the round.
    pub(super) fn note_round(&mut self, url: UrlId, outcome: &Outcome) {
        if let Some(round) = &mut self.round
            && let Some(index) = round.urls.iter().position(|(_, left)| *left == url)
        {
            let (host, _) = round.urls.swap_remove(index);
            let has_answered = outcome.answer.attempts > 0 && !is_doubtful(outcome);
            round.answered += usize::from(has_answered);
            if !has_answered && self.failed_in_round.len() < MOST_HELD {
                let is_first = self.failed_in_round.insert(host);
                round.failed_again += usize::from(!is_first);
            }
            if let Some(on) = &mut self.on
                && on.answered.len() < MOST_HELD
            {
                on.answered.insert(host, has_answered);
            }
        }
    }

    /// Ends a round of which all outcomes are there. Returns what changed: `Some(None)`, the guard went off;
    /// `Some(Some(...))`, the guard went on, and these URLs are to be asked again.
    pub(super) fn end_round(&mut self, now: Timestamp) -> Option<Option<Vec<DueUrl>>> {
        let is_over = |round: &mut AskedRound| round.canaries == 0 && round.urls.is_empty();
        let round = self.round.take_if(is_over)?;
        let answered = match round.answered {
            0 => 0,
            _ if round.is_unknown => round.asked,
            answered => answered,
        };
        // A host that died would outvote those few of the others that have something due at the moment.
        let dead = match &self.on {
            Some(on) if on.most_answer() => round.failed_again,
            _ => 0,
        };
        let asked = round.asked.saturating_sub(dead);
        match self.guard.handle_round(now, answered, asked)? {
            Switch::Off => {
                self.on = None;
                Some(None)
            }
            Switch::On(reason) => Some(Some(self.turn_on(now, &reason))),
        }
    }
}

/// Whether a network that fails can be the cause. A missing name is what a resolver without a network says, too.
fn is_doubtful(outcome: &Outcome) -> bool {
    match Reach::of(outcome.answer.verdict) {
        Some(reach) => reach == Reach::Failed,
        None => outcome.answer.verdict.cause().is_some(),
    }
}

/// Failures that are held back before hosts which fail have to wait, and hosts that failed in rounds.
const MOST_HELD: usize = 10_000;
