//! What a failed request says about the next attempt.

use courser::proto::ProxyFault;
use courser::{DnsError, ErrorKind, PeerFault, Phase, TlsFault};

/// What a failure says about the next attempt.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FailureScope {
    /// The same will happen again.
    Final,
    /// This request may succeed later.
    Request,
    /// The host is not there. All its requests pause, and when it stays away the crawl of it ends.
    Host,
    /// The same, and more attempts will not help: there is no such name, or nobody trusts its certificate. Ends the
    /// crawl of a host that has never replied. One that has is taken to be away, as with [`Host`](Self::Host): one
    /// server of several can be at fault.
    HostFinal,
}

impl FailureScope {
    /// By what the engine says.
    pub fn of(error: &courser::Error) -> Self {
        let opening = is_opening(error.phase());
        match error.kind() {
            ErrorKind::Io(_) | ErrorKind::Timeout(_) if opening => Self::Host,
            ErrorKind::Io(_) | ErrorKind::Timeout(_) => Self::Request,
            ErrorKind::Peer(
                PeerFault::Empty | PeerFault::Truncated | PeerFault::BadContentCoding,
            ) => Self::Request,
            ErrorKind::Dns(error) | ErrorKind::Proxy(ProxyFault::Name(error)) => match error {
                DnsError::NotFound
                | DnsError::NoAddresses
                | DnsError::InvalidName
                | DnsError::Config(_) => Self::HostFinal,
                _ => Self::Host,
            },
            ErrorKind::Tls(TlsFault::HandshakeEof) => Self::Host,
            ErrorKind::Tls(_) if opening => Self::HostFinal,
            ErrorKind::Tls(_) => Self::Request,
            // What the proxy says about the host, which may be back soon.
            ErrorKind::Proxy(
                ProxyFault::Status(500..) | ProxyFault::Socks(_) | ProxyFault::Closed,
            ) => Self::Host,
            ErrorKind::Proxy(_) | ErrorKind::Denied(_) => Self::HostFinal,
            _ => Self::Final,
        }
    }
}

/// Whether a call in this phase has no connection yet.
pub fn is_opening(phase: Phase) -> bool {
    matches!(
        phase,
        Phase::Resolve | Phase::Connect | Phase::Proxy | Phase::Tls
    )
}
