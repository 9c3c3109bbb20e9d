//! `crawler-cli find`: its arguments, exit codes and signals. What it does is in [`Find`]; how it is shown, in
//! `report`.

use std::env;
use std::ffi::OsString;
use std::io;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use courser::{PemOrDer, Proxies, TlsConfig, TlsRoots};
use signal_hook::consts::{SIGINT, SIGTERM};

use super::Find;
use super::expr::Parser;
use super::report::{Format, Report};
use crate::terminal;

/// Runs the command with the arguments that follow its name.
pub fn main(args: Vec<OsString>) -> ExitCode {
    let var = |name: &str| Some(env::var_os(name)?.to_string_lossy().into_owned());
    match parse(args, var) {
        Ok(Command::Help) => {
            terminal::print_help(HELP);
            ExitCode::SUCCESS
        }
        Ok(Command::Run(find, format)) => run(*find, format),
        Err(error) => {
            let message = terminal::neutralise(&error.0).into_owned();
            eprintln!("crawler-cli find: {message}\nTry 'crawler-cli find --help'.");
            ExitCode::from(USAGE)
        }
    }
}

fn run(find: Find, format: Format) -> ExitCode {
    let interrupted = match interrupt_flag() {
        Ok(flag) => flag,
        Err(error) => {
            eprintln!("crawler-cli find: cannot watch for signals: {error}");
            return ExitCode::from(UNREAD);
        }
    };
    let mut report = Report::new(format);
    let summary = find.run(|event| {
        report.event(&event);
        if report.is_over() || interrupted.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    let written = report.finish(&summary);
    if interrupted.load(Ordering::Relaxed) {
        ExitCode::from(INTERRUPTED)
    } else if summary.counts.unread > 0 || summary.failed > 0 || written.is_err() {
        ExitCode::from(UNREAD)
    } else {
        ExitCode::SUCCESS
    }
}

/// Set by the first SIGINT or SIGTERM; the second ends the process at once.
fn interrupt_flag() -> io::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        let code = i32::from(INTERRUPTED);
        signal_hook::flag::register_conditional_shutdown(signal, code, Arc::clone(&flag))?;
        signal_hook::flag::register(signal, Arc::clone(&flag))?;
    }
    Ok(flag)
}

enum Command {
    Run(Box<Find>, Format),
    Help,
}

/// What is wrong with the arguments.
#[derive(Debug, Eq, PartialEq)]
struct UsageError(String);

impl<E: std::error::Error> From<E> for UsageError {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

/// find(1) has long options with one dash, so that the usual parsers do not fit. `var` is the environment.
fn parse(args: Vec<OsString>, var: impl Fn(&str) -> Option<String>) -> Result<Command, UsageError> {
    let mut find = Find::new();
    let mut format = Format::Lines;
    let mut starts = 0;
    let mut only_starts = false;
    let mut tls = TlsConfig::default();
    let (mut proxy, mut no_proxy) = (None, None);
    let mut words = Parser::new(SystemTime::now());
    let mut args = args.into_iter();
    while let Some(arg) = args.next() {
        if !only_starts && words.take(&arg, &mut args)? {
            continue;
        }
        let arg = text(arg)?;
        if only_starts || !arg.starts_with('-') {
            find = find.start(&arg)?;
            starts += 1;
            continue;
        }
        let (option, attached) = split_option(&arg);
        let mut value = || match attached {
            Some(value) => Ok(value.to_owned()),
            None => match args.next() {
                Some(value) => text(value),
                None => Err(UsageError(format!("{option} needs a value"))),
            },
        };
        find = match option {
            "-j" => find.connections(number::<NonZeroUsize>(option, &value()?)?),
            "--timeout" => find.timeout(seconds(option, &value()?)?),
            "--retries" => find.retries(number(option, &value()?)?),
            "--max-body" => find.max_body(bytes(option, &value()?)?),
            "--cacert" => {
                // As curl has it: this file alone.
                tls.roots = TlsRoots::None;
                tls.extra_roots = vec![PemOrDer::File(value()?.into())];
                find
            }
            "-x" | "--proxy" => {
                proxy = Some(value()?);
                find
            }
            "--noproxy" => {
                no_proxy = Some(value()?);
                find
            }
            _ if attached.is_some() => return Err(unknown(&arg)),
            "-k" | "--insecure" => {
                tls.insecure = true;
                find
            }
            "--json" => {
                format = Format::Json;
                find
            }
            "--" => {
                only_starts = true;
                find
            }
            "-h" | "-help" | "--help" => return Ok(Command::Help),
            _ => return Err(unknown(&arg)),
        };
    }
    if starts == 0 {
        return Err(UsageError("no URL to start from".into()));
    }
    // The client would say it too, but for each start.
    tls.build()?;
    let proxies = proxies(proxy.as_deref(), no_proxy.as_deref(), var)?;
    let find = find.expression(words.finish()?).tls(tls).proxies(proxies);
    Ok(Command::Run(Box::new(find), format))
}

/// As curl has it: each option goes before its variables, and an empty one takes their place all the same.
fn proxies(
    proxy: Option<&str>,
    no_proxy: Option<&str>,
    var: impl Fn(&str) -> Option<String>,
) -> Result<Proxies, UsageError> {
    let proxies = Proxies::from_vars(|name| match (name, proxy, no_proxy) {
        ("all_proxy", Some(proxy), _) => Some(proxy.to_owned()),
        ("no_proxy", _, Some(list)) => Some(list.to_owned()),
        ("http_proxy" | "HTTP_PROXY" | "https_proxy" | "HTTPS_PROXY" | "ALL_PROXY", Some(_), _)
        | ("NO_PROXY", _, Some(_)) => None,
        _ => var(name),
    });
    proxies.map_err(|error| match proxy {
        Some(_) => UsageError(format!("-x: {error}")),
        None => UsageError(format!("the environment: {error}")),
    })
}

/// `--option=value` and `-j8`, which may be written in one word.
fn split_option(arg: &str) -> (&str, Option<&str>) {
    if arg.starts_with("--")
        && let Some((option, value)) = arg.split_once('=')
    {
        return (option, Some(value));
    }
    match arg.strip_prefix("-j") {
        Some(digits) if digits.starts_with(|c: char| c.is_ascii_digit()) => ("-j", Some(digits)),
        _ => (arg, None),
    }
}

fn unknown(arg: &str) -> UsageError {
    UsageError(format!("unknown option {arg}"))
}

fn text(arg: OsString) -> Result<String, UsageError> {
    let lossy = |arg: OsString| UsageError(format!("{}: not UTF-8", arg.to_string_lossy()));
    arg.into_string().map_err(lossy)
}

fn number<T: std::str::FromStr>(option: &str, value: &str) -> Result<T, UsageError> {
    // `parse` would take a sign.
    let digits = value.bytes().all(|b| b.is_ascii_digit());
    let parsed = value.parse().ok().filter(|_| digits);
    parsed.ok_or_else(|| UsageError(format!("{option} {value}: not a number that fits here")))
}

fn seconds(option: &str, value: &str) -> Result<Duration, UsageError> {
    let span = value
        .parse()
        .ok()
        .and_then(|s| Duration::try_from_secs_f64(s).ok());
    let sensible = span.filter(|span| !span.is_zero() && *span <= LONGEST_TIMEOUT);
    sensible.ok_or_else(|| {
        UsageError(format!(
            "{option} {value}: not a sensible number of seconds"
        ))
    })
}

/// A number with an optional K, M or G (powers of 1024).
fn bytes(option: &str, value: &str) -> Result<u64, UsageError> {
    let (digits, shift) = match value.strip_suffix(['K', 'k']) {
        Some(digits) => (digits, 10),
        None => match value.strip_suffix(['M', 'm']) {
            Some(digits) => (digits, 20),
            None => match value.strip_suffix(['G', 'g']) {
                Some(digits) => (digits, 30),
                None => (value, 0),
            },
        },
    };
    let size = number::<u64>(option, digits)?.checked_mul(1 << shift);
    size.ok_or_else(|| UsageError(format!("{option} {value}: too large")))
}

const LONGEST_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// Some URL could not be read, or the results could not be written.
const UNREAD: u8 = 1;
const USAGE: u8 = 2;
/// 128 + SIGINT, as shells report it.
const INTERRUPTED: u8 = 130;

const HELP: &str = "\
Finds files and directories in web directory listings, as find(1) does in file systems.

Usage: crawler-cli find URL... [TEST...] [OPTION...]

Each URL, http or https, is a directory on a web server that shows an index of it: Apache httpd,
nginx, Python's http.server, or another whose links lead to the directory's entries. Each directory
is asked for once; nothing above a URL is. All URLs are searched at the same time, and results are
printed as they come, in no particular order.

Tests, all of which must hold:
  -name GLOB      the name fits the shell pattern: *, ?, [a-z], [!a-z], and \\ before a special
                  character. The whole name, percent-decoded; for a start the last segment of its URL
  -iname GLOB     the same without regard to case
  -regex RE       the whole path fits the regular expression (syntax of Rust's regex crate). The
                  path is that of the URL, percent-decoded, from its first / and without a last one
  -type f|d       it is a file, a directory
  -mindepth N     it is at least N levels below its start, which is level 0

Options:
  -maxdepth N     do not go more than N levels below a start
  -print0         end each result with a NUL instead of a newline
  --json          print one JSON object a line: url, type (f or d), path, name, depth, and listing,
                  which tells whose index page showed it (apache, nginx, python, generic; null for a
                  start). What could not be read is on standard error only
  -j N            connections to a host, and requests to it under way at a time [default: 8]
  --timeout S     seconds that a request may take in all; looking up the name, connecting and each
                  handshake no more than 10 of them [default: 30]
  --retries N     further attempts after a transport error, 429 or 5xx [default: 3]
  --max-body N    bytes of an index page, K, M and G allowed; a larger one is an error [default: 64M]
  -k, --insecure  accept any certificate: whoever is on the way can read and change everything
  --cacert FILE   trust the certificates in this PEM file, and no others
  -x, --proxy URL connect through this proxy: http, https, socks5 or socks5h, with user:password@ if
                  it needs them. An empty one is none. Without -x, the environment's http_proxy,
                  https_proxy and all_proxy hold
  --noproxy LIST  connect to these hosts directly: names (and all below them), addresses, blocks such
                  as 10.0.0.0/8, or * for all; instead of the environment's no_proxy
  -h, --help      this text

Exit status: 0 all was read, 1 something was not (each named on standard error), 2 wrong usage,
130 interrupted.

Example: crawler-cli find http://127.0.0.1:8080/centos/ -name repomd.xml -type f
";

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(args: &[&str]) -> Result<Command, String> {
        parse(args.iter().map(OsString::from).collect(), |_| None).map_err(|error| error.0)
    }

    #[test]
    fn wrong_usage_is_named() {
        for (args, message) in [
            (&[][..], "no URL to start from"),
            (&["-name", "x"], "no URL to start from"),
            (&["http://h/", "-name"], "-name needs a value"),
            (&["http://h/", "-type", "x"], "-type x: neither f nor d"),
            (&["http://h/", "-type", "f,d"], "-type f,d: neither f nor d"),
            (
                &["http://h/", "-maxdepth", "-1"],
                "-maxdepth -1: not a number that fits here",
            ),
            (
                &["http://h/", "-maxdepth", "+1"],
                "-maxdepth +1: not a number that fits here",
            ),
            (
                &["http://h/", "-mindepth", "x"],
                "-mindepth x: not a number that fits here",
            ),
            (
                &["http://h/", "-j", "0"],
                "-j 0: not a number that fits here",
            ),
            (&["http://h/", "-j0"], "-j 0: not a number that fits here"),
            (
                &["http://h/", "--timeout", "0"],
                "--timeout 0: not a sensible number of seconds",
            ),
            (
                &["http://h/", "--timeout=nan"],
                "--timeout nan: not a sensible number of seconds",
            ),
            (
                &["http://h/", "--retries", "9999999999"],
                "--retries 9999999999: not a number that fits here",
            ),
            (
                &["http://h/", "--max-body", "1T"],
                "--max-body 1T: not a number that fits here",
            ),
            (
                &["http://h/", "--max-body", "99999999999G"],
                "--max-body 99999999999G: too large",
            ),
            (&["http://h/", "--cacert"], "--cacert needs a value"),
            (
                &["http://h/", "-x", "ftp://p:1"],
                "-x: \"ftp://p:1\" is not a proxy: the scheme ftp is not supported",
            ),
            (&["http://h/", "-k=1"], "unknown option -k=1"),
            (&["http://h/", "-o"], "unknown option -o"),
            (&["http://h/", "--json=yes"], "unknown option --json=yes"),
            (&["http://h/", "--name=x"], "unknown option --name=x"),
            (
                &["h/x"],
                "h/x: not an absolute URL such as http://127.0.0.1:8080/pub/",
            ),
            (
                &["127.0.0.1:80/x"],
                "127.0.0.1:80/x: not an absolute URL such as http://127.0.0.1:8080/pub/",
            ),
            (
                &["localhost:80"],
                "localhost:80: not an absolute URL such as http://127.0.0.1:8080/pub/",
            ),
            (
                &["http://h/?dir=x"],
                "http://h/?dir=x: a start with a query is not supported",
            ),
            (
                &["http://u:p@h/"],
                "http://***@h/: user names and passwords are not supported",
            ),
        ] {
            assert_eq!(
                outcome(args).map(|_| ()),
                Err(message.to_owned()),
                "{args:?}"
            );
        }
        let regex = outcome(&["http://h/", "-regex", "("]).map(|_| ());
        assert!(regex.is_err_and(|message| message.starts_with("-regex (: ")));
    }

    #[test]
    fn options_go_anywhere() {
        for args in [
            &["http://h/"][..],
            &["http://h/a", "http://h/b", "-name", "*.iso", "-type", "f"],
            &[
                "-j",
                "16",
                "--timeout=1.5",
                "-j8",
                "http://h/",
                "--max-body",
                "1M",
                "-print0",
            ],
            &["-name", "-x", "--", "http://h/"],
            &["http://h/?C=N;O=D"],
            &["https://example.org/"],
        ] {
            assert!(matches!(outcome(args), Ok(Command::Run(..))), "{args:?}");
        }
        for args in [&["--help"][..], &["http://h/", "-help"], &["-h"]] {
            assert!(matches!(outcome(args), Ok(Command::Help)), "{args:?}");
        }
    }

    #[test]
    fn a_file_without_certificates_is_wrong_usage() {
        let message = outcome(&["https://h/", "--cacert", "/no/such.pem"]).map(|_| ());
        let message = message.expect_err("there is no such file");
        assert!(message.starts_with("roots in /no/such.pem: "), "{message}");
    }

    #[test]
    fn proxies_come_from_the_options_and_else_from_the_environment() {
        let vars = |name: &str| match name {
            "http_proxy" => Some("env:1".to_owned()),
            "NO_PROXY" => Some("direct.example".to_owned()),
            _ => None,
        };
        for (proxy, no_proxy, expected) in [
            // For http, for https, and for http to direct.example.
            (None, None, [Some("env"), None, None]),
            (Some("own"), None, [Some("own"), Some("own"), None]),
            (Some(""), None, [None; 3]),
            (Some("own"), Some(""), [Some("own"); 3]),
            (None, Some("h.example"), [None, None, Some("env")]),
            (Some("own"), Some("*"), [None; 3]),
        ] {
            let proxies = proxies(proxy, no_proxy, vars).expect("valid");
            let picked = [
                "http://h.example/",
                "https://h.example/",
                "http://direct.example/",
            ]
            .map(|url| {
                let url = courser::proto::Url::parse(url).expect("valid");
                proxies.pick(&url).map(|proxy| proxy.host().to_owned())
            });
            let picked = picked.each_ref().map(Option::as_deref);
            assert_eq!(picked, expected, "{proxy:?} {no_proxy:?}");
        }
        let bad = proxies(None, None, |_| Some("ftp://u:secret@p".to_owned()));
        let message = bad.map(|_| ()).expect_err("no proxy").0;
        assert!(message.starts_with("the environment: "), "{message}");
        assert!(!message.contains("secret"), "{message}");
    }

    #[test]
    fn sizes_have_units() {
        for (value, expected) in [
            ("0", 0),
            ("10", 10),
            ("2K", 2048),
            ("3m", 3 << 20),
            ("1G", 1 << 30),
        ] {
            assert_eq!(bytes("", value), Ok(expected));
        }
    }
}
