//! The cap on the connections of all hosts, and the hosts that wait for room under it. While the machine has no
//! descriptor left, the cap is the number of connections that the client has.
//!
//! A host without any connection comes before hosts that want more: it gets the next connection that any host gives
//! back.

use std::collections::VecDeque;

use super::{Host, HostSlab};
use crate::error::{ErrorKind, LimitExceeded, Shortage};
use crate::policy::{AfterShortage, Scarcity};
use crate::reactor::HostKey;
use crate::time::Time;

#[derive(Debug)]
pub(crate) struct ConnectionCap {
    /// Connections of all hosts, without those whose names are being looked up.
    open: usize,
    /// Openings of all hosts whose names are being looked up.
    lookups: usize,
    /// The share of this client in `whole`.
    max_open: usize,
    /// The most connections of all clients that share the cap.
    whole: usize,
    /// The number of this client, and how many share the cap.
    share: (usize, usize),
    scarcity: Scarcity,
    /// Whether there was a shortage since the last [`take_shortage`](Self::take_shortage).
    has_news: bool,
    /// Whether the next connection that becomes idle is closed: its descriptor is needed elsewhere.
    owes_descriptor: bool,
    /// Hosts that wait for room. An entry counts if the host's [`Want`] says so.
    pub(super) without_connection: VecDeque<HostKey>,
    pub(super) wanting_more: VecDeque<HostKey>,
}

/// The part of a host in the cap.
#[derive(Debug, Default)]
pub(super) struct UnderCap {
    /// The connections of this host that are counted in the cap.
    counted: usize,
    /// The openings of this host whose names are being looked up.
    pub(super) lookups: usize,
    want: Want,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Want {
    #[default]
    Nothing,
    First,
    More,
}

impl ConnectionCap {
    pub(super) fn new(max_open: usize) -> Self {
        Self {
            open: 0,
            lookups: 0,
            max_open,
            whole: max_open,
            share: (0, 1),
            scarcity: Scarcity::default(),
            has_news: false,
            owes_descriptor: false,
            without_connection: VecDeque::new(),
            wanting_more: VecDeque::new(),
        }
    }

    pub(crate) fn open(&self) -> usize {
        self.open
    }

    pub(crate) fn max_open(&self) -> usize {
        self.max_open
    }

    pub(crate) fn is_limited(&self) -> bool {
        self.max_open < usize::MAX
    }

    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.open + self.lookups.saturating_sub(MOST_LOOKUPS) >= self.limit()
    }

    #[inline]
    fn limit(&self) -> usize {
        self.max_open.min(self.scarcity.limit())
    }

    /// Whether hosts may be waiting for room.
    pub(crate) fn is_contended(&self) -> bool {
        !(self.without_connection.is_empty() && self.wanting_more.is_empty())
    }

    /// Whether there are more connections than may be: names of openings have been found while there was no room, or the
    /// cap was lowered.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.open > self.limit()
    }

    /// Whether a connection that is closed makes room for another one. It does not if local ports are missing: the
    /// system keeps the port of a closed connection for a while.
    pub(crate) fn gains_by_closing(&self) -> bool {
        self.open >= self.max_open || self.scarcity.shortage() != Some(Shortage::Ports)
    }

    /// Why there is no room, for a call that does not wait.
    pub(crate) fn full_error(&self) -> ErrorKind {
        match self.scarcity.shortage() {
            Some(shortage) if self.open < self.max_open => ErrorKind::Shortage(shortage),
            _ => LimitExceeded::Connections(self.max_open).into(),
        }
    }

    // ---- shortages of the machine

    /// The machine had no descriptor left for a connection.
    #[cold]
    pub(crate) fn note_shortage(&mut self, now: Time, shortage: Shortage) -> AfterShortage {
        self.has_news = true;
        self.scarcity.note(now, shortage, self.open)
    }

    /// A socket could be made for a connection.
    #[inline]
    pub(crate) fn note_opened(&mut self) {
        self.scarcity.note_opened();
    }

    /// Whether there was a shortage since the last call of this method.
    pub(crate) fn take_shortage(&mut self) -> bool {
        std::mem::take(&mut self.has_news)
    }

    pub(crate) fn has_shortage(&self) -> bool {
        self.has_news
    }

    /// The next connection that becomes idle must be closed.
    pub(crate) fn owe_descriptor(&mut self) {
        self.owes_descriptor = self.open > 0;
    }

    /// Takes the share of one of several clients in the cap. Each client may have at least one connection.
    pub(crate) fn set_share(&mut self, index: usize, count: usize) {
        self.share = (index, count);
        self.set_whole(self.whole);
    }

    /// Changes the cap of all clients that share it.
    pub(super) fn set_whole(&mut self, whole: usize) {
        self.whole = whole;
        let (index, count) = self.share;
        self.max_open = match whole {
            usize::MAX => usize::MAX,
            _ => (whole / count + usize::from(index < whole % count)).max(1),
        };
    }

    /// Whether openings are tried again at that time.
    pub(crate) fn has_timer(&self, at: Time) -> bool {
        self.scarcity.has_timer(at)
    }

    /// Openings may be tried again.
    #[cold]
    pub(crate) fn timer_fired(&mut self, now: Time) {
        self.scarcity.timer_fired(now);
    }

    // ---- hosts that wait

    /// The number of a host's connections may have changed.
    #[inline]
    pub(super) fn count(&mut self, host: &mut Host) {
        let open = host.pool.open() - host.under_cap.lookups;
        self.open = self.open + open - host.under_cap.counted;
        host.under_cap.counted = open;
    }

    /// So many openings of the host wait for names. They take no room, so that slow name servers do not hold other
    /// hosts. An opening that got room while others waited for it keeps the room: the others would take it during the
    /// lookup, again and again.
    pub(super) fn set_lookups(&mut self, host: &mut Host, lookups: usize) {
        self.lookups = self.lookups + lookups - host.under_cap.lookups;
        host.under_cap.lookups = lookups;
        self.count(host);
    }

    /// A host needs a connection, and there is no room for one.
    pub(super) fn want(&mut self, key: HostKey, host: &mut Host) {
        let (want, queue) = match host.pool.open() {
            0 => (Want::First, &mut self.without_connection),
            _ => (Want::More, &mut self.wanting_more),
        };
        if std::mem::replace(&mut host.under_cap.want, want) != want {
            queue.push_back(key);
        }
    }

    /// Whether a host must give back a connection that it could use, because there are more than may be, another host has
    /// no connection at all, or another client no descriptor. Calls `satisfied` for each host that no longer waits for its first connection.
    #[inline]
    pub(super) fn must_yield(
        &mut self,
        hosts: &mut HostSlab,
        mut satisfied: impl FnMut(HostKey, &mut Host),
    ) -> bool {
        if self.owes_descriptor || self.open > self.max_open {
            self.owes_descriptor = false;
            return true;
        }
        while let Some(&key) = self.without_connection.front() {
            let host = hosts.get_mut(key);
            let host = host.filter(|host| host.under_cap.want == Want::First);
            if let Some(host) = &host
                && host.pool.waiting() > 0
                && host.pool.open() == 0
            {
                return self.is_full();
            }
            self.without_connection.pop_front();
            if let Some(host) = host {
                host.under_cap.want = Want::Nothing;
                satisfied(key, host);
            }
        }
        false
    }
}

/// How many openings may wait for names before they take room under the cap. A burst of names waits here, where it has
/// no time limit, and not in the queue of the resolver.
const MOST_LOOKUPS: usize = 2_048;

/// The next host in a queue that still wants this.
#[inline]
pub(super) fn next_wanting(
    queue: &mut VecDeque<HostKey>,
    want: Want,
    hosts: &mut HostSlab,
) -> Option<HostKey> {
    while let Some(key) = queue.pop_front() {
        if let Some(host) = hosts.get_mut(key)
            && host.under_cap.want == want
        {
            host.under_cap.want = Want::Nothing;
            return Some(key);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_clients_share_a_cap() {
        let shares = |max: usize, count: usize| -> Vec<usize> {
            let share = |index| {
                let mut cap = ConnectionCap::new(max);
                cap.set_share(index, count);
                cap.limit()
            };
            (0..count).map(share).collect()
        };
        assert_eq!(shares(900, 1), [900]);
        assert_eq!(shares(10, 4), [3, 3, 2, 2]);
        assert_eq!(shares(2, 4), [1; 4]);
        assert_eq!(shares(usize::MAX, 2), [usize::MAX; 2]);
    }

    #[test]
    fn a_shortage_is_a_lower_cap_for_a_while() {
        let now = Time::now();
        let mut cap = ConnectionCap::new(10);
        cap.open = 3;
        assert!(!cap.is_full());
        let AfterShortage::Wait(Some(until)) = cap.note_shortage(now, Shortage::Memory) else {
            panic!("no wait");
        };
        assert!(cap.is_full() && cap.gains_by_closing());
        cap.open = 2;
        assert!(!cap.is_full());
        cap.open = 3;
        cap.timer_fired(until);
        assert!(!cap.is_full());
        // The port of a closed connection stays in use.
        cap.note_shortage(now, Shortage::Ports);
        assert!(cap.is_full() && !cap.gains_by_closing());
        let shortage = ErrorKind::Shortage(Shortage::Ports);
        assert_eq!(format!("{:?}", cap.full_error()), format!("{shortage:?}"));
    }
}
