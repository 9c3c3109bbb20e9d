//! Why a name has no addresses.

use std::fmt;
use std::sync::Arc;

/// Why a name has no addresses. All calls that wait for a name share its failure.
///
/// ```
/// let error = courser::DnsError::ServerFailure(2);
/// assert_eq!(error.to_string(), "the name server answered SERVFAIL");
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum DnsError {
    /// It is no name that a name server could know (RFC 1035 §2.3.4: labels of 1 to 63 bytes, 253 in all).
    InvalidName,
    /// There is no such name (NXDOMAIN).
    NotFound,
    /// The name exists without an address (NODATA).
    NoAddresses,
    /// The name servers answered with this code (RFC 1035 §4.1.1): 2 is SERVFAIL, 5 is REFUSED.
    ServerFailure(u16),
    /// No name server answered in time.
    Timeout,
    /// The resolver's configuration cannot be used; says which file and why.
    Config(Arc<str>),
    /// The resolver failed otherwise: no name server could be reached, or the answer was broken.
    Resolver(Arc<str>),
    /// The resolver gave no answer: it has ended, or lost the lookup.
    Unanswered,
}

impl DnsError {
    /// Whether that is an answer about the name, and no failure to get one.
    pub(crate) fn is_negative(&self) -> bool {
        matches!(self, Self::NotFound | Self::NoAddresses | Self::InvalidName)
    }
}

impl fmt::Display for DnsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidName => f.write_str("not a host name"),
            Self::NotFound => f.write_str("no such host"),
            Self::NoAddresses => f.write_str("the host has no address"),
            Self::ServerFailure(code) => {
                f.write_str("the name server answered ")?;
                match code {
                    1 => f.write_str("FORMERR"),
                    2 => f.write_str("SERVFAIL"),
                    4 => f.write_str("NOTIMP"),
                    5 => f.write_str("REFUSED"),
                    code => write!(f, "with code {code}"),
                }
            }
            Self::Timeout => f.write_str("no name server answered in time"),
            Self::Config(what) => write!(f, "unusable resolver configuration: {what}"),
            Self::Resolver(what) => write!(f, "the lookup failed: {what}"),
            Self::Unanswered => f.write_str("the resolver gave no answer"),
        }
    }
}

impl std::error::Error for DnsError {}
