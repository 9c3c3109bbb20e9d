//! `--retry`: which transfers are repeated, and after which delay. Waiting is left to [`transfer`](super::transfer).

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
    /// The delay before the next retry; `None` if the transfer is not retried.
    pub(super) fn next(
        &mut self,
        now: Instant,
        facts: &Facts,
        outcome: &Result<(), Failure>,
    ) -> Option<Duration> {
        if self.left == 0 || !self.rule.is_temporary(facts, outcome) {
            return None;
        }
        let server_delay = server_delay(facts);
        let delay = server_delay.or(self.rule.delay).unwrap_or(self.delay);
        // As in curl: a delay that the server sets must end before `--retry-max-time`; other delays need not.
        let elapsed = now.duration_since(self.begun);
        let after = elapsed.saturating_add(server_delay.unwrap_or_default());
        let late = |limit| elapsed >= limit || after > limit;
        if self.rule.max_time.is_some_and(late) {
            return None;
        }
        self.left -= 1;
        self.delay = (self.delay * 2).min(LAST_DELAY);
        Some(delay)
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
fn server_delay(facts: &Facts) -> Option<Duration> {
    let server_delay = courser::retry_after(facts.header("retry-after")?, Some(SystemTime::now()))?;
    (!server_delay.is_zero()).then_some(server_delay)
}

const FIRST_DELAY: Duration = Duration::from_secs(1);
const LAST_DELAY: Duration = Duration::from_secs(600);

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
        let seconds = |n| Some(Duration::from_secs(n));
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
        assert_eq!(retries.next(now, &facts(503, None), &Ok(())), None);
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
        assert!(retries.next(after(4), &facts(503, None), &Ok(())).is_some());
        assert!(
            retries
                .next(after(4), &facts(503, Some("2")), &Ok(()))
                .is_none()
        );
        assert!(retries.next(after(5), &facts(503, None), &Ok(())).is_none());
    }
}
