//! The arguments of `crawler-cli check`, from the command line to a [`Checker`].

use std::ffi::OsString;

use courser::Statuses;

use super::options;
use crate::check::Checker;
use crate::check::sources::Input;
use crate::cli::crawl_options::{CrawlOptions, CrawlSetting, CrawlTexts, Crawls};
use crate::cli::option::{Section, Show};
use crate::cli::parse::{CommandLine, Syntax, UsageError, parse};
use crate::report::check::Options;

/// What was typed.
#[derive(Default)]
pub(crate) struct Args {
    checker: Checker,
    pub(super) output: Options,
    crawl: CrawlOptions,
    pub(super) depth: Option<u32>,
    pub(super) is_recursive: bool,
    /// Whether there is a `--state`, and the first option that needs one.
    pub(super) has_state: bool,
    pub(super) needs_state: Option<&'static str>,
}

/// A check as the command line describes it.
pub(super) struct Check {
    pub(super) checker: Checker,
    pub(super) output: Options,
}

/// What the command line asks for.
pub(super) enum Request {
    Check(Box<Check>),
    Show(Show),
}

/// Reads the arguments; `var` is the environment.
///
/// # Errors
/// The first argument that means nothing, or a combination of options that means nothing.
pub(super) fn read(
    words: Vec<OsString>,
    var: impl Fn(&str) -> Option<String>,
) -> Result<Request, UsageError> {
    let mut args = Args::default();
    if let Some(show) = parse(&mut args, words)? {
        return Ok(Request::Show(show));
    }
    let crawl = std::mem::take(&mut args.crawl);
    let settings = crawl.settings(true, var)?;
    args.checker(|checker| settings.into_iter().fold(checker, with));
    Ok(Request::Check(Box::new(args.finish()?)))
}

impl Args {
    /// Changes the check.
    pub(super) fn checker(&mut self, change: impl FnOnce(Checker) -> Checker) {
        self.checker = change(std::mem::take(&mut self.checker));
    }

    /// Adds an input, which was called `name`.
    pub(super) fn input(&mut self, input: Input, name: &str) -> Result<(), String> {
        if input.is_stdin() && self.checker.inputs().iter().any(Input::is_stdin) {
            return Err("standard input can be read only once".to_owned());
        }
        let title = &mut self.output.title;
        match self.checker.inputs().len() {
            0 => *title = format!("Links of {name}"),
            1 => title.push_str(" and more"),
            _ => {}
        }
        self.checker(|checker| checker.input(input));
        Ok(())
    }

    fn finish(mut self) -> Result<Check, UsageError> {
        if self.checker.inputs().is_empty() {
            let text = "nothing to check: give a URL, a file, a folder, - or --urls";
            return Err(UsageError(text.to_owned()));
        }
        if self.checker.has_identity_for_nobody() {
            let text = "-H, -u, -b and --cert are for the hosts of URLs that are arguments, and there is none";
            return Err(UsageError(text.to_owned()));
        }
        if let Some(name) = self.needs_state.filter(|_| !self.has_state) {
            return Err(UsageError(format!("{name} needs --state")));
        }
        self.output.check().map_err(UsageError)?;
        if self.is_recursive {
            self.checker(Checker::recursive);
        }
        if let Some(depth) = self.depth {
            self.checker(|checker| checker.depth(depth));
        }
        Ok(Check {
            checker: self.checker,
            output: self.output,
        })
    }
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

impl CommandLine for Args {
    const SYNTAX: Syntax = Syntax::FIND;
    const TABLE: &'static [Section<Self>] = options::TABLE;

    fn operand(&mut self, operand: OsString) -> Result<(), UsageError> {
        let input = Input::from_argument(&operand)?;
        let name = operand.to_string_lossy();
        self.input(input, &name)
            .map_err(|error| UsageError(format!("{name}: {error}")))
    }
}

impl Crawls for Args {
    const TEXTS: CrawlTexts = CrawlTexts {
        rate: "10; 0 on the loopback",
        patience: "60",
        retries: "3",
        connections: "4",
        timeout: "20",
        about_robots: "Whether the robots.txt of each host (RFC 9309) is read first. Its Crawl-delay is obeyed for all URLs. URLs that it disallows are not asked if --recursive or --depth found them in pages; URLs that were given, or that files and lists name, are asked.",
        about_patience: "The longest time from the first request for a URL to its last retry. While a host answers 429, or 503 with Retry-After, nothing is asked there. A Retry-After is never shortened: a URL for which the server asks for a longer wait is not judged (throttled).",
        about_retries: "How many times a URL is requested again after a failure of the network or a 5xx status. 404 and 410 stand after a GET has confirmed them. A host that asks for a pause by 429, or 503 with Retry-After, gets it, and such answers do not count, until --patience is over.",
        about_max_body: "The largest page, both as sent and after its content codings are decoded. A larger page is an error; it is never cut short. K, M and G are powers of 1024.",
        about_allow_private: "Let redirects and links of public pages lead to private addresses. Without this option, loopback addresses, private addresses and others that are not public are connected to only for URLs that were given, that files and lists name, or that pages with a private address link to.",
    };

    fn crawl(&mut self) -> &mut CrawlOptions {
        &mut self.crawl
    }
}

/// The check with one more setting.
fn with(mut checker: Checker, setting: CrawlSetting) -> Checker {
    match setting {
        CrawlSetting::Robots(obey) => return checker.robots(obey),
        CrawlSetting::Rate(rate) => return checker.rate(rate),
        CrawlSetting::UserAgent(text) => return checker.user_agent(&text),
        CrawlSetting::Timeout(time) => return checker.timeout(time),
        CrawlSetting::MaxBody(bytes) => return checker.max_body(bytes),
        CrawlSetting::AllowPrivate => return checker.allow_private(),
        CrawlSetting::Retry(change) => change(checker.retry()),
        CrawlSetting::Transfer(change) => change(checker.transfer()),
    }
    checker
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(args: &[&str]) -> Result<Request, String> {
        read(args.iter().map(OsString::from).collect(), |_| None).map_err(|error| error.0)
    }

    /// Why these arguments are refused.
    fn said(args: &[&str]) -> String {
        outcome(args).map(|_| ()).expect_err("wrong usage")
    }

    #[test]
    fn wrong_usage_is_named() {
        for (args, message) in [
            (
                &[][..],
                "nothing to check: give a URL, a file, a folder, - or --urls",
            ),
            (
                &["no/such.md"],
                "no/such.md: no such file or folder (a URL begins with http:// or https://)",
            ),
            (
                &["http://[::1/"],
                "http://[::1/: not a valid URL: invalid IPv6 address",
            ),
            (
                &["--urls", "no/such"],
                "--urls no/such: no/such: no such file or folder (a URL begins with http:// or https://)",
            ),
            (&["-", "-"], "-: standard input can be read only once"),
            (
                &["-", "--urls", "-"],
                "--urls -: standard input can be read only once",
            ),
        ] {
            assert_eq!(said(args), message, "{args:?}");
        }
        // After a start.
        let after_start = |line: &str| {
            let words: Vec<&str> = ["http://h/"].into_iter().chain(line.split(' ')).collect();
            said(&words)
        };
        for (line, message) in [
            (
                "--accept 2xx",
                "--accept 2xx: \"2xx\" is neither a status nor a range such as 200..299",
            ),
            (
                "--accept 299..200",
                "--accept 299..200: \"299..200\" is neither a status nor a range such as 200..299",
            ),
            (
                "--exclude (",
                "--exclude (: not a regular expression: unclosed group",
            ),
            (
                "--base-url docs",
                "--base-url docs: not an absolute URL with the scheme http or https",
            ),
            (
                "--redirects follow",
                "--redirects follow: neither ignore, report nor fail",
            ),
            (
                "--blocked report",
                "--blocked report: neither ignore, warn nor fail",
            ),
            ("--head always", "--head always: neither auto nor never"),
            ("--max-age 1d", "--max-age needs --state"),
            ("--fail-after 3d", "--fail-after needs --state"),
            (
                "--fail-after soon",
                "--fail-after soon: not a time such as 90, 500ms, 12h or 3d",
            ),
            (
                "--report pdf x",
                "--report pdf: neither text, html nor junit",
            ),
            ("--report html", "--report html: needs a file, too"),
            (
                "--json --report text -",
                "--json and --report would both write to standard output",
            ),
            (
                "--report text - --report junit -",
                "two reports would mix on standard output",
            ),
            (
                "--report text x --report junit x",
                "two reports for one file: x",
            ),
            ("--rate -1", "--rate -1: not a rate such as 20, 0.5 or 30/m"),
            ("--timeout 0", "--timeout 0: not a sensible time"),
            ("--retry-on all", "option --retry-on: is unknown"),
            ("--nosuch", "option --nosuch: is unknown"),
        ] {
            assert_eq!(after_start(line), message, "{line}");
        }
    }

    #[test]
    fn valid_command_lines_are_read() {
        for line in [
            "http://h/",
            "-",
            "--urls - --rate 0 -j64",
            ". --exclude /drafts/",
            "http://h/ --recursive --depth 3",
            "http://h/ --accept 200..299,403,500-599 --head never",
            "http://h/ --state x --fail-after 3d --max-age=1d",
            "http://h/ --json --report html x.html --summary json",
            "http://h/ --report junit - --summary json:y.json",
            "http://h/ --timeout 500ms --patience 2m",
        ] {
            let words: Vec<&str> = line.split(' ').collect();
            assert!(matches!(outcome(&words), Ok(Request::Check(_))), "{line}");
        }
        for args in [&["--help"][..], &["http://h/", "-h"], &["--man"]] {
            assert!(matches!(outcome(args), Ok(Request::Show(_))), "{args:?}");
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
        for list in ["", "200,", "20", "2000", "099", "200..", "+200"] {
            assert!(statuses(list).is_err(), "{list}");
        }
    }
}
