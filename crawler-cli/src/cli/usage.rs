//! How a command ends that does not do what it was asked for, and what the user reads then.

use std::error::Error;
use std::ffi::OsString;
use std::fmt;
use std::io;

use clap::Command;
use clap::error::{ContextKind, ErrorKind};
use clap_mangen::Man;

use store::StoreError;

/// What is wrong with a command line. The text is what the user reads.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct UsageError(pub(crate) String);

impl<E: Error> From<E> for UsageError {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

/// Why a command did not do what it was asked for.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The user wants to read this text instead: help, the man page, the version.
    Text(String),
    /// The command line means nothing.
    Usage(UsageError),
    /// The same, or a configuration that is wrong: a text that is safe to show.
    Wrong(String),
    /// Something is not there, or failed.
    Failed(String),
    /// The same, and it was said already.
    Said,
}

impl From<UsageError> for Failure {
    fn from(error: UsageError) -> Self {
        Self::Usage(error)
    }
}

impl From<clap::Error> for Failure {
    fn from(error: clap::Error) -> Self {
        Self::Usage(UsageError(message(&error)))
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            // The reader of the output has what it wants.
            io::ErrorKind::BrokenPipe => Self::Said,
            _ => Self::Failed(format!("cannot write: {error}")),
        }
    }
}

/// A usage error.
pub(crate) fn usage(text: impl Into<String>) -> Failure {
    Failure::Usage(UsageError(text.into()))
}

/// The error of `--man`, which ends the reading of the words as `--help` does.
#[derive(Clone, Copy, Debug)]
pub(super) struct WantsMan;

impl fmt::Display for WantsMan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the man page")
    }
}

impl Error for WantsMan {}

/// What clap's error about these words means for the user.
pub(super) fn explained(error: &clap::Error, program: Command, words: &[OsString]) -> Failure {
    match error.kind() {
        ErrorKind::DisplayVersion => {
            Failure::Text(concat!("crawler-cli ", env!("CARGO_PKG_VERSION"), "\n").to_owned())
        }
        ErrorKind::DisplayHelp => Failure::Text(error.render().to_string()),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            Failure::Wrong(error.render().to_string())
        }
        _ if error.source().is_some_and(|why| why.is::<WantsMan>()) => {
            Failure::Text(man_page(program, words))
        }
        _ => Failure::Usage(UsageError(message(error))),
    }
}

/// The man page of the command that the words name.
fn man_page(mut program: Command, words: &[OsString]) -> String {
    program.build();
    let command = named(&program, words).clone();
    let text = command.get_after_long_help().or(command.get_after_help());
    let text = text.map(ToString::to_string).unwrap_or_default();
    let mut page = Vec::new();
    // Writing to a vector does not fail.
    let _ = Man::new(command.after_help(None).after_long_help(None)).render(&mut page);
    let mut page = String::from_utf8_lossy(&page).into_owned();
    // The text has its line ends and blanks already. What stands at the margin is a heading.
    for line in text.lines() {
        let escaped = line.replace('\\', "\\e").replace('-', "\\-");
        page += &match escaped.strip_suffix(':') {
            Some(heading) if !line.starts_with(' ') => {
                format!(".fi\n.SH {}\n.nf\n", heading.to_uppercase())
            }
            _ => format!("\\&{escaped}\n"),
        };
    }
    page
}

/// The command that the first words name.
pub(super) fn named<'p>(program: &'p Command, words: &[OsString]) -> &'p Command {
    let mut command = program;
    for word in words {
        match command.find_subcommand(word) {
            Some(next) => command = next,
            None => break,
        }
    }
    command
}

/// What is wrong, in one line, without values that may be credentials.
fn message(error: &clap::Error) -> String {
    let context = |kind| error.get(kind).map(ToString::to_string).unwrap_or_default();
    if let (ErrorKind::ValueValidation, Some(why)) = (error.kind(), error.source()) {
        let described = context(ContextKind::InvalidArg);
        let value = context(ContextKind::InvalidValue);
        let option = described.split([' ', '=']).next().unwrap_or_default();
        return match option.starts_with('-') {
            true if SECRET.contains(&option) => format!("{described}: {why}"),
            true => format!("{option} {value}: {why}"),
            // An operand has no name of its own.
            false => format!("{value}: {why}"),
        };
    }
    let text = error.render().to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let ends = ["\n\nUsage:", "\n\nFor more information"];
    let end = ends.iter().filter_map(|end| text.find(end)).min();
    let mut line = String::new();
    for part in text[..end.unwrap_or(text.len())].lines().map(str::trim) {
        match part.strip_prefix("tip: ") {
            // Not what somebody wants who has mistyped an option.
            Some(tip) if tip.starts_with("to pass ") => {}
            Some(tip) => line += &format!("; {tip}"),
            None if line.is_empty() || part.is_empty() => line += part,
            None => line += &format!(" {part}"),
        }
    }
    line
}

/// Options whose values hold credentials, or may.
const SECRET: [&str; 5] = ["--user", "--header", "--cookie", "--proxy", "--auth-file"];
