//! The state of a call that the client keeps, in addition to the state that the reactor keeps.

use crate::error::Sent;
use crate::policy::AttemptPermit;
use crate::reactor;

/// The progress of a call: its earlier attempts, and the current one.
#[derive(Debug)]
pub(crate) struct CallProgress {
    /// How many attempts have failed, attempts without a connection included.
    pub(crate) failures: u32,
    /// Whether an attempt used a connection that the peer had already closed.
    pub(crate) stale_before: bool,
    /// How much of the request was sent in earlier attempts.
    pub(crate) sent_before: Sent,
    /// The caller has set the deadline of this call.
    pub(crate) has_own_deadline: bool,
    /// The head of a streamed response was delivered without the request, of which a part was still to be sent.
    pub(crate) keeps_request: bool,
    /// The request was sent once more to the same URL because of status 401.
    pub(crate) reauthorized: bool,
    /// Nobody can resume the call.
    pub(crate) is_awaited: bool,
    /// The permit of the current attempt; empty unless the breaker or the balancer counts attempts.
    pub(crate) permit: AttemptPermit,
    /// The addresses of the upstream where the call has failed: a bit for each.
    pub(crate) tried: u64,
}

impl Default for CallProgress {
    #[inline(always)] // so that a new call is built in its final place, without a copy
    fn default() -> Self {
        Self {
            failures: 0,
            stale_before: false,
            sent_before: Sent::Nothing,
            has_own_deadline: false,
            keeps_request: false,
            reauthorized: false,
            is_awaited: false,
            permit: AttemptPermit::default(),
            tried: 0,
        }
    }
}

/// A call, with the state that the client keeps.
pub(crate) type ActiveCall = reactor::ActiveCall<CallProgress>;

/// A reactor of calls with the state that the client keeps.
pub(crate) type Reactor<N> = reactor::Reactor<N, CallProgress>;

#[cfg(test)]
mod tests {
    use super::*;

    /// Up to this size, moving a call in memory needs no loop.
    #[test]
    fn a_call_is_small() {
        assert!(
            size_of::<ActiveCall>() <= 256,
            "{}",
            size_of::<ActiveCall>()
        );
    }
}
