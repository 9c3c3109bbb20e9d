//! What a TLS session and its transport have in common.

use std::io::{self, IoSlice};

use super::tls::TlsInfo;

/// A TLS session over a stream. All buffers that it is given are at least [`MIN_BUFFER`](super::tls::MIN_BUFFER) long, or
/// twice that for a session inside another one; a longer buffer is used, too.
pub(crate) trait Session: Send + Sync {
    /// Continues the handshake, with a limited number of reads of the stream.
    ///
    /// # Errors
    /// A [`TlsFault`](crate::error::TlsFault), or an error of the stream.
    fn handshake(
        &mut self,
        lower: &mut dyn LowerStream,
        scratch: &mut [u8],
    ) -> io::Result<HandshakeProgress>;

    /// Reads the stream once, and decrypts. Puts the plaintext at the start of `buf` and returns its length.
    ///
    /// Unlike with a plain stream, neither a short count nor `WouldBlock` means that the stream is empty;
    /// [`is_drained`](Self::is_drained) says so.
    ///
    /// # Errors
    /// `WouldBlock` if there was no plaintext in what was read, or nothing to read; a
    /// [`TlsFault`](crate::error::TlsFault), also if the stream ends without `close_notify`; an error of the stream.
    /// `Ok(0)` is the end that `close_notify` announced.
    fn read(&mut self, lower: &mut dyn LowerStream, buf: &mut [u8]) -> io::Result<usize>;

    /// Whether the last read has emptied the stream, so that later data has a new event.
    fn is_drained(&self) -> bool;

    /// Whether the last read brought much ciphertext and little plaintext. Such records cost far more than their bytes.
    fn is_lean(&self) -> bool;

    /// Encrypts and writes a few records of the parts, so that a peer that reads fast does not get all at once. Unlike
    /// with a plain stream, a short count does not mean that the stream is full; [`is_full`](Self::is_full) says so.
    ///
    /// Counts only plaintext whose records were written completely, so that plaintext that is not counted was not
    /// received. Until all is counted, the caller must repeat the call with the same bytes from the first uncounted one
    /// on (and may append more): these bytes may be encrypted already.
    ///
    /// # Errors
    /// `WouldBlock` if nothing can be counted; a [`TlsFault`](crate::error::TlsFault); an error of the stream.
    fn write(
        &mut self,
        lower: &mut dyn LowerStream,
        scratch: &mut [u8],
        parts: &[IoSlice<'_>],
    ) -> io::Result<usize>;

    /// Whether the stream had no room for all that was encrypted, so that room has a new event.
    fn is_full(&self) -> bool;

    /// The number of bytes of plaintext that are encrypted and that no [`write`](Self::write) has counted.
    fn uncounted(&self) -> usize;

    /// Sends `close_notify`, if there is room for it and the peer can decrypt it.
    fn close_notify(&mut self, lower: &mut dyn LowerStream);

    /// The result of the handshake; `None` before its end.
    fn info(&self) -> Option<TlsInfo>;
}

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

/// How far a call of [`Session::handshake`] came.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum HandshakeProgress {
    /// The handshake is complete.
    Done,
    /// The stream has nothing to read, or no room: it will have a new event.
    Blocked,
    /// There may be more to read. The handshake goes on in the next iteration.
    Budget,
}
