//! The layers between a connection's bytes and its stream: none, TLS, or TLS inside the TLS session with a proxy.

use std::io::{self, IoSlice};

use super::Net;
use super::session::{HandshakeProgress, LowerStream};
use super::tls::{MIN_BUFFER, Tls, TlsInfo};

/// A stream with its TLS sessions. Without sessions, each method costs one comparison more than the stream itself.
pub(crate) struct Transport<S> {
    stream: S,
    sessions: Sessions,
}

/// The TLS sessions over a stream.
pub(super) enum Sessions {
    None,
    One(Box<Tls>),
    /// The outer session, with the proxy, and the inner session, with the server.
    Two(Box<[Tls; 2]>),
}

impl Sessions {
    #[inline]
    pub(super) fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }

    pub(super) fn read(
        &mut self,
        lower: &mut impl LowerStream,
        buf: &mut [u8],
    ) -> io::Result<usize> {
        match self {
            Self::None => lower.read(buf),
            Self::One(tls) => tls.read(lower, buf),
            Self::Two(both) => {
                let [outer, inner] = &mut **both;
                inner.read(&mut OuterSession { outer, lower }, buf)
            }
        }
    }

    /// As [`Transport::write`]. There is a session.
    pub(super) fn write(
        &mut self,
        lower: &mut impl LowerStream,
        scratch: &mut [u8],
        parts: &[IoSlice<'_>],
    ) -> io::Result<usize> {
        match self {
            Self::None => Err(io::ErrorKind::Unsupported.into()),
            Self::One(tls) => tls.write(lower, scratch, parts),
            Self::Two(both) => {
                let [outer, inner] = &mut **both;
                inner.write(&mut OuterSession { outer, lower }, scratch, parts)
            }
        }
    }

    /// Ends the sessions with `close_notify`, if there is room for it.
    pub(super) fn close_notify(&mut self, lower: &mut impl LowerStream) {
        match self {
            Self::None => {}
            Self::One(tls) => tls.close_notify(lower),
            Self::Two(both) => {
                let [outer, inner] = &mut **both;
                inner.close_notify(&mut OuterSession { outer, lower });
                outer.close_notify(lower);
            }
        }
    }
}

impl<S> Transport<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self {
            stream,
            sessions: Sessions::None,
        }
    }

    /// Whether bytes pass unchanged, so that [`read_append`](Self::read_append) may be used.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.sessions.is_none()
    }

    #[inline]
    pub(crate) fn stream(&self) -> &S {
        &self.stream
    }

    /// The same over what `change` makes of the stream; `None` if that is nothing.
    pub(crate) fn map<T>(self, change: impl FnOnce(S) -> Option<T>) -> Option<Transport<T>> {
        Some(Transport {
            stream: change(self.stream)?,
            sessions: self.sessions,
        })
    }

    pub(super) fn into_parts(self) -> (S, Sessions) {
        (self.stream, self.sessions)
    }

    /// Adds a session whose handshake is still to be done. At most two are kept.
    pub(crate) fn secure(&mut self, tls: Tls) {
        self.sessions = match std::mem::replace(&mut self.sessions, Sessions::None) {
            Sessions::None => Sessions::One(Box::new(tls)),
            Sessions::One(outer) => Sessions::Two(Box::new([*outer, tls])),
            two @ Sessions::Two(_) => two,
        };
    }

    /// What the innermost session has agreed on; `None` without a session or before the end of its handshake.
    pub(crate) fn info(&self) -> Option<TlsInfo> {
        match &self.sessions {
            Sessions::None => None,
            Sessions::One(tls) => tls.info(),
            Sessions::Two(both) => both[1].info(),
        }
    }

    /// Continues the handshake of the innermost session.
    pub(crate) fn handshake<N: Net<Stream = S>>(
        &mut self,
        net: &mut N,
        scratch: &mut [u8],
    ) -> io::Result<HandshakeProgress> {
        let stream = &mut self.stream;
        let lower = &mut Socket { net, stream };
        match &mut self.sessions {
            Sessions::None => Ok(HandshakeProgress::Done),
            Sessions::One(tls) => tls.handshake(lower, scratch),
            Sessions::Two(both) => {
                let [outer, inner] = &mut **both;
                inner.handshake(&mut OuterSession { outer, lower }, scratch)
            }
        }
    }

    /// Like [`Net::read`]. With TLS, `buf` is at least [`MIN_BUFFER`] long, or twice that for a session inside another.
    #[inline]
    pub(crate) fn read<N: Net<Stream = S>>(
        &mut self,
        net: &mut N,
        buf: &mut [u8],
    ) -> io::Result<usize> {
        if self.is_plain() {
            return net.read(&mut self.stream, buf);
        }
        self.read_tls(net, buf)
    }

    fn read_tls<N: Net<Stream = S>>(&mut self, net: &mut N, buf: &mut [u8]) -> io::Result<usize> {
        let stream = &mut self.stream;
        self.sessions.read(&mut Socket { net, stream }, buf)
    }

    /// Like [`Net::read_append`]. Returns `Unsupported` if there is a session.
    #[inline]
    pub(crate) fn read_append<N: Net<Stream = S>>(
        &mut self,
        net: &mut N,
        buf: &mut Vec<u8>,
    ) -> io::Result<usize> {
        if self.is_plain() {
            return net.read_append(&mut self.stream, buf);
        }
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Whether a read that returned `n` bytes with room for `room` has emptied the stream.
    #[inline]
    pub(crate) fn is_drained<N: Net<Stream = S>>(&self, net: &N, n: usize, room: usize) -> bool {
        match &self.sessions {
            Sessions::None => net.left_nothing(&self.stream, n, room),
            Sessions::One(tls) => tls.is_drained(),
            Sessions::Two(both) => both[1].is_drained(),
        }
    }

    /// Whether there may be more to read after a read that returned `WouldBlock`: with TLS, what was read may have
    /// brought no plaintext. No event will report the rest.
    #[inline]
    pub(crate) fn has_more(&self) -> bool {
        match &self.sessions {
            Sessions::None => false,
            Sessions::One(tls) => !tls.is_drained(),
            Sessions::Two(both) => !both[1].is_drained(),
        }
    }

    /// Whether the last read has cost much more than its bytes, so that the other connections come first.
    #[inline]
    pub(crate) fn is_lean(&self) -> bool {
        match &self.sessions {
            Sessions::None => false,
            Sessions::One(tls) => tls.is_lean(),
            Sessions::Two(both) => both.iter().any(Tls::is_lean),
        }
    }

    /// Whether the stream has room for more after a short write: with TLS, one write takes a few records only. No event
    /// will report that room.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        match &self.sessions {
            Sessions::None => false,
            Sessions::One(tls) => !tls.is_full(),
            Sessions::Two(both) => !both.iter().any(Tls::is_full),
        }
    }

    /// Like [`Net::write`]. With TLS, uncounted bytes may be encrypted already: the caller must repeat the call with
    /// the same bytes. `scratch` takes the ciphertext, and is as long as a read buffer.
    #[inline]
    pub(crate) fn write<N: Net<Stream = S>>(
        &mut self,
        net: &mut N,
        scratch: &mut [u8],
        parts: &[IoSlice<'_>],
    ) -> io::Result<usize> {
        if self.is_plain() {
            return net.write(&mut self.stream, parts);
        }
        self.write_tls(net, scratch, parts)
    }

    fn write_tls<N: Net<Stream = S>>(
        &mut self,
        net: &mut N,
        scratch: &mut [u8],
        parts: &[IoSlice<'_>],
    ) -> io::Result<usize> {
        let stream = &mut self.stream;
        let lower = &mut Socket { net, stream };
        self.sessions.write(lower, scratch, parts)
    }

    /// The number of bytes behind the counted ones that are encrypted already, so that the caller must repeat them.
    #[inline]
    pub(crate) fn uncounted(&self) -> usize {
        match &self.sessions {
            Sessions::None => 0,
            Sessions::One(tls) => tls.uncounted(),
            Sessions::Two(both) => both[1].uncounted(),
        }
    }

    /// Ends the sessions with `close_notify`, if there is room for it, and closes the connection.
    pub(crate) fn close<N: Net<Stream = S>>(mut self, net: &mut N) {
        let stream = &mut self.stream;
        self.sessions.close_notify(&mut Socket { net, stream });
        net.close(self.stream);
    }
}

struct Socket<'a, N: Net> {
    net: &'a mut N,
    stream: &'a mut N::Stream,
}

impl<N: Net> LowerStream for Socket<'_, N> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.net.read(self.stream, buf)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.net.write(self.stream, &[IoSlice::new(bytes)])
    }

    fn is_drained(&self, n: usize, room: usize) -> bool {
        self.net.left_nothing(self.stream, n, room)
    }
}

/// The session with the proxy, as the stream below the session with the server.
struct OuterSession<'a, R> {
    outer: &'a mut Tls,
    lower: &'a mut R,
}

impl<R: LowerStream> LowerStream for OuterSession<'_, R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.outer.read(self.lower, buf)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // The caller's scratch buffer holds the ciphertext of the inner session. Proxies with TLS are rare, so a new
        // buffer is allocated here.
        let mut scratch = vec![0; MIN_BUFFER];
        let mut sent = 0;
        while sent < bytes.len() {
            let rest = [IoSlice::new(&bytes[sent..])];
            match self.outer.write(self.lower, &mut scratch, &rest) {
                Ok(n) => sent += n,
                Err(error) if sent == 0 => return Err(error),
                Err(_) => break, // the next write returns this error
            }
            if self.outer.is_full() {
                break;
            }
        }
        Ok(sent)
    }

    fn is_drained(&self, _n: usize, _room: usize) -> bool {
        self.outer.is_drained()
    }

    fn has_more(&self) -> bool {
        !self.outer.is_drained()
    }

    fn min_room(&self) -> usize {
        MIN_BUFFER
    }
}
