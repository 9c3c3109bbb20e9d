//! Calls that are to be sent: those that were submitted, and those that go on after an answer or an error.

use std::collections::VecDeque;

use super::CallTime;
use crate::policy::room;
use crate::reactor::CallKey;

#[derive(Default)]
pub(super) struct CallQueue {
    /// Submitted calls that no iteration has taken up yet.
    submitted: Vec<(CallKey, CallTime)>,
    /// Calls that go on once all events are processed: connections that look idle may have died, and the events that
    /// tell so may come next.
    further: VecDeque<CallKey>,
}

impl CallQueue {
    #[inline]
    pub(super) fn submit(&mut self, call: CallKey, time: CallTime) {
        self.submitted.push((call, time));
    }

    /// The submitted call with this number. It stays, lest it be lost when a callback of the user panics.
    #[inline]
    pub(super) fn submitted(&self, number: usize) -> Option<(CallKey, CallTime)> {
        self.submitted.get(number).copied()
    }

    /// All submitted calls have begun. As much room as they took is kept: as many may come with the next iteration.
    pub(super) fn clear_submitted(&mut self) {
        let usual = self.submitted.len().max(room::KEPT);
        self.submitted.clear();
        self.submitted.shrink_to(usual);
    }

    /// Sends a call once all events are processed.
    pub(super) fn send_further(&mut self, call: CallKey) {
        self.further.push_back(call);
    }

    #[inline]
    pub(super) fn next_further(&mut self) -> Option<CallKey> {
        self.further.pop_front()
    }
}
