//! When a URL is reported, gone and pruned, and when it is asked again. The names are those of the table `[policy]` in
//! the configuration.

use std::time::Duration;

use jiff::Timestamp;

use super::evidence::{Evidence, Negative, Negatives};
use super::record::Record;
use super::schedule::{Intervals, Ladder};
use super::states::State;

/// A set of rules by name.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Profile {
    /// Reports after 24 hours, prunes what answers 410 for 48 hours and 24 hours more.
    #[default]
    Default,
    /// Counts 404 as alive, asks again after 15 minutes what answers 410, and prunes it without grace once its negative
    /// answers span 48 hours.
    Eager,
}

impl Profile {
    /// All profiles.
    pub const ALL: [Self; 2] = [Self::Default, Self::Eager];

    /// The name in the configuration: `default` or `eager`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Eager => "eager",
        }
    }

    /// The longest wait for an answer that a URL's first attempt has, where the profile limits the wait. Further attempts
    /// have the whole timeout: a slow host is never taken for a dead one.
    pub fn adaptive_timeout(self) -> Option<Duration> {
        match self {
            Self::Default => None,
            Self::Eager => Some(Duration::from_millis(800)),
        }
    }

    /// The rules.
    pub fn rules(self) -> Rules {
        let rules = Rules::default();
        match self {
            Self::Default => rules,
            Self::Eager => Rules {
                alive_on: Negatives::NONE.with(Negative::NotFound),
                grace: Duration::ZERO,
                recheck_410: Ladder::new(15 * MINUTE, []),
                ..rules
            },
        }
    }
}

/// The rules of a URL's life. All fields have the defaults of [`Profile::Default`].
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    /// What is pruned once it is gone. Default: 410.
    pub prune_on: Negatives,
    /// Negative verdicts that count as good. Default: none.
    pub alive_on: Negatives,
    /// How many negative or soft verdicts make a URL broken. Default: 2.
    pub report_count: u32,
    /// And the time that they span at least. Default: 24 hours.
    pub report_after: Duration,
    /// The time after which a URL that cannot be reached is reported. Default: 72 hours.
    pub report_unreachable_after: Duration,
    /// If set, a failure of any kind is reported once it has lasted for this time, and not before (`--fail-after`).
    /// Default: not set.
    pub fail_after: Option<Duration>,
    /// The time from gone to pruned. Default: 24 hours.
    pub grace: Duration,
    /// Checks of what is alive: first after 7 days, each time 1.5 times as late, up to 90 days.
    pub alive_interval: Intervals,
    /// Checks of what is gone: after 7, 14, 30, 60, 90 days, then every 180 days.
    pub gone_interval: Intervals,
    /// Checks after a 410. Default: after 15 minutes, 1, 6, 24 hours, then every 48 hours.
    pub recheck_410: Ladder,
    /// Checks after a 404 or a soft verdict. Default: after 15 minutes, 1, 6, 24 hours, then every 72 hours.
    pub recheck_404: Ladder,
    /// Checks after a missing name. Default: after 1, 6, 24 hours, then every 48 hours.
    pub recheck_nxdomain: Ladder,
    /// Checks of what cannot be reached. Default: after 5, 15 minutes, 1, 6 hours, 7 times after 24 hours; then 7 times
    /// as late as the last step says: weekly.
    pub recheck_net: Ladder,
    /// When a 410 makes a URL gone. Default: 4 within 48 hours or more.
    pub gone_410: GoneRule,
    /// When a 404 does. Default: 4 within 6 days or more, with two gaps of at least half of the time between them.
    pub gone_404: GoneRule,
    /// When a missing name does. Default: 4 within 7 days or more.
    pub gone_nxdomain: GoneRule,
    /// What brings a gone URL back. Default: 2 good verdicts at least 1 hour apart.
    pub resurrect: Resurrect,
    /// More returns to [`State::Alive`] than `count` within `within` make a URL flapping. Default: 3 within 30 days.
    pub flapping: Flapping,
}

/// The evidence that makes a URL gone.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct GoneRule {
    /// The number of negative verdicts.
    pub count: u32,
    /// The time from the first to the last of them.
    pub span: Duration,
}

/// The evidence that brings a gone URL back.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Resurrect {
    /// The number of good verdicts.
    pub count: u32,
    /// The time between two of them that count.
    pub gap: Duration,
}

/// What is called flapping.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Flapping {
    /// The number of returns to [`State::Alive`] that is still fine, at most [`Flapping::MOST`].
    pub count: u8,
    /// The time in which they are counted.
    pub within: Duration,
}

impl Flapping {
    /// Records keep one return more than this number.
    pub const MOST: u8 = 7;
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            prune_on: Negatives::NONE.with(Negative::Gone),
            alive_on: Negatives::NONE,
            report_count: 2,
            report_after: DAY,
            report_unreachable_after: 3 * DAY,
            fail_after: None,
            grace: DAY,
            alive_interval: Intervals {
                first: 7 * DAY,
                longest: 90 * DAY,
            },
            gone_interval: Intervals {
                first: 7 * DAY,
                longest: 180 * DAY,
            },
            recheck_410: Ladder::new(15 * MINUTE, [HOUR, 6 * HOUR, DAY, 2 * DAY]),
            recheck_404: Ladder::new(15 * MINUTE, [HOUR, 6 * HOUR, DAY, 3 * DAY]),
            recheck_nxdomain: Ladder::new(HOUR, [6 * HOUR, DAY, 2 * DAY]),
            recheck_net: Ladder::new(5 * MINUTE, [15 * MINUTE, HOUR, 6 * HOUR, DAY]),
            gone_410: GoneRule {
                count: 4,
                span: 2 * DAY,
            },
            gone_404: GoneRule {
                count: 4,
                span: 6 * DAY,
            },
            gone_nxdomain: GoneRule {
                count: 4,
                span: 7 * DAY,
            },
            resurrect: Resurrect {
                count: 2,
                gap: HOUR,
            },
            flapping: Flapping {
                count: 3,
                within: 30 * DAY,
            },
        }
    }
}

impl Rules {
    /// Rules that report at once, for runs that end with an exit status.
    pub fn at_once() -> Self {
        Self {
            report_count: 1,
            report_after: Duration::ZERO,
            report_unreachable_after: Duration::ZERO,
            ..Self::default()
        }
    }

    /// Whether the failure of a URL is reported yet. A URL that is alive, new or quarantined is not.
    ///
    /// With [`fail_after`](Self::fail_after), a failure of any kind is reported once it has lasted for that time.
    /// Without, broken, gone and pruned URLs are reported, and all that have been failing for
    /// [`report_unreachable_after`](Self::report_unreachable_after).
    pub fn is_reported(&self, record: &Record) -> bool {
        let failing_for = record.failing_for();
        match (record.state(), self.fail_after) {
            (State::New | State::Alive | State::Quarantined, _) => false,
            (State::Gone | State::Pruned, _) => true,
            (State::Suspect | State::Broken | State::Unreachable, Some(after)) => {
                failing_for >= after
            }
            (State::Broken, None) => true,
            (State::Suspect | State::Unreachable, None) => {
                failing_for >= self.report_unreachable_after
            }
        }
    }

    /// How long a URL has still to fail until it [is reported](Self::is_reported), if time alone decides.
    pub fn reported_in(&self, record: &Record) -> Option<Duration> {
        let after = match (record.state(), self.fail_after) {
            (State::Suspect | State::Broken | State::Unreachable, Some(after)) => after,
            (State::Suspect | State::Unreachable, None) => self.report_unreachable_after,
            _ => return None,
        };
        after.checked_sub(record.failing_for())
    }

    /// The rule for a kind of negative verdict.
    pub fn gone(&self, kind: Negative) -> GoneRule {
        match kind {
            Negative::Gone => self.gone_410,
            Negative::NotFound => self.gone_404,
            Negative::Nxdomain => self.gone_nxdomain,
        }
    }

    /// The checks after a kind of negative verdict.
    pub fn recheck(&self, kind: Negative) -> &Ladder {
        match kind {
            Negative::Gone => &self.recheck_410,
            Negative::NotFound => &self.recheck_404,
            Negative::Nxdomain => &self.recheck_nxdomain,
        }
    }

    /// The time that negative verdicts have to be apart to be independent.
    pub fn gap(&self) -> Duration {
        self.gone_404.span / 2
    }

    /// How many gaps between independent verdicts the evidence needs.
    pub(crate) fn gaps_needed(&self, kinds: Negatives) -> u32 {
        match kinds.contains(Negative::NotFound) {
            true => GAPS_404.min(self.gone_404.count.saturating_sub(1)),
            false => 0,
        }
    }

    /// Whether the evidence makes a URL broken.
    pub fn is_broken(&self, evidence: &Evidence, now: Timestamp) -> bool {
        let claims = &evidence.claims;
        claims.count >= self.report_count.max(1) && claims.span(now) >= self.report_after
    }

    /// Whether the evidence makes a URL gone. With several kinds of evidence, all of their rules must agree. The span is
    /// at least twice the longest negative episode on the host that was cleared.
    pub fn is_gone(&self, evidence: &Evidence, now: Timestamp, longest_cleared: Duration) -> bool {
        let negatives = &evidence.negatives;
        let span = negatives.span(now);
        let agrees = |kind| {
            let rule = self.gone(kind);
            negatives.count >= rule.count && span >= rule.span
        };
        negatives.count > 0
            && evidence.kinds.iter().all(agrees)
            && span >= longest_cleared.saturating_mul(2)
            && evidence.gaps >= self.gaps_needed(evidence.kinds)
    }
}

/// A 404 is often an outage: three of its verdicts must be independent, as the Internet Archive's bot has it.
const GAPS_404: u32 = 2;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);
