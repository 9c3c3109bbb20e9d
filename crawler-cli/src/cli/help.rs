//! The help texts, short and long, and the man page, made from the table of options.

use std::fmt::Write as _;

use super::find::options::{Group, Opt, all};

/// `-h`: a line for each option.
pub(super) fn short(width: usize) -> String {
    let mut text = String::new();
    paragraphs(&mut text, 0, &format!("{ABOUT}\n{USAGE}"), width);
    for (group, rows) in groups() {
        // Writing to a string does not fail.
        let _ = writeln!(text, "\n{}:", group.heading());
        for opt in rows {
            let signature = signature(opt);
            let lead = match signature.len() {
                0..=22 => format!("  {signature:<24}"),
                _ => format!("  {signature}\n{:26}", ""),
            };
            let default = match opt.default {
                "" => String::new(),
                default => format!(" [{default}]"),
            };
            fill(
                &mut text,
                &lead,
                26,
                &format!("{}{default}", opt.short),
                width,
            );
        }
    }
    text.push_str("\n'crawler-cli find --help' tells all about them.\n");
    text
}

/// `--help`: all there is to say.
pub(super) fn long(width: usize) -> String {
    let mut text = String::new();
    paragraphs(
        &mut text,
        0,
        &format!("{ABOUT}\n{USAGE}\n{DESCRIPTION}"),
        width,
    );
    for (group, rows) in groups() {
        let _ = writeln!(text, "\n{}:", group.heading());
        for opt in rows {
            let _ = writeln!(text, "\n  {}", signature(opt));
            paragraphs(&mut text, 6, &body(opt), width);
        }
    }
    text.push_str("\nExit status:\n");
    for (status, meaning) in STATUSES {
        fill(&mut text, &format!("  {status:<5}"), 7, meaning, width);
    }
    text.push_str("\nExamples:\n");
    for (example, what) in EXAMPLES {
        fill(&mut text, "  ", 2, &format!("{what}:"), width);
        let _ = writeln!(text, "    {example}");
    }
    text
}

/// `--man`: the manual page, in the macros of man(7).
pub(super) fn man() -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut text = format!(
        ".TH CRAWLER-CLI-FIND 1 \"\" \"crawler-cli {version}\" \"User Commands\"\n.nh\n.ad l\n\
         .SH NAME\ncrawler-cli-find \\- {}\n\
         .SH SYNOPSIS\n.B crawler-cli find\n.IR URL ...\n.RI [ EXPRESSION ]\n.RI [ OPTION ...]\n\
         .SH DESCRIPTION\n",
        roff(NAME)
    );
    roff_paragraphs(&mut text, DESCRIPTION, ".PP\n");
    for (group, rows) in groups() {
        let _ = writeln!(text, ".SH {}", roff(&group.heading().to_uppercase()));
        for opt in rows {
            text.push_str(".TP\n");
            let names: Vec<_> = opt
                .names
                .iter()
                .map(|name| format!("\\fB{}\\fR", roff(name)))
                .collect();
            text.push_str(&names.join(", "));
            for value in opt.values {
                let _ = write!(text, " \\fI{}\\fR", roff(value.name));
            }
            text.push('\n');
            roff_paragraphs(&mut text, &body(opt), ".IP\n");
        }
    }
    text.push_str(".SH EXIT STATUS\n");
    for (status, meaning) in STATUSES {
        let _ = writeln!(text, ".TP\n.B {status}");
        roff_paragraphs(&mut text, meaning, "");
    }
    text.push_str(".SH EXAMPLES\n");
    for (i, (example, what)) in EXAMPLES.iter().enumerate() {
        let _ = writeln!(
            text,
            "{}{}:\n.PP\n.nf\n.RS\n{}\n.RE\n.fi",
            if i == 0 { "" } else { ".PP\n" },
            roff(what),
            roff(example)
        );
    }
    text.push_str(".SH SEE ALSO\n.BR find (1),\n.BR wget (1),\n.BR curl (1)\n");
    text
}

/// The groups that have rows.
fn groups() -> impl Iterator<Item = (Group, Vec<&'static Opt>)> {
    let with_rows = Group::ALL
        .iter()
        .map(|&group| (group, all().filter(|opt| opt.group == group).collect()));
    with_rows.filter(|(_, rows): &(_, Vec<_>)| !rows.is_empty())
}

/// `-x, --proxy URL`
fn signature(opt: &Opt) -> String {
    let mut text = opt.names.join(", ");
    for value in opt.values {
        text.push(' ');
        text.push_str(value.name);
    }
    text
}

fn body(opt: &Opt) -> String {
    let mut text = opt.long.to_owned();
    if !opt.default.is_empty() {
        let _ = write!(text, " Default: {}.", opt.default);
    }
    if !opt.env.is_empty() {
        let variables = opt.env.join(", ");
        let _ = write!(text, " Without it, the environment holds: {variables}.");
    }
    text
}

/// Each line of `source` as a paragraph, indented.
fn paragraphs(text: &mut String, indent: usize, source: &str, width: usize) {
    for (i, paragraph) in source.lines().enumerate() {
        if i > 0 {
            text.push('\n');
        }
        fill(text, &" ".repeat(indent), indent, paragraph, width);
    }
}

/// `lead` and then the words of `source`, wrapped; further lines are indented.
fn fill(text: &mut String, lead: &str, indent: usize, source: &str, width: usize) {
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

/// Text for roff: no character of it is a command.
fn roff(text: &str) -> String {
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

/// In short lines, none of which is a command.
fn roff_paragraphs(text: &mut String, source: &str, between: &str) {
    for (i, paragraph) in source.lines().enumerate() {
        if i > 0 {
            text.push_str(between);
        }
        let mut filled = String::new();
        fill(&mut filled, "", 0, paragraph, 70);
        for line in filled.lines() {
            text.push_str(&roff(line));
            text.push('\n');
        }
    }
}

const NAME: &str = "find files and directories on web servers";

const ABOUT: &str = "\
Finds files and directories in web directory listings, as find(1) does in file systems.";

const USAGE: &str = "Usage: crawler-cli find URL... [EXPRESSION] [OPTION...]";

const DESCRIPTION: &str = "\
Each URL, http or https, is a directory on a web server that shows an index of it: Apache httpd, nginx, lighttpd, Caddy, IIS, Python's http.server, S3 and its like, or another whose links lead to the directory's entries. Of one without a / at its end the server is asked whether it is a directory. Each directory is asked for once; nothing above a URL is, but for robots.txt. All URLs are searched at the same time, and results are printed as they come, in no particular order.
The expression is that of find(1): tests, actions and operators, looked at from left to right for each file and directory. What find(1) knows beyond these, and a web server does not tell or allow, such as -perm, -user and -delete, is refused with the reason. Words of the expression, options and URLs may come in any order.
Results go to standard output. What could not be read is named on standard error, with its cause, and makes the exit status 1. Standard error also shows progress, if it is a terminal, and a summary at the end.";

const STATUSES: &[(&str, &str)] = &[
    ("0", "All was read."),
    (
        "1",
        "Something could not be read or downloaded, or an action failed, each named on standard error; or the results could not be written.",
    ),
    ("2", "Wrong usage."),
    ("130", "Interrupted. What was printed until then is right."),
];

const EXAMPLES: &[(&str, &str)] = &[
    (
        "crawler-cli find http://127.0.0.1:8080/centos/ -name repomd.xml -type f",
        "The files of one name",
    ),
    (
        "crawler-cli find http://127.0.0.1:8080/pub/ -name '*.iso' -size +1G -mtime -30 -ls",
        "Large files that are new",
    ),
    (
        "crawler-cli find http://127.0.0.1:8080/pub/ \\( -name old -prune \\) -o -type f -print",
        "All files but those below directories of one name, which are not asked for",
    ),
    (
        "crawler-cli find http://127.0.0.1:8080/pub/ -iname '*.iso' --json | jq .url",
        "For another program",
    ),
    (
        "crawler-cli find http://127.0.0.1:8080/pub/ -name '*.rpm' --download mirror --rate 20",
        "To have the files, with no more than 20 requests in a second",
    ),
    (
        "crawler-cli find http://127.0.0.1:8080/pub/ --state search >> found.txt",
        "A long search, which the same command goes on with after Ctrl-C",
    ),
    (
        "crawler-cli find http://127.0.0.1:8080/pub/ --report html report.html --tree",
        "An overview, as a tree and as a page with charts",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_in_every_text() {
        let (short, long, man) = (short(100), long(100), man());
        let mut names = std::collections::HashSet::new();
        for opt in all() {
            for name in opt.names {
                assert!(names.insert(name), "{name} is there twice");
                assert!(short.contains(name) && long.contains(name), "{name}");
                assert!(man.contains(&format!("\\fB{}\\fR", roff(name))), "{name}");
            }
            let apart = ["  ", "\n"].map(|gap| format!("  {}{gap}", signature(opt)));
            assert!(
                apart.iter().any(|text| short.contains(text)),
                "{}",
                signature(opt)
            );
            assert!(opt.short.len() <= 60, "{}", opt.short);
            assert!(opt.long.ends_with(['.', '-']), "{}", opt.long);
        }
    }

    #[test]
    fn no_line_is_wider_than_asked() {
        for width in [60, 80, 100] {
            for text in [short(width), long(width)] {
                for line in text
                    .lines()
                    .filter(|line| !line.starts_with("    crawler-cli"))
                {
                    let fits = line.chars().count() <= width;
                    assert!(fits && line.trim_end() == line, "{width}: {line:?}");
                }
            }
        }
    }

    #[test]
    fn roff_takes_no_text_for_a_command() {
        assert_eq!(roff(".x\\y -z 'a'"), "\\&.x\\ey \\-z \\(aqa\\(aq");
    }
}
