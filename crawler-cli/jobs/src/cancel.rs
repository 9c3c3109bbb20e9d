//! The wish that work ends early: set by one thread, seen by another, also while it waits.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::sync::atomic::{AtomicU8, Ordering};
use super::sync::{Mutex, lock, thread};

/// Tells a piece of work that its result is no longer wanted. Clones are the same wish.
///
/// Work that takes long asks [`is_set`](Self::is_set) between its steps, and pauses with [`wait`](Self::wait) in place
/// of [`std::thread::sleep`].
///
/// ```
/// use std::time::Duration;
/// use jobs::{Cancel, CancelReason};
///
/// let cancel = Cancel::new();
/// assert!(!cancel.wait(Duration::from_millis(1)), "nobody set it");
///
/// let same = cancel.clone();
/// std::thread::spawn(move || same.set(CancelReason::Shutdown));
/// assert!(cancel.wait(Duration::from_secs(3600)), "the wait ends at once");
/// assert_eq!(cancel.reason(), Some(CancelReason::Shutdown));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<Inner>);

/// Why a result is no longer wanted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CancelReason {
    /// The time limit is over.
    TimeLimit,
    /// The program, or the part that runs the work, ends.
    Shutdown,
}

#[derive(Debug, Default)]
struct Inner {
    /// 0: not set; else a [`CancelReason`].
    reason: AtomicU8,
    /// The threads that wait for the wish.
    waiting: Mutex<Vec<thread::Thread>>,
}

impl Cancel {
    /// A wish that is not set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the wish and wakes the threads that wait for it. The first reason stays.
    pub fn set(&self, reason: CancelReason) {
        let bits = match reason {
            CancelReason::TimeLimit => TIME_LIMIT,
            CancelReason::Shutdown => SHUTDOWN,
        };
        let waiting = lock(&self.0.waiting);
        let order = Ordering::SeqCst;
        let _ = self.0.reason.compare_exchange(0, bits, order, order);
        for thread in waiting.iter() {
            thread.unpark();
        }
    }

    /// Whether the wish is set.
    pub fn is_set(&self) -> bool {
        self.0.reason.load(Ordering::SeqCst) != 0
    }

    /// Why; `None` if the wish is not set.
    pub fn reason(&self) -> Option<CancelReason> {
        match self.0.reason.load(Ordering::SeqCst) {
            TIME_LIMIT => Some(CancelReason::TimeLimit),
            SHUTDOWN => Some(CancelReason::Shutdown),
            _ => None,
        }
    }

    /// Waits so long, or until the wish is set. Returns whether it is set.
    pub fn wait(&self, longest: Duration) -> bool {
        let end = Instant::now().checked_add(longest);
        let _watch = self.watch();
        loop {
            if self.is_set() {
                return true;
            }
            match end.map(|end| end.saturating_duration_since(Instant::now())) {
                None => thread::park(),
                Some(Duration::ZERO) => return false,
                Some(rest) => thread::park_timeout(rest),
            }
        }
    }

    /// Until the value is dropped, [`set`](Self::set) wakes this thread if it is parked.
    pub fn watch(&self) -> Watch<'_> {
        let thread = thread::current();
        lock(&self.0.waiting).push(thread);
        Watch(self)
    }
}

/// A thread that [`Cancel::set`] wakes.
pub struct Watch<'a>(&'a Cancel);

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        let own = thread::current().id();
        let mut waiting = lock(&self.0.0.waiting);
        if let Some(at) = waiting.iter().position(|thread| thread.id() == own) {
            waiting.swap_remove(at);
        }
    }
}

const TIME_LIMIT: u8 = 1;
const SHUTDOWN: u8 = 2;
