//! Calls to be sent: submitted calls, and calls that go on after a redirect or an error.

use std::collections::VecDeque;

use super::CallTime;
use crate::policy::room;
use crate::reactor::CallKey;

#[derive(Default)]
pub(super) struct CallQueue {
    /// Submitted calls that no iteration has begun yet.
    submitted: Vec<(CallKey, CallTime)>,
    /// Calls that go on once all events are processed. If they went on at once, they could get an idle connection whose
    /// end is reported by one of the next events.
    further: VecDeque<CallKey>,
}

impl CallQueue {
    #[inline]
    pub(super) fn submit(&mut self, call: CallKey, time: CallTime) {
        self.submitted.push((call, time));
    }

    /// The submitted call at this index. The call stays in the queue, so that a panic in a user's callback does not
    /// lose it.
    #[inline]
    pub(super) fn submitted(&self, number: usize) -> Option<(CallKey, CallTime)> {
        self.submitted.get(number).copied()
    }

    /// Removes all submitted calls, which have begun. The queue keeps as much room as they took, for the next
    /// iteration.
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
