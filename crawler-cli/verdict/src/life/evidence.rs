//! What speaks against a URL since it was last good: counts and spans, of which the rules make states.

use std::time::Duration;

use jiff::Timestamp;

use super::time::{after, between};
use crate::Cause;

/// A kind of negative verdict. Each has its own rules.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Negative {
    /// Status 410 (Gone).
    Gone,
    /// Status 404 (Not Found).
    NotFound,
    /// The name of the host does not exist.
    Nxdomain,
}

impl Negative {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Gone, Self::NotFound, Self::Nxdomain];

    /// The kind of a cause; `None` if the cause is not negative.
    pub fn of(cause: Cause) -> Option<Self> {
        match cause {
            Cause::Status410 => Some(Self::Gone),
            Cause::Status404 => Some(Self::NotFound),
            Cause::DnsNxdomain => Some(Self::Nxdomain),
            _ => None,
        }
    }

    /// The kind of a status: 404 or 410.
    pub fn of_status(status: u16) -> Option<Self> {
        match status {
            410 => Some(Self::Gone),
            404 => Some(Self::NotFound),
            _ => None,
        }
    }
}

/// Some kinds of negative verdicts.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Negatives(u8);

impl Negatives {
    /// No kind.
    pub const NONE: Self = Self(0);

    /// With one more kind.
    #[must_use]
    pub fn with(self, kind: Negative) -> Self {
        Self(self.0 | 1 << kind as u8)
    }

    /// Whether this kind is among them.
    pub fn contains(self, kind: Negative) -> bool {
        self.0 & 1 << kind as u8 != 0
    }

    /// The kinds.
    pub fn iter(self) -> impl Iterator<Item = Negative> {
        Negative::ALL
            .into_iter()
            .filter(move |&kind| self.contains(kind))
    }

    /// As a number for the store.
    pub fn bits(self) -> u8 {
        self.0
    }

    /// From a number of the store; unknown bits are dropped.
    pub(crate) fn from_bits(bits: u8) -> Self {
        Self(bits & 0b111)
    }
}

impl FromIterator<Negative> for Negatives {
    fn from_iter<I: IntoIterator<Item = Negative>>(kinds: I) -> Self {
        kinds.into_iter().fold(Self::NONE, Self::with)
    }
}

/// A number of checks, and when the first of them was.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Streak {
    pub count: u32,
    pub first: Option<Timestamp>,
}

impl Streak {
    fn note(&mut self, now: Timestamp) {
        self.count = self.count.saturating_add(1);
        self.first.get_or_insert(now);
    }

    /// The time from the first check to this one.
    pub(crate) fn span(&self, now: Timestamp) -> Duration {
        self.first
            .map_or(Duration::ZERO, |first| between(first, now))
    }
}

/// Everything that speaks against a URL since its last good verdict.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Evidence {
    /// The first failure of any kind, and the last.
    pub first_bad: Option<Timestamp>,
    pub(crate) last_bad: Option<Timestamp>,
    /// Negative and soft verdicts: what makes a URL broken.
    pub(crate) claims: Streak,
    /// Negative verdicts that count: what makes a URL gone.
    pub(crate) negatives: Streak,
    /// Their kinds.
    pub kinds: Negatives,
    /// Gaps between negative verdicts that were long enough, and where the next gap begins.
    pub gaps: u32,
    pub(crate) gap_from: Option<Timestamp>,
}

impl Evidence {
    /// Nothing but that the URL counts as bad from now on.
    pub(crate) fn from_now(now: Timestamp) -> Self {
        Self {
            first_bad: Some(now),
            last_bad: Some(now),
            ..Self::default()
        }
    }

    /// Any failure.
    pub(crate) fn note_bad(&mut self, now: Timestamp) {
        self.first_bad.get_or_insert(now);
        self.last_bad = Some(now);
    }

    /// A negative or soft verdict.
    pub(crate) fn note_claim(&mut self, now: Timestamp) {
        self.note_bad(now);
        self.claims.note(now);
    }

    /// A negative verdict that counts, after `note_claim`. Verdicts `gap` apart count as independent.
    pub(crate) fn note_negative(&mut self, now: Timestamp, kind: Negative, gap: Duration) {
        self.negatives.note(now);
        self.kinds = self.kinds.with(kind);
        match self.gap_from {
            Some(from) if between(from, now) < gap => {}
            Some(_) => {
                self.gaps = self.gaps.saturating_add(1);
                self.gap_from = Some(now);
            }
            None => self.gap_from = Some(now),
        }
    }

    /// For how long the URL has been failing, up to its last failure.
    pub fn failing_for(&self) -> Duration {
        match (self.first_bad, self.last_bad) {
            (Some(first), Some(last)) => between(first, last),
            _ => Duration::ZERO,
        }
    }

    /// Takes out a time in which a guard was on: everything moves on by it.
    pub fn skip(&mut self, time: Duration) {
        if time.is_zero() {
            return;
        }
        for at in [
            &mut self.first_bad,
            &mut self.last_bad,
            &mut self.claims.first,
            &mut self.negatives.first,
            &mut self.gap_from,
        ] {
            *at = at.map(|at| after(at, time));
        }
    }
}
