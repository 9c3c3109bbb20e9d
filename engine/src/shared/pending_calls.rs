//! The calls of one thread, by the places that its client gives them.

use std::sync::Arc;

use super::slot::{Delivery, Slot};
use crate::client::CallId;

/// A call that the client has.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) id: CallId,
    pub(super) delivery: Delivery,
}

/// The client's places are few and used again, so that a vector holds them.
#[derive(Debug, Default)]
pub(super) struct PendingCalls {
    /// At each place the call that is there now.
    places: Vec<Option<Pending>>,
    len: usize,
}

impl PendingCalls {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// A call that was at that place before is over.
    pub(super) fn insert(&mut self, pending: Pending) {
        let place = pending.id.index();
        if place >= self.places.len() {
            self.places.resize_with(place + 1, || None);
        }
        if self.places[place].replace(pending).is_none() {
            self.len += 1;
        }
    }

    pub(super) fn get(&self, id: CallId) -> Option<&Pending> {
        let pending = self.places.get(id.index())?.as_ref()?;
        (pending.id == id).then_some(pending)
    }

    pub(super) fn remove(&mut self, id: CallId) -> Option<Pending> {
        let pending = self.places.get_mut(id.index())?;
        let pending = pending.take_if(|pending| pending.id == id)?;
        self.len -= 1;
        Some(pending)
    }

    pub(super) fn slots(&self) -> Vec<Arc<Slot>> {
        let pending = self.places.iter().flatten();
        pending
            .map(|pending| Arc::clone(pending.delivery.slot()))
            .collect()
    }

    /// Takes out all calls.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Pending> {
        self.len = 0;
        self.places.drain(..).flatten()
    }
}
