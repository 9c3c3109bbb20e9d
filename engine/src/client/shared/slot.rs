//! Where one call's completion is left for whoever waits for it, and the duty to leave it there.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task;
use std::thread::{self, Thread};
use std::time::Instant;

use crossbeam_channel::Sender;

use super::completions::Delivered;
use crate::client::{CallId, Completion, Report};
use crate::error::{Error, ErrorKind, Phase, Sent, Stopped};
use crate::proto::{Request, Response};
use crate::reactor::{Key, Marks};

/// One call, seen from both threads. The only thing that is allocated for it.
#[derive(Debug)]
pub(super) struct Slot {
    state: Mutex<State>,
    /// Under which key the client's thread knows the call; `Key::NONE` before it does.
    key: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    completion: Option<Completion>,
    waiter: Waiter,
}

#[derive(Debug, Default)]
enum Waiter {
    #[default]
    None,
    Thread(Thread),
    Task(task::Waker),
}

impl Slot {
    pub(super) fn new() -> Self {
        Self {
            state: Mutex::default(),
            key: AtomicU64::new(Key::NONE.to_bits()),
        }
    }

    /// Blocks until the call is over.
    pub(super) fn wait(&self) -> Completion {
        loop {
            let mut state = self.lock();
            if let Some(completion) = state.completion.take() {
                return completion;
            }
            if !matches!(state.waiter, Waiter::Thread(_)) {
                state.waiter = Waiter::Thread(thread::current());
            }
            drop(state);
            thread::park();
        }
    }

    pub(super) fn poll(&self, context: &task::Context<'_>) -> task::Poll<Completion> {
        let mut state = self.lock();
        if let Some(completion) = state.completion.take() {
            return task::Poll::Ready(completion);
        }
        let known = matches!(&state.waiter, Waiter::Task(task) if task.will_wake(context.waker()));
        if !known {
            let before =
                std::mem::replace(&mut state.waiter, Waiter::Task(context.waker().clone()));
            // What a foreign waker does when it is dropped is not to happen under the lock.
            drop(state);
            drop(before);
        }
        task::Poll::Pending
    }

    pub(super) fn key(&self) -> Key {
        Key::from_bits(self.key.load(Ordering::Acquire))
    }

    pub(super) fn set_key(&self, key: Key) {
        self.key.store(key.to_bits(), Ordering::Release);
    }

    fn fill(&self, completion: Completion) {
        let mut state = self.lock();
        state.completion = Some(completion);
        let waiter = std::mem::take(&mut state.waiter);
        drop(state);
        match waiter {
            Waiter::None => {}
            Waiter::Thread(thread) => thread.unpark(),
            Waiter::Task(task) => task.wake(),
        }
    }

    /// Foreign code never runs under this lock, so a poisoned one is as good as any.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The duty to complete one call. Whatever drops it, be it a panic, a queue that nobody reads any more, or a thread
/// that ends, completes the call, so that nobody waits for ever.
#[derive(Debug)]
pub(super) struct Delivery {
    slot: Arc<Slot>,
    channel: Option<Sender<Delivered>>,
    /// The caller's.
    tag: u64,
    /// `None` when the call is completed.
    permit: Option<Permit>,
}

impl Delivery {
    pub(super) fn new(
        slot: Arc<Slot>,
        channel: Option<Sender<Delivered>>,
        tag: u64,
        permit: Permit,
    ) -> Self {
        Self {
            slot,
            channel,
            tag,
            permit: Some(permit),
        }
    }

    pub(super) fn slot(&self) -> &Arc<Slot> {
        &self.slot
    }

    pub(super) fn complete(mut self, completion: Completion) {
        if let Some(permit) = self.permit.take() {
            self.deliver(completion, permit);
        }
    }

    /// Completes the call with an error of which nobody else knows. Its buffers come back if they are given.
    pub(super) fn fail(mut self, kind: impl Into<ErrorKind>, buffers: Option<(Request, Response)>) {
        if let Some(permit) = self.permit.take() {
            self.deliver(failed(cut_off(kind.into()), buffers), permit);
        }
    }

    fn deliver(&self, mut completion: Completion, permit: Permit) {
        completion.tag = self.tag;
        match &self.channel {
            // If there is no receiver any more, nobody wants to know.
            Some(channel) => drop(channel.send(Delivered { completion, permit })),
            None => {
                drop(permit);
                self.slot.fill(completion);
            }
        }
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        if let Some(permit) = self.permit.take() {
            self.deliver(failed(cut_off(Stopped::ShutDown.into()), None), permit);
        }
    }
}

/// The error of a call that its thread has given up.
fn cut_off(kind: ErrorKind) -> Error {
    let sent = match kind {
        // How far it got is lost with the client: assume the worst.
        ErrorKind::Stopped(Stopped::Panicked) | ErrorKind::Io(_) => Sent::Partial,
        _ => Sent::Nothing,
    };
    Error::new(kind, Phase::Queue, sent)
}

/// The completion of a call that no client has completed.
pub(super) fn failed(error: Error, buffers: Option<(Request, Response)>) -> Completion {
    let (request, mut response) = buffers.unwrap_or_default();
    response.clear();
    let now = Instant::now();
    Completion {
        id: CallId::NONE,
        tag: 0,
        outcome: Err(error),
        request,
        response,
        report: Report::new(Marks::new(now), 0, now),
        body: None,
    }
}

/// How many calls may be with a shared client at a time.
#[derive(Debug)]
pub(super) struct Permits {
    max: usize,
    taken: AtomicUsize,
    /// There may be somebody in `waiting`.
    awaited: AtomicBool,
    waiting: Mutex<Vec<task::Waker>>,
}

impl Permits {
    pub(super) fn new(max: usize) -> Self {
        Self {
            max,
            taken: AtomicUsize::new(0),
            awaited: AtomicBool::new(false),
            waiting: Mutex::default(),
        }
    }

    pub(super) fn max(&self) -> usize {
        self.max
    }

    pub(super) fn taken(&self) -> usize {
        self.taken.load(Ordering::SeqCst)
    }

    pub(super) fn take(self: &Arc<Self>) -> Option<Permit> {
        let next = |taken: usize| (taken < self.max).then_some(taken + 1);
        self.taken
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, next)
            .ok()
            .map(|_| Permit(Arc::clone(self)))
    }
}

/// The right of one call to be with the client, until it is given back by being dropped.
#[derive(Debug)]
pub(super) struct Permit(Arc<Permits>);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::SeqCst);
        // Who waits says so before trying a last time; both orders are total, so one of the two sees the other.
        if self.0.awaited.load(Ordering::SeqCst) {
            let waiting = {
                let mut waiting = self.0.waiting();
                self.0.awaited.store(false, Ordering::SeqCst);
                std::mem::take(&mut *waiting)
            };
            waiting.into_iter().for_each(task::Waker::wake);
        }
    }
}

impl Permits {
    /// A permit, as soon as there is one.
    #[cfg_attr(not(feature = "tower"), expect(dead_code))]
    pub(super) fn poll_take(self: &Arc<Self>, context: &task::Context<'_>) -> task::Poll<Permit> {
        if let Some(permit) = self.take() {
            return task::Poll::Ready(permit);
        }
        {
            let mut waiting = self.waiting();
            if !waiting.iter().any(|task| task.will_wake(context.waker())) {
                waiting.push(context.waker().clone());
            }
            self.awaited.store(true, Ordering::SeqCst);
        }
        match self.take() {
            Some(permit) => task::Poll::Ready(permit),
            None => task::Poll::Pending,
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<task::Waker>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
