//! Whether the polling thread sleeps, so that wakes cost a system call only when it does.

use crate::sync::atomic::{AtomicU8, Ordering};

/// No wake is lost: all changes are swaps or exchanges, so they come one after another, and each wake leaves `NOTIFIED`.
/// If it comes before the poll falls asleep, the poll finds it and does not wait. If it comes later and finds `ASLEEP`, it
/// sends an event, which ends this poll or, if that was about to return anyway, the next one. A wake that finds
/// `NOTIFIED` is served by whoever serves the one before, because the poll reads its value as well, and with that
/// sees everything that the waking thread did before.
#[derive(Debug)]
pub(crate) struct Sleep(AtomicU8);

impl Default for Sleep {
    fn default() -> Self {
        Self(AtomicU8::new(AWAKE))
    }
}

impl Sleep {
    /// Before waiting; true if there has been a wake already, so that there is nothing to wait for.
    pub(crate) fn begin(&self) -> bool {
        self.0
            .compare_exchange(AWAKE, ASLEEP, Ordering::AcqRel, Ordering::Acquire)
            .is_err()
    }

    /// After waiting.
    pub(crate) fn end(&self) {
        self.0.swap(AWAKE, Ordering::AcqRel);
    }

    /// A wake; true if it has to send an event.
    pub(crate) fn interrupt(&self) -> bool {
        self.0.swap(NOTIFIED, Ordering::AcqRel) == ASLEEP
    }
}

const AWAKE: u8 = 0;
const ASLEEP: u8 = 1;
const NOTIFIED: u8 = 2;
