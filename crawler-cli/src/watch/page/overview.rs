//! The first page: how everything is.

use std::time::Duration;

use jiff::Timestamp;
use maud::{Markup, html};

use super::asked::Asked;
use super::charts::{Chart, Range};
use super::deeds::Deed;
use super::frame::framed;
use super::pieces::{change, class, date, facts, host, href, section, state, table, time};
use super::{changes, read, trouble};
use crate::check::Class;
use crate::check::life::State;
use crate::check::life::time::before;
use crate::report::page::tiles;
use crate::store::{AdminStore as _, Cursor, Event, Scope, WatchStore as _};
use crate::watch::admin::answer::Answer;
use crate::watch::control::Pruned;
use crate::watch::hands::Today;
use crate::watch::hands::status::{Overview, bytes, cycle_in_words, sample, work};
use crate::watch::hands::why::{Around, waits};
use crate::watch::hands::words::{self, count, number, safe, span};
use crate::watch::series::Sample;

/// What the store says.
struct Seen {
    overview: Overview,
    today: Today,
    changes: Vec<Event>,
    stored: Vec<(Timestamp, Sample)>,
}

pub(super) async fn page(asked: Asked) -> Answer {
    let query = &asked.query;
    let (name, hours) = RANGES
        .into_iter()
        .find(|(name, _)| query.get("range") == Some(name))
        .unwrap_or(RANGES[0]);
    let found = read(&asked.site, None, move |reader, around| {
        let stored = match hours {
            1 => Vec::new(),
            hours => stored(&reader.store().samples(since(around.now, hours))?, hours),
        };
        Ok(Seen {
            // How late the work is, is known by the figures.
            overview: reader.overview(&around.live, around.now, 0)?,
            today: reader.today(around.now)?.clone(),
            changes: reader.store().events_before(Cursor(i64::MAX), LATEST)?,
            stored,
        })
    });
    let (around, mut seen) = match found.await {
        Ok(found) => found,
        Err(error) => return trouble(&error),
    };
    let samples = match hours {
        1 => asked.site.series.all(),
        _ => std::mem::take(&mut seen.stored),
    };
    let range = Range {
        samples,
        from: since(around.now, hours),
        until: around.now,
    };
    let last = asked.site.series.last().map(|(_, sample)| sample);
    let lag = asked.site.figures.backlog.lag.get();
    let stale = asked.site.figures.backlog.staleness.get();
    let in_flight = match &around.fleet {
        Some(workers) => workers.iter().filter_map(sample).map(|s| s.in_flight).sum(),
        None => asked.site.figures.requests.in_flight.get(),
    };
    let numbers = Numbers {
        last,
        lag: Duration::from_millis(lag),
        stale,
        in_flight,
    };
    framed(
        &asked,
        &around,
        "/",
        "Overview",
        &body(&asked, &around, &seen, &range, name, &numbers),
    )
}

/// What the figures say now.
struct Numbers {
    last: Option<Sample>,
    lag: Duration,
    stale: f64,
    in_flight: u64,
}

fn since(now: Timestamp, hours: u64) -> Timestamp {
    before(now, Duration::from_secs(hours * 3_600))
}

/// Samples of the store, thinned out for long ranges.
fn stored(samples: &[(Timestamp, String)], hours: u64) -> Vec<(Timestamp, Sample)> {
    let each = if hours > 48 { THIN } else { 1 };
    let samples = samples.iter().step_by(each).filter_map(|(at, text)| {
        let mut sample = Sample::from_text(text)?;
        // One stands for all that are left out.
        let each = u32::try_from(each).unwrap_or(1);
        sample.checks = sample.checks.map(|count| count * u64::from(each));
        sample.seconds = sample.seconds.saturating_mul(each);
        Some((*at, sample))
    });
    samples.collect()
}

fn body(
    asked: &Asked,
    around: &Around,
    seen: &Seen,
    range: &Range,
    name: &str,
    numbers: &Numbers,
) -> Markup {
    html! {
        (big(seen, numbers))
        div.columns {
            (section("What guards withhold", &withheld(asked, around, seen)))
            (section("States", &states(seen)))
        }
        (section("Over time", &over_time(range, name)))
        div.columns {
            (section("Changed today", &changed(seen)))
            (section("Waiting hosts", &waiting(around)))
            (section("Store", &store(around, seen)))
        }
        (section("Latest changes", &html! {
            (changes::list(around, &seen.changes))
            p { a href="/changes" { "All changes" } }
        }))
    }
}

fn big(seen: &Seen, numbers: &Numbers) -> Markup {
    let last = numbers.last.as_ref();
    let known = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
    let held = seen.overview.holds.iter().map(|hold| hold.held).sum();
    let bad = |is_bad: bool| is_bad.then_some("bad");
    let answered = last.filter(|sample| !sample.p95.is_zero());
    let rows = [
        ("URLs", number(seen.overview.counts.urls()), None),
        (
            "checks a second",
            known(last.map(|sample| rate(sample.checks_per_second()))),
            None,
        ),
        (
            "P50 of answers",
            known(answered.map(|sample| millis(sample.p50.as_secs_f64()))),
            None,
        ),
        (
            "P95 of answers",
            known(answered.map(|sample| millis(sample.p95.as_secs_f64()))),
            None,
        ),
        (
            "late",
            percent(numbers.stale),
            bad(numbers.stale > MOST_STALE),
        ),
        ("oldest due", span(numbers.lag), bad(numbers.lag > MOST_LAG)),
        ("in flight", number(numbers.in_flight), None),
        ("held", number(held), bad(held > 0)),
    ];
    html! { div #tiles data-live { (tiles(&rows)) } }
}

fn withheld(asked: &Asked, around: &Around, seen: &Seen) -> Markup {
    let now = around.now;
    let core = around.live.core();
    let network = core.and_then(|core| core.own_network.as_ref());
    let count_of = |state: State| {
        seen.overview
            .counts
            .states
            .get(&state)
            .copied()
            .unwrap_or(0)
    };
    let holds = &seen.overview.holds;
    let mut rows = vec![
        (
            "Own network",
            html! { @match network {
                Some(guard) => span.bad { "fails since " (date(now, guard.since)) ": " (safe(&guard.why)) },
                None => span.good { "works" },
            } },
        ),
        (
            "Holds",
            html! {
                @if holds.is_empty() { span.good { "none" } }
                @else {
                    a href="/holds" { (count(holds.len() as u64, "host", "hosts")) }
                    ul.reasons { @for hold in holds.iter().take(NAMED) {
                        li { (host(&hold.root)) ", " (count(hold.held, "URL", "URLs")) ", since " (time(now, hold.hold.since)) }
                    } }
                }
            },
        ),
        (
            "In doubt",
            html! {
                a href=(href("/urls", &[("state", "QUARANTINED")])) { (count(count_of(State::Quarantined), "URL", "URLs")) }
                " quarantined"
            },
        ),
    ];
    if let Some(pruned) = core.and_then(|core| core.pruned) {
        rows.push(("Prune budget", budget(pruned)));
    }
    for pause in around.pauses.iter().take(NAMED) {
        let (what, fields) = match &pause.what {
            Scope::All => (html! { "everything" }, vec![]),
            Scope::Host(root) => (host(root), vec![("host", &**root)]),
        };
        rows.push((
            "Paused",
            html! {
                div.deeds {
                    span { (what) " by " (safe(&pause.who)) ", " (time(now, pause.since)) }
                    (asked.button(Deed::Resume, &fields))
                }
            },
        ));
    }
    let is_paused = around.pauses.iter().any(|pause| pause.what == Scope::All);
    html! {
        (facts(&rows))
        @if !is_paused { div.deeds { (asked.button(Deed::Pause, &[])) } }
    }
}

/// How much of the budget of pruning is used, and left.
fn budget(pruned: Pruned) -> Markup {
    let per = span(pruned.per);
    html! {
        @match pruned.most {
            None => { (count(pruned.pruned, "URL", "URLs")) " pruned within " (per) "; no limit" },
            Some(most) => {
                @let left = most.saturating_sub(pruned.pruned);
                span class=[(left == 0).then_some("bad")] { (number(left)) " left" }
                " of " (count(most, "URL", "URLs")) " in " (per) ", " (number(pruned.pruned)) " used"
            }
        }
    }
}

fn states(seen: &Seen) -> Markup {
    let counts = &seen.overview.counts;
    let all = counts.urls().max(1);
    let rows: Vec<Vec<Markup>> = State::ALL
        .into_iter()
        .map(|reached| {
            let urls = counts.states.get(&reached).copied().unwrap_or(0);
            let share = urls as f64 / all as f64;
            vec![
                html! { a href=(href("/urls", &[("state", reached.name())])) { (state(reached)) } },
                html! { (number(urls)) },
                html! { div.bar { span { (percent(share)) } svg.share viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true" {
                    rect class=(class(reached)) x="0" y="0" width=(format!("{:.2}", share * 100.0)) height="8" {}
                } } },
            ]
        })
        .collect();
    table("URLs by state", &["State", "#URLs", "Share"], &rows, "")
}

fn over_time(range: &Range, name: &str) -> Markup {
    let charts = [
        Chart {
            heading: "Checks a second",
            lines: Class::ALL
                .into_iter()
                .map(|class| (class.name(), format!("c-{}", class.name())))
                .collect(),
            values: |sample| {
                let seconds = f64::from(sample.seconds.max(1));
                sample
                    .checks
                    .iter()
                    .map(|count| *count as f64 / seconds)
                    .collect()
            },
            text: rate,
            is_stacked: true,
        },
        Chart {
            heading: "URLs that are not alive",
            lines: NOT_ALIVE
                .into_iter()
                .map(|state| (state.name(), class(state)))
                .collect(),
            values: |sample| {
                NOT_ALIVE
                    .into_iter()
                    .map(|state| sample.urls[usize::from(state.code())] as f64)
                    .collect()
            },
            text: whole,
            is_stacked: true,
        },
        Chart {
            heading: "Time of answers",
            lines: vec![("P50", "p50".to_owned()), ("P95", "p95".to_owned())],
            values: |sample| vec![sample.p50.as_secs_f64(), sample.p95.as_secs_f64()],
            text: millis,
            is_stacked: false,
        },
        Chart {
            heading: "Oldest due",
            lines: vec![("oldest due", "p95".to_owned())],
            values: |sample| vec![sample.lag.as_secs_f64()],
            text: seconds,
            is_stacked: false,
        },
    ];
    html! {
        nav.choices aria-label="Range of time" {
            @for (range, _) in RANGES {
                a href=(href("/", &[("range", range)])) aria-current=[(range == name).then_some("true")] { (range) }
            }
        }
        div.charts { @for chart in &charts { (chart.drawn(range)) } }
    }
}

fn changed(seen: &Seen) -> Markup {
    let rows: Vec<Vec<Markup>> = seen
        .today
        .iter()
        .map(|(from, to, count)| vec![change(from, to), html! { (number(count)) }])
        .collect();
    html! {
        (table("Changes of state since midnight, UTC", &["Change", "#URLs"], &rows, "Nothing has changed since midnight, UTC."))
        @if seen.today.is_behind { p { "Older changes of today are still being counted." } }
    }
}

fn waiting(around: &Around) -> Markup {
    let Some(core) = around.live.core() else {
        return html! { p.empty { "The service does not answer." } };
    };
    let longest = core.longest.iter().take(NAMED);
    let rows: Vec<Vec<Markup>> = longest
        .map(|waiting| {
            let why = waits(around.now, waiting);
            let why: Vec<&str> = why.iter().map(|why| &*why.text).collect();
            vec![host(&waiting.root), html! { (why.join("; ")) }]
        })
        .collect();
    html! {
        (table("Hosts that wait although URLs are due", &["Host", "Why"], &rows, "No host waits although URLs are due."))
        @if core.parked > rows.len() as u64 { p { a href="/hosts?sort=wait" { (number(core.parked)) " hosts wait" } } }
    }
}

fn store(around: &Around, seen: &Seen) -> Markup {
    let overview = &seen.overview;
    let letters: Vec<_> = overview
        .letters
        .iter()
        .filter(|(_, count)| *count > 0)
        .collect();
    let mut rows = vec![
        (
            "Place",
            html! { (safe(&overview.store.0)) ", " (bytes(overview.store.1)) },
        ),
        (
            "Hosts",
            html! { a href="/hosts" { (number(overview.counts.hosts)) } },
        ),
        (
            "Sets",
            html! {
                @if overview.sets.is_empty() { "none" }
                @for (i, set) in overview.sets.iter().take(NAMED).enumerate() {
                    @if i > 0 { ", " }
                    a href=(href("/urls", &[("set", &set.name)])) { (safe(&set.name)) } " " (number(set.members))
                }
                @if overview.sets.len() > NAMED { " and " (number((overview.sets.len() - NAMED) as u64)) " more" }
            },
        ),
        (
            "Dead letters",
            html! {
                @if letters.is_empty() { "none" }
                @for (i, (reason, count)) in letters.iter().enumerate() {
                    @if i > 0 { ", " }
                    a href=(href("/letters", &[("reason", reason)])) { (safe(reason)) } " " (number(*count))
                }
            },
        ),
    ];
    if let Some(cycle) = &overview.cycle {
        rows.push(("Last cycle", html! { (cycle_in_words(cycle, around.now)) }));
    }
    if let Some(workers) = &around.fleet {
        rows.push((
            "Fleet",
            html! {
                @if workers.is_empty() { "no workers" }
                @for (i, worker) in workers.iter().take(NAMED).enumerate() {
                    @if i > 0 { br; }
                    (safe(&worker.name)) "[" (worker.process) "] has "
                    (words::count(worker.hosts, "host", "hosts")) ", seen " (words::span(worker.silent)) " ago"
                    @let work = work(worker);
                    @if !work.is_empty() { ", " (work) }
                }
                @if workers.len() > NAMED { br; "and " (number((workers.len() - NAMED) as u64)) " more" }
            },
        ));
    }
    if overview.counts.kept > 0 {
        rows.push((
            "Kept",
            html! { (words::count(overview.counts.kept, "URL", "URLs")) " in no set" },
        ));
    }
    facts(&rows)
}

fn rate(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        ..1.0 => format!("{value:.2}"),
        ..10.0 => format!("{value:.1}"),
        _ => number(value as u64),
    }
}

fn whole(value: f64) -> String {
    match value.fract() {
        0.0 => number(value as u64),
        _ => format!("{value:.1}"),
    }
}

/// A time in seconds, as milliseconds if it is short.
fn millis(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        ..0.01 => format!("{:.1} ms", value * 1e3),
        ..2.0 => format!("{:.0} ms", value * 1e3),
        _ => format!("{value:.1} s"),
    }
}

fn seconds(value: f64) -> String {
    match value {
        ..2.0 => millis(value),
        _ => span(Duration::try_from_secs_f64(value).unwrap_or_default()),
    }
}

fn percent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0 %".to_owned(),
        ..1.0 => format!("{:.2} %", share * 100.0),
        percent => format!("{percent:.1} %"),
    }
}

/// Ranges of time: names and hours.
const RANGES: [(&str, u64); 3] = [("1h", 1), ("24h", 24), ("30d", 720)];
/// Of samples for 30 days, each of so many is shown.
const THIN: usize = 12;
/// How many hosts, pauses and sets are named.
const NAMED: usize = 5;
/// How many of the latest changes are shown.
const LATEST: usize = 10;
/// What is more than these is shown as bad, as the alerts do.
const MOST_STALE: f64 = 0.026;
const MOST_LAG: Duration = Duration::from_secs(3_600);
const NOT_ALIVE: [State; 7] = [
    State::New,
    State::Suspect,
    State::Quarantined,
    State::Unreachable,
    State::Broken,
    State::Gone,
    State::Pruned,
];
