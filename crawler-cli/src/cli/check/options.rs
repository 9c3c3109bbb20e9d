//! The option table of `crawler-cli check`. Options that `find` has keep their names and meanings; patterns are those of
//! lychee.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use regex::Regex;
use url::Url;

use super::args::{Args, statuses};
use crate::check::host::HeadUse;
use crate::check::sources::Input;
use crate::check::{Blocked, Checker, Redirects};
use crate::cli::crawl_options::CrawlRows;
use crate::cli::help_rows::HelpRows;
use crate::cli::identity_options::IdentityRows;
use crate::cli::option::{Opt, Section, Set, any, file, one_of};
use crate::cli::values::{number, span};
use crate::report::check::Kind;
use crate::report::{Progress, SummaryFormat};

pub(super) const TABLE: &[Section<Args>] = &[
    Section {
        heading: "What is checked",
        options: &[INPUTS, SELECTION, DOCUMENTS],
    },
    Section {
        heading: "What is good",
        options: &[GOOD],
    },
    Section {
        heading: "What is remembered",
        options: &[MEMORY],
    },
    Section {
        heading: "Politeness and retries",
        options: &[CrawlRows::POLITENESS, CrawlRows::RETRIES],
    },
    Section {
        heading: "Network",
        options: &[CrawlRows::CONNECTIONS, CrawlRows::TLS, CrawlRows::PROXIES],
    },
    Section {
        heading: "What certain hosts get",
        options: &[IdentityRows::ALL],
    },
    Section {
        heading: "Output",
        options: &[OUTPUT],
    },
    Section {
        heading: "Other options",
        options: &[HelpRows::ALL],
    },
];

const INPUTS: &[Opt<Args>] = &[
    Opt::text(&["--urls"], &[file("FILE|-")], |args: &mut Args, value| {
        let input = Input::from_list(OsStr::new(value)).map_err(|error| error.to_string())?;
        args.input(input, value)
    })
    .short("check the URLs in a list, one in each line")
    .long("Check the URLs in this file, one in each line, or in a field of JSON objects, one in each line (--field); - is standard input. Only these URLs are checked, not the links of their pages. The option may be repeated."),
    Opt::text(&["--depth"], &[any("N")], |args: &mut Args, value| {
        args.depth = Some(number(value)?);
        Ok(())
    })
    .short("check the links of pages at most N links away")
    .long("Check also the links of the pages that the given pages link to, and so on, at most N links away. 0: only the links of the given pages. Pages are read only below the given ones.")
    .default("0"),
    Opt::flag(&["--recursive"], |args: &mut Args| args.is_recursive = true)
        .short("check the whole site below a page")
        .long("Check the links of all pages below the given ones, and read the sitemaps of their hosts. With --depth: at most N links away."),
];

const SELECTION: &[Opt<Args>] = &[
    Opt::text(&["--include"], &[any("RE")], |args: &mut Args, value| {
        let pattern = regex(value)?;
        args.checker(|checker| checker.include(pattern));
        Ok(())
    })
    .short("check URLs that fit, even if --exclude fits too")
    .long("Check URLs of which a part fits this regular expression, even if --exclude fits too. Without --exclude, no other URLs are checked. The option may be repeated."),
    Opt::text(&["--exclude"], &[file("RE|@FILE")], |args: &mut Args, value| {
        for pattern in patterns(value)? {
            args.checker(|checker| checker.exclude(pattern));
        }
        Ok(())
    })
    .short("do not check URLs that fit")
    .long("Do not check URLs of which a part fits this regular expression, in the syntax of Rust's regex crate. @FILE reads one expression from each line; blank lines and lines that begin with # are ignored. The option may be repeated."),
];

const DOCUMENTS: &[Opt<Args>] = &[
    Opt::text(&["--base-url"], &[any("URL")], |args: &mut Args, value| {
        let url = Url::parse(value).ok();
        let url = url.filter(|url| matches!(url.scheme(), "http" | "https"));
        let url = url.ok_or("not an absolute URL with the scheme http or https")?;
        args.checker(|checker| checker.base_url(url));
        Ok(())
    })
    .short("the base of relative links in files")
    .long("The base of relative links in files. Without this option, relative links are looked up on the disk."),
    Opt::text(&["--root-dir"], &[file("DIR")], |args: &mut Args, value| {
        let folder = Path::new(value);
        if !folder.is_dir() {
            return Err("no such folder".into());
        }
        args.checker(|checker| checker.root_dir(folder));
        Ok(())
    })
    .short("where links in files that begin with / are")
    .long("The folder that links beginning with / start from, in files."),
    Opt::text(&["--field"], &[any("NAME")], |args: &mut Args, value| {
        args.checker(|checker| checker.field(value));
        Ok(())
    })
    .short("the field of JSON lines that has the URL")
    .long("With --urls: which field of lines that are JSON objects has the URL, with dots between the names of nested fields.")
    .default("url"),
    Opt::flag(&["--hidden"], |args: &mut Args| args.checker(Checker::hidden))
        .short("read hidden files in folders too"),
    Opt::flag(&["--no-ignore"], |args: &mut Args| {
        args.checker(|checker| checker.ignore_files(false));
    })
    .short("read also what .gitignore leaves out"),
    Opt::flag(&["--fragments"], |args: &mut Args| args.checker(Checker::fragments))
        .short("check that fragments of links to files exist")
        .long("Check that files have what the fragments of links to them name, the part after #. Headings of Markdown have the names that GitHub gives them; a folder has what its index.html has. Pages of web servers are not searched."),
];

const GOOD: &[Opt<Args>] = &[
    Opt::text(&["--accept"], &[any("LIST")], |args: &mut Args, value| {
        let statuses = statuses(value)?;
        args.checker(|checker| checker.accept(statuses));
        Ok(())
    })
    .short("further statuses that are good: 403,500..599")
    .long("Further statuses that are good: numbers and ranges with both ends, separated by commas, such as 200..299,403. 2xx and 304 are always good."),
    Opt::text(&["--head"], &[one_of("auto|never", &["auto", "never"])], |args: &mut Args, value| {
        let head = match value {
            "auto" => HeadUse::Auto,
            "never" => HeadUse::Never,
            _ => return Err("neither auto nor never".to_owned()),
        };
        args.checker(|checker| checker.head(head));
        Ok(())
    })
    .short("ask by HEAD first, or never")
    .long("auto: ask by HEAD first, confirm each bad answer by GET, and learn which hosts treat HEAD wrongly. never: ask by GET.")
    .default("auto"),
    Opt::text(&["--max-redirects"], &[any("N")], |args: &mut Args, value| {
        let most = number(value)?;
        args.checker(|checker| checker.max_redirects(most));
        Ok(())
    })
    .short("the most redirects that are followed")
    .default("10"),
    Opt::text(&["--redirects"], &[one_of("WHAT", &["ignore", "report", "fail"])], |args: &mut Args, value| {
        let redirects = match value {
            "ignore" => Redirects::Ignore,
            "report" => Redirects::Report,
            "fail" => Redirects::Fail,
            _ => return Err("neither ignore, report nor fail".to_owned()),
        };
        args.output.redirects = redirects;
        args.checker(|checker| checker.redirects(redirects));
        Ok(())
    })
    .short("good URLs that redirect: ignore, report or fail")
    .long("What good URLs that redirect mean. ignore: nothing. report: reports list them. fail: the exit status is 1, too.")
    .default("report"),
    Opt::text(&["--blocked"], &[one_of("WHAT", &["ignore", "warn", "fail"])], |args: &mut Args, value| {
        let blocked = match value {
            "ignore" => Blocked::Ignore,
            "warn" => Blocked::Warn,
            "fail" => Blocked::Fail,
            _ => return Err("neither ignore, warn nor fail".to_owned()),
        };
        args.checker(|checker| checker.blocked(blocked));
        Ok(())
    })
    .short("URLs that cannot be judged: ignore, warn or fail")
    .long("What URLs mean that could not be judged (class unk), because the server refuses programs, asks for credentials or for fewer requests. ignore: nothing. warn: reports list them. fail: the exit status is 1, too.")
    .default("warn"),
];

const MEMORY: &[Opt<Args>] = &[
    Opt::text(&["--state"], &[file("FILE")], |args: &mut Args, value| {
        args.has_state = true;
        args.checker(|checker| checker.state(value.as_ref()));
        Ok(())
    })
    .short("keep the history of URLs in a file")
    .long("Keep what is known about each URL in this file, an SQLite database, which is created if necessary. A check that was interrupted goes on where it ended: what it had asked is not asked again, but reported."),
    Opt::text(&["--max-age"], &[any("TIME")], |args: &mut Args, value| {
        let age = span(value)?;
        args.needs_state.get_or_insert("--max-age");
        args.checker(|checker| checker.max_age(age));
        Ok(())
    })
    .short("do not ask again what was good within this time")
    .long("With --state: do not ask URLs again that were good within this time.")
    .default("0"),
    Opt::text(&["--fail-after"], &[any("TIME")], |args: &mut Args, value| {
        let time = span(value)?;
        args.needs_state.get_or_insert("--fail-after");
        args.checker(|checker| checker.fail_after(time));
        Ok(())
    })
    .short("URLs fail only when they are broken for this long")
    .long("With --state: a URL makes the exit status 1 only when it has been broken for this time. Until then, reports list it apart.")
    .default("0"),
];

const OUTPUT: &[Opt<Args>] = &[
    Opt::flag(&["--json"], |args: &mut Args| args.output.json = true)
        .short("one JSON object for each URL")
        .long("Print one JSON object for each URL, in a line of its own, as soon as the URL is judged. Fields that are not known are absent: url (as written, or resolved against its base); class (ok, neg, net, unk, soft, void); cause (why it is not ok, such as status_404, tls_expired, blocked); reason (the same in words, or where it has moved to); status, method (of the last answer); lenient (how many header lines were dropped, because they were wrong and harmless); state (with --state); moved_to (if all redirects were permanent); final_url; redirects (each with status and url); attempts; latency_ms; address; checked_at (RFC 3339); refs (the places that refer to it, each with source, line, column, written (a link to a file as it stands there) and text; lines and columns count from 1, columns in Unicode code points)."),
    Opt::new(&["--report"], &[one_of("KIND", Kind::NAMES), file("FILE")], Set::Texts(|args: &mut Args, value, next| {
        let kind = Kind::named(value)
            .ok_or("neither text, html nor junit")?;
        let path = next().ok_or("needs a file, too")?;
        args.output.reports.push((kind, path.into()));
        Ok(())
    }))
    .short("write a report; may be repeated; - is standard output")
    .long("Write a report to a file; - is standard output. The option may be repeated.\ntext: what is broken first, by source, with line, column and reason; then what could not be judged, then redirects, then figures. This report is on standard output unless something else is; if that is no terminal, the figures are on standard error. html: a page with the same by source, and with the verdicts by host; the page needs no other file. junit: test results for Jenkins and GitLab.\nReports for persons name a limited number of places (text 20,000 of each kind, html 2,000 of each kind) and count the rest; --json and junit have everything."),
    Opt::text(&["--summary"], &[one_of("FORMAT", SummaryFormat::NAMES)], |args: &mut Args, value| {
        args.output.summary = Some(SummaryFormat::named(value)?);
        Ok(())
    })
    .short("at the end: text, json, json:FILE or none")
    .long("The summary at the end. text: a few lines on standard error. json: an object as the last line of standard output. json:FILE: the same object in a file. none: no summary. Without this option: text, unless standard output has the text report with its figures.\nThe object has one field, summary, with these fields: complete; resumed (whether an interrupted check was continued); ending (finished, stopped or failed); exit_status; urls, known and references (places); classes and causes (numbers of URLs); failing, warned, failing_recently; redirected, moved, reused; unsupported (links with another scheme), excluded, problems (with sources), guards; requests, requests_per_second, failed_attempts_by_class, bytes; seconds, and parts of it: seconds_waiting_for_hosts, seconds_held_back and seconds_computing; latency_seconds (mean, max); connections_opened and connections_reused; urls_by_host and urls_of_further_hosts (by class); hosts (requests and latencies)."),
    Opt::text(&["--progress"], &[one_of("WHEN", Progress::NAMES)], |args: &mut Args, value| {
        args.output.progress = Progress::named(value)?;
        Ok(())
    })
    .short("progress line: auto, always or never")
    .long("Whether to show the progress of the check. auto: a line at the bottom of the terminal, if standard error is a terminal. always: the same as auto, and also a new line in each second if standard error is not a terminal. never: no progress.")
    .default("auto"),
];

/// A regular expression, or those of a file.
fn patterns(value: &str) -> Result<Vec<Regex>, String> {
    let Some(path) = value.strip_prefix('@') else {
        return Ok(vec![regex(value)?]);
    };
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(regex).collect()
}

fn regex(text: &str) -> Result<Regex, String> {
    Regex::new(text).map_err(|error| {
        let text = error.to_string();
        // The lines before the last show where the error is.
        let why = text.lines().last().unwrap_or_default();
        let why = why.strip_prefix("error: ").unwrap_or(why);
        format!("not a regular expression: {why}")
    })
}
