//! Calls that move to another client after a redirect, where several clients share all hosts.

use super::CallId;
use crate::client::progress::ActiveCall;
use crate::policy::host_hash;
use crate::proto::{Request, Response};

#[derive(Default)]
pub(super) struct Migration {
    /// The index of this client and the count of clients: it serves the hosts with `hash % count == index`. `None` if
    /// this client serves all hosts.
    share: Option<(usize, usize)>,
    /// Calls that move to another client, with the number of that client.
    migrating: Vec<(CallId, usize, MigratingCall)>,
}

impl Migration {
    /// Sets the share: `count` clients share all hosts, and this client has the number `index`.
    pub(super) fn set_share(&mut self, index: usize, count: usize) {
        self.share = (count > 1).then_some((index, count));
    }

    /// The number of the client that serves the host of a URL; `None` if that is this client.
    pub(super) fn elsewhere(&self, url: &str) -> Option<usize> {
        let (index, count) = self.share?;
        let owner = (host_hash(url) % count as u64) as usize;
        (owner != index).then_some(owner)
    }

    pub(super) fn push(&mut self, id: CallId, owner: usize, call: ActiveCall) {
        let call = MigratingCall(Box::new(call));
        self.migrating.push((id, owner, call));
    }

    pub(super) fn next(&mut self) -> Option<(CallId, usize, MigratingCall)> {
        self.migrating.pop()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.migrating.is_empty()
    }
}

/// A call on its way to another client.
pub struct MigratingCall(pub(super) Box<ActiveCall>);

impl MigratingCall {
    pub(crate) fn into_buffers(self) -> (Request, Response) {
        (self.0.request, self.0.response)
    }
}
