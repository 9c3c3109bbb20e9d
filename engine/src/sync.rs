//! Locks, atomics and threads of the standard library. In unit tests with the feature `models` they are shuttle's,
//! which runs the same code in very many orders of its threads. Shuttle's types work only inside a model, so only the
//! models can run in such a build (`shared/models_tests.rs`).

#[cfg(all(test, feature = "models"))]
pub(crate) use shuttle::{
    sync::{Mutex, MutexGuard, RwLock, atomic},
    thread,
};
#[cfg(not(all(test, feature = "models")))]
pub(crate) use std::{
    sync::{Mutex, MutexGuard, RwLock, atomic},
    thread,
};
