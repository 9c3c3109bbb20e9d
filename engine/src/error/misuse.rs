//! Mistakes of the caller: in a call, a URL or a configuration.

use std::fmt;
use std::io;

use super::{TlsConfigError, UrlError, redacted};

/// An error in the call itself, found before anything was sent (except errors of body streams).
#[derive(Debug)]
#[non_exhaustive]
pub enum Misuse {
    /// A part of the request contains a byte that would break the framing (RFC 9112 §11.1).
    Invalid {
        /// Which part.
        part: Part,
        /// The name of the header or of the trailer, if it is one.
        name: Box<str>,
        /// Offset of the byte in the part.
        at: usize,
        /// The byte.
        byte: u8,
    },
    /// A part of the request is empty, but must not be.
    Empty(Part),
    /// The target is none of origin-form, `*` for OPTIONS, or authority-form for CONNECT (RFC 9112 §3.2).
    TargetForm,
    /// `Content-Length`, `Transfer-Encoding`, `Trailer` or `Expect` was given as a header; the engine computes them
    /// from the body.
    FramingHeader(&'static str),
    /// A [`SendHook`](crate::SendHook) has set a header that cannot be set for one send.
    FixedHeader(&'static str),
    /// The [`SendHook`](crate::SendHook) of the client has refused the request.
    SendHook(io::Error),
    /// The text is no upstream: neither a URL nor `host:port`, `[v6]:port` or `unix:PATH`.
    Upstream {
        /// The text, without user information.
        text: String,
        /// What is wrong with it.
        error: UrlError,
    },
    /// The URL cannot be used.
    Url {
        /// The URL, without user information.
        text: String,
        /// What is wrong with it.
        error: UrlError,
    },
    /// The proxy's URL cannot be used.
    Proxy {
        /// The URL, without user information.
        text: String,
        /// What is wrong with it.
        error: UrlError,
    },
    /// The TLS configuration cannot be used.
    TlsConfig(TlsConfigError),
    /// An entry of [`Proxies::except`](crate::Proxies::except) is neither the name of a host nor a block of addresses.
    ProxyException(Box<str>),
    /// A number of the configuration is not within its bounds.
    OutOfRange {
        /// The setting.
        setting: &'static str,
        /// The least allowed value.
        least: f64,
        /// The greatest allowed value.
        most: f64,
    },
    /// The upstream has no address.
    NoAddress,
    /// The upstream has a name, and the client has no resolver.
    NoResolver,
    /// This kind of client cannot do what the configuration or the call asks for. The text names the setting.
    Unsupported(&'static str),
    /// Trailers need a chunked body (RFC 9112 §7.1.2).
    TrailersWithoutChunked,
    /// A body of unknown length needs the chunked coding, and that needs HTTP/1.1 (RFC 9112 §6.1).
    ChunkedInHttp10,
    /// The body stream was used up by an earlier attempt or an earlier call.
    BodyNotReplayable,
    /// The body stream failed.
    BodySource(io::Error),
    /// The body stream had no bytes yet ([`WouldBlock`](io::ErrorKind::WouldBlock)), and nobody can resume the call: its
    /// caller waits for the response.
    NotResumable,
    /// The body stream ended before its declared length.
    BodyLength {
        /// Bytes promised in `Content-Length`.
        declared: u64,
        /// Bytes that the stream produced.
        produced: u64,
    },
    /// There is no streamed response body with this id.
    UnknownBody,
    /// A client of one upstream cannot be spread over several threads.
    OneThread,
    /// A callback on a thread of a [`Shared`](crate::Shared) client tried to wait for the same client.
    OwnThread,
    /// A [`Shared`](crate::Shared) client that a [`Driver`](crate::shared::Driver) drives was asked to block. The
    /// thread that blocks may be the one that must drive the client.
    Blocking,
    /// A streamed call was given to a method of a [`Shared`](crate::Shared) client for whole responses, or to a
    /// [`Batch`](crate::Batch).
    Streamed,
    /// A [`PipelineClient`](crate::PipelineClient) cannot send such a call, because the call would delay other calls or
    /// cannot share a connection. The text says what cannot be pipelined.
    NotPipelined(&'static str),
}

impl Misuse {
    /// An error for this URL, without the URL's user information.
    pub fn url(text: &str, error: UrlError) -> Self {
        let text = redacted(text);
        Self::Url { text, error }
    }

    pub(crate) fn upstream(text: &str, error: UrlError) -> Self {
        let text = redacted(text);
        Self::Upstream { text, error }
    }

    pub(crate) fn proxy(text: &str, error: UrlError) -> Self {
        let text = redacted(text);
        Self::Proxy { text, error }
    }
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid {
                part,
                name,
                at,
                byte,
            } => {
                write!(f, "invalid byte {byte:#04x} at offset {at} of {part}")?;
                match &**name {
                    "" => Ok(()),
                    name => write!(f, " ({name:?})"),
                }
            }
            Self::Empty(part) => write!(f, "{part} is empty"),
            Self::TargetForm => f.write_str(
                "the target is neither a path, nor `*` for OPTIONS, nor `host:port` for CONNECT",
            ),
            Self::FramingHeader(name) => {
                write!(f, "{name} is computed from the body and cannot be a header")
            }
            Self::FixedHeader(name) => write!(f, "{name} cannot be set by a send hook"),
            Self::SendHook(_) => f.write_str("the send hook refused the request"),
            Self::Upstream { text, error } => write!(f, "{text:?} is not an upstream: {error}"),
            Self::Url { text, error } => write!(f, "{text:?} is not a URL to fetch: {error}"),
            Self::Proxy { text, error } => write!(f, "{text:?} is not a proxy: {error}"),
            Self::TlsConfig(error) => write!(f, "TLS: {error}"),
            Self::ProxyException(entry) => {
                write!(
                    f,
                    "{entry:?} is neither a host name nor a block of addresses"
                )
            }
            Self::OutOfRange {
                setting,
                least,
                most,
            } => write!(f, "{setting} must be from {least} to {most}"),
            Self::NoAddress => f.write_str("the upstream has no address"),
            Self::NoResolver => f.write_str("the upstream has a name, and there is no resolver"),
            Self::Unsupported(what) => write!(f, "this client does not support {what}"),
            Self::TrailersWithoutChunked => f.write_str("trailers need a chunked body"),
            Self::ChunkedInHttp10 => f.write_str("a body of unknown length needs HTTP/1.1"),
            Self::BodyNotReplayable => f.write_str("the body stream is used up"),
            Self::BodySource(_) => f.write_str("the body stream failed"),
            Self::NotResumable => f.write_str(
                "the body stream has no bytes yet, and nobody can resume a call that blocks",
            ),
            Self::BodyLength { declared, produced } => write!(
                f,
                "the body stream gave {produced} bytes, but {declared} were declared"
            ),
            Self::UnknownBody => f.write_str("no response body with this id"),
            Self::OwnThread => f.write_str("a shared client cannot wait for itself"),
            Self::Blocking => f.write_str("a client that a task drives cannot block"),
            Self::Streamed => f.write_str("streamed calls are not accepted here"),
            Self::NotPipelined(what) => write!(f, "{what} cannot be pipelined"),
            Self::OneThread => {
                f.write_str("a client of one upstream cannot be spread over several threads")
            }
        }
    }
}

/// A part of a request, for [`Misuse`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Part {
    /// The method.
    Method,
    /// The request target.
    Target,
    /// The `Host` value.
    Host,
    /// The `User-Agent` value.
    UserAgent,
    /// A header name.
    HeaderName,
    /// A header value.
    HeaderValue,
    /// The user name of [`basic_auth`](crate::Request::basic_auth).
    UserName,
    /// A trailer name.
    TrailerName,
    /// A trailer value.
    TrailerValue,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Method => "the method",
            Self::Target => "the target",
            Self::Host => "the Host value",
            Self::UserAgent => "the User-Agent value",
            Self::HeaderName => "a header name",
            Self::HeaderValue => "a header value",
            Self::UserName => "the user name",
            Self::TrailerName => "a trailer name",
            Self::TrailerValue => "a trailer value",
        })
    }
}
