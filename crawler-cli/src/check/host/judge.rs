//! What follows from the answers and failures about URLs: verdicts, confirming requests, redirects, retries.

use std::time::Instant;

use courser::Error;

use super::body::BodyUse;
use super::fetch::Fetch;
use super::reply::Reply;
use super::{Host, Shared, UrlCheck, page};
use crate::check::task::{Hop, Reach};
use crate::check::verdict::{
    Answer, Cause, Class, Evidence, Failure, Step, Verdict, is_challenge_page,
};
use crate::crawl::failure::{FailureScope, is_opening};
use crate::crawl::origin::same_host;
use crate::crawl::redirect::NotFollowed;
use crate::crawl::retry::{Decision, Failed, Others, Reason, decide};
use crate::crawl::stats;

/// Answers and failures.
impl Host {
    /// The head of an answer decides.
    pub(super) fn answered(
        &mut self,
        now: Instant,
        mut check: Box<UrlCheck>,
        reply: &Reply<'_>,
        shared: &mut Shared,
    ) {
        check.handle_status(reply.answer.status);
        let step = check.attempt.handle(Evidence::Answer(reply.answer));
        match step {
            Step::Parked => {
                check.retry_after = reply.retry_after;
                let detail = match reply.retry_after {
                    Some(wait) => format!("asks to wait {} s", wait.as_secs()),
                    None => "asks for fewer requests".to_owned(),
                };
                let failed = reply.failed();
                self.failed(now, check, failed, Cause::Throttled, Some(detail), shared);
            }
            Step::Redirected => self.redirected(check, reply, shared),
            step => self.decided(now, check, step, reply.blocked_by.clone(), shared),
        }
    }

    /// The body of an answer was read, or as much of it as is needed.
    pub(super) fn body_read(
        &mut self,
        now: Instant,
        mut check: Box<UrlCheck>,
        shared: &mut Shared,
    ) {
        let Some(body) = check.body.take() else {
            return;
        };
        check.handle_status(body.status);
        let mut answer = Answer::of_status(body.status);
        answer.is_accepted = self.policy.accept.contains(body.status);
        match body.purpose {
            BodyUse::Challenge => answer.is_blocked = is_challenge_page(body.start.bytes()),
            BodyUse::Page => {
                let page = page::read(check.url(), &body);
                check.page = Some(Box::new(page));
            }
        }
        let detail = answer.is_blocked.then(|| "a challenge page".to_owned());
        let step = check.attempt.handle(Evidence::Answer(answer));
        self.decided(now, check, step, detail, shared);
    }

    /// A request failed without a complete answer.
    pub(super) fn request_failed(
        &mut self,
        now: Instant,
        fetch: Fetch,
        error: &Error,
        shared: &mut Shared,
    ) {
        let failure = self.failure(error);
        if let Some(sign) = failure.local_sign {
            shared.note_sign(sign);
        }
        let failed = Failed::new(failure.class, failure.scope);
        if failure.cause.class() == Class::Network {
            self.breaker.handle_failure(failure.cause, &failure.detail);
        }
        let mut check = match fetch {
            Fetch::Url(check) => check,
            Fetch::Robots(robots) => {
                return self.robots_failed(now, robots, failed, &failure, shared);
            }
        };
        let body = check.body.as_ref();
        if body.is_some_and(|body| body.purpose == BodyUse::Challenge) {
            // The status alone decides.
            return self.body_read(now, check, shared);
        }
        check.body = None;
        match check.attempt.handle(Evidence::Failure(failure.cause)) {
            // The engine asked the name servers; whether they are asked again depends on what is known of the host.
            Step::Judged(Verdict::Failed(Cause::DnsNxdomain)) | Step::Failed(_) => {
                let detail = Some(failure.detail);
                self.failed(now, check, failed, failure.cause, detail, shared);
            }
            step => self.decided(now, check, step, Some(failure.detail), shared),
        }
    }

    fn failure(&self, error: &Error) -> Failure {
        let mut failure = Failure::of(error);
        if let Some(proxy) = self.proxy.as_ref().filter(|_| is_opening(error.phase())) {
            failure.detail = format!("through {proxy}: {}", failure.detail);
        }
        failure
    }

    fn decided(
        &mut self,
        now: Instant,
        mut check: Box<UrlCheck>,
        step: Step,
        detail: Option<String>,
        shared: &mut Shared,
    ) {
        match step {
            Step::Confirm => {
                self.trial.note(&mut check);
                check.goes_on = true;
                self.queue.push_next(Fetch::Url(check));
            }
            Step::Judged(verdict) => {
                if verdict == Verdict::Ok && check.attempt.is_range_refused() {
                    self.trial.note_range_refused();
                }
                self.report(
                    check,
                    verdict,
                    detail.filter(|_| verdict != Verdict::Ok),
                    shared,
                );
            }
            Step::Failed(cause) => {
                let class = match cause {
                    Cause::Status5xx(status) => stats::Class::Status(status),
                    _ => stats::Class::Broken,
                };
                let failed = Failed::new(class, FailureScope::Request);
                self.failed(now, check, failed, cause, detail, shared);
            }
            // Only the head of an answer leads to these.
            Step::Parked | Step::Redirected => {
                self.report(check, Verdict::Failed(Cause::Protocol), detail, shared);
            }
        }
    }

    fn redirected(&mut self, mut check: Box<UrlCheck>, reply: &Reply<'_>, shared: &mut Shared) {
        if check.attempt.is_range_refused() {
            self.trial.note_range_refused();
        }
        self.trial.end(&mut check);
        if let Err(error) = check.follow(reply, self.policy.redirects) {
            let verdict = Verdict::Failed(match error {
                NotFollowed::NoLocation | NotFollowed::BadLocation(_) => Cause::Protocol,
                NotFollowed::Loop(_) => Cause::RedirectLoop,
                NotFollowed::TooMany(_) => Cause::TooManyRedirects,
            });
            return self.report(check, verdict, Some(error.to_string()), shared);
        }
        if !check.is_private() {
            check.reach = Reach::Public;
        }
        check.go_to_redirect();
        self.go_to(check, shared);
    }

    fn go_to(&mut self, check: Box<UrlCheck>, shared: &mut Shared) {
        match same_host(check.url(), &self.root) {
            true => self.queue.push_next(Fetch::Url(check)),
            false => shared.hops.push(Hop(check)),
        }
    }

    /// Ends the check of a URL.
    pub(super) fn report(
        &mut self,
        mut check: Box<UrlCheck>,
        verdict: Verdict,
        detail: Option<String>,
        shared: &mut Shared,
    ) {
        self.trial.end(&mut check);
        let may_ask = self.given_up.is_none() || !same_host(&check.task.url, &self.root);
        if may_ask && check.confirm_redirects(verdict) {
            return self.go_to(check, shared);
        }
        let of_head = check.verdict_of_redirects(verdict);
        if let Some(of_head) = of_head.filter(|_| same_host(&check.task.url, &self.root)) {
            self.trial.learn(of_head);
        }
        shared.outcomes.push(check.outcome(verdict, detail));
    }
}

/// Retries, and hosts that are given up.
impl Host {
    /// An attempt has failed, or the host asks for fewer requests.
    fn failed(
        &mut self,
        now: Instant,
        mut check: Box<UrlCheck>,
        failed: Failed,
        cause: Cause,
        detail: Option<String>,
        shared: &mut Shared,
    ) {
        if !failed.is_refusal {
            check.attempt.begin_again();
        }
        let verdict = Verdict::Failed(cause);
        let others = self.others(&check);
        let attempts = &mut check.attempts;
        let decision = decide(now, failed, attempts, others, &mut self.politeness);
        if self.keep_long_wait(now, decision) {
            return self.report(check, verdict, detail, shared);
        }
        match decision {
            Decision::RetryAt(due) if self.given_up.is_none() => {
                if failed.is_unanswered() {
                    self.trial.put_off(&mut check);
                }
                self.queue.postpone(due, Fetch::Url(check));
            }
            Decision::RetryAt(_) => {
                self.give_up(now, cause, detail.clone(), shared);
                self.report(check, verdict, detail, shared);
            }
            Decision::GiveUp(reason) => {
                let detail = self.because(reason, detail);
                self.report(check, verdict, detail, shared);
            }
            Decision::GiveUpHost(reason) => {
                let detail = self.because(reason, detail);
                self.give_up(now, cause, detail.clone(), shared);
                self.report(check, verdict, detail, shared);
            }
        }
    }

    fn because(&self, reason: Reason, detail: Option<String>) -> Option<String> {
        let patience = self.policy.host.retry.patience.as_secs_f64();
        match reason {
            Reason::Failure => detail,
            Reason::LongWait(wait) => Some(format!(
                "asks to wait {} s, longer than the patience of {patience} s",
                wait.as_secs()
            )),
            Reason::OnlyRefusals => Some(format!(
                "asked for fewer requests, and for nothing else within the patience of {patience} s"
            )),
        }
    }

    /// What is known about all other URLs, if this one is stuck.
    fn others(&self, check: &UrlCheck) -> Others {
        let postponed = self.queue.postponed().filter_map(Fetch::url_attempts);
        let in_flight = self.in_flight.iter().filter_map(Fetch::url_attempts);
        Others::of(&check.attempts, || self.has_ready(), in_flight, postponed)
    }

    /// The client's breaker refused a request, which was not sent. It waits, unless the host fails too long.
    pub(super) fn breaker_open(
        &mut self,
        now: Instant,
        mut fetch: Fetch,
        until: Instant,
        shared: &mut Shared,
    ) {
        let is_new = match &mut fetch {
            Fetch::Url(check) => {
                check.take_back();
                check.is_new()
            }
            Fetch::Robots(_) => {
                fetch.attempts().discount();
                fetch.attempts().made() == 0
            }
        };
        let patience = self.policy.host.retry.patience;
        let is_too_long = self.breaker.handle_open(now, until, patience);
        if !self.politeness.has_replied() || is_new && is_too_long {
            let (cause, detail) = self.breaker.failure();
            self.queue.push_next(fetch);
            return self.give_up(now, cause, detail, shared);
        }
        let until = self.breaker.until().unwrap_or(until);
        self.politeness.handle_pause(until);
        match fetch {
            Fetch::Url(check) if !is_new && self.is_impatient(&check, until) => {
                let (cause, detail) = self.breaker.failure();
                self.report(check, Verdict::Failed(cause), detail, shared);
            }
            fetch if is_new => self.queue.push_next(fetch),
            fetch => self.queue.postpone(until, fetch),
        }
    }

    /// Whether the patience with a URL ends before this time.
    fn is_impatient(&self, check: &UrlCheck, at: Instant) -> bool {
        let patience = self.policy.host.retry.patience;
        let first = check.attempts.first_sent_at();
        let end = first.and_then(|first| first.checked_add(patience));
        end.is_some_and(|end| at > end)
    }
}
