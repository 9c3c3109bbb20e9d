//! Names to addresses: what a resolver is, and what it answers.
//!
//! [`HickoryResolver`] asks name servers itself, [`SystemResolver`] asks the system's `getaddrinfo`. Both work on
//! threads of their own and answer through a [`Reply`]. Neither keeps answers: the client's cache is in front of them.
//! Literal addresses and `localhost` (RFC 6761 §6.3) never get this far.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

mod files;
mod hickory;
mod system;

pub use hickory::{HickoryResolver, NameServers};
pub use system::SystemResolver;

/// Looks names up, without blocking.
///
/// ```
/// use std::time::Duration;
/// use courser::{Answer, DnsError, Reply, Resolver};
///
/// struct Fixed;
///
/// impl Resolver for Fixed {
///     fn lookup(&mut self, name: &str, reply: Reply) {
///         reply.answer(match name {
///             "db.internal" => Answer::found(["10.0.0.7".parse().unwrap()], Duration::from_secs(30)),
///             _ => Answer::failed(DnsError::NotFound),
///         });
///     }
/// }
///
/// Fixed.lookup("db.internal", Reply::new(|answer| assert_eq!(answer.addresses.unwrap().len(), 1)));
/// ```
pub trait Resolver: Send {
    /// Starts a lookup of `name`, which is lower-case ASCII and may end in a dot. `reply` takes the answer, from any
    /// thread, now or later. The client asks for each name once at a time, and bounds the time that its calls wait.
    fn lookup(&mut self, name: &str, reply: Reply);
}

/// What a name has.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Answer {
    /// Its addresses, or why there are none.
    pub addresses: Result<Vec<IpAddr>, DnsError>,
    /// How long that holds, `None` if the resolver cannot know.
    pub ttl: Option<Duration>,
}

impl Answer {
    /// These addresses, for that long.
    pub fn found(addresses: impl IntoIterator<Item = IpAddr>, ttl: Duration) -> Self {
        Self {
            addresses: Ok(addresses.into_iter().collect()),
            ttl: Some(ttl),
        }
    }

    /// No addresses.
    pub fn failed(error: DnsError) -> Self {
        Self {
            addresses: Err(error),
            ttl: None,
        }
    }
}

/// Where a [`Resolver`] puts its answer. Dropped without one, it answers [`DnsError::Unanswered`].
pub struct Reply(Option<Box<dyn FnOnce(Answer) + Send>>);

impl Reply {
    /// Hands the answer to `deliver`, on the thread that answers.
    pub fn new(deliver: impl FnOnce(Answer) + Send + 'static) -> Self {
        Self(Some(Box::new(deliver)))
    }

    /// Answers.
    pub fn answer(mut self, answer: Answer) {
        if let Some(deliver) = self.0.take() {
            deliver(answer);
        }
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if let Some(deliver) = self.0.take() {
            deliver(Answer::failed(DnsError::Unanswered));
        }
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reply")
    }
}

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
