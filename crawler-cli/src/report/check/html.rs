//! `--report html`: one page with what is broken by source, and the numbers by host. The amount of text is bounded.

use std::cmp::Reverse;

use maud::{Markup, html};

use super::figures;
use super::findings::{Findings, Part, Place, Places, source_name};
use crate::report::page::{self, line, link, section};
use check::{Ending, HostTally, Outcome, Summary};
use plain::terminal;
use plain::text::{count, size, span, thousands};
use verdict::Class;

/// The whole page. `made` is the time of the report, as text.
pub(super) fn page(title: &str, findings: &Findings, summary: &Summary, made: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let about = format!("{} · crawler-cli check {version} · {made}", state(summary));
    let broken = figures::broken(summary);
    let unjudged = summary.count(Class::Unknown) + summary.count(Class::Void);
    let (problems, more) = findings.problems();
    let is_empty = problems.is_empty() && Part::ALL.iter().all(|&it| findings.part(it).is_empty());
    let body = html! {
        (page::tiles(&[
            ("URLs", thousands(summary.urls), false),
            ("broken", thousands(broken), broken > 0),
            ("not judged", thousands(unjudged), false),
            ("redirected", thousands(summary.redirected), false),
            ("good", thousands(summary.count(Class::Ok)), false),
            ("time", span(summary.elapsed), false),
            ("requests/s", thousands(summary.requests_per_second()), false),
            ("received", size(summary.stats.bytes()), false),
        ]))
        (part(findings, Part::Broken))
        @if !problems.is_empty() {
            (section("Not read", "", &html! {
                @for problem in problems { div.line { span.name { (terminal::neutralise(problem)) } } }
                @if more > 0 { p { "And " (thousands(more)) " more." } }
            }))
        }
        @for later in Part::ALL.into_iter().skip(1) { (part(findings, later)) }
        @if is_empty && summary.ending == Ending::Finished {
            section { p.good { "All links are good." } }
        }
        @if !summary.hosts.is_empty() {
            (section("By host", "Bars are the shares of URLs that are not good.", &hosts(summary)))
        }
        section { h2 { "Summary" } @for text in figures::lines(summary) { p { (text) } } }
    };
    page::document(title, &about, &body)
}

fn state(summary: &Summary) -> &'static str {
    match (summary.ending, summary.outcome()) {
        (Ending::Stopped | Ending::Failed, _) => "stopped early",
        (_, Outcome::Untrusted) => "not trustworthy: a guard was on",
        (_, Outcome::Good) => "all good",
        _ => "not everything is good",
    }
}

/// The places of a part by source; nothing if there are none. Bars are shares of these places.
fn part(findings: &Findings, part: Part) -> Markup {
    let places = findings.part(part);
    if places.is_empty() {
        return html! {};
    }
    let heading = format!(
        "{}: {}",
        part.heading(),
        count(places.urls(), "URL", "URLs")
    );
    let note = format!("At {}, by source.", count(places.all(), "place", "places"));
    let mut left = MOST_ROWS;
    section(
        &heading,
        &note,
        &html! {
            @for group in places.by_source() {
                @let rows = &group[..group.len().min(left)];
                @let () = left -= rows.len();
                @if let [first, ..] = rows {
                    @let share = group.len() as f64 / places.all() as f64;
                    details.bad[part == Part::Broken] open {
                        summary { (line(&html! { (terminal::neutralise(source_name(&first.source))) }, share, &thousands(group.len() as u64))) }
                        table { @for place in rows { (row(place)) } }
                    }
                }
            }
            @if places.given_up().next().is_some() {
                details.bad[part == Part::Broken] open {
                    summary { "hosts that were given up" }
                    table {
                        @for (host, reason, given_up) in places.given_up().take(MOST_ROWS) {
                            tr {
                                td.n { (thousands(given_up.urls)) }
                                td { (link(host, host)) }
                                td { (terminal::neutralise(reason)) }
                            }
                        }
                    }
                }
            }
            (further(places, MOST_ROWS - left))
        },
    )
}

fn row(place: &Place) -> Markup {
    html! {
        tr {
            td.n { (place.position()) }
            td { (link(&place.url, &place.url)) }
            td { (terminal::neutralise(&place.reason)) }
        }
    }
}

fn further(places: &Places, shown: usize) -> Markup {
    let given_up: u64 = places.given_up().map(|(.., it)| it.places).sum();
    let further = places.all() - given_up - shown as u64;
    html! { @if further > 0 { p { "And at " (thousands(further)) " more places." } } }
}

/// The hosts, those with the most broken URLs first.
fn hosts(summary: &Summary) -> Markup {
    let bad = |tally: &HostTally| -> u64 {
        let bad = [Class::Negative, Class::Network, Class::Soft];
        bad.iter().map(|&class| tally.count(class)).sum()
    };
    let mut hosts: Vec<_> = summary.hosts.iter().collect();
    hosts.sort_by_key(|(_, tally)| {
        Reverse((
            bad(tally),
            tally.count(Class::Unknown),
            tally.count(Class::Ok),
        ))
    });
    let more = hosts.len().saturating_sub(MOST_HOSTS);
    let further: u64 = summary.further_hosts.classes.iter().sum();
    html! {
        @for (name, tally) in hosts.into_iter().take(MOST_HOSTS) {
            @let all: u64 = tally.classes.iter().sum();
            @let share = (all - tally.count(Class::Ok)) as f64 / all.max(1) as f64;
            @let name = if name.is_empty() { "files, and what is no URL" } else { name };
            div.line.bad[bad(tally) > 0] { (line(&html! { (terminal::neutralise(name)) }, share, &classes(tally))) }
        }
        @if more > 0 { p { "And " (thousands(more as u64)) " hosts with fewer broken URLs." } }
        @if further > 0 { p { "And " (thousands(further)) " URLs of further hosts." } }
    }
}

/// `97 ok, 2 neg, 1 net`
fn classes(tally: &HostTally) -> String {
    let classes = Class::ALL.iter().filter(|&&class| tally.count(class) > 0);
    let classes =
        classes.map(|&class| format!("{} {}", thousands(tally.count(class)), class.name()));
    classes.collect::<Vec<_>>().join(", ")
}

/// The largest number of rows in the tables of one part.
const MOST_ROWS: usize = 2000;

/// The largest number of hosts.
const MOST_HOSTS: usize = 100;
