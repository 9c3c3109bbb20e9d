//! Schedules, and when they fire.

use std::sync::Arc;

use axum::extract::State as Of;
use maud::{Markup, html};

use super::frame::framed;
use super::pieces::{date, number, section, table, time};
use super::{read, trouble};
use crate::store::{JobStore as _, ScheduleState};
use crate::watch::admin::Site;
use crate::watch::admin::answer::Answer;
use crate::watch::hands::why::Around;
use crate::watch::hands::words::safe;

pub(super) async fn page(Of(site): Of<Arc<Site>>) -> Answer {
    let loaded = site.current.get();
    let crons = loaded.config.schedules.iter();
    let crons: Vec<(String, String)> = crons
        .map(|schedule| {
            let zone = schedule.timezone.iana_name().unwrap_or("UTC");
            (schedule.name.clone(), format!("{} {zone}", schedule.cron))
        })
        .collect();
    let names: Vec<String> = crons.iter().map(|(name, _)| name.clone()).collect();
    let found = read(&site, None, move |reader, _| {
        let store = reader.store();
        let states = names.iter().map(|name| store.schedule(name));
        let states: Result<Vec<ScheduleState>, _> = states.collect();
        let mut jobs = Vec::new();
        for queue in store.queues()? {
            let counts = store.job_counts(&queue)?;
            jobs.push((queue, counts.waiting, counts.started));
        }
        Ok((states?, jobs))
    });
    match found.await {
        Ok((around, (states, jobs))) => {
            let body = html! {
                (section("List", &list(&around, &states, &crons)))
                (section("Jobs", &queues(&jobs)))
            };
            framed(&around, "/schedules", "Schedules", &body)
        }
        Err(error) => trouble(&error),
    }
}

fn list(around: &Around, states: &[ScheduleState], crons: &[(String, String)]) -> Markup {
    let now = around.now;
    let rows: Vec<Vec<Markup>> = states
        .iter()
        .zip(crons)
        .map(|(state, (_, cron))| {
            let at = |at, never: &str| match at {
                Some(at) => time(now, at),
                None => html! { (never) },
            };
            vec![
                html! { (safe(&state.name)) },
                html! { code { (safe(cron)) } },
                html! { @match (state.is_paused, state.next) {
                    (true, _) => "paused",
                    (false, Some(next)) => (date(now, next)),
                    (false, None) => "never",
                } },
                at(state.last_fired, "never"),
                at(state.last_success, "never"),
                number(state.missed),
                number(state.overlapped),
            ]
        })
        .collect();
    let columns = [
        "Name",
        "When",
        "Next run",
        "Last run",
        "Last success",
        "#Missed",
        "#Overlapped",
    ];
    table(
        "Schedules",
        &columns,
        &rows,
        "The configuration has no schedules.",
    )
}

fn queues(jobs: &[(String, u64, u64)]) -> Markup {
    let rows = jobs.iter().map(|(queue, waiting, started)| {
        vec![html! { (safe(queue)) }, number(*waiting), number(*started)]
    });
    let rows: Vec<_> = rows.collect();
    table(
        "Jobs by queue",
        &["Queue", "#Waiting", "#Running"],
        &rows,
        "There are no jobs.",
    )
}
