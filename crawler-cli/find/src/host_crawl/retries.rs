//! Applies the rules of [`retry`](crawl::retry) to the tasks of a host crawl: postpones a task, or gives it up,
//! alone or with all tasks of the host.

use std::sync::Arc;
use std::time::Instant;

use super::HostCrawl;
use super::messages::Reply;
use super::task::{Task, TaskKind};
use crate::cause::Cause;
use crate::visitor::Turn;
use crawl::failure::FailureScope;
use crawl::politeness::Politeness;
use crawl::retry::{Decision, Failed, Others, decide};
use crawl::robots::Robots;
use crawl::stats::{Reason, Standing, Waiting};

/// Retries and pauses.
impl HostCrawl {
    /// Handles a failed task: retries it, or gives it up for this cause, alone or with all others.
    pub(super) fn failed(
        &mut self,
        turn: &mut Turn<'_>,
        mut task: Task,
        failed: Failed,
        cause: Cause,
    ) {
        let in_flight = self.in_flight.values().map(|(task, _)| &task.attempts);
        let postponed = self.queue.postponed().chain(self.files.postponed());
        let postponed = postponed.map(|task| &task.attempts);
        let any_new = || self.has_ready() || self.has_ready_file();
        let others = Others::of(&task.attempts, any_new, in_flight, postponed);
        let host = &mut self.politeness;
        match decide(turn.now, failed, &mut task.attempts, others, host) {
            Decision::RetryAt(due) if self.given_up.is_none() => self.postpone(due, task),
            Decision::RetryAt(_) => self.give_up(turn, task, &cause),
            Decision::GiveUp(reason) => {
                let cause = cause.because(reason, host.retry_policy());
                self.give_up(turn, task, &cause);
            }
            Decision::GiveUpHost(reason) => {
                let cause = cause.because(reason, host.retry_policy());
                // Tasks that wait for robots.txt are reported with the cause of its absence.
                if task.kind != TaskKind::Robots {
                    self.give_up(turn, task, &cause);
                }
                self.give_up_rest(turn, cause);
            }
        }
    }

    /// Handles an answer that may be temporary.
    pub(super) fn retry(&mut self, turn: &mut Turn<'_>, task: Task, cause: Cause) {
        let failed = Failed::new(cause.class(), FailureScope::Request);
        self.failed(turn, task, failed, cause);
    }

    /// Handles an answer that asks for fewer requests.
    pub(super) fn throttled(&mut self, turn: &mut Turn<'_>, task: Task, reply: &Reply<'_>) {
        let failed = Failed::of_status(reply.status, reply.retry_after, reply.date);
        let cause = Cause::Status(reply.status);
        self.failed(turn, task, failed, cause);
    }

    pub(super) fn postpone(&mut self, due: Instant, task: Task) {
        // A resumed crawl requests robots.txt anew, so that task is not saved.
        let task = match task.kind {
            TaskKind::Robots => task,
            _ => self.journal.written(task),
        };
        let queue = match task.kind {
            TaskKind::Wanted => &mut self.files,
            _ => &mut self.queue,
        };
        queue.postpone(due, task);
    }

    /// The host cannot be used: gives up everything that waits, in memory or on disk, and that comes later.
    pub fn give_up_rest(&mut self, turn: &mut Turn<'_>, cause: Cause) {
        self.give_up_waiting(turn, &cause);
        if self.politeness.awaits_robots() {
            self.politeness.obey(Robots::disallow_all());
        }
        self.given_up = Some(Arc::new(cause));
    }

    pub(super) fn give_up_waiting(&mut self, turn: &mut Turn<'_>, cause: &Cause) {
        loop {
            let files = self.files.take_all();
            for task in self.queue.take_all().into_iter().chain(files) {
                self.drop_task(turn, task, cause);
            }
            // Partly handled listings yield further tasks, unless they wait for requests in flight.
            self.probes.give_up_zone();
            self.resume(turn);
            if self.queue.ready().len() == 0
                && (self.probes.is_empty() || !self.probes.can_resume())
            {
                return;
            }
        }
    }

    /// Gives up a waiting task.
    pub(crate) fn drop_task(&mut self, turn: &mut Turn<'_>, task: Task, cause: &Cause) {
        self.journal.forget(task.number);
        self.give_up(turn, task, cause);
    }

    /// What is left to do.
    pub fn standing(&mut self, now: Instant) -> Standing {
        let in_memory = self.queue.len() + self.files.len() + self.in_flight.len();
        let in_flight = self.in_flight.values().map(|(task, _)| task);
        let asked = in_flight.chain(self.queue.postponed());
        let robots = asked.filter(|task| task.kind == TaskKind::Robots).count();
        Standing {
            waiting: self.waiting(now),
            left: (in_memory - robots) as u64 + self.journal.spilled(),
            is_given_up: self.given_up.is_some(),
        }
    }

    /// Why nothing may be sent at `now`, if something waits.
    fn waiting(&mut self, now: Instant) -> Option<Waiting> {
        if self.in_flight.is_empty() && self.is_done() {
            return None;
        }
        let is_ready = self.has_ready() || self.has_ready_file();
        let waiting = self.politeness.waiting(now, is_ready);
        waiting.or_else(|| {
            let due = [self.queue.next_due(), self.files.next_due()];
            let until = due.into_iter().flatten().min().filter(|due| *due > now)?;
            let is_all = !is_ready && self.in_flight.is_empty();
            is_all.then_some(Waiting {
                reason: Reason::BackOff,
                until,
            })
        })
    }

    /// Whether another request may be in flight.
    pub fn has_room(&self) -> bool {
        self.politeness.has_room()
    }

    /// The politeness towards the host, which requests of other parts share.
    pub fn politeness(&mut self) -> &mut Politeness {
        &mut self.politeness
    }
}
