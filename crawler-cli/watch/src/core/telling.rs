//! Changes of state in the log: those that people want to hear of as they are, all others for whoever searches for a
//! fault. A bad day of many URLs does not fill a disk: what is more than a log can take is counted.

use jiff::Timestamp;

use url::Url;

use super::failing::News;
use plain::text::rough_span;
use store::NewDeadLetter;
use verdict::life::time::between;
use verdict::life::{State, Transition};

/// Tells the log of changes.
#[derive(Debug, Default)]
pub(super) struct Telling {
    quota: Quota,
}

impl Telling {
    /// The state of a URL changes.
    pub(super) fn tell(&mut self, now: Timestamp, url: &str, change: &Transition) {
        let (from, to) = (change.from.name(), change.to.name());
        let is_repaired = (change.from, change.to) == (State::Broken, State::Alive);
        let is_news = change.event().is_some() || is_repaired;
        match is_news && !change.is_damped {
            true if self.may_tell(now) => {
                tracing::info!("{url}: {from} to {to}: {}", change.why.name())
            }
            true => {}
            false => tracing::debug!("{url}: {from} to {to}: {}", change.why.name()),
        }
    }

    /// A URL needs a human.
    pub(super) fn tell_dead_letter(&mut self, now: Timestamp, url: &str, letter: &NewDeadLetter) {
        if self.may_tell(now) {
            tracing::warn!("{url}: dead letter: {}", letter.reason);
        }
    }

    /// A host fails, or is back.
    pub(super) fn tell_host(&mut self, now: Timestamp, root: &Url, news: &News) {
        if !self.may_tell(now) {
            return;
        }
        match news {
            News::Fails(cause) => tracing::warn!("{root}: the host fails: {}", cause.name()),
            News::Back(after) => {
                tracing::info!(
                    "{root}: the host answers again, after {}",
                    rough_span(*after)
                )
            }
        }
    }

    fn may_tell(&mut self, now: Timestamp) -> bool {
        let (may, untold) = self.quota.take(now);
        if untold > 0 {
            tracing::info!("{untold} further changes: see 'watch export --changes'");
        }
        may
    }
}

/// How many lines are written in a second.
#[derive(Debug, Default)]
struct Quota {
    since: Option<Timestamp>,
    used: u32,
    over: u64,
}

impl Quota {
    /// Whether a line may be written, and how many could not before.
    fn take(&mut self, now: Timestamp) -> (bool, u64) {
        let is_over = |since| between(since, now) >= SECOND || now < since;
        let mut untold = 0;
        if self.since.is_none_or(is_over) {
            untold = std::mem::take(&mut self.over);
            (self.since, self.used) = (Some(now), 0);
        }
        let may = self.used < MOST_LINES;
        match may {
            true => self.used += 1,
            false => self.over += 1,
        }
        (may, untold)
    }
}

const SECOND: std::time::Duration = std::time::Duration::from_secs(1);
/// The most lines about URLs in a second.
const MOST_LINES: u32 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_much_is_counted() {
        let at = |millis| Timestamp::from_millisecond(millis).expect("a time");
        let mut quota = Quota::default();
        for _ in 0..MOST_LINES {
            assert_eq!(quota.take(at(5)), (true, 0));
        }
        for _ in 0..1000 {
            assert_eq!(quota.take(at(999)), (false, 0));
        }
        assert_eq!(quota.take(at(1005)), (true, 1000));
        assert_eq!(quota.take(at(1006)), (true, 0));
        // The clock may go back.
        assert_eq!(quota.take(at(0)), (true, 0));
    }
}
