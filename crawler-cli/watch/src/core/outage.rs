//! While the own network fails.

use std::collections::HashSet;

use courser::net::Net;
use jiff::Timestamp;

use super::Watcher;
use super::keeping::Failed;
use super::queue::{Kind, QueueId};
use crawl::clock::Clock;
use store::{DueUrl, Guarded, HostId, Nature, Notice, StoreHandle, UrlId};
use verdict::guard::Round;

impl<N: Net, H: StoreHandle, C: Clock> Watcher<N, H, C> {
    /// The guard of the own network went on: nothing is asked but rounds. These URLs are to be asked again.
    pub(super) fn network_went_on(&mut self, now: Timestamp, again: Vec<DueUrl>) {
        self.figures.guards.void.inc_by(again.len() as u64);
        for due in again {
            self.asking.put_back(due);
        }
        self.figures.guards.own_network.set(1);
        let why = self.network.on().map(|on| on.why.clone());
        let text = format!("the own network fails: {}", why.unwrap_or_default());
        self.save_network(now, text);
    }

    /// Stores the times of the guard, and tells the operator.
    fn save_network(&mut self, now: Timestamp, text: String) {
        tracing::warn!("{text}");
        let stops = self.network.stops().clone();
        let notice = notice(now, "guard", None, text);
        self.keeping.ask(
            Nature::Must,
            Failed::Other,
            move |engine| {
                engine.save_stops(Guarded::OwnNetwork, &stops)?;
                engine.note(&notice)
            },
            |_| None,
        );
    }

    /// Tells the operator something.
    pub(super) fn note(&mut self, now: Timestamp, kind: &str, host: Option<HostId>, text: String) {
        tracing::warn!("{text}");
        let notice = notice(now, kind, host, text);
        self.keeping.ask(
            Nature::Must,
            Failed::Other,
            move |engine| engine.note(&notice),
            |_| None,
        );
    }

    /// Rounds, and what follows from them.
    pub(super) fn watch_network(&mut self, now: Timestamp) {
        if self.network.on().is_some_and(|on| !on.is_cleared) && !self.clear(now) {
            return;
        }
        match self.network.end_round(now) {
            Some(None) => self.network_went_off(now),
            Some(Some(again)) => {
                self.network_went_on(now, again);
                return;
            }
            None => {}
        }
        if self.gate.is_draining || self.gate.is_starting {
            return;
        }
        match self.network.round_due(now) {
            Some(Round::Canaries) => self.ask_canaries(),
            Some(Round::Hosts(hosts)) => self.ask_some(now, hosts),
            None => {}
        }
    }

    /// Removes all works, which have learned wrong things meanwhile; calls that are in flight end first.
    fn clear(&mut self, now: Timestamp) -> bool {
        if self.asking.clear().is_none() {
            return false;
        }
        // Controls were removed, too: what waits for them is asked again.
        let pages = self.book.iter_mut();
        let waiting: Vec<_> = pages
            .flat_map(|(_, page)| std::mem::take(&mut page.awaiting_control))
            .collect();
        for (due, _) in waiting {
            self.asking.put_back(due);
        }
        self.network.set_cleared();
        self.watch_holds(now);
        true
    }

    fn network_went_off(&mut self, now: Timestamp) {
        self.figures.guards.own_network.set(0);
        self.save_network(now, "the own network works again".to_owned());
        // Rounds ask hosts that failed; their works begin anew.
        self.clear(now);
        self.gate.is_refill_due = true;
        self.looking.at = Some(now);
    }

    fn ask_canaries(&mut self) {
        let canaries: Vec<_> = self.network.canaries().to_vec();
        self.network.begin_canaries(canaries.len());
        for (index, url) in canaries.into_iter().enumerate() {
            self.asking.ask_canary(index, url);
        }
    }

    /// Asks one URL of each of some hosts: of these first, then of others.
    fn ask_some(&mut self, now: Timestamp, first: Vec<HostId>) {
        // A queue without a work can be asked: the works of the last round go, unless calls are still in flight.
        self.clear(now);
        let active = self.asking.fleet().active().into_iter();
        let hosts = first.into_iter().chain(active.map(|queue| queue.host));
        let (known, unknown) = self.some_to_ask(now, hosts);
        let is_unknown = known.is_empty();
        let mut urls = Vec::new();
        for host in self.network.hosts_to_ask(known, unknown) {
            if let Some((queue, url)) = self.next_of_host(host)
                && self.give(now, queue)
                && self.asking.is_asked(url)
            {
                urls.push((host, url));
            }
            if urls.len() >= ASKED_IN_ROUND {
                break;
            }
        }
        self.network.begin_round(urls, is_unknown);
    }

    /// Those of the hosts that can be asked, each once: those that answered earlier, and those that never did.
    fn some_to_ask(
        &mut self,
        now: Timestamp,
        hosts: impl Iterator<Item = HostId>,
    ) -> (Vec<HostId>, Vec<HostId>) {
        let mut all = HashSet::new();
        let can_be_asked = |host: &HostId| {
            let is_left_alone = self.left_alone(now, *host).is_some();
            all.insert(*host) && !is_left_alone && self.next_of_host(*host).is_some()
        };
        let hosts: Vec<_> = hosts.filter(can_be_asked).collect();
        let has_answered = |host: &HostId| {
            let page = self.book.get(*host);
            page.is_some_and(|page| page.facts.answered_at.is_some())
        };
        hosts.into_iter().partition(has_answered)
    }

    /// The next URL of a host that has no work, and its queue.
    fn next_of_host(&mut self, host: HostId) -> Option<(QueueId, UrlId)> {
        let queues = [Kind::Schedule, Kind::Doubt].map(|kind| QueueId { host, kind });
        let fleet = self.asking.fleet();
        queues.into_iter().find_map(|queue| {
            let next = fleet.peek(queue)?.id.url;
            fleet.work(queue).is_none().then_some((queue, next))
        })
    }
}

pub(super) fn notice(at: Timestamp, kind: &str, host: Option<HostId>, text: String) -> Notice {
    Notice {
        at,
        kind: kind.to_owned(),
        host,
        who: None,
        text,
    }
}

/// URLs that are asked in a round.
const ASKED_IN_ROUND: usize = 5;
