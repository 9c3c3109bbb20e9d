//! What threads meet on: the standard library's locks, atomics and threads. In unit tests with the feature `models` they
//! are those of shuttle, which runs the same code in very many orders; these exist inside a model alone, so that only
//! the models can run then (`client/shared/models.rs`).

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
