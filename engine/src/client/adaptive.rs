//! Limits on the wait for a first byte that follow what is usual for a host.

use std::time::Duration;

use super::hosts::Host;
use crate::client::progress::ActiveCall;
use crate::policy::AdaptiveTimeout;
use crate::time::Time;

/// The rules for these limits, if there are any.
pub(super) struct AdaptiveLimits(Option<AdaptiveTimeout>);

impl AdaptiveLimits {
    pub(super) fn new(rules: Option<AdaptiveTimeout>) -> Self {
        Self(rules)
    }

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

    /// An attempt is over whose wait for the first byte tells what is usual: it is complete, or it was ended while it
    /// waited. An answer that came before the request was sent tells nothing, and neither does a call with a limit of
    /// its own, which expects to be unusual.
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
        // Before that, the call waited for the answers of others.
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
