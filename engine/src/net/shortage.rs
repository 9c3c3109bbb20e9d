//! The errors of the system that mean a shortage on this machine.

use std::io;
use std::net::SocketAddr;

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use socket2::{Domain, SockAddr, Socket, Type};

use crate::error::Shortage;

/// Recognizes a shortage in an error of making a socket or a queue of events.
#[cold]
pub(super) fn recognized(error: io::Error) -> io::Error {
    match shortage_in(&error) {
        Some(shortage) => shortage.into(),
        None => error,
    }
}

/// The shortage that caused an error of making a descriptor.
#[cold]
pub(super) fn shortage_in(error: &io::Error) -> Option<Shortage> {
    match error.raw_os_error().map(Errno::from_raw_os_error)? {
        Errno::MFILE => Some(Shortage::Descriptors {
            limit: getrlimit(Resource::Nofile).current,
        }),
        Errno::NFILE => Some(Shortage::SystemDescriptors),
        Errno::NOBUFS | Errno::NOMEM | Errno::NOSPC => Some(Shortage::Memory),
        _ => None,
    }
}

/// The shortage that there is now, for errors that do not tell their cause.
#[cold]
pub(super) fn shortage_now() -> Option<Shortage> {
    let probe = Socket::new(Domain::IPV4, Type::DGRAM, None);
    probe.err().as_ref().and_then(shortage_in)
}

/// Recognizes a shortage in an error of `connect`.
#[cold]
pub(super) fn recognized_in_connect(error: io::Error, to: SocketAddr) -> io::Error {
    match error.kind() {
        io::ErrorKind::AddrNotAvailable if has_source_for(to) => Shortage::Ports.into(),
        _ => recognized(error),
    }
}

/// Whether this machine has an address from which it can connect to `to`. Without one (IPv6 is turned off), `connect`
/// fails with the same error as without a free port. The ports of UDP are others.
fn has_source_for(to: SocketAddr) -> bool {
    Socket::new(Domain::for_address(to), Type::DGRAM, None)
        .and_then(|socket| socket.connect(&SockAddr::from(to)))
        .is_ok()
}
