//! Tells whether a host turned negative as a whole: a purged cache, a content delivery network that lost its origin.
//!
//! The first URL of a host that turns negative makes the guard ask siblings: URLs that were alive. If more than a share
//! of all that were alive and asked lately turned negative, the host is held. While it is held, samples of the held URLs
//! are asked; when two in a row are good, or after the longest time, the hold ends and all held URLs are asked again.

use std::time::Duration;

use jiff::Timestamp;

use super::recent::Recent;
use super::{Guard, Stops};
use crate::Class;
use crate::life::time::{after, between};
use crate::life::{Held, State};

/// What counts as a flip: `host_flip` in the configuration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlipRules {
    /// How many URLs that were alive must have been asked within the window. Default: 20.
    pub min: u32,
    /// More than this share of them turning negative is a flip. Default: 0.05.
    pub share: f64,
    /// The time in which they are counted. Default: 10 minutes.
    pub window: Duration,
    /// The share of the held URLs that a sample asks, but at least 5 URLs. Default: 0.01.
    pub sample: f64,
    /// The longest hold. Default: 72 hours; zero: no limit.
    pub max_hold: Duration,
}

impl Default for FlipRules {
    fn default() -> Self {
        Self {
            min: 20,
            share: 0.05,
            window: Duration::from_secs(600),
            sample: 0.01,
            max_hold: Duration::from_secs(72 * 3600),
        }
    }
}

/// What is to be done about a host.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FlipStep {
    /// Ask up to this number of other URLs of the host that are [`State::Alive`], under its limits.
    AskSiblings(u32),
    /// The hold began: quarantine what is suspect or broken ([`Rules::hold`](crate::life::Rules::hold)), tell the
    /// operator, and treat verdicts as taken while a guard was on.
    Hold,
    /// The hold ended: release what is quarantined ([`Rules::release`](crate::life::Rules::release)) and ask all of
    /// that at once.
    Release,
}

/// A hold as the store keeps it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Hold {
    /// When it began.
    pub since: Timestamp,
    /// When the last sample was taken.
    pub sampled_at: Option<Timestamp>,
    /// Whether the last sample was good.
    pub was_sample_good: bool,
}

/// The guard of one host, or of a group of hosts that fail together.
#[derive(Clone, Debug)]
pub struct HostFlip {
    rules: FlipRules,
    /// Verdicts about URLs that were alive, and those of them that were negative.
    asked: Recent,
    turned: Recent,
    siblings_asked_at: Option<Timestamp>,
    hold: Option<Hold>,
    stops: Stops,
    /// The longest hold ended without a sign of life: the host is not held again before it shows one.
    is_exhausted: bool,
}

impl Default for HostFlip {
    fn default() -> Self {
        Self::new(FlipRules::default())
    }
}

impl HostFlip {
    /// A host that is not held.
    pub fn new(rules: FlipRules) -> Self {
        Self::with_hold(rules, None)
    }

    /// A host whose hold was read from the store.
    pub fn with_hold(rules: FlipRules, hold: Option<Hold>) -> Self {
        let mut stops = Stops::default();
        if let Some(hold) = hold {
            stops.begin(hold.since);
        }
        Self {
            rules,
            asked: Recent::new(rules.window),
            turned: Recent::new(rules.window),
            siblings_asked_at: None,
            hold,
            stops,
            is_exhausted: false,
        }
    }

    /// The same with the times in which the host was held, from the store.
    #[must_use]
    pub fn with_stops(mut self, stops: Stops) -> Self {
        self.stops = stops;
        match self.hold {
            Some(hold) => self.stops.begin(hold.since),
            None => {
                // The hold ended, and the process with it.
                let last = self.stops.iter().last();
                if let Some((since, None)) = last {
                    self.stops.end(since);
                }
            }
        }
        self
    }

    /// Uses these rules from now on, for a hold that has begun, too.
    pub fn set_rules(&mut self, rules: FlipRules) {
        self.rules = rules;
        self.asked.set_width(rules.window);
        self.turned.set_width(rules.window);
    }

    /// Takes a verdict about a URL of the host, with the state that the URL had before.
    ///
    /// Only URLs that were alive count, so a set that is all negative when it is first seen is no flip. Void verdicts do
    /// not come here; sampled ones come to [`handle_sample`](Self::handle_sample) instead.
    pub fn handle_verdict(
        &mut self,
        now: Timestamp,
        before: State,
        class: Class,
    ) -> Option<FlipStep> {
        let has_turned = match class {
            Class::Ok | Class::Soft => false,
            Class::Negative => true,
            Class::Network | Class::Unknown | Class::Void => return None,
        };
        if class == Class::Ok {
            self.is_exhausted = false;
        }
        if !before.is_alive() {
            return None;
        }
        self.asked.note(now);
        if has_turned {
            self.turned.note(now);
        }
        if self.hold.is_some() || self.is_exhausted {
            return None;
        }
        if self.has_flipped(now) {
            self.stops.begin(now);
            self.hold = Some(Hold {
                since: now,
                sampled_at: None,
                was_sample_good: false,
            });
            return Some(FlipStep::Hold);
        }
        let is_soon =
            |at| between(at, now) < self.rules.window.saturating_mul(WINDOWS_BETWEEN_SIBLINGS);
        if !has_turned || self.siblings_asked_at.is_some_and(is_soon) {
            return None;
        }
        self.siblings_asked_at = Some(now);
        Some(FlipStep::AskSiblings(SIBLINGS))
    }

    /// Whether the host is held.
    pub fn is_held(&self) -> bool {
        self.hold.is_some()
    }

    /// The hold, for the store.
    pub fn hold(&self) -> Option<Hold> {
        self.hold
    }

    /// The hold, for [`Context::guard`](crate::life::Context::guard).
    pub fn held(&self) -> Option<Held> {
        Some(Held {
            by: Guard::HostFlip,
            until: self.ends_at()?,
        })
    }

    /// When the hold ends at the latest.
    pub fn ends_at(&self) -> Option<Timestamp> {
        let since = self.hold?.since;
        Some(match self.rules.max_hold {
            Duration::ZERO => Timestamp::MAX,
            longest => after(since, longest),
        })
    }

    /// The times in which the host was held, as far as they are known since the guard was made.
    pub fn stops(&self) -> &Stops {
        &self.stops
    }

    /// When the next sample is due. The longer the hold, the rarer the samples; a good one is soon confirmed.
    pub fn sample_at(&self) -> Option<Timestamp> {
        let hold = self.hold?;
        let sampled_at = hold.sampled_at.unwrap_or(hold.since);
        let age = between(hold.since, sampled_at);
        let pause = match hold.was_sample_good {
            true => self.rules.window,
            false => (age / 4)
                .min(self.rules.max_hold / 12)
                .max(self.rules.window),
        };
        Some(after(sampled_at, pause))
    }

    /// How many of the held URLs a sample asks.
    pub fn sample_size(&self, held: u64) -> u64 {
        // The cast saturates.
        let share = (held as f64 * self.rules.sample).ceil() as u64;
        share.max(LEAST_SAMPLE).min(held)
    }

    /// Takes the result of a sample. Two in a row with half or more of the URLs alive end the hold.
    pub fn handle_sample(&mut self, now: Timestamp, alive: u64, asked: u64) -> Option<FlipStep> {
        let hold = self.hold.as_mut()?;
        hold.sampled_at = Some(now);
        let is_good = asked > 0 && alive.saturating_mul(2) >= asked;
        if is_good && hold.was_sample_good {
            return self.release(now);
        }
        hold.was_sample_good = is_good;
        None
    }

    /// Ends a hold that has lasted for the longest time.
    pub fn handle_time(&mut self, now: Timestamp) -> Option<FlipStep> {
        if now < self.ends_at()? {
            return None;
        }
        let step = self.release(now);
        self.is_exhausted = true;
        step
    }

    /// Ends the hold: an operator says so.
    pub fn release(&mut self, now: Timestamp) -> Option<FlipStep> {
        self.hold.take()?;
        self.stops.end(now);
        self.asked = Recent::new(self.rules.window);
        self.turned = Recent::new(self.rules.window);
        Some(FlipStep::Release)
    }

    /// Whether nothing would be lost if the guard was made anew.
    pub fn is_idle(&mut self, now: Timestamp) -> bool {
        let pause = self.rules.window.saturating_mul(WINDOWS_BETWEEN_SIBLINGS);
        let is_recent = |at| between(at, now) < pause;
        self.hold.is_none()
            && !self.is_exhausted
            && self.asked.count(now) == 0
            && !self.siblings_asked_at.is_some_and(is_recent)
    }

    fn has_flipped(&mut self, now: Timestamp) -> bool {
        let (asked, turned) = (self.asked.count(now), self.turned.count(now));
        asked >= u64::from(self.rules.min) && turned as f64 > self.rules.share * asked as f64
    }
}

/// Siblings are asked at most once in this number of windows: hourly.
const WINDOWS_BETWEEN_SIBLINGS: u32 = 6;

const SIBLINGS: u32 = 20;

const LEAST_SAMPLE: u64 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minutes: i64) -> Timestamp {
        Timestamp::from_second(1_767_225_600 + minutes * 60).unwrap()
    }

    /// Verdicts about URLs that were alive, one after the other at the same time.
    fn asked(host: &mut HostFlip, now: Timestamp, good: usize, negative: usize) -> Vec<FlipStep> {
        let good = std::iter::repeat_n(Class::Ok, good);
        let negative = std::iter::repeat_n(Class::Negative, negative);
        good.chain(negative)
            .filter_map(|class| host.handle_verdict(now, State::Alive, class))
            .collect()
    }

    #[test]
    fn siblings_are_asked_once_an_hour() {
        let mut host = HostFlip::default();
        let ask = [FlipStep::AskSiblings(20)];
        assert_eq!(asked(&mut host, at(0), 0, 1), ask);
        assert_eq!(asked(&mut host, at(59), 0, 1), []);
        assert_eq!(asked(&mut host, at(60), 0, 1), ask);
    }

    #[test]
    fn more_than_the_share_of_enough_urls_is_a_flip() {
        // (good, negative, whether that is a flip)
        let table = [
            (19, 1, false),
            (18, 2, true),
            (0, 19, false),
            (0, 20, true),
            (95, 5, false),
            (94, 6, true),
        ];
        for (good, negative, is_flip) in table {
            let mut host = HostFlip::default();
            let steps = asked(&mut host, at(0), good, negative);
            assert_eq!(
                steps.contains(&FlipStep::Hold),
                is_flip,
                "{good} {negative}"
            );
            assert_eq!(host.is_held(), is_flip);
        }
    }

    #[test]
    fn what_was_asked_before_the_window_does_not_count() {
        let mut host = HostFlip::default();
        asked(&mut host, at(0), 0, 19);
        assert_eq!(asked(&mut host, at(12), 18, 1), []);
        assert_eq!(asked(&mut host, at(13), 0, 1), [FlipStep::Hold]);
    }

    #[test]
    fn only_what_was_alive_can_flip() {
        let mut host = HostFlip::default();
        for before in State::ALL.into_iter().filter(|state| !state.is_alive()) {
            for _ in 0..100 {
                assert_eq!(host.handle_verdict(at(0), before, Class::Negative), None);
            }
        }
        // What says nothing about the URL says nothing about the host.
        for class in [Class::Network, Class::Unknown, Class::Void] {
            for _ in 0..100 {
                assert_eq!(host.handle_verdict(at(0), State::Alive, class), None);
            }
        }
    }

    fn held() -> HostFlip {
        let mut host = HostFlip::default();
        assert!(asked(&mut host, at(0), 0, 20).contains(&FlipStep::Hold));
        host
    }

    #[test]
    fn two_good_samples_in_a_row_end_a_hold() {
        let mut host = held();
        assert_eq!(host.sample_at(), Some(at(10)));
        assert_eq!(host.handle_sample(at(10), 3, 5), None);
        assert_eq!(host.handle_sample(at(20), 2, 5), None);
        assert_eq!(host.handle_sample(at(30), 1, 2), None);
        assert_eq!(host.sample_at(), Some(at(40)));
        assert_eq!(host.handle_sample(at(40), 5, 5), Some(FlipStep::Release));
        assert!(!host.is_held());
        assert_eq!(host.handle_sample(at(50), 5, 5), None);
        assert_eq!(
            host.stops().within(Some(at(0)), at(50)),
            Duration::from_secs(40 * 60)
        );
    }

    #[test]
    fn samples_that_found_nobody_are_not_good() {
        let mut host = held();
        assert_eq!(host.handle_sample(at(10), 0, 0), None);
        assert_eq!(host.handle_sample(at(20), 0, 0), None);
        assert!(host.is_held());
    }

    #[test]
    fn samples_are_a_share_but_at_least_five() {
        let host = held();
        let table = [(0, 0), (3, 3), (5, 5), (400, 5), (501, 6), (100_000, 1_000)];
        for (held, size) in table {
            assert_eq!(host.sample_size(held), size, "{held}");
        }
    }

    #[test]
    fn the_longest_hold_ends_and_is_not_repeated_without_a_sign_of_life() {
        let mut host = held();
        assert_eq!(host.ends_at(), Some(at(72 * 60)));
        assert_eq!(host.handle_time(at(72 * 60 - 1)), None);
        assert_eq!(host.handle_time(at(72 * 60)), Some(FlipStep::Release));
        assert_eq!(asked(&mut host, at(72 * 60 + 1), 0, 40), []);
        // The first good verdict makes the host worth a guard again.
        asked(&mut host, at(80 * 60), 1, 0);
        assert!(asked(&mut host, at(80 * 60), 0, 40).contains(&FlipStep::Hold));
    }
}
