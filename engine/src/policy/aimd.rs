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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn count(count: usize) -> NonZeroUsize {
        NonZeroUsize::new(count).expect("not zero")
    }

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn it_grows_by_one_a_round_and_shrinks_by_half_a_mishap() {
        let mut limit = Aimd::new(AimdConfig::default());
        let mut now = Instant::now();
        for round in 4..20 {
            assert_eq!(limit.limit(), round);
            let began = now;
            now += 10 * MS;
            for _ in 0..round {
                limit.record(began, now, round, LoadSignal::Fine);
            }
        }
        let began = now;
        now += 10 * MS;
        assert!(limit.record(began, now, 20, LoadSignal::TooMuch));
        assert_eq!(limit.limit(), 10);
        // The other requests of that time change nothing; one that began later does.
        assert!(!limit.record(began, now + MS, 19, LoadSignal::TooMuch));
        assert!(limit.record(now, now + MS, 10, LoadSignal::TooMuch));
        assert_eq!(limit.limit(), 5);
    }

    #[test]
    fn what_is_not_used_does_not_grow() {
        let mut limit = Aimd::new(AimdConfig {
            initial: count(10),
            ..AimdConfig::default()
        });
        let now = Instant::now();
        for _ in 0..1000 {
            assert!(!limit.record(now, now, 4, LoadSignal::Fine));
            assert!(!limit.record(now, now, 10, LoadSignal::Unknown));
        }
        assert_eq!(limit.limit(), 10);
    }

    #[test]
    fn answers_are_judged_by_status_and_time() {
        let timed = Aimd::new(AimdConfig {
            latency: Some(100 * MS),
            ..AimdConfig::default()
        });
        let untimed = Aimd::new(AimdConfig::default());
        for (status, latency, with, without) in [
            (200, 100, LoadSignal::Fine, LoadSignal::Fine),
            (200, 101, LoadSignal::TooMuch, LoadSignal::Fine),
            (429, 1, LoadSignal::TooMuch, LoadSignal::TooMuch),
            (503, 1, LoadSignal::TooMuch, LoadSignal::TooMuch),
            (500, 1, LoadSignal::Fine, LoadSignal::Fine),
            (404, 1, LoadSignal::Fine, LoadSignal::Fine),
        ] {
            assert_eq!(timed.judge(status, Some(latency * MS)), with, "{status}");
            assert_eq!(
                untimed.judge(status, Some(latency * MS)),
                without,
                "{status}"
            );
        }
        assert_eq!(timed.judge(200, None), LoadSignal::Fine);
    }

    proptest! {
        /// For all configurations and answers: the limit stays within its bounds, a step up is a fraction, and only one
        /// of the requests of one time lowers the limit.
        #[test]
        fn within_its_bounds_by_its_steps(
            (initial, min, max) in (1usize..100, 1usize..100, 1usize..100),
            (increase, decrease) in (0.0f64..4.0, 0.0f64..1.0),
            answers in prop::collection::vec((0u32..50, 0u32..100, 0usize..120, 0u8..6), 0..300),
        ) {
            let config = AimdConfig {
                initial: count(initial),
                min: count(min),
                max: count(max),
                increase,
                decrease,
                ..AimdConfig::default()
            };
            let mut limit = Aimd::new(config);
            let most = max.max(min);
            let start = Instant::now();
            let mut now = start;
            let mut lowered_at = None;
            for (pause, age, in_flight, load) in answers {
                now += pause * MS;
                let began = now.checked_sub(age * MS).unwrap_or(start).max(start);
                let load = match load {
                    0 => LoadSignal::TooMuch,
                    1 => LoadSignal::Unknown,
                    _ => LoadSignal::Fine,
                };
                let before = limit.limit;
                let changed = limit.record(began, now, in_flight, load);
                let after = limit.limit;
                prop_assert!(limit.limit() >= min && limit.limit() <= most);
                prop_assert_eq!(changed, (before + 1e-6) as usize != (after + 1e-6) as usize);
                let counts = lowered_at.is_none_or(|at| began >= at);
                match load {
                    LoadSignal::TooMuch if counts => {
                        lowered_at = Some(now);
                        prop_assert_eq!(after, (before * decrease).max(min as f64));
                    }
                    LoadSignal::Fine if in_flight * 2 >= before as usize => {
                        prop_assert!(after >= before && after <= before + increase / before.floor() + 1e-6);
                    }
                    _ => prop_assert_eq!(after, before),
                }
            }
        }

        /// Any numbers are safe.
        #[test]
        fn any_numbers(increase in any::<f64>(), decrease in any::<f64>(), bad in any::<bool>()) {
            let config = AimdConfig { increase, decrease, ..AimdConfig::default() };
            let mut limit = Aimd::new(config);
            let now = Instant::now();
            for n in 0..100 {
                let load = if bad && n % 3 == 0 { LoadSignal::TooMuch } else { LoadSignal::Fine };
                limit.record(now + n * MS, now + n * MS, usize::MAX, load);
                prop_assert!((1..=256).contains(&limit.limit()));
            }
        }
    }
}
