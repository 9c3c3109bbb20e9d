//! `--report csv`: a row for each place that refers to a URL (RFC 4180), all URLs, as they come.

use std::fmt::Display;

use super::reason::reason;
use crate::check::json::{Millis, rfc3339};
use crate::check::{Checked, Reference, Verdict};
use crate::terminal::csv_text;

/// The names of the columns.
const NAMES: [&str; 18] = [
    "url",
    "class",
    "cause",
    "reason",
    "status",
    "method",
    "state",
    "moved_to",
    "final_url",
    "redirects",
    "attempts",
    "latency_ms",
    "address",
    "checked_at",
    "source",
    "line",
    "column",
    "text",
];

/// How many of the columns are about the place.
const OF_PLACE: usize = 4;

/// The header.
pub(super) fn header(out: &mut Vec<u8>) {
    out.extend_from_slice(NAMES.join(",").as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// The rows of a URL: one if no place refers to it.
pub(super) fn write(checked: &Checked, out: &mut Vec<u8>) {
    let about = of_url(checked).join(",");
    let mut row = |place: [String; OF_PLACE]| {
        out.extend_from_slice(about.as_bytes());
        for cell in place {
            out.push(b',');
            out.extend_from_slice(cell.as_bytes());
        }
        out.extend_from_slice(b"\r\n");
    };
    for reference in &checked.references {
        row(of_place(reference));
    }
    if checked.references.is_empty() {
        row(Default::default());
    }
}

fn of_url(checked: &Checked) -> [String; NAMES.len() - OF_PLACE] {
    let is_good = checked.verdict == Verdict::Ok && checked.redirects.is_empty();
    let redirects = checked.redirects.iter();
    let redirects = redirects.map(|redirect| format!("{} {}", redirect.status, redirect.url));
    [
        csv_text(&checked.url),
        checked.verdict.class().name().to_owned(),
        checked
            .verdict
            .cause()
            .map_or_else(String::new, |cause| cause.name().into_owned()),
        if is_good {
            String::new()
        } else {
            csv_text(&reason(checked))
        },
        known(checked.status),
        known(checked.method),
        known(checked.state.map(|state| state.name())),
        text(checked.moved_to.as_deref()),
        text(checked.final_url.as_deref()),
        csv_text(&redirects.collect::<Vec<_>>().join(" ")),
        checked.attempts.to_string(),
        known(checked.latency.map(Millis)),
        known(checked.address),
        known(checked.checked_at.map(rfc3339)),
    ]
}

fn of_place(reference: &Reference) -> [String; OF_PLACE] {
    [
        csv_text(&reference.source),
        known(reference.line),
        known(reference.column),
        csv_text(&reference.text),
    ]
}

/// A value without characters that CSV or a spreadsheet gives a meaning.
fn known(value: Option<impl Display>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

fn text(value: Option<&str>) -> String {
    value.map_or_else(String::new, csv_text)
}
