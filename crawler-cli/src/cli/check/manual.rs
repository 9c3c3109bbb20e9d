//! The texts about `crawler-cli check`.

use super::args::Args;
use crate::cli::manual::{Manual, TIMES};

pub(crate) fn manual() -> Manual {
    Manual {
        usage: "INPUT... [OPTION...]",
        description: DESCRIPTION,
        notes: &[TIMES, CLASSES],
        statuses: STATUSES,
        examples: EXAMPLES,
        see_also: &["find", "curl"],
        takes_files: true,
        ..Manual::of::<Args>("check", ABOUT)
    }
}

const ABOUT: &str = "check whether links are good, in files and on web sites";

const DESCRIPTION: &str = "\
Each INPUT is a URL (the page and its links are checked), a file or a folder (the links of its documents are checked: Markdown, HTML and sitemaps, by the names .md, .html, .htm, .xml and their like, each also compressed by gzip), or - for a document on standard input: HTML if it begins with <, else Markdown. With --urls, a list of URLs is checked.
Each URL is checked once, and reported for every place that refers to it. Links with other schemes, such as mailto, are not checked.
A URL is asked by HEAD first; a bad answer is confirmed by GET. Relative links in files are looked up on the disk. Hosts are asked politely: few connections, a limited rate, robots.txt and Retry-After obeyed.";

const CLASSES: (&str, &str) = (
    "Verdicts",
    "\
Each verdict has a class, and a cause if it is not ok.
ok: the URL is good, perhaps after redirects.
neg: the server or the name servers say that it does not exist (status_404, status_410, dns_nxdomain).
net: the server could not be reached, or failed (refused, unreachable, reset, connect_timeout, first_byte_timeout, timeout, tls_expired, tls_not_yet_valid, tls_name, tls_untrusted, tls, dns_servfail, truncated, protocol, redirect_loop, too_many_redirects, status_5xx with the number).
unk: the answer says nothing about the resource (auth, blocked, throttled, robots, private_address, status_4xx).
soft: a link to a file, or the link itself, is wrong (fragment_missing, file_missing, invalid_url).
void: taken while a guard was on, because the network of this machine seemed to fail; says nothing.",
);

const STATUSES: &[(&str, &str)] = &[
    ("0", "All is good."),
    (
        "1",
        "A URL is neg, net or soft; or redirects or could not be judged, and --redirects fail or --blocked fail was given. Or an input could not be read, or a report could not be written.",
    ),
    (
        "2",
        "Wrong usage or configuration; or a report file cannot be created, or the file of --state is damaged, in use or cannot be opened.",
    ),
    (
        "4",
        "The results are not trustworthy, because a guard was on. This outranks 1.",
    ),
    (
        "130",
        "Interrupted. With --state, the same command goes on.",
    ),
];

const EXAMPLES: &[(&str, &str)] = &[
    (
        "crawler-cli check docs README.md",
        "The links of a project's documents",
    ),
    (
        "crawler-cli check https://www.example.com/ --recursive",
        "All links of a web site",
    ),
    (
        "crawler-cli find http://127.0.0.1:8080/pub/ | crawler-cli check --urls - --json",
        "Whether everything that a listing shows is there",
    ),
    (
        "crawler-cli check . --report text - --report junit links.xml",
        "In a CI job",
    ),
    (
        "crawler-cli check docs --state links.db --fail-after 3d --max-age 1d",
        "Fail only for links that have been broken for three days",
    ),
];
