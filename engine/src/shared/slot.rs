//! The slot through which the caller gets the completion of one call, and the type that guarantees this completion.

use std::sync::Arc;
use std::task;

use super::completions::{Delivered, Recipient};
use super::thread::OpenCall;
use crate::client::{BodyEnd, CallId, Completion};
use crate::error::{Error, ErrorKind, Phase, Sent, Stopped};
use crate::proto::{Request, Response};
use crate::reactor::CallKey;
use crate::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use crate::sync::thread::{self, Thread};
use crate::sync::{Mutex, lock};

/// What the caller and the worker share about one call. The slot is the only allocation for a call, unless the body is
/// streamed.
#[derive(Debug, Default)]
pub(super) struct Slot {
    state: Mutex<State>,
    /// The key of the call in the client of the worker; zero before the worker has taken the call.
    key: AtomicU64,
    /// The index of the worker that has the call, or that has the call in its queue.
    worker: AtomicUsize,
    /// The caller has cancelled the call. A worker checks this when it takes over a call from another worker.
    cancelled: AtomicBool,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) completion: Option<Completion>,
    /// The body of a streamed call, once its head was delivered.
    body: Option<Box<Body>>,
    waiter: Waiter,
}

/// The part of a streamed body that waits for its reader.
#[derive(Debug, Default)]
struct Body {
    /// Empty if the reader has taken all bytes.
    chunk: Vec<u8>,
    /// The end of the body, which follows the chunk.
    end: Option<BodyEnd>,
}

/// What a reader takes out of a slot.
#[derive(Debug)]
pub(super) enum BodyPart {
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
    /// Blocks until the call has completed, or until the head of a streamed response has come.
    pub(super) fn wait(&self) -> Completion {
        self.wait_for(|state| state.completion.take())
    }

    /// Blocks until there is what `take` takes out.
    pub(super) fn wait_for<T>(&self, mut take: impl FnMut(&mut State) -> Option<T>) -> T {
        loop {
            let mut state = lock(&self.state);
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

    /// As [`wait_for`](Self::wait_for), for a task.
    pub(super) fn poll_for<T>(
        &self,
        context: &task::Context<'_>,
        take: impl FnOnce(&mut State) -> Option<T>,
    ) -> task::Poll<T> {
        let mut state = lock(&self.state);
        if let Some(taken) = take(&mut state) {
            return task::Poll::Ready(taken);
        }
        let known = matches!(&state.waiter, Waiter::Task(task) if task.will_wake(context.waker()));
        if !known {
            let before =
                std::mem::replace(&mut state.waiter, Waiter::Task(context.waker().clone()));
            // The drop of a waker runs foreign code, which must not run under the lock.
            drop(state);
            drop(before);
        }
        task::Poll::Pending
    }

    /// The id of the call in the client of its worker, once the worker has taken the call.
    pub(super) fn id(&self) -> Option<CallId> {
        CallKey::from_bits(self.key.load(Ordering::Acquire)).map(CallId)
    }

    pub(super) fn worker(&self) -> usize {
        self.worker.load(Ordering::SeqCst)
    }

    /// Notes the worker to whose queue the call is about to be added.
    pub(super) fn set_worker(&self, worker: usize) {
        self.worker.store(worker, Ordering::SeqCst);
    }

    /// Notes that a worker has taken the call, and the id of the call in the client of that worker.
    pub(super) fn set_taken(&self, worker: usize, id: CallId) {
        self.key.store(id.0.to_bits(), Ordering::Release);
        self.worker.store(worker, Ordering::SeqCst);
    }

    pub(super) fn mark_cancelled(&self) {
        self.cancelled.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::SeqCst)
    }

    /// Whether the head of a streamed response has been given.
    pub(super) fn has_body(&self) -> bool {
        lock(&self.state).body.is_some()
    }

    /// A buffer for the next chunk, if the reader has taken the last one.
    pub(super) fn empty_chunk(&self) -> Option<Vec<u8>> {
        let mut state = lock(&self.state);
        let body = state.body.as_mut()?;
        (body.chunk.is_empty() && body.end.is_none()).then(|| std::mem::take(&mut body.chunk))
    }

    pub(super) fn put_chunk(&self, chunk: Vec<u8>) {
        let wake = !chunk.is_empty();
        self.change(wake, |state| {
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

    fn put_completion(&self, completion: Completion) {
        self.change(true, |state| {
            if completion.streamed().is_some() {
                state.body = Some(Box::default());
            }
            state.completion = Some(completion);
        });
    }

    /// Changes the state, and if `wake`, wakes the thread or the task that waits.
    fn change(&self, wake: bool, change: impl FnOnce(&mut State)) {
        let mut state = lock(&self.state);
        change(&mut state);
        if !wake {
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
}

impl State {
    /// Takes bytes of the body, which it puts into `chunk`, which must be empty; or else the end of the body.
    pub(super) fn take_chunk(&mut self, chunk: &mut Vec<u8>) -> Option<BodyPart> {
        let body = self.body.as_mut()?;
        if !body.chunk.is_empty() {
            std::mem::swap(&mut body.chunk, chunk);
            return Some(BodyPart::Chunk);
        }
        body.end.take().map(BodyPart::End)
    }
}

/// The guarantee that one call completes. Dropping a delivery completes the call with an error: because of a panic, a
/// queue that is not read any more, or a worker that ends. So no caller waits for ever.
#[derive(Debug)]
pub(super) struct Delivery {
    pub(super) slot: Arc<Slot>,
    pub(super) channel: Option<Recipient>,
    /// The tag that the caller gave to the call.
    pub(super) tag: u64,
    /// `None` once the call has completed.
    pub(super) permit: Option<Permit>,
    /// Counts the call among the open calls of all workers. `None` if there is one worker.
    pub(super) open_call: Option<OpenCall>,
}

impl Delivery {
    pub(super) fn complete(mut self, completion: Completion) {
        if let Some(permit) = self.permit.take() {
            self.deliver(completion, permit);
        }
    }

    /// Gives the head of a streamed response to the caller. The body follows.
    pub(super) fn give_head(&self, mut completion: Completion) {
        completion.tag = self.tag;
        self.slot.put_completion(completion);
    }

    /// Gives the last chunk of a streamed body, which may be empty, and the end of the body to the reader.
    pub(super) fn give_end(mut self, chunk: Vec<u8>, end: BodyEnd) {
        drop(self.permit.take());
        self.slot.put_end(Some(chunk), end);
    }

    /// Completes the call with an error that does not come from the client. The caller gets `buffers` back.
    pub(super) fn fail(mut self, kind: impl Into<ErrorKind>, buffers: Option<(Request, Response)>) {
        self.give_up(kind.into(), buffers);
    }

    fn give_up(&mut self, kind: ErrorKind, buffers: Option<(Request, Response)>) {
        let Some(permit) = self.permit.take() else {
            return;
        };
        if self.slot.has_body() {
            drop(permit);
            let error = Error::new(kind, Phase::Body, Sent::ReplyBegun);
            self.slot.put_end(None, Err(error));
        } else {
            let failed = Completion::failed(self.tag, cut_off(kind), buffers);
            self.deliver(failed, permit);
        }
    }

    fn deliver(&self, mut completion: Completion, permit: Permit) {
        completion.tag = self.tag;
        match &self.channel {
            // If the receiver was dropped, the completion is dropped, too.
            Some(Recipient { sender, number }) => drop(sender.send(Delivered {
                number: *number,
                completion,
                permit,
            })),
            None => {
                drop(permit);
                self.slot.put_completion(completion);
            }
        }
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        self.give_up(Stopped::ShutDown.into(), None);
        // After the completion: workers end when no call is open, and then every call must have completed.
        drop(self.open_call.take());
    }
}

/// The error of a call that its worker has given up.
fn cut_off(kind: ErrorKind) -> Error {
    let sent = match kind {
        // The client that knew how much was sent is dropped: assume that a part was sent.
        ErrorKind::Stopped(Stopped::Panicked) | ErrorKind::Io(_) => Sent::ReplyBegun,
        _ => Sent::Nothing,
    };
    Error::new(kind, Phase::Queue, sent)
}

/// The limit of the calls in flight of a shared client.
#[derive(Debug)]
pub(super) struct Permits {
    pub(super) max: usize,
    taken: AtomicUsize,
}

impl Permits {
    pub(super) fn new(max: usize) -> Self {
        Self {
            max,
            taken: AtomicUsize::new(0),
        }
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

/// The right of one call to be in flight. Dropping the permit gives it back.
#[derive(Debug)]
pub(super) struct Permit(Arc<Permits>);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::SeqCst);
    }
}
