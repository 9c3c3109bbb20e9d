//! Timers of connections and calls, for deadlines that almost never fire and are often moved to a later time.
//!
//! Each owner has at most one valid entry in a heap. The time of the entry is the deadline of the owner or before. When
//! the timer fires, the owner computes its present deadline, and gets a new entry if the deadline is later. So moving a
//! deadline to a later time costs nothing, and a keep-alive request costs no heap operation at all.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::key::{CallKey, ConnKey, HostKey, OpeningKey};
use crate::policy::room;
use crate::time::Time;

/// What a timer is for.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum TimerOwner {
    Conn(ConnKey),
    Call(CallKey),
    /// An opening of the client. The client itself checks whether the timers of openings, of hosts and of the fair
    /// queue still count.
    Opening(OpeningKey),
    Host(HostKey),
    /// The fair queue of the client's hosts.
    FairQueue,
    /// The next try to open connections, after a shortage of descriptors.
    Shortage,
}

impl TimerOwner {
    fn is_client(self) -> bool {
        matches!(
            self,
            Self::Opening(_) | Self::Host(_) | Self::FairQueue | Self::Shortage
        )
    }
}

#[derive(Debug, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(Time, TimerOwner)>>,
    /// The number of entries that the client has set.
    client_entries: usize,
}

/// The time of the one valid entry of an owner. The owner keeps this value.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Armed(Option<Time>);

impl Armed {
    /// Whether the timer fires at that time or before.
    #[inline]
    pub(crate) fn is_by(self, at: Time) -> bool {
        self.0.is_some_and(|armed| armed <= at)
    }
}

impl Timers {
    /// Makes sure that the timer of the owner fires at `due` or before.
    #[inline]
    pub(crate) fn arm(&mut self, owner: TimerOwner, armed: &mut Armed, due: Time) {
        if armed.is_by(due) {
            return;
        }
        armed.0 = Some(due);
        self.push(due, owner);
    }

    /// Adds a timer of the client.
    pub(crate) fn set(&mut self, owner: TimerOwner, at: Time) {
        self.client_entries += 1;
        self.push(at, owner);
    }

    /// Drops the client's entries that no longer count, if the client has far more of them than its owners need, which is
    /// two for each owner at most.
    pub(crate) fn tidy_client_entries(
        &mut self,
        owners: usize,
        mut counts: impl FnMut(TimerOwner, Time) -> bool,
    ) {
        if self.client_entries <= 64 + 4 * owners {
            return;
        }
        let mut client_entries = 0;
        self.heap.retain(|&Reverse((at, owner))| {
            let keep = !owner.is_client() || counts(owner, at);
            client_entries += usize::from(keep && owner.is_client());
            keep
        });
        self.client_entries = client_entries;
        self.give_back();
    }

    fn give_back(&mut self) {
        // Room for twice the entries, so that the heap does not shrink and grow again and again.
        self.heap.shrink_to((2 * self.heap.len()).max(room::KEPT));
    }

    fn push(&mut self, at: Time, owner: TimerOwner) {
        let len = self.heap.len();
        if len == self.heap.capacity() && len >= room::KEPT {
            self.heap.reserve_exact(len / 8);
        }
        self.heap.push(Reverse((at, owner)));
    }

    /// The next owner whose timer fires. `armed` returns the value that an owner keeps: an entry with another time does
    /// not count. Connections and calls that ended long before their deadlines leave such entries behind. These are
    /// dropped when they are far more than the `owners`.
    pub(crate) fn pop(
        &mut self,
        now: Time,
        owners: usize,
        mut armed: impl FnMut(TimerOwner) -> Option<Armed>,
    ) -> Option<TimerOwner> {
        if self.heap.len() > 64 + 2 * owners + self.client_entries {
            self.heap.retain(|&Reverse((at, owner))| {
                owner.is_client() || armed(owner).is_some_and(|armed| armed.0 == Some(at))
            });
            self.give_back();
        }
        loop {
            let &Reverse((at, owner)) = self.heap.peek().filter(|entry| entry.0.0 <= now)?;
            self.heap.pop();
            if owner.is_client() {
                self.client_entries -= 1;
                return Some(owner);
            }
            if armed(owner).is_some_and(|armed| armed.0 == Some(at)) {
                return Some(owner);
            }
        }
    }

    /// The earliest time at which `pop` may return an owner.
    pub(crate) fn next(&self) -> Option<Time> {
        self.heap.peek().map(|entry| entry.0.0)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn later_costs_nothing_and_earlier_replaces() {
        let start = Time::now();
        let at = |s| start + Duration::from_secs(s);
        let owner = TimerOwner::Conn(ConnKey::first_of(1));
        let (mut timers, mut armed) = (Timers::default(), Armed::default());
        timers.arm(owner, &mut armed, at(5));
        timers.arm(owner, &mut armed, at(9));
        assert_eq!((timers.heap.len(), timers.next()), (1, Some(at(5))));
        timers.arm(owner, &mut armed, at(3));
        assert_eq!(timers.next(), Some(at(3)));
        assert_eq!(timers.pop(at(2), 1, |_| Some(armed)), None);
        assert_eq!(timers.pop(at(9), 1, |_| Some(armed)), Some(owner));
        // The entry at 5 s has been replaced.
        assert_eq!(timers.pop(at(9), 1, |_| Some(Armed::default())), None);
    }

    #[test]
    fn timers_that_no_longer_count_do_not_pile_up() {
        let start = Time::now();
        let mut timers = Timers::default();
        let mut most = 0;
        for number in 0..10_000 {
            let owner = TimerOwner::Opening(OpeningKey::first_of(number));
            timers.set(owner, start + Duration::from_secs(number.into()));
            // The last ten still count.
            let before = timers.heap.len();
            timers.tidy_client_entries(
                10,
                |owner, _| matches!(owner, TimerOwner::Opening(key) if key.index() + 10 > number as usize),
            );
            assert!([before, 10].contains(&timers.heap.len()));
            most = timers.heap.len().max(most);
        }
        assert!(most <= 64 + 4 * 10, "{most}");
        let late = start + Duration::from_secs(10_000);
        while timers.pop(late, 0, |_| None).is_some() {}
        assert_eq!(timers.client_entries, 0);
    }

    #[test]
    fn timers_of_the_client_are_not_untidy() {
        let start = Time::now();
        let at = |n: u32| start + Duration::from_millis(1 + u64::from(n));
        let mut timers = Timers::default();
        for n in 0..10_000 {
            timers.set(TimerOwner::Opening(OpeningKey::first_of(n)), at(n));
        }
        // Entries of ended calls are untidy: they are dropped, and the timers of the client stay.
        for n in 0..67 {
            assert_eq!(timers.heap.len(), 10_000 + n as usize);
            timers.arm(
                TimerOwner::Call(CallKey::first_of(n)),
                &mut Armed::default(),
                at(n),
            );
            assert_eq!(timers.pop(start, 1, |_| None), None);
        }
        assert_eq!(timers.heap.len(), 10_000);
        for n in 0..10_000 {
            let due = timers.pop(at(n), 1, |_| None);
            assert_eq!(due, Some(TimerOwner::Opening(OpeningKey::first_of(n))));
        }
        assert_eq!((timers.next(), timers.client_entries), (None, 0));
    }
}
