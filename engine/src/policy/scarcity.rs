//! When connections are opened again after the machine had no descriptor left.
//!
//! A shortage is no failure of a host. It acts as a limit on connections: no more than the client had at that time,
//! until a pause is over. So a connection that ends makes room for another one, and a pause that grows keeps the client
//! from trying all the time. A client without any connection waits for [`MOST_ALONE`], and for [`LEAST_TRIES`]. Then its
//! calls fail.

use std::time::Duration;

use super::later;
use crate::error::Shortage;
use crate::time::Time;

/// The limit on connections that a shortage sets. Without a shortage there is none.
#[derive(Debug, Default)]
pub(crate) struct Scarcity {
    current: Option<Limit>,
    /// The pause after the last shortage.
    pause: Duration,
    last: Option<Time>,
    /// Since when each shortage has met a client without connections.
    alone: Option<(Time, u32)>,
}

#[derive(Clone, Copy, Debug)]
struct Limit {
    shortage: Shortage,
    connections: usize,
    until: Time,
}

/// What follows a shortage.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum AfterShortage {
    /// The calls wait. A timer must be set to this time for the next try; `None` if it is set already.
    Wait(Option<Time>),
    /// No connection of the client can make room: a call fails.
    Fail,
}

impl Scarcity {
    /// No connection could be opened, while the client has `open` others.
    pub(crate) fn note(&mut self, now: Time, shortage: Shortage, open: usize) -> AfterShortage {
        let is_new = self.last.is_none_or(|last| later(last, FORGOTTEN) < now);
        if is_new || open > 0 {
            self.alone = None;
        }
        self.last = Some(now);
        if open == 0 && self.alone_for_too_long(now) {
            self.current = None;
            return AfterShortage::Fail;
        }
        // A try before the end of the pause, because a connection has ended, does not make the pause longer.
        let running = self.current.map(|limit| limit.until);
        let running = running.filter(|until| *until > now);
        let until = running.unwrap_or_else(|| {
            self.pause = match is_new {
                true => FIRST_PAUSE,
                false => (2 * self.pause).clamp(FIRST_PAUSE, LONGEST_PAUSE),
            };
            later(now, self.pause)
        });
        self.current = Some(Limit {
            shortage,
            connections: open,
            until,
        });
        AfterShortage::Wait(running.is_none().then_some(until))
    }

    /// Counts a shortage that has met a client without connections.
    fn alone_for_too_long(&mut self, now: Time) -> bool {
        let (since, tries) = self.alone.get_or_insert((now, 0));
        *tries = tries.saturating_add(1);
        *tries >= LEAST_TRIES && later(*since, MOST_ALONE) <= now
    }

    /// A socket could be made for a connection.
    #[inline]
    pub(crate) fn note_opened(&mut self) {
        self.alone = None;
    }

    /// The most connections that the client may have.
    #[inline]
    pub(crate) fn limit(&self) -> usize {
        self.current.map_or(usize::MAX, |limit| limit.connections)
    }

    pub(crate) fn shortage(&self) -> Option<Shortage> {
        self.current.map(|limit| limit.shortage)
    }

    /// Whether the pause ends at that time.
    pub(crate) fn has_timer(&self, at: Time) -> bool {
        self.current.is_some_and(|limit| limit.until == at)
    }

    /// Lifts the limit if the pause is over.
    pub(crate) fn timer_fired(&mut self, now: Time) {
        if self.current.is_some_and(|limit| limit.until <= now) {
            self.current = None;
        }
    }
}

/// The pause after the first shortage. It doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(10);

const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// After so long without a shortage, the next one is the first again.
const FORGOTTEN: Duration = Duration::from_secs(2);

/// How long a client without any connection waits for a descriptor.
const MOST_ALONE: Duration = Duration::from_secs(1);

/// How often a client without any connection tries at least: a rate, or a caller that is busy, may leave more than
/// [`MOST_ALONE`] between two tries.
const LEAST_TRIES: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    const NONE_LEFT: Shortage = Shortage::SystemDescriptors;

    #[test]
    fn pauses_grow_and_start_again() {
        let mut now = Time::now();
        let mut scarcity = Scarcity::default();
        assert_eq!(scarcity.limit(), usize::MAX);
        for pause in [10, 20, 40, 80, 160, 320, 500, 500] {
            let until = now + Duration::from_millis(pause);
            assert_eq!(
                scarcity.note(now, NONE_LEFT, 5),
                AfterShortage::Wait(Some(until))
            );
            // A connection has ended, and its descriptor went elsewhere.
            assert_eq!(scarcity.note(now, NONE_LEFT, 4), AfterShortage::Wait(None));
            assert_eq!((scarcity.limit(), scarcity.has_timer(until)), (4, true));
            scarcity.timer_fired(now);
            assert_eq!(scarcity.shortage(), Some(NONE_LEFT));
            now = until;
            scarcity.timer_fired(now);
            assert_eq!((scarcity.limit(), scarcity.shortage()), (usize::MAX, None));
        }
        now = now + FORGOTTEN;
        let until = now + FIRST_PAUSE;
        assert_eq!(
            scarcity.note(now, NONE_LEFT, 0),
            AfterShortage::Wait(Some(until))
        );
    }

    #[test]
    fn alone_for_a_second() {
        let start = Time::now();
        let mut now = start;
        let mut scarcity = Scarcity::default();
        while let AfterShortage::Wait(until) = scarcity.note(now, NONE_LEFT, 0) {
            let until = until.expect("a pause begins");
            assert!(until > now);
            now = until;
        }
        let waited = now - start;
        assert!(
            (MOST_ALONE..MOST_ALONE + LONGEST_PAUSE).contains(&waited),
            "{waited:?}"
        );
        // The other calls that wait fail now, too, and the first one of a later shortage waits again.
        assert_eq!(scarcity.note(now, NONE_LEFT, 0), AfterShortage::Fail);
        now = now + 2 * FORGOTTEN;
        assert_ne!(scarcity.note(now, NONE_LEFT, 0), AfterShortage::Fail);
        // Rare tries: time alone does not count.
        for _ in 1..LEAST_TRIES - 1 {
            now = now + MOST_ALONE;
            assert_ne!(scarcity.note(now, NONE_LEFT, 0), AfterShortage::Fail);
        }
        now = now + MOST_ALONE;
        assert_eq!(scarcity.note(now, NONE_LEFT, 0), AfterShortage::Fail);
        now = now + 2 * FORGOTTEN;
        assert_ne!(scarcity.note(now, NONE_LEFT, 0), AfterShortage::Fail);
        // A socket between two shortages starts the time again.
        now = now + MOST_ALONE;
        scarcity.note_opened();
        assert_ne!(scarcity.note(now, NONE_LEFT, 0), AfterShortage::Fail);
    }
}
