//! What a request is answered.

use std::net::IpAddr;
use std::time::Instant;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, Method, Response, StatusCode, header};

use super::Content;
use crate::watch::metrics::Metrics;
use crate::watch::vitals::{Health, Readiness};

pub(super) type Answer = Response<Body>;

/// The answer to a request.
pub(super) fn answer<B>(content: &Content, request: &Request<B>) -> Answer {
    if !is_local(request.headers()) {
        let why = "the Host of the request is neither localhost nor a loopback address\n";
        return text(StatusCode::MISDIRECTED_REQUEST, why.to_owned());
    }
    if size(request) > LARGEST_HEAD {
        let why = "the header fields are too large\n".to_owned();
        return text(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, why);
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut refused = text(
            StatusCode::METHOD_NOT_ALLOWED,
            "only GET and HEAD\n".to_owned(),
        );
        let allowed = header::HeaderValue::from_static("GET, HEAD");
        refused.headers_mut().insert(header::ALLOW, allowed);
        return refused;
    }
    match request.uri().path() {
        "/metrics" => typed(
            StatusCode::OK,
            Metrics::CONTENT_TYPE,
            content.metrics.text(),
        ),
        "/healthz" => health(content),
        "/readyz" => readiness(content),
        "/version" => text(
            StatusCode::OK,
            concat!("crawler-cli ", env!("CARGO_PKG_VERSION"), "\n").to_owned(),
        ),
        _ => text(
            StatusCode::NOT_FOUND,
            "there are /metrics, /healthz, /readyz and /version\n".to_owned(),
        ),
    }
}

fn health(content: &Content) -> Answer {
    match content.vitals.health(Instant::now()) {
        Health::Fine => text(StatusCode::OK, "ok\n".to_owned()),
        Health::Stuck(ago) => {
            let why = format!("the last turn of the loop was {} s ago\n", ago.as_secs());
            text(StatusCode::SERVICE_UNAVAILABLE, why)
        }
    }
}

fn readiness(content: &Content) -> Answer {
    let why = match content.vitals.readiness() {
        Readiness::Ready => return text(StatusCode::OK, "ok\n".to_owned()),
        Readiness::Draining => "the service is about to end\n".to_owned(),
        Readiness::Store(why) => format!("the store cannot be written: {why}\n"),
    };
    text(StatusCode::SERVICE_UNAVAILABLE, why)
}

/// Whether the request means this machine, by its `Host`.
fn is_local(headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return false;
    };
    let Ok(host) = host.to_str() else {
        return false;
    };
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost")
        || name
            .parse()
            .is_ok_and(|address: IpAddr| address.is_loopback())
}

/// The size of the target and the header fields of a request.
fn size<B>(request: &Request<B>) -> usize {
    let fields = request.headers().iter();
    let fields: usize = fields
        .map(|(name, value)| name.as_str().len() + value.len())
        .sum();
    let target = request.uri().path_and_query();
    fields + target.map_or(0, |target| target.as_str().len())
}

fn text(status: StatusCode, text: String) -> Answer {
    typed(status, "text/plain; charset=utf-8", text)
}

fn typed(status: StatusCode, kind: &'static str, text: String) -> Answer {
    let mut answer = Response::new(Body::from(text));
    *answer.status_mut() = status;
    for (name, value) in [
        (header::CONTENT_TYPE, kind),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ] {
        let value = header::HeaderValue::from_static(value);
        answer.headers_mut().insert(name, value);
    }
    answer
}

/// The largest target and header fields of a request, in bytes.
const LARGEST_HEAD: usize = 16 << 10;
