//! Where a connection goes, and what a name stands for: plain values that every layer may use.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::error::DnsError;

/// Where a connection goes.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Address {
    /// TCP to an address and a port.
    Tcp(SocketAddr),
    /// A Unix stream socket by its path.
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
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address)
    }
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
