//! Which connection of a pipelining client takes the next call: the one with the fewest pending, while none has too
//! many. A server that cannot be trusted with several requests at a time gets one at a time for a while.

use std::num::NonZeroUsize;
use std::time::Duration;

use super::later;
use crate::time::Time;

/// What a pipelining client does with a call when as many as it may have are pending already.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Overflow {
    /// The call waits for a place on a connection, with
    /// [`HostConfig::max_waiting`](crate::HostConfig::max_waiting) others at the most.
    #[default]
    Wait,
    /// The call fails.
    RefuseNewest,
    /// The oldest call that is not sent yet fails instead; if all are sent, this one.
    DropOldestUnsent,
}

/// The connections of a pipelining client, by their places in the pool.
#[derive(Debug)]
pub(crate) struct Lanes<C> {
    lanes: Vec<Lane<C>>,
    /// Calls on all of them.
    pending: usize,
    max_pending: NonZeroUsize,
    distrust: Duration,
    /// Until then, one request at a time.
    serial_until: Option<Time>,
    /// How often the server was found to break pipelining.
    broken: u64,
}

#[derive(Clone, Debug)]
struct Lane<C> {
    /// `None`: not up.
    conn: Option<C>,
    pending: usize,
    /// It takes no more calls until those that it has are done.
    retiring: bool,
    /// Its first call was lost on another connection: it takes no others before that is answered.
    probing: bool,
}

impl<C> Lane<C> {
    fn is_open(&self) -> bool {
        self.conn.is_some() && !self.retiring && !self.probing
    }
}

impl<C: Copy> Lanes<C> {
    pub(crate) fn new(max_pending: NonZeroUsize, distrust: Duration) -> Self {
        Self {
            lanes: Vec::new(),
            pending: 0,
            max_pending,
            distrust,
            serial_until: None,
            broken: 0,
        }
    }

    /// A connection has its first call, after it was idle or new. `probing`: that was lost on another connection
    /// before, and may be what ends this one as well (RFC 9112 §9.3.2).
    pub(crate) fn begin(&mut self, at: usize, conn: C, probing: bool) {
        if at >= self.lanes.len() {
            let none = Lane {
                conn: None,
                pending: 0,
                retiring: false,
                probing: false,
            };
            self.lanes.resize(at + 1, none);
        }
        self.end(at);
        self.lanes[at] = Lane {
            conn: Some(conn),
            pending: 1,
            retiring: false,
            probing,
        };
        self.pending += 1;
    }

    /// A connection has another call.
    pub(crate) fn ride(&mut self, at: usize) {
        if let Some(lane) = self.lanes.get_mut(at) {
            lane.pending += 1;
            self.pending += 1;
        }
    }

    /// A call on a connection is over, and others go on.
    pub(crate) fn answered(&mut self, at: usize) {
        if let Some(lane) = self.lanes.get_mut(at) {
            let fewer = lane.pending.saturating_sub(1);
            self.pending -= lane.pending - fewer;
            lane.pending = fewer;
            lane.probing = false;
        }
    }

    /// A connection takes no more calls.
    pub(crate) fn retire(&mut self, at: usize) {
        if let Some(lane) = self.lanes.get_mut(at) {
            lane.retiring = true;
        }
    }

    /// A connection is idle, or gone.
    pub(crate) fn end(&mut self, at: usize) {
        if let Some(lane) = self.lanes.get_mut(at) {
            self.pending -= lane.pending;
            lane.pending = 0;
            lane.conn = None;
        }
    }

    /// The connection with the fewest pending, if it has room, and its place.
    pub(crate) fn pick(&self, now: Time) -> Option<(usize, C)> {
        let mut best = None;
        let mut fewest = self.limit(now);
        for (at, lane) in self.lanes.iter().enumerate() {
            if lane.pending < fewest && lane.is_open() {
                (best, fewest) = (Some(at), lane.pending);
            }
        }
        let at = best?;
        Some((at, self.lanes[at].conn?))
    }

    /// How many more calls that connection takes.
    pub(crate) fn room(&self, now: Time, at: usize) -> usize {
        match self.lanes.get(at) {
            Some(lane) if lane.is_open() => self.limit(now).saturating_sub(lane.pending),
            _ => 0,
        }
    }

    fn limit(&self, now: Time) -> usize {
        match self.serial_until {
            Some(until) if now < until => 1,
            _ => self.max_pending.get(),
        }
    }

    /// The server breaks pipelining.
    pub(crate) fn distrust(&mut self, now: Time) {
        self.serial_until = Some(later(now, self.distrust));
        self.broken += 1;
    }

    /// Calls on that connection.
    pub(crate) fn pending_on(&self, at: usize) -> usize {
        self.lanes.get(at).map_or(0, |lane| lane.pending)
    }

    /// Connections that have calls.
    pub(crate) fn conns(&self) -> impl Iterator<Item = C> {
        self.lanes.iter().filter_map(|lane| lane.conn)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn lanes(max_pending: usize) -> Lanes<char> {
        let max_pending = NonZeroUsize::new(max_pending).expect("not zero");
        Lanes::new(max_pending, Duration::from_secs(60))
    }

    #[test]
    fn the_one_with_the_fewest_pending_while_it_has_room() {
        let (mut lanes, now) = (lanes(3), Time::now());
        assert_eq!(lanes.pick(now), None);
        lanes.begin(0, 'a', false);
        lanes.begin(2, 'c', false);
        lanes.ride(0);
        assert_eq!(lanes.pick(now), Some((2, 'c')));
        lanes.ride(2);
        lanes.ride(2);
        assert_eq!((lanes.pick(now), lanes.room(now, 2)), (Some((0, 'a')), 0));
        lanes.retire(0);
        assert_eq!((lanes.pick(now), lanes.room(now, 0)), (None, 0));
        lanes.answered(2);
        assert_eq!((lanes.pick(now), lanes.pending()), (Some((2, 'c')), 4));
        lanes.end(2);
        assert_eq!((lanes.pick(now), lanes.pending()), (None, 2));
        lanes.begin(0, 'd', false);
        assert_eq!((lanes.pick(now), lanes.pending()), (Some((0, 'd')), 1));
    }

    #[test]
    fn one_that_was_lost_before_is_tried_alone() {
        let (mut lanes, now) = (lanes(3), Time::now());
        lanes.begin(0, 'a', true);
        assert_eq!((lanes.pick(now), lanes.room(now, 0)), (None, 0));
        lanes.end(0);
        lanes.begin(0, 'a', false);
        assert_eq!(lanes.room(now, 0), 2);
    }

    #[test]
    fn a_server_that_breaks_it_gets_one_at_a_time_for_a_while() {
        let (mut lanes, now) = (lanes(3), Time::now());
        lanes.begin(0, 'a', false);
        lanes.distrust(now);
        assert!(lanes.is_serial(now));
        assert_eq!((lanes.pick(now), lanes.room(now, 0)), (None, 0));
        let after = now + Duration::from_secs(60);
        assert_eq!(
            (lanes.pick(after), lanes.room(after, 0)),
            (Some((0, 'a')), 2)
        );
        assert_eq!((lanes.is_serial(after), lanes.broken()), (false, 1));
    }
}
