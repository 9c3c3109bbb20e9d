//! The settings of politeness and retries for a host. [`politeness`](super::politeness) and [`retry`](super::retry)
//! apply them.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::time::Duration;

use courser::Rate;

use super::stats::Class;

/// The settings for all requests to a host.
#[derive(Clone, Debug)]
pub struct HostPolicy {
    /// When a URL is requested again.
    pub retry: RetryPolicy,
    /// Whether robots.txt is requested first and obeyed. Default: yes.
    pub robots: bool,
    /// The product token that names this crawler in robots.txt. Default `Courser`.
    pub agent: String,
    /// The largest rate of requests to the host. Default: no limit.
    pub rate: Option<Rate>,
    /// The shortest time between two requests to the host. Default 0.
    pub min_delay: Duration,
    /// The seed of the random part of pauses. Default: a different one for each search.
    pub seed: Option<u64>,
}

impl Default for HostPolicy {
    fn default() -> Self {
        Self {
            retry: RetryPolicy::default(),
            robots: true,
            agent: "Courser".to_owned(),
            rate: None,
            min_delay: Duration::ZERO,
            seed: None,
        }
    }
}

/// How often a URL is requested, and after which pauses.
#[derive(Clone, Debug)]
pub struct RetryPolicy {
    /// The largest number of attempts for a URL, after transport errors or 5xx. Default 10: if a host fails one request
    /// in eight at random, one URL in 10^9 is lost.
    pub attempts: NonZeroU32,
    /// The failures after which a URL is requested again. Default: all.
    pub classes: BTreeSet<RetryClass>,
    /// The pause before the second attempt; doubles with each further attempt. Default 500 ms.
    pub first_pause: Duration,
    /// The longest pause between two attempts; never shorter than `first_pause`. A host that answers 429 or 503 without
    /// a `Retry-After` gets pauses of up to 60 s, or up to this time if it is longer. A `Retry-After` is never
    /// shortened. Default 2 s: with ten attempts, longer pauses would only make final failures take minutes.
    pub longest_pause: Duration,
    /// The random share of each of these pauses, so that hosts and processes that failed together do not retry
    /// together: from 0 (none) to 1 (full jitter). Default 0.5 (equal jitter).
    pub jitter: f64,
    /// The largest number of 410 answers for a URL, within `attempts`. Caches answer 410 for minutes while they are
    /// purged. Default 3.
    pub gone_attempts: NonZeroU32,
    /// The pause after a 410, reduced by the jitter. Default 5 s.
    pub gone_pause: Duration,
    /// The longest time between the first request for a URL and a retry. A URL is given up at once if the server asks
    /// for a longer wait. Default 15 min.
    pub patience: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts: NonZeroU32::new(10).unwrap_or(NonZeroU32::MIN),
            classes: RetryClass::ALL.map(|(_, class)| class).into(),
            first_pause: Duration::from_millis(500),
            longest_pause: Duration::from_secs(2),
            jitter: 0.5,
            gone_attempts: NonZeroU32::new(3).unwrap_or(NonZeroU32::MIN),
            gone_pause: Duration::from_secs(5),
            patience: Duration::from_secs(15 * 60),
        }
    }
}

impl RetryPolicy {
    /// Whether a failure of this class may be retried.
    pub fn retries(&self, class: Class) -> bool {
        RetryClass::of(class).is_none_or(|class| self.classes.contains(&class))
    }

    /// The pause after the failed attempt number `nth`. `random` is evenly distributed.
    pub fn back_off(&self, nth: u32, random: u64) -> Duration {
        self.jittered(self.doubled(nth, self.longest_pause), random)
    }

    /// The pause of a host after its `nth` consecutive 429 or 503, with this `Retry-After`. Never shorter than without
    /// `Retry-After`: some hosts always send 0.
    pub fn throttle_pause(&self, nth: u32, retry_after: Option<Duration>, random: u64) -> Duration {
        let asked_for = retry_after.unwrap_or(Duration::ZERO);
        let longest = LONGEST_THROTTLE_PAUSE.max(self.longest_pause);
        asked_for.max(self.jittered(self.doubled(nth, longest), random))
    }

    /// The pause after a 410.
    pub fn pause_after_gone(&self, random: u64) -> Duration {
        self.jittered(self.gone_pause, random)
    }

    fn doubled(&self, nth: u32, longest: Duration) -> Duration {
        let factor = 2u32.saturating_pow(nth.saturating_sub(1));
        let pause = self.first_pause.saturating_mul(factor);
        pause.min(longest.max(self.first_pause))
    }

    fn jittered(&self, pause: Duration, random: u64) -> Duration {
        let share = random as f64 / u64::MAX as f64;
        pause
            .min(AGES)
            .mul_f64(1.0 - self.jitter.clamp(0.0, 1.0) * share)
    }
}

/// A class of failures that may be temporary.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum RetryClass {
    /// A time limit was exceeded, here or on the server (408).
    Timeout,
    /// The host name has no address, or could not be looked up.
    Dns,
    /// The host could not be reached.
    Connect,
    Tls,
    Proxy,
    /// The connection was lost, or the response was not HTTP.
    Broken,
    /// The body was incomplete.
    Incomplete,
    /// The host asked for fewer requests (429 or 503).
    Throttled,
    /// Another 5xx status.
    ServerError,
    /// Status 410.
    Gone,
}

impl RetryClass {
    /// All classes with their names in command lines, in the order of help texts.
    pub const ALL: [(&'static str, Self); 10] = [
        ("timeout", Self::Timeout),
        ("dns", Self::Dns),
        ("connect", Self::Connect),
        ("tls", Self::Tls),
        ("proxy", Self::Proxy),
        ("broken", Self::Broken),
        ("incomplete", Self::Incomplete),
        ("throttled", Self::Throttled),
        ("5xx", Self::ServerError),
        ("410", Self::Gone),
    ];

    /// The class for retries; `None` if retries are not configurable for it, such as other 4xx statuses.
    fn of(class: Class) -> Option<Self> {
        Some(match class {
            Class::Timeout | Class::Status(408) => Self::Timeout,
            Class::Dns => Self::Dns,
            Class::Connect => Self::Connect,
            Class::Tls => Self::Tls,
            Class::Proxy => Self::Proxy,
            Class::Broken => Self::Broken,
            Class::CutShort => Self::Incomplete,
            Class::Status(429 | 503) => Self::Throttled,
            Class::Status(500..) => Self::ServerError,
            Class::Status(410) => Self::Gone,
            _ => return None,
        })
    }
}

/// The longest pause of a host that repeatedly answers 429 or 503, unless the policy has a longer one.
const LONGEST_THROTTLE_PAUSE: Duration = Duration::from_secs(60);

/// No pause is longer, so that the end of a few pauses in a row can be expressed.
pub(super) const AGES: Duration = Duration::from_secs(30 * 365 * 86_400);

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn pauses_double_and_end_at_the_longest() {
        let pauses = |policy: &RetryPolicy| [1, 2, 3, 4, 99].map(|nth| policy.back_off(nth, 0));
        let halves = |halves: [u32; 5]| halves.map(|n| SECOND / 2 * n);
        let mut policy = RetryPolicy::default();
        assert_eq!(pauses(&policy), halves([1, 2, 4, 4, 4]));
        policy.longest_pause = SECOND * 30;
        assert_eq!(pauses(&policy), halves([1, 2, 4, 8, 60]));
        policy.longest_pause = SECOND / 10;
        assert_eq!(pauses(&policy), halves([1; 5]));
    }

    #[test]
    fn jitter_takes_a_share_of_a_pause_and_nothing_of_a_retry_after() {
        let mut policy = RetryPolicy::default();
        for (jitter, shortest) in [(0.0, SECOND * 2), (0.5, SECOND), (1.0, Duration::ZERO)] {
            policy.jitter = jitter;
            assert_eq!(policy.back_off(3, 0), SECOND * 2);
            assert_eq!(policy.back_off(3, u64::MAX), shortest);
            assert_eq!(policy.throttle_pause(3, None, u64::MAX), shortest);
            let long = Some(SECOND * 120);
            assert_eq!(policy.throttle_pause(3, long, u64::MAX), SECOND * 120);
        }
    }
}
