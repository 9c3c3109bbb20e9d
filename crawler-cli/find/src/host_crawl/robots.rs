//! The request for the host's robots.txt, and its reply. If the policy obeys robots.txt, it is requested first.

use url::Position;

use super::HostCrawl;
use super::messages::Reply;
use super::task::{Task, TaskKind};
use crate::cause::Cause;
use crate::visitor::Turn;
use crawl::robots::{Access, Robots, redirected};

impl HostCrawl {
    /// Handles the reply to the request for robots.txt.
    pub(super) fn robots_reply(&mut self, turn: &mut Turn<'_>, task: Task, reply: &Reply<'_>) {
        let from = self.absolute(&task.target);
        match Access::of_status(reply.status, task.redirects) {
            Access::Parse => self.politeness.parse_robots(reply.body),
            Access::Follow => match from.and_then(|from| redirected(&from, reply.location)) {
                Some(to) => {
                    let target = to[Position::BeforePath..Position::AfterQuery].to_owned();
                    let moved = Task {
                        redirects: task.redirects + 1,
                        ..Task::new(target, TaskKind::Robots, task.start, 0)
                    };
                    return self.postpone(turn.now, moved);
                }
                None => self.politeness.obey(Robots::allow_all()),
            },
            Access::Unavailable => self.politeness.obey(Robots::allow_all()),
            Access::Unreachable => {
                return self.retry(turn, task, Cause::Status(reply.status));
            }
        }
        self.drop_disallowed(turn);
    }

    /// Drops the ready tasks that robots.txt forbids. They are starts, added before robots.txt was known.
    fn drop_disallowed(&mut self, turn: &mut Turn<'_>) {
        for task in self.queue.take_ready() {
            match self.is_allowed(&task.target) {
                true => self.queue.push_next(task),
                false => self.drop_task(turn, task, &Cause::Robots),
            }
        }
    }

    /// Whether robots.txt allows this target.
    pub fn is_allowed(&self, target: &str) -> bool {
        self.politeness.is_allowed(target)
    }

    /// Whether only robots.txt may be requested for now.
    pub fn awaits_robots(&self) -> bool {
        self.politeness.awaits_robots()
    }
}
