//! Times in which a host is not asked: the wait that it asks for by `Retry-After` (RFC 9110 §10.2.3), if it is longer than
//! the patience of a single run, and the rest of a host that was given up.
//!
//! A single run asks other URLs of a host that asks for a long wait, and gives it up after a few such answers; a host that
//! was given up stays so. With [`Policy::asks_for_days`](super::Policy::asks_for_days), both end: a host that was given up is
//! then asked for one URL. If that is not answered, it rests again, for twice as long.

use std::time::{Duration, Instant};

use super::fetch::Fetch;
use super::robots::RobotsStage;
use super::{GIVEN_UP, GivenUp, Host, Shared};
use crate::check::verdict::{Cause, Verdict};
use crate::crawl::retry::{Decision, Reason};
use crate::crawl::robots::Robots;

impl Host {
    /// Until this time nothing is asked. URLs that wait, and URLs that come until then, are reported as throttled.
    pub fn rest_until(&mut self, until: Instant) {
        self.rests_until = self.rests_until.max(Some(until));
        self.politeness.handle_pause(until);
    }

    /// Until when the host wants no requests, by its own words.
    pub fn wants_rest_until(&self, now: Instant) -> Option<Instant> {
        let wanted = self.rests_until.max(self.politeness.throttled_until());
        wanted.filter(|until| *until > now)
    }

    /// Keeps the long wait that a decision names. Returns whether there is one.
    pub(super) fn keep_long_wait(&mut self, now: Instant, decision: Decision) -> bool {
        let (Decision::GiveUp(reason) | Decision::GiveUpHost(reason)) = decision else {
            return false;
        };
        match reason {
            Reason::LongWait(wait) if self.policy.asks_for_days => {
                self.rest_until(now + wait.min(LONGEST_WAIT));
                true
            }
            _ => false,
        }
    }

    /// Nothing is asked any more, or not for a while. URLs that wait, and URLs that come, are reported with this cause. A
    /// host that rests already keeps the cause that it has.
    pub(super) fn give_up(
        &mut self,
        now: Instant,
        cause: Cause,
        detail: Option<String>,
        shared: &mut Shared,
    ) {
        if self.is_left_alone(now) {
            return;
        }
        let before = self.given_up.as_ref().and_then(|given_up| given_up.rest);
        let rest = before.map_or(FIRST_REST, |(rest, _)| (rest * 2).min(LONGEST_REST));
        let rest = self.policy.asks_for_days.then(|| (rest, now + rest));
        self.given_up = Some(GivenUp {
            cause,
            detail: match detail {
                Some(detail) => format!("{detail} ({GIVEN_UP})"),
                None => GIVEN_UP.to_owned(),
            },
            rest,
        });
        self.refuse_while_resting(now, shared);
        if let Some((_, until)) = rest {
            return self.politeness.handle_pause(until);
        }
        self.robots = RobotsStage::Known;
        if self.politeness.awaits_robots() {
            self.politeness.obey(Robots::disallow_all());
        }
    }

    /// Whether the host was given up, and is not to be probed yet.
    fn is_left_alone(&self, now: Instant) -> bool {
        let rest = self.given_up.as_ref().map(|given_up| given_up.rest);
        rest.is_some_and(|rest| rest.is_none_or(|(_, until)| until > now))
    }

    fn is_resting(&self, now: Instant) -> bool {
        self.is_left_alone(now) || self.rests_until.is_some_and(|until| until > now)
    }

    /// Whether something waits that is to be refused.
    pub(super) fn has_refusals(&self, now: Instant) -> bool {
        self.is_resting(now) && !self.queue.is_empty()
    }

    /// Reports all URLs that wait while the host rests. Returns whether the host rests.
    pub(super) fn refuse_while_resting(&mut self, now: Instant, shared: &mut Shared) -> bool {
        if !self.is_resting(now) {
            self.rests_until = None;
            return false;
        }
        let given_up = self.given_up.clone();
        for fetch in self.queue.take_all() {
            match (fetch, &given_up) {
                (Fetch::Url(check), Some(GivenUp { cause, detail, .. })) => {
                    let verdict = Verdict::Failed(*cause);
                    self.report(check, verdict, Some(detail.clone()), shared);
                }
                (Fetch::Url(mut check), None) => {
                    let rest = self.rests_until.map(|until| until - now);
                    check.retry_after = rest;
                    let left = rest.unwrap_or_default().as_secs();
                    let detail = format!("the host asked to wait, {left} s are left");
                    let verdict = Verdict::Failed(Cause::Throttled);
                    self.report(check, verdict, Some(detail), shared);
                }
                // Asked again after the rest.
                (Fetch::Robots(_), _) => self.robots = RobotsStage::Wanted,
            }
        }
        true
    }
}

/// The longest wait that a host can ask for.
const LONGEST_WAIT: Duration = Duration::from_secs(86_400);

/// How long a host that was given up is left alone at first, and at most.
const FIRST_REST: Duration = Duration::from_secs(30);
const LONGEST_REST: Duration = Duration::from_secs(900);

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use courser::{Request, Response};
    use jiff::Timestamp;

    use super::*;
    use crate::check::host::Policy;
    use crate::check::task::{Task, UrlId};
    use crate::crawl::stats::Stats;
    use crate::crawl::work::HostWork as _;

    #[test]
    fn a_host_that_was_given_up_is_probed_after_a_growing_time() {
        let mut policy = Policy {
            asks_for_days: true,
            ..Policy::default()
        };
        policy.host.robots = false;
        let root = "http://h/".parse().expect("a URL");
        let mut host = Host::new(root, None, Arc::new(policy));
        let mut shared = Shared::new(Stats::default());
        let mut now = Instant::now();
        let add = |host: &mut Host, shared: &mut Shared| {
            for path in 0..2 {
                let url = format!("http://h/{path}").parse().expect("a URL");
                host.add_task(Task::given(UrlId(path), url), shared);
            }
        };
        let verdicts = |shared: &mut Shared| {
            let outcomes = shared.take_outcomes(Timestamp::UNIX_EPOCH).into_iter();
            outcomes.map(|it| it.verdict).collect::<Vec<_>>()
        };
        let silent = Verdict::Failed(Cause::ConnectTimeout);
        let mut request = Request::get("/");
        let growing = [30, 60, 120, 240, 480, 900].map(|rest| (rest, false));
        for (rest, is_answered) in growing.into_iter().chain([(900, true), (30, false)]) {
            host.give_up(now, Cause::ConnectTimeout, None, &mut shared);
            // What was in flight fails later, and for another reason.
            host.give_up(now, Cause::Refused, None, &mut shared);
            verdicts(&mut shared);
            add(&mut host, &mut shared);
            now += Duration::from_secs(rest - 1);
            assert_eq!(host.poll_timeout(now, &shared), Some(now));
            assert!(host.poll_request(now, &mut request, &mut shared).is_none());
            assert_eq!(verdicts(&mut shared), [silent; 2], "{rest}");
            now += Duration::from_secs(1);
            add(&mut host, &mut shared);
            let probe = host.poll_request(now, &mut request, &mut shared);
            assert!(host.poll_request(now, &mut request, &mut shared).is_none());
            assert_eq!(host.poll_timeout(now, &shared), None);
            let id = probe.expect("a probe").id;
            if is_answered {
                host.handle_head(now, id, &Response::new(), &mut shared);
                assert!(!host.is_given_up());
                continue;
            }
            host.politeness.handle_over();
            if let Some(Fetch::Url(check)) = host.in_flight.remove(id) {
                host.report(check, silent, None, &mut shared);
            }
        }
    }
}
