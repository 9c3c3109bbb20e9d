//! What a check with a state keeps of each URL and host from one run to the next.

use std::time::Duration;

use jiff::Timestamp;

use plain::random::Random;
use store::{Change, HostFacts, Past, Queued};
use verdict::Answer;
use verdict::Verdict;
use verdict::life::{Context, Held, Record as Life, Rules};

/// The lives of URLs.
#[derive(Debug)]
pub(super) struct Lives {
    rules: Rules,
    random: Random,
    /// URLs that were good within this time are not asked again.
    max_age: Duration,
}

impl Lives {
    pub(super) fn new(rules: Rules, seed: u64, max_age: Duration) -> Self {
        Self {
            rules,
            random: Random::new(seed),
            max_age,
        }
    }

    /// Whether the last answer is good enough, so that the URL need not be asked. What was in the body is not kept.
    pub(super) fn is_fresh(&self, now: Timestamp, queued: &Queued) -> bool {
        let Some(Past {
            answer,
            in_this_run: false,
            ..
        }) = queued.past.as_deref()
        else {
            return false;
        };
        let is_young = answer.checked_at.is_some_and(|at| {
            let age = Duration::try_from(now.duration_since(at)).unwrap_or_default();
            age < self.max_age
        });
        answer.verdict == Verdict::Ok && is_young && !queued.demand.links
    }

    /// What an answer makes of the life of its URL, and of what is known about the host.
    pub(super) fn decide(
        &mut self,
        now: Timestamp,
        queued: &Queued,
        answer: &Answer,
        guard: Option<Held>,
        facts: &mut HostFacts,
    ) -> (Life, Vec<Change>) {
        let past = queued.past.as_ref().and_then(|past| past.life.as_ref());
        let mut life = past.cloned().unwrap_or_default();
        let cleared = facts.cleared();
        let context = Context {
            // The answer itself shows that the host works.
            is_control_fine: answer
                .status
                .is_some_and(|status| status < 500 && status != 429),
            guard,
            stopped: Duration::ZERO,
            longest_cleared: cleared.longest(now),
        };
        let verdict = (answer.verdict, answer.status);
        let decision = self
            .rules
            .decide(now, &mut life, verdict, &context, &mut self.random);
        if let Some(lasted) = decision.cleared {
            facts.note_cleared(now, lasted);
        }
        facts.note_verdict(now, answer.verdict);
        let change = decision.transition;
        let change = change.map(|transition| Change::new(&transition, answer.status));
        (life, change.into_iter().collect())
    }
}
