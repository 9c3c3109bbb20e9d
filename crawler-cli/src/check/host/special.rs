//! The answers to requests for robots.txt.

use std::time::Instant;

use courser::Response;

use super::fetch::Fetch;
use super::page;
use super::reply::Reply;
use super::robots::{RobotsFetch, RobotsStage, SITEMAP};
use super::{Host, Shared};
use crate::check::links::Kind;
use crate::check::sources::ProblemKind;
use crate::check::task::{Page, PageLink};
use crate::check::verdict::{Cause, Failure};
use crate::crawl::retry::{Decision, Failed, Others, decide};
use crate::crawl::robots::{Access, Robots};
use crate::crawl::stats::Class;

impl Host {
    /// The head of the answer decides.
    pub(super) fn robots_answered(
        &mut self,
        now: Instant,
        robots: RobotsFetch,
        response: &Response,
        reply: &Reply<'_>,
        shared: &mut Shared,
    ) {
        match robots.access(response.status()) {
            Access::Follow => match robots.redirected(&self.root, response) {
                Some(next) => self.queue.push_next(Fetch::Robots(Box::new(next))),
                None => self.without(&robots, Robots::allow_all(), shared),
            },
            Access::Unreachable => {
                let status = response.status();
                let failed = match reply.answer.is_throttling() {
                    true => reply.failed(),
                    false => Failed::new(
                        Class::Status(status),
                        crate::crawl::failure::FailureScope::Request,
                    ),
                };
                let cause = match status {
                    500..=599 if !failed.is_refusal => Cause::Status5xx(status),
                    _ => Cause::Throttled,
                };
                let detail = format!("{} was answered with status {status}", &robots.target[1..]);
                self.robots_retry(now, Box::new(robots), failed, cause, detail, shared);
            }
            Access::Parse | Access::Unavailable => {
                self.without(&robots, Robots::allow_all(), shared);
            }
        }
    }

    /// The body was read.
    pub(super) fn robots_read(&mut self, robots: RobotsFetch, shared: &mut Shared) {
        if !robots.is_sitemap {
            self.politeness.parse_robots(robots.body.bytes());
            return self.rules_known(shared);
        }
        self.robots = RobotsStage::Known;
        if let Ok(url) = self.root.join(&robots.target)
            && let Some(page) =
                page::read_sitemap(&url, &robots.body, robots.content_type.as_deref())
        {
            shared.sites.push((url, page));
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
                let sitemap = RobotsFetch::sitemap(self.policy.max_body);
                self.queue.push_next(Fetch::Robots(Box::new(sitemap)));
            }
            return;
        }
        let links = named.iter().map(|url| PageLink {
            url: url.as_str().into(),
            line: 0,
            column: 0,
            text: "".into(),
            kind: Kind::Sitemap,
        });
        if let Ok(base) = self.root.join("/robots.txt") {
            let page = Page {
                links: links.collect(),
                is_sitemap: true,
                ..page::unread(&base)
            };
            shared.sites.push((base, page));
        }
    }

    pub(super) fn robots_failed(
        &mut self,
        now: Instant,
        robots: Box<RobotsFetch>,
        failed: Failed,
        failure: &Failure,
        shared: &mut Shared,
    ) {
        let detail = failure.detail.clone();
        self.robots_retry(now, robots, failed, failure.cause, detail, shared);
    }

    fn robots_retry(
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
                robots.start_over();
                self.queue.postpone(due, Fetch::Robots(robots));
            }
            Decision::GiveUpHost(_) if !robots.is_sitemap => {
                self.give_up(now, cause, Some(detail), shared);
            }
            // The rules are not known, so that only URLs that were given may be asked (RFC 9309 §2.3.1.4).
            _ => {
                if !robots.is_sitemap {
                    self.unread_robots = Some((cause, detail.clone()));
                }
                self.note_unread(&robots, detail, shared);
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

    /// A sitemap could not be read, which may be there.
    fn note_unread(&self, fetch: &RobotsFetch, detail: String, shared: &mut Shared) {
        let url = self.root.join(&fetch.target).ok();
        if let Some(url) = url.filter(|_| fetch.is_sitemap) {
            let page = Page {
                problem: Some((ProblemKind::Cut, detail)),
                ..page::unread(&url)
            };
            shared.sites.push((url, page));
        }
    }
}
