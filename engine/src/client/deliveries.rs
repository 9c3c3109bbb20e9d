//! Results that the caller takes: completions and readable streamed bodies.

use std::collections::VecDeque;

use super::readable_bodies::ReadableBodies;
use crate::reactor::CallKey;

#[derive(Default)]
pub(super) struct Deliveries {
    /// Calls with a completion: the call has ended, or the head of its streamed response has arrived.
    pub(super) done: VecDeque<CallKey>,
    /// Streamed bodies with new data or an end. Invariant: a call is in this list once if its `notified` is set, else
    /// it is not in the list.
    pub(super) readable: ReadableBodies,
}

impl Deliveries {
    /// Whether there is neither a completion nor a readable body.
    pub(super) fn is_empty(&self) -> bool {
        self.done.is_empty() && self.readable.is_empty()
    }

    /// Removes a call from the list of completions; false if it is not there.
    pub(super) fn take_done(&mut self, call: CallKey) -> bool {
        let at = self.done.iter().position(|done| *done == call);
        at.and_then(|at| self.done.remove(at)).is_some()
    }
}
