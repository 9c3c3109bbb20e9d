//! What becomes of a URL that was not answered as it should be: it is tried again, or given up, alone or with all others
//! of its host.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::HostCrawl;
use super::messages::Reply;
use super::task::{Task, TaskKind};
use crate::crawl::politeness::{FREE_THROTTLES, Politeness, Throttled, retry_after};
use crate::crawl::robots::Robots;
use crate::crawl::stats::{Reason, Waiting};
use crate::find::cause::Cause;
use crate::find::visitor::Visitor;

/// Attempts and pauses.
impl HostCrawl {
    /// Tries again after the usual pause, or gives up when that was the last attempt.
    pub(super) fn retry(
        &mut self,
        now: Instant,
        task: Task,
        cause: Cause,
        visitor: &mut dyn Visitor,
    ) {
        let policy = &self.policy.host.retry;
        let wait = self.queue.back_off(task.attempts.made(), policy);
        self.retry_after(now, task, cause, wait, visitor);
    }

    fn retry_after(
        &mut self,
        now: Instant,
        task: Task,
        cause: Cause,
        wait: Duration,
        visitor: &mut dyn Visitor,
    ) {
        let retry = &self.policy.host.retry;
        let due = task.attempts.retry_at(now, wait, cause.class(), retry);
        match due.filter(|_| self.given_up.is_none()) {
            Some(due) => self.postpone(due, task),
            None => self.give_up(now, task, &cause, visitor),
        }
    }

    pub(super) fn postpone(&mut self, due: Instant, task: Task) {
        // A crawl that is gone on with asks for robots.txt anew.
        let task = match task.kind {
            TaskKind::Robots => task,
            _ => self.journal.written(task),
        };
        self.queue.postpone(due, task);
    }

    /// The host could not be reached.
    pub(super) fn absent(
        &mut self,
        now: Instant,
        task: Task,
        cause: Cause,
        visitor: &mut dyn Visitor,
    ) {
        match self.politeness.handle_absent(now, task.attempts.sent_at()) {
            true => self.give_up_all(now, task, cause, visitor),
            false => self.retry_after(now, task, cause, Duration::ZERO, visitor),
        }
    }

    /// Gives up this task, and everything that waits.
    pub(super) fn give_up_all(
        &mut self,
        now: Instant,
        task: Task,
        cause: Cause,
        visitor: &mut dyn Visitor,
    ) {
        // What waits for robots.txt is not told that it is missing, but why.
        if task.kind != TaskKind::Robots {
            self.give_up(now, task, &cause, visitor);
        }
        self.give_up_rest(now, cause, visitor);
    }

    /// Gives up everything that waits, once the host has asked for a pause that nobody waits for.
    pub fn give_up_if_closed(&mut self, now: Instant, visitor: &mut dyn Visitor) {
        if let Some(wait) = self.politeness.closed().filter(|_| self.given_up.is_none()) {
            self.give_up_rest(now, Cause::LongPause(wait), visitor);
        }
    }

    /// Gives up everything that waits, here or on the disk.
    pub(super) fn give_up_rest(&mut self, now: Instant, cause: Cause, visitor: &mut dyn Visitor) {
        self.give_up_waiting(now, &cause, visitor);
        if self.politeness.awaits_robots() {
            self.politeness.obey(Robots::disallow_all());
        }
        self.given_up = Some(Arc::new(cause));
    }

    pub(super) fn give_up_waiting(
        &mut self,
        now: Instant,
        cause: &Cause,
        visitor: &mut dyn Visitor,
    ) {
        loop {
            for task in self.queue.take_all() {
                self.drop_task(now, task, cause, visitor);
            }
            // Listings of which a part was not looked at bring more, unless they wait for requests under way.
            self.give_up_held(now, visitor);
            if !self.has_any_ready() && (self.probes.is_empty() || !self.probes.can_resume()) {
                return;
            }
        }
    }

    /// Gives up a task that waited.
    pub(super) fn drop_task(
        &mut self,
        now: Instant,
        task: Task,
        cause: &Cause,
        visitor: &mut dyn Visitor,
    ) {
        self.journal.forget(task.number);
        self.give_up(now, task, cause, visitor);
    }

    /// The host asked for less. That is no attempt of the URL's, but everything waits.
    pub(super) fn throttled(
        &mut self,
        now: Instant,
        mut task: Task,
        reply: &Reply<'_>,
        visitor: &mut dyn Visitor,
    ) {
        let cause = Cause::Status(reply.status);
        let before = task.attempts.handle_throttled(now);
        if reply.status == 503
            && task.attempts.throttles() > FREE_THROTTLES
            && (self.politeness.is_good_since(before)
                || self.politeness.is_good_since(None) && self.only_throttled_are_left())
        {
            // Others have been answered all the while: the host has time, and this URL fails.
            self.politeness.handle_refused_alone();
            return self.retry(now, task, cause, visitor);
        }
        task.attempts.discount();
        let asked_for = reply.retry_after;
        let asked_for = asked_for.and_then(|value| retry_after(value, reply.date));
        let throttles = task.attempts.throttles();
        let wait = self.policy.host.retry.throttle_pause(throttles, asked_for);
        // One URL alone that is refused again and again says little about the others.
        let is_throttled = |task: &Task| task.attempts.throttles() > 0;
        let is_telling = throttles <= FREE_THROTTLES || self.queue.postponed().any(is_throttled);
        let throttled = Throttled {
            sent_at: task.attempts.sent_at(),
            wait,
            is_telling,
        };
        self.politeness.handle_throttled(now, throttled);
        if self.politeness.closed().is_some() {
            return self.give_up_all(now, task, Cause::LongPause(wait), visitor);
        }
        // Others first: whether they are answered tells if it is the host or this URL.
        let wait = wait + self.policy.host.retry.first_pause;
        self.retry_after(now, task, cause, wait, visitor);
    }

    /// Whether everything else has been answered.
    fn only_throttled_are_left(&self) -> bool {
        let in_flight = self.in_flight.values().map(|(task, _)| task);
        let mut left = in_flight.chain(self.queue.postponed());
        !self.has_ready() && left.all(|task| task.attempts.throttles() >= FREE_THROTTLES)
    }

    /// Why nothing can be sent at `now`, if something waits to be.
    pub fn waiting(&mut self, now: Instant) -> Option<Waiting> {
        if self.in_flight.is_empty() && self.is_done() {
            return None;
        }
        let is_ready = self.has_ready();
        let waiting = self.politeness.waiting(now, is_ready);
        waiting.or_else(|| {
            let until = self.queue.next_due().filter(|due| *due > now)?;
            let is_all = !is_ready && self.in_flight.is_empty();
            is_all.then_some(Waiting {
                reason: Reason::BackOff,
                until,
            })
        })
    }

    /// Whether one more request may be under way.
    pub fn has_room(&self) -> bool {
        self.politeness.has_room()
    }

    /// How the host is asked: the same holds for requests to the host that are made elsewhere.
    pub fn politeness(&mut self) -> &mut Politeness {
        &mut self.politeness
    }
}
