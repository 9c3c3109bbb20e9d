//! What follows an attempt. Pure.

use std::num::NonZeroU32;
use std::time::Duration;

use courser::Backoff;

use super::letter::DeadReason;
use super::task::JobError;

/// How an attempt ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Outcome {
    Done,
    Failed(JobError),
    /// The task panicked with this message.
    Panicked(String),
    /// The time limit was over.
    TimedOut(Duration),
}

/// What follows.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Next {
    Done,
    Retry { after: Duration, why: String },
    Dead { reason: DeadReason, why: String },
}

/// How often, and after which waits, a job is tried.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    pub max_attempts: NonZeroU32,
    pub backoff: Backoff,
}

impl Rules {
    /// What follows the attempt with this number; the first is 1. `random` is uniformly distributed.
    pub fn after(&self, attempt: u32, outcome: Outcome, random: u64) -> Next {
        let (after, why, reason) = match outcome {
            Outcome::Done => return Next::Done,
            Outcome::Failed(JobError::Fail { why }) => {
                let reason = DeadReason::Failed;
                return Next::Dead { reason, why };
            }
            Outcome::Failed(JobError::Retry { after, why }) => (after, why, DeadReason::Attempts),
            Outcome::Panicked(message) => {
                let why = format!("the task panicked: {message}");
                (None, why, DeadReason::Panic)
            }
            Outcome::TimedOut(limit) => {
                let why = format!("the time limit of {limit:?} was over");
                (None, why, DeadReason::TimeLimit)
            }
        };
        if attempt >= self.max_attempts.get() {
            return Next::Dead { reason, why };
        }
        let backoff = self.backoff.delay(attempt, random);
        let after = after.unwrap_or_default().saturating_add(backoff);
        Next::Retry { after, why }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn rules() -> Rules {
        Rules {
            max_attempts: NonZeroU32::new(3).expect("not zero"),
            backoff: Backoff {
                initial: SECOND,
                factor: 2.0,
                max: SECOND * 300,
            },
        }
    }

    #[test]
    fn a_failure_that_no_attempt_can_help_is_dead_at_once() {
        let next = rules().after(1, Outcome::Failed(JobError::fail("404")), 0);
        let reason = DeadReason::Failed;
        let why = "404".to_owned();
        assert_eq!(next, Next::Dead { reason, why });
    }

    #[test]
    fn the_third_failure_is_the_last() {
        let failures = [
            (
                Outcome::Failed(JobError::retry("busy")),
                DeadReason::Attempts,
            ),
            (Outcome::Panicked("no".to_owned()), DeadReason::Panic),
            (Outcome::TimedOut(SECOND), DeadReason::TimeLimit),
        ];
        for (outcome, expected) in failures {
            for attempt in 1..=2 {
                let next = rules().after(attempt, outcome.clone(), 7);
                assert!(matches!(next, Next::Retry { .. }), "{next:?}");
            }
            for attempt in [3, 4, u32::MAX] {
                let next = rules().after(attempt, outcome.clone(), 7);
                assert!(matches!(next, Next::Dead { reason, .. } if reason == expected));
            }
        }
    }

    #[test]
    fn a_wait_has_full_jitter_on_top_of_what_was_asked_for() {
        for (after, attempt, random, expected) in [
            (None, 1, 0, Duration::ZERO),
            (None, 1, u64::MAX, SECOND),
            (None, 2, u64::MAX, SECOND * 2),
            (Some(SECOND * 30), 1, 0, SECOND * 30),
            (Some(SECOND * 30), 2, u64::MAX / 2, SECOND * 31),
            (Some(Duration::MAX), 1, u64::MAX, Duration::MAX),
        ] {
            let why = String::new();
            let outcome = Outcome::Failed(JobError::Retry { after, why });
            let Next::Retry { after, .. } = rules().after(attempt, outcome, random) else {
                panic!("a retry")
            };
            assert!(
                after.abs_diff(expected) < Duration::from_micros(1),
                "{after:?}"
            );
        }
    }
}
