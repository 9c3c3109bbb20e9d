//! The errors of calls, grouped by cause: a mistake of the caller ([`Misuse`]), a fault of the peer ([`PeerFault`]), a
//! limit of the client ([`LimitExceeded`]), an error of the system (`Io`), a time limit ([`TimeLimit`]), and others.
//!
//! An [`Error`] also has the [`Phase`] of the call, how much of the request was sent ([`Sent`]), its URL or its host, and
//! the remote address. `Display` shows the URL or the host, and the cause; `source()` returns the system's error behind the
//! cause.

mod dns;
mod limit;
mod misuse;
mod proxy;
mod shortage;
mod tls;
mod url;

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::time::Instant;

pub use self::dns::DnsError;
pub use self::limit::LimitExceeded;
pub use self::misuse::{Misuse, Part};
pub use self::proxy::{ProxyFault, SocksReply};
pub use self::shortage::Shortage;
pub use self::tls::{ContentlessRecords, TlsAlert, TlsConfigError, TlsFault, TlsPart};
pub use self::url::UrlError;
pub(crate) use self::url::redacted;

use crate::address::Address;

/// Why a call failed.
///
/// ```
/// use courser::error::Part;
/// use courser::{ErrorKind, HostClient, HostConfig, Misuse, Request, Response, Sent};
///
/// let mut client = HostClient::new("127.0.0.1:1".parse()?, HostConfig::default())?;
/// let mut request = Request::get("/");
/// request.add_header("X-Name", "two\r\nlines");
/// let error = client.call(&mut request, &mut Response::new()).unwrap_err();
/// assert!(matches!(error.kind(), ErrorKind::Misuse(Misuse::Invalid { part: Part::HeaderValue, .. })));
/// assert_eq!(error.sent(), Sent::Nothing);
/// assert_eq!(error.to_string(), "127.0.0.1:1: invalid byte 0x0d at offset 3 of a header value (\"X-Name\")");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    phase: Phase,
    sent: Sent,
    remote: Option<Address>,
    place: Option<Box<str>>,
}

impl Error {
    pub(crate) fn new(kind: impl Into<ErrorKind>, phase: Phase, sent: Sent) -> Self {
        Self(Box::new(Inner {
            kind: kind.into(),
            phase,
            sent,
            remote: None,
            place: None,
        }))
    }

    /// The error of a call of which nothing was sent, or of what is no call.
    pub(crate) fn unsent(kind: impl Into<ErrorKind>) -> Self {
        Self::new(kind, Phase::Queue, Sent::Nothing)
    }

    /// The same error, of a call to this URL or host. The first place stays.
    pub(crate) fn at(mut self, place: impl FnOnce() -> String) -> Self {
        if self.0.place.is_none() {
            self.0.place = Some(place())
                .filter(|place| !place.is_empty())
                .map(Into::into);
        }
        self
    }

    pub(crate) fn with_remote(mut self, remote: Option<Address>) -> Self {
        self.0.remote = remote;
        self
    }

    /// The same error, for a call whose earlier attempts have sent this much.
    pub(crate) fn after(mut self, sent: Sent) -> Self {
        self.0.sent = self.0.sent.max(sent);
        self
    }

    /// The cause.
    pub fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// What the call was waiting for when it failed.
    pub fn phase(&self) -> Phase {
        self.0.phase
    }

    /// How much of the request was sent, the most over all attempts. Shows whether the request can be repeated safely.
    pub fn sent(&self) -> Sent {
        self.0.sent
    }

    /// The address that the call was connected or connecting to; `None` if there was no address yet.
    pub fn remote(&self) -> Option<&Address> {
        self.0.remote.as_ref()
    }

    /// Where the call was going: its URL without user information, after redirects the last one; of a client of one upstream, the
    /// upstream's host and port. `None` if the call was not begun, or the error is not one of a call.
    pub fn place(&self) -> Option<&str> {
        self.0.place.as_deref()
    }

    /// The host in [`place`](Self::place), without the port; an IPv6 address has its brackets.
    ///
    /// ```
    /// use courser::{Client, Config, Response};
    ///
    /// let mut client = Client::new(Config::default())?;
    /// let error = client.get("http://me:secret@127.0.0.1:1/a?b", &mut Response::new()).unwrap_err();
    /// assert_eq!(error.place(), Some("http://127.0.0.1:1/a?b"));
    /// assert_eq!(error.host(), Some("127.0.0.1"));
    /// assert!(error.is_connect() && !error.is_timeout());
    /// # Ok::<(), courser::Error>(())
    /// ```
    pub fn host(&self) -> Option<&str> {
        let place = self.0.place.as_deref()?;
        let authority = match place.split_once("://") {
            Some((_, rest)) => rest.split(['/', '?', '#']).next().unwrap_or(rest),
            None => place,
        };
        let with_port = authority.rsplit_once(':');
        let with_port = with_port.filter(|(_, port)| !port.contains(']'));
        Some(with_port.map_or(authority, |(host, _)| host))
    }

    /// What went wrong, without [where](Self::place): for a caller who shows the URL, too.
    ///
    /// ```
    /// use courser::{Client, Config, Response};
    ///
    /// let mut client = Client::new(Config::default())?;
    /// let error = client.get("http://127.0.0.1:1/", &mut Response::new()).unwrap_err();
    /// assert_eq!(error.what().to_string(), "connecting failed");
    /// assert_eq!(error.to_string(), "http://127.0.0.1:1/: connecting failed");
    /// # Ok::<(), courser::Error>(())
    /// ```
    pub fn what(&self) -> impl fmt::Display + '_ {
        &self.0
    }

    /// Whether no connection was made: the address could not be reached in time or at all, or a proxy did not connect to it.
    /// Failed lookups and handshakes of TLS with the server are not among these.
    pub fn is_connect(&self) -> bool {
        match self.0.kind {
            ErrorKind::Proxy(_) => true,
            ErrorKind::Io(_) | ErrorKind::Timeout(_) | ErrorKind::Peer(_) | ErrorKind::Tls(_) => {
                matches!(self.0.phase, Phase::Connect | Phase::Proxy)
            }
            _ => false,
        }
    }

    /// Whether the name of the host could not be looked up, in time or at all.
    pub fn is_dns(&self) -> bool {
        matches!(self.0.kind, ErrorKind::Dns(_))
            || self.is_timeout() && self.0.phase == Phase::Resolve
    }

    /// Whether TLS failed, with the server or with a proxy: a certificate, an alert, a broken handshake or record, or a handshake
    /// that took too long.
    pub fn is_tls(&self) -> bool {
        matches!(self.0.kind, ErrorKind::Tls(_)) || self.is_timeout() && self.0.phase == Phase::Tls
    }

    /// Whether a time limit was reached; also if it was a limit of a name lookup.
    pub fn is_timeout(&self) -> bool {
        matches!(
            self.0.kind,
            ErrorKind::Timeout(_) | ErrorKind::Dns(DnsError::Timeout)
        )
    }

    /// Whether the head of the response had arrived, and its body could not be read to the end.
    pub fn is_body(&self) -> bool {
        self.0.phase == Phase::Body && self.0.sent == Sent::ReplyBegun
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.0.kind)
            .field("phase", &self.0.phase)
            .field("sent", &self.0.sent)
            .field("remote", &self.0.remote)
            .field("place", &self.0.place)
            .finish()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.0.place {
            write!(f, "{place}: ")?;
        }
        self.0.fmt(f)
    }
}

/// Shows the cause.
impl fmt::Display for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let phase = self.phase;
        match &self.kind {
            ErrorKind::Misuse(misuse) => misuse.fmt(f),
            ErrorKind::Peer(fault) => fault.fmt(f),
            ErrorKind::Redirect { location, fault } => {
                write!(f, "the server redirected to {location:?}: {fault}")
            }
            ErrorKind::Limit(limit) => limit.fmt(f),
            ErrorKind::Tls(fault) => fault.fmt(f),
            ErrorKind::Io(_) => write!(f, "{phase} failed"),
            ErrorKind::Timeout(limit) => write!(f, "{phase} timed out ({limit})"),
            ErrorKind::Proxy(fault) => fault.fmt(f),
            ErrorKind::Dns(error) => error.fmt(f),
            ErrorKind::Denied(ip) => write!(f, "the address policy refuses {ip}"),
            ErrorKind::DeniedName(name) => {
                let why = "which only the proxy can look up";
                write!(f, "the address policy refuses {name}, {why}")
            }
            ErrorKind::BreakerOpen(until) => {
                let left = until.saturating_duration_since(Instant::now());
                write!(f, "the circuit breaker is open for {left:.1?} more")
            }
            ErrorKind::Shortage(shortage) => shortage.fmt(f),
            ErrorKind::Cancelled => f.write_str("cancelled"),
            ErrorKind::Stopped(stopped) => stopped.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0.kind {
            ErrorKind::Io(error)
            | ErrorKind::Misuse(Misuse::BodySource(error) | Misuse::SendHook(error)) => Some(error),
            _ => None,
        }
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match error.kind() {
            ErrorKind::Misuse(_) => io::ErrorKind::InvalidInput,
            ErrorKind::Peer(PeerFault::Empty | PeerFault::Truncated)
            | ErrorKind::Tls(TlsFault::Truncated | TlsFault::HandshakeEof) => {
                io::ErrorKind::UnexpectedEof
            }
            ErrorKind::Peer(_) | ErrorKind::Redirect { .. } | ErrorKind::Tls(_) => {
                io::ErrorKind::InvalidData
            }
            ErrorKind::Io(error) => error.kind(),
            ErrorKind::Timeout(_) | ErrorKind::Dns(DnsError::Timeout | DnsError::NotAsked) => {
                io::ErrorKind::TimedOut
            }
            ErrorKind::BreakerOpen(_) => io::ErrorKind::ConnectionRefused,
            ErrorKind::Denied(_) | ErrorKind::DeniedName(_) => io::ErrorKind::PermissionDenied,
            ErrorKind::Limit(_)
            | ErrorKind::Proxy(_)
            | ErrorKind::Dns(_)
            | ErrorKind::Shortage(_)
            | ErrorKind::Cancelled
            | ErrorKind::Stopped(_) => io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}

/// The cause of an [`Error`].
#[derive(Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The call itself is wrong; it fails again if it is repeated.
    Misuse(Misuse),
    /// The peer broke the protocol.
    Peer(PeerFault),
    /// A redirect that would be followed cannot be, or may not.
    Redirect {
        /// The value of `Location`: without user information, and cut after 200 characters.
        location: String,
        /// Why the redirect is not followed.
        fault: RedirectFault,
    },
    /// A limit of the client was exceeded, set by the caller or by default.
    Limit(LimitExceeded),
    /// TLS with the server failed; in [`Phase::Proxy`], TLS with the proxy failed.
    Tls(TlsFault),
    /// The system failed to connect, to read or to write; [`Error::phase`] shows which operation failed.
    Io(io::Error),
    /// A time limit was reached; [`Error::phase`] shows what the call was waiting for.
    Timeout(TimeLimit),
    /// A proxy did not connect to the target.
    Proxy(ProxyFault),
    /// The name of the host could not be resolved.
    Dns(DnsError),
    /// The [`AddressPolicy`](crate::AddressPolicy) refuses this address of the host.
    Denied(IpAddr),
    /// The [`AddressPolicy`](crate::AddressPolicy) refuses names that only the proxy would look up
    /// ([`AddressPolicy::deny_unresolved`](crate::AddressPolicy::deny_unresolved)), as this one.
    DeniedName(Box<str>),
    /// The breaker ([`HostConfig::breaker`](crate::HostConfig::breaker)) is open until this time. Nothing was sent.
    BreakerOpen(Instant),
    /// This machine had no descriptor, or the like, for a connection.
    Shortage(Shortage),
    /// The caller cancelled the call.
    Cancelled,
    /// The [`Shared`](crate::Shared) client has stopped.
    Stopped(Stopped),
}

/// Why a redirect is not followed.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum RedirectFault {
    /// The redirect leads to what is no http or https URL.
    Url(UrlError),
    /// The [`RedirectHook`](crate::policy::RedirectHook) refuses the redirect.
    Refused,
    /// The body would have to be sent again, and its stream was read
    /// ([`Request::body_opened`](crate::Request::body_opened) is for this).
    BodyNotReplayable,
}

impl fmt::Display for RedirectFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(error) => error.fmt(f),
            Self::Refused => f.write_str("the hook refuses this redirect"),
            Self::BodyNotReplayable => f.write_str("the body cannot be sent again"),
        }
    }
}

/// Why the threads of a [`Shared`](crate::Shared) client could not serve a call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Stopped {
    /// The client was shut down or dropped before it began the call.
    ShutDown,
    /// A user's callback (a body source, a retry hook, a task's waker) panicked on the client's thread. All calls of
    /// this thread fail with this error; later calls go to a new client.
    Panicked,
    /// A callback panicked, and then making a new client failed.
    NoClient,
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ShutDown => "the shared client has been shut down",
            Self::Panicked => "a callback panicked on the client's thread",
            Self::NoClient => "no new client could be made after a panic",
        })
    }
}

/// How the peer broke the protocol. The connection is closed after each of these faults.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum PeerFault {
    /// The connection ended before the first byte of a response.
    Empty,
    /// The connection ended inside the response (RFC 9112 §8).
    Truncated,
    /// The first line is not a status line of HTTP/1.0 to HTTP/1.9 (RFC 9112 §4, RFC 9110 §2.5).
    BadStatusLine,
    /// The peer sent bytes that answer no request: before one was sent, or behind an answer that must have no body.
    Unsolicited,
    /// A header line is malformed (RFC 9112 §5).
    BadHeader,
    /// `Content-Length` is not a decimal number below 2^64 (RFC 9112 §6.3).
    BadContentLength,
    /// Several `Content-Length` values differ (RFC 9112 §6.3).
    ConflictingContentLength,
    /// `Transfer-Encoding` is not `chunked`, or is in an HTTP/1.0 response (RFC 9112 §6.1).
    UnsupportedTransferEncoding,
    /// The chunked framing is broken (RFC 9112 §7.1).
    BadChunk,
    /// A trailer line is malformed (RFC 9112 §7.1.2).
    BadTrailer,
    /// Several `Location` values of a redirect that is followed differ (RFC 9110 §10.2.2).
    ConflictingLocation,
    /// `101 Switching Protocols`, although the request did not ask for that (RFC 9110 §15.2.2).
    UnexpectedUpgrade,
    /// The content coding is invalid or incomplete, although the framing is complete (RFC 9110 §8.4).
    BadContentCoding,
}

impl fmt::Display for PeerFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "the connection closed before any reply",
            Self::Truncated => "the connection closed inside the response",
            Self::BadStatusLine => "not an HTTP/1.x status line",
            Self::Unsolicited => "the server sent what nobody asked for",
            Self::BadHeader => "malformed header in the response",
            Self::BadContentLength => "malformed Content-Length in the response",
            Self::ConflictingContentLength => "conflicting Content-Length values in the response",
            Self::UnsupportedTransferEncoding => "unsupported Transfer-Encoding in the response",
            Self::BadChunk => "malformed chunked coding in the response",
            Self::BadTrailer => "malformed trailer in the response",
            Self::ConflictingLocation => "conflicting Location values in the response",
            Self::UnexpectedUpgrade => "101 Switching Protocols without an Upgrade request",
            Self::BadContentCoding => "broken content coding in the response",
        })
    }
}

/// Which time limit passed. All but `Total` and `Adaptive` are fields of [`Timeouts`](crate::Timeouts).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum TimeLimit {
    /// The deadline of the whole call.
    Total,
    /// Waiting for a connection.
    Queue,
    /// Looking up a name.
    Resolve,
    /// Connecting.
    Connect,
    /// A handshake with a proxy, or of TLS.
    Handshake,
    /// No progress in sending.
    Write,
    /// Waiting for the first byte of the response.
    FirstByte,
    /// Waiting for the first byte of the response for longer than is usual for the host:
    /// [`HostConfig::adaptive`](crate::HostConfig::adaptive).
    Adaptive,
    /// Waiting for more of the response.
    BetweenBytes,
}

impl fmt::Display for TimeLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Total => "total deadline",
            Self::Queue => "queue limit",
            Self::Resolve => "resolve limit",
            Self::Connect => "connect limit",
            Self::Handshake => "handshake limit",
            Self::Write => "write limit",
            Self::FirstByte => "first-byte limit",
            Self::Adaptive => "adaptive first-byte limit",
            Self::BetweenBytes => "between-bytes limit",
        })
    }
}

/// What a call is waiting for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Phase {
    /// A connection: the limit of connections is reached, or a throttle holds the call back.
    Queue,
    /// The addresses of a name.
    Resolve,
    /// The connection to an address.
    Connect,
    /// The handshakes with the proxy, TLS included.
    Proxy,
    /// The end of the TLS handshake with the server.
    Tls,
    /// Room to send the request.
    Send,
    /// The first byte of the response.
    FirstByte,
    /// The rest of the response's head.
    Head,
    /// The response's body.
    Body,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Queue => "waiting for a connection",
            Self::Resolve => "looking up the name",
            Self::Connect => "connecting",
            Self::Proxy => "waiting for the proxy",
            Self::Tls => "negotiating TLS",
            Self::Send => "sending the request",
            Self::FirstByte => "waiting for the first byte",
            Self::Head => "receiving the head",
            Self::Body => "receiving the body",
        })
    }
}

/// How much of a failed request was sent.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Sent {
    /// No byte was sent: any request can be repeated.
    Nothing,
    /// Bytes may have been sent, but no byte of a response arrived: idempotent requests can be repeated (RFC 9110
    /// §9.2.2).
    NoReplyByte,
    /// Part of the response arrived.
    ReplyBegun,
}

impl From<Misuse> for ErrorKind {
    fn from(misuse: Misuse) -> Self {
        Self::Misuse(misuse)
    }
}

impl From<PeerFault> for ErrorKind {
    fn from(fault: PeerFault) -> Self {
        Self::Peer(fault)
    }
}

impl From<LimitExceeded> for ErrorKind {
    fn from(limit: LimitExceeded) -> Self {
        Self::Limit(limit)
    }
}

impl From<Stopped> for ErrorKind {
    fn from(stopped: Stopped) -> Self {
        Self::Stopped(stopped)
    }
}

impl From<ProxyFault> for ErrorKind {
    fn from(fault: ProxyFault) -> Self {
        Self::Proxy(fault)
    }
}

impl From<TlsFault> for ErrorKind {
    fn from(fault: TlsFault) -> Self {
        Self::Tls(fault)
    }
}

impl From<DnsError> for ErrorKind {
    fn from(error: DnsError) -> Self {
        Self::Dns(error)
    }
}

/// A stream with TLS reports TLS faults as I/O errors, and a network reports shortages as such.
impl From<io::Error> for ErrorKind {
    fn from(error: io::Error) -> Self {
        let other = match error.downcast() {
            Ok(fault) => return Self::Tls(fault),
            Err(error) => error.downcast(),
        };
        other.map_or_else(Self::Io, Self::Shortage)
    }
}

impl From<TimeLimit> for ErrorKind {
    fn from(limit: TimeLimit) -> Self {
        Self::Timeout(limit)
    }
}

/// The same error of the system, once more: it cannot be cloned.
pub(crate) fn again(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => error.kind().into(),
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    /// Each error has one line of text, and one kind of `io::Error`.
    #[test]
    fn one_line_and_one_kind_for_each() {
        use io::ErrorKind::{ConnectionRefused, InvalidData, Other, TimedOut, UnexpectedEof};
        let refused = io::Error::from(ConnectionRefused);
        let far = IpAddr::from([10, 0, 0, 1]);
        let cases: [(ErrorKind, &str, io::ErrorKind); 9] = [
            (PeerFault::Empty.into(), "", UnexpectedEof),
            (PeerFault::BadHeader.into(), "", InvalidData),
            (refused.into(), "connecting failed", ConnectionRefused),
            (TimeLimit::Total.into(), "", TimedOut),
            (DnsError::Timeout.into(), "", TimedOut),
            (
                ErrorKind::Denied(far),
                "the address policy refuses 10.0.0.1",
                io::ErrorKind::PermissionDenied,
            ),
            (
                ErrorKind::BreakerOpen(Instant::now()),
                "the circuit breaker is open for 0.0ns more",
                ConnectionRefused,
            ),
            (ErrorKind::Cancelled, "cancelled", Other),
            (
                Stopped::ShutDown.into(),
                "the shared client has been shut down",
                Other,
            ),
        ];
        for (kind, text, expected) in cases {
            let has_cause = matches!(kind, ErrorKind::Io(_));
            let error = Error::new(kind, Phase::Connect, Sent::Nothing);
            let said = error.to_string();
            assert!(!said.is_empty() && !said.contains('\n'), "{error:?}");
            if !text.is_empty() {
                assert_eq!(said, text);
            }
            assert_eq!(error.source().is_some(), has_cause, "{error:?}");
            let io = io::Error::from(error);
            assert_eq!(io.kind(), expected, "{said}");
            let inner = io.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
            assert_eq!(inner.map(ToString::to_string), Some(said));
        }
    }
}
