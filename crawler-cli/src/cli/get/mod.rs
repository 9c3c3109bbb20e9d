//! `crawler-cli get`: the command line. The transfers are in [`get`](crate::get).

use std::ffi::OsString;
use std::process::ExitCode;

use crate::cli;
use crate::cli::option::{Section, Show};
use crate::cli::parse::{CommandLine, Syntax, UsageError, parse, text};
use crate::get::args::{Args, Group};

mod manual;
mod options;
mod values;

pub(super) use manual::manual;

/// Runs the command with the arguments that follow its name, and returns curl's exit code for what happened to the
/// last URL.
pub fn main(words: Vec<OsString>) -> ExitCode {
    match read(words) {
        Ok(Request::Transfers(args)) => crate::get::run(args),
        Ok(Request::Show(show)) => cli::show(show, &manual(), NOT_WRITTEN),
        Err(error) => cli::wrong_usage("get", &error),
    }
}

/// What the command line asks for.
enum Request {
    Transfers(Args),
    Show(Show),
}

/// Reads the arguments.
///
/// # Errors
/// The first argument that means nothing, or a group without a URL.
fn read(words: Vec<OsString>) -> Result<Request, UsageError> {
    let mut typed = Typed::default();
    if let Some(show) = parse(&mut typed, words)? {
        return Ok(Request::Show(show));
    }
    let has_url = |group: &Group| !group.urls.is_empty();
    if !typed.args.groups.iter().all(has_url) {
        return Err(UsageError("missing URL before --next".into()));
    }
    if !has_url(&typed.group) {
        return Err(UsageError("no URL specified".into()));
    }
    typed.next_group();
    Ok(Request::Transfers(typed.args))
}

/// What was typed so far.
#[derive(Default)]
struct Typed {
    args: Args,
    /// The group that is not complete yet.
    group: Group,
}

impl Typed {
    /// `--next`
    fn next_group(&mut self) {
        self.args.groups.push(std::mem::take(&mut self.group));
    }
}

impl CommandLine for Typed {
    const SYNTAX: Syntax = Syntax::CURL;
    const TABLE: &'static [Section<Self>] = options::TABLE;

    fn operand(&mut self, operand: OsString) -> Result<(), UsageError> {
        self.group.urls.push(text(operand)?);
        Ok(())
    }
}

/// curl's exit code for output that could not be written.
const NOT_WRITTEN: u8 = 23;

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;
    use crate::get::args::Data;

    fn args(words: Vec<OsString>) -> Result<Args, UsageError> {
        match super::read(words)? {
            Request::Transfers(args) => Ok(args),
            Request::Show(_) => panic!("it asks for a text"),
        }
    }

    fn read(words: &[&str]) -> Result<Args, UsageError> {
        args(words.iter().map(OsString::from).collect())
    }

    fn first(args: &[&str]) -> Group {
        read(args).unwrap().groups.remove(0)
    }

    #[test]
    fn bundles_take_switches_and_then_one_value() {
        let args = read(&["-sSfo", "file", "u1", "-Iofile2", "u2", "-i"]).unwrap();
        assert!(args.global.silent && args.global.show_error);
        let group = first(&["-sSfo", "file", "u1", "-Iofile2", "u2"]);
        assert!(group.fail && group.request.head_only && !group.include);
        assert_eq!(group.outputs, [Some("file".into()), Some("file2".into())]);
        assert_eq!(group.urls, ["u1", "u2"]);
    }

    #[test]
    fn next_starts_a_group_but_keeps_the_global_options() {
        let args = read(&["-sf", "-A", "x", "u1", "--next", "-i", "u2", "-:", "u3"]).unwrap();
        assert!(args.global.silent);
        let [one, two, three] = &args.groups[..] else {
            panic!("{args:?}");
        };
        assert!(one.fail && one.reach.user_agent.is_some() && !one.include);
        assert!(!two.fail && two.reach.user_agent.is_none() && two.include);
        assert!(!three.include);
        assert_eq!(three.urls, ["u3"]);
    }

    #[test]
    fn two_dashes_end_the_options() {
        let group = first(&["--", "-", "-f", "--", "--next"]);
        assert!(!group.fail);
        assert_eq!(group.urls, ["-", "-f", "--", "--next"]);
    }

    #[test]
    fn a_value_may_look_like_an_option_and_need_not_be_unicode() {
        let mut words = vec![OsString::from("-o"), "-f".into(), "-d".into()];
        words.push(OsString::from_vec(vec![0xff, 0]));
        words.push("u".into());
        let group = args(words).unwrap().groups.remove(0);
        assert_eq!(group.outputs, [Some("-f".into())]);
        assert_eq!(
            group.request.data,
            [Data::Ascii(OsString::from_vec(vec![0xff, 0]))]
        );
        assert!(!group.fail);
    }

    #[test]
    fn long_forms_and_their_negation() {
        let group = first(&["--fail", "--include", "--no-fail", "u", "--request", "PUT"]);
        assert!(group.include && !group.fail);
        assert_eq!(group.request.method.unwrap(), "PUT");
    }

    #[test]
    fn a_text_is_printed_as_soon_as_it_is_asked_for() {
        for words in [&["-h"][..], &["-sh"], &["u", "--help", "--foo"], &["-ih"]] {
            let words = words.iter().map(OsString::from).collect();
            assert!(parse(&mut Typed::default(), words).unwrap().is_some());
        }
    }

    #[test]
    fn usage_errors() {
        let cases: &[(&[&str], &str)] = &[
            (&[], "no URL specified"),
            (&["-s"], "no URL specified"),
            (&["u", "--next"], "no URL specified"),
            (&["--next", "u"], "missing URL before --next"),
            (&["--foo", "u"], "option --foo: is unknown"),
            (&["-", "u"], "option -: is unknown"),
            (&["--output=f", "u"], "option --output=f: is unknown"),
            (&["-sQ", "u"], "option -Q: is unknown"),
            (&["-sm5fi", "u"], "-m 5fi: expected a number"),
            (&["u", "-o"], "-o needs a value"),
            (&["u", "--output"], "--output needs a value"),
            (
                &["--no-output", "u"],
                "--no-output: this option has no --no- form",
            ),
            (&["--no-foo", "u"], "option --no-foo: is unknown"),
            (
                &["--rate", "3/x", "u"],
                "--rate 3/x: unsupported unit, use s, m, h or d",
            ),
            (&["-b", "file", "u"], "-b file: expected NAME=VALUE"),
            (&["-u", "me", "u"], "-u: expected USER:PASSWORD"),
        ];
        for (args, error) in cases {
            assert_eq!(read(args).unwrap_err().0, *error, "{args:?}");
        }
    }
}
