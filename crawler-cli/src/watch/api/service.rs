//! The service as a whole: how it is, its schedules, and what it has to tell.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::{StatusCode, Uri};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;

use super::content;
use super::pieces::{OfSite, Who};
use super::query::Query;
use super::{Answered, good, page};
use crate::store::NoticeId;
use crate::watch::admin::Site;
use crate::watch::admin::answer::typed;
use crate::watch::admin::body::SMALL;
use crate::watch::config::ScheduleConfig;
use crate::watch::control::{Command, Reply, ScheduleDeed};
use crate::watch::hands::line;
use crate::watch::hands::webhooks::json as webhook;

/// `GET /api/v1`
pub(super) async fn index(uri: Uri) -> Answered {
    Query::read(&uri, &[])?;
    Ok(good(json!({
        "version": env!("CARGO_PKG_VERSION"),
    })))
}

/// `GET status`
pub(super) async fn status(State(site): State<Arc<Site>>, uri: Uri) -> Answered {
    Query::read(&uri, &[])?;
    let live = site.live().await;
    let status = site.read(move |reader| reader.status_value(live, Timestamp::now()));
    Ok(good(status.await?))
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

/// Which schedule.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    name: String,
}

/// `POST schedules/run`
pub(super) async fn run(site: OfSite, who: Who, request: Request) -> Answered {
    schedule(site, who, request, ScheduleDeed::Run).await
}

/// `POST schedules/pause`
pub(super) async fn pause_schedule(site: OfSite, who: Who, request: Request) -> Answered {
    schedule(site, who, request, ScheduleDeed::Pause).await
}

/// `POST schedules/resume`
pub(super) async fn resume_schedule(site: OfSite, who: Who, request: Request) -> Answered {
    schedule(site, who, request, ScheduleDeed::Resume).await
}

async fn schedule(
    State(site): OfSite,
    Extension(visitor): Who,
    request: Request,
    deed: ScheduleDeed,
) -> Answered {
    let (Named { name }, _) = content::read(&site, request, SMALL).await?;
    let command = Command::Schedule {
        name: name.clone(),
        deed,
    };
    if let Reply::Refused(refusal) = site.perform(visitor.who, command).await? {
        return Err(refusal.into());
    }
    Ok(match deed {
        // The workers of the schedule take it within some seconds.
        ScheduleDeed::Run => {
            let value = json!({ "schedule": name, "queued": true });
            typed(StatusCode::ACCEPTED, "application/json", line(&value))
        }
        ScheduleDeed::Pause => good(json!({ "schedule": name, "is_paused": true })),
        ScheduleDeed::Resume => good(json!({ "schedule": name, "is_paused": false })),
    })
}

/// How many next firings are told.
const NEXT: usize = 3;
