//! What this machine lacks when a connection cannot be opened.

use std::fmt;
use std::io;

/// What this machine had run out of when a connection was to be opened, or a name to be looked up. The host of the call
/// is not to blame: a shortage counts neither for the [breaker](crate::HostConfig::breaker) nor for the
/// [balancer](crate::HostConfig::balance).
///
/// While the client has connections, its calls wait for one of them, as they do at
/// [`max_connections`](crate::HostConfig::max_connections). A call fails with this error only if the client has had no
/// connection for a second and has tried four times, or under
/// [`WaitPolicy::FailFast`](crate::policy::WaitPolicy::FailFast). Attempts at several addresses that have taken the
/// last descriptors give way to the next address.
///
/// ```
/// use courser::error::Shortage;
///
/// let shortage = Shortage::Descriptors { limit: Some(1024) };
/// assert_eq!(
///     shortage.to_string(),
///     "no file descriptor is left: the limit of this process is 1024 (RLIMIT_NOFILE)",
/// );
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Shortage {
    /// File descriptors of this process (`EMFILE`).
    Descriptors {
        /// `RLIMIT_NOFILE` at that time; `None` without a limit.
        limit: Option<u64>,
    },
    /// File descriptors of the whole system (`ENFILE`).
    SystemDescriptors,
    /// Memory of the system for sockets (`ENOBUFS`, `ENOMEM`), or places to watch them (`ENOSPC`).
    Memory,
    /// Local ports for connections to this address (`EADDRNOTAVAIL`).
    Ports,
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Descriptors { limit: Some(limit) } => write!(
                f,
                "no file descriptor is left: the limit of this process is {limit} (RLIMIT_NOFILE)"
            ),
            Self::Descriptors { limit: None } => f.write_str("no file descriptor is left"),
            Self::SystemDescriptors => f.write_str("no file descriptor is left in the system"),
            Self::Memory => f.write_str("the system has no memory left for sockets"),
            Self::Ports => f.write_str("no local port is left for this address"),
        }
    }
}

impl std::error::Error for Shortage {}

/// How a [`Net`](crate::net::Net) reports a shortage.
impl From<Shortage> for io::Error {
    fn from(shortage: Shortage) -> Self {
        let kind = match shortage {
            Shortage::Memory => io::ErrorKind::OutOfMemory,
            Shortage::Ports => io::ErrorKind::AddrNotAvailable,
            Shortage::Descriptors { .. } | Shortage::SystemDescriptors => io::ErrorKind::Other,
        };
        Self::new(kind, shortage)
    }
}
