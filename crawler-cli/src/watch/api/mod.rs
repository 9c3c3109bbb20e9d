//! The API, version 1: what operators read and do, for programs. Answers are JSON; what is refused is a problem
//! (RFC 9457).
//!
//! A list has `items`, and `next` if it goes on: the value of `after` for the next page. The logs of changes and notices
//! always have `next`: a client that asks with it again and again misses nothing.

mod hosts;
mod letters;
mod problem;
mod query;
mod service;
mod urls;

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use serde_json::{Value, json};

use super::admin::Site;
use super::admin::answer::{Answer, typed};
use super::hands::line;
pub(in crate::watch) use problem::Problem;

/// What a handler answers.
type Answered = Result<Answer, Problem>;

/// The routes.
pub(in crate::watch) fn routes() -> Router<Arc<Site>> {
    Router::new()
        .route("/api/v1", get(service::index))
        .route("/api/v1/status", get(service::status))
        .route("/api/v1/urls", get(urls::list))
        .route("/api/v1/url", get(urls::one))
        .route("/api/v1/changes", get(urls::changes))
        .route("/api/v1/hosts", get(hosts::list))
        .route("/api/v1/host", get(hosts::one))
        .route("/api/v1/holds", get(hosts::holds))
        .route("/api/v1/dead-letters", get(letters::list))
        .route("/api/v1/dead-letter", get(letters::one))
        .route("/api/v1/schedules", get(service::schedules))
        .route("/api/v1/webhooks", get(service::webhooks))
        .route("/api/v1/notices", get(service::notices))
}

/// All went well.
fn good(value: &Value) -> Answer {
    typed(StatusCode::OK, "application/json", line(value))
}

/// A page of a list.
fn page(items: Vec<Value>, next: Option<String>) -> Answer {
    let mut value = json!({ "items": items });
    if let Some(next) = next {
        value["next"] = next.into();
    }
    good(&value)
}

#[cfg(test)]
mod tests;
