//! The hosts that this worker has, if several share a store.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use courser::net::Net;
use jiff::Timestamp;

use super::Watcher;
use super::keeping::Failed;
use crawl::clock::Clock;
use store::{HostId, Nature, StoreHandle, Tenure};
use verdict::life::time::after;

/// Until when this worker may ask, and when it gives the next sign of life.
pub(super) struct Holding {
    tenure: Tenure,
    /// The number under which the hosts were claimed that are known.
    number: i64,
    beat_at: Option<Instant>,
}

impl Default for Holding {
    fn default() -> Self {
        Self::new(Tenure::endless())
    }
}

impl Holding {
    fn new(tenure: Tenure) -> Self {
        Self {
            number: tenure.number(),
            tenure,
            beat_at: None,
        }
    }

    /// The number of the worker.
    pub(super) fn number(&self) -> i64 {
        self.number
    }

    /// Whether requests may be sent.
    pub(super) fn may_ask(&self, now: Instant) -> bool {
        self.number == self.tenure.number() && !self.tenure.is_over(now)
    }

    /// Whether the store has a fleet.
    pub(super) fn is_shared(&self) -> bool {
        self.tenure.number() != 0
    }
}

impl<N: Net, H: StoreHandle, C: Clock> Watcher<N, H, C> {
    /// Shares the store with other workers: asks hosts as long as they are this worker's.
    #[must_use]
    pub fn with_tenure(mut self, tenure: Tenure) -> Self {
        self.holding = Holding::new(tenure);
        self
    }

    /// Gives a sign of life, gives back hosts with nothing to do, and forgets what belongs to others by now.
    pub(super) fn watch_tenure(&mut self) {
        if !self.holding.is_shared() {
            return;
        }
        if self.holding.number != self.holding.tenure.number() {
            self.holding.number = self.holding.tenure.number();
            tracing::warn!("this worker gave no sign of life in time: others have its hosts now");
            self.asking.recall(|_| true);
            self.look_again();
        }
        let now = self.asking.now();
        if self.holding.beat_at.is_some_and(|at| at > now) {
            return;
        }
        self.holding.beat_at = now.checked_add(BEAT);
        self.read_orders();
        let soon = after(self.now(), LOOK);
        self.looking.at = Some(self.looking.at.map_or(soon, |at| at.min(soon)));
        // A host that was claimed a moment ago is not known here before the answer has come.
        let is_looking = self.looking.is_under_way || self.cycles.is_looking();
        let in_use: Option<HashSet<HostId>> =
            (!is_looking).then(|| self.book.iter().map(|(host, _)| host).collect());
        self.keeping.ask(
            Nature::Read,
            Failed::Other,
            move |engine| match &in_use {
                Some(in_use) => engine.release(in_use).map(drop),
                None => engine.beat(),
            },
            |()| None,
        );
    }
}

/// The delays of hosts, for those who have them next.
impl<N: Net, H: StoreHandle, C: Clock> Watcher<N, H, C> {
    /// Hosts that may not be asked yet, and until when: what the next worker has to know.
    pub(super) fn rests(&mut self) -> Vec<(HostId, Timestamp)> {
        let (now, monotonic) = (self.now(), self.asking.now());
        let asking = &mut self.asking;
        let rests = self.book.iter().filter_map(|(host, page)| {
            let paced = asking.next_at(&page.root);
            let paced = paced.map(|at| at.saturating_duration_since(monotonic));
            let paced = paced.filter(|wait| !wait.is_zero());
            let until = paced.map(|wait| after(now, wait)).max(page.parked_until);
            until
                .filter(|until| *until > now)
                .map(|until| (host, until))
        });
        rests.collect()
    }

    /// Tells the other workers when hosts may be asked again. To be called when nothing is asked any more.
    pub fn hand_over(&mut self) {
        if !self.holding.is_shared() {
            return;
        }
        let rests = self.rests();
        self.tell_rests(rests);
    }

    pub(super) fn tell_rests(&self, rests: Vec<(HostId, Timestamp)>) {
        if self.holding.is_shared() && !rests.is_empty() {
            self.keeping.ask(
                Nature::Read,
                Failed::Other,
                move |engine| engine.rest(&rests),
                |()| None,
            );
        }
    }
}

/// How soon it is looked for what others have made due.
const LOOK: Duration = Duration::from_secs(2);

/// How often a worker without anything to store gives a sign of life: often enough for the shortest lease.
const BEAT: Duration = Duration::from_secs(1);
