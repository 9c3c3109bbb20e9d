//! The checks, each written once for all servers.
//!
//! A check asks its server over a client of the engine and asserts what must hold with every server. A status that says
//! "not here" means that the server lacks the feature.

mod bodies;
mod codings;
mod connections;
mod expect;
mod pipelining;
mod restart;
mod tls;
mod uploads;
mod validators;

use courser::{Request, Response};

use crate::matrix::{Bench, Outcome};

/// What is checked of each server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Feature {
    KeepAlive,
    AnnouncedEnd,
    IdleEnd,
    HalfClose,
    Head,
    NotModified,
    NoContent,
    Chunked,
    Trailers,
    Continue,
    Refusal,
    EarlyAnswer,
    Upload,
    ChunkedUpload,
    Gzip,
    Brotli,
    Zstd,
    Pipelining,
    Tls12,
    Tls13,
    Resumption,
    TlsPipelining,
    Restart,
}

impl Feature {
    pub(crate) const ALL: &[Self] = &[
        Self::KeepAlive,
        Self::AnnouncedEnd,
        Self::IdleEnd,
        Self::HalfClose,
        Self::Head,
        Self::NotModified,
        Self::NoContent,
        Self::Chunked,
        Self::Trailers,
        Self::Continue,
        Self::Refusal,
        Self::EarlyAnswer,
        Self::Upload,
        Self::ChunkedUpload,
        Self::Gzip,
        Self::Brotli,
        Self::Zstd,
        Self::Pipelining,
        Self::Tls12,
        Self::Tls13,
        Self::Resumption,
        Self::TlsPipelining,
        Self::Restart,
    ];

    /// Checks the feature.
    ///
    /// # Panics
    /// When the client does not do what it must.
    pub(crate) fn check(self, bench: &Bench<'_>) -> Outcome {
        let outcome = match self {
            Self::KeepAlive => connections::keep_alive(bench),
            Self::AnnouncedEnd => connections::announced_end(bench),
            Self::IdleEnd => connections::idle_end(bench),
            Self::HalfClose => connections::half_close(bench),
            Self::Head => bodies::head(bench),
            Self::NotModified => validators::not_modified(bench),
            Self::NoContent => bodies::no_content(bench),
            Self::Chunked => bodies::chunked(bench),
            Self::Trailers => bodies::trailers(bench),
            Self::Continue => expect::accepted(bench),
            Self::Refusal => expect::refused(bench),
            Self::EarlyAnswer => uploads::early_answer(bench),
            Self::Upload => uploads::sized(bench),
            Self::ChunkedUpload => uploads::chunked(bench),
            Self::Gzip => codings::gzip(bench),
            Self::Brotli => codings::brotli(bench),
            Self::Zstd => codings::zstd(bench),
            Self::Pipelining => pipelining::hundred(bench),
            Self::Tls12 => tls::version_1_2(bench),
            Self::Tls13 => tls::version_1_3(bench),
            Self::Resumption => tls::resumption(bench),
            Self::TlsPipelining => pipelining::hundred_over_tls(bench),
            Self::Restart => restart::under_load(bench),
        };
        outcome.unwrap_or(Outcome::Lacks)
    }
}

/// `None` for a status that says that there is no such thing on this server.
fn present(response: &Response) -> Option<()> {
    let absent = matches!(response.status(), 400 | 403 | 404 | 405 | 501 | 503);
    (!absent).then_some(())
}

/// Whether the server says that the connection ends after this response.
fn says_close(response: &Response) -> bool {
    let has = |option: &[u8]| {
        response.header_all("connection").any(|value| {
            let mut options = value.split(|byte| *byte == b',');
            options.any(|own| own.trim_ascii().eq_ignore_ascii_case(option))
        })
    };
    has(b"close") || (response.version() == courser::Version::Http10 && !has(b"keep-alive"))
}

/// A request for `target` with one more header.
fn with_header(target: &str, name: &str, value: &str) -> Request {
    let mut request = Request::get(target);
    request.header(name, value);
    request
}
