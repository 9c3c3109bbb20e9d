//! How answers look.

use axum::body::Body;
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::http::{Response, StatusCode};
use axum::response::IntoResponse as _;

use crate::watch::api::Problem;

/// The answer to a request.
pub(in crate::watch) type Answer = Response<Body>;

/// Why a request is not answered as wished.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::watch) struct Refused {
    pub(in crate::watch) status: StatusCode,
    pub(in crate::watch) why: String,
    /// What is wrong with the token of the request, in the words of RFC 6750 section 3.
    challenge: Option<&'static str>,
}

impl Refused {
    pub(in crate::watch) fn new(status: StatusCode, why: impl Into<String>) -> Self {
        Self {
            status,
            why: why.into(),
            challenge: None,
        }
    }

    /// The token is none of the service, or has ended.
    pub(super) fn invalid_token(why: &str) -> Self {
        Self {
            challenge: Some("Bearer realm=\"courser\", error=\"invalid_token\""),
            ..Self::new(StatusCode::UNAUTHORIZED, why)
        }
    }

    /// The token does not allow this.
    pub(super) fn insufficient_scope(why: &str) -> Self {
        let challenge = "Bearer realm=\"courser\", error=\"insufficient_scope\", scope=\"write\"";
        Self {
            challenge: Some(challenge),
            ..Self::new(StatusCode::FORBIDDEN, why)
        }
    }

    /// As a problem in JSON, or as a line of text.
    pub(in crate::watch) fn answer(&self, is_api: bool) -> Answer {
        let mut answer = match is_api {
            true => Problem::new(self.status, &*self.why).into_response(),
            false => text(self.status, format!("{}\n", self.why)),
        };
        if let Some(challenge) = self.challenge {
            set(&mut answer, header::WWW_AUTHENTICATE, challenge);
        }
        answer
    }
}

/// A line of text.
pub(in crate::watch) fn text(status: StatusCode, text: impl Into<String>) -> Answer {
    typed(status, "text/plain; charset=utf-8", text)
}

/// An answer of this content type, with the field that belongs to its status.
pub(in crate::watch) fn typed(
    status: StatusCode,
    kind: &'static str,
    text: impl Into<String>,
) -> Answer {
    let mut answer = Response::new(Body::from(text.into()));
    *answer.status_mut() = status;
    set(&mut answer, header::CONTENT_TYPE, kind);
    let field = match status {
        StatusCode::UNAUTHORIZED => Some((header::WWW_AUTHENTICATE, "Bearer realm=\"courser\"")),
        StatusCode::TOO_MANY_REQUESTS => Some((header::RETRY_AFTER, "1")),
        StatusCode::SERVICE_UNAVAILABLE => Some((header::RETRY_AFTER, "5")),
        // The rest of the body is not read.
        StatusCode::PAYLOAD_TOO_LARGE => Some((header::CONNECTION, "close")),
        _ => None,
    };
    if let Some((name, value)) = field {
        set(&mut answer, name, value);
    }
    answer
}

/// Goes on at another page of this service.
pub(in crate::watch) fn see_other(path: &str) -> Answer {
    let mut answer = text(StatusCode::SEE_OTHER, "");
    if let Ok(path) = HeaderValue::from_str(path) {
        answer.headers_mut().insert(header::LOCATION, path);
    }
    answer
}

/// Sets what all answers have.
pub(super) fn finish(mut answer: Answer, is_api: bool) -> Answer {
    let policy = if is_api { API_POLICY } else { POLICY };
    set(&mut answer, header::CONTENT_SECURITY_POLICY, policy);
    for (name, value) in FIELDS {
        set(&mut answer, name, value);
    }
    let cache = HeaderValue::from_static("no-store");
    let cached = answer.headers_mut().entry(header::CACHE_CONTROL);
    cached.or_insert(cache);
    answer
}

fn set(answer: &mut Answer, name: HeaderName, value: &'static str) {
    let value = HeaderValue::from_static(value);
    answer.headers_mut().insert(name, value);
}

const FIELDS: [(HeaderName, &str); 5] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    // Others are told nothing. With `no-referrer`, browsers would send the forms of the pages with `Origin: null`.
    (header::REFERRER_POLICY, "same-origin"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
];

const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
const API_POLICY: &str = "default-src 'none'; frame-ancestors 'none'";
