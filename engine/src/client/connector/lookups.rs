//! The names that openings wait for. When the last opening that waits for a name has ended, its lookup is cancelled.

use std::collections::HashMap;
use std::sync::Arc;

use crate::client::names::Names;
use crate::net::Waker;
use crate::policy::Found;
use crate::reactor::OpeningKey;
use crate::time::Time;

/// Names, and the openings that wait for them.
#[derive(Debug)]
pub(super) struct Lookups {
    names: Names,
    waker: Waker,
    /// By the name in lower case. A last dot is part of the key, because it makes another DNS question.
    waiting: HashMap<Arc<str>, Waiting>,
}

/// The openings that wait for a name.
#[derive(Debug, Default)]
struct Waiting {
    /// In the order in which they came. Some may have ended.
    openings: Vec<OpeningKey>,
    /// How many of them have not ended. Not zero.
    count: usize,
}

impl Lookups {
    pub(super) fn new(names: Names, waker: Waker) -> Self {
        Self {
            names,
            waker,
            waiting: HashMap::new(),
        }
    }

    pub(super) fn names(&self) -> &Names {
        &self.names
    }

    pub(super) fn names_mut(&mut self) -> &mut Names {
        &mut self.names
    }

    /// The addresses of a name. If a lookup is pending, the opening must [`wait`](Self::wait).
    pub(super) fn lookup(&mut self, now: Time, name: &str, port: u16) -> Found {
        self.names.lookup(now, name, port, &self.waker)
    }

    /// An opening waits for a name. `is_open` tells whether an opening has not ended. Returns the name under which the
    /// opening [leaves](Self::leave).
    pub(super) fn wait(
        &mut self,
        name: &str,
        key: OpeningKey,
        is_open: impl Fn(OpeningKey) -> bool,
    ) -> Arc<str> {
        let name: Arc<str> = name.to_ascii_lowercase().into();
        let waiting = self.waiting.entry(name.clone()).or_default();
        if waiting.openings.len() == waiting.openings.capacity() {
            // Openings come and go while the lookup is in flight.
            waiting.openings.retain(|waits| is_open(*waits));
        }
        waiting.openings.push(key);
        waiting.count += 1;
        name
    }

    /// An opening that waited for this name has ended.
    pub(super) fn leave(&mut self, name: &str) {
        let Some(waiting) = self.waiting.get_mut(name) else {
            return;
        };
        waiting.count -= 1;
        if waiting.count == 0 {
            self.waiting.remove(name);
            self.names.cancel(name);
        }
    }

    /// The next answer of the resolver, and the openings that waited for it. Some of them may have ended. Without any
    /// if the answer refreshed a name.
    pub(super) fn poll(&mut self, now: Time) -> Option<(Vec<OpeningKey>, Found)> {
        let (name, found) = self.names.poll(now)?;
        let waiting = self.waiting.remove(&*name).unwrap_or_default();
        Some((waiting.openings, found))
    }
}
