//! Hosts with which workers have died: one URL at a time, which the store knows before it is asked.

use courser::net::Net;
use jiff::Timestamp;

use super::Watcher;
use super::keeping::{Failed, Reply};
use super::queue::{Kind, QueueId};
use crate::check::life::time::after;
use crate::crawl::clock::Clock;
use crate::store::{Crashes, HostId, Nature, StoreHandle, UrlId};

/// How far the care for a host is.
#[derive(Debug)]
pub(super) struct Careful {
    crashes: Crashes,
    /// The URL that the store knows to be asked.
    noted: Option<UrlId>,
    is_noting: bool,
}

impl Careful {
    /// `None`: the host needs no care.
    pub(super) fn of(crashes: Crashes) -> Option<Box<Self>> {
        let careful = Self {
            crashes,
            noted: None,
            is_noting: false,
        };
        crashes.is_careful().then(|| Box::new(careful))
    }
}

/// What is to be done with the next URL of a queue.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Turn {
    Ask,
    /// Not now.
    Wait,
    /// Those who asked the URL have died.
    Bury,
}

impl<N: Net, H: StoreHandle, C: Clock> Watcher<N, H, C> {
    /// What is to be done with the next URL of a queue, as far as the care for its host says something about that.
    pub(super) fn turn(&mut self, queue: QueueId) -> Turn {
        let host = queue.host;
        let Some(careful) = self
            .book
            .get_mut(host)
            .and_then(|page| page.careful.as_mut())
        else {
            return Turn::Ask;
        };
        let fleet = self.asking.fleet();
        let under_way = |kind| fleet.counts(QueueId { host, kind }).0;
        if careful.is_noting || Kind::ALL.into_iter().map(under_way).sum::<usize>() > 0 {
            return Turn::Wait;
        }
        let Some(next) = fleet.peek(queue).map(|due| due.id.url) else {
            return Turn::Wait;
        };
        if self.asking.is_busy(next) || careful.noted == Some(next) {
            // One that is busy is passed over.
            return Turn::Ask;
        }
        if careful.crashes.poison() == Some(next) {
            return Turn::Bury;
        }
        careful.is_noting = true;
        self.keeping.ask(
            Nature::Read,
            Failed::Mark(host),
            move |engine| engine.mark(host, next),
            move |is_own| {
                let url = is_own.then_some(next);
                Some(Reply::Marked { host, url })
            },
        );
        Turn::Wait
    }

    /// The store knows that this URL is asked. `None`: it does not, and this is tried again later.
    pub(super) fn handle_marked(&mut self, now: Timestamp, host: HostId, url: Option<UrlId>) {
        let careful = self
            .book
            .get_mut(host)
            .and_then(|page| page.careful.as_mut());
        let Some(careful) = careful else {
            return;
        };
        careful.is_noting = false;
        careful.noted = url;
        if url.is_some() {
            self.fill_host(now, host);
            self.activate();
        }
    }

    /// Whether a host waits for the store to know what is asked.
    pub(super) fn has_careful(&self) -> bool {
        self.book.iter().any(|(_, page)| page.careful.is_some())
    }

    /// The next URL of a queue is not asked: a dead letter tells why, and the URL waits for an operator.
    pub(super) fn bury(&mut self, now: Timestamp, queue: QueueId) -> bool {
        let Some(due) = self.asking.withhold(queue) else {
            return false;
        };
        tracing::warn!(
            url = due.url,
            "not asked any more: workers died when they asked it"
        );
        let judgement = self.judge.bury(now, due);
        self.keep(judgement);
        true
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
