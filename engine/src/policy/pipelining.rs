//! Which connection of a pipelining client takes the next call: the one with the fewest pending calls, if it has room.
//! A server that breaks pipelining gets one request at a time for a while.

use std::num::NonZeroUsize;
use std::time::Duration;

use super::later;
use crate::time::Time;

/// What a pipelining client does with a call if the maximum number of calls is pending.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Overflow {
    /// The call waits for room on a connection, together with at most
    /// [`HostConfig::max_waiting`](crate::HostConfig::max_waiting) others.
    #[default]
    Wait,
    /// The new call fails.
    RefuseNewest,
    /// The oldest call that is not sent yet fails; if all are sent, the new call fails.
    DropOldestUnsent,
}

/// Which requests share a connection with requests that have no answer yet (RFC 9112 §9.3.2).
///
/// ```
/// use courser::{Pipelined, PipelineConfig};
///
/// // The caller knows what to do when a POST fails with `Sent::NoReplyByte`.
/// let config = PipelineConfig { methods: Pipelined::All, ..PipelineConfig::default() };
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Pipelined {
    /// Requests with [idempotent](crate::Request::is_idempotent) methods. Any other request is sent when all requests
    /// before it on its connection are answered, and no request is sent after it until it is answered itself.
    #[default]
    Idempotent,
    /// Requests of every method. If the connection ends, all requests without an answer that are not idempotent fail with
    /// [`Sent::NoReplyByte`](crate::Sent::NoReplyByte), even if an earlier call caused the end: the server may have
    /// processed them.
    All,
}

/// The loads of the connections of a pipelining client, by their slots in the pool.
#[derive(Debug)]
pub(crate) struct PipelineLoads<C> {
    loads: Vec<ConnLoad<C>>,
    /// Finds the connection with the fewest calls, if there are more than [`FEW`].
    fewest: Fewest,
    /// Calls on all connections.
    pending: usize,
    max_pending: NonZeroUsize,
    distrust: Duration,
    /// One request at a time until then.
    serial_until: Option<Time>,
    /// How often the server was found to break pipelining.
    broken: u64,
    /// Since the last doubt, the server has answered a request that was sent behind another one.
    trusted: bool,
    /// The server was doubted, and has not been trusted since.
    doubted: bool,
}

#[derive(Clone, Debug)]
struct ConnLoad<C> {
    /// `None`: not established.
    conn: Option<C>,
    pending: usize,
    /// Takes no more calls; those that it has are completed.
    retiring: bool,
    /// Its first call was lost on another connection before. Takes no other calls until that one is answered.
    probing: bool,
}

impl<C> ConnLoad<C> {
    fn is_open(&self) -> bool {
        self.conn.is_some() && !self.retiring && !self.probing
    }
}

impl<C: Copy> PipelineLoads<C> {
    pub(crate) fn new(max_pending: NonZeroUsize, distrust: Duration) -> Self {
        Self {
            loads: Vec::new(),
            fewest: Fewest::default(),
            pending: 0,
            max_pending,
            distrust,
            serial_until: None,
            broken: 0,
            trusted: false,
            doubted: false,
        }
    }

    /// A new or idle connection gets its first call. `probing`: this call was lost on another connection before, and
    /// may end this connection, too (RFC 9112 §9.3.2).
    pub(crate) fn begin(&mut self, at: usize, conn: C, probing: bool) {
        if at >= self.loads.len() {
            let none = ConnLoad {
                conn: None,
                pending: 0,
                retiring: false,
                probing: false,
            };
            let few = self.loads.len() <= FEW;
            self.loads.resize(at + 1, none);
            if few {
                (0..self.loads.len()).for_each(|at| self.changed(at));
            }
        }
        self.end(at);
        self.loads[at] = ConnLoad {
            conn: Some(conn),
            pending: 1,
            retiring: false,
            probing,
        };
        self.pending += 1;
        self.changed(at);
    }

    /// A connection gets a further call.
    pub(crate) fn add_call(&mut self, at: usize) {
        if let Some(load) = self.loads.get_mut(at) {
            load.pending += 1;
            self.pending += 1;
            self.changed(at);
        }
    }

    /// A call on a connection has ended; others are pending.
    pub(crate) fn answered(&mut self, at: usize) {
        if let Some(load) = self.loads.get_mut(at) {
            let fewer = load.pending.saturating_sub(1);
            self.pending -= load.pending - fewer;
            load.pending = fewer;
            load.probing = false;
            self.changed(at);
        }
    }

    /// A connection takes no more calls.
    pub(crate) fn retire(&mut self, at: usize) {
        if let Some(load) = self.loads.get_mut(at) {
            load.retiring = true;
            self.changed(at);
        }
    }

    /// A connection is idle or closed.
    pub(crate) fn end(&mut self, at: usize) {
        if let Some(load) = self.loads.get_mut(at) {
            self.pending -= load.pending;
            load.pending = 0;
            load.conn = None;
            self.changed(at);
        }
    }

    #[inline]
    fn changed(&mut self, at: usize) {
        if self.loads.len() > FEW {
            let load = &self.loads[at];
            let pending = load.is_open().then_some(load.pending);
            self.fewest.set(at, pending);
        }
    }

    /// The connection with the fewest pending calls, and its slot, if it has room.
    pub(crate) fn pick(&self, now: Time) -> Option<(usize, C)> {
        let limit = self.limit(now);
        if self.loads.len() > FEW {
            let at = self.fewest.first()?;
            let load = &self.loads[at];
            return Some((at, load.conn.filter(|_| load.pending < limit)?));
        }
        let mut best = None;
        let mut fewest = limit;
        for (at, load) in self.loads.iter().enumerate() {
            if load.pending < fewest && load.is_open() {
                (best, fewest) = (Some(at), load.pending);
            }
        }
        let at = best?;
        Some((at, self.loads[at].conn?))
    }

    /// How many more calls this connection takes.
    pub(crate) fn room(&self, now: Time, at: usize) -> usize {
        match self.loads.get(at) {
            Some(load) if load.is_open() => self.limit(now).saturating_sub(load.pending),
            _ => 0,
        }
    }

    fn limit(&self, now: Time) -> usize {
        match self.serial_until {
            Some(until) if now < until => 1,
            _ => self.max_pending.get(),
        }
    }

    /// Records that the server breaks pipelining.
    pub(crate) fn distrust(&mut self, now: Time) {
        self.be_serial(now, self.distrust);
    }

    /// Records that a request behind another one got no answer in its time: the server forgets such requests, or this
    /// one took long. A server that has answered such requests is slow; another one is not asked several requests at a
    /// time for a short time, and for the whole time if this happens again.
    pub(crate) fn doubt(&mut self, now: Time) {
        if std::mem::take(&mut self.trusted) {
            return;
        }
        let first = !std::mem::replace(&mut self.doubted, true);
        let time = if first {
            self.distrust / 12
        } else {
            self.distrust
        };
        self.be_serial(now, time);
    }

    /// Records that the server has answered a request that was sent behind another one.
    #[inline]
    pub(crate) fn trust(&mut self) {
        (self.trusted, self.doubted) = (true, false);
    }

    fn be_serial(&mut self, now: Time, time: Duration) {
        self.serial_until = self.serial_until.max(Some(later(now, time)));
        self.broken += 1;
    }

    /// Calls on this connection.
    pub(crate) fn pending_on(&self, at: usize) -> usize {
        self.loads.get(at).map_or(0, |load| load.pending)
    }

    /// Connections that have calls.
    pub(crate) fn conns(&self) -> impl Iterator<Item = C> {
        self.loads.iter().filter_map(|load| load.conn)
    }

    pub(crate) fn pending(&self) -> usize {
        self.pending
    }

    pub(crate) fn broken(&self) -> u64 {
        self.broken
    }

    pub(crate) fn is_serial(&self, now: Time) -> bool {
        self.limit(now) == 1 && self.max_pending.get() > 1
    }
}

/// Finds the place with the lowest number: a tree whose leaves are the places and whose other nodes have the lower
/// value of their two children. A change stops at the first node that it does not change.
#[derive(Debug, Default)]
struct Fewest {
    /// The root is at 1, the children of `i` are at `2i` and `2i + 1`, and the second half are the leaves: a number in
    /// the high bits, its place in the low bits.
    nodes: Vec<u64>,
}

impl Fewest {
    #[inline]
    fn set(&mut self, at: usize, number: Option<usize>) {
        if at >= self.nodes.len() / 2 {
            self.grow(at);
        }
        let number = number.map(|number| u32::try_from(number).unwrap_or(u32::MAX));
        let leaf = number.map_or(NOWHERE, |number| u64::from(number) << 32 | at as u64);
        let mut node = self.nodes.len() / 2 + at;
        self.nodes[node] = leaf;
        while node > 1 {
            node /= 2;
            let least = self.nodes[2 * node].min(self.nodes[2 * node + 1]);
            if std::mem::replace(&mut self.nodes[node], least) == least {
                return;
            }
        }
    }

    #[cold]
    fn grow(&mut self, at: usize) {
        let before = self.nodes.len() / 2;
        let leaves = (at + 1).next_power_of_two();
        let mut nodes = vec![NOWHERE; 2 * leaves];
        nodes[leaves..leaves + before].copy_from_slice(&self.nodes[before..]);
        for node in (1..leaves).rev() {
            nodes[node] = nodes[2 * node].min(nodes[2 * node + 1]);
        }
        self.nodes = nodes;
    }

    /// The place with the lowest number; the first of several.
    #[inline]
    fn first(&self) -> Option<usize> {
        let least = self.nodes.get(1).copied().filter(|least| *least != NOWHERE);
        least.map(|least| least as u32 as usize)
    }
}

const NOWHERE: u64 = u64::MAX;

/// Up to so many connections, a linear search takes fewer instructions than a tree.
const FEW: usize = 32;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_fewest_are_found_as_by_looking_at_all(
            changes in proptest::collection::vec((0..40_usize, proptest::option::of(0..5_usize)), 0..200)
        ) {
            let (mut fewest, mut numbers) = (Fewest::default(), Vec::new());
            for (at, number) in changes {
                if at >= numbers.len() {
                    numbers.resize(at + 1, None);
                }
                numbers[at] = number;
                fewest.set(at, number);
                let known = numbers.iter().enumerate();
                let known = known.filter_map(|(at, number)| Some((number.as_ref()?, at)));
                prop_assert_eq!(fewest.first(), known.min().map(|(_, at)| at));
            }
        }
    }

    fn loads(max_pending: usize) -> PipelineLoads<char> {
        let max_pending = NonZeroUsize::new(max_pending).expect("not zero");
        PipelineLoads::new(max_pending, Duration::from_secs(60))
    }

    #[test]
    fn the_one_with_the_fewest_pending_while_it_has_room() {
        let (mut loads, now) = (loads(3), Time::now());
        assert_eq!(loads.pick(now), None);
        loads.begin(0, 'a', false);
        loads.begin(2, 'c', false);
        loads.add_call(0);
        assert_eq!(loads.pick(now), Some((2, 'c')));
        loads.add_call(2);
        loads.add_call(2);
        assert_eq!((loads.pick(now), loads.room(now, 2)), (Some((0, 'a')), 0));
        loads.retire(0);
        assert_eq!((loads.pick(now), loads.room(now, 0)), (None, 0));
        loads.answered(2);
        assert_eq!((loads.pick(now), loads.pending()), (Some((2, 'c')), 4));
        loads.end(2);
        assert_eq!((loads.pick(now), loads.pending()), (None, 2));
        loads.begin(0, 'd', false);
        assert_eq!((loads.pick(now), loads.pending()), (Some((0, 'd')), 1));
    }

    #[test]
    fn many_are_picked_from_as_few_are() {
        let (mut loads, now) = (loads(3), Time::now());
        let all = FEW + 9;
        // In an order with few places at first, and then many at once.
        for at in (0..10).chain((10..all).rev()) {
            loads.begin(at, 'c', false);
        }
        for pending in 1..3 {
            for at in 0..all {
                assert_eq!(loads.pick(now), Some((at, 'c')), "{pending}");
                loads.add_call(at);
            }
        }
        assert_eq!((loads.pick(now), loads.pending()), (None, 3 * all));
        loads.answered(40);
        loads.answered(20);
        loads.answered(20);
        loads.end(3);
        assert_eq!(loads.pick(now), Some((20, 'c')));
        loads.retire(20);
        assert_eq!(loads.pick(now), Some((40, 'c')));
        loads.distrust(now);
        assert_eq!(loads.pick(now), None);
    }

    #[test]
    fn one_that_was_lost_before_is_tried_alone() {
        let (mut loads, now) = (loads(3), Time::now());
        loads.begin(0, 'a', true);
        assert_eq!((loads.pick(now), loads.room(now, 0)), (None, 0));
        loads.end(0);
        loads.begin(0, 'a', false);
        assert_eq!(loads.room(now, 0), 2);
    }

    #[test]
    fn a_server_that_breaks_it_gets_one_at_a_time_for_a_while() {
        let (mut loads, now) = (loads(3), Time::now());
        loads.begin(0, 'a', false);
        loads.distrust(now);
        assert!(loads.is_serial(now));
        assert_eq!((loads.pick(now), loads.room(now, 0)), (None, 0));
        let after = now + Duration::from_secs(60);
        assert_eq!(
            (loads.pick(after), loads.room(after, 0)),
            (Some((0, 'a')), 2)
        );
        assert_eq!((loads.is_serial(after), loads.broken()), (false, 1));
    }

    #[test]
    fn one_that_was_late_once_is_not_distrusted_for_long() {
        let (mut loads, mut now) = (loads(3), Time::now());
        let mut serial_for = |loads: &mut PipelineLoads<char>| {
            loads.doubt(now);
            let seconds = (0..).find(|s| !loads.is_serial(now + Duration::from_secs(*s)));
            now = now + Duration::from_secs(100);
            seconds
        };
        assert_eq!(serial_for(&mut loads), Some(5));
        assert_eq!(serial_for(&mut loads), Some(60));
        loads.trust();
        assert_eq!(serial_for(&mut loads), Some(0));
        assert_eq!(serial_for(&mut loads), Some(5));
    }
}
