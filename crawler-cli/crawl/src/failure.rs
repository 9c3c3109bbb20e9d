//! Classifies errors of requests by what they say about further attempts: at the URL, or at the whole host.

use courser::error::{DnsError, LimitExceeded, PeerFault, TlsFault};
use courser::proto::ProxyFault;
use courser::{ErrorKind, Phase};

/// What a failure says about further attempts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FailureScope {
    /// Every attempt would fail in the same way.
    Final,
    /// This request may succeed later.
    Request,
    /// The host cannot be reached. All its requests pause; if the host stays away, its crawl ends.
    Host,
    /// The host cannot be reached, and further attempts would not help: its name does not exist, or its certificate is
    /// not trusted. Ends the crawl of a host that has never replied. A host that has replied is treated as with
    /// [`Host`](Self::Host): one of several servers behind the name may be at fault.
    HostFinal,
}

impl FailureScope {
    /// The scope of an error of the engine.
    pub fn of(error: &courser::Error) -> Self {
        let opening = is_opening(error.phase());
        match error.kind() {
            ErrorKind::Io(_) | ErrorKind::Timeout(_) if opening => Self::Host,
            ErrorKind::Io(_) | ErrorKind::Timeout(_) => Self::Request,
            // This machine is short of something for a while.
            ErrorKind::Shortage(_) | ErrorKind::Limit(LimitExceeded::HeldBytes(_)) => Self::Request,
            ErrorKind::Peer(
                PeerFault::Empty | PeerFault::Truncated | PeerFault::BadContentCoding,
            ) => Self::Request,
            ErrorKind::Dns(error) | ErrorKind::Proxy(ProxyFault::Name(error)) => match error {
                DnsError::NotFound
                | DnsError::NoAddresses
                | DnsError::InvalidName
                | DnsError::Config(_) => Self::HostFinal,
                // Too many lookups of this program: the name servers were not asked.
                DnsError::QueueFull(_) | DnsError::NotAsked => Self::Request,
                _ => Self::Host,
            },
            ErrorKind::Tls(TlsFault::HandshakeEof) => Self::Host,
            ErrorKind::Tls(_) if opening => Self::HostFinal,
            ErrorKind::Tls(_) => Self::Request,
            // The proxy could not reach the host, which may come back soon.
            ErrorKind::Proxy(
                ProxyFault::Status(500..) | ProxyFault::Socks(_) | ProxyFault::Closed,
            ) => Self::Host,
            ErrorKind::Proxy(_) | ErrorKind::Denied(_) => Self::HostFinal,
            _ => Self::Final,
        }
    }
}

/// Whether a call in this phase has no usable connection yet.
pub fn is_opening(phase: Phase) -> bool {
    matches!(
        phase,
        Phase::Resolve | Phase::Connect | Phase::Proxy | Phase::Tls
    )
}
