//! From the records of the store to what is reported. Pure.

use super::anchors;
use crate::check::checker::{Blocked, Redirects, Tolerance};
use crate::check::life::{Record as Life, Rules, State};
use crate::check::record::{Checked, Standing};
use crate::check::verdict::{Cause, Class, Verdict};
use crate::store::Record;

/// Judges records by the options of the check.
#[derive(Clone, Debug)]
pub(super) struct Judge {
    pub(super) tolerance: Tolerance,
    /// Whether fragments are checked.
    pub(super) fragments: bool,
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
            ..answer.checked(record.spelling)
        };
        let is_missing = self.fragments && check_fragment(&mut checked, record.anchors.as_deref());
        // The life is that of the URL without its fragment.
        let life = life.filter(|_| !is_missing);
        checked.standing = self.standing(&checked, life.as_ref());
        Some(checked)
    }

    fn standing(&self, checked: &Checked, life: Option<&Life>) -> Standing {
        match checked.verdict.class() {
            Class::Ok => match self.tolerance.redirects {
                Redirects::Fail if !checked.redirects.is_empty() => self.failing(checked, None),
                _ => Standing::Passes,
            },
            Class::Negative | Class::Network | Class::Soft => self.failing(checked, life),
            Class::Unknown => match self.tolerance.blocked {
                Blocked::Ignore => Standing::Passes,
                Blocked::Warn => Standing::Warns,
                Blocked::Fail => self.failing(checked, None),
            },
            Class::Void => Standing::Untrusted,
        }
    }

    fn failing(&self, checked: &Checked, life: Option<&Life>) -> Standing {
        let baseline = self.tolerance.baseline.as_ref();
        if baseline.is_some_and(|baseline| baseline.has(&checked.url)) {
            return Standing::InBaseline;
        }
        match (life, &self.rules) {
            (Some(life), Some(rules)) if !rules.is_reported(life) => match life.state() {
                // The profile counts the verdict as good.
                State::New | State::Alive => Standing::Passes,
                _ => Standing::FailsRecently,
            },
            _ => Standing::Fails,
        }
    }
}

/// A good page may lack the element that the fragment names. Returns whether it does.
fn check_fragment(checked: &mut Checked, known: Option<&[u8]>) -> bool {
    let Some((_, fragment)) = checked.url.split_once('#') else {
        return false;
    };
    let missing = known
        .filter(|_| checked.verdict == Verdict::Ok)
        .and_then(|known| anchors::missing(known, fragment));
    let Some(missing) = missing else {
        return false;
    };
    checked.detail = Some(format!("no element has the name {missing}"));
    checked.verdict = Verdict::Failed(Cause::FragmentMissing);
    true
}
