//! `--retry`: which transfers are repeated, and after which delay. Waiting is left to [`transfer`](super::transfer).
//!
//! The delay that a server asks for with `Retry-After` counts more than that of `--retry-delay`, up to [`LONGEST_ASKED`].

use std::time::{Duration, Instant, SystemTime};

use super::exit::{Exit, Failure};
use super::facts::Facts;

/// The options about retries.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Retry {
    pub(crate) times: u32,
    pub(crate) delay: Option<Duration>,
    pub(crate) max_time: Option<Duration>,
    pub(crate) refused: bool,
    pub(crate) all_errors: bool,
}

/// The retries of one transfer.
#[derive(Debug)]
pub(super) struct Retries<'a> {
    rule: &'a Retry,
    begun: Instant,
    left: u32,
    /// The delay before the next retry if neither the user nor the server sets one; doubles with each retry.
    delay: Duration,
}

/// What follows an attempt.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Step {
    /// Another attempt, after this delay. `asked`: the server asked for this one, which is too long.
    Again {
        delay: Duration,
        asked: Option<Duration>,
    },
    /// Nothing: the server asked for this delay, and it ends after `--retry-max-time`.
    TooLong(Duration),
    End,
}

impl Retry {
    pub(super) fn begin(&self, now: Instant) -> Retries<'_> {
        Retries {
            rule: self,
            begun: now,
            left: self.times,
            delay: FIRST_DELAY,
        }
    }

    /// The largest number of retries.
    pub(super) fn limit(&self) -> u32 {
        self.times
    }

    /// Whether a retry may have another outcome.
    fn is_temporary(&self, facts: &Facts, outcome: &Result<(), Failure>) -> bool {
        match outcome {
            Err(failure) if failure.reader_gone => false,
            Err(failure) => match failure.exit {
                Exit::Timeout | Exit::NotResolved | Exit::ProxyNotResolved => true,
                Exit::HttpError if is_busy(facts.status) => true,
                Exit::NotConnected if self.refused => true,
                _ => self.all_errors,
            },
            Ok(()) => is_busy(facts.status),
        }
    }
}

impl Retries<'_> {
    /// What follows an attempt with this outcome.
    pub(super) fn next(
        &mut self,
        now: Instant,
        facts: &Facts,
        outcome: &Result<(), Failure>,
    ) -> Step {
        if self.left == 0 || !self.rule.is_temporary(facts, outcome) {
            return Step::End;
        }
        let elapsed = now.duration_since(self.begun);
        let is_past = |time: Duration| self.rule.max_time.is_some_and(|limit| time > limit);
        if self.rule.max_time.is_some_and(|limit| elapsed >= limit) {
            return Step::End;
        }
        let asked = asked_delay(facts);
        // As in curl: a delay that the server asks for must end before `--retry-max-time`; other delays need not.
        if let Some(asked) = asked.filter(|asked| is_past(elapsed.saturating_add(*asked))) {
            return Step::TooLong(asked);
        }
        let delay = asked.map(|asked| asked.min(LONGEST_ASKED));
        let delay = delay.or(self.rule.delay).unwrap_or(self.delay);
        self.left -= 1;
        self.delay = (self.delay * 2).min(LAST_DELAY);
        Step::Again {
            delay,
            asked: asked.filter(|asked| *asked > LONGEST_ASKED),
        }
    }

    /// Retries that remain.
    pub(super) fn left(&self) -> u32 {
        self.left
    }
}

/// Statuses of temporary problems, as in curl.
fn is_busy(status: u16) -> bool {
    matches!(status, 408 | 429 | 500 | 502 | 503 | 504)
}

/// The delay of the response's `Retry-After`; `None` for a delay of zero.
fn asked_delay(facts: &Facts) -> Option<Duration> {
    let asked = courser::retry_after(facts.header("retry-after")?, Some(SystemTime::now()))?;
    (!asked.is_zero()).then_some(asked)
}

const FIRST_DELAY: Duration = Duration::from_secs(1);
const LAST_DELAY: Duration = Duration::from_secs(600);

/// The longest delay that a server can ask for: six hours, as in later versions of curl.
const LONGEST_ASKED: Duration = Duration::from_secs(6 * 3600);
