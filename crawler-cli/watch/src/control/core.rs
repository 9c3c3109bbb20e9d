//! Questions to the core of the service, and what it is told. The core takes them between two turns of its loop.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use courser::net::Waker;

use super::message::CoreStatus;

/// What the core is asked or told.
#[derive(Debug)]
pub enum CoreMessage {
    /// How are you? The answer goes into the channel.
    Status {
        /// The root URL of a host that is asked about.
        host: Option<String>,
        /// Where the answer goes. Nobody may be waiting any more.
        answer: SyncSender<CoreStatus>,
    },
    /// An operator has changed something in the store: something is due, paused, or not held any more. Look into it.
    LookAgain,
}

/// Connects the threads that serve commands with the core. At most 64 messages wait.
///
/// ```
/// use std::time::Duration;
///
/// use watch::control::{CoreMessage, CoreStatus, core_channel};
///
/// let (handle, inbox) = core_channel();
/// let core = std::thread::spawn(move || loop {
///     match inbox.take() {
///         Some(CoreMessage::Status { answer, .. }) => {
///             let status = CoreStatus { under_way: 3, ..CoreStatus::default() };
///             return answer.send(status).is_ok();
///         }
///         Some(_) | None => std::thread::yield_now(),
///     }
/// });
/// let status = handle.status(None, Duration::from_secs(10)).expect("the core runs");
/// assert_eq!(status.under_way, 3);
/// assert!(core.join().is_ok_and(|was_awaited| was_awaited));
/// ```
pub fn core_channel() -> (CoreHandle, CoreInbox) {
    let (sender, receiver) = sync_channel(MOST_MESSAGES);
    let waker = Arc::<OnceLock<Waker>>::default();
    let handle = CoreHandle {
        sender,
        waker: Arc::clone(&waker),
    };
    (handle, CoreInbox { receiver, waker })
}

/// The end of the threads that serve commands.
#[derive(Clone, Debug)]
pub struct CoreHandle {
    sender: SyncSender<CoreMessage>,
    /// Ends the wait of the core for its network, once there is a core.
    waker: Arc<OnceLock<Waker>>,
}

impl CoreHandle {
    /// Asks the core. `None`: it did not answer within `patience`, or has ended.
    pub fn status(&self, host: Option<String>, patience: Duration) -> Option<CoreStatus> {
        let (answer, answered) = sync_channel(1);
        self.tell(CoreMessage::Status { host, answer })
            .then(|| answered.recv_timeout(patience).ok())?
    }

    /// Tells the core something. `false`: it has ended, or too much waits for it already. What it is told is in the
    /// store too, and the core finds it there within a minute.
    pub fn tell(&self, message: CoreMessage) -> bool {
        let is_sent = self.sender.try_send(message).is_ok();
        if let Some(waker) = self.waker.get().filter(|_| is_sent) {
            waker.wake();
        }
        is_sent
    }
}

/// The end of the core.
#[derive(Debug)]
pub struct CoreInbox {
    receiver: Receiver<CoreMessage>,
    waker: Arc<OnceLock<Waker>>,
}

impl CoreInbox {
    /// Uses this waker from now on whenever a message comes. The first one stays.
    pub fn set_waker(&self, waker: Waker) {
        // A second core for the same inbox cannot be.
        let _ = self.waker.set(waker);
    }

    /// The next message, if there is one. Does not wait.
    pub fn take(&self) -> Option<CoreMessage> {
        self.receiver.try_recv().ok()
    }
}

/// How many messages wait at most.
const MOST_MESSAGES: usize = 64;

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn a_message_wakes_the_core() {
        let (handle, inbox) = core_channel();
        assert!(handle.tell(CoreMessage::LookAgain));
        let woken = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&woken);
        inbox.set_waker(Waker::new(move || {
            count.fetch_add(1, Ordering::Relaxed);
        }));
        for expected in 1..=3 {
            assert!(handle.tell(CoreMessage::LookAgain));
            assert_eq!(woken.load(Ordering::Relaxed), expected);
        }
        drop(inbox);
        assert!(!handle.tell(CoreMessage::LookAgain));
        assert_eq!(woken.load(Ordering::Relaxed), 3);
    }
}
