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
    let shortage = match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::MFILE) => Shortage::Descriptors {
            limit: getrlimit(Resource::Nofile).current,
        },
        Some(Errno::NFILE) => Shortage::SystemDescriptors,
        Some(Errno::NOBUFS | Errno::NOMEM | Errno::NOSPC) => Shortage::Memory,
        _ => return error,
    };
    shortage.into()
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
