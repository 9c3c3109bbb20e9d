//! Whether the polling thread sleeps, so that a wake costs a system call only if it does.

use crate::sync::atomic::{AtomicU8, Ordering};

/// No wake is lost. All changes are atomic swaps or exchanges, so they have one order, and each wake leaves `NOTIFIED`.
///
/// - A wake before the poll sleeps: the poll finds `NOTIFIED` and does not wait.
/// - A wake that finds `ASLEEP` sends an event. The event ends this poll, or the next one if this poll was about to
///   return.
/// - A wake that finds `NOTIFIED` needs no event: the poll that the earlier wake ends reads the value of this wake,
///   too, and so sees what its thread did before.
#[derive(Debug, Default)] // awake
pub(crate) struct Sleep(AtomicU8);

impl Sleep {
    /// Call before waiting. True if there was a wake already: then do not wait.
    pub(crate) fn begin(&self) -> bool {
        self.0
            .compare_exchange(AWAKE, ASLEEP, Ordering::AcqRel, Ordering::Acquire)
            .is_err()
    }

    /// Call before looking for events without waiting, if another thread or an executor waits in between: each wake
    /// from now on sends an event.
    pub(crate) fn stay_asleep(&self) {
        self.0.swap(ASLEEP, Ordering::AcqRel);
    }

    /// Call after waiting.
    pub(crate) fn end(&self) {
        self.0.swap(AWAKE, Ordering::AcqRel);
    }

    /// Records a wake. True if the caller has to send an event.
    pub(crate) fn interrupt(&self) -> bool {
        self.0.swap(NOTIFIED, Ordering::AcqRel) == ASLEEP
    }
}

const AWAKE: u8 = 0;
const ASLEEP: u8 = 1;
const NOTIFIED: u8 = 2;
