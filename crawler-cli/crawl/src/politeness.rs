//! The politeness of a crawl towards one host: limits on the rate of requests, pauses that the host asks for or that
//! its absence causes, the learned number of requests at a time, and robots.txt. Pure: time is an argument.
//!
//! All requests to the host share one [`Politeness`]. [`may_send`](Politeness::may_send) says whether another request
//! may be sent. [`handle_sent`](Politeness::handle_sent) counts each request that is sent,
//! [`handle_over`](Politeness::handle_over) its end. In addition, its answer is passed to one of
//! [`handle_answer`](Politeness::handle_answer), [`handle_throttled`](Politeness::handle_throttled),
//! [`handle_long_wait`](Politeness::handle_long_wait) and [`handle_absent`](Politeness::handle_absent).

use std::time::{Duration, Instant, SystemTime};

use courser::Rate;
use courser::policy::RateLimiter;

use super::allowance::Allowance;
use super::policy::{HostPolicy, RetryPolicy};
use super::robots::Robots;
use super::stats::{Class, Reason, Waiting};
use plain::random::Random;

/// The limits and the state of one host.
#[derive(Debug)]
pub struct Politeness {
    policy: HostPolicy,
    /// Requests in flight.
    under_way: usize,
    /// Limits on the rate of requests: the policy's, and the delay of robots.txt.
    pace: Vec<RateLimiter>,
    /// Whether the last limit of `pace` comes from robots.txt.
    delayed_by_robots: bool,
    /// The end of the last pause, for which the host asked or which its absence caused. Stays set after that time.
    paused_until: Option<Instant>,
    /// The end of the last pause for which the host asked.
    throttled_until: Option<Instant>,
    /// The learned limits, since the host refused requests.
    allowance: Allowance,
    /// When the last answer came that was not a refusal (429 or 503).
    good_at: Option<Instant>,
    /// Whether the host has ever answered.
    has_replied: bool,
    /// When the first request was sent that the host refused, if it has refused all requests since.
    refusing_since: Option<Instant>,
    /// Consecutive pauses because the host was away, or asked for a wait beyond the patience.
    absences: u32,
    /// Attempts in a row that the host has not answered, and their URLs.
    unanswered: (u32, u32),
    /// For the jitter of pauses.
    random: Random,
    /// The rules of robots.txt, when they are known.
    robots: Option<Robots>,
    /// Whether robots.txt was requested.
    robots_asked: bool,
}

/// A refusal: an answer that asks for fewer requests.
#[derive(Clone, Copy, Debug)]
pub struct Throttled {
    /// When its request was sent.
    pub sent_at: Option<Instant>,
    /// How long the host wants no requests.
    pub wait: Duration,
    /// Whether the refusal is evidence of how many requests the host accepts.
    pub is_telling: bool,
}

impl Politeness {
    /// For a host to which no request was sent yet.
    pub fn new(policy: &HostPolicy) -> Self {
        Self {
            pace: pace(policy),
            policy: policy.clone(),
            under_way: 0,
            delayed_by_robots: false,
            paused_until: None,
            throttled_until: None,
            allowance: Allowance::default(),
            good_at: None,
            has_replied: false,
            refusing_since: None,
            absences: 0,
            unanswered: (0, 0),
            random: Random::new(policy.seed.unwrap_or_default()),
            robots: None,
            robots_asked: false,
        }
    }

    /// Whether another request may be sent at `now`.
    pub fn may_send(&mut self, now: Instant) -> bool {
        if self.paused_until.is_some_and(|until| now < until) {
            return false;
        }
        self.allowance.handle_time(now);
        self.has_room() && self.pace_at(now).is_none_or(|at| at <= now)
    }

    /// The earliest time of the next request by pauses and rates; `None`: at any time.
    pub fn next_at(&mut self, now: Instant) -> Option<Instant> {
        let pace = self.pace_at(now);
        self.paused_until.into_iter().chain(pace).max()
    }

    /// The earliest time of the next request, if it is later than `now`.
    pub fn held_until(&mut self, now: Instant) -> Option<Instant> {
        self.next_at(now).filter(|until| *until > now)
    }

    /// The end of the last pause that followed from refusals.
    pub fn throttled_until(&self) -> Option<Instant> {
        self.throttled_until
    }

    /// How many requests may be in flight, by the learned limit.
    fn window(&self) -> usize {
        self.allowance.window()
    }

    /// Whether another request may be in flight.
    pub fn has_room(&self) -> bool {
        self.under_way < self.window()
    }

    /// Whether the host has answered without a refusal after `before`; with `None`: ever.
    pub fn is_good_since(&self, before: Option<Instant>) -> bool {
        self.good_at > before
    }

    /// Whether the host has ever answered.
    pub fn has_replied(&self) -> bool {
        self.has_replied
    }

    /// Whether the host refuses all requests, and the patience since the first of them ends before `at`.
    pub fn is_refusing_too_long(&self, at: Instant) -> bool {
        let patience = self.policy.retry.patience;
        let end = |since: Instant| since.checked_add(patience);
        self.refusing_since
            .and_then(end)
            .is_some_and(|end| at > end)
    }

    /// The largest rate of requests.
    pub fn rate(&self) -> Option<Rate> {
        self.policy.rate
    }

    /// The policy for retries.
    pub fn retry_policy(&self) -> &RetryPolicy {
        &self.policy.retry
    }

    /// A random number, for the jitter of a pause.
    pub fn random_number(&mut self) -> u64 {
        self.random.next_number()
    }

    /// The limit that holds the next request back at `now`. `is_ready`: there is a request that waits for nothing else.
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

    /// The earliest time of the next request by all rate limits; `None`: at any time.
    fn pace_at(&mut self, now: Instant) -> Option<Instant> {
        let limits = self.pace.iter_mut();
        let own = limits.filter_map(|limit| limit.ready_at(now, 1));
        own.chain(self.allowance.next_at()).max()
    }

    fn pause(&mut self, until: Instant) {
        self.paused_until = self.paused_until.max(Some(until));
    }

    /// Whether a request sent at `sent_at` was sent after the last pause. Only then its failure is new evidence.
    fn is_news(&self, sent_at: Option<Instant>) -> bool {
        self.paused_until.is_none_or(|until| sent_at >= Some(until))
    }
}

/// The course of requests.
impl Politeness {
    /// A request was sent.
    pub fn handle_sent(&mut self, now: Instant) {
        self.under_way += 1;
        self.charge(now);
        self.allowance.handle_sent(now);
    }

    /// A request ended, in whatever way.
    pub fn handle_over(&mut self) {
        self.under_way -= 1;
    }

    /// The host answered a request without a refusal.
    pub fn handle_answer(&mut self, now: Instant) {
        self.note_reply();
        self.good_at = Some(now);
        self.refusing_since = None;
        self.allowance.handle_good(now);
    }

    /// The body of a download has ended. The host may have refused other requests while it sent the body.
    pub fn handle_body_end(&mut self) {
        self.refusing_since = None;
        self.handle_bytes();
    }

    /// A part of a body came: the host is there.
    pub fn handle_bytes(&mut self) {
        self.unanswered = (0, 0);
    }

    /// The host refused a request. Refusals of requests that were sent before the current pause count as the one that
    /// caused the pause.
    pub fn handle_throttled(&mut self, now: Instant, throttled: Throttled) {
        self.note_reply();
        self.refusing_since
            .get_or_insert(throttled.sent_at.unwrap_or(now));
        if throttled.is_telling {
            let is_news = self.is_news(throttled.sent_at);
            self.allowance.handle_refusal(now, is_news, self.under_way);
        }
        let until = now + throttled.wait;
        self.throttled_until = self.throttled_until.max(Some(until));
        self.pause(until);
    }

    /// The host refused one URL but answers others: the refusal concerns the URL.
    pub fn handle_refused_alone(&mut self) {
        self.note_reply();
    }

    fn note_reply(&mut self) {
        self.has_replied = true;
        self.absences = 0;
        self.unanswered = (0, 0);
    }

    /// A request came to nothing. `is_first`: the first one for its URL.
    pub fn handle_unanswered(&mut self, is_first: bool) {
        let (attempts, urls) = self.unanswered;
        let is_new = is_first || attempts == 0;
        self.unanswered = (
            attempts.saturating_add(1),
            urls.saturating_add(u32::from(is_new)),
        );
    }

    /// Whether the host did not answer the last attempts, and these are too few to give it up.
    pub fn is_doubtful(&self) -> bool {
        (1..MOST_UNANSWERED_ATTEMPTS).contains(&self.unanswered.0)
    }

    /// Whether the host has answered nothing for so long, over several URLs, that it is given up when a URL has used up its
    /// attempts: each of its other URLs would wait as long.
    pub fn is_silent(&self) -> bool {
        let (attempts, urls) = self.unanswered;
        attempts >= MOST_UNANSWERED_ATTEMPTS && urls > 1
    }

    /// A request that was sent at `sent_at` could not reach the host, with a failure of this class. Each pause counts
    /// as one absence, however many requests failed. Returns whether to give the host up: after as many absences as a
    /// URL has attempts, or 4 if the host has never replied.
    pub fn handle_absent(&mut self, now: Instant, sent_at: Option<Instant>, class: Class) -> bool {
        let attempts = match self.policy.retry.retries(class) {
            true => self.policy.retry.attempts.get(),
            false => 1,
        };
        let most = match self.has_replied {
            true => attempts,
            false => attempts.min(MOST_UNANSWERED),
        };
        self.count_absence(now, sent_at, most)
    }

    /// The host answered a request that was sent at `sent_at` with a `Retry-After` beyond the patience. Returns whether
    /// to give the host up: after 4 such answers and no other.
    pub fn handle_long_wait(&mut self, now: Instant, sent_at: Option<Instant>) -> bool {
        self.has_replied = true;
        self.count_absence(now, sent_at, MOST_UNANSWERED)
    }

    fn count_absence(&mut self, now: Instant, sent_at: Option<Instant>, most: u32) -> bool {
        if self.is_news(sent_at) {
            self.absences += 1;
            let random = self.random_number();
            self.pause(now + self.policy.retry.back_off(self.absences, random));
        }
        self.absences >= most
    }

    /// No request may be sent until this time, for a reason that says nothing about how many requests the host accepts.
    pub fn handle_pause(&mut self, until: Instant) {
        self.pause(until);
    }

    fn charge(&mut self, now: Instant) {
        for limit in &mut self.pace {
            limit.charge(now, 1);
        }
    }
}

/// robots.txt.
impl Politeness {
    /// Whether only robots.txt may be requested for now.
    pub fn awaits_robots(&self) -> bool {
        self.policy.robots && self.robots.is_none()
    }

    /// Whether to request robots.txt now. Returns true only once.
    pub fn take_robots_request(&mut self) -> bool {
        self.awaits_robots() && !std::mem::replace(&mut self.robots_asked, true)
    }

    /// Parses the body of a robots.txt and obeys its rules from now on.
    pub fn parse_robots(&mut self, body: &[u8]) {
        self.obey(Robots::parse(body, &self.policy.agent));
    }

    /// Obeys these rules from now on.
    pub fn obey(&mut self, robots: Robots) {
        if let Some(delay) = robots.crawl_delay() {
            let delay = delay.min(LONGEST_CRAWL_DELAY);
            if delay > self.policy.min_delay {
                self.delayed_by_robots = true;
                self.pace.push(RateLimiter::new(Rate::every(delay)));
            }
        }
        self.robots = Some(robots);
    }

    /// The sitemaps that robots.txt names.
    pub fn sitemaps(&self) -> &[String] {
        self.robots.as_ref().map_or(&[], Robots::sitemaps)
    }

    /// The delay between two requests that robots.txt asks for, if it is longer than that of the policy.
    pub fn robots_delay(&self) -> Option<Duration> {
        let robots = self.robots.as_ref().filter(|_| self.delayed_by_robots)?;
        let delay = robots.crawl_delay()?;
        Some(delay.min(LONGEST_CRAWL_DELAY))
    }

    /// Whether robots.txt allows this target; true while robots.txt is not known.
    pub fn is_allowed(&self, target: &str) -> bool {
        let robots = self.robots.as_ref();
        robots.is_none_or(|robots| robots.allows_all() || robots.allows(target))
    }
}

/// The policy's limits on the rate of requests, all unused.
fn pace(policy: &HostPolicy) -> Vec<RateLimiter> {
    let delay = Some(policy.min_delay).filter(|delay| !delay.is_zero());
    let rates = policy.rate.into_iter().chain(delay.map(Rate::every));
    rates.map(RateLimiter::new).collect()
}

/// The wait of a `Retry-After` (RFC 9110 §10.2.3): seconds, or a date, which is compared with the server's own `Date`.
pub fn retry_after(value: &[u8], date: Option<&[u8]>) -> Option<Duration> {
    let date = date.and_then(|date| std::str::from_utf8(date.trim_ascii()).ok());
    let now = date.and_then(|date| httpdate::parse_http_date(date).ok());
    // The time of receipt (RFC 9110 §6.6.1).
    let now = now.unwrap_or_else(SystemTime::now);
    courser::policy::retry_after(value, Some(now))
}

/// The longest `Crawl-delay` that is obeyed.
const LONGEST_CRAWL_DELAY: Duration = Duration::from_secs(60);

/// Attempts in a row without an answer after which a host counts as silent.
const MOST_UNANSWERED_ATTEMPTS: u32 = 6;

/// Absences after which a host is given up that has never replied, or that asks for waits beyond the patience.
const MOST_UNANSWERED: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_date_to_wait_for_counts_from_the_receipt() {
        let at = |time: SystemTime| httpdate::fmt_http_date(time).into_bytes();
        let later = at(SystemTime::now() + SECOND * 100);
        let wait = retry_after(&later, None).expect("a wait");
        assert!(wait > SECOND * 90 && wait <= SECOND * 100, "{wait:?}");
        let date = at(SystemTime::now() + SECOND * 60);
        assert_eq!(retry_after(&later, Some(&date)), Some(SECOND * 40));
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
        assert_eq!(host.robots_delay(), None);
        host.parse_robots(b"User-agent: *\nCrawl-delay: 3\nDisallow: /a");
        assert_eq!(host.robots_delay(), Some(3 * SECOND));
        host.handle_sent(now + SECOND);
        assert_eq!(host.held_until(now + SECOND), Some(now + SECOND * 4));
        let waiting = host.waiting(now + SECOND, true).expect("a delay");
        assert_eq!(
            (waiting.reason, waiting.until),
            (Reason::Robots, now + SECOND * 4)
        );
        assert_eq!(host.waiting(now + SECOND, false), None);
    }

    /// The trap: all hosts behind one router that failed come back at one moment.
    #[test]
    fn hosts_that_fail_together_do_not_come_back_together() {
        let now = Instant::now();
        let pauses = |seed| {
            let policy = HostPolicy {
                seed: Some(seed),
                ..HostPolicy::default()
            };
            let mut host = Politeness::new(&policy);
            host.handle_absent(now, Some(now), Class::Connect);
            host.held_until(now).expect("a pause") - now
        };
        // Chance takes up to one half.
        let longest = HostPolicy::default().retry.first_pause;
        assert!((0..100).any(|seed| pauses(seed) < longest * 6 / 10));
        assert!((0..100).any(|seed| pauses(seed) > longest * 9 / 10));
        assert_eq!(pauses(7), pauses(7));
    }
}
