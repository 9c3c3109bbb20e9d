//! The checks, each written once for all servers.
//!
//! A check asks its server over a client of the engine and asserts what must hold with every server. A status that says
//! "not here" means that the server lacks the feature.

mod bodies;
mod codings;
mod connections;
mod expect;
mod pipelining;
mod tls;
mod uploads;
mod validators;

use courser::{Request, Response};

use crate::matrix::{Bench, Outcome};

/// The features, and the check of each.
macro_rules! features {
    ($($name:ident => $check:path,)*) => {
        /// What is checked of each server.
        #[derive(Clone, Copy, Debug, Eq, PartialEq)]
        pub(crate) enum Feature {
            $($name,)*
        }

        impl Feature {
            pub(crate) const ALL: &[Self] = &[$(Self::$name),*];

            /// Checks the feature.
            ///
            /// # Panics
            /// When the client does not do what it must.
            pub(crate) fn check(self, bench: &Bench<'_>) -> Outcome {
                let outcome = match self {
                    $(Self::$name => $check(bench),)*
                };
                outcome.unwrap_or(Outcome::Lacks)
            }
        }
    };
}

features! {
    KeepAlive => connections::keep_alive,
    AnnouncedEnd => connections::announced_end,
    IdleEnd => connections::idle_end,
    HalfClose => connections::half_close,
    Head => bodies::head,
    NotModified => validators::not_modified,
    NoContent => bodies::no_content,
    Chunked => bodies::chunked,
    Trailers => bodies::trailers,
    Continue => expect::accepted,
    Refusal => expect::refused,
    EarlyAnswer => uploads::early_answer,
    Upload => uploads::sized,
    ChunkedUpload => uploads::chunked,
    Gzip => codings::gzip,
    Brotli => codings::brotli,
    Zstd => codings::zstd,
    Pipelining => pipelining::hundred,
    Tls12 => tls::version_1_2,
    Tls13 => tls::version_1_3,
    Resumption => tls::resumption,
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
    request.add_header(name, value);
    request
}
