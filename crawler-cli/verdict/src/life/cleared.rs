//! What a host has taught about negative answers that did not last.

use std::collections::VecDeque;
use std::time::Duration;

use jiff::Timestamp;

use super::time::between;

/// The negative episodes of a host's URLs that were cleared in the last 90 days: how long they had lasted.
///
/// Only those that can still be the longest are kept, at most [`MOST`](Self::MOST).
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Cleared {
    /// When an episode was cleared, and how long it had lasted. Oldest first; each is shorter than the one before.
    episodes: VecDeque<(Timestamp, Duration)>,
}

impl Cleared {
    /// How many episodes are kept.
    pub const MOST: usize = 16;

    /// From episodes that were kept, oldest first.
    pub fn from_episodes(episodes: impl IntoIterator<Item = (Timestamp, Duration)>) -> Self {
        let mut cleared = Self::default();
        for (at, lasted) in episodes {
            cleared.note(at, lasted);
        }
        cleared
    }

    /// What is to be kept: when each episode was cleared, and how long it had lasted.
    pub fn episodes(&self) -> impl Iterator<Item = (Timestamp, Duration)> {
        self.episodes.iter().copied()
    }

    /// An episode was cleared.
    pub fn note(&mut self, now: Timestamp, lasted: Duration) {
        while self
            .episodes
            .back()
            .is_some_and(|&(_, other)| other <= lasted)
        {
            self.episodes.pop_back();
        }
        // Of many that grow shorter and shorter, the shortest does least.
        if self.episodes.len() == Self::MOST {
            self.episodes.pop_back();
        }
        self.episodes.push_back((now, lasted));
        self.forget(now);
    }

    /// The longest episode; zero if there was none.
    pub fn longest(&self, now: Timestamp) -> Duration {
        let recent = |&&(at, _): &&(Timestamp, Duration)| between(at, now) <= KEPT;
        let mut episodes = self.episodes.iter().filter(recent);
        episodes
            .next()
            .map_or(Duration::ZERO, |&(_, lasted)| lasted)
    }

    fn forget(&mut self, now: Timestamp) {
        while let Some(&(at, _)) = self.episodes.front()
            && between(at, now) > KEPT
        {
            self.episodes.pop_front();
        }
    }
}

const KEPT: Duration = Duration::from_secs(90 * 86_400);
