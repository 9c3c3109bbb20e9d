//! The place where the completion of one call is left for the caller, and the duty to leave it there.

use std::sync::{Arc, PoisonError};
use std::task;

use super::completions::{Delivered, Recipient};
use super::thread::OpenCall;
use crate::client::{CallId, Completion, Report};
use crate::error::{Error, ErrorKind, Phase, Sent, Stopped};
use crate::proto::{Request, Response};
use crate::reactor::CallKey;
use crate::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use crate::sync::thread::{self, Thread};
use crate::sync::{Mutex, MutexGuard};

/// One call, seen from both threads. The only thing that is allocated for it, unless its body is streamed.
#[derive(Debug)]
pub(super) struct Slot {
    state: Mutex<State>,
    /// Under which name the client's thread knows the call; zero before it does.
    key: AtomicU64,
    /// The number of the thread that has it, or will find it in its queue.
    home: AtomicUsize,
    /// For a thread that takes over the call from another one.
    cancelled: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    completion: Option<Completion>,
    /// Of a streamed call, from its head on.
    body: Option<Box<Body>>,
    waiter: Waiter,
}

/// A body between its thread and its reader.
#[derive(Debug, Default)]
struct Body {
    /// Empty while the reader is faster.
    chunk: Vec<u8>,
    /// Behind the chunk.
    end: Option<BodyEnd>,
}

/// How a body ended; with its trailers in the response, if it has any.
pub(super) type BodyEnd = Result<Box<(Report, Option<Response>)>, Error>;

/// What a reader found.
#[derive(Debug)]
pub(super) enum Took {
    Chunk,
    End(BodyEnd),
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
            key: AtomicU64::new(0),
            home: AtomicUsize::new(0),
            cancelled: AtomicBool::new(false),
        }
    }

    /// Blocks until the call is over, or the head of a streamed one is there.
    pub(super) fn wait(&self) -> Completion {
        self.wait_for(|state| state.completion.take())
    }

    /// Blocks until there is more of the body, and takes it into `chunk`, which is empty.
    pub(super) fn wait_chunk(&self, chunk: &mut Vec<u8>) -> Took {
        self.wait_for(|state| state.take_chunk(chunk))
    }

    pub(super) fn poll(&self, context: &task::Context<'_>) -> task::Poll<Completion> {
        self.poll_for(context, |state| state.completion.take())
    }

    /// As [`wait_chunk`](Self::wait_chunk), without blocking.
    pub(super) fn poll_chunk(
        &self,
        context: &task::Context<'_>,
        chunk: &mut Vec<u8>,
    ) -> task::Poll<Took> {
        self.poll_for(context, |state| state.take_chunk(chunk))
    }

    fn wait_for<T>(&self, mut take: impl FnMut(&mut State) -> Option<T>) -> T {
        loop {
            let mut state = self.lock();
            if let Some(taken) = take(&mut state) {
                return taken;
            }
            if !matches!(state.waiter, Waiter::Thread(_)) {
                state.waiter = Waiter::Thread(thread::current());
            }
            drop(state);
            thread::park();
        }
    }

    fn poll_for<T>(
        &self,
        context: &task::Context<'_>,
        take: impl FnOnce(&mut State) -> Option<T>,
    ) -> task::Poll<T> {
        let mut state = self.lock();
        if let Some(taken) = take(&mut state) {
            return task::Poll::Ready(taken);
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

    /// The call's name with its thread, once that has it.
    pub(super) fn id(&self) -> Option<CallId> {
        CallKey::from_bits(self.key.load(Ordering::Acquire)).map(CallId)
    }

    pub(super) fn home(&self) -> usize {
        self.home.load(Ordering::SeqCst)
    }

    /// The call is about to be in that thread's queue.
    pub(super) fn set_home(&self, home: usize) {
        self.home.store(home, Ordering::SeqCst);
    }

    /// That thread has it, under that name.
    pub(super) fn set_place(&self, home: usize, id: CallId) {
        self.key.store(id.0.to_bits(), Ordering::Release);
        self.home.store(home, Ordering::SeqCst);
    }

    pub(super) fn mark_cancelled(&self) {
        self.cancelled.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::SeqCst)
    }

    /// Whether the head of a streamed response has been given.
    pub(super) fn has_body(&self) -> bool {
        self.lock().body.is_some()
    }

    /// A buffer for the next chunk, if the reader has taken the last one.
    pub(super) fn empty_chunk(&self) -> Option<Vec<u8>> {
        let mut state = self.lock();
        let body = state.body.as_mut()?;
        (body.chunk.is_empty() && body.end.is_none()).then(|| std::mem::take(&mut body.chunk))
    }

    pub(super) fn put_chunk(&self, chunk: Vec<u8>) {
        let is_news = !chunk.is_empty();
        self.change(is_news, |state| {
            if let Some(body) = &mut state.body {
                body.chunk = chunk;
            }
        });
    }

    fn put_end(&self, chunk: Option<Vec<u8>>, end: BodyEnd) {
        self.change(true, |state| {
            let body = state.body.get_or_insert_default();
            if let Some(chunk) = chunk {
                body.chunk = chunk;
            }
            body.end = Some(end);
        });
    }

    fn fill(&self, completion: Completion) {
        self.change(true, |state| {
            if completion.body.is_some() {
                state.body = Some(Box::default());
            }
            state.completion = Some(completion);
        });
    }

    /// Wakes the thread or the task that waits, if there is something for it.
    fn change(&self, is_news: bool, change: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        change(&mut state);
        if !is_news {
            return;
        }
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

impl State {
    fn take_chunk(&mut self, chunk: &mut Vec<u8>) -> Option<Took> {
        let body = self.body.as_mut()?;
        if !body.chunk.is_empty() {
            std::mem::swap(&mut body.chunk, chunk);
            return Some(Took::Chunk);
        }
        body.end.take().map(Took::End)
    }
}

/// The duty to complete one call. Whatever drops it, be it a panic, a queue that is not read any more, or a thread
/// that ends, completes the call, so that no caller waits for ever.
#[derive(Debug)]
pub(super) struct Delivery {
    slot: Arc<Slot>,
    channel: Option<Recipient>,
    /// The caller's.
    tag: u64,
    /// `None` when the call is completed.
    permit: Option<Permit>,
    counted: Option<OpenCall>,
}

impl Delivery {
    pub(super) fn new(
        slot: Arc<Slot>,
        channel: Option<Recipient>,
        tag: u64,
        permit: Permit,
        counted: Option<OpenCall>,
    ) -> Self {
        Self {
            slot,
            channel,
            tag,
            permit: Some(permit),
            counted,
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

    /// The head of a streamed response; its body is still to come.
    pub(super) fn give_head(&self, mut completion: Completion) {
        completion.tag = self.tag;
        self.slot.fill(completion);
    }

    /// The last chunk of a streamed body, which may be empty, and its end.
    pub(super) fn give_end(mut self, chunk: Vec<u8>, end: BodyEnd) {
        drop(self.permit.take());
        self.slot.put_end(Some(chunk), end);
    }

    /// Completes the call with an error that does not come from the client. Its buffers come back if they are given.
    pub(super) fn fail(mut self, kind: impl Into<ErrorKind>, buffers: Option<(Request, Response)>) {
        self.give_up(kind.into(), buffers);
    }

    fn give_up(&mut self, kind: ErrorKind, buffers: Option<(Request, Response)>) {
        let Some(permit) = self.permit.take() else {
            return;
        };
        if self.slot.has_body() {
            drop(permit);
            let error = Error::new(kind, Phase::Body, Sent::Partial);
            self.slot.put_end(None, Err(error));
        } else {
            let failed = Completion::failed(self.tag, cut_off(kind), buffers);
            self.deliver(failed, permit);
        }
    }

    fn deliver(&self, mut completion: Completion, permit: Permit) {
        completion.tag = self.tag;
        match &self.channel {
            // Without a receiver, the completion is not wanted.
            Some(Recipient { sender, number }) => drop(sender.send(Delivered {
                number: *number,
                completion,
                permit,
            })),
            None => {
                drop(permit);
                self.slot.fill(completion);
            }
        }
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        self.give_up(Stopped::ShutDown.into(), None);
        // Only now: a thread that ends because nothing is open any more must have nothing left to do.
        drop(self.counted.take());
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

/// How many calls may be with a shared client at a time.
#[derive(Debug)]
pub(super) struct Permits {
    max: usize,
    taken: AtomicUsize,
    /// There may be a task in `waiting`.
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
