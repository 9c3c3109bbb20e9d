//! The keys of requests that are under way, so that a request that comes again meanwhile is told so.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The keys of requests that are under way: no more than connections.
pub(super) type Keys = Mutex<HashSet<String>>;

/// A request with a key, until this is dropped.
#[derive(Debug)]
pub(super) struct UnderWay {
    keys: Arc<Keys>,
    key: String,
}

impl UnderWay {
    /// `None`: another one with this key is under way.
    pub(super) fn begin(keys: &Arc<Keys>, key: String) -> Option<Self> {
        let is_first = lock(keys).insert(key.clone());
        // One that is not the first must not be made: its end would be taken for that of the first.
        is_first.then(|| Self {
            keys: Arc::clone(keys),
            key,
        })
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        lock(&self.keys).remove(&self.key);
    }
}

fn lock(keys: &Keys) -> MutexGuard<'_, HashSet<String>> {
    keys.lock().unwrap_or_else(PoisonError::into_inner)
}
