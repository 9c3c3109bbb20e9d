//! What the caller is to take: completions, streamed bodies that can be read on, and streams that speak another protocol.

use std::collections::VecDeque;

use super::CallId;
use super::readable_bodies::ReadableBodies;
use crate::reactor::CallKey;

pub(super) struct Deliveries<S> {
    /// Calls that have something for the caller: their end, or the head of a streamed response.
    done: VecDeque<CallKey>,
    /// Streamed bodies that can be read on and of which the caller has not been notified. Invariant: a call is in here
    /// once if it is `notified`, else not.
    pub(super) readable: ReadableBodies,
    /// Connections that speak another protocol now, with the calls that they came from.
    streams: Vec<(CallId, S)>,
}

impl<S> Deliveries<S> {
    pub(super) fn new() -> Self {
        Self {
            done: VecDeque::new(),
            readable: ReadableBodies::default(),
            streams: Vec::new(),
        }
    }

    /// Whether there is neither a completion nor a body to be read.
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

    /// Takes out a call, if it is done.
    pub(super) fn take_done(&mut self, call: CallKey) -> bool {
        let at = self.done.iter().position(|done| *done == call);
        at.and_then(|at| self.done.remove(at)).is_some()
    }

    pub(super) fn done_len(&self) -> usize {
        self.done.len()
    }

    /// The call with this number among those that are done.
    pub(super) fn done_at(&self, number: usize) -> Option<CallKey> {
        self.done.get(number).copied()
    }

    /// Puts a call in place of one that was taken out by its number.
    pub(super) fn keep_done(&mut self, number: usize, call: CallKey) {
        if let Some(place) = self.done.get_mut(number) {
            *place = call;
        }
    }

    /// Keeps only so many of the calls that are done, the first ones.
    pub(super) fn truncate_done(&mut self, len: usize) {
        self.done.truncate(len);
    }

    // ---- streams

    pub(super) fn push_stream(&mut self, call: CallId, stream: S) {
        self.streams.push((call, stream));
    }

    pub(super) fn take_stream(&mut self, call: CallId) -> Option<S> {
        let at = self.streams.iter().position(|(of, _)| *of == call)?;
        Some(self.streams.swap_remove(at).1)
    }

    pub(super) fn drain_streams(&mut self) -> impl Iterator<Item = S> {
        self.streams.drain(..).map(|(_, stream)| stream)
    }
}
