//! The command lines. Each command declares its options as a table of rows (`option`); one parser (`parse`) reads
//! all command lines, and the help texts, the man pages and the completions are written from the same rows.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io;
use std::process::ExitCode;

pub mod check;
mod completions;
mod crawl_options;
mod demo;
pub mod find;
pub mod get;
mod help;
mod help_rows;
mod identity_options;
mod man;
mod manual;
mod option;
mod parse;
mod signals;
pub mod watch;

use crate::watch::log::mask;
use crate::{stdout, terminal, values};
use manual::Manual;
use option::Show;
use parse::UsageError;

/// Runs the program with its arguments.
pub fn main(mut args: Vec<OsString>) -> ExitCode {
    if args.is_empty() {
        terminal::say(overview().trim_end());
        return ExitCode::from(USAGE);
    }
    let command = args.remove(0);
    match command.to_str() {
        Some("get") => get::main(args),
        Some("find") => find::main(args),
        Some("check") => check::main(args),
        Some("watch") => watch::main(args),
        Some("demo") => demo::main(args),
        Some("completions") => completions::main(args),
        Some("help" | "-h" | "--help") => print(&overview(), FAILED),
        Some("-V" | "--version") => print(VERSION, FAILED),
        _ => {
            let command = command.to_string_lossy();
            let command = terminal::neutralise(&command);
            let overview = overview();
            let overview = overview.trim_end();
            terminal::say(format_args!(
                "crawler-cli: no command {command}\n\n{overview}"
            ));
            ExitCode::from(USAGE)
        }
    }
}

/// The manuals of all commands. Those of verbs are named by two words and follow their command.
fn manuals() -> Vec<Manual> {
    let mut manuals = vec![get::manual(), find::manual(), check::manual()];
    manuals.extend(watch::manuals());
    manuals.extend([demo::manual(), completions::manual()]);
    manuals
}

/// `crawler-cli --help`: the commands.
fn overview() -> String {
    let mut text = String::from(
        "Finds, fetches and checks files over HTTP.\n\nUsage: crawler-cli COMMAND [ARGUMENT...]\n\n",
    );
    let is_command = |manual: &Manual| !manual.name.contains(' ');
    for Manual { name, about, .. } in manuals().into_iter().filter(is_command) {
        // Writing to a string does not fail.
        let _ = writeln!(text, "  {name:<12} {about}");
    }
    text.push_str(
        "\n'crawler-cli COMMAND --help' describes a command. --version prints the version.\n",
    );
    text
}

/// Prints a text about a command. `failed` is the exit status if that is impossible.
fn show(show: Show, manual: &Manual, failed: u8) -> ExitCode {
    let text = match show {
        Show::ShortHelp => help::short(manual, width()),
        Show::LongHelp => help::long(manual, width()),
        Show::Man => man::page(manual),
        Show::Version => VERSION.to_owned(),
    };
    print(&text, failed)
}

/// Prints a text on standard output. That its reader closed a pipe is no failure.
fn print(text: &str, failed: u8) -> ExitCode {
    match stdout::write(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            terminal::say(format_args!("crawler-cli: cannot write: {error}"));
            ExitCode::from(failed)
        }
        _ => ExitCode::SUCCESS,
    }
}

/// Reports wrong usage of a command.
fn wrong_usage(command: &str, error: &UsageError) -> ExitCode {
    let error = mask(&error.0);
    let lines: Vec<_> = error.split('\n').map(terminal::neutralise).collect();
    let message = lines.join("\n");
    terminal::say(format_args!(
        "crawler-cli {command}: {message}\nTry 'crawler-cli {command} --help'."
    ));
    ExitCode::from(USAGE)
}

/// The width of help texts: that of the terminal, within reason.
fn width() -> usize {
    let columns = console::Term::stdout().size_checked();
    columns.map_or(100, |(_, columns)| usize::from(columns).clamp(60, 100))
}

/// The exit status of wrong usage.
const USAGE: u8 = 2;
/// The exit status of a command that failed and has no other for it.
const FAILED: u8 = 1;

const VERSION: &str = concat!("crawler-cli ", env!("CARGO_PKG_VERSION"), "\n");

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_row_is_in_every_text() {
        for manual in manuals() {
            let (short, long) = (help::short(&manual, 100), help::long(&manual, 100));
            let man = man::page(&manual);
            let mut names = HashSet::new();
            for row in manual.rows() {
                for name in row.names {
                    assert!(names.insert(name), "{name} is there twice");
                    assert!(man.contains(&man::bold(name)), "{name}");
                }
                for text in [&short, &long] {
                    let apart = ["  ", "\n"].map(|gap| format!("  {}{gap}", row.signature()));
                    let is_there = apart.iter().any(|signature| text.contains(signature));
                    assert!(is_there, "{}", row.signature());
                }
                assert!(
                    !row.short.is_empty() && row.short.len() <= 60,
                    "{}",
                    row.short
                );
                let is_whole = row.long.is_empty() || row.long.ends_with(['.', '-']);
                assert!(is_whole, "{}", row.long);
            }
        }
    }

    #[test]
    fn no_line_is_wider_than_asked() {
        for manual in manuals() {
            for width in [60, 80, 100] {
                for text in [help::short(&manual, width), help::long(&manual, width)] {
                    let examples = "    crawler-cli";
                    for line in text.lines().filter(|line| !line.starts_with(examples)) {
                        let fits = line.chars().count() <= width;
                        assert!(fits && line.trim_end() == line, "{width}: {line:?}");
                    }
                }
            }
        }
    }
}
