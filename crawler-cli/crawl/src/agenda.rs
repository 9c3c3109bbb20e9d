//! Which hosts are to be visited now, and which at a later time: so that a round of the scheduler costs what is due, not
//! the number of hosts. Pure: time is an argument.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Instant;

use super::hosts::HostId;

/// The visits to hosts. A host that is neither ready nor has a timer waits for an answer, or for work.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    /// By the index of the host.
    visits: Vec<Visit>,
    /// Hosts to visit now, in this order. Those that were visited meanwhile are skipped.
    ready: VecDeque<HostId>,
    /// The number of hosts to visit now.
    awake: usize,
    /// A host's timer is the entry with the time of its visit. Other entries are outdated, and skipped.
    timers: BinaryHeap<Reverse<(Instant, HostId)>>,
}

/// The next visit to a host.
#[derive(Clone, Copy, Debug, Default)]
struct Visit {
    is_ready: bool,
    timer: Option<Instant>,
}

impl Agenda {
    /// Visits the host soon.
    pub(super) fn wake(&mut self, host: HostId) {
        if !std::mem::replace(&mut self.visit(host).is_ready, true) {
            self.ready.push_back(host);
            self.awake += 1;
        }
    }

    /// The host is visited, whether or not it was ready.
    pub(super) fn handle_visit(&mut self, host: HostId) {
        if std::mem::take(&mut self.visit(host).is_ready) {
            self.awake -= 1;
        }
    }

    /// Visits the host at this time, if it is not visited before.
    pub(super) fn wake_at(&mut self, host: HostId, at: Instant) {
        let visit = self.visit(host);
        if visit.timer.is_none_or(|timer| at < timer) {
            visit.timer = Some(at);
            self.timers.push(Reverse((at, host)));
        }
    }

    /// Wakes the hosts whose time has come.
    pub(super) fn handle_time(&mut self, now: Instant) {
        while let Some(&Reverse((at, host))) = self.timers.peek()
            && at <= now
        {
            self.timers.pop();
            let visit = self.visit(host);
            if visit.timer == Some(at) {
                visit.timer = None;
                self.wake(host);
            }
        }
    }

    /// The number of hosts to visit now.
    pub(super) fn ready(&self) -> usize {
        self.awake
    }

    /// The next host to visit now.
    pub(super) fn next(&mut self) -> Option<HostId> {
        while let Some(host) = self.ready.pop_front() {
            if self.visit(host).is_ready {
                self.handle_visit(host);
                return Some(host);
            }
        }
        None
    }

    /// When the next host is to be visited that is not ready.
    pub(super) fn poll_timeout(&mut self) -> Option<Instant> {
        while let Some(&Reverse((at, host))) = self.timers.peek() {
            if self.visit(host).timer == Some(at) {
                return Some(at);
            }
            self.timers.pop();
        }
        None
    }

    /// Forgets the visits to a host.
    pub(super) fn remove(&mut self, host: HostId) {
        self.handle_visit(host);
        self.visit(host).timer = None;
    }

    fn visit(&mut self, host: HostId) -> &mut Visit {
        if self.visits.len() <= host.0 {
            self.visits.resize_with(host.0 + 1, Visit::default);
        }
        &mut self.visits[host.0]
    }
}
