//! The queues of the core: what of a host is asked in which order.

use crate::crawl::fleet::Entry;
use crate::store::{DueId, DueUrl, HostId, Lane};

/// Names a queue.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) struct QueueId {
    pub(crate) host: HostId,
    pub(crate) kind: Kind,
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

impl Entry for DueUrl {
    type Queue = QueueId;
    type Place = DueId;

    fn queue(&self) -> QueueId {
        QueueId {
            host: self.id.host,
            kind: Kind::of(self.id.lane),
        }
    }

    fn place(&self) -> DueId {
        self.id
    }
}
