//! The check of one URL: its requests so far, its redirects and its last answer.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use courser::{Address, AddressPolicy, Codings, CookieJar, Report, Request, proto};
use url::Url;

use super::body::{AnswerBody, BodyStart, BodyUse, EXCERPT};
use super::observe::Purpose;
use super::page;
use super::policy::{HeadUse, Policy};
use super::reply::Reply;
use crate::check::record::LENIENT;
use crate::check::task::{Outcome, Page, Reach, Task};
use crate::check::verdict::{Ask, Attempt, Cause, Class, HeadVerdict, Verdict};
use crate::crawl::redirect::{Chain, NotFollowed, Redirect};
use crate::crawl::retry_queue::Attempts;

/// The check of one URL.
#[derive(Debug)]
pub(in crate::check) struct UrlCheck {
    pub(super) task: Task,
    /// Which addresses may be dialled for the URL to be asked now.
    pub(super) reach: Reach,
    pub(super) attempt: Attempt,
    pub(super) attempts: Attempts,
    /// `None` without redirects.
    chain: Option<Box<Chain>>,
    /// What HEAD has to do with the redirects.
    led: Led,
    /// The cookies of its redirects, each for its host alone. Some pages redirect to themselves with one.
    cookies: Option<Box<CookieJar>>,
    /// The next request belongs to the attempt that has begun.
    pub(super) goes_on: bool,
    /// Whether the HEAD verdict of the URL is awaited: [`Trial`](super::trial::Trial).
    pub(super) is_on_trial: bool,
    /// Whether the usual wait of the host was too short for the URL.
    pub(super) is_slow: bool,
    /// The most bytes of a body that is read.
    max_body: u64,
    /// The body that is being read.
    pub(super) body: Option<Box<AnswerBody>>,
    pub(super) page: Option<Box<Page>>,
    last: LastAnswer,
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
struct LastAnswer {
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
            max_body: policy.max_body,
            body: None,
            page: None,
            last: LastAnswer::default(),
            retry_after: None,
            dropped_lines: 0,
            task,
        }
    }

    /// The URL to ask now.
    pub(in crate::check) fn url(&self) -> &Url {
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
    pub(super) fn is_new(&self) -> bool {
        self.last.method.is_none()
    }

    /// Why the next request is sent.
    pub(super) fn purpose(&self) -> Purpose {
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

    /// Whether the body of the answer with this head is wanted. Then it is expected.
    pub(super) fn expect_body(&mut self, reply: &Reply<'_>) -> bool {
        let status = reply.answer.status;
        let may_be_challenge = matches!(status, 202 | 500..=599)
            && !reply.answer.is_throttling()
            && !reply.answer.is_accepted
            && !reply.answer.is_blocked;
        let purpose = match self.attempt.ask() {
            Ask::Get if self.task.wants_links && matches!(status, 200..=299) => BodyUse::Page,
            Ask::Get if may_be_challenge => BodyUse::Challenge,
            _ => return false,
        };
        let content_type = reply.content_type();
        if purpose == BodyUse::Page {
            let format = page::format(self.url(), content_type.as_deref());
            if format.is_none() {
                self.page = Some(Box::new(page::unread(self.url())));
                return false;
            }
        }
        let limit = match purpose {
            BodyUse::Page => self.max_body,
            BodyUse::Challenge => EXCERPT,
        };
        self.body = Some(Box::new(AnswerBody {
            purpose,
            start: BodyStart::new(limit),
            status,
            content_type,
        }));
        true
    }

    /// Prepares the request for the URL of the last redirect. It has the method of the one before (RFC 9110 §15.4).
    pub(super) fn go_to_redirect(&mut self) {
        let first = match self.attempt.ask() {
            Ask::Head => Ask::Head,
            _ if self.task.wants_links => Ask::Get,
            _ => Ask::FirstByte,
        };
        self.attempt = Attempt::new(first);
        self.goes_on = true;
    }

    /// Adds the redirect of an answer to the chain, and keeps its cookies.
    pub(super) fn follow(&mut self, reply: &Reply<'_>, limit: u32) -> Result<(), NotFollowed> {
        if self.uses_head() && self.led == Led::Plainly {
            self.led = Led::ByHead;
        }
        let has_new_cookie = self.keep_cookies(reply);
        let new = || Box::new(Chain::new(&self.task.url));
        let chain = self.chain.get_or_insert_with(new);
        chain.follow(reply.answer.status, reply.location, limit, has_new_cookie)
    }

    /// Keeps the cookies of an answer. Returns whether one is new.
    fn keep_cookies(&mut self, reply: &Reply<'_>) -> bool {
        let mut values = reply.cookies().peekable();
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
    pub(super) fn confirm_redirects(&mut self, verdict: Verdict) -> bool {
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
    pub(super) fn verdict_of_redirects(&self, verdict: Verdict) -> Option<HeadVerdict> {
        let lied = match verdict {
            Verdict::Ok => HeadVerdict::Lied,
            _ => HeadVerdict::Confirmed,
        };
        (self.led == Led::Again).then_some(lied)
    }

    /// Whether the last answer came from a private address.
    pub(super) fn is_private(&self) -> bool {
        self.last.is_private
    }

    /// Begins a request: writes its head into an empty request.
    pub(super) fn write(&mut self, now: Instant, ask: Ask, request: &mut Request) {
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
            request.header("Accept", "text/html,*/*;q=0.8");
            request.decode(Codings::all());
            return;
        }
        request.header("Accept", "*/*");
        request.decode(Codings::none());
        if ask == Ask::FirstByte {
            request.header("Range", "bytes=0-0");
        }
    }

    fn write_cookies(&self, request: &mut Request) {
        let mut header = Vec::new();
        if let Some(jar) = &self.cookies
            && let Ok(url) = proto::Url::parse(self.url().as_str())
            && jar.push_header(&url, &mut header)
        {
            request.header("Cookie", header);
        }
    }

    /// The request has ended, or the head of its response arrived.
    pub(super) fn handle_report(&mut self, report: &Report, behind_proxy: bool) {
        let address = report.remote().and_then(Address::ip);
        self.last.latency = Some(report.timings().total);
        self.last.address = address.filter(|_| !behind_proxy);
        self.last.is_private = match (behind_proxy, address) {
            (false, Some(ip)) => is_private(ip),
            // Only a literal address tells where the proxy went.
            _ => is_private_literal(self.url()),
        };
    }

    /// An answer arrived.
    pub(super) fn handle_status(&mut self, status: u16) {
        self.last.status = Some(status);
    }

    pub(super) fn handle_dropped_lines(&mut self, dropped: u32) {
        self.dropped_lines = self.dropped_lines.max(dropped);
    }

    /// The last answer is not that of the URL to be asked now.
    pub(super) fn forget_answer(&mut self) {
        self.last = LastAnswer::default();
    }

    /// The request did not reach the host, and does not count.
    pub(super) fn take_back(&mut self) {
        self.attempts.discount();
        self.attempt.take_back();
        if self.attempts.made() == 0 {
            self.attempts = Attempts::default();
            self.last = LastAnswer::default();
        }
    }

    /// The outcome.
    pub(super) fn outcome(self, verdict: Verdict, detail: Option<String>) -> Outcome {
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
        let redirects: Vec<Redirect> = chain.map_or_else(Vec::new, |it| it.redirects().to_vec());
        let was_asked = self.last.method.is_some();
        let final_url = chain.filter(|chain| !chain.redirects().is_empty());
        let throttled = Verdict::Failed(Cause::Throttled);
        Outcome {
            id: self.task.id,
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
            is_private: self.last.is_private,
            checked_at: None,
            retry_after: self.retry_after.filter(|_| verdict == throttled),
            page: self.page.filter(|_| is_good),
        }
    }
}

/// Whether an address is not public.
fn is_private(ip: IpAddr) -> bool {
    !AddressPolicy::deny_private().allows(ip)
}

/// Whether the host of a URL is a private address, or a name of this machine.
pub(crate) fn is_private_literal(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Ipv4(ip)) => is_private(ip.into()),
        Some(url::Host::Ipv6(ip)) => is_private(ip.into()),
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        None => false,
    }
}
