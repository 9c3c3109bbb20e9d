//! The events of a client for its observer, and the records of its statistics.
//!
//! The observer runs on the client's thread. Only this client writes the records; any thread may read them.

use std::sync::Arc;
use std::time::Duration;

use super::stats::{Recorder, Stats};
use super::{CallId, Observer, ObserverEvent, RetryCause};
use crate::address::Address;
use crate::client::progress::ActiveCall;
use crate::reactor::CallKey;

/// The observer and the recorder of a client, if the settings ask for them.
#[derive(Debug)]
pub(crate) struct Telemetry {
    observer: Option<Observer>,
    recorder: Option<Arc<Recorder>>,
}

impl Telemetry {
    pub(super) fn new(observer: Option<Observer>, with_stats: bool) -> Self {
        Self {
            observer: observer.map(Observer::for_client),
            recorder: with_stats.then(Arc::default),
        }
    }

    /// Writes records to `recorder` from now on.
    pub(super) fn record_to(&mut self, recorder: Arc<Recorder>) {
        self.recorder = Some(recorder);
    }

    /// The statistics so far; all zero without a recorder.
    pub(super) fn stats(&self) -> Stats {
        let recorder = self.recorder.as_ref();
        recorder.map_or_else(Stats::default, |recorder| recorder.snapshot())
    }

    /// Whether there is an observer.
    #[inline]
    pub(super) fn observes(&self) -> bool {
        self.observer.is_some()
    }

    /// Notifies the observer of an event. Without an observer, the event is not made.
    #[inline]
    pub(super) fn notify<'e>(&self, event: impl FnOnce() -> ObserverEvent<'e>) {
        if let Some(observer) = &self.observer {
            observer.notify(&event());
        }
    }

    // ---- events of calls

    /// A call begins, or goes on in this client after it moved from another one.
    #[cold]
    pub(super) fn call_begun(&self, key: CallKey, call: &ActiveCall) {
        self.notify(|| ObserverEvent::Begun {
            call: CallId(key),
            tag: call.tag,
            method: call.request.method_now(),
            target: call.request.url(),
        });
    }

    /// The request of a call is being sent.
    #[cold]
    pub(super) fn sending(&self, key: CallKey, call: &ActiveCall, remote: &Address, reused: bool) {
        self.notify(|| ObserverEvent::Sending {
            call: CallId(key),
            tag: call.tag,
            remote,
            reused,
            head: call.request.encoded_head(),
        });
    }

    #[cold]
    pub(super) fn head(&self, key: CallKey, call: &ActiveCall) {
        self.notify(|| ObserverEvent::Head {
            call: CallId(key),
            tag: call.tag,
            response: &call.response,
        });
    }

    pub(super) fn retrying(
        &self,
        key: CallKey,
        call: &ActiveCall,
        cause: RetryCause<'_>,
        pause: Duration,
    ) {
        self.notify(|| ObserverEvent::Retrying {
            call: CallId(key),
            tag: call.tag,
            cause,
            pause,
        });
    }

    /// Whether the end of a call must be reported to the observer or the recorder.
    #[inline]
    pub(super) fn wants_ends(&self) -> bool {
        self.observer.is_some() || self.recorder.is_some()
    }

    /// A call, or its streamed body, has ended.
    #[cold]
    pub(super) fn call_ended(&self, key: CallKey, call: &ActiveCall) {
        let error = call.outcome.as_ref().err();
        self.notify(|| ObserverEvent::Ended {
            call: CallId(key),
            tag: call.tag,
            error,
        });
        if let Some(recorder) = &self.recorder {
            recorder.record(call);
        }
    }

    // ---- records of limits

    /// The wait for a first byte on the next connection has this limit.
    pub(super) fn first_byte_limit(&self, limit: Duration) {
        if let Some(recorder) = &self.recorder {
            recorder.lock().first_byte_limit = Some(limit);
        }
    }

    /// An attempt has ended by the adaptive limit of the first byte.
    pub(super) fn adaptive_timeout(&self) {
        if let Some(recorder) = &self.recorder {
            recorder.lock().adaptive_timeouts += 1;
        }
    }
}
