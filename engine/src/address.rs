//! The address of a connection, and the answer of a name lookup: plain values that every layer may use.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::error::DnsError;

/// The address that a connection goes to.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Address {
    /// TCP to an address and a port.
    Tcp(SocketAddr),
    /// A Unix stream socket by its path. On Linux, a path whose first byte is NUL is a name in the abstract namespace, as
    /// in unix(7); `Display` shows that byte as `@`.
    Unix(Arc<Path>),
}

impl Address {
    /// The address without its port; `None` for a Unix socket.
    pub fn ip(&self) -> Option<IpAddr> {
        match self {
            Self::Tcp(address) => Some(address.ip()),
            Self::Unix(_) => None,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => {
                let text = path.to_string_lossy();
                match text.strip_prefix('\0') {
                    Some(name) => write!(f, "unix:@{name}"),
                    None => write!(f, "unix:{text}"),
                }
            }
        }
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address)
    }
}

/// An IPv6 address without its brackets.
pub(crate) fn bare(host: &str) -> &str {
    let bracketed = host.strip_prefix('[');
    let bracketed = bracketed.and_then(|host| host.strip_suffix(']'));
    bracketed.unwrap_or(host)
}

/// The answer of a lookup.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Answer {
    /// The addresses of the name, or why it has none.
    pub addresses: Result<Vec<IpAddr>, DnsError>,
    /// How long the answer may be kept; `None` if the resolver does not know.
    pub ttl: Option<Duration>,
}

impl Answer {
    /// These addresses, which may be kept for `ttl`.
    pub fn found(addresses: impl IntoIterator<Item = IpAddr>, ttl: Duration) -> Self {
        Self::new(Ok(addresses.into_iter().collect()), Some(ttl))
    }

    /// No addresses, for this reason.
    pub fn failed(error: DnsError) -> Self {
        Self::new(Err(error), None)
    }

    pub(crate) fn new(addresses: Result<Vec<IpAddr>, DnsError>, ttl: Option<Duration>) -> Self {
        Self { addresses, ttl }
    }
}
