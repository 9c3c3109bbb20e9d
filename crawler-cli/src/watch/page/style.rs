//! The style of the page, under a name that changes with the style.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::LazyLock;

use axum::http::StatusCode;
use axum::http::header::{self, HeaderValue};

use crate::report::page::STYLE;
use crate::watch::admin::answer::{Answer, typed};

/// Where the style is.
pub(super) static PATH: LazyLock<String> = LazyLock::new(|| {
    let mut hash = DefaultHasher::new();
    (STYLE, OWN).hash(&mut hash);
    format!("/assets/{:016x}.css", hash.finish())
});

pub(super) async fn sheet() -> Answer {
    let mut answer = typed(
        StatusCode::OK,
        "text/css; charset=utf-8",
        format!("{STYLE}\n{OWN}"),
    );
    let for_ever = HeaderValue::from_static("public, max-age=31536000, immutable");
    answer.headers_mut().insert(header::CACHE_CONTROL, for_ever);
    answer
}

/// What the page has besides the style of the reports.
pub(super) const OWN: &str = include_str!("watch.css");
