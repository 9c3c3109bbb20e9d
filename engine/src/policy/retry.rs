//! What is tried again after a failure, and when (RFC 9110 §9.2.2, RFC 9112 §9.3.1).
//!
//! Two cases are safe and automatic, on reused connections only, where a failure usually means that the server had
//! closed the connection: nothing was sent (any method), or no byte of a reply came (idempotent methods, once). The
//! next attempt begins at once on a new connection. Everything else is the caller's decision: rules for classes of
//! failures and for statuses, with a back-off, or a hook. Limits, the deadline of the call, misuse, and body streams
//! that were read are final.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use super::backoff::{Backoff, date, retry_after};
use super::breaker::Statuses;
use crate::error::{Error, ErrorKind, PeerFault, Phase, Sent, TimeLimit};
use crate::proto::{Request, Response};

/// Decides about a failure that is not automatically safe and has no rule: how long to wait before the next attempt, or
/// `None` to give up.
pub type RetryHook = Arc<dyn Fn(&FailedAttempt<'_>) -> Option<Duration> + Send + Sync>;

/// When a failed call is tried again. The call has no connection while it waits for that.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
/// use courser::policy::{FailureClass, RetryOn, RetryRule, Statuses};
/// use courser::{Call, HostConfig, Phase, Request, Response, Retry};
///
/// // Calls that are refused, that time out in connecting, or that shall come later are tried four times, with growing
/// // pauses.
/// let rule = |on| RetryRule { attempts: 4.try_into().unwrap(), ..RetryRule::new(on) };
/// let patient = Retry {
///     rules: vec![
///         rule(RetryOn::Failure(FailureClass::Refused)),
///         rule(RetryOn::Failure(FailureClass::ConnectTimeout)),
///         rule(RetryOn::Status(Statuses::none().and(429..=429).and(502..=504))),
///     ],
///     max_elapsed: Some(Duration::from_secs(20)),
///     ..Retry::default()
/// };
///
/// // Other failures before the body of an answer are tried again at once, if the method is idempotent.
/// let retry = Retry {
///     hook: Some(Arc::new(|failed| {
///         let wanted = failed.request.is_idempotent() && failed.error.phase() != Phase::Body;
///         wanted.then_some(Duration::ZERO)
///     })),
///     ..patient
/// };
/// // In a client, for all calls. A call may have its own.
/// let config = HostConfig { retry, ..HostConfig::default() };
/// let call = Call::new(Request::get("/"), Response::new()).retry(Retry::default());
/// # let _ = (config, call);
/// ```
#[derive(Clone)]
pub struct Retry {
    /// Attempts of a call in all, the first included, for failures without a rule; a redirect that is followed is none.
    /// Default 5. A rule has its own number, which may be higher.
    pub max_attempts: NonZeroU32,
    /// Whether the two safe cases are tried again. Default true.
    pub safe_cases: bool,
    /// Further cases; the first rule that matches decides. Default none.
    pub rules: Vec<RetryRule>,
    /// No attempt begins later than this after the first one. Default none: only the call's deadline counts.
    pub max_elapsed: Option<Duration>,
    /// The longest `Retry-After` that is waited for. If a server asks for more, its answer is the result. Default 60 s.
    pub max_retry_after: Duration,
    /// Called for each failure that may be tried again and has no rule. Default none: these are final.
    pub hook: Option<RetryHook>,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            max_attempts: NonZeroU32::new(5).unwrap_or(NonZeroU32::MIN),
            safe_cases: true,
            rules: Vec::new(),
            max_elapsed: None,
            max_retry_after: Duration::from_secs(60),
            hook: None,
        }
    }
}

impl fmt::Debug for Retry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retry")
            .field("max_attempts", &self.max_attempts)
            .field("safe_cases", &self.safe_cases)
            .field("rules", &self.rules)
            .field("max_elapsed", &self.max_elapsed)
            .field("max_retry_after", &self.max_retry_after)
            .field("hook", &self.hook.as_ref().map(|_| ".."))
            .finish()
    }
}

/// How often one kind of failure is tried again, and after which pauses.
///
/// A rule applies to idempotent requests (RFC 9110 §9.2.2). It applies to others only if nothing of them was sent, or
/// if [`any_method`](Self::any_method) is set.
///
/// ```
/// use std::time::Duration;
/// use courser::policy::{FailureClass, RetryOn, RetryRule};
/// use courser::Backoff;
///
/// let rule = RetryRule {
///     attempts: 10.try_into().unwrap(),
///     backoff: Backoff { initial: Duration::from_secs(1), ..Backoff::default() },
///     ..RetryRule::new(RetryOn::Failure(FailureClass::Refused))
/// };
/// assert!(!rule.any_method);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct RetryRule {
    /// The failures that the rule is for.
    pub on: RetryOn,
    /// Attempts of the call in all, the first included, after which such a failure is final. Default 3.
    pub attempts: NonZeroU32,
    /// The pauses. A longer `Retry-After` is waited for. Default [`Backoff::default`].
    pub backoff: Backoff,
    /// Whether requests that are not idempotent are sent again, although the server may have processed them. Default
    /// false.
    pub any_method: bool,
    /// Which connection the next attempt uses. Default: any.
    pub via: RetryVia,
}

impl RetryRule {
    /// A rule with three attempts and the default pauses.
    pub fn new(on: RetryOn) -> Self {
        Self {
            on,
            attempts: NonZeroU32::new(3).unwrap_or(NonZeroU32::MIN),
            backoff: Backoff::default(),
            any_method: false,
            via: RetryVia::default(),
        }
    }
}

/// Which connection a call uses when it is tried again. With [`HostConfig::balance`](crate::HostConfig::balance), it
/// goes to another address in any case, if there is one.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum RetryVia {
    /// Any connection, idle or new.
    #[default]
    Any,
    /// A new connection.
    Fresh,
    /// A new connection, for which the failed address is tried last, if the host has others. The same holds for all new
    /// connections for the time of [`HostConfig::avoid_failed`](crate::HostConfig::avoid_failed).
    OtherAddress,
}

/// The failures that a [`RetryRule`] is for.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum RetryOn {
    /// A failure of this class.
    Failure(FailureClass),
    /// An answer with one of these statuses. After the last attempt, the answer is the result.
    Status(Statuses),
}

/// Failures that may pass.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum FailureClass {
    /// No connection: refused, or the host is unreachable.
    Refused,
    /// The connection ended before the first byte of the answer.
    Reset,
    /// The name could not be looked up.
    Dns,
    /// No connection in time, with its handshakes.
    ConnectTimeout,
    /// The first byte of the answer did not come in time.
    FirstByteTimeout,
    /// No progress in sending or receiving.
    ReadTimeout,
    /// A TLS handshake failed.
    Tls,
    /// The answer ended too early.
    Truncated,
}

impl FailureClass {
    /// The class of an error, if it has one.
    pub fn of(error: &Error) -> Option<Self> {
        Some(match (error.kind(), error.phase()) {
            (ErrorKind::Io(_), Phase::Connect) => Self::Refused,
            (ErrorKind::Io(_) | ErrorKind::Peer(PeerFault::Empty), _) => match error.sent() {
                Sent::ReplyBegun => Self::Truncated,
                Sent::Nothing | Sent::NoReplyByte => Self::Reset,
            },
            (ErrorKind::Peer(PeerFault::Truncated), _) => Self::Truncated,
            (ErrorKind::Dns(_) | ErrorKind::Timeout(TimeLimit::Resolve), _) => Self::Dns,
            (ErrorKind::Timeout(TimeLimit::Connect | TimeLimit::Handshake), _) => {
                Self::ConnectTimeout
            }
            (ErrorKind::Timeout(TimeLimit::FirstByte | TimeLimit::Adaptive), _) => {
                Self::FirstByteTimeout
            }
            (ErrorKind::Timeout(TimeLimit::BetweenBytes | TimeLimit::Write), _) => {
                Self::ReadTimeout
            }
            (ErrorKind::Tls(_), Phase::Tls | Phase::Proxy) => Self::Tls,
            _ => return None,
        })
    }
}

/// A failed attempt, as passed to a [`RetryHook`].
#[derive(Debug)]
pub struct FailedAttempt<'a> {
    /// Why and in which phase the attempt failed, how far it got, and with which peer.
    pub error: &'a Error,
    /// The request.
    pub request: &'a Request,
    /// The number of the attempt; the first is 1.
    pub attempt: u32,
    /// Whether it used a connection that had been idle or had served before.
    pub reused: bool,
    /// Bytes of HTTP that all attempts so far have sent.
    pub bytes_sent: u64,
    /// Time since the call began.
    pub elapsed: Duration,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Verdict {
    GiveUp,
    /// Again at once, on a new connection: the connection has failed, not the server.
    AtOnce,
    /// Again after a pause.
    After {
        pause: Duration,
        via: RetryVia,
    },
}

impl Retry {
    /// Decides about a failed attempt. `stale_before`: an earlier attempt of the call already met a connection that
    /// ended without a reply byte.
    pub(crate) fn decide(
        &self,
        failed: &FailedAttempt<'_>,
        stale_before: bool,
        random: u64,
    ) -> Verdict {
        let is_final = matches!(
            failed.error.kind(),
            ErrorKind::Misuse(_)
                | ErrorKind::Limit(_)
                | ErrorKind::Cancelled
                | ErrorKind::Timeout(TimeLimit::Total | TimeLimit::Queue)
        );
        let enough = failed.attempt >= self.max_attempts.get();
        if is_final || !failed.request.is_replayable() {
            return Verdict::GiveUp;
        }
        let safe = self.safe_cases
            && is_stale(failed)
            && match failed.error.sent() {
                Sent::Nothing => true,
                Sent::NoReplyByte => failed.request.is_idempotent() && !stale_before,
                Sent::ReplyBegun => false,
            };
        if safe && !enough {
            return Verdict::AtOnce;
        }
        let class = FailureClass::of(failed.error);
        let rule = class.and_then(|class| {
            let mut rules = self.rules.iter();
            rules.find(|rule| rule.on == RetryOn::Failure(class))
        });
        let pause = match rule {
            Some(rule) => rule
                .allows(failed.request, failed.error.sent(), failed.attempt)
                .then(|| (rule.backoff.delay(failed.attempt, random), rule.via)),
            None if enough => None,
            None => {
                let pause = self.hook.as_ref().and_then(|hook| hook(failed));
                pause.map(|pause| (pause, RetryVia::Fresh))
            }
        };
        self.in_time(pause, failed.elapsed)
    }

    /// Decides about an answer, which was attempt number `attempt`.
    pub(crate) fn decide_on_status(
        &self,
        request: &Request,
        response: &Response,
        attempt: u32,
        elapsed: Duration,
        random: u64,
    ) -> Verdict {
        let status = response.status();
        let mut rules = self.rules.iter();
        let rule =
            rules.find(|rule| matches!(&rule.on, RetryOn::Status(on) if on.contains(status)));
        let Some(rule) = rule else {
            return Verdict::GiveUp;
        };
        if !request.is_replayable() || !rule.allows(request, Sent::ReplyBegun, attempt) {
            return Verdict::GiveUp;
        }
        let now = response.header("date").and_then(date);
        let value = response.header("retry-after");
        let told = value.and_then(|value| retry_after(value, now));
        if told.is_some_and(|told| told > self.max_retry_after) {
            return Verdict::GiveUp;
        }
        let pause = rule.backoff.delay(attempt, random);
        // Spreads the return of clients that got the same time.
        let told = told.map(|told| told.saturating_add(pause.min(told / 10)));
        // A server that says "at once", or gives a date in the past, still gets a pause.
        let pause = told.map_or(pause, |told| told.max(pause));
        self.in_time(Some((pause, rule.via)), elapsed)
    }

    /// Whether some statuses are tried again.
    pub(crate) fn looks_at_statuses(&self) -> bool {
        let mut rules = self.rules.iter();
        rules.any(|rule| matches!(rule.on, RetryOn::Status(_)))
    }

    fn in_time(&self, pause: Option<(Duration, RetryVia)>, elapsed: Duration) -> Verdict {
        let Some((pause, via)) = pause else {
            return Verdict::GiveUp;
        };
        let begins = elapsed.saturating_add(pause);
        if self.max_elapsed.is_some_and(|most| begins > most) {
            return Verdict::GiveUp;
        }
        Verdict::After { pause, via }
    }
}

impl RetryRule {
    fn allows(&self, request: &Request, sent: Sent, attempt: u32) -> bool {
        let safe = self.any_method || sent == Sent::Nothing || request.is_idempotent();
        safe && attempt < self.attempts.get()
    }
}

/// Whether a connection that had served before turned out to be dead.
pub(crate) fn is_stale(failed: &FailedAttempt<'_>) -> bool {
    let died = matches!(
        failed.error.kind(),
        ErrorKind::Io(_) | ErrorKind::Peer(PeerFault::Empty | PeerFault::Unsolicited)
    );
    failed.reused && died && failed.error.sent() != Sent::ReplyBegun
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::error::LimitExceeded;

    const MS: Duration = Duration::from_millis(1);

    fn failed<'a>(error: &'a Error, request: &'a Request, attempt: u32) -> FailedAttempt<'a> {
        FailedAttempt {
            error,
            request,
            attempt,
            reused: false,
            bytes_sent: 0,
            elapsed: Duration::ZERO,
        }
    }

    fn io(kind: io::ErrorKind) -> ErrorKind {
        ErrorKind::Io(kind.into())
    }

    #[test]
    fn only_what_is_safe_or_asked_for() {
        let reset = || io(io::ErrorKind::ConnectionReset);
        let empty = || ErrorKind::Peer(PeerFault::Empty);
        let (get, post) = (Request::get("/"), Request::post("/", "x"));
        let again = |kind: ErrorKind, sent, request: &Request, reused, stale_before| {
            let error = Error::new(kind, Phase::FirstByte, sent);
            let failed = FailedAttempt {
                reused,
                ..failed(&error, request, 1)
            };
            Retry::default().decide(&failed, stale_before, 0) == Verdict::AtOnce
        };
        // Reused connection: any method if nothing was sent; idempotent methods without a reply byte, once.
        assert!(again(reset(), Sent::Nothing, &post, true, false));
        assert!(again(empty(), Sent::NoReplyByte, &get, true, false));
        assert!(!again(empty(), Sent::NoReplyByte, &get, true, true));
        assert!(!again(empty(), Sent::NoReplyByte, &post, true, false));
        assert!(!again(reset(), Sent::ReplyBegun, &get, true, false));
        // A new connection, a timeout, a limit: never automatically.
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
            hook: Some(Arc::new(|failed| Some(failed.attempt * MS))),
            ..Retry::default()
        };
        let error = Error::new(PeerFault::Truncated, Phase::Body, Sent::ReplyBegun);
        let mut request = Request::get("/");
        let after = |pause| Verdict::After {
            pause,
            via: RetryVia::Fresh,
        };
        let decide =
            |request: &Request, attempt| retry.decide(&failed(&error, request, attempt), false, 0);
        assert_eq!(decide(&request, 2), after(2 * MS));
        assert_eq!(decide(&request, 3), Verdict::GiveUp);
        request.body_stream(io::empty(), None);
        assert_eq!(decide(&request, 1), after(MS), "the stream was not begun");
    }

    #[test]
    fn rules_hold_for_their_class_alone() {
        use FailureClass::FirstByteTimeout as Waiting;
        use FailureClass::{ConnectTimeout, Dns, ReadTimeout, Refused, Reset, Truncated};
        use PeerFault::{Empty, Truncated as Cut};
        use Sent::{NoReplyByte, Nothing, ReplyBegun};
        use TimeLimit as By;
        use io::ErrorKind::{ConnectionRefused, ConnectionReset, HostUnreachable};
        let late = ErrorKind::Timeout;
        let peer = ErrorKind::Peer;
        let errors = [
            (io(ConnectionRefused), Phase::Connect, Nothing, Refused),
            (io(HostUnreachable), Phase::Connect, Nothing, Refused),
            (io(ConnectionReset), Phase::FirstByte, NoReplyByte, Reset),
            (peer(Empty), Phase::FirstByte, NoReplyByte, Reset),
            (io(ConnectionReset), Phase::Body, ReplyBegun, Truncated),
            (peer(Cut), Phase::Body, ReplyBegun, Truncated),
            (late(By::Resolve), Phase::Resolve, Nothing, Dns),
            (late(By::Connect), Phase::Connect, Nothing, ConnectTimeout),
            (late(By::Handshake), Phase::Tls, Nothing, ConnectTimeout),
            (late(By::FirstByte), Phase::FirstByte, NoReplyByte, Waiting),
            (late(By::Adaptive), Phase::FirstByte, NoReplyByte, Waiting),
            (late(By::BetweenBytes), Phase::Body, ReplyBegun, ReadTimeout),
            (late(By::Write), Phase::Send, NoReplyByte, ReadTimeout),
        ];
        let (get, post) = (Request::get("/"), Request::post("/", "x"));
        for (kind, phase, sent, class) in errors {
            let error = Error::new(kind, phase, sent);
            assert_eq!(FailureClass::of(&error), Some(class), "{error}");
            let with = |rule: RetryRule| Retry {
                rules: vec![rule],
                ..Retry::default()
            };
            let rule = RetryRule::new(RetryOn::Failure(class));
            let decide = |retry: &Retry, request: &Request, attempt| {
                retry.decide(&failed(&error, request, attempt), false, u64::MAX)
            };
            let again = |verdict| matches!(verdict, Verdict::After { .. });
            let retry = with(rule.clone());
            assert!(again(decide(&retry, &get, 1)) && again(decide(&retry, &get, 2)));
            assert_eq!(decide(&retry, &get, 3), Verdict::GiveUp, "{class:?}");
            // A POST of which something was sent is not sent again, unless this was asked for.
            let unsent = sent == Sent::Nothing;
            assert_eq!(again(decide(&retry, &post, 1)), unsent, "{class:?}");
            let any_method = with(RetryRule {
                any_method: true,
                ..rule
            });
            assert!(again(decide(&any_method, &post, 1)));
            let retry = with(RetryRule::new(RetryOn::Failure(FailureClass::Tls)));
            assert_eq!(decide(&retry, &get, 1), Verdict::GiveUp, "{class:?}");
        }
        let done = Error::new(TimeLimit::Total, Phase::Body, Sent::ReplyBegun);
        assert_eq!(FailureClass::of(&done), None);
    }

    #[test]
    fn pauses_grow_and_end_with_the_time_that_there_is() {
        let rule = RetryRule {
            attempts: NonZeroU32::new(100).expect("not zero"),
            via: RetryVia::Fresh,
            ..RetryRule::new(RetryOn::Failure(FailureClass::Refused))
        };
        let retry = Retry {
            rules: vec![rule],
            max_elapsed: Some(1000 * MS),
            ..Retry::default()
        };
        let error = Error::new(
            io(io::ErrorKind::ConnectionRefused),
            Phase::Connect,
            Sent::Nothing,
        );
        let request = Request::get("/");
        let decide = |attempt, elapsed| {
            let failed = FailedAttempt {
                elapsed,
                ..failed(&error, &request, attempt)
            };
            // Just below the bound.
            retry.decide(&failed, false, u64::MAX)
        };
        for (attempt, bound) in [(1, 100), (2, 200), (3, 400)] {
            let Verdict::After { pause, via } = decide(attempt, Duration::ZERO) else {
                panic!("attempt {attempt} was the last");
            };
            assert!(
                via == RetryVia::Fresh && pause.abs_diff(bound * MS) < MS,
                "{pause:?}"
            );
        }
        assert_ne!(decide(3, 600 * MS), Verdict::GiveUp);
        assert_eq!(decide(3, 601 * MS), Verdict::GiveUp);
        assert_eq!(decide(5, Duration::ZERO), Verdict::GiveUp);
    }

    #[test]
    fn answers_that_ask_for_patience() {
        let retry = Retry {
            rules: vec![RetryRule::new(RetryOn::Status(
                Statuses::none().and(429..=429).and(503..=503),
            ))],
            max_retry_after: Duration::from_secs(10),
            ..Retry::default()
        };
        assert!(retry.looks_at_statuses() && !Retry::default().looks_at_statuses());
        let answer = |status: u16, header: &str| {
            let text = format!("HTTP/1.1 {status} X\r\n{header}Content-Length: 0\r\n\r\n");
            crate::proto::tests::response_of(&text)
        };
        let decide = |request: &Request, status, header, attempt| {
            let response = answer(status, header);
            retry.decide_on_status(request, &response, attempt, Duration::ZERO, 0)
        };
        let (get, post) = (Request::get("/"), Request::post("/", "x"));
        let after = |seconds| Verdict::After {
            pause: Duration::from_secs(seconds),
            via: RetryVia::Any,
        };
        assert_eq!(decide(&get, 503, "", 1), after(0));
        assert_eq!(decide(&get, 503, "Retry-After: 7\r\n", 1), after(7));
        assert_eq!(decide(&get, 429, "Retry-After: 10\r\n", 2), after(10));
        let date =
            "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nRetry-After: Sun, 06 Nov 1994 08:49:40 GMT\r\n";
        assert_eq!(decide(&get, 503, date, 1), after(3));
        assert_eq!(decide(&get, 503, "Retry-After: 11\r\n", 1), Verdict::GiveUp);
        assert_eq!(decide(&get, 503, "Retry-After: 7\r\n", 3), Verdict::GiveUp);
        // The sum does not overflow, whatever the server says.
        let endless = Retry {
            max_retry_after: Duration::MAX,
            ..retry.clone()
        };
        let response = answer(503, "Retry-After: 99999999999999999999\r\n");
        let verdict = endless.decide_on_status(&get, &response, 1, Duration::MAX, u64::MAX);
        assert!(matches!(verdict, Verdict::After { .. }));
        assert_eq!(decide(&post, 503, "", 1), Verdict::GiveUp);
        assert_eq!(decide(&get, 500, "", 1), Verdict::GiveUp);
        // A shorter time than the back-off does not shorten the pause.
        let response = answer(503, "Retry-After: 0\r\n");
        let verdict = retry.decide_on_status(&get, &response, 1, Duration::ZERO, u64::MAX);
        assert!(matches!(verdict, Verdict::After { pause, .. } if pause > 99 * MS));
    }
}
