//! Problems (RFC 9457): what the API answers if a request is not done.

use axum::http::StatusCode;
use axum::http::header::{self, HeaderValue};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::store::{StoreError, StoreErrorKind};
use crate::watch::admin::Trouble;
use crate::watch::admin::answer::{Refused, typed};
use crate::watch::control::{Refusal, RefusalKind};

/// Why a request is not done.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::watch) struct Problem {
    status: StatusCode,
    /// The last part of its type.
    name: &'static str,
    detail: String,
    /// Which part of the request is wrong: the kind of the part, and its name.
    part: Option<(&'static str, String)>,
    /// In how many seconds it may be done, if that is known better than by the status.
    retry_after: Option<u64>,
}

impl Problem {
    /// A problem of the kind that the status says.
    pub(in crate::watch) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        let name = match status.as_u16() {
            401 => "unauthorized",
            403 => "forbidden",
            404 => "not-found",
            405 => "method-not-allowed",
            409 => "conflict",
            411 | 413 | 431 => "too-large",
            415 => "unsupported-type",
            421 => "misdirected",
            429 => "too-many",
            500.. => "internal",
            _ => "invalid-request",
        };
        Self::named(status, name, detail)
    }

    fn named(status: StatusCode, name: &'static str, detail: impl Into<String>) -> Self {
        Self {
            status,
            name,
            detail: detail.into(),
            part: None,
            retry_after: None,
        }
    }

    /// A parameter of the query is wrong.
    pub(super) fn parameter(name: &str, why: &str) -> Self {
        let problem = Self::new(StatusCode::BAD_REQUEST, format!("{name}: {why}"));
        problem.part("parameter", name)
    }

    /// A field of the body is wrong: which one, as a JSON pointer (RFC 6901) in a fragment.
    pub(super) fn field(pointer: &str, why: impl Into<String>) -> Self {
        let problem = Self::new(StatusCode::UNPROCESSABLE_ENTITY, why);
        problem.part("pointer", pointer)
    }

    /// A field of the head is wrong.
    pub(super) fn header(status: StatusCode, name: &'static str, why: &str) -> Self {
        let problem = Self::new(status, format!("{name}: {why}"));
        problem.part("header", name)
    }

    /// The request may be done in so many seconds.
    pub(super) fn retry_after(self, seconds: u64) -> Self {
        Self {
            retry_after: Some(seconds),
            ..self
        }
    }

    /// There is no such thing.
    pub(super) fn not_found(why: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, why)
    }

    fn part(mut self, kind: &'static str, name: &str) -> Self {
        self.part = Some((kind, name.to_owned()));
        self
    }

    fn store(error: &StoreError) -> Self {
        let name = match error.kind() {
            StoreErrorKind::Full => "store-full",
            StoreErrorKind::Closed => "ending",
            _ => "store-failing",
        };
        Self::named(StatusCode::SERVICE_UNAVAILABLE, name, error.to_string())
    }

    pub(super) fn value(&self) -> Value {
        let mut value = json!({
            "type": format!("urn:courser:problem:{}", self.name),
            "title": self.status.canonical_reason().unwrap_or_default(),
            "status": self.status.as_u16(),
            "detail": self.detail,
        });
        if let Some((kind, name)) = &self.part {
            value["errors"] = json!([{ *kind: name, "detail": self.detail }]);
        }
        value
    }
}

impl From<Trouble> for Problem {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Store(error) => Self::store(&error),
            Trouble::Busy => Self::new(
                StatusCode::TOO_MANY_REQUESTS,
                "too many commands wait already",
            ),
            Trouble::Ended => Self::named(
                StatusCode::SERVICE_UNAVAILABLE,
                "ending",
                "the service ends",
            ),
        }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        Self::store(&error)
    }
}

impl From<Refused> for Problem {
    fn from(refused: Refused) -> Self {
        Self::new(refused.status, refused.why)
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let Refusal { kind, why } = refusal;
        match kind {
            RefusalKind::Wrong => Self::new(StatusCode::UNPROCESSABLE_ENTITY, why),
            RefusalKind::NotFound => Self::not_found(why),
            RefusalKind::Store => {
                Self::named(StatusCode::SERVICE_UNAVAILABLE, "store-failing", why)
            }
            RefusalKind::Conflict => Self::new(StatusCode::CONFLICT, why),
            RefusalKind::Busy => Self::new(StatusCode::TOO_MANY_REQUESTS, why),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let text = crate::watch::hands::line(&self.value());
        let mut answer = typed(self.status, KIND, text);
        if let Some(seconds) = self.retry_after {
            let value = HeaderValue::from(seconds);
            answer.headers_mut().insert(header::RETRY_AFTER, value);
        }
        answer
    }
}

const KIND: &str = "application/problem+json";
