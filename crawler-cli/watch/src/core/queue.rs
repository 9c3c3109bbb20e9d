//! The queues of the core: what of a host is asked in which order.

use crawl::fleet::Fleet;
use store::{DueId, DueUrl, HostId, Lane};

/// The URLs that are due and wait in memory.
pub(crate) type Queues = Fleet<QueueId, DueId, DueUrl>;

/// Names a queue.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) struct QueueId {
    pub host: HostId,
    pub kind: Kind,
}

impl QueueId {
    /// The queue of a URL.
    pub(crate) fn of(due: &DueUrl) -> Self {
        Self {
            host: due.id.host,
            kind: Kind::of(due.id.lane),
        }
    }
}

/// The queues of a host.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) enum Kind {
    /// What is due by its own schedule, and siblings.
    Schedule,
    /// What a cycle of reconciling takes.
    Doubt,
    /// Samples of what is held.
    Sample,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Schedule, Self::Doubt, Self::Sample];

    /// The lanes of which a queue is made, in the order in which they are read.
    pub(crate) fn lanes(self) -> &'static [Lane] {
        match self {
            Self::Schedule => &[Lane::Trouble, Lane::Routine, Lane::Gone],
            Self::Doubt => &[Lane::Doubt],
            Self::Sample => &[Lane::Held],
        }
    }

    fn of(lane: Lane) -> Self {
        match lane {
            Lane::Routine | Lane::Trouble | Lane::Gone => Self::Schedule,
            Lane::Doubt => Self::Doubt,
            Lane::Held => Self::Sample,
        }
    }
}
