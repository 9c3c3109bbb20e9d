//! Crawls of scripted hosts in virtual time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;

use super::probes::MOST_PARTIAL;
use super::*;
use crate::found::{Kind, Saved};
use crate::link::Link;
use crate::visitor::{LinkVerdict, Visitor};
use crawl::failure::FailureScope;
use crawl::work::Body;

mod kept;
mod regression;

/// How the scripted host answers a request.
#[derive(Clone)]
enum Answer {
    /// An nginx page with these hrefs.
    Page(Vec<String>),
    /// A page of an unknown server, exactly as given.
    Html(&'static str, BodyEnd),
    /// A page exactly as given.
    Text(String),
    Status(u16),
    /// Status and `Retry-After`.
    Later(u16, &'static str),
    Redirect(u16, &'static str),
    Fail(FailureScope),
    /// A page with this next page in `Link`, and this href.
    Linked(&'static str, &'static str),
    /// A page of a bucket with these elements.
    Bucket(String),
    /// Status 200 with this content type.
    Typed(&'static str),
}

/// A policy without robots.txt, which has its own tests.
fn plain() -> Policy {
    let mut policy = Policy::default();
    policy.host.robots = false;
    // Pauses of known length.
    policy.host.retry.jitter = 0.0;
    policy
}

fn page(hrefs: &[&str]) -> Answer {
    Answer::Page(hrefs.iter().map(|&href| href.to_owned()).collect())
}

fn nginx(hrefs: &[String]) -> String {
    let mut body = "<html><h1>Index of /</h1><hr><pre><a href=\"../\">../</a>\r\n".to_owned();
    for href in hrefs {
        body.push_str(&format!("<a href=\"{href}\">some text..&gt;</a>\r\n"));
    }
    body + "</pre><hr></body>\r\n</html>\r\n"
}

/// An nginx page with times and sizes.
fn timed(hrefs: &[&str]) -> Answer {
    let row = |href: &&str| format!("<a href=\"{href}\">{href}</a>  06-Nov-1994 10:49     3\r\n");
    let rows: String = hrefs.iter().map(row).collect();
    let body = nginx(&[]).replace("</pre>", &(rows + "</pre>"));
    Answer::Text(body)
}

/// The results of a crawl.
#[derive(Debug, Default)]
struct Outcome {
    found: Vec<(String, Kind, u32)>,
    unread: Vec<(String, String)>,
    /// Milliseconds since the start, method, target.
    log: Vec<(u64, FetchKind, String)>,
    counts: Counts,
    judge: Option<Judge>,
    /// Links are followed.
    follows: bool,
}

/// Decides about a finding like an expression.
type Judge = fn(&Found<'_>) -> Verdict;

impl Outcome {
    fn urls(&self) -> Vec<&str> {
        let mut urls: Vec<&str> = self.found.iter().map(|(url, ..)| url.as_str()).collect();
        urls.sort_unstable();
        urls
    }

    /// The paths of the findings.
    fn paths(&self) -> String {
        let urls = self.urls();
        let paths = urls.iter().map(|url| &url["http://h:8080".len()..]);
        paths.collect::<Vec<_>>().join(" ")
    }

    fn targets(&self) -> Vec<&str> {
        self.log
            .iter()
            .map(|(_, _, target)| target.as_str())
            .collect()
    }

    fn times(&self, wanted: &str) -> Vec<u64> {
        let of = self.log.iter().filter(|(_, _, target)| target == wanted);
        of.map(|&(at, ..)| at).collect()
    }
}

impl Visitor for Outcome {
    fn found(&mut self, found: &Found<'_>, _: &mut Memo) -> Verdict {
        let verdict = self.judge.map_or(Verdict::Go, |judge| judge(found));
        let found = (found.url.to_owned(), found.kind, found.depth);
        self.found.push(found);
        verdict
    }

    fn unread(&mut self, unread: Unread<'_>) {
        let unread = (unread.url.to_owned(), unread.cause.to_string());
        self.unread.push(unread);
    }

    fn link(&mut self, _: &Link) -> LinkVerdict {
        match self.follows {
            true => LinkVerdict::Follow,
            false => LinkVerdict::Outside,
        }
    }

    fn downloaded(&mut self, _: Saved<'_>) {}

    fn not_downloaded(&mut self, _: &str, _: &Cause) {}
}

/// A crawl with at most `slots` requests in flight; `pick` chooses which of them is answered next.
struct Crawl<'a> {
    starts: &'a [&'a str],
    policy: Policy,
    slots: usize,
    pick: Box<dyn FnMut(usize) -> usize + 'a>,
    judge: Option<Judge>,
}

impl<'a> Crawl<'a> {
    fn of(starts: &'a [&'a str]) -> Self {
        Self {
            starts,
            policy: plain(),
            slots: 1,
            pick: Box::new(|_| 0),
            judge: None,
        }
    }

    /// `answer` gets the milliseconds since the start, the method and the target. Every answer takes 1 ms.
    fn run(mut self, mut answer: impl FnMut(u64, FetchKind, &str) -> Answer) -> Outcome {
        let origin = Url::parse("http://h:8080/ignored/").expect("valid");
        let follows = self.policy.follow == Follow::Pages;
        let mut crawl = HostCrawl::new(&origin, self.policy);
        for start in self.starts {
            crawl.add_start(start);
        }
        let epoch = Instant::now();
        let mut now = epoch;
        let mut outcome = Outcome {
            judge: self.judge,
            follows,
            ..Outcome::default()
        };
        let mut under_way: Vec<(RequestId, FetchKind, String)> = Vec::new();
        while !crawl.is_done() {
            while under_way.len() < self.slots
                && let Some(fetch) = crawl.poll_request(now)
            {
                let at = (now - epoch).as_millis() as u64;
                outcome.log.push((at, fetch.kind, fetch.target.to_owned()));
                under_way.push((fetch.id, fetch.kind, fetch.target.to_owned()));
            }
            if under_way.is_empty() {
                let due = crawl.poll_timeout(now).expect("something to wait for");
                assert!(due > now, "a wake-up in the past would spin");
                now = due;
                continue;
            }
            let picked = (self.pick)(under_way.len());
            let (id, kind, target) = under_way.remove(picked);
            let given = answer((now - epoch).as_millis() as u64, kind, &target);
            now += Duration::from_millis(1);
            give(&mut crawl, now, id, given, &mut outcome);
        }
        assert!(crawl.poll_request(now).is_none());
        outcome.counts = crawl.counts();
        assert_eq!(outcome.counts.directories, outcome.counts.directories_done);
        assert_eq!(outcome.counts.requests, outcome.log.len() as u64);
        assert_eq!(outcome.counts.unread, outcome.unread.len() as u64);
        outcome
    }
}

fn give(crawl: &mut HostCrawl, now: Instant, id: RequestId, answer: Answer, outcome: &mut Outcome) {
    let body;
    let mut reply = Reply {
        status: 200,
        content_type: Some(b"text/html; charset=utf-8"),
        ..Reply::default()
    };
    match answer {
        Answer::Page(hrefs) => {
            body = nginx(&hrefs);
            reply.body = body.as_bytes();
        }
        Answer::Linked(next, href) => {
            body = nginx(&[href.to_owned()]);
            reply.body = body.as_bytes();
            reply.next = Some(next.as_bytes());
        }
        Answer::Html(text, end) => {
            reply.body = text.as_bytes();
            reply.end = end;
        }
        Answer::Text(text) => {
            body = text;
            reply.body = body.as_bytes();
        }
        Answer::Bucket(elements) => {
            body =
                format!("<ListBucketResult><Delimiter>/</Delimiter>{elements}</ListBucketResult>");
            reply.content_type = Some(b"application/xml");
            reply.body = body.as_bytes();
        }
        Answer::Status(status) => reply.status = status,
        Answer::Later(status, wait) => {
            reply.status = status;
            reply.retry_after = Some(wait.as_bytes());
            reply.date = Some(b"Sun, 06 Nov 1994 08:49:37 GMT");
        }
        Answer::Redirect(status, to) => {
            reply.status = status;
            reply.location = Some(to.as_bytes());
        }
        Answer::Typed(content_type) => reply.content_type = Some(content_type.as_bytes()),
        Answer::Fail(scope) => {
            let cause = Cause::Transfer("connection reset".into());
            return crawl.handle_failure(
                &mut Turn::new(now, outcome),
                id,
                Failure { cause, scope },
            );
        }
    }
    crawl.handle_reply(&mut Turn::new(now, outcome), id, &reply);
}

#[test]
fn retry_after_pauses_the_whole_host_and_is_never_cut() {
    for (value, pause) in [
        ("7", 7_000),
        // Not shorter than without `Retry-After`.
        ("0", 500),
        ("Sun, 06 Nov 1994 08:51:37 GMT", 120_000),
        ("soon", 500),
        ("", 500),
    ] {
        let mut is_busy = true;
        let outcome = Crawl::of(&["/"]).run(|_, _, target| match target {
            "/" => page(&["a/", "b/"]),
            "/b/" if std::mem::take(&mut is_busy) => Answer::Later(429, value),
            _ => page(&[]),
        });
        assert_eq!(outcome.unread, [], "{value}");
        // The first request is sent at 1 ms and answered at 2 ms; then nothing is sent until the pause ends.
        assert_eq!(outcome.times("/a/"), [2 + pause], "{value}");
        assert_eq!(outcome.times("/b/"), [1, 502 + pause], "{value}");
    }
}

/// The trap: listings wait for requests in flight for ever.
#[test]
fn a_host_is_given_up_with_any_number_of_requests_under_way() {
    let names: Vec<String> = (0..5000).map(|i| format!("f{i}")).collect();
    let mut crawl = Crawl::of(&["/"]);
    crawl.policy.host.retry.attempts = std::num::NonZeroU32::MIN;
    crawl.slots = names.len();
    // The expression is undecided about each file.
    crawl.judge = Some(|found| match found.kind {
        Kind::File if !found.asked => Verdict::Head,
        _ => Verdict::Go,
    });
    let outcome = crawl.run(|_, _, target| match target {
        "/" => Answer::Page(names.clone()),
        _ => Answer::Fail(FailureScope::Host),
    });
    assert!(outcome.log.len() < names.len(), "some have to wait");
    assert_eq!(outcome.unread.len(), names.len());
}

/// The trap: if every URL fails once, all tasks wait in memory, and further ones come back from disk.
#[test]
fn what_waits_to_be_asked_for_again_is_bounded() {
    let names: Vec<String> = (0..30_000).map(|i| format!("d{i}/")).collect();
    let mut failed = BTreeSet::new();
    let (mut waiting, mut most) = (0usize, 0);
    let mut crawl = Crawl::of(&["/"]);
    let retry = &mut crawl.policy.host.retry;
    retry.first_pause = Duration::from_secs(60);
    let outcome = crawl.run(|_, _, target| {
        if target == "/" {
            return Answer::Page(names.clone());
        }
        match failed.insert(target.to_owned()) {
            true => {
                waiting += 1;
                most = most.max(waiting);
                Answer::Fail(FailureScope::Request)
            }
            false => {
                waiting -= 1;
                page(&[])
            }
        }
    });
    assert_eq!(most, MOST_POSTPONED);
    assert_eq!((outcome.unread.len(), outcome.found.len()), (0, 30_001));
}

/// A name that does not exist, or a certificate that is not valid, ends the search of a host only before its first reply.
#[test]
fn a_host_that_has_replied_counts_as_away_when_it_cannot_be_used() {
    let mut failures = 3;
    let outcome = Crawl::of(&["/"]).run(|_, _, target| match target {
        "/" => page(&["a/"]),
        _ if failures > 0 => {
            failures -= 1;
            Answer::Fail(FailureScope::HostFinal)
        }
        _ => page(&["x"]),
    });
    assert_eq!((outcome.urls().len(), outcome.unread), (3, vec![]));
}

/// The trap: any status but 200 drops a subtree without a message.
#[test]
fn every_url_that_cannot_be_read_is_named_with_its_cause() {
    let check = |answer: Answer, cause: &str| {
        let mut crawl = Crawl::of(&["/pub/"]);
        crawl.slots = 2;
        let outcome = crawl.run(|_, _, target| match target {
            "/pub/" => page(&["d/", "f"]),
            _ => answer.clone(),
        });
        let expected = ("http://h:8080/pub/d/".to_owned(), cause.to_owned());
        assert_eq!(outcome.unread, [expected]);
        assert_eq!(outcome.urls().len(), 3, "what was known is still reported");
    };
    for status in [403, 404, 410, 204, 206, 304, 599] {
        check(
            Answer::Status(status),
            &format!("the server answered {status}"),
        );
    }
    use FailureScope::{Final, Host, HostFinal, Request};
    for scope in [Final, Request, Host, HostFinal] {
        check(Answer::Fail(scope), "connection reset");
    }
    for (to, shown) in [
        ("/login.html", "http://h:8080/login.html"),
        ("/", "http://h:8080/"),
        ("/pub/x/?dir=3", "http://h:8080/pub/x/?dir=3"),
        ("https://h:8080/pub/d/", "https://h:8080/pub/d/"),
        ("http://other/pub/d/", "http://other/pub/d/"),
    ] {
        let cause = format!("redirects to {shown}, which is not a directory below the start");
        check(Answer::Redirect(301, to), &cause);
    }
    let cause = "not a directory listing: its content type is application/json";
    check(Answer::Typed("application/json"), cause);
    check(Answer::Redirect(308, "/pub/%64/"), "redirects to itself");
    check(
        Answer::Redirect(308, "http://["),
        "redirects without a usable Location",
    );
}

/// The trap: an incomplete listing is taken for a complete one.
#[test]
fn a_cut_listing_is_retried_and_then_an_error() {
    let cut = "<html><h1>Index of /d/</h1><hr><pre><a href=\"../\">../</a>\r\n<a href=\"x\">x</a>";
    let unknown = "<a href=\"../\">up</a><a href=x>x</a>";
    let no_end = "a page of nginx without </html>, </list> or ]";
    let closed = "the connection closed before its end";
    for (html, end, missing) in [
        (cut, BodyEnd::Framed, Some(no_end)),
        (cut, BodyEnd::Closed, Some(no_end)),
        (unknown, BodyEnd::Closed, Some(closed)),
        // The page of an unknown server is complete if its framing is, even without end tags.
        (unknown, BodyEnd::Framed, None),
    ] {
        let outcome = Crawl::of(&["/"]).run(|_, _, target| match target {
            "/" => page(&["d/"]),
            _ => Answer::Html(html, end),
        });
        let Some(missing) = missing else {
            assert_eq!(outcome.paths(), "/ /d/ /d/x");
            continue;
        };
        assert_eq!(outcome.paths(), "/ /d/");
        assert_eq!(outcome.times("/d/").len(), 10);
        let cause = format!("the listing was cut short: {missing}");
        assert_eq!(outcome.unread, [("http://h:8080/d/".to_owned(), cause)]);
    }
}

/// A `Link` to another place is not followed, and is named.
#[test]
fn further_pages_are_read_by_their_link() {
    let outcome = Crawl::of(&["/"]).run(|_, _, target| match target {
        "/" => Answer::Linked("?page=2", "a"),
        "/?page=2" => Answer::Linked("/?page=3", "b"),
        "/?page=3" => Answer::Linked("/?page=2", "d/"),
        "/d/" => Answer::Linked("http://h:8080/e/?page=2", "x"),
        other => panic!("{other} was asked for"),
    });
    assert_eq!(outcome.urls().len(), 5);
    let named = "1 link left out, which lead elsewhere: http://h:8080/e/?page=2";
    assert_eq!(outcome.unread.len(), 1);
    let (url, cause) = &outcome.unread[0];
    assert_eq!((&**url, &*cause.to_string()), ("http://h:8080/d/", named));
}

/// What a server repeats is not found again, and what it goes on to without an end is not asked for without an end.
#[test]
fn a_listing_that_goes_on_and_brings_nothing_is_incomplete() {
    let key = "<Contents><Key>a</Key></Contents>";
    let token = |token: &str| format!("<NextContinuationToken>{token}</NextContinuationToken>");
    let linked = "<h1>Index of /</h1><a href=a>a</a><a rel=next href='?page=№'>next</a>";
    // `№` is the number of the page.
    for (name, page, found, requests) in [
        ("no token", String::new(), 1, 1),
        ("the same token", key.to_owned() + &token("7"), 2, 2),
        ("the last key is the marker", key.to_owned(), 2, 2),
        ("empty pages", token("№"), 1, 101),
        ("one page under other names", linked.to_owned(), 2, 2),
    ] {
        let mut number = 0;
        let outcome = Crawl::of(&["/"]).run(|_, kind, target| {
            if kind != FetchKind::List {
                return Answer::Status(200);
            }
            assert!(target.starts_with("/?") || target == "/", "{target}");
            number += 1;
            let page = page.replace('№', &number.to_string());
            match page.starts_with("<h1>") {
                true => Answer::Text(page),
                false => Answer::Bucket(format!("<IsTruncated> TRUE </IsTruncated>{page}")),
            }
        });
        assert_eq!((outcome.urls().len(), number), (found, requests), "{name}");
        let [(_, cause)] = &outcome.unread[..] else {
            panic!("{name}: {:?}", outcome.unread);
        };
        assert!(
            cause.starts_with("the listing is incomplete"),
            "{name}: {cause}"
        );
    }
}

#[test]
fn depth_limits_what_is_read_not_what_is_seen() {
    for (max, found, directories, requests) in [(0, 1, 1, 1), (1, 3, 2, 1), (2, 5, 3, 2)] {
        let mut crawl = Crawl::of(&["/"]);
        crawl.policy.max_depth = Some(max);
        let outcome = crawl.run(|_, _, _| page(&["d/", "f"]));
        assert_eq!(
            (outcome.found.len(), outcome.log.len()),
            (found, requests),
            "-maxdepth {max}"
        );
        let counts = outcome.counts;
        assert_eq!(counts.directories, directories, "-maxdepth {max}");
        assert_eq!(counts.directories_done, directories);
    }
}

#[test]
fn loops_of_links_end_and_are_reported() {
    let outcome = Crawl::of(&["/"]).run(|_, _, _| page(&["self/", "f"]));
    assert_eq!(outcome.unread.len(), 1);
    assert!(outcome.unread[0].1.contains("loop"));
    assert_eq!(outcome.log.len(), 1 + 8);

    // Two loops that cross.
    let mut crawl = Crawl::of(&["/"]);
    crawl.policy.limits.repeats = 2;
    let outcome = crawl.run(|_, _, _| page(&["up/", "self/"]));
    assert!(outcome.log.len() < 40, "{}", outcome.log.len());
    let mut unread = outcome.unread.iter();
    assert!(unread.all(|(_, cause)| cause.contains("loop")));
}

/// The directories of a tree of shards look alike: what is further down is different.
#[test]
fn shards_that_look_alike_are_no_loop() {
    for levels in [2, 3] {
        let outcome = Crawl::of(&["/"]).run(|_, _, target| {
            let depth = target.matches('/').count() - 1;
            let shards: &[&str] = if depth < levels {
                &["0/", "1/", "2/", "3/"]
            } else {
                &[]
            };
            timed(&[shards, &["file"]].concat())
        });
        assert_eq!(outcome.unread, []);
        let directories: usize = (0..=levels).map(|level| 4usize.pow(level as u32)).sum();
        assert_eq!(outcome.counts.files, directories as u64);
        assert_eq!(outcome.counts.directories_done, directories as u64);
        // No name was followed more than once for each listing that repeats.
        let requests = outcome.log.len();
        assert!(requests < directories + 4 * levels * 4, "{requests}");
    }
}

#[test]
fn an_endless_tree_ends_at_the_limits() {
    let mut crawl = Crawl::of(&["/"]);
    crawl.policy.limits.depth = 5;
    let mut n = 0;
    let outcome = crawl.run(|_, _, _| {
        n += 1;
        Answer::Page(vec![format!("d{n}/")])
    });
    assert_eq!(outcome.log.len(), 6);
    assert!(outcome.unread[0].1.contains("deeper than 5"));

    let mut crawl = Crawl::of(&["/"]);
    crawl.policy.limits.directories = 10;
    let mut n = 0;
    let outcome = crawl.run(|_, _, _| {
        n += 3;
        Answer::Page(vec![format!("d{n}/"), format!("e{n}/"), format!("f{n}/")])
    });
    assert_eq!(outcome.log.len(), 10);
    assert_eq!(outcome.unread.len(), 10 * 3 - 9);
}

#[test]
fn redirects_of_directories_are_followed_inside_the_start() {
    for status in [301, 302, 303, 307, 308] {
        let outcome = Crawl::of(&["/pub/"]).run(|_, _, target| match target {
            "/pub/" => page(&["latest/", "v3/"]),
            "/pub/latest/" => Answer::Redirect(status, "/pub/v3/"),
            "/pub/v3/" => page(&["x"]),
            other => panic!("{other} was asked for"),
        });
        assert_eq!(outcome.paths(), "/pub/ /pub/latest/ /pub/v3/ /pub/v3/x");
        assert_eq!((outcome.log.len(), outcome.unread), (3, vec![]));
    }
}

#[test]
fn a_start_without_a_slash_may_be_a_directory_or_a_file() {
    let outcome = Crawl::of(&["/pub"]).run(|_, kind, target| match (kind, target) {
        (FetchKind::Probe, "/pub") => Answer::Redirect(301, "http://h:8080/pub/"),
        (FetchKind::List, "/pub/") => page(&["x"]),
        other => panic!("{other:?} was asked for"),
    });
    assert_eq!(outcome.paths(), "/pub/ /pub/x");
    let outcome = Crawl::of(&["/f.iso"]).run(|_, _, _| Answer::Status(200));
    let file = ("http://h:8080/f.iso".to_owned(), Kind::File, 0);
    assert_eq!(outcome.found, [file]);
    let outcome = Crawl::of(&["/gone"]).run(|_, _, _| Answer::Status(404));
    assert_eq!(outcome.unread.len(), 1);
}

#[test]
fn starts_that_overlap_report_everything_once() {
    let outcome = Crawl::of(&["/a/", "/a/b/", "/a/", "/%61/b/"]).run(|_, _, target| match target {
        "/a/" => page(&["b/", "x"]),
        "/a/b/" => page(&["c/"]),
        "/a/b/c/" => page(&["y"]),
        other => panic!("{other} was asked for"),
    });
    assert_eq!(outcome.log.len(), 3);
    assert_eq!(outcome.paths(), "/a/ /a/b/ /a/b/c/ /a/b/c/y /a/x");
    let mut depths = outcome.found;
    depths.sort_by(|a, b| a.0.cmp(&b.0));
    let depths = depths.into_iter().map(|(_, _, depth)| depth);
    assert_eq!(depths.collect::<Vec<_>>(), [0, 0, 1, 2, 1]);
}

/// The trap: a host that went away, that asks for long waits or that refuses everything gets requests for each of its
/// directories, each of which has retries and a patience of its own.
#[test]
fn a_host_is_given_up_with_every_url_named() {
    let names: Vec<String> = (0..1000).map(|i| format!("d{i}/")).collect();
    let refused = "the server answered 429, and only 429 and 503 until the patience of 900 s ended"
        .to_owned();
    let away = "connection reset".to_owned();
    let long =
        "the server answered 503 and asks to wait 3600 s, which ends after the patience of 900 s";
    let patience = 13 * 60_000..=15 * 60_000;
    let later = Answer::Later(503, "3600");
    let reset = Answer::Fail(FailureScope::Host);
    for (slots, answer, cause, requests, last) in [
        (1, later, long.to_owned(), 4, 3_500..=4_000),
        (8, reset, away, 80, 15_500..=17_000),
        (8, Answer::Status(429), refused, 10_000, patience),
    ] {
        let mut crawl = Crawl::of(&["/"]);
        crawl.slots = slots;
        let outcome = crawl.run(|_, _, target| match target {
            "/" => Answer::Page(names.clone()),
            _ => answer.clone(),
        });
        assert!(outcome.log.len() <= 1 + requests, "{}", outcome.log.len());
        let at = outcome.log.last().expect("requests").0;
        assert!(last.contains(&at), "{at} ms");
        assert_eq!(outcome.unread.len(), 1000);
        assert!(outcome.unread.iter().all(|(_, named)| *named == cause));
    }
    // One answer shows that the host goes on.
    let mut answered = 0;
    let outcome = Crawl::of(&["/"]).run(|at, _, target| match target {
        "/" => Answer::Page(names.clone()),
        _ if at > 600_000 && answered == 0 => {
            answered = at;
            page(&[])
        }
        _ => Answer::Status(429),
    });
    let last = outcome.log.last().expect("requests").0;
    let late = answered + 13 * 60_000..=answered + 16 * 60_000;
    assert!(late.contains(&last), "{last} ms");
    assert_eq!(outcome.unread.len(), 999);
}

/// A single URL that is always refused does not pause the host for ever, if others are answered.
#[test]
fn one_url_without_time_keeps_nobody_waiting_for_long() {
    let lively: Vec<String> = (0..90).map(|n| format!("live{n}/")).collect();
    let mut crawl = Crawl::of(&["/"]);
    crawl.policy.host.min_delay = Duration::from_secs(1);
    let outcome = crawl.run(|_, _, target| match target {
        "/" => Answer::Page([&lively[..], &["dead/".to_owned()]].concat()),
        "/dead/" => Answer::Status(503),
        _ => page(&["x"]),
    });
    let times = outcome.times("/dead/");
    assert_eq!(times.len(), 15, "{times:?}");
    assert_eq!(outcome.unread.len(), 1, "{:?}", outcome.unread);
    // Nor when all other URLs are done.
    let outcome = Crawl::of(&["/"]).run(|_, _, target| match target {
        "/" => page(&["dead/", "x"]),
        _ => Answer::Status(503),
    });
    let times = outcome.times("/dead/");
    assert!(times[times.len() - 1] < 60_000, "{times:?}");
    assert_eq!(outcome.unread.len(), 1, "{:?}", outcome.unread);
}

#[test]
fn robots_txt_is_not_one_of_the_urls_that_are_left() {
    let now = Instant::now();
    let mut crawl = HostCrawl::new(&Url::parse("http://h/").expect("valid"), Policy::default());
    crawl.add_start("/pub/");
    let asked = crawl.poll_request(now).map(|fetch| fetch.kind);
    assert_eq!(
        (asked, crawl.standing(now).left),
        (Some(FetchKind::Robots), 1)
    );
}

#[test]
fn robots_txt_comes_first_and_is_obeyed() {
    const ROBOTS: &str =
        "User-agent: courser\nDisallow: /private\nDisallow: /pub/b/\nCrawl-delay: 2\n";
    let crawl = |robots: Answer| {
        let crawl = Crawl {
            policy: Policy::default(),
            slots: 8,
            ..Crawl::of(&["/pub/", "/private/"])
        };
        crawl.run(|_, kind, target| match (kind, target) {
            (FetchKind::Robots, _) => robots.clone(),
            (_, "/pub/") => page(&["a/", "b/", "x"]),
            _ => page(&["y"]),
        })
    };
    let obeyed = crawl(Answer::Html(ROBOTS, BodyEnd::Framed));
    assert_eq!(obeyed.targets(), ["/robots.txt", "/pub/", "/pub/a/"]);
    let why = "not read: robots.txt disallows it";
    let unread = ["http://h:8080/private/", "http://h:8080/pub/b/"];
    assert_eq!(obeyed.unread, unread.map(|url| (url.into(), why.into())));
    // The file is reported, and its directory was read.
    assert!(obeyed.urls().contains(&"http://h:8080/pub/b/"));
    let at: Vec<u64> = obeyed.log.iter().map(|(at, ..)| *at).collect();
    // Nothing else is sent before the reply.
    assert!(at[1] >= 1 && at[2] - at[1] >= 2000, "{at:?}");
    // A redirect to itself is no robots.txt.
    for (robots, requests, unread) in [
        (Answer::Status(404), 5, 0),
        (Answer::Redirect(301, "/robots.txt"), 5, 0),
        (Answer::Status(500), 10, 2),
    ] {
        let outcome = crawl(robots);
        assert_eq!(outcome.targets()[0], "/robots.txt");
        let made = (outcome.log.len(), outcome.unread.len());
        assert_eq!(made, (requests, unread));
    }
}

#[test]
fn a_large_robots_txt_is_cut() {
    let origin = Url::parse("http://h/").expect("valid");
    let (mut crawl, now) = (HostCrawl::new(&origin, Policy::default()), Instant::now());
    crawl.add_start("/");
    let mut outcome = Outcome::default();
    let id = crawl.poll_request(now).expect("robots.txt").id;
    let mut file = "User-agent: *\nDisallow: /secret/\n".to_owned();
    file += &"# nothing\n".repeat(50 * 1024);
    let reply = Reply {
        status: 200,
        ..Reply::default()
    };
    let wanted = crawl.handle_head(&mut Turn::new(now, &mut outcome), id, &reply);
    assert_eq!(wanted, Body::Wanted);
    let cut = format!("{file}Disallow: /\n");
    let mut parts = cut.as_bytes().chunks(10_000);
    let mut give = |part| crawl.handle_data(&mut Turn::new(now, &mut outcome), id, part);
    assert!(parts.any(|part| give(part) == Body::Unwanted));
    assert!(crawl.is_allowed("/public/") && !crawl.is_allowed("/secret/x"));
    assert_eq!(crawl.poll_request(now).expect("the start").target, "/");
}

#[test]
fn undecided_names_are_probed_unless_their_page_marks_directories() {
    // The marks of one page say nothing about other pages, in whatever order they are read.
    let outcome = Crawl::of(&["/"]).run(|_, kind, target| match (kind, target) {
        (FetchKind::List, "/") => Answer::Html("<a href=a/>a</a><a href=b/>b</a>", BodyEnd::Framed),
        (FetchKind::List, "/a/") => {
            Answer::Html("<a href=x/>x</a><a href=y>y</a>", BodyEnd::Framed)
        }
        (FetchKind::List, "/b/") => {
            Answer::Html("<a href=../>up</a><a href=sub>s</a>", BodyEnd::Framed)
        }
        (FetchKind::Probe, "/b/sub") => Answer::Redirect(301, "/b/sub/"),
        (FetchKind::List, "/b/sub/") => Answer::Html("<a href=deep/>deep/</a>", BodyEnd::Framed),
        (FetchKind::List, _) => Answer::Html("<h1>Index of /", BodyEnd::Framed),
        other => panic!("{other:?} was asked for"),
    });
    assert_eq!(outcome.urls().len(), 7);
}

/// A server behind a proxy adds the `/` to the name that it knows.
#[test]
fn a_redirect_that_adds_a_slash_says_directory() {
    let list = |body| Answer::Html(body, BodyEnd::Framed);
    for (to, found) in [
        ("/a/s/", "/a/ /a/s/ /a/s/x/"),
        ("https://h/a/s/", "/a/ /a/s/ /a/s/x/"),
        ("http://backend/a/s/", "/a/ /a/s/ /a/s/x/"),
        ("http://backend/mirror/a/s/", "/a/ /a/s/ /a/s/x/"),
        ("/real/s/", "/a/ /a/s/ /a/s/x/"),
        ("/a//s//", "/a/ /a/s/ /a/s/x/"),
        ("https://cdn.example/x/s/", "/a/ /a/s"),
    ] {
        let outcome = Crawl::of(&["/a/"]).run(|_, kind, target| match (kind, target) {
            (FetchKind::List, "/a/") => list("<a href=../>up</a><a href=s>s</a>"),
            (FetchKind::Probe, "/a/s") => Answer::Redirect(301, to),
            (FetchKind::List, "/a/s/") => list("<a href=../>up</a><a href=x/>x/</a>"),
            (FetchKind::List, _) => list("<h1>Index of /a/s/x/</h1>"),
            other => panic!("{other:?} was asked for"),
        });
        assert_eq!(outcome.paths(), found, "{to}");
    }
}

proptest! {
    /// With any order of replies, any concurrency and any temporary failures: the same results, each once, and one
    /// successful request per directory.
    #[test]
    fn results_do_not_depend_on_the_order_of_replies(
        // The index of each node picks its parent among the directories before it.
        nodes in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 0..60),
        slots in 1usize..20,
        picks in prop::collection::vec(any::<prop::sample::Index>(), 1..40),
        failures in prop::collection::vec(0u8..12, 1..40),
    ) {
        let mut directories = vec!["/".to_owned()];
        let mut pages = BTreeMap::from([("/".to_owned(), Vec::new())]);
        let mut expected = BTreeSet::from(["http://h:8080/".to_owned()]);
        for (i, (parent, is_directory)) in nodes.iter().enumerate() {
            let parent = parent.get(&directories).clone();
            let name = format!("n{i}{}", if *is_directory { "/" } else { "" });
            let path = parent.clone() + &name;
            expected.insert(format!("http://h:8080{path}"));
            pages.entry(parent).or_default().push(name);
            if *is_directory {
                pages.insert(path.clone(), Vec::new());
                directories.push(path);
            }
        }
        let mut turn = 0;
        let mut crawl = Crawl::of(&["/"]);
        crawl.slots = slots;
        crawl.pick = Box::new(|n| { turn += 1; picks[turn % picks.len()].index(n) });
        let mut attempts: BTreeMap<String, usize> = BTreeMap::new();
        let mut reads: BTreeMap<String, usize> = BTreeMap::new();
        let outcome = crawl.run(|_, _, target| {
            let attempt = attempts.entry(target.to_owned()).or_default();
            *attempt += 1;
            let failure = failures[(target.len() + *attempt) % failures.len()];
            match failure {
                0 if *attempt < 4 => Answer::Fail(FailureScope::Request),
                1 if *attempt < 4 => Answer::Status(503),
                2 if *attempt < 4 => Answer::Html("<p>cut", BodyEnd::Closed),
                3 if *attempt < 4 => Answer::Status(500),
                // A server that waited too long for a request closes the connection: the request may be sent again.
                4 if *attempt < 4 => Answer::Status(408),
                _ => {
                    *reads.entry(target.to_owned()).or_default() += 1;
                    Answer::Page(pages[target].clone())
                }
            }
        });
        let found: BTreeSet<String> = outcome.found.iter().map(|(url, ..)| url.clone()).collect();
        prop_assert_eq!(outcome.found.len(), found.len());
        prop_assert_eq!(found, expected);
        prop_assert!(outcome.unread.is_empty());
        prop_assert!(reads.values().all(|&n| n == 1));
        prop_assert_eq!(reads.len(), pages.len());
    }
}
