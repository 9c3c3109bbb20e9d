//! Listings that are read while they arrive, and robots.txt.

use super::*;
use crate::find::host_crawl::journal::Change;

/// A policy by which a page of more than ten links is too large.
fn small_pages() -> Policy {
    let mut policy = plain();
    policy.limits.page.links = 10;
    policy
}

/// The head of a page.
fn head() -> Reply<'static> {
    Reply {
        status: 200,
        content_type: Some(b"text/html"),
        ..Reply::default()
    }
}

/// A page of about 1.4 MB, with a directory.
fn large() -> (String, usize) {
    let mut hrefs: Vec<String> = (0..40_000).map(|n| format!("f{n}")).collect();
    hrefs.push("d/".to_owned());
    (nginx(&hrefs), hrefs.len())
}

/// A crawl whose start is requested as a stream.
fn begun(policy: Policy, now: Instant, outcome: &mut Outcome) -> (HostCrawl, FetchId) {
    let origin = Url::parse("http://h/").expect("valid");
    let mut crawl = HostCrawl::new(&origin, policy);
    crawl.add_start("/");
    let fetch = crawl.poll_request(now).expect("the start");
    assert!(!fetch.is_streamed);
    let id = fetch.id;
    let (body, _) = large();
    let reply = Reply {
        body: body.as_bytes(),
        ..head()
    };
    crawl.handle_reply(now, id, &reply, outcome);
    let id = stream_of(&mut crawl, now);
    (crawl, id)
}

fn stream_of(crawl: &mut HostCrawl, now: Instant) -> FetchId {
    let fetch = crawl.poll_request(now).expect("the same again");
    assert!(fetch.is_streamed);
    assert_eq!((fetch.kind, fetch.target), (FetchKind::List, "/"));
    fetch.id
}

/// Gives a body in parts. Returns whether all of it was wanted.
fn feed(
    crawl: &mut HostCrawl,
    now: Instant,
    id: FetchId,
    body: &[u8],
    outcome: &mut Outcome,
) -> bool {
    assert!(crawl.handle_head(now, id, &head(), outcome));
    let mut parts = body.chunks(10_000);
    parts.all(|part| crawl.handle_data(now, id, part, outcome))
}

#[test]
fn a_listing_that_is_too_large_is_read_as_a_stream_in_batches() {
    let (mut outcome, now) = (Outcome::default(), Instant::now());
    let (mut crawl, id) = begun(small_pages(), now, &mut outcome);
    let (body, len) = large();
    assert!(feed(&mut crawl, now, id, body.as_bytes(), &mut outcome));
    // Nothing is found before the page has shown that it is whole.
    assert_eq!(outcome.found.len(), 0);
    crawl.handle_end(now, id, &mut outcome);
    let mut batches = 1;
    let first = outcome.found.len();
    assert!((1000..10_000).contains(&first), "{first}");
    while crawl.can_go_on() {
        crawl.go_on(now, &mut outcome);
        batches += 1;
    }
    assert!(batches > 5);
    assert_eq!(outcome.found.len(), len + 1);
    let next = crawl.poll_request(now).expect("the directory");
    assert_eq!((next.target, next.is_streamed), ("/d/", false));
    assert_eq!(outcome.unread, []);
}

/// A visitor that compares listings sees all of a page before anything of it is found, and before the next page.
#[test]
fn all_of_a_stream_is_told_before_any_of_it_is_found() {
    let (mut outcome, now) = (Outcome::default(), Instant::now());
    let (mut crawl, id) = begun(small_pages(), now, &mut outcome);
    outcome.told = Some(Vec::new());
    let (body, len) = large();
    let reply = Reply {
        next: Some(b"/?page=2"),
        ..head()
    };
    assert!(crawl.handle_head(now, id, &reply, &mut outcome));
    let mut parts = body.as_bytes().chunks(10_000);
    assert!(parts.all(|part| crawl.handle_data(now, id, part, &mut outcome)));
    crawl.handle_end(now, id, &mut outcome);
    let mut all = 0;
    loop {
        let told = outcome.told.as_deref().expect("wanted");
        let &(entries, is_end, _) = told.last().expect("one after the other");
        assert!(entries <= 4096);
        all += entries;
        if is_end {
            break;
        }
        assert!(crawl.poll_request(now).is_none() && crawl.can_go_on());
        crawl.go_on(now, &mut outcome);
    }
    assert_eq!(all, len);
    let page = crawl.poll_request(now).expect("the next page");
    assert_eq!((page.target, page.is_streamed), ("/?page=2", false));
    while crawl.can_go_on() {
        crawl.go_on(now, &mut outcome);
    }
    assert_eq!(outcome.found.len(), len + 1);
    let told = outcome.told.as_deref().expect("wanted");
    // The start is found with its listing.
    assert!(told.len() > 5 && told.iter().all(|(_, _, found)| *found <= 1));
    assert_eq!(outcome.unread, []);
}

#[test]
fn a_stream_that_is_cut_is_requested_again_and_finds_nothing_twice() {
    let (mut outcome, mut now) = (Outcome::default(), Instant::now());
    let mut policy = small_pages();
    policy.host.retry.attempts = std::num::NonZeroU32::MIN.saturating_add(2);
    let (mut crawl, mut id) = begun(policy, now, &mut outcome);
    let (body, len) = large();
    let half = &body.as_bytes()[..body.len() / 2];
    for is_broken in [false, true] {
        assert!(feed(&mut crawl, now, id, half, &mut outcome));
        match is_broken {
            false => crawl.handle_end(now, id, &mut outcome),
            true => {
                let cause = Cause::Transfer("connection reset".into());
                let scope = FailureScope::Request;
                crawl.handle_failure(now, id, Failure { cause, scope }, &mut outcome);
            }
        }
        assert_eq!((outcome.found.len(), outcome.unread.len()), (0, 0));
        now += Duration::from_secs(10);
        id = stream_of(&mut crawl, now);
    }
    // The last attempt is cut as well.
    let mut last = Outcome::default();
    assert!(feed(&mut crawl, now, id, half, &mut last));
    crawl.handle_end(now, id, &mut last);
    let cause = "the listing was cut short: a page of nginx without </html>, </list> or ]";
    assert_eq!(last.unread, [("http://h/".to_owned(), cause.to_owned())]);
    assert!(len > 0 && crawl.is_done());
}

#[test]
fn a_stream_of_another_kind_is_named() {
    let (mut outcome, now) = (Outcome::default(), Instant::now());
    let (mut crawl, id) = begun(small_pages(), now, &mut outcome);
    let reply = Reply {
        content_type: Some(b"video/mp4"),
        ..head()
    };
    assert!(!crawl.handle_head(now, id, &reply, &mut outcome));
    let cause = "not a directory listing: its content type is video/mp4";
    assert_eq!(outcome.unread, [("http://h/".to_owned(), cause.to_owned())]);
    // Too large even for a stream.
    let mut policy = small_pages();
    policy.limits.page.streamed_bytes = 500_000;
    let mut outcome = Outcome::default();
    let (mut crawl, id) = begun(policy, now, &mut outcome);
    let (body, _) = large();
    assert!(!feed(&mut crawl, now, id, body.as_bytes(), &mut outcome));
    assert!(outcome.unread[0].1.contains("more than 500000 bytes"));
    assert!(crawl.is_done());
}

/// A search that is interrupted in the middle of a large listing goes on there, or begins again if it has changed.
#[test]
fn an_interrupted_stream_goes_on_in_a_later_run() {
    let (mut outcome, now) = (Outcome::default(), Instant::now());
    let (mut crawl, id) = begun(small_pages(), now, &mut outcome);
    crawl.keep_journal();
    let (body, len) = large();
    // The request in flight is not in the journal of this test; its listing is.
    assert!(feed(&mut crawl, now, id, body.as_bytes(), &mut outcome));
    crawl.handle_end(now, id, &mut outcome);
    crawl.go_on(now, &mut outcome);
    let mut held = None;
    let mut known = Vec::new();
    for change in crawl.take_changes() {
        match change {
            Change::Listing(number, Some(text), place) => held = Some((number, text, place)),
            Change::Listing(_, None, place) => {
                held = held.map(|(number, text, _)| (number, text, place));
            }
            Change::Known(fingerprint) => known.push(fingerprint),
            _ => {}
        }
    }
    let held = held.expect("the listing is kept");
    assert!(held.1.len() < 1000, "its entries are not");
    let before = outcome.found.len();
    for (body, expected) in [
        (body.clone(), len + 1 - before),
        (body.replace("f39999", "g39999"), len),
    ] {
        let origin = Url::parse("http://h/").expect("valid");
        let mut later = HostCrawl::new(&origin, small_pages());
        later.add_start("/");
        let kept = KeptCrawl {
            snapshot: crawl.snapshot(),
            held: vec![held.clone()],
            known: known.clone(),
            spilled: 0,
        };
        later.restore(kept).expect("of a crawl");
        let mut found = Outcome::default();
        let id = stream_of(&mut later, now);
        assert!(feed(&mut later, now, id, body.as_bytes(), &mut found));
        later.handle_end(now, id, &mut found);
        while later.can_go_on() {
            later.go_on(now, &mut found);
        }
        assert_eq!(found.found.len(), expected);
        assert_eq!(found.unread, []);
        assert_eq!(
            later.poll_request(now).expect("the directory").target,
            "/d/"
        );
    }
}

/// RFC 9309 §2.5: at least 500 KiB are read, whatever the limit for other pages is.
#[test]
fn a_large_robots_txt_is_cut() {
    let mut policy = plain();
    policy.host.robots = true;
    let origin = Url::parse("http://h/").expect("valid");
    let (mut crawl, now) = (HostCrawl::new(&origin, policy), Instant::now());
    crawl.add_start("/");
    let mut outcome = Outcome::default();
    let fetch = crawl.poll_request(now).expect("robots.txt");
    assert_eq!((fetch.kind, fetch.is_streamed), (FetchKind::Robots, true));
    let id = fetch.id;
    let mut file = "User-agent: *\nDisallow: /secret/\n".to_owned();
    while file.len() < 500 * 1024 {
        file += "# nothing\n";
    }
    let reply = Reply {
        status: 200,
        ..Reply::default()
    };
    assert!(crawl.handle_head(now, id, &reply, &mut outcome));
    let cut = format!("{file}Disallow: /\n");
    let mut parts = cut.as_bytes().chunks(10_000);
    assert!(!parts.all(|part| crawl.handle_data(now, id, part, &mut outcome)));
    assert!(crawl.is_allowed("/public/") && !crawl.is_allowed("/secret/x"));
    assert_eq!(crawl.poll_request(now).expect("the start").target, "/");
}
