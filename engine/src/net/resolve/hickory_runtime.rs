//! The sockets of `hickory-resolver`. That crate keeps only the IP address and the port of a server, and a link-local
//! address is not reached without its scope (RFC 4007). So each socket here is made with the address of its server.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use hickory_resolver::net::runtime::{
    DnsUdpSocket, RuntimeProvider, TokioHandle, TokioRuntimeProvider, TokioTime,
};
use tokio::net::UdpSocket;

/// Opens sockets to one server.
#[derive(Clone)]
pub(super) struct ServerRuntime {
    tokio: TokioRuntimeProvider,
    server: SocketAddr,
}

impl ServerRuntime {
    pub(super) fn new(server: SocketAddr) -> Self {
        Self {
            tokio: TokioRuntimeProvider::new(),
            server,
        }
    }
}

type Opening<T> = Pin<Box<dyn Send + Future<Output = io::Result<T>>>>;

impl RuntimeProvider for ServerRuntime {
    type Handle = TokioHandle;
    type Timer = TokioTime;
    type Udp = ServerSocket;
    type Tcp = <TokioRuntimeProvider as RuntimeProvider>::Tcp;

    fn create_handle(&self) -> Self::Handle {
        self.tokio.create_handle()
    }

    fn connect_tcp(
        &self,
        _: SocketAddr,
        local: Option<SocketAddr>,
        timeout: Option<Duration>,
    ) -> Opening<Self::Tcp> {
        self.tokio.connect_tcp(self.server, local, timeout)
    }

    fn bind_udp(&self, local: SocketAddr, _: SocketAddr) -> Opening<Self::Udp> {
        let (binding, server) = (self.tokio.bind_udp(local, self.server), self.server);
        Box::pin(async move {
            let socket = binding.await?;
            Ok(ServerSocket { socket, server })
        })
    }
}

/// A datagram socket that sends to one server.
pub(super) struct ServerSocket {
    socket: UdpSocket,
    server: SocketAddr,
}

impl DnsUdpSocket for ServerSocket {
    type Time = TokioTime;

    fn poll_recv_from(
        &self,
        cx: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<io::Result<(usize, SocketAddr)>> {
        DnsUdpSocket::poll_recv_from(&self.socket, cx, buf)
    }

    fn poll_send_to(
        &self,
        cx: &mut Context<'_>,
        buf: &[u8],
        _: SocketAddr,
    ) -> Poll<io::Result<usize>> {
        self.socket.poll_send_to(cx, buf, self.server)
    }
}
