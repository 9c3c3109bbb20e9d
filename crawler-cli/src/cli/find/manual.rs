//! The texts about `crawler-cli find`.

use super::args::Args;
use crate::cli::manual::{Manual, TIMES};

pub(crate) fn manual() -> Manual {
    Manual {
        usage: "URL... [EXPRESSION] [OPTION...]",
        description: DESCRIPTION,
        notes: &[TIMES],
        statuses: STATUSES,
        examples: EXAMPLES,
        see_also: &["find", "wget", "curl"],
        ..Manual::of::<Args>("find", ABOUT)
    }
}

const ABOUT: &str =
    "find files and directories in web directory listings, as find(1) does in file systems";

const DESCRIPTION: &str = "\
Each URL, http or https, is a directory on a web server that shows a listing of it: Apache httpd, nginx, lighttpd, Caddy, IIS, Python's http.server, S3 and similar stores, or another server whose page links to the entries of the directory. A page that shows no sign of a listing is reported as unread (--accept-pages). If a URL does not end in /, the server is asked whether it is a directory. Each directory is requested once. Nothing above a URL is requested, except robots.txt, and the place that a URL itself redirects to. All URLs are searched at the same time, and results are printed as they come, in no particular order.
The expression is that of find(1): tests, actions and operators, evaluated from left to right for each file and directory. Words of find(1) that make no sense on a web server, such as -perm, -user and -delete, are refused with the reason. Words of the expression, options and URLs may come in any order.
Results go to standard output. Each URL that could not be read is reported on standard error with the cause, and makes the exit status 1. Standard error also shows progress, if it is a terminal, and a summary at the end.";

const STATUSES: &[(&str, &str)] = &[
    ("0", "Everything was read."),
    (
        "1",
        "Something could not be read or downloaded, or an action failed; each case is reported on standard error. Or the results could not be written.",
    ),
    ("2", "Wrong usage."),
    (
        "130",
        "Interrupted. What was printed until then is correct.",
    ),
];

const EXAMPLES: &[(&str, &str)] = &[
    (
        "crawler-cli find http://127.0.0.1:8080/centos/ -name repomd.xml -type f",
        "All files with one name",
    ),
    (
        "crawler-cli find http://127.0.0.1:8080/pub/ -name '*.iso' -size +1G -mtime -30 -ls",
        "Large files that are new",
    ),
    (
        "crawler-cli find http://127.0.0.1:8080/pub/ \\( -name old -prune \\) -o -type f -print",
        "All files except those below directories with one name, which are not requested",
    ),
    (
        "crawler-cli find http://127.0.0.1:8080/pub/ -iname '*.iso' --json | jq .url",
        "Results for another program",
    ),
    (
        "crawler-cli find http://127.0.0.1:8080/pub/ -name '*.rpm' --download mirror --rate 20",
        "Download the files, with at most 20 requests in a second",
    ),
    (
        "crawler-cli find http://127.0.0.1:8080/pub/ --state search >> found.txt",
        "A long search, which the same command continues after Ctrl-C",
    ),
    (
        "crawler-cli find http://127.0.0.1:8080/pub/ --report html report.html",
        "An overview, as a page with charts",
    ),
];
