//! The cap on the connections of all hosts, and the hosts that wait for room under it.
//!
//! A host without any connection comes before hosts that want more: it gets the next connection that any host gives
//! back.

use std::collections::VecDeque;

use super::{Host, HostSlab};
use crate::reactor::HostKey;

#[derive(Debug)]
pub(super) struct ConnectionCap {
    /// Connections of all hosts.
    open: usize,
    max_open: usize,
    /// Hosts that wait for room. An entry counts if the host's [`Want`] says so.
    without_connection: VecDeque<HostKey>,
    wanting_more: VecDeque<HostKey>,
}

/// The part of a host in the cap.
#[derive(Debug, Default)]
pub(super) struct UnderCap {
    /// The connections of this host that are counted in the cap.
    counted: usize,
    want: Want,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Want {
    #[default]
    Nothing,
    First,
    More,
}

impl ConnectionCap {
    pub(super) fn new(max_open: usize) -> Self {
        Self {
            open: 0,
            max_open,
            without_connection: VecDeque::new(),
            wanting_more: VecDeque::new(),
        }
    }

    pub(super) fn open(&self) -> usize {
        self.open
    }

    pub(super) fn max_open(&self) -> usize {
        self.max_open
    }

    pub(super) fn is_limited(&self) -> bool {
        self.max_open < usize::MAX
    }

    pub(super) fn is_full(&self) -> bool {
        self.open >= self.max_open
    }

    /// The number of a host's connections may have changed.
    #[inline]
    pub(super) fn count(&mut self, host: &mut Host) {
        let open = host.pool.open();
        self.open = self.open + open - host.under_cap.counted;
        host.under_cap.counted = open;
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

    /// The next host without any connection that waits for room.
    #[inline]
    pub(super) fn next_without_connection(&mut self, hosts: &mut HostSlab) -> Option<HostKey> {
        next_wanting(&mut self.without_connection, Want::First, hosts)
    }

    /// The next host with too few connections that waits for room.
    #[inline]
    pub(super) fn next_wanting_more(&mut self, hosts: &mut HostSlab) -> Option<HostKey> {
        next_wanting(&mut self.wanting_more, Want::More, hosts)
    }

    /// Whether a host must give back a connection that it could use, because another host has no connection at all.
    /// Calls `satisfied` for each host that no longer waits for its first connection.
    #[inline]
    pub(super) fn must_yield(
        &mut self,
        hosts: &mut HostSlab,
        mut satisfied: impl FnMut(HostKey, &mut Host),
    ) -> bool {
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

#[inline]
fn next_wanting(
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
