//! Metrics, health and the version.

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;

use super::answer::{Answer, text, typed};
use super::site::Site;
use crate::watch::metrics::Metrics;
use crate::watch::vitals::{Health, Readiness};

pub(super) fn routes() -> Router<Arc<Site>> {
    Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get(health))
        .route("/readyz", get(readiness))
        .route("/version", get(version))
}

async fn metrics(State(site): State<Arc<Site>>) -> Answer {
    typed(StatusCode::OK, Metrics::CONTENT_TYPE, site.metrics.text())
}

async fn health(State(site): State<Arc<Site>>) -> Answer {
    match site.vitals().health(Instant::now()) {
        Health::Fine => text(StatusCode::OK, "ok\n"),
        Health::Stuck(ago) => {
            let why = format!("the last turn of the loop was {} s ago\n", ago.as_secs());
            text(StatusCode::SERVICE_UNAVAILABLE, why)
        }
    }
}

async fn readiness(State(site): State<Arc<Site>>) -> Answer {
    let why = match site.vitals().readiness() {
        Readiness::Ready => return text(StatusCode::OK, "ok\n"),
        Readiness::Draining => "the service is about to end\n".to_owned(),
        Readiness::Store(why) => format!("the store cannot be written: {why}\n"),
    };
    text(StatusCode::SERVICE_UNAVAILABLE, why)
}

async fn version() -> Answer {
    let version = concat!("crawler-cli ", env!("CARGO_PKG_VERSION"), "\n");
    text(StatusCode::OK, version)
}
