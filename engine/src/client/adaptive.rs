//! Adaptive limits of the wait for the first byte, which follow the usual wait for a host.

use std::time::Duration;

use super::hosts::Host;
use crate::client::progress::ActiveCall;
use crate::policy::AdaptiveTimeout;
use crate::time::Time;

/// The rules for adaptive limits; `None` if the client has no such limits.
pub(super) struct AdaptiveLimits(pub(super) Option<AdaptiveTimeout>);

impl AdaptiveLimits {
    /// Whether hosts have limits of their own.
    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// The limit for a call that is about to get a connection to the host.
    pub(super) fn limit(&self, host: &Host) -> Option<Duration> {
        let rules = self.0?;
        Some(match &host.latencies {
            Some(latencies) => latencies.timeout(),
            None => rules.max,
        })
    }

    /// Counts the wait for the first byte of an attempt that is complete, or that ended during this wait. Two kinds of
    /// attempts do not count: those whose answer came before the request was sent, and those of calls with a limit of
    /// their own, which are not usual.
    #[cold]
    pub(super) fn attempt_ended(&self, call: &ActiveCall, host: &mut Host, now: Time) {
        let Some(rules) = self.0 else {
            return;
        };
        if call.has_own_first_byte_limit() {
            return;
        }
        let timestamps = &call.timestamps;
        let (Some(sent), came) = (timestamps.sent, timestamps.first_byte.unwrap_or(now)) else {
            return;
        };
        // Before that time, the call waited for the answers to earlier calls.
        let since = timestamps
            .in_front
            .map_or(sent, |in_front| in_front.max(sent));
        if came >= since {
            let new = || Box::new(rules.start());
            let latencies = host.latencies.get_or_insert_with(new);
            latencies.record(now.instant(), came - since);
        }
    }
}
