//! Hosts and what is known about them.

use std::time::Duration;

use jiff::Timestamp;

use verdict::guard::Reach;
use verdict::life::Cleared;
use verdict::life::time::after;
use verdict::{Cause, HEAD_FACTS_LAST, HeadFault, Verdict};

/// The number of a host in a store.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct HostId(pub i64);

/// A host: a scheme, a host name and a port.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Host {
    /// Its number.
    pub id: HostId,
    /// The URL of its root: `https://example.com/`.
    pub root: String,
    /// What is known about it from earlier runs.
    pub facts: HostFacts,
}

/// What was learned about a host.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct HostFacts {
    /// Until when HEAD is not used, because the host does not know it.
    pub no_head_until: Option<Timestamp>,
    /// Until when HEAD is not used, because the host denies what GET finds.
    pub head_lies_until: Option<Timestamp>,
    /// When the host last gave any answer below 500.
    pub answered_at: Option<Timestamp>,
    /// The last control: a request whose answer says whether the host works at all.
    pub control: Option<Control>,
    /// The negative episodes of the host's URLs that were cleared, oldest first: what
    /// [`Cleared`](verdict::life::Cleared) keeps.
    pub episodes: Vec<Episode>,
}

impl HostFacts {
    /// The negative episodes that were cleared.
    pub fn cleared(&self) -> Cleared {
        let episodes = self.episodes.iter();
        Cleared::from_episodes(episodes.map(|episode| (episode.ended, episode.length)))
    }

    /// A negative episode was cleared.
    pub fn note_cleared(&mut self, now: Timestamp, lasted: Duration) {
        let mut cleared = self.cleared();
        cleared.note(now, lasted);
        let episodes = cleared.episodes();
        self.episodes = episodes
            .map(|(ended, length)| Episode { ended, length })
            .collect();
    }

    /// What was learned about HEAD, if that was not too long ago.
    pub fn head_fault(&self, now: Timestamp) -> Option<HeadFault> {
        let holds = |until: Option<Timestamp>| until.is_some_and(|until| now < until);
        if holds(self.no_head_until) {
            return Some(HeadFault::NoHead);
        }
        holds(self.head_lies_until).then_some(HeadFault::Lies)
    }

    /// Keeps what was learned about HEAD now. What was learned earlier is not believed for longer.
    pub fn note_head_fault(&mut self, now: Timestamp, fault: HeadFault) {
        if self.head_fault(now).is_none() {
            let until = Some(after(now, HEAD_FACTS_LAST));
            match fault {
                HeadFault::NoHead => self.no_head_until = until,
                HeadFault::Lies => self.head_lies_until = until,
            }
        }
    }

    /// A verdict was given about a URL of the host.
    pub fn note_verdict(&mut self, now: Timestamp, verdict: Verdict) {
        let answered = Reach::of(verdict) == Some(Reach::Answered);
        if answered && !matches!(verdict.cause(), Some(Cause::Status5xx(_))) {
            self.answered_at = Some(now);
        }
    }
}

/// The result of a host's control request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Control {
    /// When it was asked.
    pub at: Timestamp,
    /// The status; `None` if there was no answer.
    pub status: Option<u16>,
}

impl Control {
    /// Whether the host works: anything below 500 but 429.
    pub fn is_fine(self) -> bool {
        self.status
            .is_some_and(|status| status < 500 && status != 429)
    }
}

/// A span in which a URL was negative, and after which it was good again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Episode {
    /// When the URL was good again.
    pub ended: Timestamp,
    /// How long it had been negative; kept to the millisecond.
    pub length: Duration,
}
