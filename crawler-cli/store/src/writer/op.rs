//! Operations, and handles that run them.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crossbeam_channel::Sender;

use super::Engine;
use crate::{Late, StoreError, StoreErrorKind};

/// What happens to an operation while the store cannot be written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Nature {
    /// It only reads, and is run.
    Read,
    /// It fails with the error.
    Change,
    /// It is kept and run again, until it is stored or fails for a reason of its own.
    Must,
}

/// Something that is done to a store.
pub trait Op: Send {
    /// Does it. May be called again after the changes of the call before were taken back.
    ///
    /// # Errors
    /// What the store says. Changes that were made are taken back.
    fn run(&mut self, engine: &mut dyn Engine) -> Result<(), StoreError>;

    /// The operation is committed, or failed and has changed nothing. Called on the thread of the writer: do no more than to
    /// pass the result on, and send no operation from here that the thread would wait for.
    fn done(self: Box<Self>, result: Result<(), StoreError>);

    /// What happens to the operation while the store cannot be written.
    fn nature(&self) -> Nature {
        Nature::Change
    }

    /// What is kept in a file while the store cannot be written, so that it survives the process. `None`: nothing.
    fn late(&self) -> Option<Late> {
        None
    }

    /// About how many rows it writes: a group ends when it has enough of them.
    fn rows(&self) -> usize {
        1
    }

    /// Whether somebody waits for the result: the group then ends as soon as no further operation waits.
    fn is_urgent(&self) -> bool {
        false
    }
}

/// Whether a store can be written.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum WriterState {
    /// The last changes were stored.
    Ok,
    /// There is no space left. Operations that must not be lost are kept.
    Full,
    /// The store cannot be written for this reason. Operations that must not be lost are kept.
    Failing(String),
    /// The writer has ended.
    Closed,
}

/// Runs operations on a store.
pub trait StoreHandle {
    /// Runs an operation after all that were sent before; at once, or on another thread. Waits while too many operations
    /// wait. If the writer has ended, the operation fails.
    fn send(&self, op: Box<dyn Op>);

    /// Whether the store can be written.
    fn state(&self) -> WriterState;

    /// How many operations wait, with those that are kept.
    fn backlog(&self) -> usize;

    /// Runs a closure that may change the store, waits until its changes are committed, and returns its result. The
    /// closure may run more than once. It must not be called from [`Op::run`] or [`Op::done`].
    ///
    /// # Errors
    /// What the closure returns, or what the store says. Nothing of the closure is stored then.
    fn call<T, F>(&self, run: F) -> Result<T, StoreError>
    where
        Self: Sized,
        T: Send + 'static,
        F: FnMut(&mut dyn Engine) -> Result<T, StoreError> + Send + 'static,
    {
        call(self, Nature::Change, run)
    }

    /// Runs a closure that only reads; also while the store cannot be written. See [`StoreHandle::call`].
    ///
    /// # Errors
    /// What the closure returns, or what the store says.
    fn read<T, F>(&self, run: F) -> Result<T, StoreError>
    where
        Self: Sized,
        T: Send + 'static,
        F: FnMut(&mut dyn Engine) -> Result<T, StoreError> + Send + 'static,
    {
        call(self, Nature::Read, run)
    }

    /// Like [`StoreHandle::call`] for changes that must not be lost: waits while the store cannot be written.
    ///
    /// # Errors
    /// What the closure returns, if the store can be written.
    fn insist<T, F>(&self, run: F) -> Result<T, StoreError>
    where
        Self: Sized,
        T: Send + 'static,
        F: FnMut(&mut dyn Engine) -> Result<T, StoreError> + Send + 'static,
    {
        call(self, Nature::Must, run)
    }
}

fn call<H, T, F>(handle: &H, nature: Nature, run: F) -> Result<T, StoreError>
where
    H: StoreHandle,
    T: Send + 'static,
    F: FnMut(&mut dyn Engine) -> Result<T, StoreError> + Send + 'static,
{
    // One type of channel for all results: a channel is compiled for each type that it carries.
    let (done, is_done) = crossbeam_channel::bounded::<()>(0);
    let result = Arc::new(Mutex::new(None));
    handle.send(Box::new(Call {
        nature,
        run,
        value: None,
        result: Arc::clone(&result),
        _done: done,
    }));
    // An operation that is dropped without a result was on a thread that has ended.
    let _ = is_done.recv();
    let result = locked(&result).take();
    result.unwrap_or_else(|| Err(closed()))
}

/// A result, which is written whole.
fn locked<T>(result: &Mutex<T>) -> MutexGuard<'_, T> {
    result.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The error of an operation that was not run, because the writer has ended.
pub(super) fn closed() -> StoreError {
    StoreError::new(Path::new(""), StoreErrorKind::Closed)
}

/// A closure whose caller waits.
struct Call<T, F> {
    nature: Nature,
    run: F,
    value: Option<T>,
    result: Arc<Mutex<Option<Result<T, StoreError>>>>,
    /// Nothing is sent: the caller waits until it is dropped.
    _done: Sender<()>,
}

impl<T, F> Op for Call<T, F>
where
    T: Send,
    F: FnMut(&mut dyn Engine) -> Result<T, StoreError> + Send,
{
    fn run(&mut self, engine: &mut dyn Engine) -> Result<(), StoreError> {
        self.value = Some((self.run)(engine)?);
        Ok(())
    }

    fn done(mut self: Box<Self>, result: Result<(), StoreError>) {
        let given = result.and_then(|()| self.value.take().ok_or_else(closed));
        *locked(&self.result) = Some(given);
    }

    fn nature(&self) -> Nature {
        self.nature
    }

    fn is_urgent(&self) -> bool {
        true
    }
}
