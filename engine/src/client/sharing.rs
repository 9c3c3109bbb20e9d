//! Whether calls share connections, and how many calls each connection has.
//!
//! The type of a client's router decides whether calls share connections: with [`OneAtATime`] they do not; with
//! [`Pipelines`] several calls use a connection at a time (RFC 9112 §9.3.2).

use std::num::NonZeroUsize;

use super::{PipelineConfig, PipelineCounters};
use crate::policy::{LatePolicy, Overflow, PipelineLoads};
use crate::reactor::{Batching, ConnKey, PoolSlot};
use crate::time::Time;

/// Whether calls share connections.
pub(crate) trait Sharing {
    const IS_ON: bool;

    fn pipelines(&self) -> Option<&Pipelines>;

    fn pipelines_mut(&mut self) -> Option<&mut Pipelines>;
}

/// A connection has one call at a time.
#[derive(Clone, Copy, Debug)]
pub struct OneAtATime;

impl Sharing for OneAtATime {
    const IS_ON: bool = false;

    #[inline(always)]
    fn pipelines(&self) -> Option<&Pipelines> {
        None
    }

    #[inline(always)]
    fn pipelines_mut(&mut self) -> Option<&mut Pipelines> {
        None
    }
}

/// The connections of a pipelining client, by their slots in the pool, and the calls on each.
#[derive(Debug)]
pub struct Pipelines {
    loads: PipelineLoads<ConnKey>,
    max_pending: NonZeroUsize,
    overflow: Overflow,
    /// Calls whose connection ended while the answer to an earlier call was still awaited.
    unanswered: u64,
    batching: Batching,
}

impl Sharing for Pipelines {
    const IS_ON: bool = true;

    #[inline(always)]
    fn pipelines(&self) -> Option<&Pipelines> {
        Some(self)
    }

    #[inline(always)]
    fn pipelines_mut(&mut self) -> Option<&mut Pipelines> {
        Some(self)
    }
}

/// Whether one more call may be pending.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Room {
    Yes,
    No,
    /// Yes, if the oldest unsent call is dropped.
    InPlaceOfOldest,
}

impl Pipelines {
    pub(super) fn new(config: &PipelineConfig) -> Self {
        Self {
            loads: PipelineLoads::new(config.max_pending, config.distrust),
            max_pending: config.max_pending_total,
            overflow: config.overflow,
            unanswered: 0,
            batching: Batching {
                max_delay: config.max_batch_delay,
                methods: config.methods,
                drain: match config.host.late {
                    LatePolicy::Drain { up_to } => up_to,
                    _ => PipelineConfig::DRAIN,
                },
            },
        }
    }

    /// How requests are collected into one write.
    pub(super) fn batching(&self) -> Batching {
        self.batching
    }

    pub(super) fn counters(&self, now: Time) -> PipelineCounters {
        PipelineCounters {
            pending: self.loads.pending(),
            serial: self.loads.is_serial(now),
            broken: self.loads.broken(),
            unanswered: self.unanswered,
        }
    }

    // ---- room

    /// The limit of pending calls.
    pub(super) fn max_pending(&self) -> usize {
        self.max_pending.get()
    }

    /// Whether one more call may be pending, when this many calls wait for a connection.
    pub(super) fn room_beside(&self, waiting: usize) -> Room {
        match self.overflow {
            _ if self.loads.pending() + waiting < self.max_pending.get() => Room::Yes,
            Overflow::Wait => Room::Yes,
            Overflow::RefuseNewest => Room::No,
            Overflow::DropOldestUnsent => Room::InPlaceOfOldest,
        }
    }

    /// The connection with the fewest calls, among those that may get one more.
    pub(super) fn pick(&mut self, now: Time) -> Option<ConnKey> {
        self.loads.pick(now)
    }

    /// Whether a connection may get one more call.
    pub(super) fn has_room_on(&self, slot: PoolSlot, now: Time) -> bool {
        self.loads.room(now, slot.id.index()) > 0
    }

    /// The number of calls on a connection.
    pub(super) fn pending_on(&self, slot: PoolSlot) -> usize {
        self.loads.pending_on(slot.id.index())
    }

    pub(super) fn conns(&self) -> impl Iterator<Item = ConnKey> {
        self.loads.conns()
    }

    // ---- events of connections

    /// A connection has got its first call. While the connection is `probing`, it gets no other call.
    pub(super) fn begun(&mut self, slot: PoolSlot, conn: ConnKey, probing: bool) {
        self.loads.begin(slot.id.index(), conn, probing);
    }

    /// A connection has one more call.
    pub(super) fn call_added(&mut self, slot: PoolSlot) {
        self.loads.add_call(slot.id.index());
    }

    /// A connection has one call fewer.
    pub(super) fn call_left(&mut self, slot: PoolSlot) {
        self.loads.answered(slot.id.index());
    }

    /// A connection gets no more calls.
    pub(super) fn retire(&mut self, slot: PoolSlot) {
        self.loads.retire(slot.id.index());
    }

    /// A connection is idle, or closed.
    #[inline]
    pub(super) fn ended(&mut self, slot: PoolSlot) {
        self.loads.end(slot.id.index());
    }

    /// Counts a call whose connection ended while the answer to an earlier call was still awaited.
    pub(super) fn note_unanswered(&mut self) {
        self.unanswered += 1;
    }

    /// The server does not support pipelining correctly: it gets one request at a time for a while.
    pub(super) fn distrust(&mut self, now: Time) {
        self.loads.distrust(now);
    }

    /// The server has answered the first request of a connection, and not the second one in its time.
    pub(super) fn doubt(&mut self, now: Time) {
        self.loads.doubt(now);
    }

    /// The server has answered a request that was sent behind another one.
    #[inline]
    pub(super) fn trust(&mut self) {
        self.loads.trust();
    }
}
