//! `--man`: the manual page of a command, in the macros of man(7).

use std::fmt::Write as _;

use super::help::{body, fill};
use super::manual::Manual;

pub(crate) fn page(manual: &Manual) -> String {
    let Manual { name, about, .. } = manual;
    // A verb has a page of its own: crawler-cli-watch-add.
    let page = name.replace(' ', "-");
    let version = env!("CARGO_PKG_VERSION");
    let mut text = format!(
        ".TH CRAWLER-CLI-{} 1 \"\" \"crawler-cli {version}\" \"User Commands\"\n.nh\n.ad l\n\
         .SH NAME\ncrawler-cli-{page} \\- {}\n\
         .SH SYNOPSIS\n{}\
         .SH DESCRIPTION\n",
        page.to_uppercase(),
        escaped(about),
        synopsis(manual)
    );
    let description = match manual.description {
        "" => format!("crawler-cli {name} can {about}."),
        description => description.to_owned(),
    };
    paragraphs(&mut text, &description, ".PP\n");
    for (heading, rows) in &manual.sections {
        // Writing to a string does not fail.
        let _ = writeln!(text, ".SH {}", escaped(&heading.to_uppercase()));
        for row in rows {
            let names = row.names.iter();
            let names: Vec<_> = names.map(|name| bold(name)).collect();
            let _ = write!(text, ".TP\n{}", names.join(", "));
            for value in row.values {
                let _ = write!(text, " \\fI{}\\fR", escaped(value.name));
            }
            text.push('\n');
            paragraphs(&mut text, &body(row), ".IP\n");
        }
    }
    for (heading, note) in manual.notes {
        let _ = writeln!(text, ".SH {}", escaped(&heading.to_uppercase()));
        paragraphs(&mut text, note, ".PP\n");
    }
    if !manual.statuses.is_empty() {
        text.push_str(".SH EXIT STATUS\n");
    }
    for (status, meaning) in manual.statuses {
        let _ = writeln!(text, ".TP\n.B {status}");
        paragraphs(&mut text, meaning, "");
    }
    if !manual.examples.is_empty() {
        text.push_str(".SH EXAMPLES\n");
    }
    for (i, (example, what)) in manual.examples.iter().enumerate() {
        let _ = writeln!(
            text,
            "{}{}:\n.PP\n.nf\n.RS\n{}\n.RE\n.fi",
            if i == 0 { "" } else { ".PP\n" },
            escaped(what),
            escaped(example)
        );
    }
    if !manual.see_also.is_empty() {
        let pages = manual.see_also.iter();
        let pages: Vec<_> = pages.map(|page| format!(".BR {page} (1)")).collect();
        let _ = writeln!(text, ".SH SEE ALSO\n{}", pages.join(",\n"));
    }
    text
}

/// How the command is called: a line for each way.
fn synopsis(manual: &Manual) -> String {
    let mut text = String::new();
    for (index, usage) in manual.usages().enumerate() {
        let way = if index > 0 { ".br\n" } else { "" };
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{way}.B crawler-cli {}\n{}",
            manual.name,
            escaped(usage)
        );
    }
    text
}

/// A name of an option, as the page shows it.
pub(super) fn bold(name: &str) -> String {
    format!("\\fB{}\\fR", escaped(name))
}

/// Text for roff in which no character is a command.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\e"),
            '-' => out.push_str("\\-"),
            '\'' => out.push_str("\\(aq"),
            '`' => out.push_str("\\(ga"),
            '^' => out.push_str("\\(ha"),
            '~' => out.push_str("\\(ti"),
            '.' if out.is_empty() => out.push_str("\\&."),
            c => out.push(c),
        }
    }
    out
}

/// Each line of `source` as a paragraph, in short lines none of which is a command.
fn paragraphs(text: &mut String, source: &str, between: &str) {
    for (i, paragraph) in source.lines().enumerate() {
        if i > 0 {
            text.push_str(between);
        }
        let mut filled = String::new();
        fill(&mut filled, "", 0, paragraph, 70);
        for line in filled.lines() {
            text.push_str(&escaped(line));
            text.push('\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roff_takes_no_text_for_a_command() {
        assert_eq!(escaped(".x\\y -z 'a'"), "\\&.x\\ey \\-z \\(aqa\\(aq");
    }
}
