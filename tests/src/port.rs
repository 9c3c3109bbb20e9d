//! Free ports for servers that are programs.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use socket2::{Domain, Socket, Type};

/// A port of 127.0.0.1 that is reserved for one server, also while the server is down.
///
/// The socket is bound and does not listen. Servers set `SO_REUSEADDR` and so can bind beside it; the system gives the
/// port to no one who asks for any.
#[derive(Debug)]
pub struct Port {
    address: SocketAddr,
    _bound: Socket,
}

impl Port {
    /// Reserves a free port.
    ///
    /// # Errors
    /// The system's, when it has no socket or no port left.
    pub fn reserve() -> io::Result<Self> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        socket.set_reuse_address(true)?;
        socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into())?;
        let address = socket.local_addr()?.as_socket();
        Ok(Self {
            address: address.ok_or(io::ErrorKind::AddrNotAvailable)?,
            _bound: socket,
        })
    }

    /// The address to listen on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}
