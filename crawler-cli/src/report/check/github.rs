//! `--report github`: workflow commands, which GitHub Actions turns into annotations at the lines of files.
//!
//! <https://docs.github.com/en/actions/reference/workflow-commands-for-github-actions>

use std::fmt::Write as _;
use std::sync::Arc;

use super::findings::{Judged, Part};
use crate::check::sources::Problem;
use crate::check::{Reference, Standing};
use crate::terminal;

/// The commands about a URL: one for each place, none if there is nothing to look at.
pub(super) fn write(judged: &Judged<'_>, out: &mut Vec<u8>) {
    let Some(part) = judged.part else { return };
    let checked = judged.checked;
    let command = match part {
        _ if checked.standing == Standing::Fails => "error",
        Part::Broken => "error",
        Part::Unjudged | Part::Excused => "warning",
        Part::Redirected => "notice",
    };
    let title = checked.verdict.cause().map(|cause| cause.name());
    let title = title.as_deref().unwrap_or("redirected");
    let message = format!("{}: {}", checked.url, judged.reason);
    for reference in &checked.references {
        annotation(out, command, Some(reference), title, &message);
    }
    if checked.references.is_empty() {
        annotation(out, command, None, title, &message);
    }
}

/// A command about a source that could not be read.
pub(super) fn problem(problem: &Problem, out: &mut Vec<u8>) {
    let place = Reference {
        source: Arc::clone(&problem.source),
        line: problem.line,
        column: None,
        text: String::new(),
    };
    annotation(out, "error", Some(&place), "not read", &problem.detail);
}

fn annotation(
    out: &mut Vec<u8>,
    command: &str,
    place: Option<&Reference>,
    title: &str,
    message: &str,
) {
    let mut line = format!("::{command} ");
    let mut message = message.to_owned();
    if let Some(place) = place {
        match is_file(&place.source) {
            true => {
                // Writing to a string does not fail.
                let _ = write!(line, "file={},", property(&place.source));
                if let Some(number) = place.line {
                    let _ = write!(line, "line={number},");
                }
                if let Some(number) = place.column {
                    let _ = write!(line, "col={number},");
                }
            }
            false if place.source.is_empty() => {}
            false => {
                let _ = write!(message, " (in {}", place.source);
                if let Some(number) = place.line {
                    let _ = write!(message, ", line {number}");
                }
                message.push(')');
            }
        }
    }
    let _ = writeln!(line, "title={}::{}", property(title), data(&message));
    out.extend_from_slice(line.as_bytes());
}

/// Whether a source is a file: neither a page, nor standard input, nor the command line.
pub(super) fn is_file(source: &str) -> bool {
    let is_page = source.starts_with("http://") || source.starts_with("https://");
    !is_page && !matches!(source, "" | "-")
}

/// The text of a message, escaped. Characters that GitHub does not escape, but a terminal would act on, become visible.
fn data(text: &str) -> String {
    let text = text
        .replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A");
    terminal::neutralise(&text).into_owned()
}

/// The value of a property, escaped.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
