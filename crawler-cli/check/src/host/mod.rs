//! The work of a check at one host: asks the URLs of its tasks, follows redirects, and judges the answers.
//!
//! The [`Scheduler`](crawl::scheduler::Scheduler) drives the work of all hosts. The caller feeds each [`Host`]
//! with tasks while it has [room](Host::room), takes outcomes and hops from [`Shared`], and passes each hop to the host
//! where it leads. The client's own rules allow all addresses; calls for URLs that may not reach private addresses have
//! rules of their own.
//!
//! This file has the host: what waits, what is asked next, and when nothing is asked. `robots` is what is asked before the
//! URLs, `url_check` the story of one URL from its first request to its verdict, and `page` what the body of a good answer
//! says. `shared` is what the caller gives and takes.
//!
//! Invariants: each task has one outcome. Until two HEAD verdicts of the host are known, at most two URLs are asked by
//! HEAD at a time. An attempt at a URL takes at most three requests, redirects apart.

mod page;
mod robots;
mod shared;
#[cfg(test)]
mod tests;
mod url_check;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use courser::error::TimeLimit;
use courser::{Error, ErrorKind, Report, Request, Response, Timeouts};
use url::{Position, Url};

use self::page::AnswerBody;
use self::robots::{RobotsFetch, RobotsStage};
use self::url_check::{LastAnswer, Reply, Trial};
use super::task::{Hop, Reach, Task, UrlId};
use crawl::calls::Drive;
use crawl::politeness::Politeness;
use crawl::retry::{self, Decision};
use crawl::retry_queue::RetryQueue;
use crawl::robots::Robots;
use crawl::stats::{Reason, Stats, Waiting};
use crawl::work::{Body, HostWork, RequestId, Submission};
use plain::origin::{is_loopback, same_host};
use plain::random::seed_of_host;
use verdict::{Ask, Cause, HeadFacts, HeadFault, Verdict};

pub use shared::{HeadUse, Observe, Policy, Purpose, Shared};
pub(crate) use url_check::UrlCheck;
pub use url_check::is_private_literal;

/// The work at one host.
#[derive(Debug)]
pub struct Host {
    root: Url,
    /// The proxy for the host, without credentials.
    proxy: Option<String>,
    policy: Arc<Policy>,
    /// First in, first out; but the next request of an attempt goes before all others.
    queue: RetryQueue<Fetch>,
    in_flight: BTreeMap<RequestId, InFlight>,
    /// The requests so far.
    sent: u64,
    politeness: Politeness,
    robots: RobotsStage,
    /// Why robots.txt could not be read.
    unread_robots: Option<(Cause, String)>,
    /// Whether the sitemaps of the host are read, too: links of its pages are wanted.
    wants_sitemaps: bool,
    /// Tasks and hops so far.
    added: u64,
    trial: Trial,
    breaker: BreakerWatch,
    given_up: Option<GivenUp>,
    /// Until when the host asked for no requests, for longer than a single run would wait.
    rests_until: Option<Instant>,
}

/// Something to request.
#[derive(Debug)]
enum Fetch {
    Url(Box<UrlCheck>),
    Robots(Box<RobotsFetch>),
}

/// A request that was sent.
#[derive(Debug)]
struct InFlight {
    fetch: Fetch,
    /// The body of the answer, if it is read.
    body: Option<AnswerBody>,
}

/// Why a host was given up: what is said about its URLs that were not asked.
#[derive(Clone, Debug)]
struct GivenUp {
    /// The cause of the failure that ended the work.
    cause: Cause,
    /// The cause in words.
    detail: String,
    /// How long the host is left alone, and until when; `None`: for the rest of the run.
    rest: Option<(Duration, Instant)>,
}

/// The end of what is said about the URLs of a host that was given up.
pub const GIVEN_UP: &str = "the host was given up";

impl Host {
    /// The work at the host with this root URL, without tasks. `proxy`: the proxy for the host, without credentials.
    pub fn new(root: Url, proxy: Option<String>, policy: Arc<Policy>) -> Self {
        let mut own = policy.host.clone();
        let seed = own.seed.map(|seed| seed_of_host(seed, root.as_str()));
        own.seed = seed;
        own.rate = own
            .rate
            .filter(|_| !policy.spares_loopback || !is_loopback(&root));
        Self {
            politeness: Politeness::new(&own),
            root,
            proxy,
            policy,
            queue: RetryQueue::default(),
            in_flight: BTreeMap::new(),
            sent: 0,
            robots: RobotsStage::NotNeeded,
            unread_robots: None,
            wants_sitemaps: false,
            added: 0,
            trial: Trial::default(),
            breaker: BreakerWatch::default(),
            given_up: None,
            rests_until: None,
        }
    }

    /// Believes what an earlier run has learned about HEAD at the host.
    pub fn believe(&mut self, fault: HeadFault) {
        self.trial = Trial::new(HeadFacts::learned(fault));
    }

    /// Why the host is not asked by HEAD; `None` if HEAD is used.
    pub fn head_fault(&self) -> Option<HeadFault> {
        self.trial.facts.fault()
    }

    /// The URL of the host's root.
    pub fn root(&self) -> &Url {
        &self.root
    }

    /// How many further tasks the host has room for. Hops always find room.
    pub fn room(&self) -> usize {
        QUEUE.saturating_sub(self.queue.len())
    }

    /// Gives back the tasks for which nothing was asked yet, as far as `is_wanted` says so: their names.
    pub fn recall(&mut self, is_wanted: impl Fn(UrlId) -> bool) -> Vec<UrlId> {
        let is_new = |fetch: &Fetch| match fetch {
            Fetch::Url(check) => check.is_untouched() && is_wanted(check.task.id),
            Fetch::Robots(_) => false,
        };
        let recalled = self.queue.take_last(usize::MAX, is_new).into_iter();
        let ids = recalled.filter_map(|fetch| match fetch {
            Fetch::Url(check) => Some(check.task.id),
            Fetch::Robots(_) => None,
        });
        ids.collect()
    }

    /// Whether the host was given up, and has not answered since.
    pub fn is_given_up(&self) -> bool {
        self.given_up.is_some()
    }

    /// Adds a URL of this host. Its outcome comes at once if the host was given up for the rest of the run.
    pub fn add_task(&mut self, task: Task, shared: &mut Shared) {
        let check = UrlCheck::new(task, &self.policy);
        self.add(Box::new(check), shared);
    }

    /// Adds a URL that a redirect of another host leads to.
    pub fn add_hop(&mut self, hop: Hop, shared: &mut Shared) {
        self.add(hop.0, shared);
    }

    fn add(&mut self, mut check: Box<UrlCheck>, shared: &mut Shared) {
        if let Some(given_up) = &self.given_up
            && given_up.rest.is_none()
        {
            let verdict = Verdict::Failed(given_up.cause);
            let detail = Some(given_up.detail.clone());
            check.last = LastAnswer::default(); // it was that of another URL
            return self.report(check, verdict, detail, shared);
        }
        self.added += 1;
        self.wants_sitemaps |= self.policy.sitemaps
            && check.task.wants_links
            && same_host(&check.task.url, &self.root);
        let needs_robots = self.added > 1 || !check.task.given || self.wants_sitemaps;
        if needs_robots && self.robots == RobotsStage::NotNeeded {
            self.robots = match self.policy.host.robots || self.wants_sitemaps {
                true => RobotsStage::Wanted,
                false => RobotsStage::Known,
            };
        }
        self.queue.push_last(Fetch::Url(check));
    }

    /// What holds the next request back at `now`, if something waits.
    pub fn waiting(&mut self, now: Instant) -> Option<Waiting> {
        let until = self.breaker.until.filter(|until| *until > now);
        if self.queue.is_empty() {
            return None;
        }
        let paused = until.map(|until| Waiting {
            reason: Reason::BackOff,
            until,
        });
        let is_ready = self.has_ready();
        paused.or_else(|| self.politeness.waiting(now, is_ready))
    }

    /// The earliest time of the next request by pauses and rates; `None`: at any time.
    pub fn next_at(&mut self, now: Instant) -> Option<Instant> {
        self.politeness.next_at(now)
    }

    /// The delay between two requests that robots.txt asks for, if it is longer than that of the policy.
    pub fn robots_delay(&self) -> Option<Duration> {
        self.politeness.robots_delay()
    }
}

/// The next request, and its end.
impl Host {
    /// Whether a ready request may be sent, apart from politeness.
    fn may_begin(&self, fetch: &Fetch) -> bool {
        let Fetch::Url(check) = fetch else {
            return true;
        };
        let may_ask = match self.robots {
            RobotsStage::NotNeeded | RobotsStage::Known => true,
            RobotsStage::Wanted | RobotsStage::Asked => check.goes_on,
            RobotsStage::Failing => check.goes_on || check.task.given,
        };
        may_ask && (check.is_on_trial || !check.uses_head() || !self.trial.is_full())
    }

    /// Whether all ready requests may be sent, apart from politeness: the usual case.
    fn is_free(&self) -> bool {
        let knows_robots = matches!(self.robots, RobotsStage::NotNeeded | RobotsStage::Known);
        knows_robots && !self.trial.is_full()
    }

    fn has_ready(&self) -> bool {
        self.robots == RobotsStage::Wanted
            || match self.is_free() {
                true => self.queue.ready().len() > 0,
                false => self.queue.ready().any(|fetch| self.may_begin(fetch)),
            }
    }

    fn pop_ready(&mut self) -> Option<Fetch> {
        if self.is_free() {
            return self.queue.pop_ready();
        }
        let at = self
            .queue
            .ready()
            .rposition(|fetch| self.may_begin(fetch))?;
        self.queue.remove_ready(at)
    }

    fn next(&mut self, now: Instant, shared: &mut Shared) -> Option<Fetch> {
        if self.robots == RobotsStage::Wanted {
            self.robots = RobotsStage::Asked;
            let is_sitemap = !self.policy.host.robots;
            return Some(Fetch::Robots(Box::new(RobotsFetch::new(
                &self.root, is_sitemap,
            ))));
        }
        loop {
            // Postponed requests go first: the time for their retries is limited.
            // But not while the host seems silent: others may be answered.
            let wants_new = self.breaker.until.is_some() || self.politeness.is_doubtful();
            let fetch = match wants_new {
                true => self.pop_ready().or_else(|| self.queue.pop_due(now)),
                false => self.queue.pop_due(now).or_else(|| self.pop_ready()),
            };
            match fetch? {
                Fetch::Url(check) if self.is_disallowed(&check) => {
                    let (cause, detail) = self.why_disallowed();
                    self.report(check, Verdict::Failed(cause), Some(detail), shared);
                }
                fetch => return Some(fetch),
            }
        }
    }

    /// Whether robots.txt forbids the URL. It has no say about URLs that were given.
    fn is_disallowed(&self, check: &UrlCheck) -> bool {
        let target = &check.url()[Position::BeforePath..Position::AfterQuery];
        !check.task.given && !self.politeness.is_allowed(target)
    }

    /// What is said about a URL that robots.txt forbids. Without robots.txt all are forbidden (RFC 9309 §2.3.1.4), but a host
    /// that could not be asked is what failed.
    fn why_disallowed(&self) -> (Cause, String) {
        let Some((cause, detail)) = &self.unread_robots else {
            return (Cause::Robots, "robots.txt disallows the URL".to_owned());
        };
        let is_answered = matches!(cause, Cause::Status5xx(_) | Cause::Throttled);
        let cause = if is_answered { Cause::Robots } else { *cause };
        (cause, format!("robots.txt could not be read: {detail}"))
    }

    /// Writes the head of a request into an empty request.
    fn write(
        &mut self,
        now: Instant,
        fetch: &mut Fetch,
        request: &mut Request,
        shared: &Shared,
    ) -> Submission {
        self.sent += 1;
        let mut submission = Submission {
            id: RequestId(self.sent),
            timeouts: None,
            addresses: None,
            streaming: true,
        };
        match fetch {
            Fetch::Url(check) => {
                let ask = check.write(now, &mut self.trial, request, shared);
                submission.streaming = ask != Ask::Head;
                submission.timeouts = check.is_slow.then(|| self.own_timeouts());
                if check.reach == Reach::Public && !self.policy.allow_private {
                    submission.addresses = Some(Arc::clone(&shared.public));
                }
            }
            Fetch::Robots(robots) => {
                shared.note_sent(None, "GET", Purpose::Robots);
                robots.write(now, request);
            }
        }
        submission
    }

    /// The time limits for a URL for which the usual wait of the host was too short.
    fn own_timeouts(&self) -> Timeouts {
        let all = Some(self.policy.timeout);
        Timeouts {
            total: all,
            total_streamed: all,
            first_byte: all,
            ..Timeouts::none()
        }
    }

    /// A request has ended, with the body that was read of its answer.
    fn ended(&mut self, id: RequestId, shared: &mut Shared) -> Option<(Fetch, Option<AnswerBody>)> {
        let InFlight { fetch, body } = self.in_flight.remove(&id)?;
        self.politeness.handle_over();
        if let Some(body) = &body {
            shared.end_body(body);
        }
        Some((fetch, body))
    }
}

/// Times in which the host is not asked: the wait that it asks for by `Retry-After` (RFC 9110 §10.2.3), if it is longer than
/// the patience of a single run, and the rest of a host that was given up.
///
/// A single run asks other URLs of a host that asks for a long wait, and gives it up after a few such answers; a host that
/// was given up stays so. With [`Policy::asks_for_days`], both end: a host that was given up is then asked for one URL. If
/// that is not answered, it rests again, for twice as long.
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
    fn keep_long_wait(&mut self, now: Instant, decision: Decision) -> bool {
        let (Decision::GiveUp(reason) | Decision::GiveUpHost(reason)) = decision else {
            return false;
        };
        match reason {
            retry::Reason::LongWait(wait) if self.policy.asks_for_days => {
                self.rest_until(now + wait.min(LONGEST_WAIT));
                true
            }
            _ => false,
        }
    }

    /// Nothing is asked any more, or not for a while. URLs that wait, and URLs that come, are reported with this cause. A
    /// host that rests already keeps the cause that it has.
    fn give_up(&mut self, now: Instant, cause: Cause, detail: Option<String>, shared: &mut Shared) {
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

    /// Reports all URLs that wait while the host rests. Returns whether the host rests.
    fn refuse_while_resting(&mut self, now: Instant, shared: &mut Shared) -> bool {
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

impl HostWork for Host {
    type Shared<'s> = Shared;

    fn stats(shared: &mut Shared) -> &mut Stats {
        &mut shared.stats
    }

    fn poll_request(
        &mut self,
        now: Instant,
        request: &mut Request,
        shared: &mut Shared,
    ) -> Option<Submission> {
        if self.refuse_while_resting(now, shared) {
            return None;
        }
        let in_flight = self.in_flight.len();
        let is_probed = self.given_up.is_some() && in_flight > 0;
        if is_probed || !self.breaker.may_send(now, in_flight) || !self.politeness.may_send(now) {
            return None;
        }
        let mut fetch = self.next(now, shared)?;
        self.politeness.handle_sent(now);
        let submission = self.write(now, &mut fetch, request, shared);
        let sent = InFlight { fetch, body: None };
        self.in_flight.insert(submission.id, sent);
        Some(submission)
    }

    fn poll_timeout(&mut self, now: Instant, _: &Shared) -> Option<Instant> {
        if self.is_resting(now) && !self.queue.is_empty() {
            return Some(now); // what waits is to be refused
        }
        let breaker = self.breaker.until;
        let asks_one = breaker.is_some() || self.given_up.is_some();
        if !self.politeness.has_room() || asks_one && !self.in_flight.is_empty() {
            return None;
        }
        let due = match self.has_ready() {
            true => now,
            false => self.queue.next_due()?,
        };
        let held = self.politeness.next_at(now);
        held.into_iter().chain(breaker).chain([due]).max()
    }

    fn handle_report(&mut self, id: RequestId, report: &Report, shared: &mut Shared) {
        if let Some(observer) = &shared.observer {
            observer.ended(report);
        }
        let sent = self.in_flight.get_mut(&id);
        if let Some(Fetch::Url(check)) = sent.map(|sent| &mut sent.fetch) {
            check.handle_report(report, self.proxy.is_some());
        }
    }

    fn handle_reply(
        &mut self,
        now: Instant,
        id: RequestId,
        response: &Response,
        shared: &mut Shared,
        _: &mut dyn Drive,
    ) {
        // A response that was not streamed, or whose body is empty.
        if self.handle_head(now, id, response, shared) == Body::Wanted
            && self.handle_data(now, id, response.body(), shared) == Body::Wanted
        {
            self.handle_end(now, id, shared);
        }
    }

    fn handle_failure(
        &mut self,
        now: Instant,
        id: RequestId,
        error: Error,
        _: Option<&Response>,
        shared: &mut Shared,
        _: &mut dyn Drive,
    ) {
        let Some((mut fetch, body)) = self.ended(id, shared) else {
            return;
        };
        if let ErrorKind::BreakerOpen(until) = *error.kind() {
            return self.breaker_open(now, fetch, until, shared);
        }
        if let (Fetch::Url(check), ErrorKind::Timeout(TimeLimit::Adaptive)) =
            (&mut fetch, error.kind())
        {
            check.is_slow = true;
        }
        self.request_failed(now, fetch, body, &error, shared);
    }

    fn handle_head(
        &mut self,
        now: Instant,
        id: RequestId,
        response: &Response,
        shared: &mut Shared,
    ) -> Body {
        let Some(sent) = self.in_flight.get_mut(&id) else {
            return Body::Unwanted;
        };
        let reply = Reply::of(response, &self.policy);
        self.given_up.take_if(|given_up| given_up.rest.is_some());
        if !reply.answer.is_throttling() {
            self.politeness.handle_answer(now);
            self.breaker.handle_answer(response.status());
        }
        let wanted = match &mut sent.fetch {
            Fetch::Url(check) => {
                check.handle_dropped_lines(response.dropped_lines());
                check.wanted(&reply, self.policy.max_body)
            }
            Fetch::Robots(robots) => robots.wanted(&reply, self.policy.max_body),
        };
        if let Some(limit) = wanted {
            sent.body = Some(AnswerBody::new(&reply, limit));
            return Body::Wanted;
        }
        match self.ended(id, shared) {
            Some((Fetch::Url(check), _)) => self.answered(now, check, &reply, shared),
            Some((Fetch::Robots(robots), _)) => self.robots_answered(now, robots, &reply, shared),
            None => {}
        }
        Body::Unwanted
    }

    fn handle_data(
        &mut self,
        now: Instant,
        id: RequestId,
        bytes: &[u8],
        shared: &mut Shared,
    ) -> Body {
        let sent = self.in_flight.get_mut(&id);
        let Some(body) = sent.and_then(|sent| sent.body.as_mut()) else {
            return Body::Unwanted;
        };
        if shared.add_to_body(body, bytes) {
            return Body::Wanted;
        }
        // What is left is not needed.
        self.handle_end(now, id, shared);
        Body::Unwanted
    }

    fn handle_end(&mut self, now: Instant, id: RequestId, shared: &mut Shared) {
        match self.ended(id, shared) {
            Some((Fetch::Url(check), Some(body))) => self.body_read(now, check, &body, shared),
            Some((Fetch::Robots(robots), Some(body))) => self.robots_read(&robots, &body, shared),
            _ => {}
        }
    }

    fn politeness(&mut self) -> &mut Politeness {
        &mut self.politeness
    }

    fn is_done(&self) -> bool {
        self.queue.is_empty() && self.in_flight.is_empty()
    }
}

/// The state of the host's breaker, as far as calls that were refused by the breaker tell.
#[derive(Debug, Default)]
struct BreakerWatch {
    /// Until when the breaker is open. Stays set until an answer closes the breaker: then one request is sent at a time.
    until: Option<Instant>,
    /// When the breaker opened first after the last good answer.
    since: Option<Instant>,
    /// The last failure that counted.
    failure: Option<(Cause, Option<String>)>,
}

impl BreakerWatch {
    /// Whether a request may be sent, if so many are in flight.
    fn may_send(&self, now: Instant, in_flight: usize) -> bool {
        self.until
            .is_none_or(|until| until <= now && in_flight == 0)
    }

    /// The host answered.
    fn handle_answer(&mut self, status: u16) {
        match status {
            500..=599 => self.failure = Some((Cause::Status5xx(status), None)),
            _ => {
                self.until = None;
                self.since = None;
            }
        }
    }

    /// A request failed.
    fn handle_failure(&mut self, cause: Cause, detail: &str) {
        self.failure = Some((cause, Some(detail.to_owned())));
    }

    /// The breaker refused a request, until this time. Returns whether the host fails for longer than the patience.
    fn handle_open(&mut self, now: Instant, until: Instant, patience: Duration) -> bool {
        // A half-open breaker that lets no further call through says `now`.
        let until = until.max(now + SHORTEST_PAUSE);
        self.until = self.until.max(Some(until));
        let since = *self.since.get_or_insert(now);
        let end = since.checked_add(patience);
        end.is_some_and(|end| until > end)
    }

    /// The failure that opened the breaker.
    fn failure(&self) -> (Cause, Option<String>) {
        let unknown = || (Cause::Timeout, None);
        self.failure.clone().unwrap_or_else(unknown)
    }
}

/// The number of tasks of a host that wait in memory.
const QUEUE: usize = 256;

/// The longest wait that a host can ask for.
const LONGEST_WAIT: Duration = Duration::from_secs(86_400);

/// How long a host that was given up is left alone at first, and at most.
const FIRST_REST: Duration = Duration::from_secs(30);
const LONGEST_REST: Duration = Duration::from_secs(900);

/// The shortest pause after a request that the breaker refused.
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);
