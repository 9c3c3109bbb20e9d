//! What an outcome makes of the life of its URL.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use url::Url;

use super::book::HostPage;
use super::failing::News;
use super::telling::Telling;
use crate::control::Pruned;
use crate::figures::Figures;
use check::task::Outcome;
use plain::random::Random;
use store::{Change, DueUrl, HostId, Judgement, Lane, NewDeadLetter};
use verdict::Answer;
use verdict::guard::{BudgetRules, PruneBudget};
use verdict::life::time::{after, between};
use verdict::life::{Context, Record as Life, Rules, Transition};
use verdict::{Cause, Verdict};

/// Judges outcomes.
pub(super) struct Judge {
    rules: Arc<Rules>,
    random: Random,
    budget: PruneBudget<HostId>,
    /// How many URLs are watched.
    urls: u64,
    /// Until when a URL waits for the budget.
    budget_spent_until: Option<Timestamp>,
    /// The time of the budget.
    budget_per: Duration,
    /// When the operator was to be told last that the budget is spent, and whether that was done.
    spent: Option<(Timestamp, bool)>,
    figures: Arc<Figures>,
    telling: Telling,
}

impl Judge {
    pub(super) fn new(rules: Rules, budget: BudgetRules, seed: u64, figures: Arc<Figures>) -> Self {
        Self {
            rules: Arc::new(rules),
            random: Random::new(seed),
            budget: PruneBudget::new(budget),
            urls: 0,
            budget_spent_until: None,
            budget_per: budget.per,
            spent: None,
            figures,
            telling: Telling::default(),
        }
    }

    pub(super) fn rules(&self) -> &Arc<Rules> {
        &self.rules
    }

    pub(super) fn set_rules(&mut self, rules: Rules) {
        self.rules = Arc::new(rules);
    }

    pub(super) fn set_budget(&mut self, rules: BudgetRules) {
        self.budget.set_rules(rules);
        self.budget_per = rules.per;
        // It may have room now.
        self.budget_spent_until = None;
    }

    pub(super) fn random_number(&mut self) -> u64 {
        self.random.next_number()
    }

    /// How many URLs are watched: the whole of which the budget is a share.
    pub(super) fn set_urls(&mut self, urls: u64) {
        self.urls = urls;
    }

    /// A URL was pruned before the start.
    pub(super) fn note_pruned(&mut self, at: Timestamp, host: HostId) {
        self.budget.note(at, &host);
    }

    /// How many URLs were pruned in the time of the budget, how many may be, and that time.
    pub(super) fn budget(&mut self, now: Timestamp) -> Pruned {
        let (pruned, most) = self.budget.used(now, self.urls);
        Pruned {
            pruned,
            most,
            per: self.budget_per,
        }
    }

    /// Whether a URL waits for the budget.
    pub(super) fn is_budget_spent(&self, now: Timestamp) -> bool {
        self.budget_spent_until.is_some_and(|until| now < until)
    }

    /// Whether the operator is to be told now that URLs wait for the budget: once in the time of the budget.
    pub(super) fn take_spent_news(&mut self) -> bool {
        let is_news = |(_, is_told): &mut (Timestamp, bool)| !std::mem::replace(is_told, true);
        self.spent.as_mut().is_some_and(is_news)
    }

    /// Judges an outcome.
    pub(super) fn judge(
        &mut self,
        now: Timestamp,
        due: DueUrl,
        outcome: Outcome,
        context: &Context,
        page: &mut HostPage,
    ) -> Judgement {
        let DueUrl {
            id, url, mut life, ..
        } = due;
        let (verdict, retry_after) = (outcome.answer.verdict, outcome.retry_after);
        let mut answer = outcome.answer;
        answer.checked_at = answer.checked_at.map(|_| now);
        let rules = Arc::clone(&self.rules);
        let taken = (verdict, answer.status);
        let decision = rules.decide(now, &mut life, taken, context, &mut self.random);
        let mut changes = Vec::new();
        let change = decision.transition;
        self.tell(now, &url, change.as_ref());
        changes.extend(change.map(|transition| Change::new(&transition, answer.status)));
        if let Some(lasted) = decision.cleared {
            page.facts.note_cleared(now, lasted);
            page.is_changed = true;
        }
        self.note_facts(now, verdict, page);
        let mut next = decision.due;
        if decision.is_to_prune {
            let permitted = self.budget.take(now, &id.host, page.urls, self.urls);
            if let Err(wait) = permitted {
                let is_old = |(at, _)| between(at, now) >= self.budget_per;
                if self.spent.is_none_or(is_old) {
                    self.spent = Some((now, false));
                }
                self.budget_spent_until = Some(after(now, wait));
            }
            let pruned = rules.prune(now, &mut life, permitted, &mut self.random);
            next = pruned.due;
            let change = pruned.transition;
            self.tell(now, &url, change.as_ref());
            changes.extend(change.map(|transition| Change::new(&transition, answer.status)));
        }
        if let Some(wait) = retry_after {
            // Not before the host wants it. A short wait makes no check come earlier.
            next = next.max(after(now, wait.min(LONGEST_WAIT)));
        }
        self.count(&answer, &changes);
        let dead_letter = dead_letter(now, &life, &answer);
        if let Some(letter) = &dead_letter {
            self.telling.tell_dead_letter(now, &url, letter);
        }
        let lane = Lane::of(life.state(), page.is_held());
        Judgement {
            id,
            answer: (!matches!(verdict, Verdict::Void(_))).then_some(answer),
            life,
            changes,
            next: Some((lane, next)),
            dead_letter,
        }
    }

    /// A host fails, or is back.
    pub(super) fn tell_host(&mut self, now: Timestamp, root: &Url, news: &News) {
        self.telling.tell_host(now, root, news);
    }

    fn tell(&mut self, now: Timestamp, url: &str, change: Option<&Transition>) {
        if let Some(change) = change {
            self.telling.tell(now, url, change);
        }
    }

    /// Facts are stored with the next judgement, but for the time of the last answer: once in a while is enough.
    fn note_facts(&self, now: Timestamp, verdict: Verdict, page: &mut HostPage) {
        let before = page.facts.answered_at;
        page.facts.note_verdict(now, verdict);
        let is_news = |before: Timestamp| now.duration_since(before) > ANSWERED_AGAIN;
        if page.facts.answered_at != before {
            match before.is_none_or(is_news) {
                true => page.is_changed = true,
                false => page.facts.answered_at = before,
            }
        }
    }

    fn count(&self, answer: &Answer, changes: &[Change]) {
        self.figures.results.note(answer.verdict, answer.status);
        for change in changes {
            self.figures.changes.note(change.from, change.to);
        }
        if matches!(answer.verdict, Verdict::Void(_)) {
            self.figures.guards.void.inc();
        }
    }
}

/// What needs a human: a URL that is none, and one that fails in a way that time does not heal, for the third time in a row.
fn dead_letter(now: Timestamp, life: &Life, answer: &Answer) -> Option<NewDeadLetter> {
    let attempts = life.failures();
    let cause = answer.verdict.cause()?;
    let is_due = match cause {
        Cause::InvalidUrl => true,
        Cause::RedirectLoop | Cause::Protocol => attempts >= CHECKS,
        _ => false,
    };
    is_due.then(|| NewDeadLetter {
        reason: match cause {
            Cause::InvalidUrl => "invalid_url".to_owned(),
            cause => cause.name().into_owned(),
        },
        attempts: attempts.max(1),
        last: last_exchange(answer),
        first_at: life.first_bad().unwrap_or(now),
        last_at: now,
    })
}

fn last_exchange(answer: &Answer) -> String {
    let mut text = String::new();
    for redirect in &answer.redirects {
        text.push_str(&format!("{} {}\n", redirect.status, redirect.url));
    }
    let method = answer.method.unwrap_or("-");
    let status = answer
        .status
        .map_or("-".to_owned(), |status| status.to_string());
    text.push_str(&format!("{method} {status}"));
    if let Some(detail) = &answer.detail {
        text.push_str(&format!("\n{detail}"));
    }
    text
}

/// Checks after which a failure that time does not heal becomes a dead letter.
const CHECKS: u32 = 3;

/// The longest wait that a host can ask for.
const LONGEST_WAIT: Duration = Duration::from_secs(7 * 86_400);

/// The time of the last answer of a host is stored this often.
const ANSWERED_AGAIN: jiff::SignedDuration = jiff::SignedDuration::from_hours(6);
