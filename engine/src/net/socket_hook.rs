//! Where a program takes part in opening sockets.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

use super::Address;
use crate::hook::Hook;

/// What a program does itself when a connection is opened: set further options of the socket, or open another kind of
/// connection. Everything above the socket stays as it is: pools, time limits, proxies, TLS, HTTP.
///
/// A client looks names up and checks addresses before it calls the hook. A hook runs on the thread that drives the
/// client, so it must not block. An error of a hook is the error of that attempt to connect. Clones of one hook are equal.
///
/// A simulated network (feature `sim`) has no sockets, and calls no hook.
///
/// Requests to a server in the same process, through memory:
///
/// ```
/// use std::io::{Read, Write};
/// use std::os::unix::net::UnixStream;
/// use courser::{HostClient, HostConfig, Response, SocketHook, SocketOptions, Upstream};
///
/// let connect = SocketHook::connect(|_address| {
///     let (client, mut server) = UnixStream::pair()?;
///     std::thread::spawn(move || {
///         let mut request = [0; 1024];
///         let _ = server.read(&mut request);
///         let _ = server.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
///     });
///     Ok(client.into())
/// });
/// let config = HostConfig {
///     socket: SocketOptions { hook: Some(connect), ..SocketOptions::default() },
///     ..HostConfig::default()
/// };
/// let mut client = HostClient::new(Upstream::tcp([([192, 0, 2, 1], 80).into()]), config)?;
/// let mut response = Response::new();
/// client.get("/", &mut response)?;
/// assert_eq!(response.body(), b"hi");
/// # Ok::<(), courser::Error>(())
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SocketHook(pub(super) Kind);

#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    Configure(Hook<Configure>),
    Connect(Hook<Connect>),
}

type Configure = dyn Fn(BorrowedFd<'_>, &Address) -> io::Result<()> + Send + Sync;
type Connect = dyn Fn(&Address) -> io::Result<OwnedFd> + Send + Sync;

impl SocketHook {
    /// `configure` gets each new socket, after the other [`SocketOptions`](super::SocketOptions) were set and before the
    /// socket is bound and connected to the address.
    ///
    /// ```
    /// use courser::{SocketHook, SocketOptions};
    ///
    /// let small_buffers = SocketHook::configure(|socket, _address| {
    ///     socket2::SockRef::from(&socket).set_recv_buffer_size(16 * 1024)
    /// });
    /// let options = SocketOptions { hook: Some(small_buffers), ..SocketOptions::default() };
    /// ```
    pub fn configure(
        configure: impl Fn(BorrowedFd<'_>, &Address) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        Self(Kind::Configure(Hook(Arc::new(configure))))
    }

    /// `connect` opens the connection for an address, and returns a stream socket of any family: TCP, Unix, vsock, one
    /// end of a pair. The socket is connected, or is non-blocking and about to be connected. It becomes non-blocking.
    /// The other [`SocketOptions`](super::SocketOptions) are not set on it.
    pub fn connect(
        connect: impl Fn(&Address) -> io::Result<OwnedFd> + Send + Sync + 'static,
    ) -> Self {
        Self(Kind::Connect(Hook(Arc::new(connect))))
    }
}
