//! When a URL is asked again. Times are drawn: URLs that were asked together are not asked together for ever.

use std::time::Duration;

use jiff::Timestamp;

use super::time::after;
use plain::random::Random;

/// Times between checks that follow each other; the last one repeats.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Ladder {
    steps: Vec<Duration>,
    last: Duration,
}

impl Ladder {
    /// The first time, and those that follow.
    pub fn new(first: Duration, further: impl IntoIterator<Item = Duration>) -> Self {
        let mut steps = vec![first];
        steps.extend(further);
        Self {
            last: steps.last().copied().unwrap_or(first),
            steps,
        }
    }

    /// From a list of the configuration; `None` if the list is empty.
    pub fn from_steps(steps: &[Duration]) -> Option<Self> {
        let (&first, further) = steps.split_first()?;
        Some(Self::new(first, further.iter().copied()))
    }

    /// The times of the ladder, without repetitions.
    pub fn steps(&self) -> &[Duration] {
        &self.steps
    }

    /// The time after the check with this number, from 0.
    pub fn step(&self, number: u32) -> Duration {
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        self.steps.get(number).copied().unwrap_or(self.last)
    }

    /// The same, but slower after the last step has been repeated for a week's worth of days: 7 times as late.
    pub(crate) fn step_of_failure(&self, number: u32) -> Duration {
        let repeated = usize::try_from(number)
            .unwrap_or(usize::MAX)
            .saturating_sub(self.steps.len() - 1);
        match repeated < REPEATS {
            true => self.step(number),
            false => self.last.saturating_mul(7),
        }
    }
}

/// Times between checks that grow from the first to the longest.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Intervals {
    /// The first.
    pub first: Duration,
    /// The longest.
    pub longest: Duration,
}

impl Intervals {
    /// The interval after another good verdict: 1.5 times as long.
    pub fn grown(&self, interval: Duration) -> Duration {
        interval
            .saturating_add(interval / 2)
            .max(self.after_recovery())
            .min(self.longest)
    }

    /// The interval after a URL has become good again: a day where the first interval is a week.
    pub fn after_recovery(&self) -> Duration {
        self.first / 7
    }

    /// The interval of what is gone, after the check with this number, from 0: 7, 14, 30, 60, 90 days, then the longest.
    pub fn of_gone(&self, number: u32) -> Duration {
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        match GONE_DAYS.get(number) {
            Some(&days) => (self.first.saturating_mul(days) / GONE_DAYS[0]).min(self.longest),
            None => self.longest,
        }
    }
}

/// When the cycles of reconciling begin: each takes what is in doubt and due. A cycle begins an interval after the last
/// one began, and never while the last one is still running.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Reconcile {
    /// The time between two cycles. Default: 30 s.
    pub interval: Duration,
    /// The shortest and the longest time that is added. Default: 1 to 6 s.
    pub jitter: (Duration, Duration),
}

impl Default for Reconcile {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(30),
            jitter: (Duration::from_secs(1), Duration::from_secs(6)),
        }
    }
}

impl Reconcile {
    /// When the next cycle begins, after one that began then and has ended now.
    pub fn next(&self, began: Timestamp, now: Timestamp, random: &mut Random) -> Timestamp {
        let (shortest, longest) = self.jitter;
        let width = longest.saturating_sub(shortest);
        let jitter = shortest.saturating_add(scaled(width, fraction(random)));
        after(began, self.interval.saturating_add(jitter)).max(now)
    }
}

/// `interval` later, give or take `share` of it.
pub(crate) fn around(
    now: Timestamp,
    interval: Duration,
    share: f64,
    random: &mut Random,
) -> Timestamp {
    let factor = 1.0 - share + 2.0 * share * fraction(random);
    after(now, scaled(interval, factor))
}

/// Anywhere between two times from now.
pub(crate) fn within(
    now: Timestamp,
    shortest: Duration,
    longest: Duration,
    random: &mut Random,
) -> Timestamp {
    let width = longest.saturating_sub(shortest);
    after(
        now,
        shortest.saturating_add(scaled(width, fraction(random))),
    )
}

/// Times of configurations can be huge: the product saturates.
fn scaled(time: Duration, factor: f64) -> Duration {
    Duration::try_from_secs_f64(time.as_secs_f64() * factor).unwrap_or(Duration::MAX)
}

/// From 0 to less than 1.
fn fraction(random: &mut Random) -> f64 {
    (random.next_number() >> 11) as f64 / (1u64 << 53) as f64
}

/// How much checks of what is alive or gone vary.
pub(crate) const SHARE_OF_INTERVALS: f64 = 0.1;

/// How much checks of what is in doubt or unreachable vary.
pub(crate) const SHARE_OF_STEPS: f64 = 0.2;

/// How often the last step of a failure is repeated before it becomes slower.
const REPEATS: usize = 7;

const GONE_DAYS: [u32; 5] = [7, 14, 30, 60, 90];
