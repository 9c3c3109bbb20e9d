//! Calls whose bodies come in pieces: the source of a body wakes its call from any thread.

use std::io;
use std::sync::{Arc, PoisonError};
use std::task::Wake;

use crate::net::{Net, Waker};
use crate::reactor::CallKey;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, Ordering};

/// The calls whose sources have the next piece. Empty until the first call that needs it.
#[derive(Default)]
pub(super) struct Uploads(Option<Arc<Woken>>);

struct Woken {
    calls: Mutex<Vec<Arc<CallWaker>>>,
    /// Ends the wait for events.
    waker: Waker,
}

/// The waker of one call.
struct CallWaker {
    call: CallKey,
    /// The call is in the list already.
    is_listed: AtomicBool,
    woken: Arc<Woken>,
}

impl Uploads {
    /// What the source of a call wakes, which ends the wait of the network.
    pub(super) fn waker(
        &mut self,
        call: CallKey,
        net: &mut impl Net,
    ) -> io::Result<std::task::Waker> {
        let woken = match &self.0 {
            Some(woken) => woken,
            None => self.0.insert(Arc::new(Woken {
                calls: Mutex::default(),
                waker: net.waker()?,
            })),
        };
        let waker = CallWaker {
            call,
            is_listed: AtomicBool::new(false),
            woken: Arc::clone(woken),
        };
        Ok(Arc::new(waker).into())
    }

    /// Whether there was a call with such a source.
    #[inline]
    pub(super) fn are_used(&self) -> bool {
        self.0.is_some()
    }

    /// Takes the calls that were woken.
    pub(super) fn take_woken(&self) -> impl Iterator<Item = CallKey> + use<> {
        let calls = self.0.as_ref().map(|woken| {
            let mut calls = woken.calls.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *calls)
        });
        calls.into_iter().flatten().map(|waker| {
            waker.is_listed.store(false, Ordering::SeqCst);
            waker.call
        })
    }
}

impl Wake for CallWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.is_listed.swap(true, Ordering::SeqCst) {
            return;
        }
        let calls = self.woken.calls.lock();
        let mut calls = calls.unwrap_or_else(PoisonError::into_inner);
        calls.push(Arc::clone(self));
        drop(calls);
        self.woken.waker.wake();
    }
}
