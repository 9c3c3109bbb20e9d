//! What keeps requests back: robots.txt, rates, and hosts that ask for less or are away.

use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

use courser::{Rate, RateLimiter};

use super::messages::Reply;
use super::task::{Task, TaskKind};
use super::{HostCrawl, Sink, parse_retry_after};
use crate::crawl::robots::{Access, Robots};
use crate::crawl::stats::{Reason, Waiting};
use crate::find::cause::Cause;

/// Attempts and pauses.
impl HostCrawl {
    /// Tries again after `wait`, or gives up when that was the last attempt.
    pub(super) fn retry(
        &mut self,
        now: Instant,
        task: Task,
        cause: Cause,
        wait: Duration,
        sink: Sink<'_>,
    ) {
        let patience = self.policy.patience;
        let too_late = task
            .first_sent_at
            .is_some_and(|first| now + wait > first + patience);
        if task.attempts >= self.policy.attempts.get() || too_late {
            return self.give_up(now, task, &cause, sink);
        }
        self.postpone(now + wait, task);
    }

    pub(super) fn postpone(&mut self, due: Instant, task: Task) {
        // It is asked for anew by whoever goes on with the crawl.
        let task = match task.kind {
            TaskKind::Robots => task,
            _ => self.written(task),
        };
        let number = self.number();
        self.postponed.insert((due, number), task);
    }

    /// The host could not be reached. Everything pauses; one pause counts once, however many requests failed by the
    /// same absence. When it has lasted as many pauses as a request has attempts, everything is given up; of a host that
    /// was never there, sooner.
    pub(super) fn absent(&mut self, now: Instant, task: Task, cause: Cause, sink: Sink<'_>) {
        if self.is_news(&task) {
            self.absences += 1;
            let wait = self.policy.back_off(self.absences);
            self.pause(now, wait);
        }
        let attempts = self.policy.attempts.get();
        let most = match self.has_replied {
            true => attempts,
            false => attempts.min(MOST_UNANSWERED),
        };
        if self.absences < most {
            return self.retry(now, task, cause, Duration::ZERO, sink);
        }
        self.give_up_all(now, task, cause, sink);
    }

    /// This one, and everything that waits.
    pub(super) fn give_up_all(&mut self, now: Instant, task: Task, cause: Cause, sink: Sink<'_>) {
        // What waits for robots.txt is not told that it is missing, but why.
        if task.kind != TaskKind::Robots {
            self.give_up(now, task, &cause, sink);
        }
        self.give_up_rest(now, cause, sink);
    }

    /// Everything that waits, here or on the disk.
    pub(super) fn give_up_rest(&mut self, now: Instant, cause: Cause, sink: Sink<'_>) {
        self.give_up_waiting(now, &cause, sink);
        if self.awaits_robots() {
            self.robots = Some(Robots::disallow_all());
        }
        self.given_up = Some(Arc::new(cause));
    }

    pub(super) fn give_up_waiting(&mut self, now: Instant, cause: &Cause, sink: Sink<'_>) {
        loop {
            let ready = mem::take(&mut self.ready);
            let postponed = mem::take(&mut self.postponed);
            for task in ready.into_iter().chain(postponed.into_values()) {
                self.drop_task(now, task, cause, sink);
            }
            // Listings of which a part was not looked at bring more, unless they wait for requests under way.
            self.give_up_held(now, sink);
            if self.ready.is_empty() && (self.partial.is_empty() || !self.can_resume()) {
                return;
            }
        }
    }

    /// Gives up what waits.
    pub(super) fn drop_task(&mut self, now: Instant, task: Task, cause: &Cause, sink: Sink<'_>) {
        self.forget(task.number);
        self.give_up(now, task, cause, sink);
    }

    /// The host asked for less: no attempt of the URL's, but everything waits. Its complaints about requests from
    /// before the pause are one with the complaint that began it.
    pub(super) fn throttle(
        &mut self,
        now: Instant,
        mut task: Task,
        reply: &Reply<'_>,
        sink: Sink<'_>,
    ) {
        let cause = Cause::Status(reply.status);
        task.throttles += 1;
        let before = task.throttled_at.replace(now);
        if reply.status == 503
            && task.throttles > FREE_THROTTLES
            && (self.good_at > before || self.good_at.is_some() && self.only_complaints_are_left())
        {
            // Others have been answered all the while: it is not the host that has no time, but this URL that fails.
            let wait = self.policy.back_off(task.attempts);
            return self.retry(now, task, cause, wait, sink);
        }
        task.attempts = task.attempts.saturating_sub(1);
        let wait = self.wait_asked_for(&task, reply);
        // One URL alone that is refused again and again says little about the others.
        let mut waiting = self.postponed.values();
        if task.throttles <= FREE_THROTTLES || waiting.any(|task| task.throttles > 0) {
            let is_news = self.is_news(&task);
            self.allowance
                .handle_refusal(now, is_news, self.in_flight.len());
        }
        self.pause(now, wait);
        // Others first: whether they are answered tells if it is the host or this URL.
        let wait = wait + self.policy.first_pause;
        self.retry(now, task, cause, wait, sink);
    }

    /// Everything else has been answered.
    fn only_complaints_are_left(&self) -> bool {
        let in_flight = self.in_flight.values().map(|(task, _)| task);
        let mut left = in_flight.chain(self.postponed.values());
        !self.has_ready() && left.all(|task| task.throttles >= FREE_THROTTLES)
    }

    /// Whether the request was sent after the last pause, so that its failure says something new about the host.
    fn is_news(&self, task: &Task) -> bool {
        self.paused_until
            .is_none_or(|until| task.sent_at >= Some(until))
    }

    fn pause(&mut self, now: Instant, wait: Duration) {
        self.paused_until = self.paused_until.max(Some(now + wait));
    }

    /// What `Retry-After` says, but no less than the usual pause: a host that says 0 again and again means something else.
    fn wait_asked_for(&self, task: &Task, reply: &Reply<'_>) -> Duration {
        reply
            .retry_after
            .and_then(|value| parse_retry_after(value, reply.date))
            .unwrap_or(Duration::ZERO)
            .max(self.policy.complaint_pause(task.throttles))
            .min(self.policy.longest_pause)
    }

    /// Why nothing can be sent at `now`, if something waits to be.
    pub fn waiting(&mut self, now: Instant) -> Option<Waiting> {
        let until = |until: Instant| (until > now).then_some(until);
        if self.in_flight.is_empty() && self.is_done() {
            return None;
        }
        let waiting = |reason, until| Some(Waiting { reason, until });
        if let Some(until) = self.paused_until.and_then(until) {
            return waiting(Reason::BackOff, until);
        }
        let reason = match self.delayed_by_robots {
            true => Reason::Robots,
            false => Reason::Rate,
        };
        if self.has_ready()
            && let Some(at) = self.pace_at(now).and_then(until)
        {
            return waiting(reason, at);
        }
        match self.postponed.first_key_value() {
            Some((&(due, _), _)) if !self.has_ready() && self.in_flight.is_empty() => {
                waiting(Reason::BackOff, until(due)?)
            }
            _ => None,
        }
    }
}

/// Requests to the host that are not made here, but under the same limits.
impl HostCrawl {
    /// Until when no request may be sent, if none may at `now`.
    pub fn held_until(&mut self, now: Instant) -> Option<Instant> {
        let pace = self.pace_at(now);
        let until = self.paused_until.into_iter().chain(pace).max();
        until.filter(|until| *until > now)
    }

    /// Requests that may be under way at a time, as far as the host has asked for less.
    pub fn window(&self) -> usize {
        self.allowance.window()
    }

    /// Whether the host has ever asked for a pause, less or a delay, or was away.
    pub fn has_own_limits(&self) -> bool {
        self.paused_until.is_some() || self.delayed_by_robots
    }

    /// Whether one more request may be under way beside so many others.
    pub fn has_room(&self, others: usize) -> bool {
        self.in_flight.len() + others < self.allowance.window()
    }

    /// A request was sent.
    pub fn handle_other_sent(&mut self, now: Instant) {
        self.pace(now);
    }

    /// A request was sent to another host that is limited together with this one.
    pub fn handle_neighbour_sent(&mut self, now: Instant) {
        // Its limits grow even when it is not asked for anything more.
        self.allowance.handle_time(now);
        self.charge(now);
    }

    /// Such a host keeps the requests to this one waiting.
    pub fn handle_neighbour_pause(&mut self, now: Instant) {
        self.allowance.handle_held(now);
    }

    /// The host answered a request without complaint.
    pub fn handle_other_answer(&mut self, now: Instant) {
        self.allowance.handle_good(now);
    }

    /// The host asked for less, and for a pause, by its answer to a request of `sent_at`, while so many others were
    /// under way.
    pub fn handle_other_complaint(
        &mut self,
        now: Instant,
        sent_at: Instant,
        wait: Duration,
        others: usize,
    ) {
        let is_news = self.paused_until.is_none_or(|until| sent_at >= until);
        let others = self.in_flight.len() + others;
        self.allowance.handle_refusal(now, is_news, others);
        self.pause(now, wait);
    }
}

/// Rates.
impl HostCrawl {
    /// When the next request may be sent by all the limits on their rate; `None` if there is none.
    pub(super) fn pace_at(&mut self, now: Instant) -> Option<Instant> {
        let limits = self.pace.iter_mut();
        let own = limits.filter_map(|limit| limit.ready_at(now, 1));
        own.chain(self.allowance.next_at()).max()
    }

    /// A request is sent.
    pub(super) fn pace(&mut self, now: Instant) {
        self.charge(now);
        self.allowance.handle_sent(now);
    }

    fn charge(&mut self, now: Instant) {
        for limit in &mut self.pace {
            limit.charge(now, 1);
        }
    }
}

/// robots.txt.
impl HostCrawl {
    /// What came instead of, or as, the robots.txt.
    pub(super) fn robots_reply(
        &mut self,
        now: Instant,
        task: Task,
        reply: &Reply<'_>,
        sink: Sink<'_>,
    ) {
        match Access::of_status(reply.status, task.redirects) {
            Access::Parse => {
                let robots = Robots::parse(reply.body, &self.policy.agent);
                self.obey(now, robots, sink);
            }
            Access::Follow => match self.robots_elsewhere(&task, reply.location) {
                Some(target) => {
                    let moved = Task {
                        redirects: task.redirects + 1,
                        ..Task::new(target, TaskKind::Robots, task.start, 0)
                    };
                    self.postpone(now, moved);
                }
                None => self.obey(now, Robots::allow_all(), sink),
            },
            Access::Unavailable => self.obey(now, Robots::allow_all(), sink),
            Access::Unreachable => {
                let wait = self.policy.back_off(task.attempts);
                self.retry(now, task, Cause::Status(reply.status), wait, sink);
            }
        }
    }

    /// Another place for it on this host. One on another host would be about that host.
    fn robots_elsewhere(&self, task: &Task, location: Option<&[u8]>) -> Option<String> {
        let mut at = self.origin.clone();
        at.set_path(&task.target);
        let to = at.join(std::str::from_utf8(location?).ok()?).ok()?;
        let target = &to[url::Position::BeforePath..url::Position::AfterQuery];
        (to.origin() == self.origin.origin() && target != task.target).then(|| target.to_owned())
    }

    /// From now on. Starts that were added before are looked at again.
    pub(super) fn obey(&mut self, now: Instant, robots: Robots, sink: Sink<'_>) {
        if let Some(delay) = robots.crawl_delay() {
            let delay = delay.min(self.policy.longest_pause);
            if delay > self.policy.min_delay {
                self.delayed_by_robots = true;
                self.pace.push(RateLimiter::new(Rate::every(delay)));
            }
        }
        let starts = mem::take(&mut self.ready);
        self.robots = Some(robots);
        for task in starts {
            match self.is_allowed(&task.target) {
                true => self.ready.push_back(task),
                false => self.drop_task(now, task, &Cause::Robots, sink),
            }
        }
    }

    /// Whether robots.txt lets it be fetched.
    pub fn is_allowed(&self, target: &str) -> bool {
        let robots = self.robots.as_ref();
        robots.is_none_or(|robots| robots.allows_all() || robots.allows(target))
    }

    /// Why a target may not be fetched, for whoever asks for it without the host crawl; once robots.txt is known.
    pub fn refusal(&self, target: &str) -> Option<Arc<Cause>> {
        // A host that was given up before it was known allows nothing.
        let cause = || self.given_up.clone().unwrap_or(Arc::new(Cause::Robots));
        (!self.is_allowed(target)).then(cause)
    }

    /// The robots.txt is asked for even if there is nothing else to ask for.
    pub fn want_robots(&mut self) {
        self.robots_wanted = true;
    }

    /// Whether nothing but the robots.txt may be asked for.
    pub fn awaits_robots(&self) -> bool {
        self.policy.robots && self.robots.is_none()
    }
}

/// Attempts at a host that has never replied.
const MOST_UNANSWERED: u32 = 4;

/// 503s for one URL that are taken for the host's, although others are answered.
const FREE_THROTTLES: u32 = 4;
