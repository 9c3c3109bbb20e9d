//! Gates: pages that let pass who sends their cookie. A URL redirects to itself with a cookie, or to another page of its
//! host that sets one and leads back.

use courser::proto::is_redirect;
use url::{Position, Url};

use super::HostCrawl;
use super::messages::Reply;
use super::task::{Gate, Task, TaskKind};
use crate::cause::Cause;
use crate::link::Ancestors;
use crate::visitor::Turn;
use crawl::redirect;
use listing::path;

impl HostCrawl {
    /// Whether a redirect of a page to itself is a gate.
    pub(super) fn is_gate(&self, reply: &Reply<'_>) -> bool {
        self.policy.keeps_cookies && reply.sets_cookie
    }

    /// The gate at `to`, if the redirect of a listing may lead to one: a page of this host. A directory is the new place
    /// of the listing.
    pub(super) fn gate_at(&self, task: &Task, to: &Url, reply: &Reply<'_>) -> Option<Gate> {
        let is_page = !to.path().ends_with('/') || to.query().is_some();
        let is_of_listing = matches!(
            task.kind,
            TaskKind::Start | TaskKind::Directory | TaskKind::Page
        );
        let may_be_gate = is_page && is_of_listing && !task.is_past_gate;
        let target = self.target_here(to)?;
        (self.policy.keeps_cookies && may_be_gate).then_some(Gate {
            target,
            has_cookie: reply.sets_cookie,
        })
    }

    /// The reply of a gate.
    pub(super) fn gate_reply(&mut self, turn: &mut Turn<'_>, mut task: Task, reply: &Reply<'_>) {
        let Some(gate) = task.gate.take() else {
            return self.queue(task);
        };
        task.redirects += 1;
        let has_cookie = gate.has_cookie || reply.sets_cookie;
        let limit = self.policy.limits.redirects;
        let at = self.absolute(&gate.target);
        let to = at
            .filter(|_| is_redirect(reply.status))
            .and_then(|at| redirect::target(&at, reply.location).ok());
        let cause = match (reply.status, to) {
            _ if task.redirects > limit => Cause::TooManyRedirects(limit),
            // A page that only sets the cookie.
            (200..=299, _) if has_cookie => {
                task.is_past_gate = true;
                return self.queue(task);
            }
            (_, Some(to)) => match self.target_here(&to) {
                Some(target) if is_same(&target, &task.target) && has_cookie => {
                    return self.queue(task);
                }
                Some(target) if is_same(&target, &task.target) => Cause::RedirectLoop,
                Some(target) => {
                    task.gate = Some(Box::new(Gate { target, has_cookie }));
                    return self.queue(task);
                }
                None => Cause::Elsewhere(to.into()),
            },
            _ => Cause::Elsewhere(self.url(&gate.target)),
        };
        self.give_up(turn, task, &cause);
    }

    /// The page that a gate leads back to, if it has set a cookie. The page had redirected to the gate, and was not read.
    pub(super) fn page_behind(&self, task: &Task, to: &Url, reply: &Reply<'_>) -> Option<Task> {
        let target = self.target_here(to)?;
        let is_back = self.is_gate(reply) && task.redirects > 0 && target != task.target;
        is_back.then(|| Task {
            target,
            is_past_gate: true,
            above: Ancestors::default(),
            number: 0,
            ..task.clone().followed()
        })
    }

    /// The request target of a URL, if it is of this host and robots.txt allows it.
    fn target_here(&self, url: &Url) -> Option<String> {
        let target = &url[Position::BeforePath..Position::AfterQuery];
        let is_here = url.origin() == self.origin().origin();
        (is_here && self.is_allowed(target)).then(|| target.to_owned())
    }
}

/// Whether two request targets are the same, in perhaps different spellings.
fn is_same(a: &str, b: &str) -> bool {
    let [(a, a_query), (b, b_query)] = [a, b].map(|it| match it.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (it, None),
    });
    a_query == b_query && path::canonical(a) == path::canonical(b)
}
