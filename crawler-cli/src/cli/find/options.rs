//! The options of `crawler-cli find`, but for the words of the expression, and the text about these.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;

use crate::cli::choice;
use crate::cli::crawl_options::{CrawlOptions, PROGRESS, classes};
use crate::cli::values::number;
use crate::report::{Progress, SummaryFormat};
use crawl::policy::RetryClass;
use find::Follow;
use plain::values::bytes_as_curl;

/// Find files and directories in web directory listings, as find(1) does in file systems
///
/// Each URL, http or https, is a directory on a web server that shows a listing of it: Apache httpd, nginx, lighttpd,
/// Caddy, IIS, Python's http.server, S3 and similar stores, or another server whose page links to the entries of the
/// directory. A page that shows no sign of a listing is reported as unread (--accept-pages). If a URL does not end in
/// /, the server is asked whether it is a directory. Each directory is requested once. Nothing above a URL is
/// requested, except robots.txt, and the place that a URL itself redirects to. All URLs are searched at the same time,
/// and results are printed as they come, in no particular order.
///
/// The expression is that of find(1): tests, actions and operators, evaluated from left to right for each file and
/// directory. Words of find(1) that make no sense on a web server, such as -perm, -user and -delete, are refused with
/// the reason. Words of the expression, options and URLs may come in any order.
///
/// Results go to standard output. Each URL that could not be read is reported on standard error with the cause, and
/// makes the exit status 1. Standard error also shows progress, if it is a terminal, and a summary at the end.
#[derive(clap::Args)]
#[command(
    override_usage = "crawler-cli find URL... [EXPRESSION] [OPTION...]",
    after_help = overview(),
    after_long_help = HELP
)]
pub(crate) struct Options {
    /// Where the search starts
    #[arg(value_name = "URL")]
    pub(super) urls: Vec<String>,
    /// Keep the search in a file, to go on after an interruption
    ///
    /// Keep the search in this file, an SQLite database, so that the same command continues it after Ctrl-C or a crash.
    /// Nothing is searched twice. If the results go to a file (with >>), no result is lost or written twice. Through a
    /// pipe, the results of the last moment may come twice; so may the results and commands of a directory that was
    /// being processed when -exec was interrupted. Beyond 100,000 waiting directories, the rest waits in the file only.
    /// The file is removed when the search is complete. It belongs to one search: the starts, the expression,
    /// --download and all options that decide what is found must stay the same. Results that are sorted at the end, and
    /// files of -fprint and similar actions, cannot be continued.
    #[arg(long, value_name = "FILE")]
    pub(super) state: Option<PathBuf>,
    /// Follow listings of directories, or all links of pages [default: listing]
    ///
    /// Which links are followed. listing: pages are listings of directories, and only the entries directly below a
    /// directory are found. page: pages are web pages; all links are followed that stay below the start, but for those
    /// that their page marks nofollow; embedded files (images, scripts) are found too. The target of a link is found
    /// when it has answered: a page after a GET, anything else after a HEAD. Embedded files are not requested, unless a
    /// test needs to know more. -prune stops at the links of a page. The depth is that of the path, not the number of
    /// links. A URL that cannot be read is reported with the page that links to it.
    #[arg(long, value_name = "listing|page", value_parser = choice(LINKS))]
    pub(super) links: Option<Follow>,
    /// Start from the URLs in a file; - is standard input
    ///
    /// Start from the URLs in this file, one in each line; - is standard input. If the file contains a NUL, the URLs
    /// end with NULs. Empty lines are ignored. A line may also be a JSON object with the field url, as --unread writes
    /// them, to read what is missing of an earlier search. A URL is a start like any other: its depth is 0, and what is
    /// below it is found. An empty file is a search without starts, and finds nothing.
    #[arg(long, value_name = "FILE|-")]
    pub(super) starts_from: Vec<PathBuf>,
    /// With --links page: how many pages of a host are read [default: 100000]
    ///
    /// With --links page, how many pages of one host links may lead to. Pages without end, such as those of a calendar,
    /// end there: the first further page is reported as unread, and the exit status is 1.
    #[arg(long, value_name = "N", value_parser = number::<u64>)]
    pub(super) max_pages: Option<u64>,
    /// Take links of any page for entries
    ///
    /// Take the links of each page that lead to its children for entries, even if nothing shows that the page lists a
    /// directory. Without this option, a login form, the challenge of a bot filter, an index.html or another page that
    /// is no listing is reported on standard error, and its directory counts as unread.
    #[arg(long)]
    pub(super) accept_pages: bool,
    /// End each result with a NUL instead of a newline
    ///
    /// End each result with a NUL instead of a newline, for xargs -0.
    #[arg(short = '0', long, conflicts_with = "json")]
    pub(super) null: bool,
    /// One JSON object in each line
    ///
    /// Print one JSON object in each line, with these fields: url; type (f or d); path; name; depth; parent (the URL of
    /// the directory that lists the entry; null for a start); size (null if it is not known exactly); size_lo and
    /// size_hi (the smallest and largest possible size); mtime (RFC 3339; null if the time zone of the listing is not
    /// known); mtime_lo and mtime_hi; mtime_precision (second, minute, day or unsure); listing (the software whose
    /// listing shows the entry; null for a start); status (of the server's answer about the entry; null if only a
    /// listing shows it); attempts (requests until the answer that shows the entry); seconds (the time of the last of
    /// these requests). URLs that could not be read are reported on standard error only.
    #[arg(long)]
    pub(super) json: bool,
    /// Download the files that are found
    ///
    /// Download the files that are found into this directory. Each file has the same path as below the directory of the
    /// start; with several starts, and for files from elsewhere, the path begins with the host. A file gets its name
    /// when it is complete, and the time that the server gives. An incomplete download is continued, also by a later
    /// run, if the server says that the file is still the same. A file is complete when it has the length that the
    /// answer announces; if the listing shows another size, a warning says so. A file that exists already and has the
    /// size and time of the listing is skipped without a request. Any other existing file is compared with the length
    /// and the time in the head of the server's answer; a file that differs is an error and is not changed. A full disk
    /// ends the run.
    #[arg(long, value_name = "DIR")]
    pub(super) download: Vec<PathBuf>,
    /// Replace downloaded files that differ
    ///
    /// With --download, replace files that differ from those of the server.
    #[arg(long)]
    pub(super) overwrite: bool,
    /// The most bytes a second of all transfers together
    ///
    /// With --download, how many bytes are received in a second at most, by all transfers together, whatever their
    /// hosts. As for curl, the number may have a unit: k, M, G, T or P, which are powers of 1024; 0 is no limit. The
    /// bytes of listings and of TLS count, too. --timeout holds as ever: with a low limit, a long listing can take
    /// longer.
    #[arg(long, value_name = "SPEED", value_parser = bytes_as_curl)]
    pub(super) limit_rate: Option<u64>,
    /// Progress line: auto, always or never [default: auto]
    ///
    /// Whether to show the progress of the search. auto: a line at the bottom of the terminal, if standard error is a
    /// terminal. always: the same as auto, and also a new line in each second if standard error is not a terminal.
    /// never: no progress. Commands of -exec write to the terminal too; with them, and with -fprint /dev/stderr,
    /// progress is shown only for always.
    #[arg(long, value_name = "WHEN", value_parser = choice(PROGRESS))]
    pub(super) progress: Option<Progress>,
    /// At the end: text, json, json:FILE or none [default: text]
    ///
    /// The summary at the end. text: one line on standard error. json: an object as the last line of standard output.
    /// json:FILE: the same object in a file. none: no summary.
    ///
    /// The object has one field, summary, with these fields: complete (whether everything was read); ending (finished,
    /// quit or stopped); matched, undecided and actions_failed; downloads (null without --download; else wanted, saved,
    /// resumed, kept, failed, and bytes written); files, directories and directories_done; requests, retries, unread,
    /// unread_by_class and failed_attempts_by_class; unread_urls, what this run could not read: objects with the fields
    /// of --unread, and left_out_more, how many names left_out has no room for; unread_urls_more, how many objects
    /// there is no room for, beyond 4 MiB; bytes; seconds, and parts of it: seconds_waiting_for_hosts,
    /// seconds_held_back (by rates, delays and back-off) and seconds_computing; requests_per_second; latency_seconds
    /// (mean, max); connections_opened and connections_reused; hosts, with the same fields for each host; and
    /// status_classes, the numbers of answers with statuses 1xx to 5xx.
    #[arg(long, value_name = "FORMAT", value_parser = SummaryFormat::named)]
    pub(super) summary: Option<SummaryFormat>,
    /// Name everything that is left out of a listing
    ///
    /// Name everything that is left out of a listing on standard error, and not only the first 20 names of each page.
    #[arg(short, long)]
    pub(super) verbose: bool,
    /// Write what could not be read to a file, as JSON lines
    ///
    /// Write what could not be read to this file: one JSON object in each line, with the fields url, cause (as on
    /// standard error), class (as in the summary), from (the page with the link) and left_out (the names that a listing
    /// has and that are left out: all of them, up to 16 MiB for a page). The file is made even if everything is read.
    /// After an interruption, it also has what was not reached, so that a search with --starts-from goes on; with
    /// --state, what waits in the file of the state is only there.
    #[arg(long, value_name = "FILE")]
    pub(super) unread: Option<PathBuf>,
    /// Write a page with a tree of sizes
    ///
    /// Write a page to a file at the end: a tree of directories and files with bars for their sizes, and the URLs that
    /// could not be read, with causes. The page needs no other file.
    #[arg(long, num_args = 2, value_names = ["html", "FILE"])]
    pub(super) report: Vec<OsString>,
    /// Failures after which a URL is requested again [default: all]
    ///
    /// The failures after which a URL is requested again, separated by commas: timeout (also status 408), dns, connect,
    /// tls, proxy, broken (the connection was lost), incomplete (the body ended too early), throttled (429 and 503),
    /// 5xx (other 5xx statuses), 410; or all, or none. A failure that cannot pass is final in any case: a name that
    /// does not exist, a certificate that is not trusted, or an answer that is not HTTP.
    #[arg(long, value_name = "LIST", value_parser = classes)]
    pub(super) retry_on: Option<BTreeSet<RetryClass>>,
    #[command(flatten)]
    pub(super) crawl: CrawlOptions,
}

/// The words of expressions that begin with a dash.
pub(crate) fn words() -> Vec<&'static str> {
    let rows = HELP.lines().filter(|line| line.starts_with("  -"));
    let names = rows.filter_map(|row| row.trim_start().split("  ").next());
    let names = names.flat_map(|names| names.split([',', ' ']));
    names.filter(|name| name.starts_with('-')).collect()
}

/// One line for each word of an expression.
fn overview() -> String {
    let rows = HELP.lines().take_while(|line| *line != "Times:");
    let rows = rows.filter(|line| !line.starts_with(DETAILS));
    rows.collect::<Vec<_>>().join("\n")
}

const LINKS: &[(&str, Follow)] = &[("listing", Follow::Listings), ("page", Follow::Pages)];

/// What the words of expressions mean, exit statuses and examples.
const HELP: &str = include_str!("help.txt");
/// What the lines about a word begin with, but for the first one.
const DETAILS: &str = "        ";
