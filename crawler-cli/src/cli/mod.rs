//! The command lines. Each command declares its options as a struct that clap reads; the help texts, the man pages and
//! the completions of shells come from the same structs. What find(1) and curl write differently is taken apart before
//! clap reads it: the words of an expression (`find`), and bundles of letters and `--next` (`get`).

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Arg, ArgAction, ArgMatches, Args as _, Command, FromArgMatches};

mod check;
mod completions;
mod crawl_options;
mod demo;
mod find;
mod get;
mod identity_options;
mod signals;
mod usage;
mod watch;

use crate::stdout;
use ::watch::log::mask;
use plain::{terminal, values};
use usage::{Failure, UsageError, WantsMan, explained, named};

/// Runs the program with its arguments.
pub(crate) fn main(words: Vec<OsString>) -> ExitCode {
    let rest = words.get(1..).unwrap_or_default();
    let ended = match words.first().and_then(|word| word.to_str()) {
        Some("get") => get::main(rest),
        Some("find") => find::main(rest),
        Some("check") => check::main(rest),
        Some("watch") => watch::main(rest),
        Some("demo") => demo::main(rest),
        Some("completions") => completions::main(rest),
        // A question for help, or wrong usage.
        _ => matches(&words).map(|_| ExitCode::SUCCESS),
    };
    match ended {
        Ok(status) => status,
        Err(Failure::Text(text)) => print(&text),
        Err(Failure::Usage(error)) => wrong_usage(&name_of(&words), &error),
        Err(Failure::Wrong(text)) => {
            terminal::say(text.trim_end());
            ExitCode::from(USAGE)
        }
        Err(Failure::Failed(text)) => {
            let text = terminal::neutralise(&text);
            terminal::say(format_args!("{}: {text}", name_of(&words)));
            ExitCode::from(FAILED)
        }
        Err(Failure::Said) => ExitCode::from(FAILED),
    }
}

/// The whole program, as clap knows it.
fn program() -> Command {
    let completions = Command::new("completions");
    dressed(
        Command::new(NAME)
            .version(env!("CARGO_PKG_VERSION"))
            .about("Finds, fetches and checks files over HTTP")
            .subcommand_required(true)
            .arg_required_else_help(true)
            .propagate_version(true)
            .args_override_self(true)
            .subcommands([
                get::command(),
                find::Options::augment_args(Command::new("find")),
                check::Options::augment_args(Command::new("check")),
                watch::command(),
                demo::Options::augment_args(Command::new("demo")),
                completions::Options::augment_args(completions),
            ]),
    )
}

/// A command and its commands with `--man`, and with values that may begin with a dash.
fn dressed(command: Command) -> Command {
    let takes_value = |arg: &Arg| arg.get_action().takes_values() && !arg.is_positional();
    let man = Arg::new("man")
        .long("man")
        .action(ArgAction::SetTrue)
        .value_parser(|typed: &str| match typed {
            "true" => Err(WantsMan),
            _ => Ok(false),
        })
        .help("Print the man page, for man -l -")
        .help_heading(None);
    let command = command.arg(man).mut_subcommands(dressed);
    command.mut_args(|arg| match takes_value(&arg) {
        true => arg.allow_hyphen_values(true),
        false => arg,
    })
}

/// Reads the words of a command line.
///
/// # Errors
/// The words ask for a text, or mean nothing.
fn matches(words: &[OsString]) -> Result<ArgMatches, Failure> {
    let mut program = program();
    program.build();
    let all = plain(&program, words)?;
    let matches = program.try_get_matches_from_mut([OsString::from(NAME)].iter().chain(&all));
    matches.map_err(|error| explained(&error, program, words))
}

/// Reads the words that follow the name of a command.
///
/// # Errors
/// The words ask for a text, or mean nothing.
fn matches_of(command: &str, words: &[OsString]) -> Result<ArgMatches, Failure> {
    let all = [&[OsString::from(command)], words].concat();
    let (_, own) = matches(&all)?.remove_subcommand().unwrap_or_default();
    Ok(own)
}

/// The options of a command, from the words that follow its name.
///
/// # Errors
/// The words ask for a text, or mean nothing.
fn options<O: FromArgMatches>(command: &str, words: &[OsString]) -> Result<O, Failure> {
    Ok(O::from_arg_matches(&matches_of(command, words)?)?)
}

/// The words as clap is to read them. `-json` is not `-j son`: a value may stand behind its letter only if it begins with a
/// digit. And clap takes no second value behind `--report=html`.
///
/// # Errors
/// A word is neither a letter nor a name.
fn plain(program: &Command, words: &[OsString]) -> Result<Vec<OsString>, UsageError> {
    let mut command = program;
    let mut plain = Vec::new();
    let mut words = words.iter().cloned();
    while let Some(word) = words.next() {
        let text = word.to_string_lossy().into_owned();
        let mut values = values_after(command, &text);
        match text.as_bytes() {
            b"--" => values = usize::MAX,
            // One dash is as good as two.
            b"-help" | b"-version" => {
                plain.push(format!("-{text}").into());
                continue;
            }
            [b'-', b'-', ..] => {
                if let Some((name, value)) = text.split_once('=')
                    && values_after(command, name) > 1
                {
                    plain.extend([name.into(), value.into()]);
                    plain.extend(words.next());
                    continue;
                }
            }
            [b'-', _, _, ..] if !is_letter_with_number(command, &text) => {
                let is_name = |arg: &&Arg| arg.get_long() == Some(&text[1..]);
                let named = command.get_arguments().find(is_name);
                let near = named.map(|_| format!("; did you mean -{text}?"));
                return Err(unknown(&text, &near.unwrap_or_default()));
            }
            _ => command = command.find_subcommand(&word).unwrap_or(command),
        }
        plain.push(word);
        plain.extend(words.by_ref().take(values));
    }
    Ok(plain)
}

/// Whether a word is the letter of an option and the number behind it: `-j8`.
fn is_letter_with_number(command: &Command, word: &str) -> bool {
    let letter = word.get(..2).unwrap_or_default();
    let is_number = word.as_bytes().get(2).is_some_and(u8::is_ascii_digit);
    is_number && values_after(command, letter) > 0
}

/// A word that is no option. What may be a credential behind its letter is not shown.
fn unknown(word: &str, near: &str) -> UsageError {
    let shown = match (word.get(..2), near) {
        (Some(letter @ ("-u" | "-b" | "-H" | "-x")), "") => format!("{letter}..."),
        _ => word.to_owned(),
    };
    UsageError(format!("option {shown}: is unknown{near}"))
}

/// How many of the next words are values of the option with this name, which stands in no word with a value.
fn values_after(command: &Command, name: &str) -> usize {
    let is_it = |arg: &&Arg| match (name.strip_prefix("--"), name.strip_prefix('-')) {
        (Some(long), _) => arg.get_long() == Some(long),
        (None, Some(short)) => arg.get_short().is_some_and(|own| short == own.to_string()),
        (None, None) => false,
    };
    let option = command.get_arguments().find(is_it);
    let option = option.filter(|option| option.get_action().takes_values());
    option.map_or(0, |option| {
        option
            .get_num_args()
            .map_or(1, |values| values.min_values())
    })
}

/// The parser of an option that has few values, each with its name.
fn choice<T: Clone + Send + Sync + 'static>(
    choices: &'static [(&'static str, T)],
) -> impl TypedValueParser<Value = T> {
    let names = choices.iter().map(|(name, _)| *name);
    PossibleValuesParser::new(names).try_map(|typed| {
        let chosen = choices.iter().find(|(name, _)| *name == typed);
        chosen.map(|(_, value)| value.clone()).ok_or("unknown")
    })
}

/// Prints a text on standard output. That its reader closed a pipe is no failure.
fn print(text: &str) -> ExitCode {
    match stdout::write(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            terminal::say(format_args!("{NAME}: cannot write: {error}"));
            ExitCode::from(FAILED)
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
        "{command}: {message}\nTry '{command} --help'."
    ));
    ExitCode::from(USAGE)
}

/// The command that these words name: `crawler-cli watch add`.
fn name_of(words: &[OsString]) -> String {
    let mut program = program();
    program.build();
    let name = named(&program, words).get_bin_name();
    name.unwrap_or(NAME).to_owned()
}

const NAME: &str = "crawler-cli";
/// The exit status of wrong usage.
const USAGE: u8 = 2;
/// The exit status of a command that failed and has no other for it.
const FAILED: u8 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clap_finds_no_fault_with_the_options() {
        program().debug_assert();
    }

    /// The trap: `-hidden` would ask for help, and end with 0.
    #[test]
    fn one_dash_begins_one_letter() {
        let read = |line: &str| {
            let words: Vec<_> = line.split(' ').map(OsString::from).collect();
            let mut program = program();
            program.build();
            let words = plain(&program, &words).map_err(|error| error.0)?;
            let words = words
                .into_iter()
                .map(|word| word.into_string().expect("text"));
            Ok::<_, String>(words.collect::<Vec<_>>().join(" "))
        };
        for (line, expected) in [
            ("check -j8 -H -x u -- -json", "check -j8 -H -x u -- -json"),
            ("check -help", "check --help"),
            ("watch db check -version", "watch db check --version"),
            ("check d --report=html f", "check d --report html f"),
        ] {
            assert_eq!(read(line).as_deref(), Ok(expected));
        }
        for (line, option, like) in [
            ("check -hidden", "-hidden", "; did you mean --hidden?"),
            ("check -user a:secret", "-user", "; did you mean --user?"),
            ("check -ua:secret", "-u...", ""),
            ("check -h1", "-h1", ""),
            ("watch remove -host H", "-host", "; did you mean --host?"),
        ] {
            let error = format!("option {option}: is unknown{like}");
            assert_eq!(read(line), Err(error));
        }
    }

    #[test]
    fn no_message_shows_a_credential() {
        for words in [
            &["get", "-u", "secret", "http://h/"][..],
            &["get", "-b", "secret", "http://h/"],
            &["find", "http://h/", "-H", "secret"],
            &["find", "http://h/", "--user", "secret"],
            &["check", "http://h/", "-b", "secret"],
            &["check", "http://h/", "--auth-file", "secret"],
            &["check", "http://h/", "--proxy", "ftp://u:secret@h"],
        ] {
            let rest: Vec<_> = words[1..].iter().map(OsString::from).collect();
            let ended = match words[0] {
                "get" => get::main(&rest),
                "find" => find::main(&rest),
                _ => check::main(&rest),
            };
            let Err(Failure::Usage(error)) = ended else {
                panic!("{words:?}");
            };
            assert!(!mask(&error.0).contains("secret"), "{words:?}: {}", error.0);
        }
    }
}
