//! What a connection's bytes go through: nothing, TLS, or TLS inside the TLS of a proxy.

#[cfg(test)]
mod tests;

use std::io::{self, IoSlice};

use super::Net;
use super::tls::{MIN_BUFFER, Raw, Tls, TlsInfo};

/// A stream with the TLS sessions on it. As long as there is none, each method costs one comparison.
pub(crate) struct Transport<S> {
    stream: S,
    sessions: Sessions,
}

enum Sessions {
    None,
    One(Box<Tls>),
    /// The outer session, with the proxy, and the inner one, with the server.
    Two(Box<[Tls; 2]>),
}

impl<S> Transport<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self {
            stream,
            sessions: Sessions::None,
        }
    }

    /// Whether bytes go through unchanged, so that [`read_append`](Self::read_append) may be used.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self.sessions, Sessions::None)
    }

    #[inline]
    pub(crate) fn stream(&self) -> &S {
        &self.stream
    }

    /// The stream alone. What sessions there are end without a word.
    pub(crate) fn into_stream(self) -> S {
        self.stream
    }

    /// Adds a session, whose handshake is to be done. There is room for two.
    pub(crate) fn secure(&mut self, tls: Tls) {
        self.sessions = match std::mem::replace(&mut self.sessions, Sessions::None) {
            Sessions::None => Sessions::One(Box::new(tls)),
            Sessions::One(outer) => Sessions::Two(Box::new([*outer, tls])),
            two @ Sessions::Two(_) => two,
        };
    }

    /// What the innermost session has agreed on.
    pub(crate) fn info(&self) -> Option<TlsInfo> {
        match &self.sessions {
            Sessions::None => None,
            Sessions::One(tls) => tls.info(),
            Sessions::Two(both) => both[1].info(),
        }
    }

    /// Goes on with the handshake of the innermost session; true when there is nothing left to do.
    pub(crate) fn handshake<N: Net<Stream = S>>(
        &mut self,
        net: &mut N,
        scratch: &mut [u8],
    ) -> io::Result<bool> {
        let stream = &mut self.stream;
        let raw = &mut Socket { net, stream };
        match &mut self.sessions {
            Sessions::None => Ok(true),
            Sessions::One(tls) => tls.handshake(raw, scratch),
            Sessions::Two(both) => {
                let [outer, inner] = &mut **both;
                inner.handshake(&mut Tunnel { outer, raw }, scratch)
            }
        }
    }

    /// As [`Net::read`]. With TLS, `buf` is at least [`MIN_BUFFER`] long, or twice that for a session in another.
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
        let raw = &mut Socket { net, stream };
        match &mut self.sessions {
            Sessions::None => raw.read(buf),
            Sessions::One(tls) => tls.read(raw, buf),
            Sessions::Two(both) => {
                let [outer, inner] = &mut **both;
                inner.read(&mut Tunnel { outer, raw }, buf)
            }
        }
    }

    /// As [`Net::read_append`]; for a plain stream only (`Unsupported` otherwise).
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

    /// Whether a read that returned `n` where there was room for `room` left nothing behind.
    #[inline]
    pub(crate) fn is_drained<N: Net<Stream = S>>(&self, net: &N, n: usize, room: usize) -> bool {
        match &self.sessions {
            Sessions::None => net.left_nothing(&self.stream, n, room),
            Sessions::One(tls) => tls.is_drained(),
            Sessions::Two(both) => both[1].is_drained(),
        }
    }

    /// As [`Net::write`]. With TLS, what is not counted may be encrypted already: the caller comes back with the same
    /// bytes. `scratch` is for the ciphertext, as long as the buffer for reads.
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
        match &mut self.sessions {
            Sessions::None => net.write(stream, parts),
            Sessions::One(tls) => tls.write(&mut Socket { net, stream }, scratch, parts),
            Sessions::Two(both) => {
                let [outer, inner] = &mut **both;
                let raw = &mut Socket { net, stream };
                inner.write(&mut Tunnel { outer, raw }, scratch, parts)
            }
        }
    }

    /// Ends the sessions with `close_notify`, as far as there is room for it, and the connection.
    pub(crate) fn close<N: Net<Stream = S>>(mut self, net: &mut N) {
        let stream = &mut self.stream;
        let raw = &mut Socket { net, stream };
        match &mut self.sessions {
            Sessions::None => {}
            Sessions::One(tls) => tls.close_notify(raw),
            Sessions::Two(both) => {
                let [outer, inner] = &mut **both;
                inner.close_notify(&mut Tunnel { outer, raw });
                outer.close_notify(raw);
            }
        }
        net.close(self.stream);
    }
}

struct Socket<'a, N: Net> {
    net: &'a mut N,
    stream: &'a mut N::Stream,
}

impl<N: Net> Raw for Socket<'_, N> {
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

/// The session with a proxy, as the stream of the session with the origin.
struct Tunnel<'a, R> {
    outer: &'a mut Tls,
    raw: &'a mut R,
}

impl<R: Raw> Raw for Tunnel<'_, R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.outer.read(self.raw, buf)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // The inner session's ciphertext is in the scratch that there is; proxies that are spoken to in TLS are rare
        // enough for one of its own.
        let mut scratch = vec![0; MIN_BUFFER];
        self.outer
            .write(self.raw, &mut scratch, &[IoSlice::new(bytes)])
    }

    fn is_drained(&self, _n: usize, _room: usize) -> bool {
        self.outer.is_drained()
    }

    fn min_room(&self) -> usize {
        MIN_BUFFER
    }
}
