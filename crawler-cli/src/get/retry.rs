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

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(status: u16, retry_after: Option<&str>) -> Facts {
        let header = |value: &str| ("Retry-After".to_owned(), value.as_bytes().to_vec());
        Facts {
            status,
            headers: retry_after.map(header).into_iter().collect(),
            ..Facts::default()
        }
    }

    fn rule() -> Retry {
        Retry {
            times: 3,
            delay: None,
            max_time: None,
            refused: false,
            all_errors: false,
        }
    }

    #[test]
    fn delays_double_unless_user_or_server_sets_one() {
        let now = Instant::now();
        let seconds = |n| Step::Again {
            delay: Duration::from_secs(n),
            asked: None,
        };
        let rule = rule();
        let mut retries = rule.begin(now);
        assert_eq!(retries.next(now, &facts(503, None), &Ok(())), seconds(1));
        assert_eq!(
            retries.next(now, &facts(503, Some("7")), &Ok(())),
            seconds(7)
        );
        assert_eq!(
            retries.next(now, &facts(503, Some("0")), &Ok(())),
            seconds(4)
        );
        assert_eq!(retries.next(now, &facts(503, None), &Ok(())), Step::End);
    }

    #[test]
    fn only_temporary_failures_are_retried() {
        let failed = |exit| Err(Failure::new(exit, "x", "y"));
        let cases = [
            (200, Ok(()), false),
            (404, Ok(()), false),
            (503, Ok(()), true),
            (503, failed(Exit::HttpError), true),
            (404, failed(Exit::HttpError), false),
            (0, failed(Exit::Timeout), true),
            (0, failed(Exit::NotConnected), false),
            (0, failed(Exit::Empty), false),
        ];
        for (status, outcome, passing) in cases {
            let facts = facts(status, None);
            assert_eq!(
                rule().is_temporary(&facts, &outcome),
                passing,
                "{outcome:?}"
            );
            let all = Retry {
                all_errors: true,
                ..rule()
            };
            assert_eq!(
                all.is_temporary(&facts, &outcome),
                passing || outcome.is_err()
            );
        }
        let refused = Retry {
            refused: true,
            ..rule()
        };
        assert!(refused.is_temporary(&facts(0, None), &failed(Exit::NotConnected)));
    }

    #[test]
    fn the_time_for_repetitions_ends() {
        let now = Instant::now();
        let rule = Retry {
            max_time: Some(Duration::from_secs(5)),
            ..rule()
        };
        let mut retries = rule.begin(now);
        let after = |s| now + Duration::from_secs(s);
        let mut next = |now, asked| retries.next(now, &facts(503, asked), &Ok(()));
        assert!(matches!(next(after(4), None), Step::Again { .. }));
        let two = Duration::from_secs(2);
        assert_eq!(next(after(4), Some("2")), Step::TooLong(two));
        assert_eq!(next(after(5), None), Step::End);
        assert_eq!(next(after(5), Some("2")), Step::End);
    }

    #[test]
    fn a_server_cannot_ask_for_an_endless_delay() {
        let now = Instant::now();
        let rule = rule();
        for asked in ["21601", "18446744073709551615"] {
            let step = rule.begin(now).next(now, &facts(503, Some(asked)), &Ok(()));
            let Step::Again { delay, asked } = step else {
                panic!("{step:?}");
            };
            assert_eq!(delay, LONGEST_ASKED);
            assert!(asked.is_some_and(|asked| asked > delay));
        }
        let limited = Retry {
            max_time: Some(LONGEST_ASKED * 2),
            ..rule
        };
        let all = limited
            .begin(now)
            .next(now, &facts(503, Some("86400")), &Ok(()));
        assert_eq!(all, Step::TooLong(Duration::from_secs(86400)));
    }
}
