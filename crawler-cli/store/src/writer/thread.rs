//! The thread that writes, and handles to it.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, select};

use super::collect::Collect;
use super::committer::{Committer, Finished};
use super::inline::tell;
use super::op::closed;
use super::{Engine, Op, Spool, StoreHandle, WriterFigures, WriterState};
use crate::{Late, StoreError};
use plain::random::{Random, fresh_seed};

/// How a writer groups operations.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct WriterSettings {
    /// A group with so many rows is committed at once: 512.
    pub group: usize,
    /// A group waits so long for further operations: 20 ms.
    pub wait: Duration,
    /// So many operations wait at most; who sends one more has to wait: 4,096.
    pub queue: usize,
    /// So many operations are kept at most while the store cannot be written; with that many, no further ones are taken
    /// from the queue: 65,536.
    pub keep: usize,
}

impl Default for WriterSettings {
    fn default() -> Self {
        Self {
            group: 512,
            wait: Duration::from_millis(20),
            queue: 4096,
            keep: 65_536,
        }
    }
}

/// A handle to a thread that owns an engine and writes in groups. Clones are handles to the same thread. The thread ends
/// when it is closed, or when no handle is left and all operations were run.
///
/// ```
/// use std::time::Duration;
///
/// use store::sqlite::Sqlite;
/// use store::{NewJob, StoreHandle, Writer, WriterSettings};
/// use jiff::Timestamp;
///
/// let writer = Writer::start(Sqlite::temporary()?, WriterSettings::default())?;
/// let now = Timestamp::UNIX_EPOCH;
/// let other = writer.clone();
/// let thread = std::thread::spawn(move || {
///     other.call(move |engine| engine.enqueue(&[NewJob::new("mail", "hello")], now))
/// });
/// let enqueued = thread.join().expect("no panic")?;
/// assert_eq!(enqueued.len(), 1);
/// writer.close(Duration::from_secs(1))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Writer {
    ops: Sender<Sent>,
    shared: Arc<Shared>,
}

/// What the thread and the handles share.
struct Shared {
    state: Mutex<WriterState>,
    /// Operations that were sent and are not done.
    backlog: AtomicUsize,
    figures: Arc<WriterFigures>,
    /// Tells the thread to end, after so long at the latest.
    stop: Sender<Duration>,
    thread: Mutex<Option<JoinHandle<Result<(), StoreError>>>>,
}

impl Writer {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system has no further thread.
    pub fn start(engine: impl Engine + 'static, settings: WriterSettings) -> io::Result<Self> {
        Self::start_with(engine, settings, None)
    }

    /// Starts the thread with a file for what cannot be stored, and stores first what other processes have left.
    ///
    /// # Errors
    /// The system has no further thread.
    pub fn start_with(
        engine: impl Engine + 'static,
        settings: WriterSettings,
        spool: Option<(Spool, Vec<Late>)>,
    ) -> io::Result<Self> {
        let figures = Arc::<WriterFigures>::default();
        let mut committer = Committer::new(engine, Arc::clone(&figures));
        if let Some((spool, left)) = spool {
            committer = committer.with_spool(spool, left);
        }
        let retry = (committer.kept() > 0).then(Retry::now);
        let (ops, received) = bounded(settings.queue.max(1));
        let (stop, stopped) = bounded(1);
        let shared = Arc::new(Shared {
            state: Mutex::new(WriterState::Ok),
            backlog: AtomicUsize::new(0),
            figures,
            stop,
            thread: Mutex::new(None),
        });
        let thread = Thread {
            committer,
            settings,
            ops: received,
            stopped,
            shared: Arc::downgrade(&shared),
            retry,
            random: Random::new(fresh_seed()),
        };
        let thread = thread::Builder::new()
            .name("store".to_owned())
            .spawn(move || thread.run())?;
        *lock(&shared.thread) = Some(thread);
        Ok(Self { ops, shared })
    }

    /// What the writer counts.
    pub fn figures(&self) -> Arc<WriterFigures> {
        Arc::clone(&self.shared.figures)
    }

    /// Runs the operations that were sent before, and ends the thread; operations that are sent later fail. If the
    /// store cannot be written, the kept operations are tried until `patience` is over, and fail then.
    ///
    /// # Errors
    /// Operations that must not be lost could not be stored, for this reason.
    pub fn close(&self, patience: Duration) -> Result<(), StoreError> {
        let thread = lock(&self.shared.thread).take();
        // The thread may have ended already, or have been told.
        let _ = self.shared.stop.try_send(patience);
        let ended = thread.map_or(Ok(Ok(())), JoinHandle::join);
        *lock(&self.shared.state) = WriterState::Closed;
        // The thread catches the panics of operations.
        ended.unwrap_or_else(|_| Err(closed()))
    }
}

impl StoreHandle for Writer {
    fn send(&self, op: Box<dyn Op>) {
        self.shared.backlog.fetch_add(1, Ordering::Relaxed);
        let sent = Sent {
            op: Some(op),
            shared: Arc::clone(&self.shared),
        };
        // If the thread has ended, the operation comes back and fails when it is dropped.
        let _ = self.ops.send(sent);
    }

    fn state(&self) -> WriterState {
        lock(&self.shared.state).clone()
    }

    fn backlog(&self) -> usize {
        self.shared.backlog.load(Ordering::Relaxed)
    }
}

/// An operation on its way to the thread. If the thread has ended, the operation fails when this is dropped.
struct Sent {
    op: Option<Box<dyn Op>>,
    shared: Arc<Shared>,
}

impl Drop for Sent {
    fn drop(&mut self) {
        if let Some(op) = self.op.take() {
            self.shared.backlog.fetch_sub(1, Ordering::Relaxed);
            op.done(Err(closed()));
        }
    }
}

/// The thread that owns the engine.
struct Thread<E> {
    committer: Committer<E>,
    settings: WriterSettings,
    ops: Receiver<Sent>,
    stopped: Receiver<Duration>,
    /// Not more: the thread ends when no handle is left.
    shared: Weak<Shared>,
    /// Set while operations are kept.
    retry: Option<Retry>,
    /// For the jitter of retries: other processes try as well.
    random: Random,
}

/// When kept operations are run again.
#[derive(Clone, Copy)]
struct Retry {
    at: Instant,
    pause: Duration,
}

impl Retry {
    fn now() -> Self {
        Self {
            at: Instant::now(),
            pause: PAUSES[0],
        }
    }
}

/// What the thread does next.
enum Next {
    Group(Box<dyn Op>),
    Retry,
    /// Ends, after so long at the latest.
    Stop(Duration),
}

/// The pauses before kept operations are run again.
const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(5)];
/// How long kept operations are tried when no handle is left.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longer than any pause.
const IDLE: Duration = Duration::from_secs(3600);

impl<E: Engine> Thread<E> {
    fn run(mut self) -> Result<(), StoreError> {
        loop {
            match self.next() {
                Next::Group(first) => self.group(first),
                Next::Retry => self.retry(),
                Next::Stop(patience) => return self.end(patience),
            }
        }
    }

    fn next(&self) -> Next {
        let pause = self.retry.map_or(IDLE, |retry| {
            retry.at.saturating_duration_since(Instant::now())
        });
        if pause.is_zero() {
            return Next::Retry;
        }
        if self.committer.kept() >= self.settings.keep {
            return match self.stopped.recv_timeout(pause) {
                Ok(patience) => Next::Stop(patience),
                Err(RecvTimeoutError::Timeout) => Next::Retry,
                Err(RecvTimeoutError::Disconnected) => Next::Stop(PATIENCE),
            };
        }
        select! {
            recv(self.ops) -> sent => match sent.ok().and_then(|mut sent| sent.op.take()) {
                Some(op) => Next::Group(op),
                None => Next::Stop(PATIENCE),
            },
            recv(self.stopped) -> patience => Next::Stop(patience.unwrap_or(PATIENCE)),
            default(pause) => Next::Retry,
        }
    }

    /// Collects a group, and commits it.
    fn group(&mut self, first: Box<dyn Op>) {
        let mut collect = Collect::begin(Instant::now(), self.settings.wait, self.settings.group);
        collect.join(first.rows(), first.is_urgent());
        let mut ops = vec![first];
        while !collect.is_full() {
            let sent = match self.ops.try_recv() {
                Ok(sent) => Some(sent),
                Err(_) => collect
                    .wait(Instant::now())
                    .and_then(|wait| self.ops.recv_timeout(wait).ok()),
            };
            let Some(op) = sent.and_then(|mut sent| sent.op.take()) else {
                break;
            };
            collect.join(op.rows(), op.is_urgent());
            ops.push(op);
        }
        let finished = self.committer.commit(ops);
        self.tell(finished);
    }

    fn retry(&mut self) {
        let finished = self.committer.retry(self.settings.group);
        self.tell(finished);
    }

    fn tell(&mut self, finished: Vec<Finished>) {
        self.retry = match self.committer.kept() {
            0 => None,
            _ => Some(self.next_retry()),
        };
        if let Some(shared) = self.shared.upgrade() {
            shared.backlog.fetch_sub(finished.len(), Ordering::Relaxed);
            lock(&shared.state).clone_from(self.committer.state());
        }
        tell(finished);
    }

    /// The time of the next retry: the one that is planned, or a later one if that has come.
    fn next_retry(&mut self) -> Retry {
        let now = Instant::now();
        let [first, longest] = PAUSES;
        let pause = match self.retry {
            Some(retry) if retry.at > now => return retry,
            Some(retry) => (retry.pause * 2).min(longest),
            None => first,
        };
        // Half of the pause, and a random part of the other half.
        let part = self.random.next_number() as f64 / u64::MAX as f64;
        let at = now + (pause / 2).mul_f64(1.0 + part);
        Retry { at, pause }
    }

    fn end(mut self, patience: Duration) -> Result<(), StoreError> {
        while let Some(op) = self.ops.try_recv().ok().and_then(|mut sent| sent.op.take()) {
            self.group(op);
        }
        let end = Instant::now() + patience;
        while let Some(retry) = self.retry {
            let now = Instant::now();
            if now >= end {
                break;
            }
            thread::sleep(retry.at.min(end).saturating_duration_since(now));
            self.retry();
        }
        let mut lost = Ok(());
        for (op, result) in self.committer.give_up() {
            if let (Ok(()), Err(error)) = (&lost, &result) {
                lost = Err(error.duplicate());
            }
            if let Some(shared) = self.shared.upgrade() {
                shared.backlog.fetch_sub(1, Ordering::Relaxed);
            }
            op.done(result);
        }
        lost
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The values are replaced as a whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
