//! A client's thread: it takes commands, drives the client, and hands out completions.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Instant;

use crossbeam_channel::{Receiver, Sender};

use super::Drive;
use super::slot::{Delivery, Slot};
use crate::client::stats::Recorder;
use crate::client::{Call, CallId};
use crate::error::{Error, ErrorKind, Stopped};
use crate::net::Waker;
use crate::proto::{Request, Response};
use crate::reactor::{Key, Slab};

/// The way to a client's thread.
#[derive(Debug)]
pub(super) struct Port {
    commands: Sender<Command>,
    /// Of the thread's present client.
    waker: RwLock<Waker>,
    /// Of the thread's calls, over all its clients.
    recorder: Arc<Recorder>,
}

/// What a client's thread is asked to do.
#[derive(Debug)]
pub(super) enum Command {
    Begin(Order),
    Cancel(Arc<Slot>),
    Resume(Arc<Slot>),
    /// To end when nothing is in flight any more, at that time at the latest.
    Finish(Option<Instant>),
}

/// A call in the queue. Dropped there, it completes like any other, and gives its buffers back.
#[derive(Debug)]
pub(super) struct Order(Option<(Call, Delivery)>);

impl Port {
    pub(super) fn new(commands: Sender<Command>, waker: Waker, recorder: Arc<Recorder>) -> Self {
        Self {
            commands,
            waker: RwLock::new(waker),
            recorder,
        }
    }

    pub(super) fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// Leaves a command for the thread and wakes it if it sleeps (the network's waker knows). The command is in the
    /// queue before the wake, and the thread empties the queue after each poll: nothing is left lying.
    ///
    /// If there is no thread any more, the command is dropped, which completes its call.
    pub(super) fn send(&self, command: Command) {
        if self.commands.send(command).is_ok() {
            let waker = self.waker.read().unwrap_or_else(PoisonError::into_inner);
            waker.wake();
        }
    }

    /// Wakes go to that client from now on. A command whose wake went to the old one is found by the thread, which
    /// looks into the queue before it sleeps for the first time with the new one.
    fn set_waker(&self, waker: Waker) {
        *self.waker.write().unwrap_or_else(PoisonError::into_inner) = waker;
    }
}

impl Order {
    pub(super) fn new(call: Call, delivery: Delivery) -> Self {
        Self(Some((call, delivery)))
    }

    /// Completes the call without having begun it.
    pub(super) fn refuse(mut self, kind: impl Into<ErrorKind>) {
        if let Some((call, delivery)) = self.0.take() {
            delivery.fail(kind, Some(buffers(call)));
        }
    }
}

impl Drop for Order {
    fn drop(&mut self) {
        if let Some((call, delivery)) = self.0.take() {
            delivery.fail(Stopped::ShutDown, Some(buffers(call)));
        }
    }
}

fn buffers(call: Call) -> (Request, Response) {
    (call.request, call.response)
}

/// What the thread works with, beside its client.
pub(super) struct Desk {
    commands: Receiver<Command>,
    /// Calls that the client has, by the tag under which it has them.
    pending: Slab<Pending>,
    /// Set once it is to end.
    finish: Option<Finish>,
    recorder: Arc<Recorder>,
}

struct Pending {
    id: CallId,
    delivery: Delivery,
}

#[derive(Clone, Copy)]
struct Finish {
    until: Option<Instant>,
}

impl Desk {
    pub(super) fn new(commands: Receiver<Command>, recorder: Arc<Recorder>) -> Self {
        Self {
            commands,
            recorder,
            pending: Slab::new(),
            finish: None,
        }
    }

    /// The thread's life; returns how many calls it cut off. A panic of foreign code (a body source, a hook, a task's waker) leaves the client in a state
    /// that nobody knows: its calls fail, and a new client takes its place.
    pub(super) fn run<C: Drive>(
        mut self,
        mut client: C,
        port: &Port,
        build: impl Fn() -> Result<C, Error>,
    ) -> usize {
        let cut_off = loop {
            let cause = match catch_unwind(AssertUnwindSafe(|| self.serve(&mut client))) {
                Ok(Ok(cut_off)) => break cut_off,
                Ok(Err(error)) => Cause::Io(error),
                Err(_) => Cause::Panic,
            };
            // What drops with the client is foreign code too.
            let _ = catch_unwind(AssertUnwindSafe(|| drop(client)));
            self.fail_all(&cause);
            let anew = catch_unwind(AssertUnwindSafe(|| {
                let mut client = build().ok()?;
                let waker = client.waker().ok()?;
                Some((client, waker))
            }));
            match anew {
                Ok(Some((next, waker))) => {
                    client = next;
                    port.set_waker(waker);
                }
                _ => return self.refuse_all(),
            }
        };
        let _ = catch_unwind(AssertUnwindSafe(|| drop(client)));
        cut_off
    }

    /// Until it is to end, or something goes wrong with the client itself. Returns how many calls it cut off.
    fn serve<C: Drive>(&mut self, client: &mut C) -> io::Result<usize> {
        loop {
            self.take_commands(client);
            let mut timeout = None;
            if let Some(Finish { until }) = self.finish {
                let now = Instant::now();
                if self.pending.len() == 0 || until.is_some_and(|until| until <= now) {
                    return Ok(self.cut_off(client));
                }
                timeout = until.map(|until| until - now);
            }
            client.step(timeout)?;
            self.deliver(client);
        }
    }

    /// What is in the queue now; what comes meanwhile is for the next turn, so that the calls in flight go on.
    fn take_commands<C: Drive>(&mut self, client: &mut C) {
        for _ in 0..self.commands.len() {
            match self.commands.try_recv() {
                Ok(Command::Begin(order)) => self.begin(client, order),
                Ok(Command::Cancel(slot)) => {
                    if let Some(id) = self.find(&slot) {
                        client.cancel(id);
                    }
                }
                Ok(Command::Resume(slot)) => {
                    if let Some(id) = self.find(&slot) {
                        client.resume(id);
                    }
                }
                Ok(Command::Finish(until)) => self.finish_by(until),
                Err(_) => return,
            }
        }
    }

    /// The earliest of several ends holds.
    fn finish_by(&mut self, until: Option<Instant>) {
        let before = self.finish.and_then(|finish| finish.until);
        self.finish = Some(Finish {
            until: before.into_iter().chain(until).min(),
        });
    }

    fn begin<C: Drive>(&mut self, client: &mut C, mut order: Order) {
        if let Some((call, delivery)) = order.0.take() {
            let key = self.pending.next_key();
            delivery.slot().set_key(key);
            let id = client.submit(call.tag(key.to_bits()));
            self.pending.insert(Pending { id, delivery });
        }
    }

    fn find(&self, slot: &Arc<Slot>) -> Option<CallId> {
        let pending = self.pending.get(slot.key())?;
        Arc::ptr_eq(pending.delivery.slot(), slot).then_some(pending.id)
    }

    fn deliver<C: Drive>(&mut self, client: &mut C) {
        while let Some(done) = client.next_done() {
            // There is no way to hand a connection over to another thread.
            client.discard_stream(done.id);
            if let Some(pending) = self.pending.remove(Key::from_bits(done.tag)) {
                self.recorder
                    .record(&done.outcome, &done.response, &done.report);
                pending.delivery.complete(done);
            }
        }
    }

    /// Ends everything in flight; the calls get their buffers back.
    fn cut_off<C: Drive>(&mut self, client: &mut C) -> usize {
        let count = self.pending.len();
        for pending in self.pending.iter() {
            client.cancel(pending.id);
        }
        self.deliver(client);
        count
    }

    fn fail_all(&mut self, cause: &Cause) {
        for pending in self.pending.drain() {
            self.recorder.failed(&cause.kind());
            // Waking whoever waits is foreign code.
            let _ = catch_unwind(AssertUnwindSafe(|| {
                pending.delivery.fail(cause.kind(), None);
            }));
        }
    }

    /// Without a client, until it is to end.
    fn refuse_all(mut self) -> usize {
        while self.finish.is_none() {
            match self.commands.recv() {
                Ok(Command::Begin(order)) => {
                    let refuse = AssertUnwindSafe(|| order.refuse(Stopped::NoClient));
                    let _ = catch_unwind(refuse);
                }
                Ok(Command::Finish(until)) => self.finish_by(until),
                Ok(Command::Cancel(_) | Command::Resume(_)) => {}
                Err(_) => break,
            }
        }
        0
    }
}

/// Why a client ended before its time.
enum Cause {
    Panic,
    /// It cannot wait for events.
    Io(io::Error),
}

impl Cause {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Panic => Stopped::Panicked.into(),
            Self::Io(error) => match error.raw_os_error() {
                Some(code) => io::Error::from_raw_os_error(code).into(),
                None => io::Error::from(error.kind()).into(),
            },
        }
    }
}
