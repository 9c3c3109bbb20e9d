//! Why a run of a job did not succeed, and what follows.

use std::time::Duration;

/// Why a run did not succeed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Failure {
    pub(super) next: Next,
    /// The reason of the dead letter, if the job becomes one: one of few words.
    pub(super) reason: String,
    /// What happened.
    pub(super) why: String,
}

/// What follows a failure.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Next {
    /// Another attempt, after the usual pause, while attempts are left.
    Retry,
    /// Another attempt after this time. The attempt does not count, since it says nothing about the job.
    Postpone(Duration),
    /// Nothing: no attempt can succeed.
    Fail,
}

impl Failure {
    /// Another attempt may succeed.
    pub(super) fn retry(why: impl Into<String>) -> Self {
        Self::new(Next::Retry, "attempts", why)
    }

    /// The attempt says nothing about the job.
    pub(super) fn postpone(after: Duration, why: impl Into<String>) -> Self {
        Self::new(Next::Postpone(after), "attempts", why)
    }

    /// No attempt can succeed.
    pub(super) fn fail(why: impl Into<String>) -> Self {
        Self::new(Next::Fail, "failed", why)
    }

    /// Names the reason of the dead letter.
    pub(super) fn because(self, reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            ..self
        }
    }

    fn new(next: Next, reason: &str, why: impl Into<String>) -> Self {
        Self {
            next,
            reason: reason.to_owned(),
            why: why.into(),
        }
    }
}
