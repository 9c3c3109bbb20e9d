//! What is kept about a URL between its checks.

mod bytes;

use std::time::Duration;

use jiff::Timestamp;

use super::evidence::Evidence;
use super::rules::{Flapping, Rules};
use super::states::{Flag, PruneWait, State};
use super::time::between;
use crate::guard::Guard;
use crate::{Class, Verdict};

pub use bytes::RecordError;

/// What is kept about a URL between its checks. A new record is that of a URL which was never asked.
///
/// Only [`Rules`] change it; the store keeps it as a few bytes ([`to_bytes`](Self::to_bytes)).
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Record {
    pub(super) state: State,
    pub(super) evidence: Evidence,
    pub(super) last_at: Option<Timestamp>,
    pub(super) last_ok: Option<Timestamp>,
    /// The interval between checks while the URL is alive.
    pub(super) interval: Duration,
    /// Checks since the ladder of the state began, and consecutive failures of the network.
    pub(super) step: u32,
    pub(super) failures: u32,
    pub(super) flag: Option<(Flag, Timestamp)>,
    pub(super) held_by: Option<Guard>,
    /// Since when the URL is gone.
    pub(super) gone_at: Option<Timestamp>,
    pub(super) prune_waits: Option<PruneWait>,
    /// Good verdicts since the URL was gone, and when the last one that counts was.
    pub(super) oks: u32,
    pub(super) ok_at: Option<Timestamp>,
    /// The last returns to ALIVE, oldest first, at most [`KEPT_RETURNS`].
    pub(super) returns: Vec<Timestamp>,
    pub(super) answers: Answers,
}

impl Record {
    /// The state.
    pub fn state(&self) -> State {
        self.state
    }

    /// When the URL was asked last.
    pub fn last_at(&self) -> Option<Timestamp> {
        self.last_at
    }

    /// When the URL was good last.
    pub fn last_ok(&self) -> Option<Timestamp> {
        self.last_ok
    }

    /// The first failure since the URL was good last. Time in which a guard was on is left out: the first failure moves
    /// on by that time.
    pub fn first_bad(&self) -> Option<Timestamp> {
        self.evidence.first_bad
    }

    /// For how long the URL has been failing, up to the last failure. Zero if it does not fail.
    pub fn failing_for(&self) -> Duration {
        self.evidence.failing_for()
    }

    /// The negative verdicts that count, since the URL was good last.
    pub fn negatives(&self) -> u32 {
        self.evidence.negatives.count
    }

    /// How many checks in a row have found that the server could not be reached, or failed.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// Why the URL could not be judged lately, and since when.
    pub fn flag(&self) -> Option<(Flag, Timestamp)> {
        self.flag
    }

    /// The guard that holds the URL, while it is quarantined.
    pub fn held_by(&self) -> Option<Guard> {
        self.held_by
    }

    /// Since when the URL is gone.
    pub fn gone_at(&self) -> Option<Timestamp> {
        self.gone_at
    }

    /// What a URL that is gone waits for before it is pruned.
    pub fn prune_waits(&self) -> Option<PruneWait> {
        self.prune_waits
    }

    /// The interval between checks while the URL is alive; zero before the first good verdict.
    pub fn interval(&self) -> Duration {
        self.interval
    }

    /// The last 8 answers.
    pub fn answers(&self) -> &Answers {
        &self.answers
    }

    /// Whether the URL returned to [`State::Alive`] more often than the rules call fine.
    pub fn is_flapping(&self, now: Timestamp, rules: &Rules) -> bool {
        let Flapping { count, within } = rules.flapping;
        let recent = |&&at: &&Timestamp| between(at, now) < within;
        let returns = self.returns.iter().filter(recent).count();
        returns > usize::from(count.min(Flapping::MOST))
    }

    pub(super) fn note_return(&mut self, now: Timestamp) {
        if self.returns.len() == KEPT_RETURNS {
            self.returns.remove(0);
        }
        self.returns.push(now);
    }
}

/// How many returns to ALIVE a record keeps.
const KEPT_RETURNS: usize = Flapping::MOST as usize + 1;

/// The last 8 answers of a URL.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Answers {
    /// Oldest first; those from `count` on are not used.
    all: [Answer; Self::MOST],
    count: u8,
}

impl Answers {
    /// How many answers are kept.
    pub const MOST: usize = 8;

    /// The answers, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Answer> + ExactSizeIterator {
        self.all.into_iter().take(usize::from(self.count))
    }

    /// The last answer.
    pub fn last(&self) -> Option<Answer> {
        self.iter().next_back()
    }

    pub(super) fn push(&mut self, answer: Answer) {
        if usize::from(self.count) == Self::MOST {
            self.all.rotate_left(1);
            self.count -= 1;
        }
        self.all[usize::from(self.count)] = answer;
        self.count += 1;
    }
}

/// One answer, or the lack of one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Answer {
    /// The class of the verdict.
    pub class: Class,
    /// The status; `None` if there was no answer.
    pub status: Option<u16>,
}

impl Answer {
    pub(super) fn new(verdict: Verdict, status: Option<u16>) -> Self {
        Self {
            class: verdict.class(),
            status: status.filter(|status| *status <= Self::MOST),
        }
    }

    /// The highest number that a status can have (three digits).
    const MOST: u16 = 999;
}

impl Default for Answer {
    fn default() -> Self {
        Self {
            class: Class::Ok,
            status: None,
        }
    }
}
