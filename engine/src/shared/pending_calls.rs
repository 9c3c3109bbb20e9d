//! The calls of one worker, by the indexes that its client gives them.

use std::sync::Arc;

use super::slot::{Delivery, Slot};
use crate::client::CallId;

/// A call that the client of the worker has taken.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) id: CallId,
    pub(super) delivery: Delivery,
}

/// The calls of one worker. A vector is enough: the indexes of a client's calls are small, because indexes are used
/// again.
#[derive(Debug, Default)]
pub(super) struct PendingCalls {
    /// At each index, the call that has this index now.
    calls: Vec<Option<Pending>>,
    len: usize,
}

impl PendingCalls {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds a call. An earlier call with the same index has ended.
    pub(super) fn insert(&mut self, pending: Pending) {
        let index = pending.id.index();
        if index >= self.calls.len() {
            self.calls.resize_with(index + 1, || None);
        }
        if self.calls[index].replace(pending).is_none() {
            self.len += 1;
        }
    }

    pub(super) fn get(&self, id: CallId) -> Option<&Pending> {
        let pending = self.calls.get(id.index())?.as_ref()?;
        (pending.id == id).then_some(pending)
    }

    pub(super) fn remove(&mut self, id: CallId) -> Option<Pending> {
        let pending = self.calls.get_mut(id.index())?;
        let pending = pending.take_if(|pending| pending.id == id)?;
        self.len -= 1;
        Some(pending)
    }

    pub(super) fn slots(&self) -> Vec<Arc<Slot>> {
        let pending = self.calls.iter().flatten();
        let slots = pending.map(|pending| Arc::clone(&pending.delivery.slot));
        slots.collect()
    }

    /// Takes out all calls.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Pending> {
        self.len = 0;
        self.calls.drain(..).flatten()
    }
}
