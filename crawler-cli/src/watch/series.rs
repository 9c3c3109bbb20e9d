//! How the figures went: samples of the last hour in memory, and coarser ones for longer in the store.
//!
//! A [`Sample`] says what happened in a span of time, and how things were at its end. [`Sampler`] takes one every 10 seconds
//! for the [`Series`] in memory, and one every 5 minutes that is to be stored.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::figures::{Figures, Phase};
use crate::check::Class;
use crate::check::life::State;

/// What happened in a span of time.
///
/// In text, durations are microseconds. Fields may join in later versions; none changes its meaning.
///
/// ```
/// use crawler_cli::watch::series::Sample;
///
/// let sample = Sample { seconds: 300, checks: [9, 1, 0, 0, 0, 0], ..Sample::default() };
/// assert_eq!(Sample::from_text(&sample.to_text()), Some(sample));
/// assert_eq!(Sample::from_text("[]"), None);
/// ```
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct Sample {
    /// How long the span was.
    pub seconds: u32,
    /// The URLs at its end, by state, in the order of [`State::ALL`].
    pub urls: [u64; State::ALL.len()],
    /// The verdicts of the span, by class, in the order of [`Class::ALL`].
    pub checks: [u64; Class::ALL.len()],
    /// Half of the answers of the span took no longer; zero without answers.
    #[serde(with = "micros")]
    pub p50: Duration,
    /// 95 % of them took no longer.
    #[serde(with = "micros")]
    pub p95: Duration,
    /// For how long the oldest URL was due, at the end.
    #[serde(with = "micros")]
    pub lag: Duration,
    /// The share of the URLs that were late at the end.
    pub stale: f64,
    /// The requests that waited for their answers, at the end.
    pub in_flight: u64,
    /// The URLs that guards held, at the end.
    pub held: u64,
    /// The hosts at the end: worked on, held, and those that had asked to wait.
    pub hosts: [u64; 3],
}

impl Sample {
    /// The verdicts of each second.
    pub fn checks_per_second(&self) -> f64 {
        let all: u64 = self.checks.iter().sum();
        all as f64 / f64::from(self.seconds.max(1))
    }

    /// Adds what another worker did in the same time: what each counts for itself. What all of them know is as here.
    #[must_use]
    pub fn with(mut self, other: &Self) -> Self {
        let weight = |sample: &Self| sample.checks.iter().sum::<u64>() as f64;
        let (own, all) = (weight(&self), weight(&self) + weight(other));
        // Of two halves, the middle is not known better.
        if all > 0.0 {
            let share = own / all;
            self.p50 = self.p50.mul_f64(share) + other.p50.mul_f64(1.0 - share);
        }
        self.p95 = self.p95.max(other.p95);
        // Those of a span of another length count as often.
        let scale = f64::from(self.seconds.max(1)) / f64::from(other.seconds.max(1));
        for (sum, count) in self.checks.iter_mut().zip(other.checks) {
            *sum += (count as f64 * scale).round() as u64;
        }
        self.in_flight += other.in_flight;
        self.hosts[0] += other.hosts[0];
        self.hosts[2] += other.hosts[2];
        self
    }

    /// As text, for the store.
    pub fn to_text(&self) -> String {
        // Numbers and lists of numbers are always JSON.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// From the text of the store; `None` if it is none.
    pub fn from_text(text: &str) -> Option<Self> {
        match serde_json::from_str(text).ok()? {
            object @ serde_json::Value::Object(_) => serde_json::from_value(object).ok(),
            _ => None,
        }
    }
}

mod micros {
    use std::time::Duration;

    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(time: &Duration, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_u64(u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(text: D) -> Result<Duration, D::Error> {
        u64::deserialize(text).map(Duration::from_micros)
    }
}

/// The samples of the last hour.
#[derive(Debug, Default)]
pub struct Series(Mutex<VecDeque<(Timestamp, Sample)>>);

impl Series {
    /// How many samples are kept.
    pub const MOST: usize = 360;

    /// Keeps a sample of the span that ended at this time.
    pub fn push(&self, at: Timestamp, sample: Sample) {
        let mut samples = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if samples.len() == Self::MOST {
            samples.pop_front();
        }
        samples.push_back((at, sample));
    }

    /// All samples, oldest first.
    pub fn all(&self) -> Vec<(Timestamp, Sample)> {
        let samples = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        samples.iter().copied().collect()
    }

    /// The last sample.
    pub fn last(&self) -> Option<(Timestamp, Sample)> {
        let samples = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        samples.back().copied()
    }
}

/// Takes samples of figures.
#[derive(Debug)]
pub struct Sampler {
    figures: Arc<Figures>,
    series: Arc<Series>,
    short: Span,
    long: Span,
    /// Of this service alone.
    last: Option<Sample>,
}

impl Sampler {
    /// Begins to take samples now.
    pub fn new(figures: Arc<Figures>, series: Arc<Series>, now: Instant) -> Self {
        let begin = |least| Span {
            least,
            began: now,
            counts: Counts::of(&figures),
        };
        Self {
            short: begin(SHORT),
            long: begin(LONG),
            figures,
            series,
            last: None,
        }
    }

    /// Takes what is to be taken, and adds what others do to what is kept in memory. Returns a sample that is to be stored,
    /// every 5 minutes.
    pub fn turn(
        &mut self,
        now: Instant,
        wall: Timestamp,
        others: impl FnOnce() -> Vec<Sample>,
    ) -> Option<Sample> {
        if let Some(sample) = self.short.sample(&self.figures, now) {
            let others = others();
            self.last = Some(sample);
            self.series.push(
                wall,
                others.iter().fold(sample, |all, other| all.with(other)),
            );
        }
        self.long.sample(&self.figures, now)
    }

    /// The last sample of this service alone.
    pub fn last(&self) -> Option<Sample> {
        self.last
    }
}

/// The span of the next sample.
#[derive(Debug)]
struct Span {
    least: Duration,
    began: Instant,
    /// As they were when it began.
    counts: Counts,
}

impl Span {
    fn sample(&mut self, figures: &Figures, now: Instant) -> Option<Sample> {
        let took = now.saturating_duration_since(self.began);
        if took < self.least {
            return None;
        }
        let counts = Counts::of(figures);
        let before = std::mem::replace(&mut self.counts, counts.clone());
        self.began = now;
        let backlog = &figures.backlog;
        let times = Times::between(&before, &counts);
        Some(Sample {
            // Rounded, since a turn comes a little late.
            seconds: u32::try_from((took + Duration::from_millis(500)).as_secs())
                .unwrap_or(u32::MAX),
            urls: State::ALL.map(|state| backlog.urls(state).get()),
            checks: std::array::from_fn(|class| {
                counts.checks[class].saturating_sub(before.checks[class])
            }),
            p50: times.quantile(0.5),
            p95: times.quantile(0.95),
            lag: Duration::from_millis(backlog.lag.get()),
            stale: backlog.staleness.get(),
            in_flight: figures.requests.in_flight.get(),
            held: figures.guards.quarantined.get(),
            hosts: [
                backlog.hosts_ready.get(),
                backlog.hosts_held.get(),
                backlog.hosts_throttled.get(),
            ],
        })
    }
}

/// Counters of figures. They only grow.
#[derive(Clone, Debug)]
struct Counts {
    checks: [u64; Class::ALL.len()],
    /// The upper ends of the buckets of times, and how many answers are in each.
    times: Vec<(Option<Duration>, u64)>,
}

impl Counts {
    fn of(figures: &Figures) -> Self {
        let mut checks = [0; Class::ALL.len()];
        for (class, _, count) in figures.results.iter() {
            let place = Class::ALL.iter().position(|known| *known == class);
            checks[place.unwrap_or(0)] += count;
        }
        Self {
            checks,
            times: figures.requests.phase(Phase::Total).buckets().collect(),
        }
    }
}

/// How long the answers of a span took.
struct Times(Vec<(Option<Duration>, u64)>);

impl Times {
    fn between(before: &Counts, after: &Counts) -> Self {
        let pairs = before.times.iter().zip(&after.times);
        Self(
            pairs
                .map(|((_, before), (end, after))| (*end, after.saturating_sub(*before)))
                .collect(),
        )
    }

    /// The time that this share of the answers did not exceed, if those of each bucket are spread evenly over it.
    fn quantile(&self, share: f64) -> Duration {
        let all: u64 = self.0.iter().map(|(_, count)| count).sum();
        let wanted = all as f64 * share;
        let (mut begin, mut seen) = (Duration::ZERO, 0.0);
        for (end, count) in self.0.iter().filter(|_| all > 0) {
            // What is beyond the last bucket is not known better.
            let Some(end) = *end else { break };
            let count = *count as f64;
            if count > 0.0 && seen + count >= wanted {
                return begin + (end - begin).mul_f64(((wanted - seen) / count).clamp(0.0, 1.0));
            }
            (begin, seen) = (end, seen + count);
        }
        begin
    }
}

/// How long the span of a sample in memory is.
const SHORT: Duration = Duration::from_secs(10);
/// How long the span of a sample in the store is.
const LONG: Duration = Duration::from_secs(300);
