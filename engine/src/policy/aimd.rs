//! The limit on the requests in flight to a host, learned from its answers (AIMD, like TCP's congestion window). Good
//! answers add to the limit. Answers that report overload, or slow answers, multiply it by a factor below 1.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use super::Statuses;

/// How the limit on the requests in flight follows the answers of a host.
///
/// ```
/// use std::num::NonZeroUsize;
/// use std::time::Duration;
/// use courser::{AimdConfig, HostConfig};
///
/// let config = HostConfig {
///     concurrency: Some(AimdConfig {
///         max: NonZeroUsize::new(64).unwrap(),
///         latency: Some(Duration::from_millis(500)),
///         ..AimdConfig::default()
///     }),
///     ..HostConfig::default()
/// };
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct AimdConfig {
    /// The first limit. Default 4.
    pub initial: NonZeroUsize,
    /// The lowest limit. Default 1.
    pub min: NonZeroUsize,
    /// The highest limit. Default 256.
    pub max: NonZeroUsize,
    /// How much is added to the limit for each `limit` good answers. Default 1.
    pub increase: f64,
    /// The limit is multiplied by this on overload; from 0 to 1. Default 0.5.
    pub decrease: f64,
    /// Statuses that report overload. Default 429 and 503.
    pub statuses: Statuses,
    /// An answer whose first byte takes longer counts as overload, too, and so does a call that ended at its deadline.
    /// Default: none, the time does not matter.
    pub latency: Option<Duration>,
}

impl Default for AimdConfig {
    fn default() -> Self {
        Self {
            initial: NonZeroUsize::MIN.saturating_add(3),
            min: NonZeroUsize::MIN,
            max: NonZeroUsize::MIN.saturating_add(255),
            increase: 1.0,
            decrease: 0.5,
            statuses: Statuses::none().and(429..=429).and(503..=503),
            latency: None,
        }
    }
}

/// What the end of a request says about the load of the host.
///
/// ```
/// use courser::{Aimd, AimdConfig, LoadSignal};
///
/// let limit = Aimd::new(AimdConfig::default());
/// assert_eq!(limit.judge(503, None), LoadSignal::TooMuch);
/// assert_eq!(limit.judge(404, None), LoadSignal::Fine);
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LoadSignal {
    /// The host can take more.
    Fine,
    /// The host is overloaded.
    TooMuch,
    /// Nothing is known: the call was cancelled, or the host was not reached.
    Unknown,
}

/// The limit of one host. Has no clock: callers pass the time.
///
/// ```
/// use std::time::{Duration, Instant};
/// use courser::{Aimd, AimdConfig, LoadSignal};
///
/// let mut limit = Aimd::new(AimdConfig::default());
/// let began = Instant::now();
/// assert_eq!(limit.limit(), 4);
/// for _ in 0..4 {
///     limit.record(began, began + Duration::from_millis(10), 4, LoadSignal::Fine);
/// }
/// assert_eq!(limit.limit(), 5);
/// // Requests that were in flight together lower the limit only once.
/// for _ in 0..5 {
///     limit.record(began, began + Duration::from_millis(20), 5, LoadSignal::TooMuch);
/// }
/// assert_eq!(limit.limit(), 2);
/// ```
#[derive(Clone, Debug)]
pub struct Aimd {
    config: AimdConfig,
    /// Invariant: from `config.min` to `config.max`, or `config.min` if that is more.
    limit: f64,
    /// When the limit was lowered last. Requests that began before are about the time before.
    lowered_at: Option<Instant>,
}

impl Aimd {
    /// The limit of a host without any answers.
    pub fn new(config: AimdConfig) -> Self {
        let mut limit = Self {
            limit: config.initial.get() as f64,
            config,
            lowered_at: None,
        };
        limit.keep_within();
        limit
    }

    /// The configuration.
    pub fn config(&self) -> &AimdConfig {
        &self.config
    }

    /// How many requests may be in flight.
    pub fn limit(&self) -> usize {
        // The sum of fractions may be below the whole number by a rounding error.
        (self.limit + 1e-6) as usize
    }

    /// What an answer says about the load, from its status and from the time to its first byte.
    pub fn judge(&self, status: u16, latency: Option<Duration>) -> LoadSignal {
        let slow = latency
            .zip(self.config.latency)
            .is_some_and(|(latency, most)| latency > most);
        if slow || self.config.statuses.contains(status) {
            LoadSignal::TooMuch
        } else {
            LoadSignal::Fine
        }
    }

    /// Records the end of a request that began at `began`, while `in_flight` requests were in flight, this one
    /// included. True if the limit has changed.
    pub fn record(
        &mut self,
        began: Instant,
        now: Instant,
        in_flight: usize,
        load: LoadSignal,
    ) -> bool {
        let before = self.limit();
        match load {
            LoadSignal::Unknown => {}
            LoadSignal::TooMuch => {
                // Requests that were in flight together are about the same moment.
                if self.lowered_at.is_none_or(|lowered_at| began >= lowered_at) {
                    self.limit *= self.config.decrease.clamp(0.0, 1.0);
                    self.lowered_at = Some(now);
                }
            }
            // The answers of a host with few requests do not show that the host can take more.
            LoadSignal::Fine if in_flight.saturating_mul(2) >= before => {
                self.limit += self.config.increase.max(0.0) / before.max(1) as f64;
            }
            LoadSignal::Fine => {}
        }
        self.keep_within();
        before != self.limit()
    }

    fn keep_within(&mut self) {
        let (min, max) = (self.config.min.get(), self.config.max.get());
        // Not `clamp`, which panics if the bounds are reversed. NaN becomes the lower bound.
        self.limit = self.limit.min(max as f64).max(min as f64);
    }
}
