//! Why a name has no addresses.

use std::fmt;
use std::sync::Arc;

use super::Shortage;

/// Why a name has no addresses. All calls that wait for the name get the same error.
///
/// ```
/// let error = courser::error::DnsError::ServerFailure(2);
/// assert_eq!(error.to_string(), "the name server answered SERVFAIL");
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum DnsError {
    /// The name is not valid in DNS (RFC 1035 §2.3.4: labels of 1 to 63 bytes, 253 bytes in all).
    InvalidName,
    /// The name does not exist (NXDOMAIN).
    NotFound,
    /// The name exists and has no address (NODATA).
    NoAddresses,
    /// The name servers answered with this code (RFC 1035 §4.1.1): 2 is SERVFAIL, 5 is REFUSED.
    ServerFailure(u16),
    /// No name server answered in time.
    Timeout,
    /// Too many lookups wait for the resolver, in all or below the domain of this name. The number is the limit: see
    /// [`HickoryResolver::max_waiting`](crate::HickoryResolver::max_waiting).
    QueueFull(usize),
    /// The lookup waited too long for other lookups, and no name server was asked.
    NotAsked,
    /// The resolver had no descriptor left, or the like, to ask. Calls do not fail with this error: they wait, or fail,
    /// as without a descriptor for their connection (see [`Shortage`]).
    Shortage(Shortage),
    /// The configuration of the resolver is not usable. The text names the file and the reason.
    Config(Arc<str>),
    /// The lookup failed otherwise: no name server could be reached, or its answer was malformed.
    Resolver(Arc<str>),
    /// The resolver gave no answer: it has ended, or lost the lookup.
    Unanswered,
}

impl DnsError {
    /// Whether the resolver was too busy to ask, or could not ask: the error says nothing about the name.
    pub(crate) fn is_overload(&self) -> bool {
        matches!(
            self,
            Self::QueueFull(_) | Self::NotAsked | Self::Shortage(_)
        )
    }

    /// Whether the resolver of this program is at fault: the error says nothing about the host.
    pub(crate) fn is_local(&self) -> bool {
        self.is_overload() || matches!(self, Self::Config(_) | Self::Unanswered)
    }

    /// Whether the error is an answer about the name, and not a failed lookup.
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
            Self::QueueFull(most) => {
                write!(f, "too many lookups wait for the resolver (limit: {most})")
            }
            Self::NotAsked => f.write_str("the lookup waited too long for other lookups"),
            Self::Shortage(shortage) => shortage.fmt(f),
            Self::Config(what) => write!(f, "unusable resolver configuration: {what}"),
            Self::Resolver(what) => write!(f, "the lookup failed: {what}"),
            Self::Unanswered => f.write_str("the resolver gave no answer"),
        }
    }
}

impl std::error::Error for DnsError {}
