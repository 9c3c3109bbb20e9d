//! The calls of one worker, by the indexes that its client gives them.

use std::sync::Arc;

use super::slot::{Delivery, Slot};
use crate::client::CallId;

/// The calls of one worker. A vector is enough: the indexes of a client's calls are small, because indexes are used
/// again.
#[derive(Debug, Default)]
pub(super) struct PendingCalls {
    /// At each index, the call that has this index now.
    calls: Vec<Option<Delivery>>,
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
    pub(super) fn insert(&mut self, id: CallId, delivery: Delivery) {
        let index = id.index();
        if index >= self.calls.len() {
            self.calls.resize_with(index + 1, || None);
        }
        if self.calls[index].replace(delivery).is_none() {
            self.len += 1;
        }
    }

    pub(super) fn get(&self, id: CallId) -> Option<&Delivery> {
        let delivery = self.calls.get(id.index())?.as_ref()?;
        (delivery.slot.id() == Some(id)).then_some(delivery)
    }

    pub(super) fn remove(&mut self, id: CallId) -> Option<Delivery> {
        let place = self.calls.get_mut(id.index())?;
        let delivery = place.take_if(|delivery| delivery.slot.id() == Some(id))?;
        self.len -= 1;
        Some(delivery)
    }

    pub(super) fn slots(&self) -> Vec<Arc<Slot>> {
        let pending = self.calls.iter().flatten();
        let slots = pending.map(|delivery| Arc::clone(&delivery.slot));
        slots.collect()
    }

    /// Takes out all calls.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Delivery> {
        self.len = 0;
        self.calls.drain(..).flatten()
    }
}
