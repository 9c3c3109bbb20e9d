//! The last hour in memory: for each minute how many URLs were judged and pruned, and how long answers took.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::figures::{Figures, Phase, quantile};

/// The minutes of the last hour, as they are counted from the figures.
#[derive(Debug)]
pub struct Hour {
    figures: Arc<Figures>,
    seen: Mutex<(Totals, VecDeque<Minute>)>,
}

/// What happened in a minute.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Minute {
    /// The verdicts of each second.
    pub checks: f64,
    /// The URLs that were pruned in a minute.
    pub pruned: f64,
    /// Half of the answers took no longer; zero without answers.
    pub p50: Duration,
    /// 95 % of them took no longer.
    pub p95: Duration,
}

/// Counters of the figures, which only grow.
#[derive(Debug)]
struct Totals {
    at: Instant,
    checks: u64,
    pruned: u64,
    /// The upper ends of buckets, and how many answers are in each.
    times: Vec<(Option<Duration>, u64)>,
}

impl Hour {
    /// Begins to count now.
    pub fn new(figures: Arc<Figures>, now: Instant) -> Self {
        let totals = Totals::of(&figures, now);
        Self {
            figures,
            seen: Mutex::new((totals, VecDeque::new())),
        }
    }

    /// Counts the minute that has ended, if one has.
    pub fn turn(&self, now: Instant) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let (before, minutes) = &mut *seen;
        let took = now.saturating_duration_since(before.at);
        if took < MINUTE {
            return;
        }
        let totals = Totals::of(&self.figures, now);
        let times: Vec<_> = (totals.times.iter().zip(&before.times))
            .map(|((end, count), (_, before))| (*end, count - before))
            .collect();
        let minute = Minute {
            checks: (totals.checks - before.checks) as f64 / took.as_secs_f64(),
            pruned: (totals.pruned - before.pruned) as f64 * 60.0 / took.as_secs_f64(),
            p50: quantile(&times, 0.5),
            p95: quantile(&times, 0.95),
        };
        minutes.truncate(MINUTES - 1);
        minutes.push_front(minute);
        *before = totals;
    }

    /// The minutes that have ended, the last one first.
    pub fn minutes(&self) -> Vec<Minute> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.1.iter().copied().collect()
    }
}

impl Totals {
    fn of(figures: &Figures, now: Instant) -> Self {
        Self {
            at: now,
            checks: figures.results.total(),
            pruned: figures.changes.pruned.get(),
            times: figures.requests.phase(Phase::Total).buckets().collect(),
        }
    }
}

const MINUTE: Duration = Duration::from_secs(60);
/// How many minutes are kept.
pub const MINUTES: usize = 60;

#[cfg(test)]
mod tests {
    use super::*;
    use verdict::Verdict;
    use verdict::life::State;

    #[test]
    fn minutes_are_counted_and_those_of_an_hour_are_kept() {
        let (start, figures) = (Instant::now(), Arc::new(Figures::default()));
        let hour = Hour::new(Arc::clone(&figures), start);
        for _ in 0..120 {
            figures.results.note(Verdict::Ok, Some(200));
            figures
                .requests
                .note_phase(Phase::Total, Duration::from_millis(50));
        }
        figures.changes.note(State::Gone, State::Pruned);
        hour.turn(start + MINUTE / 2);
        assert_eq!(hour.minutes(), []);
        hour.turn(start + MINUTE);
        let minute = hour.minutes()[0];
        assert_eq!((minute.checks, minute.pruned), (2.0, 1.0));
        // Between 32 and 64 ms.
        assert_eq!(minute.p50, Duration::from_millis(48));
        assert_eq!(minute.p95, Duration::from_micros(62_400));
        for minute in 2..100 {
            hour.turn(start + minute * MINUTE);
        }
        assert_eq!(hour.minutes(), vec![Minute::default(); MINUTES]);
    }
}
