//! The files that all pages have: the style, the script and the icon, each under a name that changes with its content, so
//! that a browser keeps them for ever.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::http::StatusCode;
use axum::http::header::{self, HeaderValue};
use axum::routing::get;

use crate::report::page::STYLE as BASE;
use crate::watch::admin::Site;
use crate::watch::admin::answer::{Answer, typed};

/// A file of the pages.
#[derive(Debug)]
pub(super) struct Asset {
    /// Where it is.
    pub(super) path: String,
    kind: &'static str,
    text: String,
}

impl Asset {
    fn new(ending: &str, kind: &'static str, text: String) -> Self {
        let mut hash = DefaultHasher::new();
        text.hash(&mut hash);
        let path = format!("/assets/{:016x}.{ending}", hash.finish());
        Self { path, kind, text }
    }

    fn answer(&self) -> Answer {
        let mut answer = typed(StatusCode::OK, self.kind, &*self.text);
        let for_ever = HeaderValue::from_static("public, max-age=31536000, immutable");
        answer.headers_mut().insert(header::CACHE_CONTROL, for_ever);
        answer
    }
}

pub(super) fn routes() -> Router<Arc<Site>> {
    let assets = [&STYLE, &SCRIPT, &ICON].map(LazyLock::force);
    assets.into_iter().fold(Router::new(), |router, asset| {
        router.route(&asset.path, get(async || asset.answer()))
    })
}

pub(super) static STYLE: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("css", "text/css; charset=utf-8", format!("{BASE}\n{OWN}")));
pub(super) static SCRIPT: LazyLock<Asset> = LazyLock::new(|| {
    let kind = "text/javascript; charset=utf-8";
    Asset::new("js", kind, include_str!("watch.js").to_owned())
});
pub(super) static ICON: LazyLock<Asset> = LazyLock::new(|| {
    let icon = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 16 16\"><rect width=\"16\" height=\"16\" rx=\"4\" \
                fill=\"#2563c9\"/><path d=\"M3 9h3l2-5 2 8 1-3h2\" fill=\"none\" stroke=\"#fff\" stroke-width=\"1.6\" \
                stroke-linecap=\"round\" stroke-linejoin=\"round\"/></svg>\n";
    Asset::new("svg", "image/svg+xml", icon.to_owned())
});

/// What the page has besides the style of the reports.
pub(super) const OWN: &str = include_str!("watch.css");
