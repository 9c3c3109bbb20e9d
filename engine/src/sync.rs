//! Locks, atomics and threads of the standard library. In unit tests with the feature `models` they are shuttle's,
//! which runs the same code in very many orders of its threads. Shuttle's types work only inside a model, so only the
//! models can run in such a build (`shared/models_tests.rs`).

use std::sync::PoisonError;

#[cfg(all(test, feature = "models"))]
pub(crate) use shuttle::{
    sync::{Condvar, Mutex, MutexGuard, RwLock, atomic},
    thread,
};
#[cfg(not(all(test, feature = "models")))]
pub(crate) use std::{
    sync::{Condvar, Mutex, MutexGuard, RwLock, atomic},
    thread,
};

/// Takes a lock. What the locks of this crate guard is whole after a panic, too: no foreign code changes it, and each
/// change is complete before code that can panic.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
