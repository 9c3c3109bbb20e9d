//! Schedules, and when they fire.

use jiff::Timestamp;
use maud::{Markup, html};

use super::asked::Asked;
use super::deeds::Deed;
use super::frame::framed;
use super::pieces::{date, number, section, table, time};
use super::{read, trouble};
use crate::store::{JobStore as _, ScheduleState};
use crate::watch::admin::answer::Answer;
use crate::watch::config::ScheduleConfig;
use crate::watch::hands::why::Around;
use crate::watch::hands::words::safe;

pub(super) async fn page(asked: Asked) -> Answer {
    let loaded = asked.site.current.get();
    let schedules = &loaded.config.schedules;
    let names: Vec<String> = schedules
        .iter()
        .map(|schedule| schedule.name.clone())
        .collect();
    let found = read(&asked.site, None, move |reader, _| {
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
                (section("List", &list(&asked, &around, &states, schedules)))
                (section("Jobs", &queues(&jobs)))
            };
            framed(&asked, &around, "/schedules", "Schedules", &body)
        }
        Err(error) => trouble(&error),
    }
}

fn list(
    asked: &Asked,
    around: &Around,
    states: &[ScheduleState],
    schedules: &[ScheduleConfig],
) -> Markup {
    let now = around.now;
    let at = |at| match at {
        Some(at) => time(now, at),
        None => html! { "never" },
    };
    let rows: Vec<Vec<Markup>> = states
        .iter()
        .zip(schedules)
        .map(|(state, schedule)| {
            let zone = schedule.timezone.iana_name().unwrap_or("UTC");
            vec![
                html! { (safe(&state.name)) },
                html! { code { (safe(&schedule.cron)) " " (zone) } },
                html! {
                    @if state.is_paused { "paused" }
                    @else { (next_runs(now, state, schedule)) }
                },
                at(state.last_fired),
                at(state.last_success),
                number(state.missed),
                number(state.overlapped),
                deeds(asked, state),
            ]
        })
        .collect();
    let columns = [
        "Name",
        "When",
        "Next runs",
        "Last run",
        "Last success",
        "#Missed",
        "#Overlapped",
        "",
    ];
    table(
        "Schedules",
        &columns,
        &rows,
        "The configuration has no schedules.",
    )
}

/// The next run, which may be moved by the jitter, and those that follow.
fn next_runs(now: Timestamp, state: &ScheduleState, schedule: &ScheduleConfig) -> Markup {
    let mut runs: Vec<Timestamp> = state.next.into_iter().collect();
    if let Ok(times) = schedule.schedule("") {
        let last = state.next.unwrap_or(now);
        runs.extend(times.next_firings(last, RUNS - runs.len()));
    }
    html! {
        @if runs.is_empty() { "never" }
        @else { ol.runs { @for at in runs { li { (date(now, at)) } } } }
    }
}

fn deeds(asked: &Asked, state: &ScheduleState) -> Markup {
    let name = [("schedule", &*state.name)];
    let pause = match state.is_paused {
        true => Deed::ResumeSchedule,
        false => Deed::PauseSchedule,
    };
    html! { div.deeds { (asked.button(Deed::Run, &name)) (asked.button(pause, &name)) } }
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

/// How many of the next runs are shown.
const RUNS: usize = 3;
