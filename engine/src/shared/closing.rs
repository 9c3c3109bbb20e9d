//! The end of a shared client, awaited.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::thread::Workers;
use crate::sync::{Mutex, lock};

/// The end of a [`Shared`](crate::Shared) client: a future, for any executor, of the number of calls that were
/// cancelled. Made by [`Shared::close`](crate::Shared::close), which has an example. The client ends whether or not the
/// future is awaited.
#[derive(Debug)]
#[must_use = "the client is closed, but whether it has ended is known only when this was awaited"]
pub struct Closing(pub(super) Arc<Workers>);

impl Future for Closing {
    type Output = usize;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<usize> {
        self.0.ends.poll(context)
    }
}

/// How many workers have ended, and who waits for the last one.
#[derive(Debug)]
pub(super) struct Ends(Mutex<State>);

#[derive(Debug)]
struct State {
    running: usize,
    /// Calls that were cancelled.
    cut_off: usize,
    waiting: Vec<Waker>,
}

impl Ends {
    pub(super) fn new(workers: usize) -> Self {
        Self(Mutex::new(State {
            running: workers,
            cut_off: 0,
            waiting: Vec::new(),
        }))
    }

    /// Notes that one worker has ended, and how many calls it has cancelled.
    pub(super) fn note(&self, cut_off: usize) {
        let waiting = {
            let mut state = lock(&self.0);
            state.running = state.running.saturating_sub(1);
            state.cut_off += cut_off;
            match state.running {
                0 => std::mem::take(&mut state.waiting),
                _ => return,
            }
        };
        waiting.into_iter().for_each(Waker::wake);
    }

    fn poll(&self, context: &Context<'_>) -> Poll<usize> {
        let mut state = lock(&self.0);
        if state.running == 0 {
            return Poll::Ready(state.cut_off);
        }
        let mut waiting = state.waiting.iter();
        if !waiting.any(|task| task.will_wake(context.waker())) {
            state.waiting.push(context.waker().clone());
        }
        Poll::Pending
    }
}
