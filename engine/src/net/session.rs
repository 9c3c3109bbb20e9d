//! What a TLS session and its transport have in common.

use std::io;

/// The stream below a session: a socket, or another session.
#[cfg_attr(
    not(feature = "tls"),
    expect(dead_code, reason = "no session calls it")
)]
pub(crate) trait LowerStream {
    /// Like [`Net::read`](super::Net::read).
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize>;

    /// Writes some of `bytes`. Returns a short count, or `WouldBlock`, if there is no room.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Whether a read that returned `n` bytes with room for `room` has emptied the stream.
    fn is_drained(&self, n: usize, room: usize) -> bool {
        n < room
    }

    /// Whether there may be more to read after a read that returned `WouldBlock`.
    fn has_more(&self) -> bool {
        false
    }

    /// The least room, in bytes, that a read needs.
    fn min_room(&self) -> usize {
        1
    }
}

/// How far a call of `Tls::handshake` came.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum HandshakeProgress {
    /// The handshake is complete.
    Done,
    /// The stream has nothing to read, or no room: it will have a new event.
    Blocked,
    /// There may be more to read. The handshake goes on in the next iteration.
    Budget,
}
