//! What may be sent again after a failure, by how far it got (RFC 9110 §9.2.2, RFC 9112 §9.3.1).
//!
//! Two cases are safe and automatic, on a reused connection only, because there a failure usually means that the
//! server had closed it: nothing was sent, for any method; no byte of a reply came, for idempotent methods, once. The
//! next attempt takes a new connection. Everything else is the caller's decision. Limits, the total deadline, misuse
//! and begun body streams are final.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;

use crate::error::{Error, ErrorKind, PeerFault, Sent, TimeLimit};
use crate::proto::Request;

/// Decides about a failure that is not safe to repeat by itself.
pub type RetryHook = Arc<dyn Fn(&FailedAttempt<'_>) -> bool + Send + Sync>;

/// When a failed call is tried again.
///
/// ```
/// use std::sync::Arc;
/// use courser::{Phase, Retry};
///
/// // Also repeat idempotent requests that failed on a new connection.
/// let retry = Retry {
///     hook: Some(Arc::new(|failed| failed.request.is_idempotent() && failed.error.phase() != Phase::Body)),
///     ..Retry::default()
/// };
/// ```
#[derive(Clone)]
pub struct Retry {
    /// Attempts in all, the first included. Default 5.
    pub max_attempts: NonZeroU32,
    /// Whether the two safe cases are repeated. Default true.
    pub stale: bool,
    /// Asked about every other failure that can be repeated at all. Default none: they are not.
    pub hook: Option<RetryHook>,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            max_attempts: NonZeroU32::new(5).unwrap_or(NonZeroU32::MIN),
            stale: true,
            hook: None,
        }
    }
}

impl fmt::Debug for Retry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retry")
            .field("max_attempts", &self.max_attempts)
            .field("stale", &self.stale)
            .field("hook", &self.hook.as_ref().map(|_| ".."))
            .finish()
    }
}

/// A failed attempt, as a [`RetryHook`] sees it.
#[derive(Debug)]
pub struct FailedAttempt<'a> {
    /// Why it failed, in which phase, how far it had got, and with whom.
    pub error: &'a Error,
    /// The request.
    pub request: &'a Request,
    /// Which attempt this was; the first is 1.
    pub attempt: u32,
    /// Whether it ran on a connection that had been kept idle or had served before.
    pub reused: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Verdict {
    GiveUp,
    /// Again, on a new connection.
    Again,
}

impl Retry {
    /// `stale_before`: an earlier attempt of this call has already met a connection that died without a reply byte.
    pub(crate) fn decide(&self, failed: &FailedAttempt<'_>, stale_before: bool) -> Verdict {
        let is_final = matches!(
            failed.error.kind(),
            ErrorKind::Misuse(_)
                | ErrorKind::Limit(_)
                | ErrorKind::Cancelled
                | ErrorKind::Timeout(TimeLimit::Total | TimeLimit::Queue)
        );
        if is_final || failed.attempt >= self.max_attempts.get() || !failed.request.is_replayable()
        {
            return Verdict::GiveUp;
        }
        let safe = self.stale
            && is_stale(failed)
            && match failed.error.sent() {
                Sent::Nothing => true,
                Sent::NoReplyByte => failed.request.is_idempotent() && !stale_before,
                Sent::Partial => false,
            };
        if safe || self.hook.as_ref().is_some_and(|hook| hook(failed)) {
            Verdict::Again
        } else {
            Verdict::GiveUp
        }
    }
}

/// Whether a connection that had served before turned out to be dead.
pub(crate) fn is_stale(failed: &FailedAttempt<'_>) -> bool {
    let died = matches!(
        failed.error.kind(),
        ErrorKind::Io(_) | ErrorKind::Peer(PeerFault::Empty)
    );
    failed.reused && died && failed.error.sent() != Sent::Partial
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::error::{LimitExceeded, Phase};

    #[test]
    fn only_what_is_safe_or_asked_for() {
        let reset = || ErrorKind::Io(io::ErrorKind::ConnectionReset.into());
        let empty = || ErrorKind::Peer(PeerFault::Empty);
        let (get, post) = (Request::get("/"), Request::post("/", "x"));
        let again = |kind: ErrorKind, sent, request: &Request, reused, stale_before| {
            let error = Error::new(kind, Phase::FirstByte, sent);
            let failed = FailedAttempt {
                error: &error,
                request,
                attempt: 1,
                reused,
            };
            Retry::default().decide(&failed, stale_before) == Verdict::Again
        };
        // Reused connection: unsent anything; idempotent without a reply byte, once.
        assert!(again(reset(), Sent::Nothing, &post, true, false));
        assert!(again(empty(), Sent::NoReplyByte, &get, true, false));
        assert!(!again(empty(), Sent::NoReplyByte, &get, true, true));
        assert!(!again(empty(), Sent::NoReplyByte, &post, true, false));
        assert!(!again(reset(), Sent::Partial, &get, true, false));
        // A new connection, a time-out, a limit: never by itself.
        assert!(!again(reset(), Sent::NoReplyByte, &get, false, false));
        let late = || ErrorKind::Timeout(TimeLimit::FirstByte);
        assert!(!again(late(), Sent::NoReplyByte, &get, true, false));
        let limit = || ErrorKind::Limit(LimitExceeded::Connections(1));
        assert!(!again(limit(), Sent::Nothing, &get, true, false));
    }

    #[test]
    fn the_hook_decides_the_rest_within_the_attempts() {
        let retry = Retry {
            max_attempts: NonZeroU32::new(3).expect("not zero"),
            hook: Some(Arc::new(|_| true)),
            ..Retry::default()
        };
        let error = Error::new(PeerFault::Truncated, Phase::Body, Sent::Partial);
        let mut request = Request::get("/");
        let decide = |request: &Request, attempt| {
            retry.decide(
                &FailedAttempt {
                    error: &error,
                    request,
                    attempt,
                    reused: false,
                },
                false,
            )
        };
        assert_eq!(decide(&request, 2), Verdict::Again);
        assert_eq!(decide(&request, 3), Verdict::GiveUp);
        request.body_stream(io::empty(), None);
        assert_eq!(
            decide(&request, 1),
            Verdict::Again,
            "the stream was not begun"
        );
    }
}
