//! The arguments of `crawler-cli check`, from the command line to a [`Checker`].

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use courser::policy::Statuses;

use super::options::Options;
use crate::cli;
use crate::cli::usage::{Failure, UsageError};
use crate::report::check::{self as report, Kind};
use check::Checker;
use check::sources::Input;

/// A check as the command line describes it.
pub(super) struct Check {
    pub(super) checker: Checker,
    pub(super) output: report::Options,
}

/// Reads the arguments; `var` is the environment.
///
/// # Errors
/// The first argument that means nothing, or a combination of options that means nothing.
pub(super) fn read(
    words: &[OsString],
    var: impl Fn(&str) -> Option<String>,
) -> Result<Check, Failure> {
    let options: Options = cli::options("check", words)?;
    let output = output(&options)?;
    let mut checker = checker(&options)?;
    options.crawl.apply_all(&mut checker.settings, true, var)?;
    if checker.has_identity_for_nobody() {
        let text =
            "-H, -u, -b and --cert are for the hosts of URLs that are arguments, and there is none";
        return Err(UsageError(text.to_owned()).into());
    }
    Ok(Check { checker, output })
}

/// The check, but for how hosts are asked.
fn checker(options: &Options) -> Result<Checker, UsageError> {
    let mut checker = Checker::new();
    for (input, name) in inputs(options)? {
        if input.is_stdin() && checker.inputs().iter().any(Input::is_stdin) {
            let text = format!("{name}: standard input can be read only once");
            return Err(UsageError(text));
        }
        checker = checker.input(input);
    }
    if checker.inputs().is_empty() {
        let text = "nothing to check: give a URL, a file, a folder, - or --urls";
        return Err(UsageError(text.to_owned()));
    }
    check_needs(options)?;
    if options.recursive {
        checker = checker.recursive();
    }
    if let Some(depth) = options.depth {
        checker = checker.depth(depth);
    }
    if options.crawl.rate.is_some() {
        checker.policy.spares_loopback = false;
    }
    let Checker {
        sources,
        selection,
        policy,
        tolerance,
        keeping,
        ..
    } = &mut checker;
    selection.include.clone_from(&options.include);
    selection.exclude = options.exclude.iter().flatten().cloned().collect();
    sources.base_url.clone_from(&options.base_url);
    sources.root_dir.clone_from(&options.root_dir);
    if let Some(field) = &options.field {
        sources.field.clone_from(field);
    }
    sources.hidden = options.hidden;
    sources.ignore_files = !options.no_ignore;
    sources.fragments = options.fragments;
    policy.head = options.head.unwrap_or_default();
    policy.redirects = options.max_redirects.unwrap_or(policy.redirects);
    if let Some(statuses) = &options.accept {
        policy.accept = statuses.clone();
    }
    tolerance.redirects = options.redirects.unwrap_or_default();
    tolerance.blocked = options.blocked.unwrap_or_default();
    tolerance.fail_after = options.fail_after.unwrap_or_default();
    keeping.state.clone_from(&options.state);
    keeping.max_age = options.max_age.unwrap_or_default();
    Ok(checker)
}

/// Checks that each option has what it needs.
///
/// # Errors
/// The first option that has not.
fn check_needs(options: &Options) -> Result<(), UsageError> {
    let plain = options.urls.iter().find(|list| is_plain(list));
    let error = match (&options.field, plain) {
        (Some(_), _) if options.urls.is_empty() => "--field: only with --urls".to_owned(),
        (Some(_), Some(list)) => format!("--field: {} has plain lines, not JSON", list.display()),
        _ if options.state.is_some() => return Ok(()),
        _ if options.max_age.is_some() => "--max-age needs --state".to_owned(),
        _ if options.fail_after.is_some() => "--fail-after needs --state".to_owned(),
        _ => return Ok(()),
    };
    Err(UsageError(error))
}

/// The inputs, each with its name.
fn inputs(options: &Options) -> Result<Vec<(Input, String)>, UsageError> {
    let mut inputs = Vec::new();
    for typed in &options.inputs {
        let name = typed.to_string_lossy().into_owned();
        inputs.push((Input::from_argument(typed)?, name));
    }
    for typed in &options.urls {
        let name = format!("--urls {}", typed.to_string_lossy());
        let input = Input::from_list(typed);
        let input = input.map_err(|error| UsageError(format!("{name}: {error}")))?;
        inputs.push((input, name));
    }
    Ok(inputs)
}

/// Whether the lines of a list are URLs, and not JSON objects. What is no regular file is read only once, and not here.
fn is_plain(list: &OsStr) -> bool {
    let path = Path::new(list);
    let mut start = Vec::new();
    let is_read = path.is_file()
        && File::open(path)
            .and_then(|file| file.take(LONGEST_START).read_to_end(&mut start))
            .is_ok();
    let mut lines = start.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with(b"#"));
    is_read && first.is_some_and(|line| line.starts_with(b"http"))
}

/// How the check is shown.
fn output(options: &Options) -> Result<report::Options, UsageError> {
    let mut reports = Vec::new();
    for report in options.report.chunks_exact(2) {
        let kind = report[0].to_string_lossy();
        let known = Kind::named(&kind);
        let wrong = || UsageError(format!("--report {kind}: neither text, html nor junit"));
        reports.push((known.ok_or_else(wrong)?, (&report[1]).into()));
    }
    let name = options.inputs.first().or(options.urls.first());
    let name = name.map(|name| name.to_string_lossy()).unwrap_or_default();
    let more = match options.inputs.len() + options.urls.len() {
        0 | 1 => "",
        _ => " and more",
    };
    let output = report::Options {
        json: options.json,
        reports,
        summary: options.summary.clone(),
        progress: options.progress.unwrap_or_default(),
        redirects: options.redirects.unwrap_or_default(),
        title: format!("Links of {name}{more}"),
    };
    output.check().map_err(UsageError)?;
    Ok(output)
}

/// The statuses of `--accept`: `200..299,403`. A range includes its end, and may also be written as `200..=299` or
/// `200-299`.
pub(super) fn statuses(list: &str) -> Result<Statuses, String> {
    let mut statuses = Statuses::none();
    for part in list.split(',') {
        let (first, last) = ["..=", "..", "-"]
            .into_iter()
            .find_map(|between| part.split_once(between))
            .unwrap_or((part, part));
        let status = |text: &str| {
            let digits = text.trim();
            let is_status = digits.len() == 3 && digits.bytes().all(|b| b.is_ascii_digit());
            let status = digits.parse::<u16>().ok().filter(|_| is_status);
            status.filter(|status| *status >= 100)
        };
        match (status(first), status(last)) {
            (Some(first), Some(last)) if first <= last => statuses = statuses.and(first..=last),
            _ => {
                return Err(format!(
                    "{part:?} is neither a status nor a range such as 200..299"
                ));
            }
        }
    }
    Ok(statuses)
}

/// The most bytes of a list that are looked at to tell what its lines are.
const LONGEST_START: u64 = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(args: &[&str]) -> Result<Check, String> {
        let words: Vec<_> = args.iter().map(OsString::from).collect();
        read(&words, |_| None).map_err(|failure| match failure {
            Failure::Usage(error) => error.0,
            Failure::Text(_) => "a text".to_owned(),
            failure => panic!("{failure:?}"),
        })
    }

    /// Why these arguments are refused.
    fn said(args: &[&str]) -> String {
        outcome(args).map(|_| ()).expect_err("wrong usage")
    }

    #[test]
    fn wrong_usage_is_named() {
        let nothing = "nothing to check: give a URL, a file, a folder, - or --urls";
        assert_eq!(said(&[]), nothing);
        let missing = "--urls no/such: no/such: no such file or folder";
        assert!(said(&["--urls", "no/such"]).starts_with(missing));
        let twice = "-: standard input can be read only once";
        assert_eq!(said(&["-", "-"]), twice);
        assert_eq!(said(&["-", "--urls", "-"]), format!("--urls {twice}"));
        // After a start.
        let after_start = |line: &str| {
            let words: Vec<&str> = ["http://h/"].into_iter().chain(line.split(' ')).collect();
            said(&words)
        };
        let table = r#"
--accept 2xx => --accept 2xx: "2xx" is neither a status nor a range such as 200..299
--exclude ( => --exclude (: not a regular expression: unclosed group
--base-url docs => --base-url docs: not an absolute URL with the scheme http or https
--redirects follow => invalid value 'follow' for '--redirects <WHAT>' [possible values: ignore, report, fail]
--max-age 1d => --max-age needs --state
--fail-after 3d => --fail-after needs --state
--fail-after soon => --fail-after soon: not a time such as 90, 500ms, 12h or 3d
--report pdf x => --report pdf: neither text, html nor junit
--field href => --field: only with --urls
--json --report text - => --json and --report would both write to standard output
--report text - --report junit - => two reports would mix on standard output
--report text x --report junit x => two reports for one file: x
--retry-on all => unexpected argument '--retry-on' found; a similar argument exists: '--retry-delay'
"#;
        for row in table.trim().lines() {
            let (line, message) = row.split_once(" => ").expect("a row");
            assert_eq!(after_start(line), message, "{line}");
        }
    }

    #[test]
    fn what_no_other_test_types_is_read() {
        for line in [
            "http://h/ --recursive --depth 3",
            "http://h/ --state x --fail-after 3d --max-age=1d",
            "http://h/ --timeout 500ms --patience 2m",
        ] {
            let words: Vec<&str> = line.split(' ').collect();
            assert_eq!(outcome(&words).map(|_| ()), Ok(()), "{line}");
        }
    }

    #[test]
    fn statuses_are_ranges_with_both_ends() {
        let accepted = statuses("200..299,403,500-501,502..=504").expect("valid");
        for status in [200, 299, 403, 500, 501, 502, 504] {
            assert!(accepted.contains(status), "{status}");
        }
        for status in [199, 300, 402, 404, 505] {
            assert!(!accepted.contains(status), "{status}");
        }
        for list in ["", "200,", "20", "2000", "099", "200..", "299..200", "+200"] {
            assert!(statuses(list).is_err(), "{list}");
        }
    }
}
