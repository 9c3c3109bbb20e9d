//! `watch status`: how the service and its store fare, and why a URL or a host is not asked.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::show::reasons;
use super::why::{Around, general, of_host, of_url, waits};
use super::words::{self, Columns, Sheet, distance, safe, stamp_from};
use crate::control::{CoreStatus, LiveStatus, StoreCondition};
use plain::text::{count, rough_span, size, thousands};
use store::{
    Cycle, HostDetail, HostHold, ScheduleState, Scope, SetInfo, UrlDetail, WatchCounts, WorkerInfo,
};
use verdict::life::State;
use verdict::life::time::between;

/// What the store says about everything.
#[derive(Clone, Debug)]
pub(crate) struct Overview {
    /// The file of the store, and its size.
    pub(crate) store: (String, u64),
    pub(crate) counts: WatchCounts,
    pub(crate) sets: Vec<SetInfo>,
    pub(crate) holds: Vec<HostHold>,
    pub(crate) cycle: Option<Cycle>,
    pub(crate) schedules: Vec<ScheduleState>,
    /// Dead letters by reason.
    pub(crate) letters: Vec<(String, u64)>,
    /// Jobs by queue: waiting and started.
    pub(crate) jobs: Vec<(String, u64, u64)>,
    pub(crate) late: Late,
}

/// What is due and not asked yet.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Late {
    /// How many URLs are past due by more than [`GRACE`]; at most [`MOST_COUNTED`].
    pub(crate) urls: u64,
    /// When the first URL is due; may be in the past.
    pub(crate) next: Option<Timestamp>,
}

/// A URL that is late by less is in time: the limit of the staleness ratio.
pub(crate) const GRACE: Duration = Duration::from_secs(144);
/// Up to how many late URLs are counted.
pub(crate) const MOST_COUNTED: u64 = 100_000;

/// The page about everything.
pub(crate) fn text(overview: &Overview, around: &Around) -> String {
    let now = around.now;
    let mut sheet = Sheet::default();
    let counts = &overview.counts;
    sheet.line(&format!(
        "{}: {} of {} in {}, {}",
        safe(&overview.store.0),
        count(counts.urls(), "URL", "URLs"),
        count(counts.hosts, "host", "hosts"),
        count(overview.sets.len() as u64, "set", "sets"),
        size(overview.store.1),
    ));
    sheet.line("");
    let reasons = general(around);
    sheet.field("Asking", if reasons.is_empty() { "yes" } else { "no" });
    reasons.iter().for_each(|reason| sheet.more(&reason.text));
    service(&mut sheet, around.live.running(), now);
    if let Some(workers) = &around.fleet
        && !workers.is_empty()
    {
        sheet.field("Fleet", &count(workers.len() as u64, "worker", "workers"));
        fleet(workers).lines().for_each(|line| sheet.more(line));
    }
    late(&mut sheet, overview.late, now);
    if let Some(cycle) = &overview.cycle {
        sheet.field("Last cycle", &cycle_in_words(cycle, now));
    }
    sheet.line("");
    let states = State::ALL.into_iter().filter_map(|state| {
        let urls = *counts.states.get(&state)?;
        (urls > 0).then(|| format!("{} {}", state.name(), thousands(urls)))
    });
    let states: Vec<String> = states.collect();
    sheet.field(
        "States",
        if states.is_empty() {
            "no URLs".into()
        } else {
            states.join(", ")
        }
        .as_str(),
    );
    if counts.kept > 0 {
        sheet.more(&format!(
            "{} in no set, whose history is kept",
            count(counts.kept, "URL", "URLs")
        ));
    }
    if counts.private > 0 {
        let urls = count(counts.private, "URL", "URLs");
        let text = format!("{urls} at private addresses: asked only with limits.allow_private");
        sheet.field("Private", &text);
    }
    holds(&mut sheet, &overview.holds, now);
    failing(&mut sheet, around.live.core(), now);
    parked(&mut sheet, around.live.core(), now);
    partly_paused(&mut sheet, around);
    sheet.field("Dead letters", &super::letters::counts(&overview.letters));
    for (queue, waiting, started) in &overview.jobs {
        let text = format!(
            "{}: {} waiting, {} running",
            safe(queue),
            thousands(*waiting),
            thousands(*started)
        );
        sheet.field("Jobs", &text);
    }
    sets(&mut sheet, &overview.sets, now);
    if !overview.schedules.is_empty() {
        sheet.line("");
        sheet.field("Schedules", "");
        let lines = super::schedules::rows(&overview.schedules, now);
        lines
            .lines()
            .for_each(|line| sheet.line(&format!("  {line}")));
    }
    sheet.finish()
}

fn service(sheet: &mut Sheet, live: Option<&LiveStatus>, now: Timestamp) {
    let Some(live) = live else {
        return;
    };
    let since = stamp_from(now, live.since);
    sheet.field(
        "Service",
        &format!("process {} since {since}", live.process),
    );
    if let Some(core) = &live.core {
        sheet.more(&format!(
            "{} being asked, {} waiting for their hosts",
            count(core.under_way, "URL", "URLs"),
            thousands(core.waiting)
        ));
    }
}

fn late(sheet: &mut Sheet, late: Late, now: Timestamp) {
    let text = match late.next {
        None => "nothing is due".to_owned(),
        Some(next) if next > now => format!("nothing is due before {}", stamp_from(now, next)),
        Some(next) => {
            let first = format!("the first since {}", stamp_from(now, next));
            match late.urls {
                0 => format!("in time: URLs are due, {first}"),
                MOST_COUNTED.. => {
                    format!("more than {} URLs, {first}", thousands(MOST_COUNTED - 1))
                }
                urls => format!(
                    "{} by more than {}, {first}",
                    count(urls, "URL", "URLs"),
                    rough_span(GRACE)
                ),
            }
        }
    };
    sheet.field("Late", &text);
}

pub(crate) fn cycle_in_words(cycle: &Cycle, now: Timestamp) -> String {
    let counts = &cycle.counts;
    let took = match cycle.ended {
        Some(ended) => format!("took {}", rough_span(between(cycle.began, ended))),
        None => "has not ended".to_owned(),
    };
    format!(
        "began {}, {took}: {} asked, {} alive, {} in doubt, {} worse, {} void",
        distance(now, cycle.began),
        thousands(counts.asked),
        thousands(counts.alive),
        thousands(counts.in_doubt),
        thousands(counts.worse),
        thousands(counts.void)
    )
}

fn holds(sheet: &mut Sheet, holds: &[HostHold], now: Timestamp) {
    if holds.is_empty() {
        sheet.field("Holds", "none");
        return;
    }
    let urls = holds.iter().map(|hold| hold.held).sum();
    let hosts = count(holds.len() as u64, "host", "hosts");
    sheet.field(
        "Holds",
        &format!(
            "{hosts}, {}: see 'watch hold list'",
            count(urls, "URL", "URLs")
        ),
    );
    for hold in holds.iter().take(MOST_NAMED) {
        sheet.more(&format!(
            "{} since {}, {}",
            words::url(&hold.root),
            stamp_from(now, hold.hold.since),
            count(hold.held, "URL", "URLs")
        ));
    }
}

/// A line for each host that is not well, as many as the service names.
fn failing(sheet: &mut Sheet, core: Option<&CoreStatus>, now: Timestamp) {
    let Some(core) = core.filter(|core| core.failing > 0) else {
        return;
    };
    sheet.field("Failing", &count(core.failing, "host", "hosts"));
    for host in &core.fails {
        let since = stamp_from(now, host.since);
        sheet.more(&format!(
            "{} since {since}: {}",
            words::url(&host.root),
            safe(&host.why)
        ));
    }
}

fn parked(sheet: &mut Sheet, core: Option<&CoreStatus>, now: Timestamp) {
    let Some(core) = core.filter(|core| core.parked > 0) else {
        return;
    };
    sheet.field(
        "Parked",
        &format!("{} although URLs are due", verb_hosts(core.parked)),
    );
    for host in core.longest.iter().take(MOST_NAMED) {
        let why = waits(now, host);
        let why: Vec<&str> = why.iter().map(|wait| &*wait.text).collect();
        sheet.more(&format!("{}: {}", words::url(&host.root), why.join("; ")));
    }
}

fn verb_hosts(hosts: u64) -> String {
    match hosts {
        1 => "1 host waits".to_owned(),
        _ => format!("{} hosts wait", thousands(hosts)),
    }
}

/// Pauses of hosts and sets; that of everything is said at the top.
fn partly_paused(sheet: &mut Sheet, around: &Around) {
    for pause in around.pauses.iter().take(MOST_NAMED) {
        let what = match &pause.what {
            Scope::All => continue,
            Scope::Host(root) => words::url(root),
        };
        let since = stamp_from(around.now, pause.since);
        sheet.field(
            "Paused",
            &format!("{what} since {since} by {}", safe(&pause.who)),
        );
    }
}

/// The workers, one in a line.
pub(crate) fn fleet_text(workers: &[WorkerInfo]) -> String {
    match workers.is_empty() {
        true => "no workers: 'watch run' starts one\n".to_owned(),
        false => fleet(workers),
    }
}

fn fleet(workers: &[WorkerInfo]) -> String {
    let mut columns = Columns::default();
    for worker in workers {
        columns.row([
            format!("{}[{}]", safe(&worker.name), worker.process),
            count(worker.hosts, "host", "hosts"),
            format!("since {}", rough_span(worker.age)),
            format!("seen {} ago", rough_span(worker.silent)),
            safe(&worker.version),
        ]);
    }
    columns.lines("")
}

pub(crate) fn worker_json(worker: &WorkerInfo) -> Value {
    json!({
        "number": worker.number,
        "name": worker.name,
        "process": worker.process,
        "version": worker.version,
        "hosts": worker.hosts,
        "age_seconds": worker.age.as_secs(),
        "silent_seconds": worker.silent.as_secs(),
    })
}

fn sets(sheet: &mut Sheet, sets: &[SetInfo], now: Timestamp) {
    if sets.is_empty() {
        return;
    }
    sheet.line("");
    sheet.field("Sets", "");
    let mut columns = Columns::default();
    for set in sets.iter().take(MOST_SETS) {
        columns.row(set_in_words(set, now));
    }
    columns
        .lines("  ")
        .lines()
        .for_each(|line| sheet.line(line));
    if sets.len() > MOST_SETS {
        sheet.line(&format!(
            "  and {} more",
            thousands((sets.len() - MOST_SETS) as u64)
        ));
    }
}

/// The name of a set, its members, and its source.
fn set_in_words(set: &SetInfo, now: Timestamp) -> [String; 3] {
    if let Some((lost, members)) = set.refused {
        let why = format!(
            "source refused: {} of {} URLs are missing; 'watch add --set {} --accept-shrink' takes it",
            thousands(lost),
            thousands(members),
            safe(&set.name)
        );
        return [safe(&set.name), count(set.members, "URL", "URLs"), why];
    }
    let read = set
        .read_at
        .map(|at| format!("source read {}", distance(now, at)));
    [
        safe(&set.name),
        count(set.members, "URL", "URLs"),
        read.unwrap_or_default(),
    ]
}

/// The line about a set.
pub(crate) fn set_text(set: &SetInfo, now: Timestamp) -> String {
    let mut columns = Columns::default();
    columns.row(set_in_words(set, now));
    columns.lines("")
}

/// A set, for programs.
pub(crate) fn set_json(set: &SetInfo) -> Value {
    let refused = set
        .refused
        .map(|(lost, members)| json!({ "missing": lost, "of": members }));
    json!({ "name": set.name, "members": set.members, "read_at": set.read_at, "refused": refused })
}

/// Why a URL is not asked.
pub(crate) fn url_text(detail: &UrlDetail, around: &Around) -> String {
    let subject = format!(
        "{}: {}",
        words::url(&detail.url.url),
        detail.url.life.state().name()
    );
    answer(&subject, &of_url(detail, around))
}

/// Why a host is not asked.
pub(crate) fn host_text(detail: &HostDetail, around: &Around) -> String {
    let mut subject = format!(
        "{}: {}",
        words::url(&detail.host.root),
        count(detail.urls, "URL", "URLs")
    );
    if detail.held > 0 {
        subject += &format!(", {} held", thousands(detail.held));
    }
    let mut text = answer(&subject, &of_host(detail, around));
    let mut sheet = Sheet::default();
    let host = around.live.core().and_then(|core| core.host.as_ref());
    if let Some(host) = host {
        sheet.field(
            "Under way",
            &format!(
                "{}, {} waiting",
                thousands(host.under_way),
                thousands(host.waiting)
            ),
        );
    }
    let facts = &detail.host.facts;
    if let Some(at) = facts.answered_at {
        sheet.field("Answered", &stamp_from(around.now, at));
    }
    if let Some(control) = facts.control {
        let status = control
            .status
            .map_or("no answer".to_owned(), |status| status.to_string());
        sheet.field(
            "Control",
            &format!("{status}, {}", stamp_from(around.now, control.at)),
        );
    }
    for (until, what) in [
        (facts.no_head_until, "does not know HEAD"),
        (facts.head_lies_until, "denies to HEAD what GET finds"),
    ] {
        if let Some(until) = until.filter(|until| *until > around.now) {
            sheet.field(
                "HEAD",
                &format!(
                    "not used until {}: the host {what}",
                    stamp_from(around.now, until)
                ),
            );
        }
    }
    text += &sheet.finish();
    text
}

fn answer(subject: &str, reasons: &[super::why::WhyNot]) -> String {
    let mut sheet = Sheet::default();
    sheet.line(subject);
    sheet.line("");
    match reasons.split_first() {
        None => sheet.field("Asked", "now, or in a moment"),
        Some((first, rest)) => {
            sheet.field("Not asked", &first.text);
            rest.iter().for_each(|reason| sheet.more(&reason.text));
        }
    }
    sheet.finish()
}

/// The page about everything, for programs.
pub(crate) fn json(overview: &Overview, around: &Around) -> Value {
    let counts = &overview.counts;
    let states = State::ALL.into_iter().map(|state| {
        let urls = counts.states.get(&state).copied().unwrap_or(0);
        (state.name().to_owned(), json!(urls))
    });
    let states: serde_json::Map<String, Value> = states.collect();
    let sets = overview.sets.iter().map(set_json);
    let jobs = overview.jobs.iter().map(|(queue, waiting, started)| {
        json!({ "queue": queue, "waiting": waiting, "started": started })
    });
    let letters: serde_json::Map<String, Value> = overview
        .letters
        .iter()
        .map(|(reason, count)| (reason.clone(), json!(count)))
        .collect();
    json!({
        "store": { "file": overview.store.0, "bytes": overview.store.1 },
        "not_asked": reasons(&general(around)),
        "service": service_json(around.live.running()),
        "fleet": around.fleet.as_ref().map(|workers| workers.iter().map(worker_json).collect::<Value>()),
        "urls": counts.urls(),
        "hosts": counts.hosts,
        "kept": counts.kept,
        "private": counts.private,
        "states": states,
        "late": { "urls": overview.late.urls, "next": overview.late.next },
        "last_cycle": overview.cycle.as_ref().map(cycle_json),
        "holds": overview.holds.iter().map(super::holds::json).collect::<Value>(),
        "pauses": around.pauses.iter().map(|pause| {
            json!({ "what": pause.what, "since": pause.since, "who": pause.who })
        }).collect::<Value>(),
        "dead_letters": letters,
        "jobs": jobs.collect::<Value>(),
        "sets": sets.collect::<Value>(),
        "schedules": overview.schedules.iter().map(super::schedules::json).collect::<Value>(),
    })
}

fn service_json(live: Option<&LiveStatus>) -> Value {
    let Some(live) = live else {
        return Value::Null;
    };
    let condition = match &live.store {
        StoreCondition::Ok => json!("ok"),
        StoreCondition::Full => json!("full"),
        StoreCondition::Failing(why) => json!({ "failing": why }),
    };
    json!({
        "process": live.process,
        "version": live.version,
        "since": live.since,
        "store": condition,
        "core": live.core,
    })
}

fn cycle_json(cycle: &Cycle) -> Value {
    let counts = &cycle.counts;
    json!({
        "began": cycle.began,
        "ended": cycle.ended,
        "asked": counts.asked,
        "alive": counts.alive,
        "in_doubt": counts.in_doubt,
        "worse": counts.worse,
        "void": counts.void,
    })
}

/// The answer about a URL, for programs.
pub(crate) fn url_json(detail: &UrlDetail, around: &Around) -> Value {
    json!({
        "url": detail.url.url,
        "state": detail.url.life.state().name(),
        "due": detail.url.due.map(|(_, due)| due),
        "not_asked": reasons(&of_url(detail, around)),
    })
}

/// The answer about a host, for programs.
pub(crate) fn host_json(detail: &HostDetail, around: &Around) -> Value {
    let live = around.live.core().and_then(|core| core.host.as_ref());
    json!({
        "host": detail.host.root,
        "urls": detail.urls,
        "held": detail.held,
        "next": detail.next,
        "next_doubt": detail.next_doubt,
        "answered_at": detail.host.facts.answered_at,
        "not_asked": reasons(&of_host(detail, around)),
        "live": live,
    })
}

/// How many hosts and pauses are named.
const MOST_NAMED: usize = 5;
/// How many sets are named.
const MOST_SETS: usize = 20;
