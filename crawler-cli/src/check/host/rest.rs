//! The wait that a host asks for by `Retry-After` (RFC 9110 §10.2.3), if it is longer than the patience of a single run.
//!
//! A single run asks other URLs of the host, and gives the host up after a few such answers. Who asks the host again and
//! again, for days, keeps the wait instead: [`Policy::keeps_long_waits`](super::Policy::keeps_long_waits).

use std::time::{Duration, Instant};

use super::fetch::Fetch;
use super::robots::RobotsStage;
use super::{Host, Shared};
use crate::check::verdict::{Cause, Verdict};
use crate::crawl::retry::{Decision, Reason};

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
            Reason::LongWait(wait) if self.policy.keeps_long_waits => {
                self.rest_until(now + wait.min(LONGEST_REST));
                true
            }
            _ => false,
        }
    }

    /// Whether something waits that is to be refused.
    pub(super) fn has_refusals(&self, now: Instant) -> bool {
        self.rests_until.is_some_and(|until| until > now) && !self.queue.is_empty()
    }

    /// Reports all URLs that wait while the host rests. Returns whether the host rests.
    pub(super) fn refuse_while_resting(&mut self, now: Instant, shared: &mut Shared) -> bool {
        let Some(until) = self.rests_until.filter(|until| *until > now) else {
            self.rests_until = None;
            return false;
        };
        let rest = until - now;
        for fetch in self.queue.take_all() {
            match fetch {
                Fetch::Url(mut check) => {
                    check.retry_after = Some(rest);
                    let detail = format!("the host asked to wait, {} s are left", rest.as_secs());
                    let verdict = Verdict::Failed(Cause::Throttled);
                    self.report(check, verdict, Some(detail), shared);
                }
                // Asked again after the rest.
                Fetch::Robots(_) => self.robots = RobotsStage::Wanted,
            }
        }
        true
    }
}

/// The longest wait that a host can ask for.
const LONGEST_REST: Duration = Duration::from_secs(86_400);
