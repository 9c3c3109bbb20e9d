//! The answers to requests for robots.txt.

use std::time::Instant;

use courser::Response;

use super::fetch::Fetch;
use super::reply::Reply;
use super::robots::{RobotsFetch, RobotsStage};
use super::{Host, Shared};
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
                None => self.obey(Robots::allow_all()),
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
                let detail = format!("robots.txt was answered with status {status}");
                self.robots_retry(now, Box::new(robots), failed, cause, detail, shared);
            }
            Access::Parse | Access::Unavailable => self.obey(Robots::allow_all()),
        }
    }

    /// The body was read.
    pub(super) fn robots_read(&mut self, robots: &RobotsFetch) {
        self.politeness.parse_robots(robots.body.bytes());
        self.robots = RobotsStage::Known;
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
        match decision {
            Decision::RetryAt(due) if self.given_up.is_none() => {
                self.robots = RobotsStage::Failing;
                robots.start_over();
                self.queue.postpone(due, Fetch::Robots(robots));
            }
            Decision::GiveUpHost(_) => self.give_up(cause, Some(detail), shared),
            // The rules are not known, so that only URLs that were given may be asked (RFC 9309 §2.3.1.4).
            _ => self.obey(Robots::disallow_all()),
        }
    }

    fn obey(&mut self, robots: Robots) {
        self.politeness.obey(robots);
        self.robots = RobotsStage::Known;
    }
}
