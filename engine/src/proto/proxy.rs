//! What the handshakes with proxies, [`Socks5`](super::Socks5) and [`Tunnel`](super::Tunnel), have in common.

/// The progress of a handshake.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Handshake {
    /// There is more to send or to read.
    Pending,
    /// The connection to the target is open.
    Done,
}
