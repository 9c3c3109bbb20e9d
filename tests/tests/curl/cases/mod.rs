//! The scenarios, by subject.

mod auth;
mod broken;
mod codings;
mod conditions;
mod config;
mod connections;
mod cookies;
mod files;
mod forms;
mod framing_options;
mod globs;
mod local;
mod netrc;
mod output;
mod parallel;
mod protocols;
mod proxies;
mod proxy_auth;
mod redirects;
mod requests;
mod responses;
mod retries;
mod routing;
mod secure;
mod speed;
mod tls_choices;
mod uploads;
mod versions;

use crate::scenario::Scenario;

/// Every scenario.
pub(crate) fn all() -> Vec<Scenario> {
    let subjects = [
        responses::all(),
        broken::all(),
        requests::all(),
        output::all(),
        globs::all(),
        forms::all(),
        framing_options::all(),
        files::all(),
        conditions::all(),
        local::all(),
        uploads::all(),
        redirects::all(),
        codings::all(),
        cookies::all(),
        retries::all(),
        routing::all(),
        proxies::all(),
        secure::all(),
        config::all(),
        netrc::all(),
        protocols::all(),
        parallel::all(),
        speed::all(),
        auth::all(),
        proxy_auth::all(),
        versions::all(),
        connections::all(),
        tls_choices::all(),
    ];
    subjects.concat()
}

/// `HTTP/1.1` with these lines, an empty one and this body.
fn reply(status: &str, headers: &[&str], body: impl AsRef<[u8]>) -> Vec<u8> {
    let mut bytes = format!("HTTP/1.1 {status}\r\n").into_bytes();
    for header in headers {
        bytes.extend_from_slice(header.as_bytes());
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(body.as_ref());
    bytes
}

/// A reply framed by its length.
fn sized(status: &str, headers: &[&str], body: impl AsRef<[u8]>) -> Vec<u8> {
    let length = format!("Content-Length: {}", body.as_ref().len());
    reply(status, &[headers, &[&length]].concat(), body)
}

/// The plainest reply.
fn ok() -> Vec<u8> {
    sized("200 OK", &[], "hello")
}
