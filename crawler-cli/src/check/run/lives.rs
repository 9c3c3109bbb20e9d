//! What a check with a state keeps of each URL and host from one run to the next.

use std::time::Duration;

use jiff::Timestamp;

use crate::check::guard::Reach;
use crate::check::life::time::after;
use crate::check::life::{Cleared, Context, Held, Record as Life, Rules};
use crate::check::verdict::{Cause, HEAD_FACTS_LAST, HeadFault, Verdict};
use crate::crawl::random::Random;
use crate::store::{Answer, Change, Episode, HostFacts, Past, Queued};

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
        }) = &queued.past
        else {
            return false;
        };
        let is_young = answer.checked_at.is_some_and(|at| {
            let age = Duration::try_from(now.duration_since(at)).unwrap_or_default();
            age < self.max_age
        });
        answer.verdict == Verdict::Ok && is_young && !queued.demand.links && !queued.demand.anchors
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
        let mut cleared = cleared(facts);
        let context = Context {
            // The answer itself shows that the host works. A missing name says nothing about a host.
            is_control_fine: answer
                .status
                .is_some_and(|status| status < 500 && status != 429),
            do_resolvers_agree: false,
            guard,
            stopped: Duration::ZERO,
            longest_cleared: cleared.longest(now),
        };
        let verdict = (answer.verdict, answer.status);
        let decision = self
            .rules
            .decide(now, &mut life, verdict, &context, &mut self.random);
        if let Some(lasted) = decision.cleared {
            cleared.note(now, lasted);
            let episodes = cleared.episodes();
            facts.episodes = episodes
                .map(|(ended, length)| Episode { ended, length })
                .collect();
        }
        let answered = Reach::of(answer.verdict) == Some(Reach::Answered);
        if answered && !matches!(answer.verdict.cause(), Some(Cause::Status5xx(_))) {
            facts.answered_at = Some(now);
        }
        let change = decision.transition.map(|transition| Change {
            at: transition.at,
            from: transition.from,
            to: transition.to,
            status: answer.status,
            why: transition.why.name().into_owned(),
        });
        (life, change.into_iter().collect())
    }
}

fn cleared(facts: &HostFacts) -> Cleared {
    let episodes = facts.episodes.iter();
    Cleared::from_episodes(episodes.map(|episode| (episode.ended, episode.length)))
}

/// What earlier runs have learned about HEAD, if that was not too long ago.
pub(super) fn head_fault(now: Timestamp, facts: &HostFacts) -> Option<HeadFault> {
    let holds = |until: Option<Timestamp>| until.is_some_and(|until| now < until);
    if holds(facts.no_head_until) {
        return Some(HeadFault::NoHead);
    }
    holds(facts.head_lies_until).then_some(HeadFault::Lies)
}

/// Keeps what this run has learned about HEAD. What an earlier run has learned is not believed for longer.
pub(super) fn note_head_fault(now: Timestamp, fault: HeadFault, facts: &mut HostFacts) {
    if head_fault(now, facts).is_none() {
        let until = Some(after(now, HEAD_FACTS_LAST));
        match fault {
            HeadFault::NoHead => facts.no_head_until = until,
            HeadFault::Lies => facts.head_lies_until = until,
        }
    }
}
