//! Waits for first bytes that are as long as is usual for the host.

use super::Engine;
use crate::client::router::Router;
use crate::net::Net;
use crate::reactor::{CallKey, ConnKey};

impl<R: Router, N: Net> Engine<R, N> {
    /// Whether hosts have limits of their own.
    #[inline]
    pub(super) fn adapts(&self) -> bool {
        self.adaptive.is_some()
    }

    /// Limits the wait for the first byte on a connection that is about to get a call.
    #[cold]
    pub(super) fn set_first_byte_limit(&mut self, conn: ConnKey) {
        let (Some(rules), Some(slot)) = (self.adaptive, self.reactor.slot(conn)) else {
            return;
        };
        let Some(host) = self.hosts.get(slot.host) else {
            return;
        };
        let limit = match &host.latencies {
            Some(latencies) => latencies.timeout(),
            None => rules.max,
        };
        self.reactor.set_first_byte_limit(conn, limit);
        self.telemetry.first_byte_limit(limit);
    }

    /// An attempt is over whose wait for the first byte tells what is usual: it is complete, or it was ended while it
    /// waited. An answer that came before the request was sent tells nothing, and neither does a call with a limit of
    /// its own, which expects to be unusual.
    #[cold]
    pub(super) fn note_latency(&mut self, key: CallKey) {
        let now = self.reactor.now();
        let (Some(rules), Some(call)) = (self.adaptive, self.reactor.call_ref(key)) else {
            return;
        };
        if call.has_own_first_byte() {
            return;
        }
        let timestamps = &call.timestamps;
        let (Some(sent), came) = (timestamps.sent, timestamps.first_byte.unwrap_or(now)) else {
            return;
        };
        // Before that, it waited for others.
        let since = timestamps
            .in_front
            .map_or(sent, |in_front| in_front.max(sent));
        if came >= since
            && let Some(host) = call.host.and_then(|host| self.hosts.get(host))
        {
            let new = || Box::new(rules.start());
            let latencies = host.latencies.get_or_insert_with(new);
            latencies.record(now.instant(), came - since);
        }
    }
}
