//! Crawls of scripted hosts in virtual time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;

use super::probes::MOST_PARTIAL;
use super::*;
use crate::crawl::failure::FailureScope;
use crate::crawl::work::Body;
use crate::find::found::{Kind, Saved};
use crate::find::link::Link;
use crate::find::visitor::{LinkVerdict, Visitor};
use crate::listing::range::TimeRange;
use crate::listing::{PageLimits, Shape};

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

/// Decides about findings with a closure, and counts unread URLs.
struct Looking<F> {
    look: F,
    unread: usize,
}

impl<F: FnMut(&Found<'_>) -> Verdict> Looking<F> {
    fn by(look: F) -> Self {
        Self { look, unread: 0 }
    }
}

impl<F: FnMut(&Found<'_>) -> Verdict> Visitor for Looking<F> {
    fn found(&mut self, found: &Found<'_>, _: &mut Memo) -> Verdict {
        (self.look)(found)
    }

    fn unread(&mut self, _: Unread<'_>) {
        self.unread += 1;
    }

    fn link(&mut self, _: &Link) -> LinkVerdict {
        LinkVerdict::Follow
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
        let mut under_way: Vec<(FetchId, FetchKind, String)> = Vec::new();
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

fn give(crawl: &mut HostCrawl, now: Instant, id: FetchId, answer: Answer, outcome: &mut Outcome) {
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
fn names_and_paths_are_decoded_for_matching() {
    let origin = Url::parse("http://h/").expect("valid");
    let mut crawl = HostCrawl::new(&origin, plain());
    crawl.add_start("/");
    let now = Instant::now();
    let id = crawl.poll_request(now).expect("the start").id;
    let body = nginx(&["dir%20x/".into(), "50%25.bin".into()]);
    let reply = Reply {
        status: 200,
        body: body.as_bytes(),
        ..Reply::default()
    };
    let mut seen = Vec::new();
    let mut visitor = Looking::by(|found| {
        seen.push((found.path.to_vec(), found.name.to_vec(), found.listing));
        Verdict::Go
    });
    crawl.handle_reply(&mut Turn::new(now, &mut visitor), id, &reply);
    let expected: [(&[u8], &[u8], _); 3] = [
        (b"/", b"/", None),
        (b"/dir x", b"dir x", Some(Shape::Nginx)),
        (b"/50%.bin", b"50%.bin", Some(Shape::Nginx)),
    ];
    assert_eq!(seen, expected.map(|(p, n, l)| (p.to_vec(), n.to_vec(), l)));
}

/// The trap: a URL that never answers is requested again at once and for ever.
#[test]
fn attempts_back_off_and_end() {
    for failing in [
        Answer::Fail(FailureScope::Request),
        Answer::Status(500),
        Answer::Status(502),
    ] {
        let outcome = Crawl::of(&["/"]).run(|_, _, target| match target {
            "/" => page(&["dead/", "live/"]),
            "/live/" => page(&["x"]),
            _ => failing.clone(),
        });
        let times = outcome.times("/dead/");
        let gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(gaps[..4], [501, 1001, 2001, 2001]);
        assert_eq!(times.len(), 10);
        assert_eq!(outcome.unread.len(), 1);
        assert_eq!(outcome.unread[0].0, "http://h:8080/dead/");
        assert!(outcome.urls().contains(&"http://h:8080/live/x"));
        assert_eq!(outcome.counts.retries, 9);
    }
}

#[test]
fn retry_after_pauses_the_whole_host_and_is_never_cut() {
    for (value, pause) in [
        ("7", 7_000),
        // Not shorter than without `Retry-After`.
        ("0", 500),
        ("Sun, 06 Nov 1994 08:49:40 GMT", 3_000),
        ("Sun, 06 Nov 1994 08:00:00 GMT", 500),
        ("120", 120_000),
        ("Sun, 06 Nov 1994 08:51:37 GMT", 120_000),
        ("soon", 500),
        ("-1", 500),
        ("", 500),
    ] {
        let mut asked = 0;
        let outcome = Crawl::of(&["/"]).run(|_, _, target| match target {
            "/" => page(&["a/", "b/"]),
            "/b/" => {
                asked += 1;
                if asked == 1 {
                    Answer::Later(429, value)
                } else {
                    page(&[])
                }
            }
            _ => page(&[]),
        });
        assert_eq!(outcome.unread, [], "{value}");
        // The first request is sent at 1 ms and answered at 2 ms; then nothing is sent until the pause ends.
        assert_eq!(outcome.times("/a/"), [2 + pause], "{value}");
        assert_eq!(outcome.times("/b/"), [1, 502 + pause], "{value}");
    }
}

/// The trap: a host that asks for long waits gets a request for each of its directories.
#[test]
fn a_host_that_asks_all_for_long_waits_is_given_up_with_every_url_named() {
    let names: Vec<String> = (0..1000).map(|i| format!("d{i}/")).collect();
    let outcome = Crawl::of(&["/"]).run(|_, _, target| match target {
        "/" => Answer::Page(names.clone()),
        _ => Answer::Later(503, "3600"),
    });
    assert_eq!(outcome.log.len(), 1 + 4);
    assert_eq!(outcome.unread.len(), 1000);
    let is_named = |(_, cause): &(String, String)| cause.contains("asks to wait 3600 s");
    assert!(outcome.unread.iter().all(is_named));
}

/// The trap: a host that refuses requests gets as many again, until URLs are given up.
#[test]
fn a_host_that_asks_for_less_gets_less() {
    let names: Vec<String> = (0..500).map(|i| format!("d{i}/")).collect();
    // Three requests at a time are served; if there are more, all are refused.
    let under_way = std::cell::Cell::new(0);
    let mut crawl = Crawl::of(&["/"]);
    crawl.slots = 64;
    crawl.pick = Box::new(|n| {
        under_way.set(n);
        0
    });
    let mut last = 0;
    let outcome = crawl.run(|at, _, target| match target {
        "/" => Answer::Page(names.clone()),
        _ if under_way.get() > 3 => Answer::Status(503),
        _ => {
            last = at;
            page(&[])
        }
    });
    assert_eq!(outcome.unread, []);
    assert_eq!(outcome.counts.directories, 501);
    assert!(outcome.counts.retries < 150, "{}", outcome.counts.retries);
    assert!(last < 60_000, "{last}");
}

/// The trap: a host that went away gets requests for each of its directories, with all retries for each.
#[test]
fn a_host_that_stays_away_is_given_up_with_every_url_named() {
    let names: Vec<String> = (0..1000).map(|i| format!("d{i}/")).collect();
    for slots in [1, 8] {
        let mut crawl = Crawl::of(&["/"]);
        crawl.slots = slots;
        let outcome = crawl.run(|_, _, target| match target {
            "/" => Answer::Page(names.clone()),
            _ => Answer::Fail(FailureScope::Host),
        });
        assert_eq!(outcome.unread.len(), 1000);
        assert!(outcome.counts.requests <= 1 + 10 * slots as u64);
        assert!(
            outcome
                .log
                .last()
                .is_some_and(|&(at, ..)| (15_500..17_000).contains(&at))
        );
    }
}

/// The trap: listings wait for requests in flight for ever.
#[test]
fn a_host_is_given_up_with_any_number_of_requests_under_way() {
    let origin = Url::parse("http://h/").expect("valid");
    let mut policy = plain();
    policy.host.retry.attempts = std::num::NonZeroU32::MIN;
    let mut crawl = HostCrawl::new(&origin, policy);
    crawl.add_start("/");
    let now = Instant::now();
    let names: Vec<String> = (0..5000).map(|i| format!("f{i}")).collect();
    let body = nginx(&names);
    let reply = Reply {
        status: 200,
        body: body.as_bytes(),
        ..Reply::default()
    };
    // The expression is undecided about each file.
    let mut visitor = Looking::by(|found| match found.kind {
        Kind::File if !found.asked => Verdict::Head,
        _ => Verdict::Go,
    });
    let id = crawl.poll_request(now).expect("the start").id;
    crawl.handle_reply(&mut Turn::new(now, &mut visitor), id, &reply);
    let mut under_way = Vec::new();
    while let Some(fetch) = crawl.poll_request(now) {
        under_way.push(fetch.id);
    }
    assert!(under_way.len() < names.len(), "some have to wait");
    for id in under_way {
        let cause = Cause::Transfer("connection reset".into());
        let scope = FailureScope::Host;
        crawl.handle_failure(
            &mut Turn::new(now, &mut visitor),
            id,
            Failure { cause, scope },
        );
    }
    assert!(crawl.is_done());
    assert_eq!(visitor.unread, names.len());
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

/// The trap: seconds of pauses for a misspelt name, or for a certificate that stays invalid.
#[test]
fn a_host_that_cannot_be_used_at_all_is_given_up_at_once() {
    let outcome = Crawl::of(&["/a/", "/b/"]).run(|_, _, _| Answer::Fail(FailureScope::HostFinal));
    assert_eq!(outcome.counts.requests, 1);
    let urls: Vec<&str> = outcome.unread.iter().map(|(url, _)| url.as_str()).collect();
    assert_eq!(urls, ["http://h:8080/a/", "http://h:8080/b/"]);

    // A host that has replied counts as away instead.
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
    for (html, end) in [
        (cut, BodyEnd::Framed),
        (cut, BodyEnd::Closed),
        (
            "<ul><li><a href=\"../\">up</a><li><a href=x>x</a>",
            BodyEnd::Closed,
        ),
    ] {
        let outcome = Crawl::of(&["/"]).run(|_, _, target| match target {
            "/" => page(&["d/"]),
            _ => Answer::Html(html, end),
        });
        assert_eq!(outcome.urls(), ["http://h:8080/", "http://h:8080/d/"]);
        assert_eq!(outcome.times("/d/").len(), 10);
        assert_eq!(outcome.unread.len(), 1);
        assert!(
            outcome.unread[0].1.contains("cut short"),
            "{}",
            outcome.unread[0].1
        );
    }
    // The page of an unknown server is complete if its framing is, even without end tags.
    let outcome = Crawl::of(&["/"])
        .run(|_, _, _| Answer::Html("<a href=\"../\">up</a><a href=x>x</a>", BodyEnd::Framed));
    assert_eq!(outcome.urls(), ["http://h:8080/", "http://h:8080/x"]);
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
    let cut = "<IsTruncated> TRUE </IsTruncated>";
    let key = "<Contents><Key>a</Key></Contents>";
    let token = |token: usize| format!("<NextContinuationToken>{token}</NextContinuationToken>");
    type Answers<'a> = Box<dyn Fn(usize) -> Answer + 'a>;
    let answers: [(&str, Answers<'_>, usize, usize); 5] = [
        (
            "no token",
            Box::new(|_| Answer::Bucket(cut.to_owned())),
            1,
            1,
        ),
        (
            "the same token",
            Box::new(|_| Answer::Bucket(format!("{cut}{key}{}", token(7)))),
            2,
            2,
        ),
        (
            "the last key is the marker",
            Box::new(|_| Answer::Bucket(format!("{cut}{key}"))),
            2,
            2,
        ),
        (
            "empty pages",
            Box::new(|number| Answer::Bucket(format!("{cut}{}", token(number)))),
            1,
            101,
        ),
        (
            "the same page under other names",
            Box::new(|number| {
                let link = format!("<a rel=next href='?page={number}'>next</a>");
                Answer::Text(format!("<h1>Index of /</h1><a href=a>a</a>{link}"))
            }),
            2,
            2,
        ),
    ];
    for (name, answer, found, requests) in answers {
        let mut number = 0;
        let outcome = Crawl::of(&["/"]).run(|_, kind, target| {
            if kind != FetchKind::List {
                return Answer::Status(200);
            }
            assert!(target.starts_with("/?") || target == "/", "{target}");
            number += 1;
            answer(number)
        });
        assert_eq!((outcome.urls().len(), number), (found, requests), "{name}");
        assert_eq!(outcome.unread.len(), 1, "{name}");
        let cause = outcome.unread[0].1.to_string();
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
    assert!(
        outcome
            .unread
            .iter()
            .all(|(_, cause)| cause.contains("loop"))
    );
}

/// The directories of a tree of shards look alike: what is further down is different.
#[test]
fn shards_that_look_alike_are_no_loop() {
    let row = |name: &str| {
        format!("<a href=\"{name}\">{name}</a>                22-Nov-2026 02:50       1\r\n")
    };
    let listing = |names: &[&str]| {
        let rows: String = names.iter().map(|name| row(name)).collect();
        format!(
            "<html>\r\n<head><title>Index of /</title></head>\r\n<body>\r\n<h1>Index of /</h1><hr><pre>\
             <a href=\"../\">../</a>\r\n{rows}</pre><hr></body>\r\n</html>\r\n"
        )
    };
    let shards: &'static str = listing(&["0/", "1/", "2/", "3/", "file"]).leak();
    let last: &'static str = listing(&["file"]).leak();
    for levels in [2, 3] {
        let outcome = Crawl::of(&["/"]).run(|_, _, target| {
            let depth = target.matches('/').count() - 1;
            let page = if depth < levels { shards } else { last };
            Answer::Html(page, BodyEnd::Framed)
        });
        assert_eq!(outcome.unread, []);
        let directories: usize = (0..=levels).map(|level| 4usize.pow(level as u32)).sum();
        assert_eq!(outcome.counts.files, directories as u64);
        assert_eq!(outcome.counts.directories_done, directories as u64);
        // No name was followed more than once for each listing that repeats.
        assert!(
            outcome.log.len() < directories + 4 * levels * 4,
            "{}",
            outcome.log.len()
        );
    }
    // The same pages without an end are a loop.
    let outcome = Crawl::of(&["/"]).run(|_, _, _| Answer::Html(shards, BodyEnd::Framed));
    assert_eq!(outcome.counts.files, 1);
    assert!(
        outcome
            .unread
            .iter()
            .all(|(_, cause)| cause.contains("loop"))
    );
    assert_eq!(outcome.unread.len(), 4);
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

    let mut crawl = Crawl::of(&["/"]);
    crawl.policy.limits.page = PageLimits {
        links: 2,
        url_bytes: 30,
        ..PageLimits::default()
    };
    let outcome = crawl.run(|_, _, target| match target {
        "/" => page(&["d/"]),
        _ => page(&["a-name-that-is-too-long-to-be-fetched"]),
    });
    assert!(
        outcome.unread[0].1.starts_with("1 entry left out"),
        "{:?}",
        outcome.unread
    );
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
        assert_eq!(
            outcome.urls(),
            [
                "http://h:8080/pub/",
                "http://h:8080/pub/latest/",
                "http://h:8080/pub/v3/",
                "http://h:8080/pub/v3/x"
            ]
        );
        assert_eq!(outcome.log.len(), 3);
        assert_eq!(outcome.unread, []);
    }
    let mut n = 0;
    let outcome = Crawl::of(&["/"]).run(|_, _, _| {
        n += 1;
        Answer::Redirect(
            302,
            ["/a/", "/b/", "/c/", "/d/", "/e/", "/f/", "/g/"][n - 1],
        )
    });
    assert_eq!(outcome.unread[0].1, "more than 5 redirects in a row");
}

#[test]
fn a_start_without_a_slash_may_be_a_directory_or_a_file() {
    let outcome = Crawl::of(&["/pub"]).run(|_, kind, target| match (kind, target) {
        (FetchKind::Probe, "/pub") => Answer::Redirect(301, "http://h:8080/pub/"),
        (FetchKind::List, "/pub/") => page(&["x"]),
        other => panic!("{other:?} was asked for"),
    });
    assert_eq!(
        outcome.urls(),
        ["http://h:8080/pub/", "http://h:8080/pub/x"]
    );

    let outcome = Crawl::of(&["/f.iso"]).run(|_, _, _| Answer::Status(200));
    assert_eq!(
        outcome.found,
        [("http://h:8080/f.iso".to_owned(), Kind::File, 0)]
    );

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
    let mut depths: Vec<(&str, u32)> = outcome
        .found
        .iter()
        .map(|(url, _, depth)| (url.as_str(), *depth))
        .collect();
    depths.sort_unstable();
    assert_eq!(
        depths,
        [
            ("http://h:8080/a/", 0),
            ("http://h:8080/a/b/", 0),
            ("http://h:8080/a/b/c/", 1),
            ("http://h:8080/a/b/c/y", 2),
            ("http://h:8080/a/x", 1),
        ]
    );
}

/// A host without tasks gets no request, not even for robots.txt.
#[test]
fn a_crawl_that_is_done_asks_for_nothing() {
    let origin = Url::parse("ftp://h/").expect("valid");
    let mut crawl = HostCrawl::new(&origin, Policy::default());
    crawl.add_start("/");
    let now = Instant::now();
    let cause = Cause::Scheme("ftp".to_owned());
    crawl.abandon(&mut Turn::new(now, &mut Outcome::default()), &cause);
    assert_eq!(crawl.poll_request(now), None);
    assert!(crawl.is_done());
}

/// The trap: each of thousands of directories has a patience of its own, and the crawl of a host that refuses
/// everything takes days.
#[test]
fn a_host_that_refuses_everything_is_given_up_after_the_patience() {
    let names: Vec<String> = (0..1000).map(|i| format!("d{i}/")).collect();
    for (status, answer) in [(429, Answer::Status(429)), (503, Answer::Later(503, "20"))] {
        let mut crawl = Crawl::of(&["/"]);
        crawl.slots = 8;
        let outcome = crawl.run(|_, _, target| match target {
            "/" => Answer::Page(names.clone()),
            _ => answer.clone(),
        });
        let last = outcome.log.last().expect("requests").0;
        assert!((13 * 60_000..=15 * 60_000).contains(&last), "{last} ms");
        assert_eq!(outcome.unread.len(), 1000);
        let expected = format!(
            "the server answered {status}, and only 429 and 503 until the patience of 900 s ended"
        );
        assert!(outcome.unread.iter().all(|(_, cause)| *cause == expected));
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
    assert!(
        (answered + 13 * 60_000..=answered + 16 * 60_000).contains(&last),
        "{last} ms"
    );
    assert_eq!(outcome.unread.len(), 999);
}

/// A server that waited too long for a request closes the connection with 408, and the request may be sent again.
#[test]
fn a_request_that_came_too_late_is_repeated() {
    let mut left = 2;
    let outcome = Crawl::of(&["/"]).run(|_, _, target| match target {
        "/" => page(&["a/"]),
        _ if left > 0 => {
            left -= 1;
            Answer::Status(408)
        }
        _ => page(&["x"]),
    });
    assert_eq!(outcome.unread, []);
    assert_eq!(outcome.times("/a/"), [1, 502, 1503]);
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
fn robots_txt_comes_first_and_is_obeyed() {
    let crawl = |policy, robots: fn() -> Answer| {
        let crawl = Crawl {
            policy,
            slots: 8,
            ..Crawl::of(&["/pub/", "/private/"])
        };
        crawl.run(|_, kind, target| match (kind, target) {
            (FetchKind::Robots, _) => robots(),
            (_, "/pub/") => page(&["a/", "b/", "x"]),
            _ => page(&["y"]),
        })
    };
    let allowed = crawl(Policy::default(), || Answer::Status(404));
    assert_eq!(allowed.targets()[0], "/robots.txt");
    assert_eq!((allowed.log.len(), allowed.unread.len()), (5, 0));
    // Nothing else is sent before the reply.
    assert!(allowed.log[1].0 >= 1);

    let obeyed = crawl(Policy::default(), move || {
        Answer::Html(ROBOTS, BodyEnd::Framed)
    });
    const ROBOTS: &str =
        "User-agent: courser\nDisallow: /private\nDisallow: /pub/b/\nCrawl-delay: 2\n";
    assert_eq!(obeyed.targets(), ["/robots.txt", "/pub/", "/pub/a/"]);
    let why = "not read: robots.txt disallows it".to_owned();
    assert_eq!(
        obeyed.unread,
        [
            ("http://h:8080/private/".to_owned(), why.clone()),
            ("http://h:8080/pub/b/".to_owned(), why),
        ]
    );
    // The file is reported, and its directory was read.
    assert!(obeyed.urls().contains(&"http://h:8080/pub/b/"));
    let at: Vec<u64> = obeyed.log.iter().map(|(at, ..)| *at).collect();
    assert!(at[2] - at[1] >= 2000, "{at:?}");

    let unknown = crawl(Policy::default(), || Answer::Status(500));
    assert_eq!(unknown.log.len(), 10);
    assert_eq!(unknown.unread.len(), 2);
    let ignored = crawl(plain(), || panic!("it was asked for"));
    assert_eq!((ignored.log.len(), ignored.unread.len()), (4, 0));
    let moved = crawl(Policy::default(), || Answer::Redirect(301, "/robots.txt"));
    assert_eq!(
        moved.unread.len(),
        0,
        "a redirect to itself is no robots.txt"
    );
}

#[test]
fn a_large_robots_txt_is_cut() {
    let mut policy = plain();
    policy.host.robots = true;
    let origin = Url::parse("http://h/").expect("valid");
    let (mut crawl, now) = (HostCrawl::new(&origin, policy), Instant::now());
    crawl.add_start("/");
    let mut outcome = Outcome::default();
    let fetch = crawl.poll_request(now).expect("robots.txt");
    assert_eq!(fetch.kind, FetchKind::Robots);
    let id = fetch.id;
    let mut file = "User-agent: *\nDisallow: /secret/\n".to_owned();
    while file.len() < 500 * 1024 {
        file += "# nothing\n";
    }
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

/// What a listing leaves undecided is requested once, and one file shows the time zone of the listings.
#[test]
fn the_server_is_asked_about_what_its_listing_leaves_open() {
    let listed = "<html><h1>Index of /</h1><hr><pre><a href=\"../\">../</a>\r\n\
        <a href=\"a\">a</a>  06-Nov-1994 10:49     3\r\n\
        <a href=\"b\">b</a>  06-Nov-1994 10:49     3\r\n\
        <a href=\"c\">c</a>  06-Nov-1994 10:49     3\r\n\
        </pre><hr></body>\r\n</html>\r\n";
    let origin = Url::parse("http://h/").expect("valid");
    let mut crawl = HostCrawl::new(&origin, plain());
    crawl.add_start("/");
    let now = Instant::now();
    // The time of `-newermt '1994-11-06 09:00 UTC'`.
    const BOUND: i64 = 784_112_400;
    let mut seen: Vec<(String, bool, Option<TimeRange>)> = Vec::new();
    let mut visitor = Looking::by(|found| {
        if found.kind == Kind::Directory {
            return Verdict::Go;
        }
        match found.modified {
            Some(range) if !found.asked && range.lo <= BOUND && range.hi > BOUND => Verdict::Head,
            range => {
                seen.push((found.url.to_owned(), found.asked, range));
                Verdict::Go
            }
        }
    });
    let mut log = Vec::new();
    while let Some(fetch) = crawl.poll_request(now) {
        let (id, kind, target) = (fetch.id, fetch.kind, fetch.target.to_owned());
        let mut reply = Reply {
            status: 200,
            ..Reply::default()
        };
        match kind {
            FetchKind::List => reply.body = listed.as_bytes(),
            // The listing is two hours ahead of UTC.
            _ => {
                reply.content_length = Some(b"3");
                reply.last_modified = Some(b"Sun, 06 Nov 1994 08:49:37 GMT");
            }
        }
        log.push((kind, target));
        crawl.handle_reply(&mut Turn::new(now, &mut visitor), id, &reply);
    }
    assert!(crawl.is_done());
    assert_eq!(visitor.unread, 0);
    assert_eq!(
        log,
        [
            (FetchKind::List, "/".to_owned()),
            (FetchKind::Probe, "/a".to_owned())
        ]
    );
    let minute = TimeRange {
        lo: 784_111_740,
        hi: 784_111_799,
    };
    assert_eq!(
        seen,
        [
            (
                "http://h/a".to_owned(),
                true,
                Some(TimeRange::exact(784_111_777))
            ),
            ("http://h/b".to_owned(), false, Some(minute)),
            ("http://h/c".to_owned(), false, Some(minute)),
        ]
    );
}

#[test]
fn undecided_names_are_probed_unless_their_page_marks_directories() {
    let outcome = Crawl::of(&["/"]).run(|_, kind, target| match (kind, target) {
        (FetchKind::List, "/") => Answer::Html(
            "<a href=.>.</a><a href=sub>sub</a><a href=f>f</a><a href=broken>b</a>",
            BodyEnd::Framed,
        ),
        (FetchKind::Probe, "/sub") => Answer::Redirect(302, "/sub/"),
        (FetchKind::Probe, "/f") => Answer::Status(200),
        (FetchKind::Probe | FetchKind::First, "/broken") => Answer::Status(404),
        (FetchKind::List, "/sub/") => Answer::Html("<h1>Index of /sub/", BodyEnd::Framed),
        other => panic!("{other:?} was asked for"),
    });
    assert_eq!(
        outcome.urls(),
        ["http://h:8080/", "http://h:8080/f", "http://h:8080/sub/"]
    );
    assert_eq!(outcome.unread.len(), 1);

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
    for to in [
        "/a/s/",
        "https://h/a/s/",
        "http://backend/a/s/",
        "http://backend/mirror/a/s/",
        "/real/s/",
        "/a//s//",
    ] {
        let list = |body| Answer::Html(body, BodyEnd::Framed);
        let outcome = Crawl::of(&["/a/"]).run(|_, kind, target| match (kind, target) {
            (FetchKind::List, "/a/") => list("<a href=../>up</a><a href=s>s</a>"),
            (FetchKind::Probe, "/a/s") => Answer::Redirect(301, to),
            (FetchKind::List, "/a/s/") => list("<a href=../>up</a><a href=x/>x/</a>"),
            (FetchKind::List, _) => list("<h1>Index of /a/s/x/</h1>"),
            other => panic!("{other:?} was asked for"),
        });
        assert_eq!(outcome.urls().len(), 3, "{to}: {:?}", outcome.urls());
    }
    let outcome = Crawl::of(&["/a/"]).run(|_, kind, target| match (kind, target) {
        (FetchKind::List, "/a/") => {
            Answer::Html("<a href=../>up</a><a href=s>s</a>", BodyEnd::Framed)
        }
        (FetchKind::Probe, "/a/s") => Answer::Redirect(302, "https://cdn.example/x/s/"),
        other => panic!("{other:?} was asked for"),
    });
    assert_eq!(outcome.urls(), ["http://h:8080/a/", "http://h:8080/a/s"]);
}

#[test]
fn a_very_long_listing_is_read_to_its_end() {
    let names: Vec<String> = (0..50_000)
        .map(|i| format!("a-file-with-a-long-name-{i:08}.rpm"))
        .collect();
    let outcome = Crawl::of(&["/"]).run(|_, _, _| Answer::Page(names.clone()));
    assert_eq!(outcome.counts.files, 50_000);
}

/// A tree of up to some dozens of directories: the index of each node picks its parent among the nodes before it.
fn tree() -> impl Strategy<Value = Vec<(usize, bool)>> {
    prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 0..60).prop_map(|nodes| {
        let mut directories = vec![0];
        let mut tree = Vec::new();
        for (i, (parent, is_directory)) in nodes.into_iter().enumerate() {
            tree.push((*parent.get(&directories), is_directory));
            if is_directory {
                directories.push(i + 1);
            }
        }
        tree
    })
}

proptest! {
    /// With any order of replies, any concurrency and any temporary failures: the same results, each once, and one
    /// successful request per directory.
    #[test]
    fn results_do_not_depend_on_the_order_of_replies(
        tree in tree(),
        slots in 1usize..20,
        picks in prop::collection::vec(any::<prop::sample::Index>(), 1..40),
        failures in prop::collection::vec(0u8..12, 1..40),
    ) {
        let mut paths = vec!["/".to_owned()];
        let mut pages: BTreeMap<String, Vec<String>> = BTreeMap::from([("/".to_owned(), Vec::new())]);
        for (i, (parent, is_directory)) in tree.iter().enumerate() {
            let name = format!("n{i}{}", if *is_directory { "/" } else { "" });
            let path = format!("{}{name}", paths[*parent]);
            if let Some(page) = pages.get_mut(&paths[*parent]) {
                page.push(name);
            }
            if *is_directory {
                pages.insert(path.clone(), Vec::new());
            }
            paths.push(path);
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
                _ => {
                    *reads.entry(target.to_owned()).or_default() += 1;
                    Answer::Page(pages[target].clone())
                }
            }
        });
        let expected: BTreeSet<String> = paths.iter().map(|path| format!("http://h:8080{path}")).collect();
        let found: BTreeSet<String> = outcome.found.iter().map(|(url, ..)| url.clone()).collect();
        prop_assert_eq!(outcome.found.len(), found.len());
        prop_assert_eq!(found, expected);
        prop_assert!(outcome.unread.is_empty());
        prop_assert!(reads.values().all(|&n| n == 1));
        prop_assert_eq!(reads.len(), pages.len());
    }
}

/// A calendar, and a tree in which each page links to two others.
#[test]
fn pages_without_end_end_without_an_option() {
    assert_eq!(plain().limits.linked_pages, 100_000);
    for start in ["/calendar/", "/tree/"] {
        let starts = [start];
        let mut crawl = Crawl::of(&starts);
        crawl.policy.follow = Follow::Pages;
        crawl.policy.limits.linked_pages = 1_000;
        let mut n = 0;
        let links = |_, _, _: &str| {
            n += 2;
            Answer::Text(match start {
                "/calendar/" => format!("<a href='?m={n}'>next</a>"),
                _ => format!("<a href='?n={n}'>a</a><a href='?n={}'>b</a>", n + 1),
            })
        };
        let outcome = crawl.run(links);
        assert_eq!(outcome.log.len(), 1_001);
        let [(_, cause)] = &outcome.unread[..] else {
            panic!("{:?}", outcome.unread.len());
        };
        assert!(cause.contains("more than 1000 pages"), "{cause}");
    }
}
