//! Whether calls share connections, and how many calls each connection has.
//!
//! The type of a client's router decides whether calls share connections: with [`OneAtATime`] they do not; with
//! [`Pipelines`] several calls use a connection at a time (RFC 9112 §9.3.2).

use std::num::NonZeroUsize;
use std::time::Duration;

use super::PipelineConfig;
use crate::policy::{LatePolicy, Overflow, PipelineLoads};
use crate::reactor::{Batching, ConnKey};
use crate::time::Time;

/// Whether calls share connections.
pub(crate) trait Sharing {
    const IS_ON: bool;

    fn pipelines(&mut self) -> Option<&mut Pipelines>;
}

/// A connection has one call at a time.
#[derive(Clone, Copy, Debug)]
pub struct OneAtATime;

impl Sharing for OneAtATime {
    const IS_ON: bool = false;

    #[inline(always)]
    fn pipelines(&mut self) -> Option<&mut Pipelines> {
        None
    }
}

/// The connections of a pipelining client, by their slots in the pool, and the calls on each.
#[derive(Debug)]
pub struct Pipelines {
    /// The calls on each connection, by its slot.
    pub(super) loads: PipelineLoads<ConnKey>,
    /// The limit of pending calls.
    pub(super) max_pending: NonZeroUsize,
    pub(super) overflow: Overflow,
    /// Calls whose connection ended while the answer to an earlier call was still awaited.
    pub(super) unanswered: u64,
    /// How requests are collected into one write.
    pub(super) batching: Batching,
}

impl Sharing for Pipelines {
    const IS_ON: bool = true;

    #[inline(always)]
    fn pipelines(&mut self) -> Option<&mut Pipelines> {
        Some(self)
    }
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
                    _ => DRAIN,
                },
            },
        }
    }

    pub(super) fn counters(&self, now: Time) -> PipelineCounters {
        PipelineCounters {
            pending: self.loads.pending(),
            serial: self.loads.is_serial(now),
            broken: self.loads.broken(),
            unanswered: self.unanswered,
        }
    }
}

/// The current load of a [`PipelineClient`](crate::PipelineClient), and counters since its beginning.
///
/// ```
/// # fn example(client: &courser::PipelineClient) {
/// let counters = client.pipeline_counters();
/// println!("{} on the way, {} lost", counters.pending, counters.unanswered);
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct PipelineCounters {
    /// The number of calls on connections.
    pub pending: usize,
    /// Whether the server gets one request at a time.
    pub serial: bool,
    /// How often the server turned out not to support pipelining correctly.
    pub broken: u64,
    /// Calls whose connection ended while the answer to an earlier call was still awaited.
    pub unanswered: u64,
}

/// How long the client waits for the answer of an abandoned call, if the policy on late answers sets no time.
const DRAIN: Duration = Duration::from_secs(5);
