//! Runs operations at once, on the thread of the caller.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::committer::{Committer, Finished};
use super::{Engine, Op, StoreHandle, WriterFigures, WriterState};

/// Runs each operation at once, in a transaction of its own, on the thread of the caller: for tests, and for commands
/// that open a store for a moment. Clones share the engine. Operations that must not be lost are kept while the store
/// cannot be written, and run again before the next operation.
///
/// ```
/// use store::sqlite::Sqlite;
/// use store::{Inline, NewJob, StoreHandle};
/// use jiff::Timestamp;
///
/// let store = Inline::new(Sqlite::temporary()?);
/// let now = Timestamp::UNIX_EPOCH;
/// store.call(move |engine| engine.enqueue(&[NewJob::new("mail", "hello")], now))?;
/// assert_eq!(store.read(|engine| engine.job_counts("mail"))?.waiting, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Inline<E> {
    committer: Arc<Mutex<Committer<E>>>,
}

impl<E: Engine> Inline<E> {
    /// A handle to this engine.
    pub fn new(engine: E) -> Self {
        let committer = Committer::new(engine, Arc::new(WriterFigures::default()));
        Self {
            committer: Arc::new(Mutex::new(committer)),
        }
    }

    /// Uses the engine itself. The closure must send no operation.
    pub fn with<T>(&self, run: impl FnOnce(&mut E) -> T) -> T {
        run(self.lock().engine())
    }

    /// Runs kept operations again.
    pub fn retry(&self) {
        let finished = self.lock().retry(usize::MAX);
        tell(finished);
    }

    fn lock(&self) -> MutexGuard<'_, Committer<E>> {
        // After a panic the group was taken back.
        self.committer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl<E: Engine> StoreHandle for Inline<E> {
    fn send(&self, op: Box<dyn Op>) {
        self.retry();
        let finished = self.lock().commit(vec![op]);
        tell(finished);
    }

    fn state(&self) -> WriterState {
        self.lock().state().clone()
    }

    fn backlog(&self) -> usize {
        self.lock().kept()
    }
}

impl<E> Clone for Inline<E> {
    fn clone(&self) -> Self {
        Self {
            committer: Arc::clone(&self.committer),
        }
    }
}

/// Tells operations that they are done, while nothing is locked.
pub(super) fn tell(finished: Vec<Finished>) {
    for (op, result) in finished {
        op.done(result);
    }
}
