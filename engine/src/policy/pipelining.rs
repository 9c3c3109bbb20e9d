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
/// use courser::policy::Pipelined;
/// use courser::PipelineConfig;
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
    /// No open connection has fewer calls.
    fewest: usize,
    /// Where the next search for a connection with so few begins.
    next: usize,
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
    conn: C,
    pending: usize,
    takes: Takes,
}

/// Whether a connection takes calls.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Takes {
    Calls,
    /// The first call of the connection was lost on another connection before. It takes no other call until that one is
    /// answered.
    OneOnProbation,
    /// The calls that it has are completed.
    NoMore,
    /// There is no connection, or it is idle.
    Nothing,
}

impl<C: Copy> PipelineLoads<C> {
    pub(crate) fn new(max_pending: NonZeroUsize, distrust: Duration) -> Self {
        Self {
            loads: Vec::new(),
            fewest: 0,
            next: 0,
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
        self.end(at);
        let (pending, takes) = (0, Takes::Nothing);
        while self.loads.len() <= at {
            self.loads.push(ConnLoad {
                conn,
                pending,
                takes,
            });
        }
        self.loads[at].conn = conn;
        self.loads[at].takes = match probing {
            true => Takes::OneOnProbation,
            false => Takes::Calls,
        };
        self.add_call(at);
        self.note_fewer(at);
    }

    /// A connection gets a further call.
    pub(crate) fn add_call(&mut self, at: usize) {
        if let Some(load) = self.loads.get_mut(at) {
            load.pending += 1;
            self.pending += 1;
        }
    }

    /// This many calls on a connection have ended; others are pending.
    pub(crate) fn answered(&mut self, at: usize, calls: usize) {
        if let Some(load) = self.loads.get_mut(at) {
            let fewer = load.pending.saturating_sub(calls);
            self.pending -= load.pending - fewer;
            load.pending = fewer;
            if load.takes == Takes::OneOnProbation {
                load.takes = Takes::Calls;
            }
            self.note_fewer(at);
        }
    }

    /// A connection takes no more calls.
    pub(crate) fn retire(&mut self, at: usize) {
        if let Some(load) = self.loads.get_mut(at)
            && load.takes != Takes::Nothing
        {
            load.takes = Takes::NoMore;
        }
    }

    /// A connection is idle or closed.
    pub(crate) fn end(&mut self, at: usize) {
        if let Some(load) = self.loads.get_mut(at) {
            self.pending -= load.pending;
            load.pending = 0;
            load.takes = Takes::Nothing;
        }
    }

    /// A connection may now be the one with the fewest calls.
    #[inline]
    fn note_fewer(&mut self, at: usize) {
        if self.loads[at].pending <= self.fewest {
            (self.fewest, self.next) = (self.loads[at].pending, at);
        }
    }

    /// A connection with the fewest pending calls, if it has room. Connections with equally many take turns.
    ///
    /// The search ends at the first connection that has as few calls as any can have, which nearly always is the first
    /// one that it looks at.
    #[inline]
    pub(crate) fn pick(&mut self, now: Time) -> Option<C> {
        let limit = self.limit(now);
        while self.fewest < limit {
            let mut fewest = limit;
            for _ in 0..self.loads.len() {
                if self.next >= self.loads.len() {
                    self.next = 0;
                }
                let load = &self.loads[self.next];
                self.next += 1;
                if load.takes == Takes::Calls {
                    if load.pending <= self.fewest {
                        return Some(load.conn);
                    }
                    fewest = fewest.min(load.pending);
                }
            }
            self.fewest = fewest;
        }
        None
    }

    /// How many more calls this connection takes.
    pub(crate) fn room(&self, now: Time, at: usize) -> usize {
        match self.loads.get(at) {
            Some(load) if load.takes == Takes::Calls => {
                self.limit(now).saturating_sub(load.pending)
            }
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
        let open = self.loads.iter().filter(|it| it.takes != Takes::Nothing);
        open.map(|load| load.conn)
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
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_fewest_are_found_as_by_looking_at_all(
            changes in proptest::collection::vec((0..6_usize, 0..5_usize), 0..200)
        ) {
            let (mut loads, now) = (loads(3), Time::now());
            for (change, at) in changes {
                match change {
                    0 => loads.begin(at, at, at == 4),
                    1 => loads.answered(at, 1),
                    2 => loads.retire(at),
                    3 => loads.end(at),
                    _ => {
                        let open = loads.loads.iter().filter(|load| load.takes == Takes::Calls);
                        let fewest = open.map(|load| load.pending).min().filter(|n| *n < 3);
                        let picked = loads.pick(now);
                        prop_assert_eq!(picked.map(|at| loads.loads[at].pending), fewest);
                        if let Some(at) = picked {
                            prop_assert!(loads.room(now, at) > 0);
                            loads.add_call(at);
                        }
                    }
                }
                let pending: usize = loads.loads.iter().map(|load| load.pending).sum();
                prop_assert_eq!(loads.pending(), pending);
            }
        }
    }

    fn loads<C: Copy>(max_pending: usize) -> PipelineLoads<C> {
        let max_pending = NonZeroUsize::new(max_pending).expect("not zero");
        PipelineLoads::new(max_pending, Duration::from_secs(60))
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
        assert_eq!((loads.pick(after), loads.room(after, 0)), (Some('a'), 2));
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
