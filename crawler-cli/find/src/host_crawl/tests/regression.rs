//! Errors that were corrected once.

use super::*;

#[test]
fn no_redirect_leads_into_what_was_pruned() {
    for names in [["old/", "latest/"], ["latest/", "old/"]] {
        let crawl = Crawl {
            judge: Some(|found| match found.name {
                b"old" => Verdict::Prune,
                _ => Verdict::Go,
            }),
            ..Crawl::of(&["/"])
        };
        let outcome = crawl.run(|_, _, target| match target {
            "/" => page(&names),
            "/latest/" => Answer::Redirect(302, "/old/"),
            other => panic!("{other} was asked for"),
        });
        assert_eq!((outcome.found.len(), outcome.unread.len()), (3, 0));
    }
}

#[test]
fn robots_txt_holds_for_names_that_may_be_directories_and_for_redirected_starts() {
    const ROBOTS: &str = "User-agent: *\nDisallow: /x\nDisallow: /pub/\n";
    let crawl = Crawl {
        policy: Policy::default(),
        ..Crawl::of(&["/", "/pub"])
    };
    let outcome = crawl.run(|_, kind, target| match (kind, target) {
        (FetchKind::Robots, _) => Answer::Html(ROBOTS, BodyEnd::Framed),
        (FetchKind::Probe, "/pub") => Answer::Redirect(301, "/pub/"),
        (FetchKind::List, "/") => Answer::Html("<a href=x>x</a><a href=y>y</a>", BodyEnd::Framed),
        (FetchKind::Probe, "/y") => Answer::Status(200),
        other => panic!("{other:?} was asked for"),
    });
    let unread: BTreeSet<&str> = outcome.unread.iter().map(|(url, _)| url.as_str()).collect();
    assert_eq!(
        unread,
        BTreeSet::from(["http://h:8080/x", "http://h:8080/pub/"])
    );
}

/// The entry listed last is requested first.
#[test]
fn what_is_wrong_with_head_is_asked_again_by_get() {
    let outcome = Crawl::of(&["/"]).run(|_, kind, target| match (kind, target) {
        (FetchKind::List, _) => Answer::Html(
            "<a href=late>late</a><a href=there>there</a><a href=early>early</a>",
            BodyEnd::Framed,
        ),
        (FetchKind::Probe, "/there") => Answer::Status(200),
        (FetchKind::Probe, "/late") => Answer::Fail(FailureScope::Request),
        (FetchKind::First, "/late") => Answer::Status(206),
        _ => Answer::Status(404),
    });
    let log = outcome.log.iter();
    let asked: Vec<_> = log
        .map(|(_, kind, target)| format!("{kind:?} {target}"))
        .collect();
    let expected =
        "List / + Probe /early + First /early + Probe /there + Probe /late + First /late";
    assert_eq!(asked.join(" + "), expected);
    assert_eq!(outcome.unread.len(), 1);
}

/// A crawl of a hundred directories of two files, all of whose listings wait for the reply to one request.
fn clogged(now: Instant) -> (HostCrawl, RequestId, Outcome) {
    let policy = Policy {
        clock: true,
        ..plain()
    };
    let mut crawl = HostCrawl::new(&Url::parse("http://h/").expect("valid"), policy);
    crawl.add_start("/");
    let mut outcome = Outcome::default();
    let (mut probe, mut lists) = (None, 0);
    let names: Vec<String> = (0..100).map(|i| format!("d{i}/")).collect();
    while let Some(Fetch {
        id, kind, target, ..
    }) = crawl.poll_request(now)
    {
        let given = match (kind, target) {
            (FetchKind::Probe, _) => {
                assert_eq!(probe.replace(id), None, "one tells it to all");
                continue;
            }
            (_, "/") => Answer::Page(names.clone()),
            _ => timed(&["a", "b"]),
        };
        lists += 1;
        give(&mut crawl, now, id, given, &mut outcome);
    }
    assert_eq!(lists, 1 + MOST_PARTIAL);
    assert_eq!(crawl.poll_timeout(now), None, "but for an answer");
    (crawl, probe.expect("a file"), outcome)
}

/// The trap: the memory fills with listings that all wait for one reply.
#[test]
fn listings_that_wait_keep_others_from_being_asked_for() {
    let now = Instant::now();
    let (mut crawl, probe, mut outcome) = clogged(now);
    let reply = Reply {
        status: 200,
        last_modified: Some(b"Sun, 06 Nov 1994 08:49:37 GMT"),
        ..Reply::default()
    };
    crawl.handle_reply(&mut Turn::new(now, &mut outcome), probe, &reply);
    while let Some(Fetch { id, kind, .. }) = crawl.poll_request(now) {
        assert_eq!(kind, FetchKind::List);
        give(&mut crawl, now, id, timed(&["a", "b"]), &mut outcome);
    }
    assert!(crawl.is_done());
    assert_eq!(outcome.urls().len(), 1 + 100 + 200);
    assert_eq!(outcome.unread, []);
}

#[test]
fn a_crawl_is_abandoned_with_the_listings_that_wait() {
    let now = Instant::now();
    let (mut crawl, _, mut outcome) = clogged(now);
    let cause = Cause::Transfer("out of memory".into());
    crawl.abandon(&mut Turn::new(now, &mut outcome), &cause);
    assert!(crawl.is_done());
    // What was read is reported as listed.
    assert_eq!(outcome.urls().len(), 1 + 100 + 2 * MOST_PARTIAL);
    let unread: BTreeSet<&str> = outcome.unread.iter().map(|(url, _)| url.as_str()).collect();
    assert_eq!(unread.len(), outcome.unread.len());
    // The directories that were not read, and the file whose reply was awaited.
    assert_eq!(unread.len(), 100 - MOST_PARTIAL + 1);
}
