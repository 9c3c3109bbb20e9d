//! `--report html`: one page with charts and tables by host, by cause and by source. The amount of text is bounded.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use maud::{Markup, html};

use super::figures;
use super::findings::{Findings, Judged, Part, Place, Places, source_name};
use super::reason::meaning;
use crate::check::{Class, Ending, HostTally, Outcome, Summary};
use crate::report::charts::{self, BARS, Bar};
use crate::report::page::{self, hosts_table, link, rows_table, section};
use crate::report::statistics::{
    Spent, classes_text, connections_text, count, latency_text, size_text, span_text, thousands,
};
use crate::terminal;

/// Places by source and part; good ones too.
#[derive(Debug, Default)]
pub(super) struct Sources {
    of: HashMap<Arc<str>, [u64; COLUMNS.len()]>,
    further: [u64; COLUMNS.len()],
}

/// What is counted of a source: the label and the CSS class.
const COLUMNS: [(&str, &str); 5] = [
    ("good", "s2"),
    ("redirected", "s3"),
    ("not judged", "s0"),
    ("not counted", "s4"),
    ("broken", "s5"),
];

impl Sources {
    pub(super) fn add(&mut self, judged: &Judged<'_>) {
        let column = match judged.part {
            None => 0,
            Some(Part::Redirected) => 1,
            Some(Part::Unjudged) => 2,
            Some(Part::Excused) => 3,
            Some(Part::Broken) => 4,
        };
        for place in &judged.checked.references {
            let is_kept = self.of.len() < MOST_SOURCES || self.of.contains_key(&place.source);
            let counts = match is_kept {
                true => self.of.entry(Arc::clone(&place.source)).or_default(),
                false => &mut self.further,
            };
            counts[column] += 1;
        }
    }

    /// Those with the most broken places first.
    fn worst(&self) -> Vec<(&str, &[u64; COLUMNS.len()])> {
        let mut all: Vec<_> = self
            .of
            .iter()
            .map(|(name, counts)| (&**name, counts))
            .collect();
        all.sort_by_key(|(name, counts)| {
            let [good, redirected, unjudged, excused, broken] = **counts;
            Reverse((broken, excused, unjudged, redirected, good, Reverse(*name)))
        });
        all
    }
}

/// The whole page. `made` is the time of the report, as text.
pub(super) fn page(
    title: &str,
    findings: &Findings,
    sources: &Sources,
    summary: &Summary,
    made: &str,
) -> String {
    let title = terminal::neutralise(title);
    let about = html! {
        (state(summary)) " · crawler-cli check " (env!("CARGO_PKG_VERSION")) " · " (made)
    };
    let body = html! {
        @if summary.resumed {
            p { "An earlier run was continued. Charts and latencies are those of the last run." }
        }
        (tiles(summary))
        @if !summary.causes.is_empty() { (section("By cause", "", causes_table(summary))) }
        (findings_sections(findings, summary))
        (charts(summary, sources))
        (tables(summary, sources))
    };
    page::document(&title, &about, &body)
}

fn state(summary: &Summary) -> &'static str {
    match (summary.ending, summary.outcome()) {
        (Ending::Stopped | Ending::Failed, _) => "stopped early",
        (_, Outcome::Untrusted) => "not trustworthy: a guard was on",
        (_, Outcome::Good) => "all good",
        _ => "not everything is good",
    }
}

fn tiles(summary: &Summary) -> Markup {
    let latency = Some(summary.stats.latency()).filter(|latency| latency.count() > 0);
    let at = |q| latency.map_or_else(|| "–".to_owned(), |latency| span_text(latency.quantile(q)));
    let bad = |n: u64| (n > 0).then_some("bad");
    let broken = figures::broken(summary);
    let unjudged = summary.count(Class::Unknown) + summary.count(Class::Void);
    page::tiles(&[
        ("URLs", thousands(summary.urls), None),
        ("broken", thousands(broken), bad(broken)),
        ("not judged", thousands(unjudged), None),
        ("redirected", thousands(summary.redirected), None),
        ("good", thousands(summary.count(Class::Ok)), None),
        ("time", span_text(summary.elapsed), None),
        ("requests/s", thousands(summary.requests_per_second()), None),
        ("received", size_text(summary.stats.bytes()), None),
        ("P50", at(0.5), None),
        ("P95", at(0.95), None),
    ])
}

/// A table for each part that has something.
fn findings_sections(findings: &Findings, summary: &Summary) -> Markup {
    let (problems, more) = findings.problems();
    let is_empty = Part::ALL.iter().all(|&part| findings.part(part).is_empty());
    html! {
        (part(findings, Part::Broken))
        @if !problems.is_empty() {
            (section("Not read", "", html! {
                table { tbody {
                    @for problem in problems { tr { td { (terminal::neutralise(problem)) } } }
                } }
                @if more > 0 { p { "And " (thousands(more)) " more." } }
            }))
        }
        @for later in [Part::Unjudged, Part::Excused, Part::Redirected] { (part(findings, later)) }
        @if is_empty && problems.is_empty() && summary.ending == Ending::Finished {
            section { p.good { "All links are good." } }
        }
    }
}

fn part(findings: &Findings, part: Part) -> Markup {
    let places = findings.part(part);
    if places.is_empty() {
        return html! {};
    }
    let heading = format!("{}: {}", part.heading(), thousands(places.urls()));
    let note = match places.all() {
        n if n == places.urls() => String::new(),
        n => format!("At {}.", count(n, "place", "places")),
    };
    section(&heading, &note, places_table(places))
}

fn places_table(places: &Places) -> Markup {
    let groups: Vec<&[Place]> = places.by_source().collect();
    let shown: u64 = groups.iter().map(|group| group.len() as u64).sum();
    let shown = shown.min(MOST_ROWS as u64);
    let mut left = MOST_ROWS;
    html! {
        table {
            thead { tr { th.n { "Line" } th { "URL" } th { "Reason" } } }
            @for group in groups {
                @let rows = &group[..group.len().min(left)];
                @let () = left -= rows.len();
                @if let [first, ..] = rows {
                    tbody {
                        tr { th.source colspan="3" { (source(&first.source)) } }
                        @for place in rows {
                            tr {
                                td.n { (place.position()) }
                                td { (link(&place.url)) }
                                td { (terminal::neutralise(&place.reason)) }
                            }
                        }
                    }
                }
            }
        }
        @if places.all() > shown { p { "And at " (thousands(places.all() - shown)) " more places." } }
    }
}

fn source(name: &str) -> Markup {
    link(source_name(name))
}

fn charts(summary: &Summary, sources: &Sources) -> Markup {
    let stats = &summary.stats;
    let most = |n: usize, what: &str| match n {
        0..=BARS => String::new(),
        _ => format!(" Only {BARS} {what} are shown."),
    };
    html! {
        @if !summary.hosts.is_empty() {
            (section(
                "Verdicts by host",
                &format!("Shares of the URLs. The number at the end is that of all URLs.{}", most(summary.hosts.len(), "hosts")),
                verdicts(summary),
            ))
        }
        @if sources.of.len() > 1 {
            (section(
                "Verdicts by source",
                &format!("Shares of the places that refer to URLs.{}", most(sources.of.len(), "sources")),
                by_source(sources),
            ))
        }
        (charts::over_time(stats.timeline()))
        @if !stats.hosts().is_empty() {
            (section(
                "Status by host",
                &format!("Shares of the requests. The number at the end is that of all requests.{}", most(stats.hosts().len(), "hosts")),
                charts::statuses(stats.hosts()),
            ))
        }
    }
}

/// The CSS class of each class of verdicts.
fn colour(class: Class) -> &'static str {
    match class {
        Class::Ok => "s2",
        Class::Negative => "s5",
        Class::Network => "s4",
        Class::Unknown => "s0",
        Class::Soft => "s3",
        Class::Void => "sv",
    }
}

fn verdicts(summary: &Summary) -> Markup {
    let hosts = worst_hosts(summary);
    let bars = hosts.iter().take(BARS).map(|(name, tally)| Bar {
        name,
        parts: tally.classes.to_vec(),
        whole: tally.classes.iter().sum(),
    });
    let legend = Class::ALL.map(|class| (class.name(), colour(class)));
    charts::shares("Verdicts by host", &legend, &bars.collect::<Vec<_>>())
}

fn by_source(sources: &Sources) -> Markup {
    let worst = sources.worst();
    let bars = worst.iter().take(BARS).map(|(name, counts)| Bar {
        name: source_name(name),
        parts: counts.to_vec(),
        whole: counts.iter().sum(),
    });
    charts::shares("Verdicts by source", &COLUMNS, &bars.collect::<Vec<_>>())
}

/// The hosts, those with the most broken URLs first.
fn worst_hosts(summary: &Summary) -> Vec<(&str, &HostTally)> {
    let name = |host| match host {
        "" => "files, and what is no URL",
        host => host,
    };
    let hosts = summary.hosts.iter();
    let mut hosts: Vec<_> = hosts
        .map(|(host, tally)| (name(host.as_str()), tally))
        .collect();
    hosts.sort_by_key(|(_, tally)| {
        let bad = [Class::Negative, Class::Network, Class::Soft];
        let bad: u64 = bad.iter().map(|&class| tally.count(class)).sum();
        Reverse((bad, tally.count(Class::Unknown), tally.count(Class::Ok)))
    });
    hosts
}

fn tables(summary: &Summary, sources: &Sources) -> Markup {
    let stats = &summary.stats;
    let mut rows = vec![
        ("Outcome", figures::line(summary)),
        ("Costs", figures::costs(summary)),
        ("Latency", latency_text(stats.latency())),
        ("Connections", connections_text(stats.connections())),
        (
            "Time",
            Spent::new(summary.elapsed, stats).text(summary.elapsed),
        ),
    ];
    if !stats.failed().is_empty() {
        rows.push(("Attempts that failed", classes_text(stats.failed())));
    }
    html! {
        @if !summary.hosts.is_empty() { (section("By host", "", verdicts_table(summary))) }
        @if !sources.of.is_empty() { (section("By source", "Numbers of places.", sources_table(sources))) }
        (section("Summary", "", rows_table(&rows)))
        @if !stats.hosts().is_empty() {
            (section("Speed of the hosts", "The slowest first.", hosts_table(stats)))
        }
    }
}

fn causes_table(summary: &Summary) -> Markup {
    html! {
        table {
            thead { tr { th { "Cause" } th { "Class" } th { "Meaning" } th.n { "URLs" } } }
            tbody {
                @for (cause, n) in figures::causes(summary) {
                    tr {
                        td { (cause.name()) }
                        td { (cause.class().name()) }
                        td { (meaning(cause)) }
                        td.n { (thousands(n)) }
                    }
                }
            }
        }
    }
}

fn verdicts_table(summary: &Summary) -> Markup {
    let hosts = worst_hosts(summary);
    let more = hosts.len().saturating_sub(MOST_LINES);
    let further: u64 = summary.further_hosts.classes.iter().sum();
    html! {
        table.hosts {
            thead { tr { th { "Host" } @for class in Class::ALL { th.n { (class.name()) } } } }
            tbody {
                @for (name, tally) in hosts.iter().take(MOST_LINES) {
                    tr {
                        td { (terminal::neutralise(name)) }
                        @for n in tally.classes { td.n { (thousands(n)) } }
                    }
                }
            }
        }
        @if more > 0 { p { "And " (thousands(more as u64)) " hosts with fewer broken URLs." } }
        @if further > 0 { p { "And " (thousands(further)) " URLs of further hosts." } }
    }
}

fn sources_table(sources: &Sources) -> Markup {
    let worst = sources.worst();
    let more = worst.len().saturating_sub(MOST_LINES);
    let further: u64 = sources.further.iter().sum();
    html! {
        table {
            thead { tr { th { "Source" } @for (name, _) in COLUMNS.iter().rev() { th.n { (name) } } } }
            tbody {
                @for (name, counts) in worst.iter().take(MOST_LINES) {
                    tr {
                        td { (source(name)) }
                        @for n in counts.iter().rev() { td.n { (thousands(*n)) } }
                    }
                }
            }
        }
        @if more > 0 { p { "And " (thousands(more as u64)) " sources with fewer broken links." } }
        @if further > 0 { p { "And " (thousands(further)) " places in further sources." } }
    }
}

/// The largest number of rows in the table of one part.
const MOST_ROWS: usize = 2000;

/// The largest number of rows in the tables of hosts and sources.
const MOST_LINES: usize = 100;

/// The largest number of sources that are counted one by one.
const MOST_SOURCES: usize = 20_000;
