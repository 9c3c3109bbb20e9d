//! The service as a whole: how it is, its schedules, and what it has to tell.

use std::sync::Arc;

use axum::extract::State;
use axum::http::Uri;
use jiff::Timestamp;
use serde_json::json;

use super::query::Query;
use super::{Answered, good, page};
use crate::store::NoticeId;
use crate::watch::admin::Site;
use crate::watch::config::ScheduleConfig;
use crate::watch::hands::webhooks::json as webhook;

/// `GET /api/v1`
pub(super) async fn index(uri: Uri) -> Answered {
    Query::read(&uri, &[])?;
    Ok(good(&json!({
        "version": env!("CARGO_PKG_VERSION"),
    })))
}

/// `GET status`
pub(super) async fn status(State(site): State<Arc<Site>>, uri: Uri) -> Answered {
    Query::read(&uri, &[])?;
    let live = site.live().await;
    let status = site.read(move |reader| reader.status_value(live, Timestamp::now()));
    Ok(good(&status.await?))
}

/// `GET schedules`
pub(super) async fn schedules(State(site): State<Arc<Site>>, uri: Uri) -> Answered {
    Query::read(&uri, &[])?;
    let loaded = site.current.get();
    let schedules = &loaded.config.schedules;
    let names: Vec<String> = schedules.iter().map(|one| one.name.clone()).collect();
    let read = site.read(move |reader| reader.schedule_values(&names));
    let mut values = read.await?;
    for (value, schedule) in values.iter_mut().zip(schedules) {
        value["next_firings"] = json!(next_firings(schedule, Timestamp::now()));
    }
    Ok(page(values, None))
}

fn next_firings(schedule: &ScheduleConfig, now: Timestamp) -> Vec<Timestamp> {
    let schedule = schedule.schedule("");
    schedule.map_or_else(|_| Vec::new(), |schedule| schedule.next_firings(now, NEXT))
}

/// `GET webhooks`
pub(super) async fn webhooks(State(site): State<Arc<Site>>, uri: Uri) -> Answered {
    Query::read(&uri, &[])?;
    let live = site.live().await;
    let hooks = site.read(move |reader| reader.hooks(&live)).await?;
    Ok(page(hooks.iter().map(webhook).collect(), None))
}

/// `GET notices`
pub(super) async fn notices(State(site): State<Arc<Site>>, uri: Uri) -> Answered {
    let query = Query::read(&uri, &["after", "limit"])?;
    let (after, limit) = (NoticeId(query.after()?.unwrap_or(0)), query.limit()?);
    let read = site.read(move |reader| reader.notice_values(after, limit));
    let (notices, last) = read.await?;
    Ok(page(notices, Some(last.0.to_string())))
}

/// How many next firings are told.
const NEXT: usize = 3;
