//! The configuration that holds now.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;

use super::Loaded;

/// The configuration of a running service, and how it was read again last.
#[derive(Debug)]
pub struct Current(Mutex<(Arc<Loaded>, Option<Reload>)>);

/// How the configuration was read again.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Reload {
    /// When.
    pub at: Timestamp,
    /// The keys that have changed, or why nothing was applied.
    pub result: Result<Vec<String>, String>,
}

impl Current {
    /// The configuration of the start.
    pub fn new(loaded: Loaded) -> Self {
        Self(Mutex::new((Arc::new(loaded), None)))
    }

    /// What holds now.
    pub fn get(&self) -> Arc<Loaded> {
        Arc::clone(&self.lock().0)
    }

    /// From now on this holds.
    pub fn set(&self, loaded: Loaded) {
        self.lock().0 = Arc::new(loaded);
    }

    /// How it was read again last; `None`: not since the start.
    pub fn reload(&self) -> Option<Reload> {
        self.lock().1.clone()
    }

    /// It was read again.
    pub fn note(&self, reload: Reload) {
        self.lock().1 = Some(reload);
    }

    fn lock(&self) -> MutexGuard<'_, (Arc<Loaded>, Option<Reload>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
