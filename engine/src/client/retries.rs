//! When a call is tried again: the client's rules or the call's own, and the retry budget of each host.

use std::time::Duration;

use super::hosts::Host;
use crate::client::progress::ActiveCall;
use crate::error::Error;
use crate::policy::{FailedAttempt, Retry, RetryBudget, RetryVia, Verdict, is_stale};
use crate::reactor::Overrides;
use crate::time::Time;

/// The rules of a client for further attempts.
pub(super) struct Retries {
    rules: Retry,
    budget: Option<RetryBudget>,
    /// Whether calls may be sent again because of an answer: by the client's rules, by the rules of any call so far, or by
    /// the send hook.
    looks_at_answers: bool,
}

impl Retries {
    /// The rules, and whether the send hook looks at answers.
    pub(super) fn new(rules: Retry, budget: Option<RetryBudget>, hook_looks: bool) -> Self {
        Self {
            looks_at_answers: hook_looks || rules.looks_at_statuses(),
            rules,
            budget,
        }
    }

    /// Notes the rules of a submitted call, if it has rules of its own.
    #[inline]
    pub(super) fn note_overrides(&mut self, own: Option<&Overrides>) {
        if let Some(rules) = own.and_then(|own| own.retry.as_ref()) {
            self.looks_at_answers |= rules.looks_at_statuses();
        }
    }

    /// Whether an answer is examined before its call ends.
    #[inline]
    pub(super) fn looks_at_answers(&self) -> bool {
        self.looks_at_answers
    }

    fn rules_of<'a>(&'a self, own: Option<&'a Overrides>) -> &'a Retry {
        own.and_then(|own| own.retry.as_ref())
            .unwrap_or(&self.rules)
    }

    /// Decides what happens to a call whose last attempt has failed. A connection that calls share counts as reused,
    /// because its state is unknown to each of the calls.
    pub(super) fn after_failure(
        &self,
        call: &mut ActiveCall,
        error: &Error,
        shares_connection: bool,
        now: Time,
        random: u64,
    ) -> Verdict {
        let rules = self.rules_of(call.overrides.as_deref());
        let failed = FailedAttempt {
            error,
            request: &call.request,
            attempt: call.client.failures,
            reused: call.timestamps.reused || shares_connection,
            bytes_sent: call.timestamps.bytes_out,
            elapsed: now.saturating_duration_since(call.timestamps.begun),
        };
        let verdict = rules.decide(&failed, call.client.stale_before, random);
        call.client.stale_before |= is_stale(&failed);
        verdict
    }

    /// The pause before a call is tried again because of its answer; `None` if the caller gets the answer.
    pub(super) fn after_answer(
        &self,
        call: &ActiveCall,
        now: Time,
        random: u64,
    ) -> Option<(Duration, RetryVia)> {
        let verdict = self.rules_of(call.overrides.as_deref()).decide_on_status(
            &call.request,
            &call.response,
            call.client.failures + 1,
            now.saturating_duration_since(call.timestamps.begun),
            random,
        );
        match verdict {
            Verdict::After { pause, via } => Some((pause, via)),
            _ => None,
        }
    }

    /// How many attempts a call may have.
    pub(super) fn max_attempts(&self, call: &ActiveCall) -> u32 {
        self.rules_of(call.overrides.as_deref()).max_attempts.get()
    }

    /// Takes a retry from the budget of a host; false if the budget is used up.
    pub(super) fn withdraw(&self, host: Option<&mut Host>, now: Time) -> bool {
        let (Some(budget), Some(host)) = (self.budget, host) else {
            return true;
        };
        let account = host.retries.get_or_insert_with(|| budget.start());
        account.withdraw(now.instant())
    }
}

/// Counts a call for the retry budget of its host, before its first attempt.
#[inline]
pub(super) fn note_request(host: &mut Host, call: &ActiveCall) {
    if let Some(account) = &mut host.retries
        && call.client.failures == 0
        && call.client.tried == 0
    {
        account.note_request();
    }
}
