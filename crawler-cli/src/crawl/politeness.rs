//! How politely one host is asked, whatever it is asked for: limits on the rate of requests, pauses that the host asks for
//! or that its absence brings, how much it takes at a time, and its robots.txt. Pure: time is an argument.
//!
//! All requests to the host share one [`Politeness`]. [`may_send`](Politeness::may_send) tells whether one more request may
//! be sent; each request is then told to [`handle_sent`](Politeness::handle_sent), and its end to
//! [`handle_over`](Politeness::handle_over). What its answer says about the host goes to one of
//! [`handle_answer`](Politeness::handle_answer), [`handle_throttled`](Politeness::handle_throttled) and
//! [`handle_absent`](Politeness::handle_absent).

use std::time::{Duration, Instant};

use courser::{Rate, RateLimiter};

use super::allowance::Allowance;
use super::policy::HostPolicy;
use super::robots::Robots;
use super::stats::{Reason, Waiting};

/// What is known of how a host wants to be asked.
#[derive(Debug)]
pub struct Politeness {
    policy: HostPolicy,
    /// Requests that are under way.
    under_way: usize,
    /// Limits on the rate of requests: ours, and what robots.txt asks for.
    pace: Vec<RateLimiter>,
    /// The last limit of `pace` is robots.txt's.
    delayed_by_robots: bool,
    /// Nothing is sent before: the host asked for a pause, or is not there. Stays when it has passed.
    paused_until: Option<Instant>,
    /// What the host takes, once it has asked for less.
    allowance: Allowance,
    /// When the last answer came that did not ask for less.
    good_at: Option<Instant>,
    /// The host has answered, ever.
    has_replied: bool,
    /// Pauses since the last answer because the host was away.
    absences: u32,
    /// What robots.txt says, once that is known.
    robots: Option<Robots>,
    /// robots.txt was asked for.
    robots_asked: bool,
}

/// An answer that asked for fewer requests.
#[derive(Clone, Copy, Debug)]
pub struct Throttled {
    /// When its request was sent.
    pub sent_at: Option<Instant>,
    /// How long the host is to be left alone.
    pub wait: Duration,
    /// Whether the answer says something about how much the host takes.
    pub is_telling: bool,
}

impl Politeness {
    /// Towards a host that was not asked yet.
    pub fn new(policy: &HostPolicy) -> Self {
        Self {
            pace: pace(policy),
            policy: policy.clone(),
            under_way: 0,
            delayed_by_robots: false,
            paused_until: None,
            allowance: Allowance::default(),
            good_at: None,
            has_replied: false,
            absences: 0,
            robots: None,
            robots_asked: false,
        }
    }

    /// Whether one more request may be sent at `now`.
    pub fn may_send(&mut self, now: Instant) -> bool {
        if self.paused_until.is_some_and(|until| now < until) {
            return false;
        }
        self.allowance.handle_time(now);
        self.has_room() && self.pace_at(now).is_none_or(|at| at <= now)
    }

    /// When a request may be sent as far as pauses and rates are concerned; `None`: at any time.
    pub fn next_at(&mut self, now: Instant) -> Option<Instant> {
        let pace = self.pace_at(now);
        self.paused_until.into_iter().chain(pace).max()
    }

    /// The same, if that is later than `now`.
    pub fn held_until(&mut self, now: Instant) -> Option<Instant> {
        self.next_at(now).filter(|until| *until > now)
    }

    /// Requests that may be under way at a time, as far as the host has asked for less.
    pub fn window(&self) -> usize {
        self.allowance.window()
    }

    /// Whether one more request may be under way.
    pub fn has_room(&self) -> bool {
        self.under_way < self.window()
    }

    /// Whether the host has ever asked for a pause, less or a delay, or was away.
    pub fn has_own_limits(&self) -> bool {
        self.paused_until.is_some() || self.delayed_by_robots
    }

    /// Whether the host has answered without asking for less after `before`, or ever if that is `None`.
    pub fn is_good_since(&self, before: Option<Instant>) -> bool {
        self.good_at > before
    }

    /// Whether the host has ever answered.
    pub fn has_replied(&self) -> bool {
        self.has_replied
    }

    /// What keeps the next request back at `now`. `is_ready`: there is one that waits for nothing else.
    pub fn waiting(&mut self, now: Instant, is_ready: bool) -> Option<Waiting> {
        let waiting = |reason, until| Waiting { reason, until };
        if let Some(until) = self.paused_until.filter(|until| *until > now) {
            return Some(waiting(Reason::BackOff, until));
        }
        let reason = match self.delayed_by_robots {
            true => Reason::Robots,
            false => Reason::Rate,
        };
        let until = self.pace_at(now).filter(|until| is_ready && *until > now);
        until.map(|until| waiting(reason, until))
    }

    /// When the next request may be sent by all the limits on their rate; `None` if there is none.
    fn pace_at(&mut self, now: Instant) -> Option<Instant> {
        let limits = self.pace.iter_mut();
        let own = limits.filter_map(|limit| limit.ready_at(now, 1));
        own.chain(self.allowance.next_at()).max()
    }

    fn pause(&mut self, until: Instant) {
        self.paused_until = self.paused_until.max(Some(until));
    }

    /// Whether a request of that time was sent after the last pause, so that its failure says something new about the
    /// host.
    fn is_news(&self, sent_at: Option<Instant>) -> bool {
        self.paused_until.is_none_or(|until| sent_at >= Some(until))
    }
}

/// What happens to requests.
impl Politeness {
    /// A request is sent.
    pub fn handle_sent(&mut self, now: Instant) {
        self.under_way += 1;
        self.charge(now);
        self.allowance.handle_sent(now);
    }

    /// A request is not under way any more, whatever came of it.
    pub fn handle_over(&mut self) {
        self.under_way -= 1;
    }

    /// The host has answered a request, and did not ask for less.
    pub fn handle_answer(&mut self, now: Instant) {
        self.has_replied = true;
        self.absences = 0;
        self.good_at = Some(now);
        self.allowance.handle_good(now);
    }

    /// The host has asked for less. Refusals of requests from before a pause are one with the refusal that began it.
    pub fn handle_throttled(&mut self, now: Instant, throttled: Throttled) {
        self.has_replied = true;
        self.absences = 0;
        if throttled.is_telling {
            let is_news = self.is_news(throttled.sent_at);
            self.allowance.handle_refusal(now, is_news, self.under_way);
        }
        self.pause(now + throttled.wait);
    }

    /// One URL of the host was refused while others were answered.
    pub fn handle_refused_alone(&mut self) {
        self.has_replied = true;
        self.absences = 0;
    }

    /// The host could not be reached by a request of that time. One pause counts once, however many requests failed by
    /// the same absence. Returns whether the host is to be given up: its absence has lasted as many pauses as a URL has
    /// attempts; of a host that was never there, fewer.
    pub fn handle_absent(&mut self, now: Instant, sent_at: Option<Instant>) -> bool {
        let retry = &self.policy.retry;
        let attempts = retry.attempts.get();
        if self.is_news(sent_at) {
            self.absences += 1;
            self.pause(now + retry.back_off(self.absences));
        }
        let most = match self.has_replied {
            true => attempts,
            false => attempts.min(MOST_UNANSWERED),
        };
        self.absences >= most
    }

    /// A request was sent to another host that is limited together with this one.
    pub fn handle_neighbour_sent(&mut self, now: Instant) {
        // The limits of this host grow even when it is not asked for anything more.
        self.allowance.handle_time(now);
        self.charge(now);
    }

    /// Another host that is limited together with this one keeps the requests to this one waiting.
    pub fn handle_neighbour_pause(&mut self, now: Instant) {
        self.allowance.handle_held(now);
    }

    fn charge(&mut self, now: Instant) {
        for limit in &mut self.pace {
            limit.charge(now, 1);
        }
    }
}

/// robots.txt.
impl Politeness {
    /// Whether nothing but the robots.txt may be asked for.
    pub fn awaits_robots(&self) -> bool {
        self.policy.robots && self.robots.is_none()
    }

    /// Whether the robots.txt is to be asked for now; it is then taken for asked for.
    pub fn take_robots_request(&mut self) -> bool {
        self.awaits_robots() && !std::mem::replace(&mut self.robots_asked, true)
    }

    /// What came as robots.txt holds from now on.
    pub fn parse_robots(&mut self, body: &[u8]) {
        self.obey(Robots::parse(body, &self.policy.agent));
    }

    /// This holds from now on.
    pub fn obey(&mut self, robots: Robots) {
        if let Some(delay) = robots.crawl_delay() {
            let delay = delay.min(self.policy.retry.longest_pause);
            if delay > self.policy.min_delay {
                self.delayed_by_robots = true;
                self.pace.push(RateLimiter::new(Rate::every(delay)));
            }
        }
        self.robots = Some(robots);
    }

    /// Whether robots.txt lets this target be fetched, as far as that is known.
    pub fn is_allowed(&self, target: &str) -> bool {
        let robots = self.robots.as_ref();
        robots.is_none_or(|robots| robots.allows_all() || robots.allows(target))
    }
}

/// The policy's own limits on the rate of requests, before any is sent.
pub fn pace(policy: &HostPolicy) -> Vec<RateLimiter> {
    let delay = Some(policy.min_delay).filter(|delay| !delay.is_zero());
    let rates = policy.rate.into_iter().chain(delay.map(Rate::every));
    rates.map(RateLimiter::new).collect()
}

/// `Retry-After` (RFC 9110 §10.2.3): seconds, or a date, which only the server's own `Date` makes a span of time.
pub fn retry_after(value: &[u8], date: Option<&[u8]>) -> Option<Duration> {
    let date = date.and_then(|date| std::str::from_utf8(date.trim_ascii()).ok());
    let now = date.and_then(|date| httpdate::parse_http_date(date).ok());
    courser::retry_after(value, now)
}

/// Attempts at a host that has never replied.
const MOST_UNANSWERED: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn politeness() -> (Politeness, Instant) {
        (Politeness::new(&HostPolicy::default()), Instant::now())
    }

    #[test]
    fn a_pause_holds_everything_and_counts_once() {
        let (mut host, now) = politeness();
        assert!(host.may_send(now) && host.next_at(now).is_none());
        assert!(!host.has_own_limits());
        for _ in 0..3 {
            host.handle_sent(now);
        }
        let refused = |wait| Throttled {
            sent_at: Some(now),
            wait,
            is_telling: true,
        };
        host.handle_over();
        host.handle_throttled(now, refused(SECOND));
        host.handle_over();
        host.handle_throttled(now, refused(SECOND / 2));
        assert!(host.has_own_limits() && !host.is_good_since(None));
        assert_eq!(host.held_until(now), Some(now + SECOND));
        assert!(!host.may_send(now + SECOND / 2));
        // Of three requests none was answered well: half as many may be under way, and one is.
        assert!(!host.may_send(now + SECOND));
        host.handle_over();
        assert!(host.may_send(now + SECOND));
    }

    #[test]
    fn rates_and_delays_hold_together() {
        let policy = HostPolicy {
            min_delay: SECOND,
            ..HostPolicy::default()
        };
        let (mut host, now) = (Politeness::new(&policy), Instant::now());
        host.handle_sent(now);
        assert_eq!(host.held_until(now), Some(now + SECOND));
        host.parse_robots(b"User-agent: *\nCrawl-delay: 3\nDisallow: /a");
        host.handle_neighbour_sent(now + SECOND);
        assert_eq!(host.held_until(now + SECOND), Some(now + SECOND * 4));
        let waiting = host.waiting(now + SECOND, true).expect("a delay");
        assert_eq!(
            (waiting.reason, waiting.until),
            (Reason::Robots, now + SECOND * 4)
        );
        assert_eq!(host.waiting(now + SECOND, false), None);
    }

    #[test]
    fn a_host_that_stays_away_is_given_up() {
        let (mut host, mut now) = politeness();
        for absence in 1..=MOST_UNANSWERED {
            let sent_at = now;
            now += SECOND / 10;
            let is_over = absence == MOST_UNANSWERED;
            assert_eq!(host.handle_absent(now, Some(sent_at)), is_over);
            // The same absence, once more.
            assert_eq!(host.handle_absent(now, Some(sent_at)), is_over);
            now = host.held_until(now).expect("a pause");
        }
        // A host that has answered is waited for as long as a URL.
        host.handle_answer(now);
        let mut absences = 0;
        while !host.handle_absent(now, Some(now)) {
            absences += 1;
            now = host.held_until(now).expect("a pause");
        }
        assert_eq!(absences, 9);
    }

    #[test]
    fn robots_txt_is_asked_for_once() {
        let (mut host, _) = politeness();
        assert!(host.awaits_robots() && host.is_allowed("/a"));
        assert!(host.take_robots_request() && !host.take_robots_request());
        host.parse_robots(b"User-agent: courser\nDisallow: /a");
        assert!(!host.awaits_robots() && !host.is_allowed("/a") && host.is_allowed("/b"));
        let policy = HostPolicy {
            robots: false,
            ..HostPolicy::default()
        };
        assert!(!Politeness::new(&policy).awaits_robots());
    }
}
