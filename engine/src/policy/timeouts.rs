//! The deadline of a whole call, and the limits of its phases.

use std::time::Duration;

use crate::error::{Phase, TimeLimit};
use crate::time::Time;

/// Limits in time. `total` covers a call from its submission to its completion, with retries: to the last byte of the
/// body, or to the head of a [streamed](crate::Call::streaming) response. Each of the others but `total_streamed` starts
/// with its phase. `None` means no limit. No limit but the two totals counts while the caller's own source of the
/// request's body, or the caller's consumer of the response's body, makes the peer wait.
///
/// ```
/// use std::time::Duration;
/// let timeouts = courser::Timeouts {
///     total: Some(Duration::from_secs(5)),
///     total_streamed: Some(Duration::from_secs(3600)),
///     ..Default::default()
/// };
/// assert_eq!(timeouts.connect, Some(Duration::from_secs(10)));
/// ```
#[derive(Clone, Debug)]
pub struct Timeouts {
    /// The whole call, or, if its response is streamed, until the head. Default 60 s. A call may have its own deadline
    /// instead, which covers a streamed body as well.
    pub total: Option<Duration>,
    /// The whole call if its response is streamed, from the submission to the last byte of the body. Default none: a
    /// large body may take its time as long as bytes come.
    pub total_streamed: Option<Duration>,
    /// Waiting for a connection while all are in use. Default none: only the call's deadline counts.
    pub queue: Option<Duration>,
    /// Looking up a name. Default 10 s.
    pub resolve: Option<Duration>,
    /// Connecting, over all addresses. Default 10 s. With `None`, the system's limit applies (about two minutes on
    /// Linux).
    pub connect: Option<Duration>,
    /// From the established connection until it can be used: the handshakes of proxies and of TLS, each alone. Default
    /// 10 s.
    pub handshake: Option<Duration>,
    /// Sending without progress. Default 30 s.
    pub write: Option<Duration>,
    /// From the end of the request to the first byte of the response. Default none: only the call's deadline counts.
    pub first_byte: Option<Duration>,
    /// Between two reads of the response. Default 30 s.
    pub between_bytes: Option<Duration>,
}

/// `now + by`; thirty years from now if that is too late to express.
pub(crate) fn later(now: Time, by: Duration) -> Time {
    now.checked_add(by).unwrap_or(now + AS_GOOD_AS_NEVER)
}

const AS_GOOD_AS_NEVER: Duration = Duration::from_secs(30 * 365 * 86_400);

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            total: Some(Duration::from_secs(60)),
            resolve: Some(Duration::from_secs(10)),
            connect: Some(Duration::from_secs(10)),
            handshake: Some(Duration::from_secs(10)),
            write: Some(Duration::from_secs(30)),
            between_bytes: Some(Duration::from_secs(30)),
            ..Self::none()
        }
    }
}

impl Timeouts {
    /// No limits.
    pub fn none() -> Self {
        Self {
            total: None,
            total_streamed: None,
            queue: None,
            resolve: None,
            connect: None,
            handshake: None,
            write: None,
            first_byte: None,
            between_bytes: None,
        }
    }

    /// How long the head of a streamed response may take, from the submission of the call.
    #[cold]
    pub(crate) fn until_head(&self) -> Option<Duration> {
        self.total.into_iter().chain(self.total_streamed).min()
    }

    /// The shortest limit of the phases of an exchange. No wait on a connection ends earlier by such a limit.
    pub(crate) fn shortest(&self) -> Option<Duration> {
        let limits = [self.write, self.first_byte, self.between_bytes];
        limits.into_iter().flatten().min()
    }

    /// When a wait ends that began, or last made progress, at `since`: by the limit of the phase or by the deadline of
    /// the call, whichever is earlier.
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

/// What happens to the connection of a call that ran out of time after its request was sent. The caller gets the error
/// and the buffers at once in any case.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum LatePolicy {
    /// The connection is closed.
    #[default]
    Close,
    /// The connection drains: it reads the late answer and returns to the pool. Meanwhile it counts against the cap, so
    /// that a slow server does not get more and more connections.
    Drain {
        /// The longest that it drains; then it is closed.
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
