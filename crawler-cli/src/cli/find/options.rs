//! The option table of `crawler-cli find`.
//!
//! find(1) has long options with one dash, and words such as `(` whose meaning depends on their place. The usual
//! parsers of command lines know neither.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read as _};
use std::num::NonZeroU64;

use super::args::Args;
use super::expression_words::{ACTIONS, DEPTHS, OPERATORS, TESTS};
use crate::cli::crawl_options::CrawlRows;
use crate::cli::help_rows::HelpRows;
use crate::cli::identity_options::IdentityRows;
use crate::cli::option::{Opt, Section, Set, any, file, one_of};
use crate::cli::values::number;
use crate::find::{Find, Follow};
use crate::report::{Format, Progress, SummaryFormat};
use crate::values::bytes_as_curl;

pub(super) const TABLE: &[Section<Args>] = &[
    Section {
        heading: "Tests",
        options: &[TESTS],
    },
    Section {
        heading: "Operators, by precedence",
        options: &[OPERATORS],
    },
    Section {
        heading: "Actions",
        options: &[ACTIONS],
    },
    Section {
        heading: "What is searched",
        options: &[DEPTHS, SCOPE],
    },
    Section {
        heading: "Politeness and retries",
        options: &[
            CrawlRows::POLITENESS,
            CrawlRows::RETRIES,
            CrawlRows::RETRY_ON,
        ],
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
        heading: "Progress and reports",
        options: &[REPORT],
    },
    Section {
        heading: "Other options",
        options: &[HelpRows::ALL],
    },
];

const SCOPE: &[Opt<Args>] = &[
    Opt::text(&["--state"], &[file("FILE")], |args: &mut Args, value| {
        args.state = Some(value.into());
        Ok(())
    })
    .short("keep the search in a file, to go on after an interruption")
    .long("Keep the search in this file, an SQLite database, so that the same command continues it after Ctrl-C or a crash. Nothing is searched twice. If the results go to a file (with >>), no result is lost or written twice. Through a pipe, the results of the last moment may come twice; so may the results and commands of a directory that was being processed when -exec was interrupted. Beyond 100,000 waiting directories, the rest waits in the file only. The file is removed when the search is complete. It belongs to one search: the starts, the expression, --download and all options that decide what is found must stay the same. Results that are sorted at the end, and files of -fprint and similar actions, cannot be continued."),
    Opt::text(&["--links"], &[one_of("listing|page", &["listing", "page"])], |args: &mut Args, value| {
        let follow = match value {
            "listing" => Follow::Listings,
            "page" => Follow::Pages,
            _ => return Err("neither listing nor page".into()),
        };
        args.find(|find| find.follow(follow));
        args.folder.follow = follow;
        args.identify_option("--links", value);
        Ok(())
    })
    .short("follow listings of directories, or all links of pages")
    .long("Which links are followed. listing: pages are listings of directories, and only the entries directly below a directory are found. page: pages are web pages; all links are followed that stay below the start, but for those that their page marks nofollow; embedded files (images, scripts) are found too. The target of a link is found when it has answered: a page after a GET, anything else after a HEAD. Embedded files are not requested, unless a test needs to know more. -prune stops at the links of a page. The depth is that of the path, not the number of links. A URL that cannot be read is reported with the page that links to it.")
    .default("listing"),
    Opt::text(&["--starts-from"], &[file("FILE|-")], starts_from)
        .short("start from the URLs in a file; - is standard input")
        .long("Start from the URLs in this file, one in each line; - is standard input. If the file contains a NUL, the URLs end with NULs. Empty lines are ignored. A line may also be a JSON object with the field url, as --unread writes them, to read what is missing of an earlier search. A URL is a start like any other: its depth is 0, and what is below it is found. An empty file is a search without starts, and finds nothing."),
    Opt::text(&["--max-pages"], &[any("N")], |args: &mut Args, value| {
        let most = number(value)?;
        args.find(|find| find.linked_pages(most));
        args.identify_option("--max-pages", value);
        Ok(())
    })
        .short("with --links page: how many pages of a host are read")
        .long("With --links page, how many pages of one host links may lead to. Pages without end, such as those of a calendar, end there: the first further page is reported as unread, and the exit status is 1.")
        .default("100000"),
    Opt::flag(&["--accept-pages"], |args: &mut Args| {
        args.find(Find::accept_pages);
        args.identify("--accept-pages");
    })
        .short("take links of any page for entries")
        .long("Take the links of each page that lead to its children for entries, even if nothing shows that the page lists a directory. Without this option, a login form, the challenge of a bot filter, an index.html or another page that is no listing is reported on standard error, and its directory counts as unread."),
];

const OUTPUT: &[Opt<Args>] = &[
    Opt::flag(&["-0", "--null"], |args: &mut Args| args.format(Format::Nul))
        .short("end each result with a NUL instead of a newline")
        .long("End each result with a NUL instead of a newline, for xargs -0."),
    Opt::flag(&["--json"], |args: &mut Args| args.format(Format::Json))
        .short("one JSON object in each line")
        .long("Print one JSON object in each line, with these fields: url; type (f or d); path; name; depth; parent (the URL of the directory that lists the entry; null for a start); size (null if it is not known exactly); size_lo and size_hi (the smallest and largest possible size); mtime (RFC 3339; null if the time zone of the listing is not known); mtime_lo and mtime_hi; mtime_precision (second, minute, day or unsure); listing (the software whose listing shows the entry; null for a start); status (of the server's answer about the entry; null if only a listing shows it); attempts (requests until the answer that shows the entry); seconds (the time of the last of these requests). URLs that could not be read are reported on standard error only."),
    Opt::text(&["--download"], &[file("DIR")], |args: &mut Args, value| {
        args.folder.set(value)?;
        args.identify_option("--download", value);
        Ok(())
    })
    .short("download the files that are found")
    .long("Download the files that are found into this directory. Each file has the same path as below the directory of the start; with several starts, and for files from elsewhere, the path begins with the host. A file gets its name when it is complete, and the time that the server gives. An incomplete download is continued, also by a later run, if the server says that the file is still the same. A file is complete when it has the length that the answer announces; if the listing shows another size, a warning says so. A file that exists already and has the size and time of the listing is skipped without a request. Any other existing file is compared with the length and the time in the head of the server's answer; a file that differs is an error and is not changed. A full disk ends the run."),
    Opt::flag(&["--overwrite"], |args: &mut Args| args.find(Find::overwrite))
        .short("replace downloaded files that differ")
        .long("With --download, replace files that differ from those of the server."),
    Opt::text(&["--limit-rate"], &[any("SPEED")], |args: &mut Args, value| {
        args.folder.limit_rate = NonZeroU64::new(bytes_as_curl(value)?);
        Ok(())
    })
    .short("the most bytes a second of all transfers together")
    .long("With --download, how many bytes are received in a second at most, by all transfers together, whatever their hosts. As for curl, the number may have a unit: k, M, G, T or P, which are powers of 1024; 0 is no limit. The bytes of listings and of TLS count, too. --timeout holds as ever: with a low limit, a long listing can take longer."),
];

const REPORT: &[Opt<Args>] = &[
    Opt::text(&["--progress"], &[one_of("WHEN", Progress::NAMES)], |args: &mut Args, value| {
        args.output.progress = Progress::named(value)?;
        Ok(())
    })
    .short("progress line: auto, always or never")
    .long("Whether to show the progress of the search. auto: a line at the bottom of the terminal, if standard error is a terminal. always: the same as auto, and also a new line in each second if standard error is not a terminal. never: no progress. Commands of -exec write to the terminal too; with them, and with -fprint /dev/stderr, progress is shown only for always.")
    .default("auto"),
    Opt::text(&["--summary"], &[one_of("FORMAT", SummaryFormat::NAMES)], |args: &mut Args, value| {
        args.output.summary = SummaryFormat::named(value)?;
        Ok(())
    })
    .short("at the end: text, json, json:FILE or none")
    .long("The summary at the end. text: one line on standard error. json: an object as the last line of standard output. json:FILE: the same object in a file. none: no summary.\nThe object has one field, summary, with these fields: complete (whether everything was read); ending (finished, quit or stopped); matched, undecided and actions_failed; downloads (null without --download; else wanted, saved, resumed, kept, failed, and bytes written); files, directories and directories_done; requests, retries, unread, unread_by_class and failed_attempts_by_class; unread_urls, what this run could not read: objects with the fields of --unread, and left_out_more, how many names left_out has no room for; unread_urls_more, how many objects there is no room for, beyond 4 MiB; bytes; seconds, and parts of it: seconds_waiting_for_hosts, seconds_held_back (by rates, delays and back-off) and seconds_computing; requests_per_second; latency_seconds (mean, max); connections_opened and connections_reused; hosts, with the same fields for each host; and status_classes, the numbers of answers with statuses 1xx to 5xx.")
    .default("text"),
    Opt::flag(&["-v", "--verbose"], |args: &mut Args| args.output.verbose = true)
        .short("name everything that is left out of a listing")
        .long("Name everything that is left out of a listing on standard error, and not only the first 20 names of each page."),
    Opt::text(&["--unread"], &[file("FILE")], |args: &mut Args, value| {
        args.output.unread = Some(value.into());
        Ok(())
    })
    .short("write what could not be read to a file, as JSON lines")
    .long("Write what could not be read to this file: one JSON object in each line, with the fields url, cause (as on standard error), class (as in the summary), from (the page with the link) and left_out (the names that a listing has and that are left out: all of them, up to 16 MiB for a page). The file is made even if everything is read. After an interruption, it also has what was not reached, so that a search with --starts-from goes on; with --state, what waits in the file of the state is only there."),
    Opt::new(&["--report"], &[one_of("html", &["html"]), file("FILE")], Set::Texts(|args: &mut Args, value, next| {
        if value != "html" {
            return Err("only html is known".to_owned());
        }
        args.output.html_report = Some(next().ok_or("needs a file, too")?.into());
        Ok(())
    }))
    .short("write a page with a tree of sizes")
    .long("Write a page to a file at the end: a tree of directories and files with bars for their sizes, and the URLs that could not be read, with causes. The page needs no other file."),
];

/// `--starts-from`
fn starts_from(args: &mut Args, name: &str) -> Result<(), String> {
    let mut list = Vec::new();
    let read = match name {
        "-" => io::stdin()
            .lock()
            .take(LONGEST_LIST + 1)
            .read_to_end(&mut list),
        name => {
            File::open(name).and_then(|file| file.take(LONGEST_LIST + 1).read_to_end(&mut list))
        }
    };
    read.map_err(|error| error.to_string())?;
    if list.len() as u64 > LONGEST_LIST {
        return Err("too large".to_owned());
    }
    args.may_be_empty = true;
    let end = if list.contains(&0) { 0 } else { b'\n' };
    let mut seen = HashSet::new();
    for (number, line) in list.split(|&b| b == end).enumerate() {
        let line = line.trim_ascii();
        if line.is_empty() {
            continue;
        }
        let wrong = |why: &str| format!("line {}: {why}", number + 1);
        let text = str::from_utf8(line).map_err(|_| wrong("not UTF-8"))?;
        let url = match text.starts_with('{') {
            true => unread_url(text).ok_or_else(|| wrong("no object with a url"))?,
            false => text.to_owned(),
        };
        args.has_unread |= text.starts_with('{');
        // The same URL can have been unread for two reasons.
        if seen.insert(url.clone()) {
            args.start(&url).map_err(|error| wrong(&error.0))?;
        }
    }
    Ok(())
}

/// The URL in a line of `--unread`.
fn unread_url(line: &str) -> Option<String> {
    let line: serde_json::Value = serde_json::from_str(line).ok()?;
    Some(line["url"].as_str()?.to_owned())
}

/// Bytes of a list of starts.
const LONGEST_LIST: u64 = 64 << 20;
