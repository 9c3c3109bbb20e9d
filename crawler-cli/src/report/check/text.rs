//! `--report text`: what a person wants to know. What is broken comes first, by source with line and reason; then what
//! could not be judged, then redirects, then figures.

use std::fmt::Write as _;

use console::Style;

use super::figures;
use super::findings::{Findings, Part, Place, Places, source_name};
use check::Summary;
use plain::terminal;
use plain::text::{count, thousands};

/// The colours of a report; plain if it does not go to a terminal.
#[derive(Debug)]
pub(super) struct Colours {
    heading: Style,
    bad: Style,
    unsure: Style,
    faint: Style,
    good: Style,
}

impl Colours {
    /// Colours, or none at all.
    pub(super) fn new(is_coloured: bool) -> Self {
        let style = || Style::new().force_styling(is_coloured);
        Self {
            heading: style().bold(),
            bad: style().red(),
            unsure: style().yellow(),
            faint: style().dim(),
            good: style().green(),
        }
    }

    fn of(&self, part: Part) -> &Style {
        match part {
            Part::Broken => &self.bad,
            Part::Unjudged | Part::Excused => &self.unsure,
            Part::Redirected | Part::Lenient => &self.faint,
        }
    }
}

/// The whole report.
pub(super) fn report(findings: &Findings, summary: &Summary, colours: &Colours) -> String {
    let mut text = lists(findings, colours);
    let style = match figures::is_good(summary) {
        true => &colours.good,
        false => &colours.bad,
    };
    let mut lines = figures::lines(summary).into_iter();
    let verdict = lines.next().unwrap_or_default();
    // Writing to a string does not fail.
    let _ = writeln!(text, "{}", style.apply_to(verdict));
    for line in lines {
        let _ = writeln!(text, "{line}");
    }
    text
}

/// The report without figures.
pub(super) fn lists(findings: &Findings, colours: &Colours) -> String {
    let mut text = String::new();
    part(
        &mut text,
        findings.part(Part::Broken),
        Part::Broken,
        colours,
    );
    problems(&mut text, findings, colours);
    for later in Part::ALL.into_iter().skip(1) {
        part(&mut text, findings.part(later), later, colours);
    }
    text
}

fn part(text: &mut String, places: &Places, part: Part, colours: &Colours) {
    if places.is_empty() {
        return;
    }
    let heading = format!(
        "{}: {} at {}",
        part.heading(),
        count(places.urls(), "URL", "URLs"),
        count(places.all(), "place", "places")
    );
    let _ = writeln!(text, "{}\n", colours.heading.apply_to(heading));
    for of_source in places.by_source() {
        group(text, of_source, colours.of(part));
    }
    given_up(text, places, colours.of(part));
    if places.more() > 0 {
        let more = thousands(places.more());
        let _ = writeln!(text, "... and at {more} more places, which --json names\n");
    }
}

/// The places of one source.
fn group(text: &mut String, places: &[Place], style: &Style) {
    let Some(first) = places.first() else {
        return;
    };
    let name = source_name(&first.source);
    let _ = writeln!(text, "{}", terminal::neutralise(name));
    let positions: Vec<_> = places.iter().map(Place::position).collect();
    let width = positions.iter().map(String::len).max().unwrap_or(0);
    for (place, position) in places.iter().zip(positions) {
        let reason = terminal::neutralise(&place.reason);
        let gap = if width == 0 { "" } else { "  " };
        let _ = writeln!(
            text,
            "  {position:>width$}{gap}{} – {}",
            terminal::neutralise(&place.url),
            style.apply_to(reason)
        );
    }
    text.push('\n');
}

/// A line for each host that was given up, not one for each of its URLs.
fn given_up(text: &mut String, places: &Places, style: &Style) {
    let before = text.len();
    for (host, reason, given_up) in places.given_up() {
        if text.len() == before {
            text.push_str("hosts that were given up\n");
        }
        let urls = count(given_up.urls, "URL", "URLs");
        let reason = terminal::neutralise(reason);
        let _ = writeln!(
            text,
            "  {} – {urls}: {}",
            terminal::neutralise(host),
            style.apply_to(reason)
        );
    }
    if text.len() > before {
        text.push('\n');
    }
}

fn problems(text: &mut String, findings: &Findings, colours: &Colours) {
    let (problems, more) = findings.problems();
    if problems.is_empty() {
        return;
    }
    let _ = writeln!(text, "{}\n", colours.heading.apply_to("Not read"));
    for problem in problems {
        let problem = terminal::neutralise(problem);
        let _ = writeln!(text, "  {}", colours.bad.apply_to(problem));
    }
    if more > 0 {
        let _ = writeln!(text, "  ... and {} more", thousands(more));
    }
    text.push('\n');
}
