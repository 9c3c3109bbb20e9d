//! The options of `crawler-cli check`. Options that `find` has keep their names and meanings; patterns are those of
//! lychee.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use courser::policy::Statuses;
use regex::Regex;
use url::Url;

use super::args::statuses;
use crate::cli::choice;
use crate::cli::crawl_options::{CrawlOptions, PROGRESS};
use crate::cli::values::{number, span};
use crate::report::{Progress, SummaryFormat};
use check::host::HeadUse;
use check::{Blocked, Redirects};

/// Check whether links are good, in files and on web sites
///
/// Each INPUT is a URL (the page and its links are checked), a file or a folder (the links of its documents are
/// checked: Markdown, HTML and sitemaps, by the names .md, .html, .htm, .xml and their like, each also compressed by
/// gzip), or - for a document on standard input: HTML if it begins with <, else Markdown. With --urls, a list of URLs
/// is checked.
///
/// Each URL is checked once, and reported for every place that refers to it. Links with other schemes, such as mailto,
/// are not checked.
///
/// A URL is asked by HEAD first; a bad answer is confirmed by GET. Relative links in files are looked up on the disk.
/// Hosts are asked politely: few connections, a limited rate, robots.txt and Retry-After obeyed.
#[derive(clap::Args)]
#[command(
    override_usage = "crawler-cli check INPUT... [OPTION...]",
    after_long_help = include_str!("help.txt")
)]
pub(crate) struct Options {
    /// A URL, a file, a folder, or - for standard input
    #[arg(value_name = "INPUT")]
    pub(super) inputs: Vec<OsString>,
    /// Check the URLs in a list, one in each line
    ///
    /// Check the URLs in this file, one in each line, or in a field of JSON objects, one in each line (--field); - is
    /// standard input. Only these URLs are checked, not the links of their pages. The option may be repeated.
    #[arg(long, value_name = "FILE|-")]
    pub(super) urls: Vec<OsString>,
    /// Check the links of pages at most N links away [default: 0]
    ///
    /// Check also the links of the pages that the given pages link to, and so on, at most N links away. 0: only the
    /// links of the given pages. Pages are read only below the given ones.
    #[arg(long, value_name = "N", value_parser = number::<u32>)]
    pub(super) depth: Option<u32>,
    /// Check the whole site below a page
    ///
    /// Check the links of all pages below the given ones, 100,000 at most, and read the sitemaps of their hosts. With
    /// --depth: at most N links away.
    #[arg(long)]
    pub(super) recursive: bool,
    /// Check URLs that fit, even if --exclude fits too
    ///
    /// Check URLs of which a part fits this regular expression, even if --exclude fits too. Without --exclude, no other
    /// URLs are checked. The option may be repeated.
    #[arg(long, value_name = "RE", value_parser = regex)]
    pub(super) include: Vec<Regex>,
    /// Do not check URLs that fit
    ///
    /// Do not check URLs of which a part fits this regular expression, in the syntax of Rust's regex crate. @FILE reads
    /// one expression from each line; blank lines and lines that begin with # are ignored. The option may be repeated.
    #[arg(long, value_name = "RE|@FILE", value_parser = patterns)]
    pub(super) exclude: Vec<Patterns>,
    /// The base of relative links in files
    ///
    /// Without this option, relative links are looked up on the disk.
    #[arg(long, value_name = "URL", value_parser = base_url)]
    pub(super) base_url: Option<Url>,
    /// Where links in files that begin with / are
    ///
    /// The folder that links beginning with / start from, in files.
    #[arg(long, value_name = "DIR", value_parser = folder)]
    pub(super) root_dir: Option<PathBuf>,
    /// The field of JSON lines that has the URL [default: url]
    ///
    /// With --urls: which field of lines that are JSON objects has the URL, with dots between the names of nested
    /// fields.
    #[arg(long, value_name = "NAME")]
    pub(super) field: Option<String>,
    /// Read hidden files in folders too
    #[arg(long)]
    pub(super) hidden: bool,
    /// Read also what .gitignore leaves out
    #[arg(long)]
    pub(super) no_ignore: bool,
    /// Check that fragments of links to files exist
    ///
    /// Check that files have what the fragments of links to them name, the part after #. Headings of Markdown have the
    /// names that GitHub gives them; a folder has what its index.html has. Pages of web servers are not searched.
    #[arg(long)]
    pub(super) fragments: bool,
    /// Further statuses that are good: 403,500..599
    ///
    /// Further statuses that are good: numbers and ranges with both ends, separated by commas, such as 200..299,403.
    /// 2xx and 304 are always good.
    #[arg(long, value_name = "LIST", value_parser = statuses)]
    pub(super) accept: Option<Statuses>,
    /// Ask by HEAD first, or never [default: auto]
    ///
    /// auto: ask by HEAD first, confirm each bad answer by GET, and learn which hosts treat HEAD wrongly. never: ask by
    /// GET.
    #[arg(long, value_name = "auto|never", value_parser = choice(&[("auto", HeadUse::Auto), ("never", HeadUse::Never)]))]
    pub(super) head: Option<HeadUse>,
    /// The most redirects that are followed [default: 10]
    #[arg(long, value_name = "N", value_parser = number::<u32>)]
    pub(super) max_redirects: Option<u32>,
    /// Good URLs that redirect: ignore, report or fail [default: report]
    ///
    /// What good URLs that redirect mean. ignore: nothing. report: reports list them. fail: the exit status is 1, too.
    #[arg(long, value_name = "WHAT", value_parser = choice(REDIRECTS))]
    pub(super) redirects: Option<Redirects>,
    /// URLs that cannot be judged: ignore, warn or fail [default: warn]
    ///
    /// What URLs mean that could not be judged (class unk), because the server refuses programs, asks for credentials
    /// or for fewer requests. ignore: nothing. warn: reports list them. fail: the exit status is 1, too.
    #[arg(long, value_name = "WHAT", value_parser = choice(BLOCKED))]
    pub(super) blocked: Option<Blocked>,
    /// Keep the history of URLs in a file
    ///
    /// Keep what is known about each URL in this file, an SQLite database, which is created if necessary. A check that
    /// was interrupted goes on where it ended: what it had asked is not asked again, but reported. Without this option,
    /// no database is used: a list is read while fewer than 16,384 of its URLs wait, and links that do not fit into 1 GiB
    /// of memory are left out and named.
    #[arg(long, value_name = "FILE")]
    pub(super) state: Option<PathBuf>,
    /// Do not ask again what was good within this time [default: 0]
    ///
    /// With --state: do not ask URLs again that were good within this time.
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub(super) max_age: Option<Duration>,
    /// URLs fail only when they are broken for this long [default: 0]
    ///
    /// With --state: a URL makes the exit status 1 only when it has been broken for this time. Until then, reports list
    /// it apart.
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub(super) fail_after: Option<Duration>,
    /// One JSON object for each URL
    ///
    /// Print one JSON object for each URL, in a line of its own, as soon as the URL is judged and no guard can make it
    /// void. Fields that are not known are absent: url (as written, or resolved against its base); again (true: the URL
    /// has a line already, see below); class (ok, neg, net, unk, soft, void); cause (why it is not ok, such as
    /// status_404, tls_expired, blocked); reason (the same in words, or where it has moved to); status, method (of the
    /// last answer); lenient (how many header lines were dropped, because they were wrong and harmless); state (with
    /// --state); moved_to (if all redirects were permanent); final_url; redirects (each with status and url); attempts;
    /// latency_ms; address; checked_at (RFC 3339); refs (the places that refer to it, each with source, line, column,
    /// written (a link to a file as it stands there) and text; lines and columns count from 1, columns in Unicode code
    /// points).
    ///
    /// Places that are found after the line of their URL are another line, with url, again, class, cause, status and
    /// these refs. Another spelling of a URL (a fragment, capitals in the name of the host) is another line with again,
    /// too. Summaries count such a URL once.
    #[arg(long)]
    pub(super) json: bool,
    /// Write a report; may be repeated; - is standard output
    ///
    /// Write a report to a file; - is standard output. The option may be repeated.
    ///
    /// text: what is broken first, by source, with line, column and reason; then what could not be judged, then
    /// redirects, then figures. This report is on standard output unless something else is; if that is no terminal, the
    /// figures are on standard error. html: a page with the same by source, and with the verdicts by host; the page
    /// needs no other file. junit: test results for Jenkins and GitLab.
    ///
    /// Reports for persons name a limited number of places (text 20,000 of each kind, html 2,000 of each kind) and
    /// count the rest; --json and junit have everything. In junit, places that are found after their URL was judged are
    /// further cases if the URL is not good.
    #[arg(long, num_args = 2, value_names = ["KIND", "FILE"])]
    pub(super) report: Vec<OsString>,
    /// At the end: text, json, json:FILE or none
    ///
    /// The summary at the end. text: a few lines on standard error. json: an object as the last line of standard
    /// output. json:FILE: the same object in a file. none: no summary. Without this option: text, unless standard
    /// output has the text report with its figures.
    ///
    /// The object has one field, summary, with these fields: complete; resumed (whether an interrupted check was
    /// continued); ending (finished, stopped or failed); exit_status; urls, known and references (places); classes and
    /// causes (numbers of URLs); failing, warned, failing_recently; redirected, moved, reused; unsupported (links with
    /// another scheme), excluded, problems (with sources), guards; requests, requests_per_second,
    /// failed_attempts_by_class, bytes; seconds, and parts of it: seconds_waiting_for_hosts, seconds_held_back and
    /// seconds_computing; latency_seconds (mean, max); connections_opened and connections_reused; urls_by_host and
    /// urls_of_further_hosts (by class); hosts (requests and latencies).
    #[arg(long, value_name = "FORMAT", value_parser = SummaryFormat::named)]
    pub(super) summary: Option<SummaryFormat>,
    /// Progress line: auto, always or never [default: auto]
    ///
    /// Whether to show the progress of the check. auto: a line at the bottom of the terminal, if standard error is a
    /// terminal. always: the same as auto, and also a new line in each second if standard error is not a terminal.
    /// never: no progress.
    #[arg(long, value_name = "WHEN", value_parser = choice(PROGRESS))]
    pub(super) progress: Option<Progress>,
    #[command(flatten)]
    pub(super) crawl: CrawlOptions,
}

const REDIRECTS: &[(&str, Redirects)] = &[
    ("ignore", Redirects::Ignore),
    ("report", Redirects::Report),
    ("fail", Redirects::Fail),
];

const BLOCKED: &[(&str, Blocked)] = &[
    ("ignore", Blocked::Ignore),
    ("warn", Blocked::Warn),
    ("fail", Blocked::Fail),
];

/// The regular expressions of one `--exclude`.
pub(super) type Patterns = Vec<Regex>;

/// A regular expression, or those of a file.
fn patterns(value: &str) -> Result<Patterns, String> {
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

fn base_url(text: &str) -> Result<Url, &'static str> {
    let url = Url::parse(text).ok();
    let url = url.filter(|url| matches!(url.scheme(), "http" | "https"));
    url.ok_or("not an absolute URL with the scheme http or https")
}

fn folder(text: &str) -> Result<PathBuf, &'static str> {
    let folder = Some(PathBuf::from(text)).filter(|folder| folder.is_dir());
    folder.ok_or("no such folder")
}
