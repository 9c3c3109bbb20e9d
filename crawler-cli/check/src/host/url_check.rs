//! The story of one URL: its requests, their answers, confirming requests, redirects, retries, and the verdict.
//!
//! [`Attempt`] has the table of HEAD and GET: which request comes next. A bad end of redirects of HEAD is asked once more,
//! by GET from the URL itself. [`Trial`] learns from all URLs how the host treats HEAD.

use std::mem;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use courser::{AddressPolicy, Codings, CookieJar, Error, Report, Request, Response, proto};
use url::Url;

use super::page::{self, AnswerBody};
use super::{Fetch, HeadUse, Host, Policy, Purpose, Shared};
use crate::challenge::{blocked_by, is_challenge_page};
use crate::failure::Failure;
use crate::record::LENIENT;
use crate::task::{Hop, Outcome, Page, Reach, Task};
use crawl::failure::{FailureScope, is_opening};
use crawl::redirect::{Chain, NotFollowed};
use crawl::retry::{Decision, Failed, Others, Reason, decide};
use crawl::retry_queue::Attempts;
use crawl::stats;
use plain::origin::same_host;
use verdict::{
    Answer, Ask, Attempt, Cause, Class, Evidence, HeadFacts, HeadVerdict, ResponseFacts, Step,
    Verdict,
};

/// The check of one URL.
#[derive(Debug)]
pub(crate) struct UrlCheck {
    pub(super) task: Task,
    /// Which addresses may be dialled for the URL to be asked now.
    pub(super) reach: Reach,
    attempt: Attempt,
    attempts: Attempts,
    /// `None` without redirects.
    chain: Option<Box<Chain>>,
    /// What HEAD has to do with the redirects.
    led: Led,
    /// The cookies of its redirects, each for its host alone. Some pages redirect to themselves with one.
    cookies: Option<Box<CookieJar>>,
    /// The next request belongs to the attempt that has begun.
    pub(super) goes_on: bool,
    /// Whether the HEAD verdict of the URL is awaited: [`Trial`].
    pub(super) is_on_trial: bool,
    /// Whether the usual wait of the host was too short for the URL.
    pub(super) is_slow: bool,
    page: Option<Box<Page>>,
    pub(super) last: LastAnswer,
    /// The last answer asked for this wait.
    pub(super) retry_after: Option<Duration>,
    /// The most lines that were dropped from the head of an answer, of the URL or of a redirect.
    dropped_lines: u32,
}

/// How the URL to be asked now was reached.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Led {
    /// Without a redirect of HEAD.
    Plainly,
    /// By a redirect of HEAD, which the server may treat wrongly: nothing bad is believed.
    ByHead,
    /// By GET, from the start again.
    Again,
}

/// The last answer or failure.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LastAnswer {
    status: Option<u16>,
    method: Option<&'static str>,
    latency: Option<Duration>,
    address: Option<IpAddr>,
    is_private: bool,
}

impl UrlCheck {
    pub(super) fn new(task: Task, policy: &Policy) -> Self {
        let first = match policy.head {
            _ if task.wants_links => Ask::Get,
            HeadUse::Auto => Ask::Head,
            HeadUse::Never => Ask::FirstByte,
        };
        Self {
            reach: task.reach,
            attempt: Attempt::new(first),
            attempts: Attempts::default(),
            chain: None,
            led: Led::Plainly,
            cookies: None,
            goes_on: false,
            is_on_trial: false,
            is_slow: false,
            page: None,
            last: LastAnswer::default(),
            retry_after: None,
            dropped_lines: 0,
            task,
        }
    }

    /// The URL to ask now.
    pub(crate) fn url(&self) -> &Url {
        match &self.chain {
            Some(chain) => chain.url(),
            None => &self.task.url,
        }
    }

    /// Whether the URL would be asked by HEAD next.
    pub(super) fn uses_head(&self) -> bool {
        self.attempt.ask() == Ask::Head
    }

    /// Whether the URL was not asked yet.
    fn is_new(&self) -> bool {
        self.last.method.is_none()
    }

    /// Why the next request is sent.
    fn purpose(&self) -> Purpose {
        match (self.attempt.requests(), self.attempts.made()) {
            (1.., _) => Purpose::Confirm,
            (0, 1..) if !self.goes_on => Purpose::Retry,
            _ => Purpose::First,
        }
    }

    /// Whether nothing was asked for the URL, and no redirect has led to it.
    pub(super) fn is_untouched(&self) -> bool {
        self.is_new() && self.chain.is_none() && self.attempts.made() == 0
    }

    /// How many bytes of the body of the answer with this head are read, if the body is wanted.
    pub(super) fn wanted(&mut self, reply: &Reply<'_>, max_body: u64) -> Option<u64> {
        if self.attempt.ask() != Ask::Get {
            return None;
        }
        let ResponseFacts { status, .. } = reply.answer;
        if !self.is_page(status) {
            let may_be_challenge = matches!(status, 202 | 500..=599)
                && !reply.answer.is_throttling()
                && !reply.answer.is_accepted
                && !reply.answer.is_blocked;
            return may_be_challenge.then_some(EXCERPT);
        }
        let format = page::format(self.url(), reply.content_type().as_deref());
        if format.is_none() {
            self.page = Some(Box::new(page::unread(self.url())));
        }
        format.map(|format| format.longest(max_body))
    }

    /// Whether the body of an answer with this status is read for links. Else it is read to tell challenges.
    fn is_page(&self, status: u16) -> bool {
        self.task.wants_links && matches!(status, 200..=299)
    }

    /// Adds the redirect of an answer to the chain, and keeps its cookies.
    fn follow(&mut self, reply: &Reply<'_>, limit: u32) -> Result<(), NotFollowed> {
        if self.uses_head() && self.led == Led::Plainly {
            self.led = Led::ByHead;
        }
        let has_new_cookie = self.keep_cookies(reply);
        let new = || Box::new(Chain::new(&self.task.url));
        let chain = self.chain.get_or_insert_with(new);
        let status = reply.answer.status;
        chain.follow(status, reply.location(), limit, has_new_cookie)
    }

    /// Keeps the cookies of an answer. Returns whether one is new.
    fn keep_cookies(&mut self, reply: &Reply<'_>) -> bool {
        let mut values = reply.response.header_all("set-cookie").peekable();
        let url = self.url().as_str().to_owned();
        let Ok(url) = proto::Url::parse(&url) else {
            return false;
        };
        if values.peek().is_none() {
            return false;
        }
        let new = || Box::new(CookieJar::new().with_public_suffixes(|_| true));
        let jar = self.cookies.get_or_insert_with(new);
        let shown = |jar: &CookieJar| {
            let mut header = Vec::new();
            jar.push_header(&url, &mut header);
            header
        };
        let before = shown(jar);
        jar.store(&url, values);
        shown(jar) != before
    }

    /// Begins again with a GET of the URL, if redirects of HEAD have led to a bad end. Returns whether they have.
    fn confirm_redirects(&mut self, verdict: Verdict) -> bool {
        let class = verdict.cause().map(Cause::class);
        let is_bad = matches!(class, Some(Class::Negative | Class::Network));
        if self.led != Led::ByHead || !is_bad {
            return false;
        }
        self.led = Led::Again;
        self.chain = None;
        self.cookies = None;
        self.reach = self.task.reach;
        self.attempt = Attempt::new(Ask::FirstByte);
        self.goes_on = true;
        true
    }

    /// What a verdict says about HEAD at the host of the URL, after redirects of HEAD led to a bad end.
    fn verdict_of_redirects(&self, verdict: Verdict) -> Option<HeadVerdict> {
        let lied = match verdict {
            Verdict::Ok => HeadVerdict::Lied,
            _ => HeadVerdict::Confirmed,
        };
        (self.led == Led::Again).then_some(lied)
    }

    /// Begins a request: writes its head into an empty request. Returns how the URL is asked.
    pub(super) fn write(
        &mut self,
        now: Instant,
        trial: &mut Trial,
        request: &mut Request,
        shared: &Shared,
    ) -> Ask {
        trial.begin(self);
        let purpose = self.purpose();
        let ask = self.attempt.begin_request(&trial.facts);
        shared.note_sent(Some(self.task.id), ask.method(), purpose);
        match self.goes_on {
            true => self.attempts.handle_continued(now),
            false => self.attempts.handle_sent(now),
        }
        self.goes_on = false;
        self.last = LastAnswer {
            method: Some(ask.method()),
            ..LastAnswer::default()
        };
        request.set_method(ask.method());
        request.set_target(self.url().as_str());
        self.write_cookies(request);
        if self.task.wants_links {
            request.add_header("Accept", "text/html,*/*;q=0.8");
            request.decode(Codings::all());
            return ask;
        }
        request.add_header("Accept", "*/*");
        request.decode(Codings::none());
        if ask == Ask::FirstByte {
            request.add_header("Range", "bytes=0-0");
        }
        ask
    }

    fn write_cookies(&self, request: &mut Request) {
        let mut header = Vec::new();
        if let Some(jar) = &self.cookies
            && let Ok(url) = proto::Url::parse(self.url().as_str())
            && jar.push_header(&url, &mut header)
        {
            request.add_header("Cookie", header);
        }
    }

    /// The request has ended, or the head of its response arrived.
    pub(super) fn handle_report(&mut self, report: &Report, behind_proxy: bool) {
        let address = report.remote().and_then(|remote| remote.ip());
        self.last.latency = Some(report.timings().total);
        self.last.address = address.filter(|_| !behind_proxy);
        self.last.is_private = match (behind_proxy, address) {
            (false, Some(ip)) => is_private(ip),
            // Only a literal address tells where the proxy went.
            _ => is_private_literal(self.url()),
        };
    }

    /// So many wrong lines were dropped from the head of an answer.
    pub(super) fn handle_dropped_lines(&mut self, dropped: u32) {
        self.dropped_lines = self.dropped_lines.max(dropped);
    }

    /// The request did not reach the host, and does not count.
    fn take_back(&mut self) {
        self.attempts.discount();
        self.attempt.take_back();
        if self.attempts.made() == 0 {
            self.attempts = Attempts::default();
            self.last = LastAnswer::default();
        }
    }

    /// The outcome.
    fn outcome(self, verdict: Verdict, detail: Option<String>) -> Outcome {
        let is_good = verdict == Verdict::Ok;
        let lenient = match self.dropped_lines {
            0 => None,
            1 => Some(format!("{LENIENT}1 line dropped")),
            n => Some(format!("{LENIENT}{n} lines dropped")),
        };
        let detail = match (detail, lenient) {
            (Some(detail), Some(lenient)) => Some(format!("{detail}; {lenient}")),
            (detail, lenient) => detail.or(lenient),
        };
        let chain = self.chain.as_deref();
        let redirects = chain.map_or_else(Vec::new, |it| it.redirects().to_vec());
        let was_asked = self.last.method.is_some();
        let final_url = chain.filter(|chain| !chain.redirects().is_empty());
        let throttled = Verdict::Failed(Cause::Throttled);
        let answer = Answer {
            verdict,
            detail,
            status: self.last.status,
            method: self.last.method,
            moved_to: chain
                .filter(|_| is_good)
                .and_then(Chain::moved_to)
                .map(str::to_owned),
            final_url: final_url.map(|chain| String::from(chain.url().clone())),
            redirects,
            attempts: self.attempts.made().max(u32::from(was_asked)),
            latency: self.last.latency,
            address: self.last.address,
            checked_at: None,
        };
        Outcome {
            id: self.task.id,
            answer,
            is_private: self.last.is_private,
            retry_after: self.retry_after.filter(|_| verdict == throttled),
            page: self.page.filter(|_| is_good),
        }
    }
}

/// The head of a response.
#[derive(Debug)]
pub(super) struct Reply<'r> {
    pub(super) answer: ResponseFacts,
    pub(super) response: &'r Response,
}

impl<'r> Reply<'r> {
    pub(super) fn of(response: &'r Response, policy: &Policy) -> Self {
        let status = response.status();
        let may_wait = matches!(status, 429 | 503);
        let answer = ResponseFacts {
            status,
            retry_after: may_wait && response.header("retry-after").is_some(),
            is_blocked: blocked_by(response).is_some(),
            is_accepted: policy.accept.contains(status),
        };
        Self { answer, response }
    }

    /// Where a redirect leads. Values that differ lead nowhere.
    pub(super) fn location(&self) -> Option<&'r [u8]> {
        self.response.location().ok().flatten()
    }

    pub(super) fn content_type(&self) -> Option<String> {
        let value = self.response.header("content-type")?;
        Some(String::from_utf8_lossy(value).into_owned())
    }

    /// The answer as a refusal, with the wait that it asks for.
    pub(super) fn failed(&self) -> Failed {
        let retry_after = self.response.header("retry-after");
        Failed::of_status(
            self.answer.status,
            retry_after,
            self.response.header("date"),
        )
    }
}

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
        check.last.status = Some(reply.answer.status);
        match check.attempt.handle(Evidence::Answer(reply.answer)) {
            Step::Parked => {
                let failed = reply.failed();
                check.retry_after = failed.retry_after;
                let detail = match failed.retry_after {
                    Some(wait) => format!("asks to wait {} s", wait.as_secs()),
                    None => "asks for fewer requests".to_owned(),
                };
                self.failed(now, check, failed, Cause::Throttled, Some(detail), shared);
            }
            Step::Redirected => self.redirected(check, reply, shared),
            step => self.decided(now, check, step, blocked_by(reply.response), shared),
        }
    }

    /// The body of an answer was read, or as much of it as is needed.
    pub(super) fn body_read(
        &mut self,
        now: Instant,
        mut check: Box<UrlCheck>,
        body: &AnswerBody,
        shared: &mut Shared,
    ) {
        check.last.status = Some(body.status);
        let mut answer = ResponseFacts::of_status(body.status);
        answer.is_accepted = self.policy.accept.contains(body.status);
        match check.is_page(body.status) {
            true => check.page = Some(Box::new(page::read(check.url(), body))),
            false => answer.is_blocked = is_challenge_page(&body.bytes),
        }
        let detail = answer.is_blocked.then(|| "a challenge page".to_owned());
        let step = check.attempt.handle(Evidence::Answer(answer));
        self.decided(now, check, step, detail, shared);
    }

    /// A request failed without a complete answer. `body`: what had been read of the body of one.
    pub(super) fn request_failed(
        &mut self,
        now: Instant,
        fetch: Fetch,
        body: Option<AnswerBody>,
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
                let Failure { cause, detail, .. } = failure;
                return self.robots_failed(now, robots, failed, cause, detail, shared);
            }
        };
        if let Some(body) = body.filter(|body| !check.is_page(body.status)) {
            // The status alone decides.
            return self.body_read(now, check, &body, shared);
        }
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
                    self.trial.facts.note_range_refused();
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
            self.trial.facts.note_range_refused();
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
        if !check.last.is_private {
            check.reach = Reach::Public;
        }
        // The next request has the method of the one before (RFC 9110 §15.4).
        check.attempt = Attempt::new(match check.attempt.ask() {
            Ask::Head => Ask::Head,
            _ if check.task.wants_links => Ask::Get,
            _ => Ask::FirstByte,
        });
        check.goes_on = true;
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
            self.trial.facts.note(of_head);
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
                    // Others may be asked while the URL waits.
                    self.trial.release(&mut check);
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
    fn others<'a>(&'a self, check: &UrlCheck) -> Others {
        let of_url = |fetch: &'a Fetch| match fetch {
            Fetch::Url(check) => Some(&check.attempts),
            Fetch::Robots(_) => None,
        };
        let postponed = self.queue.postponed().filter_map(of_url);
        let in_flight = self
            .in_flight
            .values()
            .map(|it| &it.fetch)
            .filter_map(of_url);
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
            Fetch::Robots(robots) => {
                robots.attempts.discount();
                robots.attempts.made() == 0
            }
        };
        let patience = self.policy.host.retry.patience;
        let is_too_long = self.breaker.handle_open(now, until, patience);
        if !self.politeness.has_replied() || is_new && is_too_long {
            let (cause, detail) = self.breaker.failure();
            self.queue.push_next(fetch);
            return self.give_up(now, cause, detail, shared);
        }
        let until = self.breaker.until.unwrap_or(until);
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

/// How the host treats HEAD. Until two verdicts are known, at most two URLs are asked by HEAD at a time.
#[derive(Debug, Default)]
pub(super) struct Trial {
    pub(super) facts: HeadFacts,
    /// URLs whose HEAD verdict is awaited.
    open: usize,
}

impl Trial {
    /// Believes what an earlier run has learned.
    pub(super) fn new(facts: HeadFacts) -> Self {
        Self { facts, open: 0 }
    }

    /// Whether no further URL may be asked by HEAD until a verdict is known.
    pub(super) fn is_full(&self) -> bool {
        let most = match self.facts.is_suspected() {
            // The URL that is asked now decides.
            true => 1,
            false => MOST_ON_TRIAL,
        };
        self.open >= most && !self.facts.is_known()
    }

    /// A URL is about to be asked for the first time here.
    fn begin(&mut self, check: &mut UrlCheck) {
        if !self.facts.is_known() && check.uses_head() && !check.is_on_trial {
            check.is_on_trial = true;
            self.open += 1;
        }
    }

    /// Notes what the requests for a URL say about HEAD, if they say something already.
    fn note(&mut self, check: &mut UrlCheck) {
        if let Some(verdict) = check.attempt.take_head_verdict() {
            self.facts.note(verdict);
            self.release(check);
        }
    }

    /// No more requests for the URL are sent to this host.
    fn end(&mut self, check: &mut UrlCheck) {
        self.note(check);
        if check.is_on_trial {
            self.facts.note(HeadVerdict::Unclear);
            self.release(check);
        }
    }

    /// The HEAD verdict of the URL is no longer awaited.
    fn release(&mut self, check: &mut UrlCheck) {
        self.open -= usize::from(mem::take(&mut check.is_on_trial));
    }
}

/// The most URLs that are asked by HEAD at a time until two verdicts are known.
const MOST_ON_TRIAL: usize = 2;

/// The most bytes of a body that are read to find out whether the answer is a challenge.
const EXCERPT: u64 = 64 * 1024;

/// Whether an address is not public.
fn is_private(ip: IpAddr) -> bool {
    !AddressPolicy::deny_private().allows(ip)
}

/// Whether the host of a URL is a private address, or a name of this machine.
pub fn is_private_literal(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Ipv4(ip)) => is_private(ip.into()),
        Some(url::Host::Ipv6(ip)) => is_private(ip.into()),
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        None => false,
    }
}
