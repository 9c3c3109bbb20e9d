//! The robots.txt of a host (RFC 9309). Its delays apply to all requests; `Disallow` only to URLs that were not given.
//! Where sitemaps are wanted and it names none, `/sitemap.xml` is read after it, in the same way.

use std::time::Instant;

use courser::{Codings, Request};
use url::Url;

use super::page::{self, AnswerBody};
use super::url_check::Reply;
use super::{Fetch, Host, Shared};
use crate::links::{Kind, Link};
use crate::sources::ProblemKind;
use crate::task::Page;
use crawl::failure::FailureScope;
use crawl::retry::{Decision, Failed, Others, decide};
use crawl::retry_queue::Attempts;
use crawl::robots::{Access, READ, Robots, redirected};
use crawl::stats::Class;
use verdict::Cause;

/// The request for robots.txt, or for the sitemap.
#[derive(Debug)]
pub(super) struct RobotsFetch {
    url: Url,
    is_sitemap: bool,
    pub(super) attempts: Attempts,
    redirects: u32,
}

/// How far the work is with robots.txt.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum RobotsStage {
    /// Not needed for one URL that was given.
    NotNeeded,
    /// To be requested before anything else.
    Wanted,
    /// Requested for the first time: everything waits.
    Asked,
    /// The first request has failed: only URLs that were not given wait.
    Failing,
    /// The rules are known.
    Known,
}

impl RobotsFetch {
    pub(super) fn new(root: &Url, is_sitemap: bool) -> Self {
        let mut url = root.clone();
        url.set_path(if is_sitemap { SITEMAP } else { ROBOTS });
        Self {
            url,
            is_sitemap,
            attempts: Attempts::default(),
            redirects: 0,
        }
    }

    /// Begins a request: writes its head into an empty request.
    pub(super) fn write(&mut self, now: Instant, request: &mut Request) {
        request.set_method("GET");
        request.set_target(self.url.as_str());
        request.add_header("Accept", "text/plain,*/*;q=0.1");
        request.decode(Codings::all());
        self.attempts.handle_sent(now);
    }

    /// How many bytes of the body of the answer with this head are read, if the body is wanted.
    pub(super) fn wanted(&self, reply: &Reply<'_>, max_body: u64) -> Option<u64> {
        let access = Access::of_status(reply.answer.status, self.redirects);
        let limit = if self.is_sitemap {
            max_body
        } else {
            READ as u64
        };
        (access == Access::Parse).then_some(limit)
    }
}

impl Host {
    /// The head of the answer decides.
    pub(super) fn robots_answered(
        &mut self,
        now: Instant,
        mut robots: Box<RobotsFetch>,
        reply: &Reply<'_>,
        shared: &mut Shared,
    ) {
        let status = reply.answer.status;
        match Access::of_status(status, robots.redirects) {
            Access::Follow => match redirected(&robots.url, reply.location()) {
                Some(url) => {
                    robots.url = url;
                    robots.redirects += 1;
                    self.queue.push_next(Fetch::Robots(robots));
                }
                None => self.without(&robots, Robots::allow_all(), shared),
            },
            Access::Unreachable => {
                let failed = match reply.answer.is_throttling() {
                    true => reply.failed(),
                    false => Failed::new(Class::Status(status), FailureScope::Request),
                };
                let cause = match status {
                    500..=599 if !failed.is_refusal => Cause::Status5xx(status),
                    _ => Cause::Throttled,
                };
                let name = robots.url.path().trim_start_matches('/');
                let detail = format!("{name} was answered with status {status}");
                self.robots_failed(now, robots, failed, cause, detail, shared);
            }
            Access::Parse | Access::Unavailable => {
                self.without(&robots, Robots::allow_all(), shared);
            }
        }
    }

    /// The body was read.
    pub(super) fn robots_read(
        &mut self,
        robots: &RobotsFetch,
        body: &AnswerBody,
        shared: &mut Shared,
    ) {
        if !robots.is_sitemap {
            self.politeness.parse_robots(&body.bytes);
            return self.rules_known(shared);
        }
        self.robots = RobotsStage::Known;
        if let Some(page) = page::read_sitemap(&robots.url, body) {
            shared.sites.push((robots.url.clone(), page));
        }
    }

    /// The rules of the host are known. Its sitemaps come before its pages.
    fn rules_known(&mut self, shared: &mut Shared) {
        self.robots = RobotsStage::Known;
        if !self.wants_sitemaps {
            return;
        }
        let named = self.politeness.sitemaps();
        if named.is_empty() {
            if self.politeness.is_allowed(SITEMAP) {
                self.robots = RobotsStage::Asked;
                let sitemap = Box::new(RobotsFetch::new(&self.root, true));
                self.queue.push_next(Fetch::Robots(sitemap));
            }
            return;
        }
        let links = named.iter().map(|url| Link {
            url: url.as_str().to_owned().into(),
            line: 0,
            column: 0,
            text: "".into(),
            kind: Kind::Sitemap,
        });
        let base = RobotsFetch::new(&self.root, false).url;
        let page = Page {
            links: links.collect(),
            is_sitemap: true,
            ..page::unread(&base)
        };
        shared.sites.push((base, page));
    }

    /// The request has failed, or the host asks for fewer requests.
    pub(super) fn robots_failed(
        &mut self,
        now: Instant,
        mut robots: Box<RobotsFetch>,
        failed: Failed,
        cause: Cause,
        detail: String,
        shared: &mut Shared,
    ) {
        let attempts = &mut robots.attempts;
        let others = Others::default();
        let decision = decide(now, failed, attempts, others, &mut self.politeness);
        if self.keep_long_wait(now, decision) {
            self.robots = RobotsStage::Wanted;
            return;
        }
        let is_silent = self.given_up.is_some() || matches!(decision, Decision::GiveUpHost(_));
        if is_silent && self.policy.asks_for_days {
            self.robots = RobotsStage::Wanted;
            return self.give_up(now, cause, Some(detail), shared);
        }
        match decision {
            Decision::RetryAt(due) if self.given_up.is_none() => {
                // What the sitemaps name comes before the pages.
                self.robots = match self.wants_sitemaps {
                    true => RobotsStage::Asked,
                    false => RobotsStage::Failing,
                };
                self.queue.postpone(due, Fetch::Robots(robots));
            }
            Decision::GiveUpHost(_) if !robots.is_sitemap => {
                self.give_up(now, cause, Some(detail), shared);
            }
            // A sitemap that may be there.
            _ if robots.is_sitemap => {
                self.robots = RobotsStage::Known;
                let page = Page {
                    problem: Some((ProblemKind::Cut, detail)),
                    ..page::unread(&robots.url)
                };
                shared.sites.push((robots.url, page));
            }
            // The rules are not known, so that only URLs that were given may be asked (RFC 9309 §2.3.1.4).
            _ => {
                self.unread_robots = Some((cause, detail));
                self.without(&robots, Robots::disallow_all(), shared);
            }
        }
    }

    /// There is nothing to read. `rules`: those of a robots.txt that cannot be read.
    fn without(&mut self, fetch: &RobotsFetch, rules: Robots, shared: &mut Shared) {
        match fetch.is_sitemap {
            true => self.robots = RobotsStage::Known,
            false => {
                self.politeness.obey(rules);
                self.rules_known(shared);
            }
        }
    }
}

/// Where the rules of a host are.
const ROBOTS: &str = "/robots.txt";

/// Where the sitemap of a host is if nothing names one.
const SITEMAP: &str = "/sitemap.xml";
