//! Results that the caller takes: completions and readable streamed bodies.

use std::collections::VecDeque;

use super::readable_bodies::ReadableBodies;
use crate::reactor::CallKey;

pub(super) struct Deliveries {
    /// Calls with a completion: the call has ended, or the head of its streamed response has arrived.
    done: VecDeque<CallKey>,
    /// Streamed bodies with new data or an end. Invariant: a call is in this list once if its `notified` is set, else
    /// it is not in the list.
    pub(super) readable: ReadableBodies,
}

impl Deliveries {
    pub(super) fn new() -> Self {
        Self {
            done: VecDeque::new(),
            readable: ReadableBodies::default(),
        }
    }

    /// Whether there is neither a completion nor a readable body.
    pub(super) fn is_empty(&self) -> bool {
        self.done.is_empty() && self.readable.is_empty()
    }

    // ---- completions

    #[inline]
    pub(super) fn push_done(&mut self, call: CallKey) {
        self.done.push_back(call);
    }

    #[inline]
    pub(super) fn next_done(&mut self) -> Option<CallKey> {
        self.done.pop_front()
    }

    pub(super) fn is_done(&self, call: CallKey) -> bool {
        self.done.contains(&call)
    }

    /// Removes a call from the list of completions; false if it is not there.
    pub(super) fn take_done(&mut self, call: CallKey) -> bool {
        let at = self.done.iter().position(|done| *done == call);
        at.and_then(|at| self.done.remove(at)).is_some()
    }

    pub(super) fn done_len(&self) -> usize {
        self.done.len()
    }

    /// The completion at this index.
    pub(super) fn done_at(&self, number: usize) -> Option<CallKey> {
        self.done.get(number).copied()
    }

    /// Overwrites the entry at this index.
    pub(super) fn keep_done(&mut self, number: usize, call: CallKey) {
        if let Some(place) = self.done.get_mut(number) {
            *place = call;
        }
    }

    /// Keeps only the first `len` completions.
    pub(super) fn truncate_done(&mut self, len: usize) {
        self.done.truncate(len);
    }
}
