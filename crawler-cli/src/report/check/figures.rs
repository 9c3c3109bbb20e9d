//! The figures of a check: what it says on the whole, in a few lines or as JSON.

use std::cmp::Reverse;

use serde_json::{Map, Value, json};

use crate::report::statistics::{cpu_text, held_text, with_costs};
use check::{Ending, HostTally, Outcome, Summary};
use plain::text::{count, size, span, thousands};
use verdict::{Cause, Class};

/// Whether nothing fails.
pub(super) fn is_good(summary: &Summary) -> bool {
    summary.outcome() == Outcome::Good
}

/// The verdict on the whole, the costs, and the numbers of each cause.
pub(super) fn lines(summary: &Summary) -> Vec<String> {
    let mut lines = vec![line(summary)];
    let causes = causes(summary);
    if !causes.is_empty() {
        let causes = causes.iter();
        let causes = causes.map(|(cause, n)| format!("{} × {}", thousands(*n), cause.name()));
        lines.push(format!("causes: {}", causes.collect::<Vec<_>>().join(", ")));
    }
    let left_out = left_out(summary);
    if !left_out.is_empty() {
        lines.push(format!("not checked: {}", left_out.join(", ")));
    }
    lines.push(costs(summary));
    lines
}

/// The verdict on the whole in one line.
pub(super) fn line(summary: &Summary) -> String {
    let urls = count(summary.urls, "URL", "URLs");
    let places = count(summary.references, "place", "places");
    let mut parts = vec![format!("{} good", thousands(summary.count(Class::Ok)))];
    parts.extend(some(broken(summary), "BROKEN"));
    parts.extend(some(
        summary.failing_recently,
        "broken, but not for long enough",
    ));
    parts.extend(some(summary.count(Class::Unknown), "not judged"));
    parts.extend(some(summary.count(Class::Void), "VOID"));
    parts.extend(some(summary.redirected, "redirected"));
    let mut line = format!("{urls} at {places}: {}", parts.join(", "));
    if summary.problems > 0 {
        line += &format!(
            "; {} NOT READ",
            count(summary.problems, "source", "sources")
        );
    }
    if summary.guards > 0 || summary.count(Class::Void) > 0 {
        line += "; NOT TRUSTWORTHY: a guard was on";
    }
    match summary.ending {
        Ending::Finished => {}
        Ending::Stopped | Ending::Failed => {
            let left = summary.known.saturating_sub(summary.urls);
            line += &format!("; STOPPED early, {} left", count(left, "URL", "URLs"));
            if summary.is_read_in_part {
                line += ", and what was not read";
            }
        }
    }
    line
}

/// Broken URLs that count.
pub(super) fn broken(summary: &Summary) -> u64 {
    let bad = [Class::Negative, Class::Network, Class::Soft];
    let bad: u64 = bad.iter().map(|&class| summary.count(class)).sum();
    bad.saturating_sub(summary.failing_recently)
}

fn some(n: u64, what: &str) -> Option<String> {
    (n > 0).then(|| format!("{} {what}", thousands(n)))
}

/// What was not checked, and why.
fn left_out(summary: &Summary) -> Vec<String> {
    let parts = [
        some(summary.unsupported, "with another scheme"),
        some(summary.excluded, "left out"),
        some(summary.reused, "checked recently"),
    ];
    parts.into_iter().flatten().collect()
}

/// What the check has cost.
pub(super) fn costs(summary: &Summary) -> String {
    let stats = &summary.stats;
    let mut text = format!(
        "{} in {} ({}/s), {} received",
        count(summary.requests, "request", "requests"),
        span(summary.elapsed),
        thousands(summary.requests_per_second()),
        size(stats.bytes()),
    );
    if let Some(rate) = stats.held_by(summary.elapsed) {
        text += &held_text(rate);
    }
    if let Some(mean) = stats.mean() {
        let (mean, slowest) = (span(mean), span(stats.slowest()));
        text += &format!("; latency {mean} in the mean, {slowest} at most");
    }
    text + &cpu_text(stats, summary.urls).map_or(String::new(), |cpu| format!("; {cpu}"))
}

/// The numbers of URLs by the name of the cause, the largest first. Several statuses share the name `status_4xx`.
pub(super) fn causes(summary: &Summary) -> Vec<(Cause, u64)> {
    let mut causes: Vec<(Cause, u64)> = Vec::new();
    for (&cause, &n) in &summary.causes {
        match causes.iter_mut().find(|it| it.0.name() == cause.name()) {
            Some((_, sum)) => *sum += n,
            None => causes.push((cause, n)),
        }
    }
    causes.sort_by_key(|&(_, n)| Reverse(n));
    causes
}

/// `--summary json`: one object on one line.
pub(super) fn json(summary: &Summary) -> String {
    let causes = causes(summary).into_iter();
    let causes = causes.map(|(cause, n)| (cause.name().into_owned(), Value::from(n)));
    let tallies = summary.hosts.iter();
    let tallies = tallies.map(|(host, tally)| (host.clone(), classes(tally)));
    let own = json!({
        "complete": summary.ending == Ending::Finished,
        "resumed": summary.resumed,
        "ending": match summary.ending {
            Ending::Finished => "finished",
            Ending::Stopped => "stopped",
            Ending::Failed => "failed",
        },
        "exit_status": summary.outcome().exit_status(),
        "urls": summary.urls,
        "known": summary.known,
        "references": summary.references,
        "classes": classes(&HostTally { classes: summary.classes }),
        "causes": Value::Object(causes.collect()),
        "failing": summary.failing,
        "warned": summary.warned,
        "failing_recently": summary.failing_recently,
        "redirected": summary.redirected,
        "moved": summary.moved,
        "reused": summary.reused,
        "unsupported": summary.unsupported,
        "excluded": summary.excluded,
        "problems": summary.problems,
        "guards": summary.guards,
        "requests": summary.requests,
        "requests_per_second": summary.requests_per_second(),
        "urls_by_host": Value::Object(tallies.collect()),
        "urls_of_further_hosts": classes(&summary.further_hosts),
    });
    with_costs(own, summary.elapsed, &summary.stats)
}

/// The numbers of URLs by class.
fn classes(tally: &HostTally) -> Value {
    let classes = Class::ALL.iter();
    let classes = classes.map(|&class| (class.name().to_owned(), tally.count(class).into()));
    Value::Object(classes.collect::<Map<_, _>>())
}
