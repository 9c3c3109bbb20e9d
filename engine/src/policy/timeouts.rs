//! One deadline over a whole call, and limits for each of its phases within it.

use std::time::Duration;

use crate::error::{Phase, TimeLimit};
use crate::time::Time;

/// Limits in time. `total` covers everything from taking up the call to the last byte of the body, retries included;
/// the others start anew with their phase. `None` is no limit.
///
/// ```
/// use std::time::Duration;
/// let timeouts = courser::Timeouts { total: Some(Duration::from_secs(5)), ..Default::default() };
/// assert_eq!(timeouts.connect, Some(Duration::from_secs(10)));
/// ```
#[derive(Clone, Debug)]
pub struct Timeouts {
    /// The whole call. Default 60 s. A call can have its own deadline instead.
    pub total: Option<Duration>,
    /// Waiting for a connection while all are in use. Default none: up to the call's deadline.
    pub queue: Option<Duration>,
    /// Looking up a name. Default 10 s.
    pub resolve: Option<Duration>,
    /// Connecting, over all addresses. Default 10 s. Without it the system's limit holds (about two minutes on Linux).
    pub connect: Option<Duration>,
    /// From the connection's being up until it can be used: the handshakes of proxies and of TLS, each by itself.
    /// Default 10 s.
    pub handshake: Option<Duration>,
    /// Sending, without any progress. Default 30 s.
    pub write: Option<Duration>,
    /// From the end of the request to the first byte of the response. Default none: up to the call's deadline.
    pub first_byte: Option<Duration>,
    /// Between two reads of the response. Default 30 s.
    pub between_bytes: Option<Duration>,
}

/// `now + by`, or as good as never.
pub(crate) fn later(now: Time, by: Duration) -> Time {
    now.checked_add(by).unwrap_or(now + AS_GOOD_AS_NEVER)
}

const AS_GOOD_AS_NEVER: Duration = Duration::from_secs(30 * 365 * 86_400);

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            total: Some(Duration::from_secs(60)),
            queue: None,
            resolve: Some(Duration::from_secs(10)),
            connect: Some(Duration::from_secs(10)),
            handshake: Some(Duration::from_secs(10)),
            write: Some(Duration::from_secs(30)),
            first_byte: None,
            between_bytes: Some(Duration::from_secs(30)),
        }
    }
}

impl Timeouts {
    /// No limits at all.
    pub fn none() -> Self {
        Self {
            total: None,
            queue: None,
            resolve: None,
            connect: None,
            handshake: None,
            write: None,
            first_byte: None,
            between_bytes: None,
        }
    }

    /// No wait on a connection that begins now ends earlier by a limit of its phase.
    pub(crate) fn shortest(&self) -> Option<Duration> {
        let limits = [self.write, self.first_byte, self.between_bytes];
        limits.into_iter().flatten().min()
    }

    /// When a wait that began, or last made progress, at `since` ends: by the phase's limit or by the call's deadline,
    /// whichever is earlier.
    pub(crate) fn due(
        &self,
        phase: Phase,
        since: Time,
        deadline: Option<Time>,
    ) -> Option<(Time, TimeLimit)> {
        let (limit, name) = match phase {
            Phase::Queue => (self.queue, TimeLimit::Queue),
            Phase::Resolve => (self.resolve, TimeLimit::Resolve),
            Phase::Connect => (self.connect, TimeLimit::Connect),
            Phase::Proxy | Phase::Tls => (self.handshake, TimeLimit::Handshake),
            Phase::Send => (self.write, TimeLimit::Write),
            Phase::FirstByte => (self.first_byte, TimeLimit::FirstByte),
            Phase::Head | Phase::Body => (self.between_bytes, TimeLimit::BetweenBytes),
        };
        let by_limit = limit
            .and_then(|limit| since.checked_add(limit))
            .map(|at| (at, name));
        let by_deadline = deadline.map(|at| (at, TimeLimit::Total));
        match (by_limit, by_deadline) {
            (Some(limit), Some(deadline)) if limit.0 < deadline.0 => Some(limit),
            (limit, None) => limit,
            (_, deadline) => deadline,
        }
    }
}

/// What happens to the connection of a call whose time ran out after its request was sent. The caller gets its error
/// and its buffers at once in any case.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum LatePolicy {
    /// It is closed.
    #[default]
    Close,
    /// The late answer is awaited and dropped, and the connection goes back to the pool. Meanwhile it counts against
    /// the cap, so that a slow server is not met with ever more connections.
    Drain {
        /// The longest wait; then the connection is closed.
        up_to: Duration,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earlier_of_limit_and_deadline() {
        let start = Time::now();
        let at = |ms| start + Duration::from_millis(ms);
        let timeouts = Timeouts {
            first_byte: Some(Duration::from_millis(50)),
            ..Timeouts::none()
        };
        let due = |phase, deadline| timeouts.due(phase, start, deadline);
        assert_eq!(
            due(Phase::FirstByte, None),
            Some((at(50), TimeLimit::FirstByte))
        );
        assert_eq!(
            due(Phase::FirstByte, Some(at(40))),
            Some((at(40), TimeLimit::Total))
        );
        assert_eq!(
            due(Phase::FirstByte, Some(at(50))),
            Some((at(50), TimeLimit::Total))
        );
        assert_eq!(
            due(Phase::FirstByte, Some(at(60))),
            Some((at(50), TimeLimit::FirstByte))
        );
        assert_eq!(
            due(Phase::Send, Some(at(60))),
            Some((at(60), TimeLimit::Total))
        );
        assert_eq!(due(Phase::Send, None), None);
    }
}
