//! The help texts of a command, short and long.

use std::fmt::Write as _;

use super::manual::Manual;
use super::option::Row;

/// `-h`: one line for each option.
pub(crate) fn short(manual: &Manual, width: usize) -> String {
    let mut text = opening(manual, "", width);
    for (heading, rows) in &manual.sections {
        // Writing to a string does not fail.
        let _ = writeln!(text, "\n{heading}:");
        one_line_each(&mut text, rows, width);
    }
    let _ = writeln!(text, "\nIn full: crawler-cli {} --help", manual.name);
    text
}

/// `--help`: all there is to say.
pub(crate) fn long(manual: &Manual, width: usize) -> String {
    let mut text = opening(manual, manual.description, width);
    for (heading, rows) in &manual.sections {
        let _ = writeln!(text, "\n{heading}:");
        if rows.iter().all(|row| row.long.is_empty()) {
            one_line_each(&mut text, rows, width);
            continue;
        }
        for row in rows {
            let _ = writeln!(text, "\n  {}", row.signature());
            paragraphs(&mut text, 6, &body(row), width);
        }
    }
    for (heading, note) in manual.notes {
        let _ = writeln!(text, "\n{heading}:");
        paragraphs(&mut text, 2, note, width);
    }
    if !manual.statuses.is_empty() {
        text.push_str("\nExit status:\n");
    }
    for (status, meaning) in manual.statuses {
        fill(&mut text, &format!("  {status:<7}"), 9, meaning, width);
    }
    if !manual.examples.is_empty() {
        text.push_str("\nExamples:\n");
    }
    for (example, what) in manual.examples {
        fill(&mut text, "  ", 2, &format!("{what}:"), width);
        let _ = writeln!(text, "    {example}");
    }
    text
}

/// The full description of an option, with its default and its variables.
pub(super) fn body(row: &Row) -> String {
    let mut text = match row.long {
        "" => format!("{}.", row.short),
        long => long.to_owned(),
    };
    if !row.default.is_empty() {
        let _ = write!(text, " Default: {}.", row.default);
    }
    if !row.env.is_empty() {
        let variables = row.env.join(", ");
        let _ = write!(
            text,
            " Without this option, these environment variables are used: {variables}."
        );
    }
    text
}

/// `lead` and then the words of `source`, wrapped. Further lines are indented.
pub(super) fn fill(text: &mut String, lead: &str, indent: usize, source: &str, width: usize) {
    text.push_str(lead);
    let mut column = indent;
    for (i, word) in source.split(' ').enumerate() {
        let length = word.chars().count();
        if i > 0 && column + 1 + length > width {
            text.push('\n');
            text.extend(std::iter::repeat_n(' ', indent));
            column = indent;
        } else if i > 0 {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += length;
    }
    text.push('\n');
}

/// What the command does, how it is called, and a description.
fn opening(manual: &Manual, description: &str, width: usize) -> String {
    let mut text = String::new();
    let Manual { name, about, .. } = manual;
    paragraphs(&mut text, 0, &format!("{}.", capitalised(about)), width);
    text.push('\n');
    for (index, usage) in manual.usages().enumerate() {
        let lead = if index == 0 { "Usage: " } else { "       " };
        fill(
            &mut text,
            lead,
            7,
            &format!("crawler-cli {name} {usage}"),
            width,
        );
    }
    if !description.is_empty() {
        text.push('\n');
        paragraphs(&mut text, 0, description, width);
    }
    text
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(chars).collect()
}

fn one_line_each(text: &mut String, rows: &[Row], width: usize) {
    for row in rows {
        let signature = row.signature();
        let lead = match signature.len() + 4 <= COLUMN {
            true => format!("  {signature:<0$}", COLUMN - 2),
            false => format!("  {signature}\n{:COLUMN$}", ""),
        };
        let default = match row.default {
            "" => String::new(),
            default => format!(" [{default}]"),
        };
        fill(
            text,
            &lead,
            COLUMN,
            &format!("{}{default}", row.short),
            width,
        );
    }
}

/// Where the lines about options begin.
const COLUMN: usize = 32;

/// Each line of `source` as a paragraph, indented.
fn paragraphs(text: &mut String, indent: usize, source: &str, width: usize) {
    for (i, paragraph) in source.lines().enumerate() {
        if i > 0 {
            text.push('\n');
        }
        fill(text, &" ".repeat(indent), indent, paragraph, width);
    }
}
