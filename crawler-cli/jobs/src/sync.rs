//! Locks, atomics and threads of the standard library. In unit tests with the feature `models` they are shuttle's,
//! which runs the same code in very many orders of its threads. Shuttle's types work only inside a model, so only the
//! models can run in such a build (`jobs/models.rs`).

#[cfg(all(test, feature = "models"))]
pub use shuttle::{
    sync::{Condvar, Mutex, MutexGuard, atomic},
    thread,
};
#[cfg(not(all(test, feature = "models")))]
pub use std::{
    sync::{Condvar, Mutex, MutexGuard, atomic},
    thread,
};

use std::sync::PoisonError;

/// Locks, also after a thread panicked while it held the lock: the callers leave the data whole before they call what
/// may panic.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
