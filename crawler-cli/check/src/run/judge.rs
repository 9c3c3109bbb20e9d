//! From the records of the store to what is reported. Pure.

use crate::checker::{Blocked, Redirects, Tolerance};
use crate::record::{Checked, Standing};
use store::{Demand, Record};
use verdict::Answer;
use verdict::Reference;
use verdict::life::{Record as Life, Rules, State};
use verdict::{Cause, Class, Verdict};

/// Judges records by the options of the check.
#[derive(Clone, Debug)]
pub(super) struct Judge {
    pub(super) tolerance: Tolerance,
    /// The rules of lives, if lives are kept.
    pub(super) rules: Option<Rules>,
}

impl Judge {
    /// What is reported about a judged URL; `None` if the URL is not judged.
    pub(super) fn checked(&self, record: Record) -> Option<Checked> {
        let answer = record.answer?;
        let life = record.life.filter(|_| self.rules.is_some());
        let mut checked = Checked {
            state: life.as_ref().map(Life::state),
            reused: record.is_reused,
            references: record.references,
            ..Checked::of(record.spelling, answer)
        };
        checked.standing = self.standing(&checked, life.as_ref());
        Some(checked)
    }

    /// What is reported about a URL without a life.
    pub(super) fn answered(
        &self,
        answer: Answer,
        spelling: String,
        references: Vec<Reference>,
    ) -> Checked {
        let mut checked = Checked {
            references,
            ..Checked::of(spelling, answer)
        };
        checked.standing = self.standing(&checked, None);
        checked
    }

    fn standing(&self, checked: &Checked, life: Option<&Life>) -> Standing {
        match checked.answer.verdict.class() {
            Class::Ok => match self.tolerance.redirects {
                Redirects::Fail if !checked.answer.redirects.is_empty() => self.failing(None),
                _ => Standing::Passes,
            },
            Class::Negative | Class::Network | Class::Soft => self.failing(life),
            Class::Unknown => match self.tolerance.blocked {
                Blocked::Ignore => Standing::Passes,
                Blocked::Warn => Standing::Warns,
                Blocked::Fail => self.failing(None),
            },
            Class::Void => Standing::Untrusted,
        }
    }

    fn failing(&self, life: Option<&Life>) -> Standing {
        match (life, &self.rules) {
            (Some(life), Some(rules)) if !rules.is_reported(life) => match life.state() {
                // The profile counts the verdict as good.
                State::New | State::Alive => Standing::Passes,
                _ => Standing::FailsRecently(rules.reported_in(life)),
            },
            _ => Standing::Fails,
        }
    }
}

/// What an answer has met: only robots.txt and private addresses depend on who names the URL.
pub(super) fn met(demand: Demand, verdict: Verdict) -> Demand {
    let depends = matches!(verdict.cause(), Some(Cause::Robots | Cause::PrivateAddress));
    Demand {
        given: demand.given || !depends,
        private: demand.private || !depends,
        ..demand
    }
}
