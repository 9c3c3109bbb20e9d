//! Schedules: when a job is to run, by a cron expression. Pure: the time is an argument.
//!
//! A firing is known by its schedule and its scheduled time, so that it happens once, however often the clock shows
//! that time, and on however many machines. croner reads the expressions and finds their times.
//!
//! When the clocks go forward, the one time of a day (`30 2 * * *`) that is left out fires right after the change; when they
//! go back, such a time that comes twice fires the first time. An expression with several times of the day, such as
//! `0 2,14 * * *` or `*/15 * * * *`, neither fires for what is left out, nor omits what comes twice.

#[cfg(test)]
mod tests;

use std::fmt;
use std::iter;
use std::time::Duration;

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};
use xxhash_rust::xxh3::xxh3_64;

/// What a schedule is made from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ScheduleSettings {
    /// The cron expression.
    pub cron: String,
    /// The name of a time zone of the IANA database. Default `UTC`.
    pub timezone: String,
    /// What happens at a firing while an earlier run goes on. Default [`Overlap::Forbid`].
    pub overlap: Overlap,
    /// What happens with firings that were missed. Default [`CatchUp::Once`].
    pub catch_up: CatchUp,
    /// Each firing is delayed by the same part of this time, which depends on the name of the schedule and on the
    /// store, so that not all machines do the same at the same time. Default: none.
    pub jitter: Duration,
}

impl Default for ScheduleSettings {
    fn default() -> Self {
        Self {
            cron: String::new(),
            timezone: "UTC".to_owned(),
            overlap: Overlap::default(),
            catch_up: CatchUp::default(),
            jitter: Duration::ZERO,
        }
    }
}

/// What happens at a firing while an earlier run goes on.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Overlap {
    /// The firing is left out and counted.
    #[default]
    Forbid,
    /// One run waits for the end of the earlier one; further firings are left out and counted.
    QueueOne,
    /// Both run.
    Allow,
}

/// What happens with firings that were missed, because the program did not run or the clock was set forward.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum CatchUp {
    /// One run for all of them, at once.
    #[default]
    Once,
    /// None: the next run is the next firing.
    Skip,
}

/// A cron schedule.
///
/// ```
/// use std::time::Duration;
/// use jobs::{Decision, Schedule, ScheduleRuns, ScheduleSettings};
///
/// let nightly = Schedule::new("nightly", "a store", &ScheduleSettings {
///     cron: "30 2 * * *".to_owned(),
///     timezone: "Europe/Zurich".to_owned(),
///     ..ScheduleSettings::default()
/// })?;
/// // On 29 March 2026 the clocks go from 02:00 to 03:00: the run is not lost.
/// let evening = "2026-03-28T18:00:00+01:00".parse().unwrap();
/// let next = nightly.next_firings(evening, 2);
/// assert_eq!(next[0], "2026-03-29T03:00:00+02:00".parse().unwrap());
/// assert_eq!(next[1], "2026-03-30T02:30:00+02:00".parse().unwrap());
///
/// let mut runs = ScheduleRuns::since(evening);
/// assert_eq!(nightly.poll(&runs, evening), Decision::Wait { until: Some(next[0]) });
/// // The machine was off for three days: one run, and two that were missed.
/// let back = evening + Duration::from_secs(3 * 86_400);
/// let decision = nightly.poll(&runs, back);
/// let Decision::Fire(firing) = &decision else { panic!("{decision:?}") };
/// assert_eq!(firing.missed, 2);
/// runs.handle(&decision);
/// assert!(matches!(nightly.poll(&runs, back), Decision::Wait { .. }));
/// # Ok::<(), jobs::BadSchedule>(())
/// ```
#[derive(Clone, Debug)]
pub struct Schedule {
    name: String,
    cron: Cron,
    zone: TimeZone,
    settings: ScheduleSettings,
    /// The delay of each firing.
    delay: SignedDuration,
}

/// Why there is no such schedule.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum BadSchedule {
    /// The cron expression is wrong, or never fires.
    Expression(BadExpression),
    /// No time zone has this name.
    TimeZone(String),
}

impl fmt::Display for BadSchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expression(bad) => bad.fmt(f),
            Self::TimeZone(name) => write!(f, "no time zone is called `{name}`"),
        }
    }
}

impl std::error::Error for BadSchedule {}

/// A text that is no cron expression, or an expression that never fires.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct BadExpression {
    /// The text.
    pub text: String,
    /// What is wrong.
    pub why: String,
}

impl fmt::Display for BadExpression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cron expression `{}`: {}", self.text, self.why)
    }
}

impl std::error::Error for BadExpression {}

/// What a schedule has done. Kept by the caller, for instance in a store.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ScheduleRuns {
    /// All firings up to this scheduled time are decided.
    pub decided: Timestamp,
    /// The number of runs that go on.
    pub running: u32,
    /// The scheduled time of a run that waits for the end of another one.
    pub queued: Option<Timestamp>,
    /// The number of firings that were missed or left out.
    pub missed: u64,
}

/// A firing whose time has come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Firing {
    /// The time by the expression, without the jitter. Together with the name of the schedule it identifies the run.
    pub scheduled_at: Timestamp,
    /// The number of firings since the last decision for which nothing ran and nothing will, at most 100,000.
    pub missed: u64,
}

/// What a schedule does now.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Decision {
    /// Nothing before this time. `None`: never, since the calendar ends.
    Wait {
        /// When to ask again.
        until: Option<Timestamp>,
    },
    /// A run begins.
    Fire(Firing),
    /// A run waits for the end of the earlier one.
    Queue(Firing),
    /// No run begins: the firing itself counts as missed, too.
    Skip(Firing, SkipReason),
}

/// Why a firing was left out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SkipReason {
    /// An earlier run goes on.
    Overlap,
    /// The firing is too old: missed firings are not made up for.
    Late,
}

impl Schedule {
    /// The schedule with this name. `store` is a text that is the same for all machines that share the schedule.
    ///
    /// # Errors
    /// The expression is wrong or never fires, or there is no such time zone.
    pub fn new(name: &str, store: &str, settings: &ScheduleSettings) -> Result<Self, BadSchedule> {
        let cron = expression(&settings.cron).map_err(BadSchedule::Expression)?;
        let zone = TimeZone::get(&settings.timezone)
            .map_err(|_| BadSchedule::TimeZone(settings.timezone.clone()))?;
        let width = settings.jitter.as_nanos();
        let hash = xxh3_64(format!("{name}\0{store}").as_bytes());
        let delay = (width.min(u128::from(u64::MAX)) * u128::from(hash)) >> 64;
        let delay = i64::try_from(delay).unwrap_or(i64::MAX);
        Ok(Self {
            name: name.to_owned(),
            cron,
            zone,
            settings: settings.clone(),
            delay: SignedDuration::from_nanos(delay),
        })
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The settings.
    pub fn settings(&self) -> &ScheduleSettings {
        &self.settings
    }

    /// The next firings after this time, by the expression and without the jitter.
    pub fn next_firings(&self, after: Timestamp, count: usize) -> Vec<Timestamp> {
        self.firings(after).take(count).collect()
    }

    fn firings(&self, after: Timestamp) -> impl Iterator<Item = Timestamp> {
        let next = |at: &Zoned| self.cron.find_next_occurrence(at, false).ok();
        let first = next(&after.to_zoned(self.zone.clone()));
        iter::successors(first, next).map(|at| at.timestamp())
    }

    /// What to do now. Changes nothing: the caller hands the decision to [`ScheduleRuns::handle`], and then asks again.
    pub fn poll(&self, runs: &ScheduleRuns, now: Timestamp) -> Decision {
        if let (Some(scheduled_at), 0) = (runs.queued, runs.running) {
            return Decision::Fire(Firing {
                scheduled_at,
                missed: 0,
            });
        }
        let decided = self.decided(runs, now);
        let Some(first) = self.firings(decided).next() else {
            return Decision::Wait { until: None };
        };
        let due = first.saturating_add(self.delay).unwrap_or(first);
        if now < due {
            return Decision::Wait { until: Some(due) };
        }
        let latest_possible = now.saturating_sub(self.delay).unwrap_or(first);
        let (latest, missed) = self.count(decided, first, latest_possible);
        let firing = Firing {
            scheduled_at: latest,
            missed,
        };
        let late = latest_possible.duration_since(firing.scheduled_at);
        match (self.settings.overlap, runs.running) {
            _ if self.is_too_late(late) => Decision::Skip(firing, SkipReason::Late),
            (_, 0) | (Overlap::Allow, _) => Decision::Fire(firing),
            (Overlap::QueueOne, _) if runs.queued.is_none() => Decision::Queue(firing),
            (Overlap::QueueOne | Overlap::Forbid, _) => Decision::Skip(firing, SkipReason::Overlap),
        }
    }

    /// Up to when all firings are decided. While the clock is behind what is decided, because it was set back, nothing
    /// fires a second time. But a clock that once was far ahead must not stop the schedule for so long.
    fn decided(&self, runs: &ScheduleRuns, now: Timestamp) -> Timestamp {
        let ahead = runs.decided.duration_since(now);
        match ahead > FURTHEST_AHEAD {
            true => now,
            false => runs.decided,
        }
    }

    fn is_too_late(&self, late: SignedDuration) -> bool {
        self.settings.catch_up == CatchUp::Skip && late > ON_TIME
    }

    /// The last firing after `decided`, up to and including `until`, and how many there are before it. The first of them is known.
    fn count(&self, decided: Timestamp, first: Timestamp, until: Timestamp) -> (Timestamp, u64) {
        let firings = self.firings(decided).take_while(|at| *at <= until);
        let numbered = (0..MOST_MISSED).zip(firings).last();
        let (missed, latest) = numbered.unwrap_or((0, first));
        if missed + 1 < MOST_MISSED {
            return (latest, missed);
        }
        let until = until.to_zoned(self.zone.clone());
        let last = self.cron.find_previous_occurrence(&until, true);
        (last.map_or(latest, |at| at.timestamp()), MOST_MISSED)
    }
}

/// Reads a cron expression with five fields (minute, hour, day of month, month, day of week) or six (seconds first), or a
/// nickname such as `@daily`.
pub fn expression(text: &str) -> Result<Cron, BadExpression> {
    let bad = |why: &str| BadExpression {
        text: text.to_owned(),
        why: why.to_owned(),
    };
    if text.len() > LONGEST {
        return Err(bad("an expression has at most 256 bytes"));
    }
    let parser = CronParser::builder()
        .seconds(Seconds::Optional)
        .year(Year::Disallowed)
        .build();
    let cron = parser.parse(text);
    let cron = cron.map_err(|error| bad(&error.to_string()))?;
    let start = Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC);
    match cron.find_next_occurrence(&start, false) {
        Ok(_) => Ok(cron),
        Err(_) => Err(bad("never fires: no year has such a day")),
    }
}

impl ScheduleRuns {
    /// A schedule that begins at this time: earlier firings are none of its business.
    pub fn since(now: Timestamp) -> Self {
        Self {
            decided: now,
            running: 0,
            queued: None,
            missed: 0,
        }
    }

    /// Notes a decision.
    pub fn handle(&mut self, decision: &Decision) {
        let (Decision::Fire(firing) | Decision::Queue(firing) | Decision::Skip(firing, _)) =
            decision
        else {
            return;
        };
        self.missed += firing.missed;
        match decision {
            Decision::Wait { .. } => {}
            Decision::Fire(firing) if self.queued == Some(firing.scheduled_at) => {
                // Was decided when it was queued.
                self.queued = None;
                self.running += 1;
                return;
            }
            Decision::Fire(_) => self.running += 1,
            Decision::Queue(_) => self.queued = Some(firing.scheduled_at),
            Decision::Skip(..) => self.missed += 1,
        }
        self.decided = firing.scheduled_at;
    }

    /// A run has ended.
    pub fn handle_end(&mut self) {
        self.running = self.running.saturating_sub(1);
    }
}

/// The longest expression, in bytes.
const LONGEST: usize = 256;

/// The most missed firings that are counted: more than two months of minutes.
const MOST_MISSED: u64 = 100_000;

/// A firing that begins within this time after its own is not a missed one.
const ON_TIME: SignedDuration = SignedDuration::from_secs(60);

/// How far ahead of the clock a decided firing may be: a day and the changes of the clocks. A clock further back than
/// that was wrong before.
pub const FURTHEST_AHEAD: SignedDuration = SignedDuration::from_hours(26);
