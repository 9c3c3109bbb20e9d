//! Which outcomes are believed: the guards of a run.
//!
//! A failure to reach a host is held back for a window, as long as it may turn out that the own network fails. A negative
//! answer about a URL that was good is held back until the host is through, as long as it may turn out that the host has
//! turned negative as a whole. Everything else is believed at once.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Duration;

use jiff::Timestamp;
use url::Position;

use crate::event::GuardChange;
use crate::task::{Outcome, UrlId};
use store::{HostId, Queued};
use verdict::guard::{
    FlipStep, Guard, HoldBack, HostFlip, LocalSign, OwnNetwork, OwnNetworkRules, Reach, Reason,
    Round, Switch,
};
use verdict::life::Held;
use verdict::life::time::between;
use verdict::{Class, Verdict};

/// A URL that was asked.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) queued: Queued,
    pub(super) outcome: Outcome,
}

/// What is to be done with what was asked.
#[derive(Debug, Default)]
pub(super) struct Rulings {
    /// Outcomes that are stored, with the guard that is on for them.
    pub(super) believed: Vec<(Asked, Option<Held>)>,
    /// URLs to ask again.
    pub(super) again: Vec<Queued>,
    pub(super) changes: Vec<GuardChange>,
}

impl Rulings {
    /// No guard is on for these.
    fn believe(&mut self, asked: impl IntoIterator<Item = Asked>) {
        self.believed
            .extend(asked.into_iter().map(|asked| (asked, None)));
    }
}

/// The guards of a run.
#[derive(Debug)]
pub(super) struct Guards {
    network: OwnNetwork<HostId>,
    failed: HoldBack<HostId, Asked>,
    /// Hosts that answered, in this run or earlier.
    answering: usize,
    /// The failures of URLs that are asked again because the own network failed.
    void: HashMap<i64, Outcome>,
    round: Option<AskedRound>,
    /// Only if lives are kept: without them, no URL is known to have been good.
    hosts: Option<HashMap<HostId, HostGuard>>,
}

/// A round that is under way.
#[derive(Debug, Default)]
struct AskedRound {
    asked: usize,
    answered: usize,
    /// URLs without an outcome.
    left: Vec<i64>,
}

#[derive(Debug, Default)]
struct HostGuard {
    flip: HostFlip,
    /// Negative outcomes about URLs that were good.
    negative: Vec<Asked>,
}

impl Guards {
    /// `has_lives`: whether it is known which URLs were good.
    pub(super) fn new(has_lives: bool) -> Self {
        Self {
            network: OwnNetwork::new(OwnNetworkRules::default(), false),
            failed: HoldBack::new(OwnNetworkRules::default().window),
            answering: 0,
            void: HashMap::new(),
            round: None,
            hosts: has_lives.then(HashMap::new),
        }
    }

    /// A host answered for the first time in this run, or is known from an earlier run to have answered.
    pub(super) fn note_answering(&mut self) {
        self.answering += 1;
    }

    /// Takes what was asked. `has_answered`: whether the host answered earlier.
    pub(super) fn handle(
        &mut self,
        now: Timestamp,
        asked: Asked,
        has_answered: bool,
        rulings: &mut Rulings,
    ) {
        let id = asked.queued.id.0;
        let reach = Reach::of(asked.outcome.answer.verdict);
        if let Some(round) = &mut self.round
            && let Some(index) = round.left.iter().position(|left| *left == id)
        {
            round.left.swap_remove(index);
            round.answered += usize::from(reach != Some(Reach::Failed));
        }
        if self.network.is_on() {
            return match reach {
                Some(Reach::Failed) => self.ask_again(asked, rulings),
                _ => self.handle_reached(now, asked, rulings),
            };
        }
        let host = asked.queued.host;
        if reach == Some(Reach::Answered) {
            self.failed.note_answer(host);
        }
        let switch =
            reach.and_then(|reach| self.network.handle_host(now, &host, reach, has_answered));
        if let Some(Switch::On(reason)) = switch {
            self.turn_on(&reason, rulings);
            return self.ask_again(asked, rulings);
        }
        match reach {
            Some(Reach::Failed) if self.may_go_on() => {
                let believed = self.failed.hold(now, host, asked);
                rulings.believe(believed);
                if self.failed.len() > MOST_HELD {
                    rulings.believe(self.failed.take_oldest());
                }
            }
            _ => self.handle_reached(now, asked, rulings),
        }
    }

    /// Takes a sign that this machine is at fault.
    pub(super) fn handle_sign(&mut self, now: Timestamp, sign: LocalSign, rulings: &mut Rulings) {
        if let Some(Switch::On(reason)) = self.network.handle_sign(now, sign) {
            self.turn_on(&reason, rulings);
        }
    }

    fn turn_on(&mut self, reason: &Reason, rulings: &mut Rulings) {
        rulings.changes.push(GuardChange {
            guard: Guard::OwnNetwork,
            host: None,
            is_on: true,
            detail: reason.to_string(),
        });
        for failed in self.failed.take_all() {
            self.ask_again(failed, rulings);
        }
    }

    /// Whether enough hosts have answered for the guard of the own network to go on.
    fn may_go_on(&self) -> bool {
        self.answering >= OwnNetworkRules::default().hosts as usize
    }

    fn ask_again(&mut self, asked: Asked, rulings: &mut Rulings) {
        self.void.insert(asked.queued.id.0, asked.outcome);
        rulings.again.push(asked.queued);
    }

    /// Time passes: failures of which the own network is no longer suspected are believed.
    pub(super) fn handle_time(&mut self, now: Timestamp, rulings: &mut Rulings) {
        rulings.believe(self.failed.believe(now));
    }

    /// Nothing else is under way: what is held back is believed.
    pub(super) fn handle_idle(&mut self, rulings: &mut Rulings) {
        if !self.network.is_on() {
            rulings.believe(self.failed.take_all());
        }
    }
}

/// Hosts that turn negative as a whole.
impl Guards {
    fn handle_reached(&mut self, now: Timestamp, asked: Asked, rulings: &mut Rulings) {
        self.void.remove(&asked.queued.id.0);
        let class = asked.outcome.answer.verdict.class();
        let past = asked.queued.past.as_ref();
        let life = past.and_then(|past| past.life.as_ref());
        let Some((hosts, life)) = self.hosts.as_mut().zip(life) else {
            return rulings.believed.push((asked, None));
        };
        let before = life.state();
        if !before.is_alive() && !hosts.contains_key(&asked.queued.host) {
            return rulings.believed.push((asked, None));
        }
        let id = asked.queued.host;
        let host = hosts.entry(id).or_default();
        let is_negative = class == Class::Negative;
        let was_held = host.flip.is_held();
        let step = host.flip.handle_verdict(now, before, class);
        if step == Some(FlipStep::Hold) {
            rulings.changes.push(GuardChange {
                guard: Guard::HostFlip,
                host: Some(asked.queued.url[..Position::BeforePath].to_owned()),
                is_on: true,
                detail: "many of its URLs that were good are not found now".to_owned(),
            });
        }
        if host.flip.is_held() {
            let held = host.flip.held();
            if !was_held {
                let negative = std::mem::take(&mut host.negative);
                rulings
                    .believed
                    .extend(negative.into_iter().map(|asked| (void(asked), held)));
            }
            let ruling = match is_negative {
                true => (void(asked), held),
                false => (asked, None),
            };
            return rulings.believed.push(ruling);
        }
        if is_negative && before.is_alive() && host.negative.len() < MOST_HELD {
            host.negative.push(asked);
        } else {
            rulings.believed.push((asked, None));
        }
    }

    /// A host is through: no URL of the host is being asked or waits.
    pub(super) fn handle_rest(&mut self, host: HostId, rulings: &mut Rulings) {
        let Some(hosts) = &mut self.hosts else {
            return;
        };
        let mut guard = match hosts.entry(host) {
            Entry::Occupied(entry) if !entry.get().flip.is_held() => entry.remove(),
            _ => return,
        };
        let negative = guard.negative.drain(..);
        rulings.believed.extend(negative.map(|asked| (asked, None)));
    }
}

/// The own network fails.
impl Guards {
    /// How long the hosts for the next round are to be waited for; `None`: no round is needed, or one is under way.
    pub(super) fn until_round(&mut self, now: Timestamp) -> Option<Duration> {
        if !self.network.is_on() || self.round.is_some() {
            return None;
        }
        let at = self.network.round_at(now)?;
        Some(between(now, at))
    }

    /// The hosts to ask first in a round.
    pub(super) fn hosts_to_ask(&self) -> Vec<HostId> {
        match self.network.round() {
            Round::Hosts(hosts) => hosts,
            Round::Canaries => Vec::new(),
        }
    }

    /// A round began: these URLs are asked.
    pub(super) fn begin_round(&mut self, urls: Vec<i64>) {
        self.round = Some(AskedRound {
            asked: urls.len(),
            answered: 0,
            left: urls,
        });
    }

    /// Ends a round of which all outcomes are there. Returns whether it was the last one: the guard is off.
    pub(super) fn end_round(&mut self, now: Timestamp, rulings: &mut Rulings) -> bool {
        let Some(round) = self.round.take_if(|round| round.left.is_empty()) else {
            return false;
        };
        let switch = self.network.handle_round(now, round.answered, round.asked);
        let is_off = switch == Some(Switch::Off);
        if is_off {
            rulings.changes.push(GuardChange {
                guard: Guard::OwnNetwork,
                host: None,
                is_on: false,
                detail: "hosts answer again".to_owned(),
            });
        }
        is_off
    }

    /// The outcome of a URL that will not be asked again, because the own network failed for too long.
    pub(super) fn give_up(&mut self, queued: Queued) -> Asked {
        let outcome = self.void.remove(&queued.id.0);
        let outcome = outcome.unwrap_or_else(|| not_asked(&queued));
        void(Asked { queued, outcome })
    }
}

/// The outcome was taken while a guard was on.
fn void(mut asked: Asked) -> Asked {
    let verdict = asked.outcome.answer.verdict;
    asked.outcome.answer.verdict = Verdict::Void(verdict.cause());
    asked
}

/// The outcome of a URL that was not asked.
fn not_asked(queued: &Queued) -> Outcome {
    let id = UrlId(queued.id.0.unsigned_abs());
    Outcome::not_asked(id, Verdict::Void(None), "not asked: the own network failed")
}

/// Outcomes that are held back at most: of the failures, and of each host's negative ones.
const MOST_HELD: usize = 10_000;
