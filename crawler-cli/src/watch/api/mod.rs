//! The API, version 1: what operators read and do, for programs. Answers are JSON; what is refused is a problem
//! (RFC 9457).
//!
//! A list has `items`, and `next` if it goes on: the value of `after` for the next page. The logs of changes and notices
//! always have `next`: a client that asks with it again and again misses nothing.
//!
//! What changes something is answered when it is stored. `contrib/api.md` has an example of each route.

mod content;
mod hosts;
mod letters;
mod pieces;
mod problem;
mod query;
mod selection;
mod service;
mod submit;
mod urls;

use std::borrow::Cow;
use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::{get, post};
use serde_json::{Value, json};

use super::admin::Site;
use super::admin::answer::{Answer, typed};
use super::hands::line;
use super::hands::words::masked;
pub(in crate::watch) use problem::Problem;

/// What a handler answers.
type Answered = Result<Answer, Problem>;

/// The routes.
pub(in crate::watch) fn routes() -> Router<Arc<Site>> {
    Router::new()
        .route("/api/v1", get(service::index))
        .route("/api/v1/status", get(service::status))
        .route("/api/v1/urls", get(urls::list).post(submit::submit))
        .route("/api/v1/urls/remove", post(selection::remove))
        .route("/api/v1/urls/recheck", post(selection::recheck))
        .route("/api/v1/url", get(urls::one))
        .route("/api/v1/changes", get(urls::changes))
        .route("/api/v1/hosts", get(hosts::list))
        .route("/api/v1/host", get(hosts::one))
        .route("/api/v1/hosts/release", post(hosts::release))
        .route("/api/v1/hosts/confirm", post(hosts::confirm))
        .route("/api/v1/holds", get(hosts::holds))
        .route("/api/v1/dead-letters", get(letters::list))
        .route("/api/v1/dead-letter", get(letters::one))
        .route("/api/v1/dead-letters/replay", post(letters::replay))
        .route("/api/v1/dead-letters/drop", post(letters::drop))
        .route("/api/v1/schedules", get(service::schedules))
        .route("/api/v1/schedules/run", post(service::run))
        .route("/api/v1/schedules/pause", post(service::pause_schedule))
        .route("/api/v1/schedules/resume", post(service::resume_schedule))
        .route("/api/v1/pause", post(hosts::pause))
        .route("/api/v1/resume", post(hosts::resume))
        .route("/api/v1/webhooks", get(service::webhooks))
        .route("/api/v1/notices", get(service::notices))
}

/// All went well.
fn good(mut value: Value) -> Answer {
    mask(&mut value);
    typed(StatusCode::OK, "application/json", line(&value))
}

/// Takes the users out of URLs: who may read what is watched needs no password of a server.
fn mask(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(masked) = masked(text) {
                *text = masked;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(mask),
        Value::Object(fields) => fields.values_mut().for_each(mask),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A page of a list.
fn page(items: Vec<Value>, next: Option<String>) -> Answer {
    let mut value = json!({ "items": items });
    if let Some(next) = next {
        value["next"] = next.into();
    }
    good(value)
}
