//! The layers between a connection's bytes and its stream: none, TLS, or TLS inside the TLS session with a proxy.

use std::io::{self, IoSlice};

use super::Net;
use super::session::{HandshakeProgress, LowerStream, Session};
use super::tls::{MIN_BUFFER, TlsInfo};

/// A stream with its TLS session. Without one, each method costs one comparison more than the stream itself.
pub(crate) struct Transport<S> {
    stream: S,
    session: Option<Box<Sessions>>,
}

/// A TLS session over a stream, perhaps inside another session.
pub(super) struct Sessions {
    tls: Box<dyn Session>,
    /// The session with the proxy, which is below that with the server.
    outer: Option<Box<dyn Session>>,
}

impl Sessions {
    /// Calls the session with the stream below it. `lower` is the stream below all sessions.
    pub(super) fn call<T>(
        &mut self,
        lower: &mut dyn LowerStream,
        method: impl FnOnce(&mut dyn Session, &mut dyn LowerStream) -> T,
    ) -> T {
        match self.outer.as_deref_mut() {
            None => method(&mut *self.tls, lower),
            Some(outer) => method(&mut *self.tls, &mut OuterSession { outer, lower }),
        }
    }

    /// Ends the sessions with `close_notify`, if there is room for it.
    pub(super) fn close_notify(&mut self, lower: &mut dyn LowerStream) {
        self.call(lower, |tls, lower| tls.close_notify(lower));
        if let Some(outer) = &mut self.outer {
            outer.close_notify(lower);
        }
    }

    /// Whether something holds for the session, or for the session around it.
    fn any(&self, holds: fn(&dyn Session) -> bool) -> bool {
        holds(&*self.tls) || self.outer.as_deref().is_some_and(holds)
    }
}

impl<S> Transport<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self {
            stream,
            session: None,
        }
    }

    /// Whether bytes pass unchanged, so that [`read_append`](Self::read_append) may be used.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.session.is_none()
    }

    #[inline]
    pub(crate) fn stream(&self) -> &S {
        &self.stream
    }

    /// The same over what `change` makes of the stream; `None` if that is nothing.
    pub(crate) fn map<T>(self, change: impl FnOnce(S) -> Option<T>) -> Option<Transport<T>> {
        Some(Transport {
            stream: change(self.stream)?,
            session: self.session,
        })
    }

    pub(super) fn into_parts(self) -> (S, Option<Box<Sessions>>) {
        (self.stream, self.session)
    }

    /// Adds a session whose handshake is still to be done: the only one, or one inside the session with a proxy.
    pub(crate) fn secure(&mut self, tls: Box<dyn Session>) {
        let outer = self.session.take().map(|session| session.tls);
        self.session = Some(Box::new(Sessions { tls, outer }));
    }

    /// What the innermost session has agreed on; `None` without a session or before the end of its handshake.
    pub(crate) fn info(&self) -> Option<TlsInfo> {
        self.session.as_ref()?.tls.info()
    }

    /// Continues the handshake of the innermost session.
    pub(crate) fn handshake<N: Net<Stream = S>>(
        &mut self,
        net: &mut N,
        scratch: &mut [u8],
    ) -> io::Result<HandshakeProgress> {
        let stream = &mut self.stream;
        match &mut self.session {
            None => Ok(HandshakeProgress::Done),
            Some(session) => session.call(&mut Socket { net, stream }, |tls, lower| {
                tls.handshake(lower, scratch)
            }),
        }
    }

    /// Like [`Net::read`]. With TLS, `buf` is at least [`MIN_BUFFER`] long, or twice that for a session inside another.
    #[inline]
    pub(crate) fn read<N: Net<Stream = S>>(
        &mut self,
        net: &mut N,
        buf: &mut [u8],
    ) -> io::Result<usize> {
        let stream = &mut self.stream;
        match &mut self.session {
            None => net.read(stream, buf),
            Some(session) => session.call(&mut Socket { net, stream }, |tls, lower| {
                tls.read(lower, buf)
            }),
        }
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
        match &self.session {
            None => net.left_nothing(&self.stream, n, room),
            Some(session) => session.tls.is_drained(),
        }
    }

    /// Whether there may be more to read after a read that returned `WouldBlock`: with TLS, what was read may have
    /// brought no plaintext. No event will report the rest.
    #[inline]
    pub(crate) fn has_more(&self) -> bool {
        let session = self.session.as_ref();
        session.is_some_and(|session| !session.tls.is_drained())
    }

    /// Whether the last read has cost much more than its bytes, so that the other connections come first.
    #[inline]
    pub(crate) fn is_lean(&self) -> bool {
        let session = self.session.as_ref();
        session.is_some_and(|session| session.any(|tls| tls.is_lean()))
    }

    /// Whether the stream has room for more after a short write: with TLS, one write takes a few records only. No event
    /// will report that room.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        let session = self.session.as_ref();
        session.is_some_and(|session| !session.any(|tls| tls.is_full()))
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
        let stream = &mut self.stream;
        match &mut self.session {
            None => net.write(stream, parts),
            Some(session) => session.call(&mut Socket { net, stream }, |tls, lower| {
                tls.write(lower, scratch, parts)
            }),
        }
    }

    /// The number of bytes behind the counted ones that are encrypted already, so that the caller must repeat them.
    #[inline]
    pub(crate) fn uncounted(&self) -> usize {
        let session = self.session.as_ref();
        session.map_or(0, |session| session.tls.uncounted())
    }

    /// Ends the sessions with `close_notify`, if there is room for it, and closes the connection.
    pub(crate) fn close<N: Net<Stream = S>>(mut self, net: &mut N) {
        let stream = &mut self.stream;
        if let Some(mut session) = self.session {
            session.close_notify(&mut Socket { net, stream });
        }
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
struct OuterSession<'a> {
    outer: &'a mut dyn Session,
    lower: &'a mut dyn LowerStream,
}

impl LowerStream for OuterSession<'_> {
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
