//! Cycles of reconciling: when they begin, whom they ask, and what they leave in the store.

use courser::net::Net;
use jiff::Timestamp;

use super::Watcher;
use super::keeping::{Failed, Reply};
use super::queue::Kind;
use crawl::clock::Clock;
use store::{CycleCounts, CycleId, HostId, Lanes, Nature, StoreHandle};

impl<N: Net, H: StoreHandle, C: Clock> Watcher<N, H, C> {
    pub(super) fn cycle_began(&mut self) -> Timestamp {
        self.cycles
            .current()
            .map_or(Timestamp::MIN, |current| current.began)
    }

    pub(super) fn may_reconcile(&self) -> bool {
        let gate = &self.gate;
        !gate.is_draining && !gate.is_starting && !gate.is_store_stopped
    }

    /// Begins a cycle if one is due, looks for hosts, and ends the cycle.
    pub(super) fn reconcile(&mut self, now: Timestamp) {
        if !self.may_reconcile() {
            return;
        }
        if self.network.on().is_none() {
            self.cycles.begin(now);
        }
        let wanted = self.cycles.current().and_then(|current| {
            let wants = current.wants_hosts(MOST_OPEN);
            wants.then(|| (current.began, current.seen.clone()))
        });
        if let Some((began, seen)) = wanted {
            let mut except = self.away(now, Kind::Doubt);
            except.extend(seen);
            self.ask_hosts(Lanes::Doubt, began, except);
        }
        if let Some(ended) = self.cycles.end(now, self.asking.has_doubtful()) {
            self.figures.cycles.ended.inc();
            self.figures.cycles.took.note(ended.took(now));
            self.record_cycle(ended.id, ended.began, ended.counts, now);
        }
    }

    pub(super) fn handle_doubtful(
        &mut self,
        now: Timestamp,
        hosts: Vec<HostId>,
        has_more: bool,
        next: Option<Timestamp>,
    ) {
        let Some(current) = self.cycles.current() else {
            return;
        };
        let is_first = current.seen.is_empty();
        let is_empty = hosts.is_empty();
        current.handle_looked(hosts.into_iter(), has_more);
        let began = current.began;
        if is_first && is_empty {
            // Nothing is in doubt: no cycle is needed before something will be.
            if next.is_none_or(|next| next > now) {
                self.cycles.wait_until(now, next);
            }
        } else if is_first {
            self.keeping.ask(
                Nature::Change,
                Failed::Other,
                move |engine| engine.begin_cycle(began),
                |id| Some(Reply::CycleBegan(id)),
            );
        }
    }

    fn record_cycle(
        &mut self,
        id: Option<CycleId>,
        began: Timestamp,
        counts: CycleCounts,
        now: Timestamp,
    ) {
        if id.is_none() && counts == CycleCounts::default() {
            return;
        }
        tracing::debug!(
            asked = counts.asked,
            alive = counts.alive,
            worse = counts.worse,
            "a cycle of reconciling has ended"
        );
        self.keeping.ask(
            Nature::Must,
            Failed::Other,
            move |engine| {
                let id = id.map_or_else(|| engine.begin_cycle(began), Ok)?;
                engine.end_cycle(id, &counts, now)
            },
            |()| None,
        );
    }
}

/// Hosts that a cycle works on at a time.
const MOST_OPEN: usize = 1_000;
