//! What the errors of the engine mean for a URL.

use std::error::Error as _;
use std::io;

use courser::error::{DnsError, LimitExceeded, PeerFault, TlsFault};
use courser::proto::{ProxyFault, SocksReply};
use courser::{Error, ErrorKind, Phase};

use crawl::failure::FailureScope;
use crawl::stats;
use verdict::Cause;
use verdict::guard::LocalSign;

/// A request without a complete answer.
///
/// ```
/// use verdict::Cause;
/// use check::failure::Failure;
///
/// let mut response = courser::Response::new();
/// let client = courser::Client::new(courser::Config::default());
/// let error = client?.get("http://127.0.0.1:1/", &mut response).unwrap_err();
/// let failure = Failure::of(&error);
/// assert_eq!(failure.cause, Cause::Refused);
/// assert!(failure.detail.starts_with("connecting failed: Connection refused"));
/// # Ok::<(), courser::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Failure {
    /// The cause.
    pub cause: Cause,
    /// The cause in words: `certificate expired 3 days ago`.
    pub detail: String,
    /// What the failure says about further attempts.
    pub scope: FailureScope,
    /// The class of the failure for statistics and retries.
    pub class: stats::Class,
    /// The sign that this machine or its network is at fault, and not the host.
    pub local_sign: Option<LocalSign>,
}

impl Failure {
    /// What an error of the engine means.
    pub fn of(error: &Error) -> Self {
        Self {
            cause: cause(error),
            detail: detail(error),
            scope: FailureScope::of(error),
            class: stats::Class::of_error(error),
            local_sign: local_sign(error),
        }
    }
}

fn cause(error: &Error) -> Cause {
    match error.kind() {
        ErrorKind::Timeout(_) => timeout(error.phase()),
        ErrorKind::Io(io) => of_io(io.kind(), error.phase()),
        ErrorKind::Tls(fault) => tls(fault),
        ErrorKind::Dns(error) | ErrorKind::Proxy(ProxyFault::Name(error)) => dns(error),
        ErrorKind::Peer(PeerFault::Empty) => Cause::Reset,
        ErrorKind::Peer(PeerFault::Truncated) => Cause::Truncated,
        ErrorKind::Peer(_) | ErrorKind::Redirect { .. } => Cause::Protocol,
        // This program was busy: its limit says nothing about the answer.
        ErrorKind::Limit(LimitExceeded::HeldBytes(_)) | ErrorKind::Shortage(_) => Cause::Timeout,
        ErrorKind::Limit(_) => Cause::Protocol,
        ErrorKind::Proxy(fault) => proxy(fault),
        ErrorKind::Denied(_) | ErrorKind::DeniedName(_) => Cause::PrivateAddress,
        ErrorKind::Misuse(_) => Cause::InvalidUrl,
        // Neither happens to a request of a check, apart from a breaker, whose last failure is known.
        _ => Cause::Reset,
    }
}

/// The system's error in this phase.
fn of_io(kind: io::ErrorKind, phase: Phase) -> Cause {
    match (kind, phase) {
        (io::ErrorKind::ConnectionRefused, _) => Cause::Refused,
        (kind, _) if is_unreachable(kind) => Cause::Unreachable,
        (io::ErrorKind::TimedOut, Phase::Connect) => Cause::ConnectTimeout,
        (io::ErrorKind::ConnectionReset, Phase::Connect) => Cause::Reset,
        // A connection that could not be made, for another reason.
        (_, Phase::Queue | Phase::Resolve | Phase::Connect) => Cause::Refused,
        (_, Phase::Tls) => Cause::Tls,
        _ => Cause::Reset,
    }
}

/// `ENETUNREACH`, `ENETDOWN`, `EHOSTUNREACH`
fn is_unreachable(kind: io::ErrorKind) -> bool {
    matches!(
        kind,
        io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::NetworkDown
            | io::ErrorKind::HostUnreachable
    )
}

/// The time limit that ended a call in this phase.
fn timeout(phase: Phase) -> Cause {
    match phase {
        Phase::Resolve => Cause::DnsServfail,
        Phase::Connect | Phase::Proxy | Phase::Tls => Cause::ConnectTimeout,
        Phase::FirstByte => Cause::FirstByteTimeout,
        // Waiting for a connection, sending, or receiving the rest.
        _ => Cause::Timeout,
    }
}

fn tls(fault: &TlsFault) -> Cause {
    match fault {
        TlsFault::Expired { .. } => Cause::TlsExpired,
        TlsFault::NotYetValid { .. } => Cause::TlsNotYetValid,
        TlsFault::WrongName { .. } | TlsFault::ServerName(_) => Cause::TlsName,
        TlsFault::UnknownIssuer
        | TlsFault::Revoked
        | TlsFault::RevocationUnknown
        | TlsFault::CrlExpired { .. }
        | TlsFault::BadCertificate(_) => Cause::TlsUntrusted,
        TlsFault::Truncated => Cause::Truncated,
        _ => Cause::Tls,
    }
}

fn dns(error: &DnsError) -> Cause {
    match error {
        DnsError::NotFound => Cause::DnsNxdomain,
        DnsError::InvalidName => Cause::InvalidUrl,
        // A name without addresses exists, so that this is not final.
        _ => Cause::DnsServfail,
    }
}

fn proxy(fault: &ProxyFault) -> Cause {
    match fault {
        ProxyFault::Status(407) | ProxyFault::Credentials | ProxyFault::NoMethod => Cause::Auth,
        ProxyFault::Status(status @ 500..=599) => Cause::Status5xx(*status),
        ProxyFault::Closed => Cause::Reset,
        ProxyFault::Socks(SocksReply::NetworkUnreachable | SocksReply::HostUnreachable) => {
            Cause::Unreachable
        }
        ProxyFault::Status(_) | ProxyFault::Socks(_) => Cause::Refused,
        _ => Cause::Protocol,
    }
}

/// The cause in words, with the system's error behind it.
fn detail(error: &Error) -> String {
    let text = match error.kind() {
        ErrorKind::Denied(ip) => format!("{ip} is a private address"),
        ErrorKind::DeniedName(name) => {
            format!("only the proxy can look up {name}, so its address cannot be checked")
        }
        _ => error.what().to_string(),
    };
    let text = match error.kind() {
        ErrorKind::Tls(_) => text.strip_prefix("a ").unwrap_or(&text),
        _ => &text,
    };
    match error.source() {
        Some(source) => format!("{text}: {source}"),
        None => text.to_owned(),
    }
}

fn local_sign(error: &Error) -> Option<LocalSign> {
    match error.kind() {
        ErrorKind::Shortage(_) | ErrorKind::Dns(DnsError::Shortage(_)) => {
            Some(LocalSign::TooManyFiles)
        }
        ErrorKind::Dns(DnsError::Config(_) | DnsError::Unanswered | DnsError::Resolver(_)) => {
            Some(LocalSign::ResolverUnreachable)
        }
        ErrorKind::Io(io) if is_unreachable(io.kind()) => Some(LocalSign::NetworkUnreachable),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn faults_of_certificates_are_told_apart() {
        let day = Duration::from_secs(86_400);
        let (expected, presented) = ("a".into(), Vec::new());
        let name = TlsFault::WrongName {
            expected,
            presented,
        };
        let own = TlsFault::BadCertificate("self-signed".into());
        for (fault, expected) in [
            (TlsFault::Expired { ago: day }, Cause::TlsExpired),
            (TlsFault::NotYetValid { ahead: day }, Cause::TlsNotYetValid),
            (name, Cause::TlsName),
            (own, Cause::TlsUntrusted),
            (TlsFault::UnknownIssuer, Cause::TlsUntrusted),
            (TlsFault::NotTls, Cause::Tls),
            (TlsFault::HandshakeEof, Cause::Tls),
            (TlsFault::Truncated, Cause::Truncated),
        ] {
            assert_eq!(tls(&fault), expected, "{fault:?}");
        }
    }

    #[test]
    fn only_a_name_that_does_not_exist_is_negative() {
        for (error, expected) in [
            (DnsError::NotFound, Cause::DnsNxdomain),
            (DnsError::NoAddresses, Cause::DnsServfail),
            (DnsError::ServerFailure(2), Cause::DnsServfail),
            (DnsError::Timeout, Cause::DnsServfail),
            (DnsError::NotAsked, Cause::DnsServfail),
            (DnsError::InvalidName, Cause::InvalidUrl),
        ] {
            assert_eq!(dns(&error), expected, "{error:?}");
        }
    }

    #[test]
    fn only_a_refusal_is_refused() {
        use io::ErrorKind as Kind;
        for (kind, phase, expected) in [
            (Kind::ConnectionRefused, Phase::Connect, Cause::Refused),
            (Kind::NetworkUnreachable, Phase::Connect, Cause::Unreachable),
            (Kind::NetworkDown, Phase::Connect, Cause::Unreachable),
            (Kind::HostUnreachable, Phase::Connect, Cause::Unreachable),
            // A router said so after the connection was made.
            (Kind::HostUnreachable, Phase::FirstByte, Cause::Unreachable),
            (Kind::TimedOut, Phase::Connect, Cause::ConnectTimeout),
            (Kind::ConnectionReset, Phase::Connect, Cause::Reset),
            (Kind::PermissionDenied, Phase::Connect, Cause::Refused),
            (Kind::ConnectionReset, Phase::Tls, Cause::Tls),
            (Kind::ConnectionReset, Phase::Head, Cause::Reset),
        ] {
            assert_eq!(of_io(kind, phase), expected, "{kind:?} {phase:?}");
        }
    }

    #[test]
    fn proxies_and_phases() {
        let unreachable = ProxyFault::Socks(SocksReply::HostUnreachable);
        for (fault, expected) in [
            (ProxyFault::Status(407), Cause::Auth),
            (ProxyFault::Status(502), Cause::Status5xx(502)),
            (ProxyFault::Status(403), Cause::Refused),
            (ProxyFault::Closed, Cause::Reset),
            (unreachable, Cause::Unreachable),
            (ProxyFault::NotSocks5(72), Cause::Protocol),
            (ProxyFault::Name(DnsError::NotFound), Cause::Protocol),
        ] {
            assert_eq!(proxy(&fault), expected, "{fault:?}");
        }
        for (phase, expected) in [
            (Phase::Resolve, Cause::DnsServfail),
            (Phase::Connect, Cause::ConnectTimeout),
            (Phase::Tls, Cause::ConnectTimeout),
            (Phase::FirstByte, Cause::FirstByteTimeout),
            (Phase::Head, Cause::Timeout),
            (Phase::Body, Cause::Timeout),
        ] {
            assert_eq!(timeout(phase), expected, "{phase:?}");
        }
    }
}
