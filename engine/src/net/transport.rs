//! What a connection's bytes go through: nothing, TLS, or TLS inside the TLS of a proxy.

#[cfg(test)]
mod tests;

use std::io::{self, IoSlice};

use super::Net;
use super::tls::{MIN_BUFFER, Raw, Tls, TlsInfo};

/// A stream with the TLS sessions on it. As long as there is none, each method costs one comparison.
pub(crate) enum Transport<S> {
    Plain(S),
    Tls(Box<Tls>, S),
    /// The outer session, with the proxy, and the inner one, with the origin.
    TlsOverTls(Box<[Tls; 2]>, S),
}

impl<S> Transport<S> {
    /// Whether bytes go through unchanged, so that [`read_append`](Self::read_append) may be used.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self, Self::Plain(_))
    }

    #[inline]
    pub(crate) fn stream(&self) -> &S {
        match self {
            Self::Plain(stream) | Self::Tls(_, stream) | Self::TlsOverTls(_, stream) => stream,
        }
    }

    /// The stream alone. What sessions there are end without a word.
    pub(crate) fn into_stream(self) -> S {
        match self {
            Self::Plain(stream) | Self::Tls(_, stream) | Self::TlsOverTls(_, stream) => stream,
        }
    }

    /// The same stream with a session more, whose handshake is to be done. There can be two.
    ///
    /// # Errors
    /// Gives the transport back when it has two.
    pub(crate) fn secure(self, tls: Tls) -> Result<Self, Self> {
        match self {
            Self::Plain(stream) => Ok(Self::Tls(Box::new(tls), stream)),
            Self::Tls(outer, stream) => Ok(Self::TlsOverTls(Box::new([*outer, tls]), stream)),
            both @ Self::TlsOverTls(..) => Err(both),
        }
    }

    /// The innermost session.
    pub(crate) fn tls(&self) -> Option<&Tls> {
        match self {
            Self::Plain(_) => None,
            Self::Tls(tls, _) => Some(tls),
            Self::TlsOverTls(both, _) => Some(&both[1]),
        }
    }

    /// What the innermost session has agreed on.
    pub(crate) fn info(&self) -> Option<TlsInfo> {
        self.tls().and_then(Tls::info)
    }

    /// Goes on with the handshake of the innermost session; true when there is nothing left to do.
    pub(crate) fn handshake<N: Net<Stream = S>>(
        &mut self,
        net: &mut N,
        scratch: &mut [u8],
    ) -> io::Result<bool> {
        match self {
            Self::Plain(_) => Ok(true),
            Self::Tls(tls, stream) => tls.handshake(&mut Socket { net, stream }, scratch),
            Self::TlsOverTls(both, stream) => {
                let [outer, inner] = &mut **both;
                let raw = &mut Socket { net, stream };
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
        match self {
            Self::Plain(stream) => net.read(stream, buf),
            sessions => sessions.read_tls(net, buf),
        }
    }

    fn read_tls<N: Net<Stream = S>>(&mut self, net: &mut N, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => net.read(stream, buf),
            Self::Tls(tls, stream) => tls.read(&mut Socket { net, stream }, buf),
            Self::TlsOverTls(both, stream) => {
                let [outer, inner] = &mut **both;
                let raw = &mut Socket { net, stream };
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
        match self {
            Self::Plain(stream) => net.read_append(stream, buf),
            Self::Tls(..) | Self::TlsOverTls(..) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Whether a read that returned `n` where there was room for `room` left nothing behind.
    #[inline]
    pub(crate) fn is_drained(&self, n: usize, room: usize) -> bool {
        match self {
            Self::Plain(_) => n < room,
            Self::Tls(tls, _) => tls.is_drained(),
            Self::TlsOverTls(both, _) => both[1].is_drained(),
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
        match self {
            Self::Plain(stream) => net.write(stream, parts),
            sessions => sessions.write_tls(net, scratch, parts),
        }
    }

    fn write_tls<N: Net<Stream = S>>(
        &mut self,
        net: &mut N,
        scratch: &mut [u8],
        parts: &[IoSlice<'_>],
    ) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => net.write(stream, parts),
            Self::Tls(tls, stream) => tls.write(&mut Socket { net, stream }, scratch, parts),
            Self::TlsOverTls(both, stream) => {
                let [outer, inner] = &mut **both;
                let raw = &mut Socket { net, stream };
                inner.write(&mut Tunnel { outer, raw }, scratch, parts)
            }
        }
    }

    /// Ends the sessions with `close_notify`, as far as there is room for it, and the connection.
    pub(crate) fn close<N: Net<Stream = S>>(self, net: &mut N) {
        match self {
            Self::Plain(stream) => net.close(stream),
            Self::Tls(mut tls, mut stream) => {
                let stream_ref = &mut stream;
                tls.close_notify(&mut Socket {
                    net,
                    stream: stream_ref,
                });
                net.close(stream);
            }
            Self::TlsOverTls(mut both, mut stream) => {
                let [outer, inner] = &mut *both;
                let raw = &mut Socket {
                    net,
                    stream: &mut stream,
                };
                inner.close_notify(&mut Tunnel { outer, raw });
                outer.close_notify(raw);
                net.close(stream);
            }
        }
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
