//! What the work knows of the engine's circuit breaker for the host.

use std::time::{Duration, Instant};

use crate::check::verdict::Cause;

/// The state of the host's breaker, as far as calls that were refused by the breaker tell.
#[derive(Debug, Default)]
pub(super) struct BreakerWatch {
    /// Until when the breaker is open. Stays set until an answer closes the breaker: then one request is sent at a time.
    until: Option<Instant>,
    /// When the breaker opened first after the last good answer.
    since: Option<Instant>,
    /// The last failure that counted.
    failure: Option<(Cause, Option<String>)>,
}

impl BreakerWatch {
    /// Whether a request may be sent, if so many are in flight.
    pub(super) fn may_send(&self, now: Instant, in_flight: usize) -> bool {
        self.until
            .is_none_or(|until| until <= now && in_flight == 0)
    }

    /// The end of the pause; `None` if the breaker is closed.
    pub(super) fn until(&self) -> Option<Instant> {
        self.until
    }

    /// Whether URLs that were not asked yet go first: their answers say most about the host.
    pub(super) fn wants_new(&self) -> bool {
        self.until.is_some()
    }

    /// The host answered.
    pub(super) fn handle_answer(&mut self, status: u16) {
        match status {
            500..=599 => self.failure = Some((Cause::Status5xx(status), None)),
            _ => {
                self.until = None;
                self.since = None;
            }
        }
    }

    /// A request failed.
    pub(super) fn handle_failure(&mut self, cause: Cause, detail: &str) {
        self.failure = Some((cause, Some(detail.to_owned())));
    }

    /// The breaker refused a request, until this time. Returns whether the host fails for longer than the patience.
    pub(super) fn handle_open(&mut self, now: Instant, until: Instant, patience: Duration) -> bool {
        // A half-open breaker that lets no further call through says `now`.
        let until = until.max(now + SHORTEST_PAUSE);
        self.until = self.until.max(Some(until));
        let since = *self.since.get_or_insert(now);
        let end = since.checked_add(patience);
        end.is_some_and(|end| until > end)
    }

    /// The failure that opened the breaker.
    pub(super) fn failure(&self) -> (Cause, Option<String>) {
        let unknown = || (Cause::Timeout, None);
        self.failure.clone().unwrap_or_else(unknown)
    }
}

/// The shortest pause after a request that the breaker refused.
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_request_at_a_time_until_an_answer_is_good() {
        let (mut watch, now) = (BreakerWatch::default(), Instant::now());
        let second = Duration::from_secs(1);
        assert!(watch.may_send(now, 64) && !watch.wants_new());
        watch.handle_failure(Cause::Reset, "reset");
        assert!(!watch.handle_open(now, now + second * 5, second * 60));
        assert!(!watch.may_send(now + second * 4, 0));
        assert!(watch.may_send(now + second * 5, 0) && !watch.may_send(now + second * 5, 1));
        watch.handle_answer(502);
        assert!(watch.wants_new());
        assert_eq!(watch.failure(), (Cause::Status5xx(502), None));
        watch.handle_answer(404);
        assert!(watch.may_send(now, 64) && !watch.wants_new());
    }

    #[test]
    fn a_host_that_fails_longer_than_the_patience_is_given_up() {
        let (mut watch, mut now) = (BreakerWatch::default(), Instant::now());
        let patience = Duration::from_secs(60);
        for (pause, given_up) in [(5, false), (10, false), (20, false), (40, true)] {
            let until = now + Duration::from_secs(pause);
            // All calls in flight are refused.
            for _ in 0..8 {
                assert_eq!(watch.handle_open(now, until, patience), given_up);
            }
            now = until;
        }
        watch.handle_answer(200);
        assert!(!watch.handle_open(now, now + patience, patience));
        assert!(!watch.handle_open(now, now, Duration::MAX));
    }
}
