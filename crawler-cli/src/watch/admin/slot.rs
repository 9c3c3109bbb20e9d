//! For what a connection waits: its client, or this service.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// What a connection does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum State {
    /// It waits for the head of a request, or for its client to take an answer.
    Waits,
    /// It waits for a part of a body.
    ReadsBody,
    /// Its request is being answered.
    Answers,
}

/// The state of a connection, for those who need a place and for those who answer.
#[derive(Clone, Debug)]
pub(super) struct Slot(Arc<Mutex<(State, Instant)>>);

impl Default for Slot {
    fn default() -> Self {
        Self(Arc::new(Mutex::new((State::Waits, Instant::now()))))
    }
}

impl Slot {
    pub(super) fn state(&self) -> State {
        self.lock().0
    }

    /// Since when the client is waited for; `None`: it is not.
    pub(super) fn waits_since(&self) -> Option<Instant> {
        let (state, since) = *self.lock();
        (state != State::Answers).then_some(since)
    }

    /// The request is being answered until the other value is dropped.
    pub(super) fn answers(&self) -> Answering {
        *self.lock() = (State::Answers, Instant::now());
        Answering(self.clone())
    }

    /// A body is read, or was read.
    pub(super) fn reads_body(&self, reads: bool) {
        let state = if reads {
            State::ReadsBody
        } else {
            State::Answers
        };
        *self.lock() = (state, Instant::now());
    }

    fn lock(&self) -> MutexGuard<'_, (State, Instant)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that is being answered.
pub(super) struct Answering(Slot);

impl Drop for Answering {
    fn drop(&mut self) {
        *self.0.lock() = (State::Waits, Instant::now());
    }
}
