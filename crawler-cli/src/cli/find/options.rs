//! The option table of `crawler-cli find`.
//!
//! find(1) has long options with one dash, and words such as `(` whose meaning depends on their place. The usual
//! parsers of command lines know neither.

use std::fs::File;
use std::io::{self, Read as _};
use std::num::NonZeroU64;
use std::path::Path;

use super::args::Args;
use super::expression_words::{ACTIONS, DEPTHS, OPERATORS, TESTS};
use crate::cli::crawl_options::CrawlRows;
use crate::cli::help_rows::HelpRows;
use crate::cli::identity_options::IdentityRows;
use crate::cli::option::{Opt, Section, Set, any, file, one_of};
use crate::cli::values::{number, on_or_off};
use crate::find::scope::Pattern;
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
        options: &[
            CrawlRows::CONNECTIONS,
            HOSTS,
            CrawlRows::TLS,
            CrawlRows::PROXIES,
        ],
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
        options: &[OTHER, HelpRows::ALL],
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
    .long("Which links are followed. listing: pages are listings of directories, and only the entries directly below a directory are found. page: pages are web pages; all links are followed that stay below the start, or that --span-hosts or --domains allows; embedded files (images, scripts) are found too. The target of a link is found when it has answered: a page after a GET, anything else after a HEAD. Embedded files are not requested, unless a test needs to know more. -prune stops at the links of a page. The depth is that of the path, not the number of links. A URL that cannot be read is reported with the page that links to it.")
    .default("listing"),
    Opt::text(&["--starts-from"], &[file("FILE|-")], starts_from)
        .short("start from the URLs in a file; - is standard input")
        .long("Start from the URLs in this file, one in each line; - is standard input. If the file contains a NUL, the URLs end with NULs. Empty lines are ignored."),
    Opt::text(&["--retry-unread"], &[file("FILE")], |args: &mut Args, value| {
        args.retry_unread(Path::new(value)).map_err(|error| error.0)
    })
    .short("start from the URLs in a file of --unread")
    .long("Start from the URLs in this file, which --unread of an earlier search has written, to read what is missing. A URL is a start like any other: its depth is 0, and what is below it is found. An empty file is a search without starts, and finds nothing."),
    Opt::text(&["--sitemap"], &[any("URL")], |args: &mut Args, value| {
        args.sitemap(value).map_err(|error| error.0)
    })
    .short("start from the URLs of a sitemap too")
    .long("Start also from the URLs in this sitemap that are in or below the directory of the sitemap. It is XML or plain text, perhaps compressed by gzip, or an index of sitemaps (sitemaps.org). The URLs are found with the times that the sitemap gives; a URL that ends in / is read as a directory. With --links page, all are read as pages. The option may be repeated, and a search needs no other start."),
    Opt::flag(&["--dav"], |args: &mut Args| {
        args.find(Find::dav);
        args.identify("--dav");
    })
        .short("list directories by WebDAV's PROPFIND")
        .long("List directories by WebDAV's PROPFIND with Depth: 1 (RFC 4918) instead of reading their pages. PROPFIND shows exact sizes and times. A server without WebDAV answers 405 or 501."),
    Opt::text(&["--loops"], &[one_of("on|off", &["on", "off"])], |args: &mut Args, value| {
        if !on_or_off(value)? {
            args.find(Find::no_loops);
        }
        args.identify_option("--loops", value);
        Ok(())
    })
        .short("whether loops of links are recognised")
        .long("Whether loops of links, which HTTP does not show, are recognised and reported instead of being read: a directory that lists what one above it lists, if the listings further down repeat as well for 8 levels; and a path in which one name occurs too often (--max-repeats). With off, only --max-depth-seen ends a loop.")
        .default("on"),
    Opt::text(&["--max-repeats"], &[any("N")], |args: &mut Args, value| {
        let most = number(value)?;
        args.find(|find| find.repeats(most));
        args.identify_option("--max-repeats", value);
        Ok(())
    })
        .short("how often one name may occur in a path")
        .long("How often one name may occur in the path of a directory below its start. A directory beyond that is taken for a loop of links, and reported.")
        .default("8"),
    Opt::text(&["--max-depth-seen"], &[any("N")], |args: &mut Args, value| {
        let most = number(value)?;
        args.find(|find| find.depth_seen(most));
        args.identify_option("--max-depth-seen", value);
        Ok(())
    })
        .short("how deep directories can be before they are left out")
        .long("How deep below its start a directory can be. Deeper ones are reported as unread, and the exit status is 1, unlike with -maxdepth, which asks for a shallow search.")
        .default("100"),
    Opt::text(&["--max-pages"], &[any("N")], |args: &mut Args, value| {
        let most = number(value)?;
        args.find(|find| find.linked_pages(most));
        args.identify_option("--max-pages", value);
        Ok(())
    })
        .short("with --links page: how many pages of a host are read")
        .long("With --links page, how many pages of one host links may lead to. Pages without end, such as those of a calendar, end there: the first further page is reported as unread, and the exit status is 1.")
        .default("100000"),
    Opt::text(&["--max-link-depth"], &[any("N")], |args: &mut Args, value| {
        let most = number(value)?;
        args.find(|find| find.link_depth(most));
        args.identify_option("--max-link-depth", value);
        Ok(())
    })
        .short("with --links page: links from a start to a page at most")
        .long("With --links page, how many links may lead from a start to a page; 0 reads the starts only. The pages of a host are then requested in the order of their distance, the nearest first, so that the distance is that of the shortest way within the host, and the files of a page that is read are found. A page on another host has the distance of the first link that leads there. With --state and more than 100,000 waiting pages, the order is not kept. The first page of a host that is too far away is reported as unread, and the exit status is 1. Default: no limit."),
    Opt::text(&["--nofollow"], &[one_of("on|off", &["on", "off"])], |args: &mut Args, value| {
        let obeys = on_or_off(value)?;
        args.find(|find| find.nofollow(obeys));
        args.identify_option("--nofollow", value);
        Ok(())
    })
        .short("whether links marked nofollow are left out")
        .long("With --links page, whether links are left out that have rel=nofollow, and all links of pages with <meta name=robots content=nofollow>. Images and other parts of a page are found in any case.")
        .default("on"),
    Opt::flag(&["--accept-pages"], |args: &mut Args| {
        args.find(Find::accept_pages);
        args.identify("--accept-pages");
    })
        .short("take links of any page for entries")
        .long("Take the links of each page that lead to its children for entries, even if nothing shows that the page lists a directory. Without this option, a login form, the challenge of a bot filter, an index.html or another page that is no listing is reported on standard error, and its directory counts as unread."),
    Opt::text(&["--include"], &[any("GLOB")], |args: &mut Args, value| {
        args.find(|find| find.include(Pattern::glob(value)));
        args.identify_option("--include", value);
        Ok(())
    })
    .short("only files whose URL fits the pattern")
    .long("Find only files whose URL fits this shell pattern. The pattern is for the whole URL as it is printed, and * also matches /. Directories are still read. The option may be repeated and mixed with --include-regex; then one of the patterns must fit."),
    Opt::text(&["--include-regex"], &[any("RE")], |args: &mut Args, value| {
        let pattern = Pattern::regex(value).map_err(|error| error.to_string())?;
        args.find(|find| find.include(pattern));
        args.identify_option("--include-regex", value);
        Ok(())
    })
    .short("like --include, with a regular expression")
    .long("Like --include, with a regular expression in the syntax of Rust's regex crate. It must fit a part of the URL."),
    Opt::text(&["--exclude"], &[any("GLOB")], |args: &mut Args, value| {
        args.find(|find| find.exclude(Pattern::glob(value)));
        args.identify_option("--exclude", value);
        Ok(())
    })
    .short("no files and directories whose URL fits the pattern")
    .long("Leave out files and directories whose URL fits this shell pattern. The pattern is for the whole URL as it is printed, and * also matches /. The URL of a directory ends in /. Nothing below a directory that is left out is requested. The option may be repeated."),
    Opt::text(&["--exclude-regex"], &[any("RE")], |args: &mut Args, value| {
        let pattern = Pattern::regex(value).map_err(|error| error.to_string())?;
        args.find(|find| find.exclude(pattern));
        args.identify_option("--exclude-regex", value);
        Ok(())
    })
    .short("like --exclude, with a regular expression")
    .long("Like --exclude, with a regular expression in the syntax of Rust's regex crate. It must fit a part of the URL."),
];

const HOSTS: &[Opt<Args>] = &[
    Opt::flag(&["--span-hosts"], |args: &mut Args| {
        args.find(Find::span_hosts);
        args.identify("--span-hosts");
    })
        .short("follow links and redirects to other hosts")
        .long("Follow links of pages (--links page), locations of sitemaps, and redirects to other hosts: redirects of directories and, as mirror networks have them, of files to download. The hosts are all, or those of --domains. The robots.txt of each host is read, and -maxdepth counts from its root. A redirect of a file to download is followed under the limits of the host that redirects, whatever the robots.txt of the other host says. Without this option, the search stays below the starts; https instead of http on the same host, at the usual ports, counts as the same host. At most 10,000 hosts are searched."),
    Opt::text(&["--domains"], &[any("LIST")], |args: &mut Args, value| {
        let mut domains = value.split(',').filter(|domain| !domain.is_empty()).peekable();
        domains.peek().ok_or("no name of a host")?;
        for domain in domains {
            let find = args.find.clone().domain(domain);
            args.find = find.map_err(|error| format!("{domain}: {error}"))?;
        }
        args.identify_option("--domains", value);
        Ok(())
    })
    .short("follow links and redirects to these hosts")
    .long("Like --span-hosts, but only to these hosts and to all hosts whose names end in a dot and one of these names. Names are separated by commas."),
];

const OUTPUT: &[Opt<Args>] = &[
    Opt::flag(&["-0", "--null"], |args: &mut Args| args.format(Format::Nul))
        .short("end each result with a NUL instead of a newline")
        .long("End each result with a NUL instead of a newline, for xargs -0."),
    Opt::flag(&["--json"], |args: &mut Args| args.format(Format::Json))
        .short("one JSON object in each line")
        .long("Print one JSON object in each line, with these fields: url; type (f or d); path; name; depth; parent (the URL of the directory that lists the entry; null for a start); size (null if it is not known exactly); size_lo and size_hi (the smallest and largest possible size); mtime (RFC 3339; null if the time zone of the listing is not known); mtime_lo and mtime_hi; mtime_precision (second, minute, day or unsure); listing (the software whose listing shows the entry; null for a start); status (of the server's answer about the entry; null if only a listing shows it); attempts (requests until the answer that shows the entry); seconds (the time of the last of these requests). URLs that could not be read are reported on standard error only."),
    Opt::flag(&["--csv"], |args: &mut Args| args.format(Format::Csv))
        .short("CSV with a header")
        .long("Print CSV (RFC 4180) with a header and the fields of --json in the same order; a null is empty. Control characters in names are escaped, and an apostrophe is put before text that a spreadsheet would read as a formula."),
    Opt::flag(&["--tree"], |args: &mut Args| args.format(Format::Tree))
        .short("a picture of the hierarchy, at the end")
        .long("Print a picture of the hierarchy in the style of tree(1), with the sizes of files and the counts. It is printed at the end, and all results are kept in memory until then."),
    Opt::flag(&["--sort"], |args: &mut Args| args.output.sort = true)
        .short("print the results in order, at the end")
        .long("Print the results in the order of their URLs; the entries of a directory come directly after it. The output of -printf, -ls and -print0 is sorted with them, but not that of -exec. Everything is printed at the end, and kept in memory until then. After 1 GiB, the collected results are printed in order and the rest as it comes."),
    Opt::text(&["--download"], &[file("DIR")], |args: &mut Args, value| {
        args.folder.set(value)?;
        args.identify_option("--download", value);
        Ok(())
    })
    .short("download the files that are found")
    .long("Download the files that are found into this directory. Each file has the same path as below the directory of the start; with several starts, and for files from elsewhere, the path begins with the host. A file gets its name when it is complete, and the time that the server gives. An incomplete download is continued, also by a later run, if the server says that the file is still the same. A file is complete when it has the length that the answer announces; if the listing shows another size, a warning says so. A file that exists already and has the size and time of the listing is skipped without a request. Any other existing file is compared with that of the server by HEAD; a file that differs is an error and is not changed. A full disk ends the run."),
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
    .short("live view: auto, always, never or line")
    .long("Whether to show a live view of the search. auto: some lines at the bottom of the terminal, if standard error is a terminal. line: one line there. always: the same as auto, and also one line in each second if standard error is not a terminal. never: no live view. Commands of -exec write to the terminal too; with them, and with -fprint /dev/stderr, there is a live view only for always.")
    .default("auto"),
    Opt::text(&["--summary"], &[one_of("FORMAT", SummaryFormat::NAMES)], |args: &mut Args, value| {
        args.output.summary = SummaryFormat::named(value)?;
        Ok(())
    })
    .short("at the end: text, json, json:FILE or none")
    .long("The summary at the end. text: one line on standard error. json: an object as the last line of standard output. json:FILE: the same object in a file. none: no summary.\nThe object has one field, summary, with these fields: complete (whether everything was read); ending (finished, quit or stopped); matched, undecided and actions_failed; downloads (null without --download; else wanted, saved, resumed, kept, failed, and bytes written); files, directories and directories_done; requests, retries, unread, unread_by_class and failed_attempts_by_class; unread_urls, what this run could not read: objects with the fields of --unread, and left_out_more, how many names left_out has no room for; unread_urls_more, how many objects there is no room for, beyond 4 MiB; bytes; seconds, and parts of it: seconds_waiting_for_hosts, seconds_held_back (by rates, delays and back-off) and seconds_computing; requests_per_second; latency_seconds (p50, p95, p99, max); connections_opened and connections_reused; hosts, with the same fields for each host; and status_classes, the numbers of answers with statuses 1xx to 5xx.")
    .default("text"),
    Opt::flag(&["-v", "--verbose"], |args: &mut Args| args.output.verbose = true)
        .short("name everything that is left out of a listing")
        .long("Name everything that is left out of a listing on standard error, and not only the first 20 names of each page."),
    Opt::text(&["--unread"], &[file("FILE")], |args: &mut Args, value| {
        args.output.unread = Some(value.into());
        Ok(())
    })
    .short("write what could not be read to a file, as JSON lines")
    .long("Write what could not be read to this file: one JSON object in each line, with the fields url, cause (as on standard error), class (as in the summary), from (the page with the link) and left_out (the names that a listing has and that are left out: all of them, up to 16 MiB for a page). The file is made even if everything is read. See --retry-unread."),
    Opt::new(&["--report"], &[one_of("text|html", &["text", "html"]), file("FILE")], Set::Texts(|args: &mut Args, value, next| {
        match value {
            "text" => args.output.text_report = true,
            "html" => args.output.html_report = Some(next().ok_or("needs a file, too")?.into()),
            _ => return Err("neither text nor html".to_owned()),
        }
        Ok(())
    }))
    .short("statistics at the end, or a page with charts")
    .long("A report at the end about the results and the costs. text writes to standard error: requests and retries, percentiles of latency, use of connections, downloads, where the time went, failures by class, and the slowest hosts. html writes a page to a file; the page needs no other file and shows sizes by directory, latency and answers over time, statuses by host, and the URLs that could not be read, with causes. Both may be given."),
];

const OTHER: &[Opt<Args>] = &[
    Opt::new(&["--compat"], &[one_of("wfind", &["wfind"])], Set::Rest(|args: &mut Args, value, flags| {
        if value != "wfind" {
            return Err("only wfind is known".to_owned());
        }
        if args.has_start() {
            return Err("the URL must come after this option".to_owned());
        }
        for flag in &flags {
            args.identify(flag);
        }
        args.wfind_flags = Some(flags);
        Ok(())
    }))
    .short("read the rest as flags of wfind")
    .long("Read all arguments after this option as the URL and the flags of wfind, with their meaning there. Options such as --json go before it. --compat wfind --help lists the flags."),
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
    let end = if list.contains(&0) { 0 } else { b'\n' };
    for (number, line) in list.split(|&b| b == end).enumerate() {
        let line = line.trim_ascii();
        if line.is_empty() {
            continue;
        }
        let url = str::from_utf8(line).map_err(|_| format!("line {}: not UTF-8", number + 1))?;
        args.start(url)
            .map_err(|error| format!("line {}: {}", number + 1, error.0))?;
    }
    Ok(())
}

/// Bytes of a list of starts.
const LONGEST_LIST: u64 = 64 << 20;
