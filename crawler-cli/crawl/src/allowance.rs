//! How many requests a host accepts, at a time and per second. There are no limits until the host refuses requests with
//! 429 or 503; then the limits follow from what the host answered before its refusals. Pure: time is an argument.
//!
//! The host does not say which limit was exceeded, so both limits adapt, each from its own evidence. A host that
//! accepts 16 requests at a time answers 16 of 64 and refuses the others at once. A host that accepts 300 per second
//! answers some, and refuses those that come too soon. The time between two pauses is one *period*; a period ends at
//! its first refusal, and requests that were in flight then still belong to it.

use std::time::{Duration, Instant};

/// The learned limits of one host.
#[derive(Debug, Default)]
pub struct Allowance {
    window: Option<Limit>,
    /// Requests per second.
    rate: Option<Limit>,
    /// The values of the limits at the last [`handle_time`](Self::handle_time).
    window_now: Option<usize>,
    rate_now: Option<f64>,
    /// The earliest time of the next request, by the rate.
    next_at: Option<Instant>,
    period: Period,
    /// Consecutive periods with fewer answers than requests allowed in flight.
    short_periods: u32,
    /// Answers in all periods that ended with a pause, and the sum of those pauses.
    good: f64,
    paused: Duration,
}

/// A limit that grows with the cube of time: hardly at first, then faster and faster.
#[derive(Clone, Copy, Debug)]
struct Limit {
    value: f64,
    since: Instant,
}

/// The results of the requests since the last pause.
#[derive(Debug, Default)]
struct Period {
    began: Option<Instant>,
    good: u32,
    good_at: Option<Instant>,
    refused: u32,
    /// When the first refusal came, and how many requests were in flight then.
    refused_at: Option<(Instant, usize)>,
}

impl Limit {
    fn at(self, now: Instant) -> f64 {
        let time = now.saturating_duration_since(self.since);
        let cube = (time.as_secs_f64() / DOUBLED_AFTER.as_secs_f64()).powi(3);
        self.value * (1.0 + cube)
    }
}

impl Allowance {
    /// How many requests may be in flight.
    pub fn window(&self) -> usize {
        self.window_now.unwrap_or(usize::MAX)
    }

    /// The earliest time of the next request; `None`: at any time.
    pub fn next_at(&self) -> Option<Instant> {
        self.next_at
    }

    /// Brings the limits up to date, before a request is considered.
    pub fn handle_time(&mut self, now: Instant) {
        if let Some((refused_at, under_way)) = self.period.refused_at {
            self.learn(now, refused_at, under_way);
        }
        // The cast saturates.
        self.window_now = self.window.map(|limit| limit.at(now) as usize);
        self.rate_now = self.rate.map(|limit| limit.at(now));
    }

    pub fn handle_sent(&mut self, now: Instant) {
        self.period.began.get_or_insert(now);
        let Some(rate) = self.rate_now else {
            return;
        };
        let due = self.next_at.map_or(now, |at| at.max(now));
        self.next_at = Some(due + Duration::from_secs_f64(1.0 / rate));
    }

    pub(crate) fn handle_good(&mut self, now: Instant) {
        self.period.good = self.period.good.saturating_add(1);
        self.period.good_at = Some(now);
    }

    /// The host refused a request while `others` were in flight. `is_news`: the request was sent after the last pause.
    pub(crate) fn handle_refusal(&mut self, now: Instant, is_news: bool, others: usize) {
        if is_news {
            self.period
                .refused_at
                .get_or_insert((now, others.saturating_add(1)));
        }
        self.period.refused = self.period.refused.saturating_add(1);
    }

    /// Adapts the limits at the end of the pause that followed a period.
    fn learn(&mut self, now: Instant, refused_at: Instant, under_way: usize) {
        let period = std::mem::take(&mut self.period);
        let good = f64::from(period.good);
        let window = self.window().min(under_way) as f64;
        // Fewer answers than requests allowed at a time: the window is too large, and the rate shows only when the
        // window fits. With more answers, the window is not the cause. Nor with few refusals, unless that repeats.
        let share = match period.good {
            0 => 0.5,
            _ => good / (good + f64::from(period.refused)),
        };
        // If the rate keeps the number of requests below the window, a refusal says nothing about the window.
        let is_slowed = self.rate_now.is_some() && under_way < self.window();
        let is_short = good < window && window > 1.0 && !is_slowed;
        self.short_periods = if is_short { self.short_periods + 1 } else { 0 };
        let is_plain = self.window.is_none() || share < 0.75;
        if is_short && (is_plain || self.short_periods >= SHORT_PERIODS) {
            self.short_periods = 0;
            self.window = Some(Limit {
                value: (window * share).floor().max(1.0),
                since: now,
            });
            return;
        }
        if let Some(limit) = &mut self.window
            && !is_slowed
        {
            limit.value = window;
            limit.since = now;
        }
        let seconds = |from: Option<Instant>, to: Instant| {
            let time = from.map_or(Duration::ZERO, |from| to.saturating_duration_since(from));
            time.max(SHORTEST).as_secs_f64()
        };
        let good = good.max(1.0);
        let took = seconds(
            period.began,
            period
                .good_at
                .map_or(refused_at, |good_at| good_at.max(refused_at)),
        );
        let pause = seconds(Some(refused_at), now);
        self.good += good;
        self.paused += now.saturating_duration_since(refused_at);
        // The rate is too high: reduce it more, the shorter the good time was beside its pause. But never below the
        // rate that the pauses allow anyway.
        let mean = good / took;
        let before = self.rate_now.unwrap_or(mean);
        let all = self.good / self.paused.max(SHORTEST).as_secs_f64();
        self.rate = Some(Limit {
            value: (before * (took / (took + pause)).sqrt()).max(mean.min(all)),
            since: now,
        });
        self.next_at = None;
    }
}

/// Without a refusal, a limit doubles in this time.
const DOUBLED_AFTER: Duration = Duration::from_secs(8);

/// This number of consecutive short periods is hardly chance.
const SHORT_PERIODS: u32 = 3;

/// Shorter times are rounded up to this, because clocks are coarse.
const SHORTEST: Duration = Duration::from_micros(100);

#[cfg(test)]
mod tests {
    use super::*;

    /// A mistake to avoid: a low rate keeps few requests in flight, and each refusal reduces the window, finally to 1.
    #[test]
    fn what_the_rate_keeps_small_is_not_too_many() {
        let mut now = Instant::now();
        let mut allowance = Allowance::default();
        for good in [50, 3, 0, 1, 0, 2, 0] {
            allowance.handle_time(now);
            for _ in 0..=good {
                allowance.handle_sent(now);
                now += Duration::from_millis(1);
            }
            for _ in 0..good {
                allowance.handle_good(now);
            }
            allowance.handle_refusal(now, true, 2);
            now += Duration::from_secs(1);
        }
        allowance.handle_time(now);
        assert!(allowance.rate_now.is_some());
        assert_eq!(allowance.window(), usize::MAX);
    }
}
