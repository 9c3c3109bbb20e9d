//! What a client keeps of a call, beside what the reactor does.

use crate::error::Sent;
use crate::policy::AttemptPermit;
use crate::reactor;

/// How far a call has come: its attempts so far, and the present one.
#[derive(Debug)]
pub(crate) struct CallProgress {
    /// How many attempts have failed, those that got no connection included.
    pub(crate) failures: u32,
    /// An attempt met a connection that the peer had closed.
    pub(crate) stale_before: bool,
    /// How far the request got in earlier attempts.
    pub(crate) sent_before: Sent,
    /// For the present attempt, if breaker or balancer count attempts.
    pub(crate) permit: Option<AttemptPermit>,
    /// The addresses of the upstream where the call has failed: a bit for each.
    pub(crate) tried: u64,
    /// A health check of the address with this index. No caller waits for it.
    pub(crate) health_check: Option<u32>,
}

impl Default for CallProgress {
    #[inline(always)] // as the call that has these is made in its place
    fn default() -> Self {
        Self {
            failures: 0,
            stale_before: false,
            sent_before: Sent::Nothing,
            permit: None,
            tried: 0,
            health_check: None,
        }
    }
}

/// A call, with what the client keeps of it.
pub(crate) type ActiveCall = reactor::ActiveCall<CallProgress>;

/// A reactor with such calls.
pub(crate) type Reactor<N> = reactor::Reactor<N, CallProgress>;

#[cfg(test)]
mod tests {
    use super::*;

    /// Up to this size, the move of a call needs no loop.
    #[test]
    fn a_call_is_small() {
        assert!(
            size_of::<ActiveCall>() <= 256,
            "{}",
            size_of::<ActiveCall>()
        );
    }
}
