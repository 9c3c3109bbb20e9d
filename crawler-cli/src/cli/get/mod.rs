//! `crawler-cli get`: the command line. The transfers are in [`get`](crate::get).

use std::ffi::OsString;
use std::process::ExitCode;

use crate::cli;
use crate::cli::option::{Section, Show};
use crate::cli::parse::{CommandLine, Syntax, UsageError, parse};
use crate::get::args::{Group, LowArgs};

mod auth_options;
mod config;
mod connect_options;
mod file_options;
mod form_options;
mod manual;
mod of_curl;
mod options;
mod run_options;
mod tls_options;
mod values;
mod version_options;

pub(super) use manual::manual;

/// Runs the command with the arguments that follow its name, and returns curl's exit code for what happened to the
/// last URL.
pub fn main(words: Vec<OsString>) -> ExitCode {
    let mut args = Args::default();
    config::read_default(&mut args, &words);
    match read_after(args, words) {
        Ok(Request::Transfers(args)) => crate::get::run(args),
        Ok(Request::Show(Show::Version)) => cli::print(VERSION, NOT_WRITTEN),
        Ok(Request::Show(show)) => cli::show(show, &manual(), NOT_WRITTEN),
        Err(error) => cli::wrong_usage("get", &error),
    }
}

/// What the command line asks for.
pub(crate) enum Request {
    Transfers(LowArgs),
    Show(Show),
}

/// Reads the arguments, without a `.curlrc`.
///
/// # Errors
/// The first argument that means nothing, or a group without a URL.
#[cfg(test)]
pub(crate) fn read(words: Vec<OsString>) -> Result<Request, UsageError> {
    read_after(Args::default(), words)
}

/// Reads the arguments after what `args` has already.
fn read_after(mut args: Args, words: Vec<OsString>) -> Result<Request, UsageError> {
    let parsed = parse(&mut args, words);
    if args.low.early.is_some() {
        return Ok(Request::Transfers(args.low));
    }
    if let Some(show) = parsed? {
        return Ok(Request::Show(show));
    }
    let has_url = |group: &Group| !group.urls.is_empty();
    if !args.low.groups.iter().all(has_url) {
        return Err(UsageError("missing URL before --next".into()));
    }
    if !has_url(&args.group) {
        return Err(UsageError("no URL specified".into()));
    }
    args.next_group();
    Ok(Request::Transfers(args.low))
}

/// What was typed so far.
#[derive(Default)]
struct Args {
    low: LowArgs,
    /// The group that is not complete yet.
    group: Group,
    files: config::Files,
}

impl Args {
    /// A version of HTTP was asked for that is not there.
    fn newer(&mut self, option: &'static str) {
        self.group.request.http10 = false;
        self.low.global.newer_http = Some(option);
    }

    /// `--next`
    fn next_group(&mut self) {
        self.low.groups.push(std::mem::take(&mut self.group));
    }
}

impl CommandLine for Args {
    const SYNTAX: Syntax = Syntax::CURL;
    const TABLE: &'static [Section<Self>] = options::TABLE;

    fn about_unknown(name: &str) -> Option<String> {
        let instead = of_curl::about(name)?;
        Some(format!(
            "is one of curl's that get does not have: {instead}"
        ))
    }

    fn operand(&mut self, operand: OsString) -> Result<(), UsageError> {
        self.group.urls.push(operand);
        Ok(())
    }
}

/// In the form of curl's, which scripts search for protocols and features.
const VERSION: &str = concat!(
    "crawler-cli ",
    env!("CARGO_PKG_VERSION"),
    " courser/",
    env!("CARGO_PKG_VERSION"),
    " rustls\n\
     Protocols: file http https\n\
     Features: AsynchDNS brotli HTTPS-proxy IDN IPv6 Largefile libz SSL UnixSockets zstd\n"
);

/// curl's exit code for output that could not be written.
const NOT_WRITTEN: u8 = 23;

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;
    use crate::get::args::Data;

    fn low(words: Vec<OsString>) -> Result<LowArgs, UsageError> {
        match super::read(words)? {
            Request::Transfers(args) => Ok(args),
            Request::Show(_) => panic!("it asks for a text"),
        }
    }

    fn read(args: &[&str]) -> Result<LowArgs, UsageError> {
        low(args.iter().map(OsString::from).collect())
    }

    fn first(args: &[&str]) -> Group {
        read(args).unwrap().groups.remove(0)
    }

    #[test]
    fn bundles_take_switches_and_then_one_value() {
        let args = read(&["-sSfo", "file", "u1", "-Iofile2", "u2", "-i"]).unwrap();
        assert!(args.global.silent && args.global.show_error);
        let group = first(&["-sSfo", "file", "u1", "-Iofile2", "u2"]);
        assert!(group.result.fail && group.request.head && !group.result.include);
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
        assert!(one.result.fail && one.request.user_agent.is_some() && !one.result.include);
        assert!(!two.result.fail && two.request.user_agent.is_none() && two.result.include);
        assert!(!three.result.include);
        assert_eq!(three.urls, ["u3"]);
    }

    #[test]
    fn two_dashes_end_the_options() {
        let group = first(&["--", "-", "-f", "--", "--next"]);
        assert!(!group.result.fail);
        assert_eq!(group.urls, ["-", "-f", "--", "--next"]);
    }

    #[test]
    fn a_value_may_look_like_an_option_and_need_not_be_unicode() {
        let mut args = vec![OsString::from("-o"), "-f".into(), "-d".into()];
        args.push(OsString::from_vec(vec![0xff, 0]));
        args.push("u".into());
        let group = low(args).unwrap().groups.remove(0);
        assert_eq!(group.outputs, [Some("-f".into())]);
        assert_eq!(
            group.request.data,
            [Data::Ascii(OsString::from_vec(vec![0xff, 0]))]
        );
        assert!(!group.result.fail);
    }

    #[test]
    fn long_forms_and_their_negation() {
        let group = first(&[
            "--fail",
            "--include",
            "--no-fail",
            "--url",
            "u",
            "--request",
            "PUT",
        ]);
        assert!(group.result.include && !group.result.fail);
        assert_eq!(group.urls, ["u"]);
        assert_eq!(group.request.method.unwrap(), "PUT");
    }

    #[test]
    fn a_text_is_printed_as_soon_as_it_is_asked_for() {
        for args in [&["-h"][..], &["-sh"], &["u", "--help", "--foo"], &["-ih"]] {
            let words = args.iter().map(OsString::from).collect();
            assert!(parse(&mut Args::default(), words).unwrap().is_some());
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
            (
                &["-sQ", "u"],
                "option -Q: is one of curl's that get does not have: it is for other protocols than HTTP",
            ),
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
        ];
        for (args, error) in cases {
            assert_eq!(read(args).unwrap_err().0, *error, "{args:?}");
        }
    }
}
