//! What is reported about each URL.

use std::time::Duration;

use verdict::life::State;
use verdict::{Answer, Reference, Verdict};

/// A URL, what a check said about it, and all places that refer to it.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The URL as given, or as resolved against its base; never rewritten.
    pub url: String,
    /// The last answer, and its verdict.
    pub answer: Answer,
    /// What all checks of the URL together say, if a state is kept.
    pub state: Option<State>,
    /// Whether the check fails because of the URL.
    pub standing: Standing,
    /// Whether the URL was not asked in this run, because an earlier one asked recently enough.
    pub reused: bool,
    /// What was said about the URL before; `None`: this is the first time that it is reported. A URL that is reported
    /// again is counted already. This is about places that were found later, or that spell the URL in another way: of
    /// places that were found later, only verdict, status and standing are known.
    pub before: Option<Said>,
    /// The places that refer to the URL, in the order in which they were found. Each place is reported once.
    pub references: Vec<Reference>,
}

/// What was said about a URL, as far as summaries count it.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Said {
    /// The verdict.
    pub verdict: Verdict,
    /// The status of the last answer.
    pub status: Option<u16>,
    /// Whether the check fails because of the URL.
    pub standing: Standing,
    /// Whether redirects were followed.
    pub is_redirected: bool,
    /// Whether all of the redirects were permanent, and the last answer is good.
    pub is_moved: bool,
}

impl Checked {
    /// A URL that was answered so, without a state and without places.
    pub fn of(url: String, answer: Answer) -> Self {
        Self {
            url,
            answer,
            state: None,
            standing: Standing::Passes,
            reused: false,
            before: None,
            references: Vec::new(),
        }
    }

    /// Another spelling of a URL that is reported already.
    pub(super) fn further(self) -> Self {
        Self {
            before: Some(self.said()),
            ..self
        }
    }

    /// Places that were found after their URL was reported. `said`: what is said about the URL now, and `before`: then.
    pub(super) fn again(url: String, said: Said, before: Said, references: Vec<Reference>) -> Self {
        let answer = Answer {
            status: said.status,
            ..Answer::of(said.verdict)
        };
        Self {
            standing: said.standing,
            before: Some(before),
            references,
            ..Self::of(url, answer)
        }
    }

    /// What summaries count. Not for what is reported again, whose redirects are not known.
    pub fn said(&self) -> Said {
        Said {
            verdict: self.answer.verdict,
            status: self.answer.status,
            standing: self.standing,
            is_redirected: !self.answer.redirects.is_empty(),
            is_moved: self.answer.moved_to.is_some(),
        }
    }

    /// Whether this is the first that is said about the URL, or something else than before: who names a URL may change its
    /// verdict.
    pub fn is_news(&self) -> bool {
        self.before
            .is_none_or(|before| before.verdict != self.answer.verdict)
    }

    /// Whether the URL was reported before, and nothing but its verdict, status and standing is known.
    pub fn is_late(&self) -> bool {
        self.before.is_some() && self.answer.attempts == 0 && self.answer.detail.is_none()
    }

    /// `1 line dropped`, if an answer was read leniently.
    pub fn lenient(&self) -> Option<&str> {
        Some(self.answer.detail.as_deref()?.rsplit_once(LENIENT)?.1)
    }
}

/// The last words of a detail, before what was dropped.
pub(crate) const LENIENT: &str = "lenient: ";

/// Whether a check fails because of a URL: its verdict, seen through the options.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Standing {
    /// No: it is good, or nothing to care about.
    Passes,
    /// No, but it is worth a look: a URL that could not be judged, unless `--blocked` says otherwise.
    Warns,
    /// Yes.
    Fails,
    /// No: it has not been failing for as long as `--fail-after` asks for. It fails after this time, if it goes on like
    /// this; `None` while a guard holds it.
    FailsRecently(Option<Duration>),
    /// The verdict is void: a guard was on.
    Untrusted,
}
