//! Decides what to do with a URL after a failed request: request it again later, or give it up, alone or with all URLs
//! of its host. The same rules for all kinds of requests. Pure: time is an argument.
//!
//! [`RetryPolicy`](super::policy::RetryPolicy) has the numbers.

use std::time::{Duration, Instant};

use super::failure::FailureScope;
use super::policy::AGES;
use super::politeness::{self, Politeness, Throttled};
use super::retry_queue::Attempts;
use super::stats::Class;

/// A failed request.
#[derive(Clone, Copy, Debug)]
pub struct Failed {
    /// The class of the failure.
    pub class: Class,
    /// What the failure says about further attempts.
    pub scope: FailureScope,
    /// Whether the host refused the request because it wants fewer requests.
    pub is_refusal: bool,
    /// The wait in `Retry-After`.
    pub retry_after: Option<Duration>,
}

impl Failed {
    /// A failure that is no refusal.
    pub fn new(class: Class, scope: FailureScope) -> Self {
        Self {
            class,
            scope,
            is_refusal: false,
            retry_after: None,
        }
    }

    /// A status that may be temporary, with the `Retry-After` and `Date` of the response. 429 and 503 are refusals.
    pub fn of_status(status: u16, retry_after: Option<&[u8]>, date: Option<&[u8]>) -> Self {
        Self {
            is_refusal: matches!(status, 429 | 503),
            retry_after: retry_after.and_then(|value| politeness::retry_after(value, date)),
            ..Self::new(Class::Status(status), FailureScope::Request)
        }
    }

    /// Whether the host has not answered: it was not reached, or did not send the head of an answer.
    pub fn is_unanswered(&self) -> bool {
        let is_reached = matches!(
            self.class,
            Class::Timeout | Class::Connect | Class::Tls | Class::Broken
        );
        is_reached && self.scope != FailureScope::Final
    }
}

/// What is known about the other URLs of the host that are in flight or wait. Used only if the URL was answered with 429
/// or 503 so often that the URL itself may be at fault.
#[derive(Clone, Copy, Debug, Default)]
pub struct Others {
    /// Whether a waiting URL was answered with 429 or 503.
    pub any_throttled: bool,
    /// Whether all of them are stuck.
    pub all_stuck: bool,
}

impl Others {
    /// What the attempts at the others say. `attempts` are those at the URL itself; `any_new`: whether a URL waits for its
    /// first attempt.
    pub fn of<'a>(
        attempts: &Attempts,
        any_new: impl FnOnce() -> bool,
        in_flight: impl Iterator<Item = &'a Attempts>,
        postponed: impl Iterator<Item = &'a Attempts> + Clone,
    ) -> Self {
        if !is_stuck(attempts) {
            return Self::default();
        }
        Self {
            any_throttled: postponed.clone().any(|others| others.throttles() > 0),
            all_stuck: !any_new() && in_flight.chain(postponed).all(is_stuck),
        }
    }
}

/// What to do with a URL after a failed request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Decision {
    /// Request it again, not before this time.
    RetryAt(Instant),
    /// Give it up.
    GiveUp(Reason),
    /// Give it up with all other URLs of its host.
    GiveUpHost(Reason),
}

/// Why a URL is not requested again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Reason {
    /// The failure is final, or that was the last attempt.
    Failure,
    /// The server asked for this wait, which ends after the policy's patience.
    LongWait(Duration),
    /// The host has refused all requests for as long as the policy's patience.
    OnlyRefusals,
}

/// Decides about a URL after a failed request, and updates the politeness of the host.
pub fn decide(
    now: Instant,
    failed: Failed,
    attempts: &mut Attempts,
    others: Others,
    host: &mut Politeness,
) -> Decision {
    let is_unanswered = failed.is_unanswered();
    if is_unanswered {
        host.handle_unanswered(attempts.made() <= 1);
    }
    let decision = match failed.scope {
        _ if failed.is_refusal => throttled(now, failed, attempts, others, host),
        FailureScope::Final => Decision::GiveUp(Reason::Failure),
        FailureScope::Request => back_off(now, failed, attempts, host),
        FailureScope::HostFinal if !host.has_replied() => Decision::GiveUpHost(Reason::Failure),
        FailureScope::Host | FailureScope::HostFinal => {
            match host.handle_absent(now, attempts.sent_at(), failed.class) {
                true => Decision::GiveUpHost(Reason::Failure),
                // The pause of the host is long enough for the URL.
                false => retry_after(now, Duration::ZERO, failed, attempts, host),
            }
        }
    };
    match decision {
        Decision::GiveUp(reason) if is_unanswered && host.is_silent() => {
            Decision::GiveUpHost(reason)
        }
        decision => decision,
    }
}

/// Whether a URL was answered with 429 or 503 so often that the URL itself may be at fault.
fn is_stuck(attempts: &Attempts) -> bool {
    attempts.throttles() >= FREE_THROTTLES
}

/// The host refused the request by 429 or 503. This does not count as an attempt of the URL; all requests to the host wait.
fn throttled(
    now: Instant,
    failed: Failed,
    attempts: &mut Attempts,
    others: Others,
    host: &mut Politeness,
) -> Decision {
    let was_stuck = is_stuck(attempts);
    let before = attempts.handle_throttled(now);
    let others_are_answered =
        host.is_good_since(before) || host.is_good_since(None) && others.all_stuck;
    if failed.class == Class::Status(503) && was_stuck && others_are_answered {
        // The host answers other URLs, so this URL has failed.
        host.handle_refused_alone();
        return back_off(now, failed, attempts, host);
    }
    attempts.discount();
    let patience = host.retry_policy().patience.min(AGES);
    let is_long = |wait: &Duration| *wait > patience;
    if let Some(wait) = failed.retry_after.filter(is_long) {
        // The host counts as away if it answers several URLs like this; it may be this URL alone.
        return match host.handle_long_wait(now, attempts.sent_at()) {
            true => Decision::GiveUpHost(Reason::LongWait(wait)),
            false => Decision::GiveUp(Reason::LongWait(wait)),
        };
    }
    let (throttles, random) = (attempts.throttles(), host.random_number());
    let policy = host.retry_policy();
    let wait = policy.throttle_pause(throttles, failed.retry_after, random);
    // Some hosts always ask for 0 s, and their pauses have other reasons.
    let asked_for = failed.retry_after.filter(|asked_for| *asked_for >= wait);
    let throttled = Throttled {
        sent_at: attempts.sent_at(),
        wait,
        // A single URL that is refused again and again says little about the host.
        is_telling: !was_stuck || others.any_throttled,
    };
    host.handle_throttled(now, throttled);
    // Other URLs go first: their answers show whether the host or this URL is at fault.
    let wait = wait + host.retry_policy().first_pause.min(AGES);
    // Otherwise each of its URLs would be waited for in turn.
    if host.is_refusing_too_long(now + wait) {
        return Decision::GiveUpHost(Reason::OnlyRefusals);
    }
    match retry_after(now, wait, failed, attempts, host) {
        Decision::GiveUp(_) if host.retry_policy().retries(failed.class) => {
            Decision::GiveUp(asked_for.map_or(Reason::Failure, Reason::LongWait))
        }
        decision => decision,
    }
}

/// Retries after the usual pause, unless that was the last attempt.
fn back_off(
    now: Instant,
    failed: Failed,
    attempts: &mut Attempts,
    host: &mut Politeness,
) -> Decision {
    let random = host.random_number();
    let policy = host.retry_policy();
    let wait = match failed.class {
        Class::Status(410) if attempts.handle_gone() >= policy.gone_attempts.get() => {
            return Decision::GiveUp(Reason::Failure);
        }
        Class::Status(410) => policy.pause_after_gone(random),
        _ => policy.back_off(attempts.made(), random),
    };
    retry_after(now, wait, failed, attempts, host)
}

fn retry_after(
    now: Instant,
    wait: Duration,
    failed: Failed,
    attempts: &Attempts,
    host: &Politeness,
) -> Decision {
    let due = attempts.retry_at(now, wait, failed.class, host.retry_policy());
    due.map_or(Decision::GiveUp(Reason::Failure), Decision::RetryAt)
}

/// 503 answers for one URL that count as the host's, although other URLs are answered.
const FREE_THROTTLES: u32 = 4;

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::policy::{HostPolicy, RetryClass, RetryPolicy};

    const SECOND: Duration = Duration::from_secs(1);

    fn throttled(status: u16, seconds: u64) -> Failed {
        let seconds = seconds.to_string();
        Failed::of_status(status, Some(seconds.as_bytes()), None)
    }

    fn patience(patience: Duration) -> RetryPolicy {
        RetryPolicy {
            patience,
            ..RetryPolicy::default()
        }
    }

    /// The first attempt at a URL of a host to which no request was sent before.
    fn first_attempt(retry: RetryPolicy) -> (Attempts, Politeness, Instant) {
        let policy = HostPolicy {
            retry,
            ..HostPolicy::default()
        };
        let (mut attempts, mut host) = (Attempts::default(), Politeness::new(&policy));
        let now = Instant::now();
        host.handle_sent(now);
        attempts.handle_sent(now);
        host.handle_over();
        (attempts, host, now)
    }

    /// What follows from a failure while nothing else is known.
    fn decided(
        now: Instant,
        failed: Failed,
        attempts: &mut Attempts,
        host: &mut Politeness,
    ) -> Decision {
        decide(now, failed, attempts, Others::default(), host)
    }

    #[test]
    fn pauses_without_an_end_are_long_ones() {
        let endless = RetryPolicy {
            first_pause: Duration::MAX,
            longest_pause: Duration::MAX,
            gone_pause: Duration::MAX,
            patience: Duration::MAX,
            ..RetryPolicy::default()
        };
        for status in [410, 429, 500, 503] {
            for seconds in [None, Some(1), Some(i64::MAX as u64), Some(u64::MAX)] {
                let (mut attempts, mut host, now) = first_attempt(endless.clone());
                let value = seconds.map(|seconds| seconds.to_string());
                let value = value.as_deref().map(str::as_bytes);
                let failed = Failed::of_status(status, value, None);
                let decision = decided(now, failed, &mut attempts, &mut host);
                match decision {
                    Decision::RetryAt(due) => assert!(due > now + AGES / 3, "{status} {seconds:?}"),
                    _ => assert!(seconds > Some(1), "{status} {seconds:?} {decision:?}"),
                }
                let lost = Failed::of_status(500, None, None);
                host.handle_sent(now);
                host.handle_over();
                host.handle_absent(now, None, lost.class);
            }
        }
    }

    /// A wait within the patience of a new URL may be too long for a URL that was first requested some time ago.
    #[test]
    fn the_patience_with_a_url_begins_with_its_first_request() {
        let (mut attempts, mut host, now) = first_attempt(patience(SECOND * 60));
        let later = now + SECOND * 30;
        attempts.handle_sent(later);
        let decision = decided(later, throttled(429, 40), &mut attempts, &mut host);
        assert_eq!(decision, Decision::GiveUp(Reason::LongWait(SECOND * 40)));
        assert_eq!(host.held_until(later), Some(later + SECOND * 40));
    }

    /// Fails if a URL is given up because the server asks to wait 0 s.
    #[test]
    fn a_pause_that_the_server_did_not_ask_for_is_not_blamed_on_it() {
        let (mut attempts, mut host, mut now) = first_attempt(patience(SECOND * 10));
        let end = loop {
            // Other URLs are answered.
            host.handle_answer(now);
            match decided(now, throttled(429, 0), &mut attempts, &mut host) {
                Decision::RetryAt(due) => now = due,
                decision => break decision,
            }
            attempts.handle_sent(now);
        };
        assert_eq!(end, Decision::GiveUp(Reason::Failure));
    }

    /// The trap: a cache that is purged answers 410 for some time, and thousands of URLs are requested ten times each.
    #[test]
    fn what_is_gone_is_requested_a_few_times_over_seconds() {
        let gone = Failed::of_status(410, None, None);
        for (attempts_at_most, expected) in [(10, 3), (2, 2), (1, 1)] {
            let policy = RetryPolicy {
                attempts: NonZeroU32::new(attempts_at_most).expect("not 0"),
                ..RetryPolicy::default()
            };
            let (mut attempts, mut host, began) = first_attempt(policy);
            let (mut now, mut made) = (began, 1);
            while let Decision::RetryAt(due) = decided(now, gone, &mut attempts, &mut host) {
                assert!((SECOND * 5 / 2..=SECOND * 5).contains(&(due - now)));
                // Other URLs do not wait.
                assert_eq!(host.held_until(now), None);
                now = due;
                attempts.handle_sent(now);
                made += 1;
            }
            assert_eq!(made, expected);
        }
    }

    /// The traps: a 503 that is not retried still says that the host wants fewer requests; each URL of a host that is away
    /// is requested once.
    #[test]
    fn a_class_that_is_switched_off_is_final() {
        let broken = Failed::new(Class::Broken, FailureScope::Request);
        let away = Failed::new(Class::Connect, FailureScope::Host);
        let of_url = Decision::GiveUp(Reason::Failure);
        let of_host = Decision::GiveUpHost(Reason::Failure);
        for (class, failed, expected) in [
            (RetryClass::Throttled, throttled(503, 7), of_url),
            (RetryClass::ServerError, throttled(500, 7), of_url),
            (RetryClass::Broken, broken, of_url),
            (RetryClass::Connect, away, of_host),
        ] {
            let mut policy = RetryPolicy::default();
            policy.classes.remove(&class);
            let (mut attempts, mut host, now) = first_attempt(policy);
            let decision = decided(now, failed, &mut attempts, &mut host);
            assert_eq!(decision, expected, "{class:?}");
            let paused = (class == RetryClass::Throttled).then_some(now + SECOND * 7);
            assert!(class == RetryClass::Connect || host.held_until(now) == paused);
        }
    }

    /// The trap: each of ten thousand URLs waits its own timeouts out.
    #[test]
    fn a_host_that_answers_nothing_is_given_up_after_six_attempts_over_two_urls() {
        for (urls, expected) in [(1, None), (2, Some(7)), (5, Some(16))] {
            let (_, mut host, now) = first_attempt(RetryPolicy {
                attempts: NonZeroU32::new(4).expect("not 0"),
                ..patience(SECOND * 1000)
            });
            let hangs = Failed::new(Class::Timeout, FailureScope::Request);
            let mut states = vec![Attempts::default(); urls];
            let mut made = 0;
            // In turn, as many connections do.
            let given_up = 'rounds: loop {
                for attempts in &mut states {
                    attempts.handle_sent(now);
                    made += 1;
                    match decided(now, hangs, attempts, &mut host) {
                        Decision::RetryAt(_) => {}
                        Decision::GiveUp(_) => break 'rounds None,
                        Decision::GiveUpHost(_) => break 'rounds Some(made),
                    }
                }
            };
            assert_eq!(given_up, expected, "{urls}");
        }
        // Any answer shows that the host is there.
        let (_, mut host, now) = first_attempt(RetryPolicy::default());
        for _ in 0..6 {
            host.handle_unanswered(true);
        }
        assert!(host.is_silent());
        host.handle_answer(now);
        assert!(!host.is_silent());
    }
}
