//! A worker: a thread that takes commands, drives a client, and delivers completions.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, unbounded};

use super::closing::Ends;
use super::driver::Turn;
use super::pending_calls::PendingCalls;
use super::slot::{Delivery, Slot};
use crate::client::{Call, CallId, HttpClient, MigratingCall, Recorder};
use crate::error::{Error, ErrorKind, Misuse, Stopped, again};
use crate::net::Waker;
use crate::policy::Caps;
use crate::sync::RwLock;
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::sync::thread::{self, ThreadId};

/// The part of the workers that callers and all workers use.
#[derive(Debug)]
pub(super) struct Workers {
    handles: Box<[WorkerHandle]>,
    /// The number of calls that a worker has, or has in its queue. Counted only if there are several workers: no worker
    /// may end while a call can migrate to it from another worker.
    open: AtomicUsize,
    /// The workers must end, and new calls are refused.
    pub(super) ending: AtomicBool,
    /// The only worker has no thread of its own.
    is_driven: bool,
    pub(super) ends: Ends,
}

/// What callers need to reach a worker.
#[derive(Debug)]
struct WorkerHandle {
    commands: Sender<Command>,
    /// The waker of the worker's present client.
    waker: RwLock<Waker>,
    /// Records the results of the worker's calls, over all clients that the worker has had.
    recorder: Arc<Recorder>,
    thread: OnceLock<ThreadId>,
    /// Another worker lacks a descriptor: this one gives back one of its own.
    yields: AtomicBool,
}

/// A command to a worker.
pub(super) enum Command {
    Begin(QueuedCall),
    Cancel(Arc<Slot>),
    Resume(Arc<Slot>),
    /// The reader of a streamed body has taken a chunk.
    ChunkTaken(Arc<Slot>),
    /// Change the limits of the client.
    SetCaps(Caps),
    /// End when no call is in flight any more, at that time at the latest.
    Finish(Option<Instant>),
}

/// A call in the queue of a worker. Dropping the queue completes the call and gives its buffers back.
pub(super) struct QueuedCall(pub(super) Option<(Work, Delivery)>);

/// A call that a worker is given.
pub(super) enum Work {
    New(Call),
    /// A call that was redirected to a host of this worker.
    Migrating(MigratingCall),
}

impl Workers {
    /// The workers, which have no threads of their own if a task drives them, and the queue of each worker.
    pub(super) fn new(count: usize, is_driven: bool) -> (Arc<Self>, Vec<Receiver<Command>>) {
        let workers = (0..count).map(|_| WorkerHandle::new());
        let (handles, queues): (Vec<_>, _) = workers.unzip();
        let workers = Self {
            handles: handles.into(),
            open: AtomicUsize::new(0),
            ending: AtomicBool::new(false),
            is_driven,
            ends: Ends::new(count),
        };
        (Arc::new(workers), queues)
    }

    pub(super) fn len(&self) -> usize {
        self.handles.len()
    }

    pub(super) fn recorders(&self) -> impl Iterator<Item = &Arc<Recorder>> {
        self.handles.iter().map(|handle| &handle.recorder)
    }

    /// Whether the current thread is one of the workers.
    pub(super) fn is_own_thread(&self) -> bool {
        let current = thread::current().id();
        self.handles
            .iter()
            .any(|handle| handle.thread.get() == Some(&current))
    }

    /// Whether the current thread may wait for a call.
    pub(super) fn may_block(&self) -> Result<(), Misuse> {
        match self.is_driven {
            true => Err(Misuse::Blocking),
            false if self.is_own_thread() => Err(Misuse::OwnThread),
            false => Ok(()),
        }
    }

    /// Gives a command to a worker, and wakes the worker if it sleeps (the network's waker knows). The command is in
    /// the queue before the wake, and the worker empties its queue after each poll. So no command stays in the queue.
    ///
    /// If the worker has ended, the command is dropped, which completes its call.
    pub(super) fn send(&self, to: usize, command: Command) {
        let handle = &self.handles[to];
        if handle.commands.send(command).is_ok() {
            handle.wake();
        }
    }

    /// Cancels the call of that slot, on the worker that has the call. A worker that takes over a migrating call first
    /// notes itself in the slot and then checks whether the call was cancelled. So either the worker sees that the call
    /// was cancelled, or the command goes to this worker.
    pub(super) fn cancel(&self, slot: &Arc<Slot>) {
        slot.mark_cancelled();
        self.send(slot.worker(), Command::Cancel(Arc::clone(slot)));
    }

    pub(super) fn finish(&self, until: Option<Instant>) {
        self.ending.store(true, Ordering::SeqCst);
        for to in 0..self.len() {
            self.send(to, Command::Finish(until));
        }
    }

    /// Counts a call as open until the returned value is dropped.
    pub(super) fn count(self: &Arc<Self>) -> Option<OpenCall> {
        if self.len() == 1 {
            return None;
        }
        self.open.fetch_add(1, Ordering::SeqCst);
        Some(OpenCall(Arc::clone(self)))
    }

    /// Asks the other workers for descriptors.
    fn ask_for_descriptors(&self, from: usize) {
        for (index, handle) in self.handles.iter().enumerate() {
            if index != from && !handle.yields.swap(true, Ordering::AcqRel) {
                handle.wake();
            }
        }
    }

    /// Sets the waker of a worker's new client. If a command woke the old client, the worker still finds the command:
    /// it checks its queue before the new client sleeps for the first time.
    pub(super) fn set_waker(&self, of: usize, waker: Waker) {
        let place = &self.handles[of].waker;
        *place.write().unwrap_or_else(PoisonError::into_inner) = waker;
    }
}

impl WorkerHandle {
    fn new() -> (Self, Receiver<Command>) {
        let (commands, queue) = unbounded();
        let handle = Self {
            commands,
            waker: RwLock::new(Waker::new(|| {})),
            recorder: Arc::default(),
            thread: OnceLock::new(),
            yields: AtomicBool::new(false),
        };
        (handle, queue)
    }

    fn wake(&self) {
        let waker = self.waker.read().unwrap_or_else(PoisonError::into_inner);
        waker.wake();
    }
}

/// Counts one call that has not been delivered.
#[derive(Debug)]
pub(super) struct OpenCall(Arc<Workers>);

impl Drop for OpenCall {
    fn drop(&mut self) {
        let Self(workers) = self;
        if workers.open.fetch_sub(1, Ordering::SeqCst) == 1 && workers.ending.load(Ordering::SeqCst)
        {
            workers.handles.iter().for_each(WorkerHandle::wake);
        }
    }
}

impl QueuedCall {
    /// Completes the call with an error. The call was not begun.
    fn refuse(&mut self, kind: Stopped) {
        if let Some((work, delivery)) = self.0.take() {
            let buffers = match work {
                Work::New(call) => (call.request, call.response),
                Work::Migrating(call) => call.into_buffers(),
            };
            delivery.fail(kind, Some(buffers));
        }
    }
}

impl Drop for QueuedCall {
    fn drop(&mut self) {
        self.refuse(Stopped::ShutDown);
    }
}

/// What a worker has beside its client.
pub(super) struct Worker {
    /// The index of this worker.
    index: usize,
    workers: Arc<Workers>,
    commands: Receiver<Command>,
    /// Calls that the client has.
    pending: PendingCalls,
    /// Limits that were changed, for the next client after a panic.
    caps: Caps,
    /// The worker must end.
    is_ending: bool,
    /// The latest time of the end, if there is one.
    ends_by: Option<Instant>,
}

impl Worker {
    /// The worker of the current thread.
    pub(super) fn new(index: usize, workers: Arc<Workers>, commands: Receiver<Command>) -> Self {
        if !workers.is_driven {
            let _ = workers.handles[index].thread.set(thread::current().id());
        }
        Self {
            index,
            workers,
            commands,
            pending: PendingCalls::default(),
            caps: Caps::default(),
            is_ending: false,
            ends_by: None,
        }
    }

    /// Makes the client ready for this thread.
    pub(super) fn prepare<C: HttpClient>(&self, client: &mut C) -> io::Result<()> {
        let recorder = Arc::clone(&self.workers.handles[self.index].recorder);
        let waker = client.prepare(self.index, self.workers.len(), recorder)?;
        let _ = client.set_caps(&self.caps);
        self.workers.set_waker(self.index, waker);
        Ok(())
    }

    /// Makes a client that is ready for this thread.
    pub(super) fn make<C: HttpClient>(
        &self,
        build: &impl Fn() -> Result<C, Error>,
    ) -> Result<C, Error> {
        let mut client = build()?;
        self.prepare(&mut client).map_err(Error::unsent)?;
        Ok(client)
    }

    /// Serves calls until the worker must end, and returns how many calls were cut off. A panic of foreign code (a body
    /// source, a hook, a waker of a task) leaves the client in an unknown state: its calls fail, and a new client
    /// replaces it.
    pub(super) fn run<C: HttpClient>(
        mut self,
        mut client: C,
        build: impl Fn() -> Result<C, Error>,
    ) -> usize {
        let cut_off = loop {
            let error = match catch_unwind(AssertUnwindSafe(|| self.serve(&mut client))) {
                Ok(Ok(cut_off)) => break cut_off,
                Ok(Err(error)) => Some(error),
                Err(_) => None,
            };
            // Dropping the client drops foreign values, too.
            let _ = catch_unwind(AssertUnwindSafe(|| drop(client)));
            self.fail_all(error.as_ref());
            match catch_unwind(AssertUnwindSafe(|| self.make(&build))) {
                Ok(Ok(next)) => client = next,
                _ => return self.refuse_all(),
            }
        };
        let _ = catch_unwind(AssertUnwindSafe(|| drop(client)));
        cut_off
    }

    /// Serves calls until the worker must end, and returns how many calls were cut off. Fails if the client cannot wait
    /// for events.
    fn serve<C: HttpClient>(&mut self, client: &mut C) -> io::Result<usize> {
        loop {
            self.take_commands(client);
            let timeout = match self.is_over() {
                true => return Ok(self.cut_off(client)),
                false => self.ends_by.map(|end| end - Instant::now()),
            };
            client.step(timeout)?;
            self.deliver(client);
            self.share_descriptors(client);
        }
    }

    /// As one iteration of [`serve`](Self::serve), without waiting.
    pub(super) fn turn<C: HttpClient>(&mut self, client: &mut C) -> io::Result<Turn> {
        self.take_commands(client);
        if self.is_over() {
            self.end(client);
            return Ok(Turn::Ended);
        }
        let polled = client.step(Some(Duration::ZERO))?;
        self.deliver(client);
        // There is no other worker to share descriptors with.
        client.take_shortage();
        if !polled || self.is_over() {
            return Ok(Turn::Again);
        }
        let next = client.next_step().into_iter().chain(self.ends_by).min();
        Ok(match next {
            Some(at) if at <= Instant::now() => Turn::Again,
            next => Turn::Wait(next),
        })
    }

    /// Ends a worker without a thread.
    pub(super) fn end<C: HttpClient>(&mut self, client: &mut C) {
        let cut_off = self.cut_off(client);
        self.workers.ends.note(cut_off);
    }

    /// As [`end`](Self::end), after a failure of the client.
    pub(super) fn end_failed(&mut self, error: Option<&io::Error>) {
        self.fail_all(error);
        self.workers.ends.note(0);
    }

    /// Whether the worker must end now.
    fn is_over(&self) -> bool {
        // No other worker has a call that could migrate to this one.
        let is_alone = || self.workers.open.load(Ordering::SeqCst) == 0;
        let is_done = || self.pending.is_empty() && is_alone();
        let is_late = || self.ends_by.is_some_and(|until| until <= Instant::now());
        self.is_ending && (is_done() || is_late())
    }

    /// Asks the other workers for descriptors if the client lacks one, and gives back one if another worker has asked.
    fn share_descriptors<C: HttpClient>(&self, client: &mut C) {
        if client.take_shortage() {
            self.workers.ask_for_descriptors(self.index);
        }
        let yields = &self.workers.handles[self.index].yields;
        if yields.load(Ordering::Relaxed) && yields.swap(false, Ordering::AcqRel) {
            client.yield_descriptor();
        }
    }

    /// Handles the commands that are in the queue now. Later commands wait for the next iteration, so that the calls in
    /// flight go on.
    fn take_commands<C: HttpClient>(&mut self, client: &mut C) {
        for _ in 0..self.commands.len() {
            match self.commands.try_recv() {
                Ok(Command::Begin(queued)) => self.begin(client, queued),
                Ok(Command::Cancel(slot)) => self.cancel(client, &slot),
                Ok(Command::Resume(slot)) => {
                    if let Some(id) = self.find(&slot) {
                        client.resume(id);
                    }
                }
                Ok(Command::ChunkTaken(slot)) => {
                    if let Some(id) = self.find(&slot) {
                        self.deliver_chunk(client, id);
                    }
                }
                Ok(Command::SetCaps(caps)) => {
                    self.caps = self.caps.then(&caps);
                    // A total that this client does not have was refused when it was set.
                    let _ = client.set_caps(&caps);
                }
                Ok(Command::Finish(until)) => self.finish_by(until),
                Err(_) => return,
            }
        }
    }

    /// Notes that the worker must end at that time at the latest. The earliest of several times holds.
    fn finish_by(&mut self, until: Option<Instant>) {
        self.is_ending = true;
        self.ends_by = self.ends_by.into_iter().chain(until).min();
    }

    fn begin<C: HttpClient>(&mut self, client: &mut C, mut queued: QueuedCall) {
        let Some((work, delivery)) = queued.0.take() else {
            return;
        };
        let id = match work {
            Work::New(call) => client.submit(call),
            Work::Migrating(call) => client.adopt(call),
        };
        let slot = &delivery.slot;
        slot.set_taken(self.index, id);
        let cancelled = slot.is_cancelled().then(|| Arc::clone(slot));
        self.pending.insert(id, delivery);
        if let Some(slot) = cancelled {
            self.cancel(client, &slot);
        }
    }

    fn cancel<C: HttpClient>(&mut self, client: &mut C, slot: &Arc<Slot>) {
        let Some(id) = self.find(slot) else {
            return;
        };
        client.cancel(id);
        // The client reports nothing more about a body that was cancelled. In all other cases the client completes the
        // call.
        if slot.has_body()
            && let Some(delivery) = self.pending.remove(id)
        {
            delivery.fail(ErrorKind::Cancelled, None);
        }
    }

    fn find(&self, slot: &Arc<Slot>) -> Option<CallId> {
        let id = slot.id()?;
        let delivery = self.pending.get(id)?;
        Arc::ptr_eq(&delivery.slot, slot).then_some(id)
    }

    fn deliver<C: HttpClient>(&mut self, client: &mut C) {
        while let Some(done) = client.next_done() {
            if done.streamed().is_some() {
                match self.pending.get(done.id) {
                    Some(delivery) => delivery.give_head(done),
                    None => _ = client.cancel(done.id),
                }
                continue;
            }
            if let Some(delivery) = self.pending.remove(done.id) {
                delivery.complete(done);
            }
        }
        while let Some((id, to, call)) = client.next_migrating() {
            if let Some(delivery) = self.pending.remove(id) {
                let queued = QueuedCall(Some((Work::Migrating(call), delivery)));
                self.workers.send(to, Command::Begin(queued));
            }
        }
        while let Some(id) = client.readable_body() {
            self.deliver_chunk(client, id);
        }
    }

    /// Gives the next chunk of a streamed body to its reader, unless the last chunk still waits for the reader. Bytes
    /// that come meanwhile wait in the client, which stops reading when its buffer for the body is full.
    fn deliver_chunk<C: HttpClient>(&mut self, client: &mut C, id: CallId) {
        let Some(delivery) = self.pending.get(id) else {
            return;
        };
        let slot = Arc::clone(&delivery.slot);
        let Some(mut chunk) = slot.empty_chunk() else {
            return;
        };
        match client.take_body(id, &mut chunk) {
            None => slot.put_chunk(chunk),
            Some(end) => {
                if let Some(delivery) = self.pending.remove(id) {
                    delivery.give_end(chunk, end);
                }
            }
        }
    }

    /// Cancels all calls in flight. The callers get their buffers back.
    fn cut_off<C: HttpClient>(&mut self, client: &mut C) -> usize {
        let count = self.pending.len();
        for slot in self.pending.slots() {
            self.cancel(client, &slot);
        }
        self.deliver(client);
        count
    }

    /// Fails the calls of a client that cannot wait for events because of an error, or else has panicked.
    fn fail_all(&mut self, error: Option<&io::Error>) {
        for delivery in self.pending.drain() {
            let kind: ErrorKind = match error {
                Some(error) => again(error).into(),
                None => Stopped::Panicked.into(),
            };
            self.workers.handles[self.index].recorder.failed(&kind);
            // The waker of a waiting task is foreign code.
            let fail = AssertUnwindSafe(|| delivery.fail(kind, None));
            let _ = catch_unwind(fail);
        }
    }

    /// Refuses all calls until the worker must end. The worker has no client any more.
    fn refuse_all(mut self) -> usize {
        while !self.is_ending {
            match self.commands.recv() {
                Ok(Command::Begin(mut queued)) => {
                    // If the waker of a task panics, the call has completed before.
                    let refuse = AssertUnwindSafe(|| queued.refuse(Stopped::NoClient));
                    let _ = catch_unwind(refuse);
                }
                Ok(Command::Finish(until)) => self.finish_by(until),
                Ok(_) => {}
                Err(_) => break,
            }
        }
        0
    }
}
