//! `--report markdown`: for the summary of a CI job. Shorter than the 1 MiB that GitHub takes.

use std::fmt::Write as _;

use super::figures;
use super::findings::{Findings, Part, Place, Places, source_name};
use crate::check::Summary;
use crate::report::statistics::{count, thousands};
use crate::terminal;

/// The whole report.
pub(super) fn report(findings: &Findings, summary: &Summary) -> String {
    let mut text = String::from("## Links\n\n");
    for line in figures::lines(summary) {
        // Writing to a string does not fail.
        let _ = writeln!(text, "- {}", escaped(&line));
    }
    part(&mut text, findings.part(Part::Broken), Part::Broken);
    problems(&mut text, findings);
    for later in [Part::Unjudged, Part::Excused, Part::Redirected] {
        part(&mut text, findings.part(later), later);
    }
    text
}

fn part(text: &mut String, places: &Places, part: Part) {
    if places.is_empty() {
        return;
    }
    let _ = writeln!(
        text,
        "\n### {}: {} at {}\n\n| Place | URL | Reason |\n| --- | --- | --- |",
        part.heading(),
        count(places.urls(), "URL", "URLs"),
        count(places.all(), "place", "places")
    );
    let mut left = places.all();
    for place in places.by_source().flatten() {
        if text.len() > LONGEST {
            break;
        }
        row(text, place);
        left -= 1;
    }
    if left > 0 {
        let _ = writeln!(text, "\nAnd at {} more places.", thousands(left));
    }
}

fn row(text: &mut String, place: &Place) {
    let mut at = source_name(&place.source).to_owned();
    let position = place.position();
    if !position.is_empty() {
        let _ = write!(at, ":{position}");
    }
    let _ = writeln!(
        text,
        "| {} | {} | {} |",
        escaped(&at),
        link(&place.url),
        escaped(&place.reason)
    );
}

fn problems(text: &mut String, findings: &Findings) {
    let (problems, more) = findings.problems();
    if problems.is_empty() {
        return;
    }
    text.push_str("\n### Not read\n\n");
    for problem in problems {
        let _ = writeln!(text, "- {}", escaped(problem));
    }
    if more > 0 {
        let _ = writeln!(text, "- and {} more", thousands(more));
    }
}

/// A URL as an autolink, or as text if the URL has a character that ends one.
fn link(url: &str) -> String {
    let is_web = url.starts_with("http://") || url.starts_with("https://");
    let is_plain =
        |c: char| !c.is_whitespace() && !c.is_control() && !matches!(c, '<' | '>' | '\\');
    match is_web && url.chars().all(is_plain) {
        // In a table, `\|` is a `|` everywhere.
        true => format!("<{}>", terminal::neutralise(url).replace('|', "\\|")),
        false => escaped(url),
    }
}

/// Text without a meaning in Markdown.
fn escaped(text: &str) -> String {
    let text = terminal::neutralise(text);
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(
            c,
            '\\' | '`'
                | '*'
                | '_'
                | '['
                | ']'
                | '<'
                | '>'
                | '|'
                | '~'
                | '&'
                | '$'
                | '@'
                | '!'
                | '#'
        ) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// No row is added to a longer text, in bytes.
const LONGEST: usize = 900_000;
