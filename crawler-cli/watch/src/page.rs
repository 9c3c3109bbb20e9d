//! The page for an operator with a browser: how everything is, read only. One template, without scripts and forms; the browser
//! loads it anew every ten seconds. What URLs and servers say is escaped by the template, and URLs are shown without users.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hyper::header::HeaderValue;
use jiff::Timestamp;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use ring::digest;
use url::Url;

use super::figures::Figures;
use super::hands::status::Overview;
use super::hands::why::{Around, general, waits};
use super::hands::words::{self, distance, safe, stamp};
use super::hands::{Live, Reader, root_of};
use super::hour::{MINUTES, Minute};
use super::sets::LastReading;
use plain::text::{count, rough_span, thousands};
use store::{Cursor, Event, Notice, NoticeId, Scope, StoreError, WatchStore as _, WatchedUrl};
use verdict::life::State;

/// What the store and the service say, at one moment.
#[derive(Debug)]
pub(super) struct Seen {
    around: Around,
    overview: Overview,
    /// What is not good, by the hosts.
    bad: ByHost<WatchedUrl>,
    changes: ByHost<Event>,
    /// The latest ones, with their hosts.
    notices: Vec<(Notice, Option<String>)>,
}

type ByHost<T> = BTreeMap<String, Vec<T>>;

impl Seen {
    pub(super) fn read(
        reader: &mut Reader,
        live: Live,
        now: Timestamp,
    ) -> Result<Self, StoreError> {
        let around = reader.around(None, live, now)?;
        // How late the work is, is known by the figures.
        let overview = reader.overview(now, 0)?;
        let store = reader.store();
        let mut bad = Vec::new();
        for state in BAD {
            bad.extend(store.in_trouble(state, MOST_BAD - bad.len())?);
        }
        let changes = store.events_before(Cursor::END, MOST_ROWS)?;
        let mut notices = Vec::new();
        for (_, notice) in store.notices_before(NoticeId::END, MOST_ROWS)? {
            let host = notice.host.map(|host| store.root_of(host)).transpose()?;
            notices.push((notice, host.flatten()));
        }
        Ok(Self {
            around,
            overview,
            bad: by_host(bad, |url| &url.url),
            changes: by_host(changes, |change| &change.url),
            notices,
        })
    }

    /// The page. `minutes` are those of the last hour, the last one first.
    pub(super) fn page(
        &self,
        figures: &Figures,
        minutes: &[Minute],
        readings: &BTreeMap<String, LastReading>,
    ) -> String {
        let (now, overview) = (self.around.now, &self.overview);
        let urls = |state: State| overview.counts.states.get(&state).copied().unwrap_or(0);
        let reasons = general(&self.around);
        let core = self.around.live.core();
        let guard = core.and_then(|core| core.own_network.as_ref());
        let bad: usize = self.bad.values().map(Vec::len).sum();
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    meta http-equiv="refresh" content="10";
                    title { "courser" }
                    style { (PreEscaped(STYLE)) }
                }
                body {
                    h1 { "courser" }
                    @if reasons.is_empty() { p.good { "Asking" } }
                    @for reason in &reasons { p.bad { "Not asking: " (reason.text) } }
                    dl { @for (name, value) in self.tiles(figures, minutes.first()) { div { dt { (name) } dd { (value) } } } }
                    dl { @for state in State::ALL { div { dt { (state.name()) } dd { (thousands(urls(state))) } } } }
                    @if overview.counts.private > 0 { p.bad {
                        (count(overview.counts.private, "URL", "URLs")) " at private addresses: asked only with limits.allow_private"
                    } }
                    div.curves {
                        (curve("checks a second", minutes, |minute| minute.checks, rate))
                        (curve("P95 of answers", minutes, |minute| minute.p95.as_secs_f64(), seconds))
                        (curve("pruned a minute", minutes, |minute| minute.pruned, |pruned| thousands(pruned.round() as u64)))
                    }
                    h2 { "Guards and holds" }
                    table {
                        tr { th { "own network" } @match guard {
                            Some(guard) => td.bad { "fails since " (time(now, guard.since)) ": " (safe(&guard.why)) },
                            None => td.good { "works" },
                        } }
                        @if let Some(pruned) = core.and_then(|core| core.pruned) { tr { th { "prune budget" } td {
                            (count(pruned.pruned, "URL", "URLs")) " pruned in " (rough_span(pruned.per))
                            @if let Some(most) = pruned.most { ", at most " (thousands(most)) }
                        } } }
                        @for pause in self.around.pauses.iter().take(MOST_ROWS) { tr { th { "paused" } td {
                            @match &pause.what { Scope::All => "everything", Scope::Host(root) => (words::url(root)) }
                            " by " (safe(&pause.who)) ", " (time(now, pause.since))
                        } } }
                        @for hold in overview.holds.iter().take(MOST_ROWS) { tr { th { "hold" } td.bad {
                            (words::url(&hold.root)) ": " (count(hold.held, "URL", "URLs")) " since " (time(now, hold.hold.since))
                            @if hold.ending.is_some() { ", ending" } @else { ": many of its URLs turned bad at once" }
                        } } }
                    }
                    h2 { "Not good now" }
                    @if bad == 0 { p { "Nothing." } }
                    @if bad == MOST_BAD { p { "The first " (MOST_BAD) "." } }
                    @for (host, urls) in &self.bad { h3 { (host) } table { @for url in urls { tr {
                        td { (link(&url.url)) }
                        td { (url.life.state().name()) }
                        td { @if let Some(cause) = url.answer.as_ref().and_then(|answer| answer.verdict.cause()) { (cause.name()) } }
                        td { @if let Some(at) = url.life.first_bad() { (time(now, at)) } }
                    } } } }
                    @if let Some(core) = core && core.failing > 0 {
                        h2 { (count(core.failing, "host fails", "hosts fail")) }
                        table { @for host in &core.fails { tr {
                            td { (words::url(&host.root)) }
                            td.bad { (safe(&host.why)) " since " (time(now, host.since)) }
                        } } }
                    }
                    h2 { "Hosts that wait longest" }
                    table { @for host in core.map(|core| &*core.longest).unwrap_or_default() { tr {
                        td { (words::url(&host.root)) }
                        td { @for why in waits(now, host) { (why.text) ". " } }
                    } } }
                    h2 { (count(overview.sets.len() as u64, "set", "sets")) }
                    table { @for set in overview.sets.iter().take(MOST_ROWS) { tr {
                        td { (safe(&set.name)) }
                        td { (count(set.members, "URL", "URLs")) }
                        @if let Some((lost, members)) = set.refused { td.bad {
                            "source refused: " (thousands(lost)) " of " (count(members, "URL", "URLs")) " are missing"
                        } } @else { td { @if let Some(at) = set.read_at { "read " (time(now, at)) } } }
                    } } }
                    table { @for (name, last) in readings.iter().take(MOST_ROWS) { @if let Err(why) = &last.outcome { tr {
                        td { (safe(name)) }
                        td.bad { "not read " (time(now, last.at)) ": " (safe(why)) }
                    } } } }
                    h2 { "Latest changes" }
                    @for (host, changes) in &self.changes { h3 { (host) } table { @for change in changes { tr {
                        td { (link(&change.url)) }
                        td { (change.from.name()) " → " (change.to.name()) }
                        td { (safe(&change.why)) }
                        td { (time(now, change.at)) }
                    } } } }
                    h2 { "Notices" }
                    table { @for (notice, host) in &self.notices { tr {
                        td { @if let Some(host) = host { (words::url(host)) ": " } (safe(&notice.text)) }
                        td { @if let Some(who) = &notice.who { (safe(who)) } }
                        td { (time(now, notice.at)) }
                    } } }
                    p { (safe(&overview.store.0)) ", as of " (stamp(now)) }
                }
            }
        };
        page.into_string()
    }

    /// The most important numbers.
    fn tiles(&self, figures: &Figures, last: Option<&Minute>) -> [(&'static str, String); 8] {
        let known = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
        let time = |time: Duration| seconds(time.as_secs_f64());
        let letters: Vec<String> = (self.overview.letters.iter())
            .map(|(reason, letters)| format!("{} {}", safe(reason), thousands(*letters)))
            .collect();
        let letters = Some(letters.join(", ")).filter(|letters| !letters.is_empty());
        let jobs = self.overview.jobs.iter();
        let jobs = jobs.map(|(_, waiting, started)| waiting + started);
        let late = figures.backlog.staleness.get() * 100.0;
        let lag = Duration::from_millis(figures.backlog.lag.get());
        [
            ("URLs", thousands(self.overview.counts.urls())),
            ("checks a second", known(last.map(|last| rate(last.checks)))),
            ("P50 of answers", known(last.map(|last| time(last.p50)))),
            ("P95 of answers", known(last.map(|last| time(last.p95)))),
            ("late", format!("{late:.1} %")),
            ("oldest due", rough_span(lag)),
            ("jobs", thousands(jobs.sum())),
            ("dead letters", known(letters)),
        ]
    }
}

/// Things by the hosts of their URLs.
fn by_host<T>(things: Vec<T>, url: impl Fn(&T) -> &str) -> ByHost<T> {
    let mut hosts = ByHost::new();
    for thing in things {
        let root = Url::parse(url(&thing)).map(|url| root_of(&url));
        hosts
            .entry(root.unwrap_or_default())
            .or_default()
            .push(thing);
    }
    hosts
}

/// A URL; a link, unless it has a user.
fn link(url: &str) -> Markup {
    let shown = words::short_url(url);
    html! { @if words::url(url) == url { a href=(url) rel="noreferrer" { (shown) } } @else { (shown) } }
}

/// How far a time is from now.
fn time(now: Timestamp, at: Timestamp) -> Markup {
    html! { time datetime=(at) title=(stamp(at)) { (distance(now, at)) } }
}

fn curve(
    name: &str,
    minutes: &[Minute],
    value: fn(&Minute) -> f64,
    text: fn(f64) -> String,
) -> Markup {
    let most = minutes.iter().map(value).fold(0.0, f64::max);
    let mut points = String::new();
    for (age, minute) in minutes.iter().enumerate() {
        let height = value(minute) / most.max(f64::MIN_POSITIVE);
        // Writing to a string does not fail.
        let _ = write!(points, "{},{:.1} ", MINUTES - 1 - age, 29.0 - 28.0 * height);
    }
    html! {
        figure {
            figcaption { (name) ", at most " (text(most)) " in the last hour" }
            svg viewBox=(format!("0 0 {} 30", MINUTES - 1)) preserveAspectRatio="none" role="img" aria-label=(name) {
                polyline points=(points.trim_end()) vector-effect="non-scaling-stroke" {}
            }
        }
    }
}

fn rate(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        ..10.0 => format!("{value:.2}"),
        _ => thousands(value as u64),
    }
}

fn seconds(value: f64) -> String {
    match value {
        ..2.0 => format!("{:.0} ms", value * 1e3),
        _ => format!("{value:.1} s"),
    }
}

/// The Content-Security-Policy: nothing is loaded, and nothing holds but the style of this page.
pub(super) fn policy() -> io::Result<HeaderValue> {
    let hash = BASE64_STANDARD.encode(digest::digest(&digest::SHA256, STYLE.as_bytes()));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    HeaderValue::try_from(policy).map_err(io::Error::other)
}

/// What is not good, the worst first.
const BAD: [State; 5] = [
    State::Broken,
    State::Unreachable,
    State::Quarantined,
    State::Suspect,
    State::Gone,
];
const MOST_BAD: usize = 200;
/// How many changes, notices, holds, pauses and sets are shown.
const MOST_ROWS: usize = 50;

const STYLE: &str = "
:root { --ink: #1d2433; --soft: #5d6779; --rule: #d9dee7; --good: #1f7a50; --bad: #c22f2f; --line: #2563c9; --back: #fff }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ef; --soft: #98a2b3; --rule: #343c4b; --good: #55b98a; --bad: #ef7070; --line: #79a8f5; --back: #151a23 }
}
body { font: 15px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--back); max-width: 1200px; margin: 0 auto; padding: 12px 20px }
h1 { font-size: 20px; margin: 0 } h2 { font-size: 16px; margin: 26px 0 6px } h3 { font-size: 14px; margin: 10px 0 2px }
p { margin: 4px 0 } a { color: inherit } .good { color: var(--good) } .bad { color: var(--bad) }
dl { display: flex; flex-wrap: wrap; gap: 8px 30px; margin: 14px 0 } dt, figcaption { font-size: 12px; color: var(--soft) }
dd { margin: 0; font-size: 19px; font-variant-numeric: tabular-nums }
table { border-collapse: collapse; width: 100%; table-layout: fixed } tr { border-bottom: 1px solid var(--rule) }
th, td { text-align: left; vertical-align: top; padding: 3px 14px 3px 0; font-weight: normal; overflow-wrap: anywhere }
th { color: var(--soft); width: 130px } td:first-child { width: 55% } time { white-space: nowrap }
.curves { display: grid; grid-template-columns: repeat(auto-fit, minmax(260px, 1fr)); gap: 14px 30px } figure { margin: 0 }
svg { width: 100%; height: 56px; border-bottom: 1px solid var(--rule) } polyline { fill: none; stroke: var(--line); stroke-width: 1.5 }
";
