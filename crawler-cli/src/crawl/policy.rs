//! How patiently and how politely a host is asked.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::time::Duration;

use courser::Rate;

use super::stats::Class;

/// What holds for all requests to a host.
#[derive(Clone, Debug)]
pub struct HostPolicy {
    /// When a URL is asked for again.
    pub retry: RetryPolicy,
    /// Whether robots.txt is asked for first, and obeyed. Default: yes.
    pub robots: bool,
    /// The product token that robots.txt knows this crawler by. Default `Courser`.
    pub agent: String,
    /// Requests to the host in a time. Default: no limit.
    pub rate: Option<Rate>,
    /// The least time between two requests to the host. Default 0.
    pub min_delay: Duration,
}

impl Default for HostPolicy {
    fn default() -> Self {
        Self {
            retry: RetryPolicy::default(),
            robots: true,
            agent: "Courser".to_owned(),
            rate: None,
            min_delay: Duration::ZERO,
        }
    }
}

/// How often a URL is asked for, and after which pauses.
#[derive(Clone, Debug)]
pub struct RetryPolicy {
    /// How often a URL is asked for in all, when the transport fails or the server says 5xx. Default 10: of a host that
    /// fails one request in eight at random, one URL in a thousand million is lost.
    pub attempts: NonZeroU32,
    /// The failures after which a URL is asked for again. Default: all of them.
    pub classes: BTreeSet<RetryClass>,
    /// Pause before the second attempt; it doubles with each further one, up to 2 s. Default 500 ms.
    pub first_pause: Duration,
    /// Longest pause of a host that answers 429 or 503 and does not say for how long. A `Retry-After` is never cut. Default
    /// 60 s.
    pub longest_pause: Duration,
    /// How long after its first request a URL is asked for again. Default 15 min.
    pub patience: Duration,
    /// How much of a pause between attempts is left to chance, so that URLs that failed together are not asked for again
    /// together: from 0 (nothing) to 1 (all of it). Default 0.5.
    pub jitter: f64,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts: NonZeroU32::new(10).unwrap_or(NonZeroU32::MIN),
            classes: RetryClass::ALL.into_iter().collect(),
            first_pause: Duration::from_millis(500),
            longest_pause: Duration::from_secs(60),
            patience: Duration::from_secs(15 * 60),
            jitter: 0.5,
        }
    }
}

impl RetryPolicy {
    /// Whether a failure of this class may be followed by another attempt.
    pub fn retries(&self, class: Class) -> bool {
        RetryClass::of(class).is_none_or(|class| self.classes.contains(&class))
    }

    /// The pause after attempt number `nth`, which failed.
    pub fn back_off(&self, nth: u32) -> Duration {
        let longest = LONGEST_BACK_OFF.max(self.first_pause);
        self.doubled(nth).min(longest)
    }

    /// The pause of a host that has asked for less for the `nth` time in a row, with this `Retry-After`. It is never
    /// shorter than without `Retry-After`: a host that says 0 again and again means something else.
    pub fn throttle_pause(&self, nth: u32, retry_after: Option<Duration>) -> Duration {
        let asked_for = retry_after.unwrap_or(Duration::ZERO);
        asked_for.max(self.doubled(nth))
    }

    /// A pause of which chance has taken its part; `random` is from 0 to 1.
    pub fn jittered(&self, pause: Duration, random: f64) -> Duration {
        pause.mul_f64(1.0 - self.jitter.clamp(0.0, 1.0) * random.clamp(0.0, 1.0))
    }

    fn doubled(&self, nth: u32) -> Duration {
        let factor = 2u32.saturating_pow(nth.saturating_sub(1));
        let pause = self.first_pause.saturating_mul(factor);
        pause.min(self.longest_pause)
    }
}

/// A class of failures that may pass.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum RetryClass {
    /// A time limit was exceeded.
    Timeout,
    /// The name of the host has no address, or could not be looked up.
    Dns,
    /// The host could not be reached.
    Connect,
    Tls,
    Proxy,
    /// The connection was lost, or the answer was not HTTP.
    Broken,
    /// The body ended too early.
    Incomplete,
    /// The host asked for fewer requests, by 429 or 503.
    Throttled,
    /// Another 5xx status.
    ServerError,
}

impl RetryClass {
    /// All classes, in the order of their names in help texts.
    pub const ALL: [Self; 9] = [
        Self::Timeout,
        Self::Dns,
        Self::Connect,
        Self::Tls,
        Self::Proxy,
        Self::Broken,
        Self::Incomplete,
        Self::Throttled,
        Self::ServerError,
    ];

    /// The name on command lines.
    pub fn name(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Dns => "dns",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::Proxy => "proxy",
            Self::Broken => "broken",
            Self::Incomplete => "incomplete",
            Self::Throttled => "throttled",
            Self::ServerError => "5xx",
        }
    }

    /// `None` for a failure that is not one of these, such as a 4xx status.
    fn of(class: Class) -> Option<Self> {
        Some(match class {
            Class::Timeout => Self::Timeout,
            Class::Dns => Self::Dns,
            Class::Connect => Self::Connect,
            Class::Tls => Self::Tls,
            Class::Proxy => Self::Proxy,
            Class::Broken => Self::Broken,
            Class::CutShort => Self::Incomplete,
            Class::Status(429 | 503) => Self::Throttled,
            Class::Status(500..) => Self::ServerError,
            _ => return None,
        })
    }
}

/// Longest pause between attempts that nobody asked for. With so many attempts, longer pauses would only make what is
/// broken for good take minutes.
const LONGEST_BACK_OFF: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn what_a_host_asks_for_is_never_cut() {
        let policy = RetryPolicy::default();
        for (nth, asked_for, pause) in [
            (1, Some(SECOND * 120), SECOND * 120),
            (1, Some(SECOND * 99_999), SECOND * 99_999),
            (1, Some(Duration::ZERO), SECOND / 2),
            (3, Some(SECOND), SECOND * 2),
            (20, None, SECOND * 60),
        ] {
            assert_eq!(
                policy.throttle_pause(nth, asked_for),
                pause,
                "{asked_for:?}"
            );
        }
    }

    #[test]
    fn jitter_makes_pauses_shorter_and_not_longer() {
        let policy = RetryPolicy::default();
        for (random, pause) in [(0.0, SECOND), (0.5, SECOND * 3 / 4), (1.0, SECOND / 2)] {
            assert_eq!(policy.jittered(SECOND, random), pause);
        }
        let plain = RetryPolicy {
            jitter: 0.0,
            ..policy
        };
        assert_eq!(plain.jittered(SECOND, 0.9), SECOND);
    }
}
