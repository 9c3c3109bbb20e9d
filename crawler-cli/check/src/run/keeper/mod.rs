//! Keeps the URLs of a run: adds what the sources say, hands out URLs to ask, takes answers, and tells what is to be
//! reported: a URL when it is judged, and places that are found later when they are found.
//!
//! With a state, they are in a [store](stored), which survives the run. Without one, they are in [memory](memory).

use std::time::Duration;

use crate::record::Checked;
use crate::sources::Batch;
use store::{Completed, EntryId, Host, HostFacts, HostId, Queued, StoreError};

mod memory;
mod stored;
mod urls;

pub(super) use memory::Memory;
pub(super) use stored::Stored;

/// What keeps the URLs.
pub(super) trait Keeper {
    /// Gives a command.
    fn send(&mut self, command: Command);
    /// The next reply, if there is one.
    fn next(&mut self) -> Option<Reply>;
    /// The next reply. Waits for this time.
    fn wait(&mut self, time: Duration) -> Option<Reply>;
    /// Reads some of what the sources say, if that is for the caller to do and there is room. Returns whether there may be
    /// more at once.
    fn read_some(&mut self) -> bool {
        false
    }
    /// What is judged and can be reported without waiting for it.
    fn take_judged(&mut self) -> Vec<Checked> {
        Vec::new()
    }
}

/// What the keeper is asked to do.
#[derive(Debug)]
pub(super) enum Command {
    /// Read the next entries of a host's queue: [`Reply::Taken`].
    Take {
        host: HostId,
        after: EntryId,
        limit: usize,
    },
    /// Store what was answered.
    Complete(Vec<Completed>),
    /// Store what was learned about hosts.
    SaveHosts(Vec<(HostId, HostFacts)>),
    /// End the run, all of which was reported: [`Reply::Ended`]. A run that is not ended is continued by the next one.
    End,
}

/// What the keeper says.
#[derive(Debug)]
pub(super) enum Reply {
    /// The run began. Entries of an interrupted run may wait.
    Began { is_resumed: bool },
    /// Hosts that have URLs to ask.
    Hosts(Vec<Host>),
    /// Entries joined the queues of hosts.
    Queued(Vec<(HostId, u32)>),
    /// The next entries of a host's queue; fewer than the limit if there are no more.
    Taken {
        host: HostId,
        limit: usize,
        queued: Vec<Queued>,
    },
    /// What sources said beside links.
    Source(Batch),
    /// The sources have ended.
    AllRead,
    /// URLs that are judged.
    Judged(Vec<Checked>),
    /// The sources have ended, and nothing is left to ask or to report.
    Done,
    /// The run has ended.
    Ended,
    /// The store failed. Nothing more is stored.
    Failed(StoreError),
}
