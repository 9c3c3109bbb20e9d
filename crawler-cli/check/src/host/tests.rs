//! Checks of scripted servers over loopback connections, driven by the scheduler as a run drives it.

use std::borrow::Cow;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use courser::net::os::OsNet;
use courser::policy::BreakerConfig;
use jiff::Timestamp;

use super::*;
use crate::task::{Outcome, UrlId};
use crawl::hosts::HostId;
use crawl::scheduler::Scheduler;
use crawl::transfer::Transfer;
use plain::origin::root_of;

/// What a server does with a request.
enum Reaction {
    /// Sends these bytes. The connection stays open.
    Send(Vec<u8>),
    /// Sends these bytes and closes the connection.
    Close(Vec<u8>),
    /// Resets the connection.
    Reset,
    /// Sends nothing.
    Hang,
    /// Sends these bytes, then this part again and again.
    Endless(Vec<u8>, &'static [u8]),
}

use Reaction::{Close, Endless, Hang, Reset, Send};

/// A request, as a server sees it.
struct Asked<'a> {
    method: &'a str,
    path: &'a str,
    is_ranged: bool,
    has_cookie: bool,
    /// How often the path was asked before.
    before: usize,
}

impl Asked<'_> {
    fn is_head(&self) -> bool {
        self.method == "HEAD"
    }
}

/// A server on a free port of this machine.
struct Server {
    root: String,
    /// The method, `GET*` with a range, and the path of each request.
    log: Arc<Log>,
}

type Log = Mutex<Vec<(String, String)>>;

impl Server {
    fn start(react: impl Fn(&Asked<'_>) -> Reaction + Sync + std::marker::Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let root = format!("http://{}", listener.local_addr().expect("an address"));
        let log = Arc::default();
        let shared = Arc::new((Arc::clone(&log), react));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                thread::spawn(move || serve(stream, &shared.0, &shared.1));
            }
        });
        Self { root, log }
    }

    fn url(&self, path: &str) -> Url {
        format!("{}{path}", self.root).parse().expect("a URL")
    }

    /// The methods of the requests for a path.
    fn requests(&self, path: &str) -> Vec<String> {
        let log = self.log.lock().expect("no panic");
        let of_path = log.iter().filter(|(_, asked)| asked == path);
        of_path.map(|(method, _)| method.clone()).collect()
    }

    fn count(&self) -> usize {
        self.log.lock().expect("no panic").len()
    }
}

fn serve(mut stream: TcpStream, log: &Log, react: &dyn Fn(&Asked<'_>) -> Reaction) {
    let mut reader = BufReader::new(stream.try_clone().expect("another descriptor"));
    loop {
        let mut head = String::new();
        while reader.read_line(&mut head).is_ok_and(|n| n > 0) && !head.ends_with("\r\n\r\n") {}
        let mut words = head.split(' ');
        let (Some(method), Some(path)) = (words.next(), words.next()) else {
            return;
        };
        let has = |line: &str| head.to_ascii_lowercase().contains(line);
        let is_ranged = has("\r\nrange: bytes=0-0\r\n");
        let mark = if is_ranged { "*" } else { "" };
        let before = {
            let mut log = log.lock().expect("no panic");
            let before = log.iter().filter(|(_, asked)| asked == path).count();
            log.push((format!("{method}{mark}"), path.to_owned()));
            before
        };
        let asked = Asked {
            method,
            path,
            is_ranged,
            has_cookie: has("\r\ncookie: ok=1\r\n"),
            before,
        };
        let sent = match react(&asked) {
            Send(bytes) => stream.write_all(&bytes),
            Close(bytes) => return drop(stream.write_all(&bytes)),
            Reset => return drop(socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO))),
            Hang => return drop(reader.read(&mut [0])),
            Endless(bytes, part) => {
                let mut sent = stream.write_all(&bytes);
                while sent.is_ok() {
                    sent = stream.write_all(part);
                }
                sent
            }
        };
        if sent.is_err() {
            return;
        }
    }
}

/// An answer with this status and these header fields, and a short body unless the request was HEAD.
fn answer(asked: &Asked<'_>, status: u16, headers: &str) -> Reaction {
    let body = if asked.is_head() { "" } else { "12345678" };
    Send(format!("HTTP/1.1 {status} X\r\nContent-Length: 8\r\n{headers}\r\n{body}").into_bytes())
}

/// Quick retries, and no other limits.
fn policy() -> Policy {
    let mut policy = Policy::default();
    policy.host.rate = None;
    policy.host.retry.first_pause = Duration::from_millis(1);
    policy.host.robots = false;
    policy.timeout = Duration::from_secs(20);
    policy
}

/// The outcomes of these tasks, in their order.
fn check(policy: Policy, tasks: Vec<Task>) -> Vec<Outcome> {
    Run::new(policy, 4).check(tasks)
}

/// The outcome of one URL that was given.
fn check_one(policy: Policy, url: Url) -> Outcome {
    let mut all = check(policy, vec![Task::given(UrlId(0), url)]);
    all.pop().expect("one outcome")
}

/// The URLs of these paths, as given.
fn given(server: &Server, paths: &[&str]) -> Vec<Task> {
    let ids = 0..;
    ids.zip(paths)
        .map(|(id, path)| Task::given(UrlId(id), server.url(path)))
        .collect()
}

/// So many URLs, `/0` and so on, as given.
fn numbered(server: &Server, count: u64) -> Vec<Task> {
    let task = |id| Task::given(UrlId(id), server.url(&format!("/{id}")));
    (0..count).map(task).collect()
}

/// A small run.
struct Run {
    policy: Arc<Policy>,
    scheduler: Scheduler<Host, OsNet>,
    shared: Shared,
}

impl Run {
    fn new(policy: Policy, connections: usize) -> Self {
        let transfer = Transfer {
            connections: NonZeroUsize::new(connections).expect("not 0"),
            timeout: policy.timeout,
            adaptive: None,
            breaker: Some(BreakerConfig {
                open_for: Duration::from_millis(20),
                max_open_for: Duration::from_millis(50),
                ..Policy::breaker()
            }),
            allow_private: true,
            lenient: true,
            ..Transfer::default()
        };
        let client = transfer.client(&[]).expect("a client");
        Self {
            policy: Arc::new(policy),
            scheduler: Scheduler::new(client, &transfer),
            shared: Shared::new(Stats::default()),
        }
    }

    fn host_of(&mut self, url: &Url) -> HostId {
        let root = root_of(url);
        if let Some(host) = self.scheduler.hosts().at(&root) {
            return host;
        }
        let host = Host::new(root.clone(), None, Arc::clone(&self.policy));
        let stats = self.shared.stats.add_host(root.as_str());
        self.scheduler.add(root, stats, host)
    }

    fn check(&mut self, tasks: Vec<Task>) -> Vec<Outcome> {
        let count = tasks.len();
        let mut outcomes = Vec::new();
        let mut tasks = tasks.into_iter().peekable();
        let mut heard = Instant::now();
        while outcomes.len() < count {
            while let Some(task) = tasks.peek() {
                let host = self.host_of(&task.url.clone());
                let (work, _) = self.scheduler.work_and_calls(host);
                if work.room() == 0 {
                    break;
                }
                let task = tasks.next().expect("the task");
                work.add_task(task, &mut self.shared);
            }
            self.scheduler.submit_all(&mut self.shared);
            let wait = Duration::from_millis(20);
            let handled = self.scheduler.handle_next_or_wake(wait, &mut self.shared);
            handled.expect("the client works");
            self.scheduler.read_bodies(&mut self.shared);
            for hop in self.shared.take_hops() {
                let host = self.host_of(hop.url());
                let (work, _) = self.scheduler.work_and_calls(host);
                work.add_hop(hop, &mut self.shared);
            }
            let before = outcomes.len();
            outcomes.extend(self.shared.take_outcomes(Timestamp::now()));
            if outcomes.len() > before {
                heard = Instant::now();
            }
            let hangs = heard.elapsed() > Duration::from_secs(60);
            assert!(!hangs, "{before} of {count}, and no more for a minute");
        }
        assert!(self.scheduler.hosts().works().all(HostWork::is_done));
        outcomes.sort_by_key(|outcome| outcome.id);
        outcomes
    }
}

fn causes(outcomes: &[Outcome]) -> Vec<Cow<'static, str>> {
    let causes = outcomes.iter().map(|it| it.answer.verdict.cause());
    causes
        .map(|cause| cause.map_or("ok".into(), Cause::name))
        .collect()
}

/// One row: what the server does, the cause, and the requests for the first URL of a host.
type Way = (
    &'static str,
    fn(&Asked<'_>) -> Reaction,
    Option<Cause>,
    &'static [&'static str],
);

/// Ways of treating HEAD wrongly, and others.
#[rustfmt::skip]
const WAYS: &[Way] = &[
    ("right", |a| answer(a, 200, ""), None, &["HEAD"]),
    ("gone", |a| answer(a, 410, ""), Some(Cause::Status410), HEAD_AND_GET),
    ("405", |a| head(a, answer(a, 405, "")), None, HEAD_AND_GET),
    ("404", |a| head(a, answer(a, 404, "")), None, HEAD_AND_GET),
    ("500", |a| head(a, answer(a, 500, "")), None, HEAD_AND_GET),
    ("reset", |a| head(a, Reset), None, HEAD_AND_GET),
    ("end", |a| head(a, Close(Vec::new())), None, HEAD_AND_GET),
    ("cut head", |a| head(a, Close(b"HTTP/1.1 200 OK\r\nCont".to_vec())), None, HEAD_AND_GET),
    ("garbage", |a| head(a, Close(b"SSH-2.0-OpenSSH\r\n".to_vec())), None, HEAD_AND_GET),
    ("body after HEAD", |_| Send(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n12345678".to_vec()), None, &["HEAD"]),
    ("hang", |a| head(a, Hang), None, HEAD_AND_GET),
    ("refused range", |a| answer(a, if a.is_head() || a.is_ranged { 400 } else { 200 }, ""), None, &["HEAD", "GET*", "GET"]),
    ("endless body", |a| match a.is_head() {
        true => answer(a, 405, ""),
        false => Endless(b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), &[b'x'; 4096]),
    }, None, HEAD_AND_GET),
    ("challenge", |a| answer(a, 503, "cf-mitigated: challenge\r\n"), Some(Cause::Blocked), &["HEAD", "GET*", "GET"]),
    ("429 once", |a| once(a, answer(a, 429, "Retry-After: 1\r\n")), None, &["HEAD", "HEAD"]),
    ("503 once", |a| once(a, answer(a, 503, "Retry-After: 1\r\n")), None, &["HEAD", "HEAD"]),
    ("to good", |a| leading(a, "/good", 200), None, &["HEAD"]),
    ("to dead", |a| leading(a, "/dead", 404), Some(Cause::Status404), HEAD_AND_GET),
    ("loop", |a| answer(a, 302, "Location: /0\r\n"), Some(Cause::RedirectLoop), HEAD_AND_GET),
    ("HEAD to itself", |a| head(a, answer(a, 302, &format!("Location: {}\r\n", a.path))), None, HEAD_AND_GET),
    ("HEAD on and on", |a| head(a, answer(a, 302, &format!("Location: {}1\r\n", a.path))), None, HEAD_AND_GET),
    ("HEAD to dead", |a| match a.path {
        "/dead" => answer(a, 404, ""),
        _ => head(a, answer(a, 302, "Location: /dead\r\n")),
    }, None, HEAD_AND_GET),
    ("HEAD to nowhere", |a| head(a, answer(a, 302, "")), None, HEAD_AND_GET),
    ("HEAD to no URL", |a| head(a, answer(a, 302, "Location: http://\r\n")), None, HEAD_AND_GET),
    ("gate", |a| match a.has_cookie {
        true => answer(a, 200, ""),
        false => answer(a, 302, &format!("Set-Cookie: ok=1; Path=/\r\nLocation: {}\r\n", a.path)),
    }, None, &["HEAD", "HEAD"]),
    ("nothing", |_| Close(Vec::new()), Some(Cause::Reset), HEAD_AND_GET),
    ("no HTTP", |_| Close(b"SSH-2.0-x\r\n\r\n".to_vec()), Some(Cause::Protocol), HEAD_AND_GET),
    ("half a head", |_| Close(b"HTTP/1.1 200 OK\r\nContent-Le".to_vec()), Some(Cause::Truncated), HEAD_AND_GET),
    ("503 for ever", |a| answer(a, 503, "Retry-After: 86400\r\n"), Some(Cause::Throttled), &["HEAD"]),
];

const HEAD_AND_GET: &[&str] = &["HEAD", "GET*"];

/// Treats HEAD in its own way, and answers everything else with 200.
fn head(asked: &Asked<'_>, of_head: Reaction) -> Reaction {
    match asked.is_head() {
        true => of_head,
        false => answer(asked, 200, ""),
    }
}

/// Reacts in this way once, and answers with 200 from then on.
fn once(asked: &Asked<'_>, first: Reaction) -> Reaction {
    match asked.before {
        0 => first,
        _ => answer(asked, 200, ""),
    }
}

/// Redirects all to `end`, which has this status.
fn leading(asked: &Asked<'_>, end: &str, status: u16) -> Reaction {
    match asked.path == end {
        true => answer(asked, status, ""),
        false => answer(asked, 302, &format!("Location: {end}\r\n")),
    }
}

#[test]
#[rustfmt::skip]
fn servers_that_treat_head_wrongly_get_the_right_verdict() {
    for (name, react, cause, requests) in WAYS {
        let server = Server::start(react);
        let mut policy = policy();
        let attempts = if *name == "hang" { 2 } else { 1 };
        policy.host.retry.attempts = NonZeroU32::new(attempts).expect("not 0");
        policy.timeout = Duration::from_secs(if *name == "hang" { 3 } else { 20 });
        let outcome = check_one(policy, server.url("/0"));
        assert_eq!(outcome.answer.verdict.cause(), *cause, "{name}: {outcome:?}");
        assert_eq!(server.requests("/0"), *requests, "{name}");
        assert_eq!(outcome.answer.attempts, attempts, "{name}");
        let says_more = matches!(cause, Some(Cause::Reset | Cause::Protocol | Cause::Truncated));
        assert!(!says_more || outcome.answer.detail.is_some(), "{name}");
        let is_private = Some(true) == outcome.answer.address.map(|ip| ip.is_loopback());
        assert!(is_private && outcome.is_private, "{name}: {outcome:?}");
    }
}

#[test]
fn what_two_urls_show_holds_for_the_rest() {
    // Refuses HEAD, treats it wrongly, and refuses ranges.
    let learned = WAYS
        .iter()
        .filter(|way| ["405", "404", "reset", "refused range"].contains(&way.0));
    for (name, react, cause, _) in learned {
        let server = Server::start(react);
        let mut run = Run::new(policy(), 4);
        let outcomes = run.check(numbered(&server, 40));
        for outcome in &outcomes {
            let judged = outcome.answer.verdict.cause();
            assert_eq!(judged, *cause, "{name}: {outcome:?}");
        }
        let host = run.scheduler.hosts().works().next().expect("the host");
        assert!(host.head_fault().is_some(), "{name}");
        // Two URLs with two requests each, three if ranges are refused; the others with one.
        let most = if *name == "refused range" { 44 } else { 42 };
        assert_eq!(server.count(), most, "{name}");
    }
}

#[test]
fn a_wait_beyond_the_patience_ends_a_url_at_once_and_no_other() {
    let server = Server::start(|asked| match asked.path {
        "/later" => answer(asked, 429, "Retry-After: 86400\r\n"),
        _ => answer(asked, 200, ""),
    });
    let outcomes = check(policy(), given(&server, &["/a", "/later", "/b", "/c"]));
    assert_eq!(causes(&outcomes), ["ok", "throttled", "ok", "ok"]);
    let detail = outcomes[1].answer.detail.as_deref();
    let waits = "asks to wait 86400 s, longer than the patience of 60 s";
    assert_eq!(detail, Some(waits));
    assert_eq!(server.requests("/later"), ["HEAD"]);
}

/// A link to a host that is dead is broken, and not forbidden by a robots.txt that nobody could read.
#[test]
fn a_robots_txt_that_cannot_be_read_is_no_reason() {
    for (reaction, cause) in [
        (None, Cause::Reset),
        (Some(503), Cause::Robots),
        (Some(500), Cause::Robots),
    ] {
        let server = Server::start(move |asked| match reaction {
            None => Reset,
            Some(status) => answer(asked, status, ""),
        });
        let mut policy = policy();
        policy.host.robots = true;
        let tasks = vec![Task::found(UrlId(0), server.url("/found"), Reach::Any)];
        let outcomes = check(policy, tasks);
        assert_eq!(outcomes[0].answer.verdict, Verdict::Failed(cause));
        let detail = outcomes[0].answer.detail.as_deref().unwrap_or_default();
        assert!(!detail.contains("disallows"), "{detail}");
    }
}

/// Two URLs that never answer say nothing about the others.
#[test]
fn a_host_that_answers_other_urls_is_not_given_up() {
    let server = Server::start(|asked| match asked.path {
        "/0" | "/1" => Hang,
        _ => answer(asked, 200, ""),
    });
    let mut policy = policy();
    policy.timeout = Duration::from_secs(1);
    policy.host.retry.attempts = NonZeroU32::new(3).expect("not 0");
    let outcomes = check(policy, numbered(&server, 8));
    assert_eq!(causes(&outcomes[..2]), ["first_byte_timeout"; 2]);
    assert_eq!(causes(&outcomes[2..]), ["ok"; 6]);
}

/// The breaker opens, and then the host works again.
#[test]
fn a_pause_of_the_breaker_is_no_verdict() {
    let count = AtomicUsize::new(0);
    let server = Server::start(move |asked| match count.fetch_add(1, Ordering::SeqCst) {
        2..40 => Reset,
        _ => answer(asked, 200, ""),
    });
    let mut policy = policy();
    policy.host.retry.attempts = NonZeroU32::new(100).expect("not 0");
    let outcomes = check(policy, numbered(&server, 100));
    assert_eq!(causes(&outcomes), ["ok"; 100]);
}

#[test]
fn what_is_gone_never_ends_the_work_at_a_host() {
    for status in [404, 410, 403] {
        let server = Server::start(move |asked| match asked.path {
            "/99" => answer(asked, 200, ""),
            _ => answer(asked, status, ""),
        });
        let outcomes = check(policy(), numbered(&server, 100));
        assert!(outcomes.iter().all(|outcome| outcome.answer.attempts == 1));
        assert_eq!(outcomes[99].answer.verdict, Verdict::Ok);
    }
}

#[test]
fn a_public_page_leads_to_no_private_address() {
    let server = Server::start(|asked| answer(asked, 200, ""));
    let tasks = |reach| {
        vec![
            Task::found(UrlId(0), server.url("/found"), reach),
            Task::given(UrlId(1), server.url("/given")),
            Task::found(UrlId(2), server.url("/again"), reach),
        ]
    };
    let outcomes = check(policy(), tasks(Reach::Public));
    let expected = ["private_address", "ok", "private_address"];
    assert_eq!(causes(&outcomes), expected);
    let detail = outcomes[0].answer.detail.as_deref();
    assert_eq!(detail, Some("127.0.0.1 is a private address"));
    assert_eq!(server.count(), 1);
    assert_eq!(causes(&check(policy(), tasks(Reach::Any))), ["ok"; 3]);
    let allowed = Policy {
        allow_private: true,
        ..policy()
    };
    assert_eq!(causes(&check(allowed, tasks(Reach::Public))), ["ok"; 3]);
}

#[test]
fn one_url_that_is_given_needs_no_robots_txt() {
    let server = Server::start(|asked| answer(asked, 200, ""));
    let mut policy = policy();
    policy.host.robots = true;
    assert_eq!(causes(&[check_one(policy, server.url("/"))]), ["ok"]);
    assert_eq!(server.count(), 1);
}

#[test]
fn pages_are_read_for_links_as_far_as_they_are_pages() {
    let endless = |of: &str| {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {of}\r\n\r\n<a href=x>");
        Endless(head.into_bytes(), &[b' '; 4096])
    };
    let server = Server::start(move |asked| match asked.path {
        "/cut" => Close(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n<a href".to_vec()),
        "/page" => endless("text/html"),
        "/disk.iso" => endless("application/x-cd-image"),
        "/empty" => Send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec()),
        _ => answer(asked, 404, ""),
    });
    let mut policy = policy();
    policy.max_body = 100_000;
    let mut tasks = given(&server, &["/page", "/disk.iso", "/empty", "/cut", "/none"]);
    tasks.iter_mut().for_each(|task| task.wants_links = true);
    let outcomes = check(policy, tasks);
    let expected = ["ok", "ok", "ok", "truncated", "status_404"];
    assert_eq!(causes(&outcomes), expected);
    let pages = outcomes
        .iter()
        .map(|it| it.page.as_ref().map(|page| page.links.len()));
    assert_eq!(pages.collect::<Vec<_>>()[..3], [Some(1), Some(0), Some(0)]);
    let page = outcomes[0].page.as_ref().expect("a page");
    let (_, problem) = page.problem.as_ref().expect("a problem");
    assert_eq!(problem, "only the first 100000 bytes were read");
    assert!(outcomes[4].page.is_none());
    assert_eq!(server.requests("/page"), ["GET"]);
    assert_eq!(server.requests("/cut").len(), 4);
}

/// By the policy, or because an earlier run has learned that the host refuses it.
#[test]
fn head_can_be_switched_off() {
    let server = Server::start(|asked| answer(asked, 200, ""));
    let never = Policy {
        head: HeadUse::Never,
        ..policy()
    };
    let outcome = check_one(never, server.url("/a")).answer;
    assert_eq!(
        (outcome.verdict, outcome.method),
        (Verdict::Ok, Some("GET"))
    );
    let mut run = Run::new(policy(), 4);
    let host = run.host_of(&server.url("/"));
    let (work, _) = run.scheduler.work_and_calls(host);
    work.believe(HeadFault::NoHead);
    run.check(given(&server, &["/a"]));
    assert_eq!(server.requests("/a"), ["GET*", "GET*"]);
}

/// What browsers read is not called dead, and the report says that something was dropped.
#[test]
fn wrong_lines_that_are_harmless_are_dropped_and_told_of() {
    let server = Server::start(|asked| match asked.path {
        "/two" => answer(asked, 200, "Set-Cookie: a; domain=\x7fshop\r\nno colon\r\n"),
        "/moved" => answer(asked, 301, ": c\r\nLocation: /good\r\n"),
        _ => answer(asked, 200, ""),
    });
    let outcomes = check(policy(), given(&server, &["/two", "/moved", "/good"]));
    let told = outcomes.iter().map(|it| it.answer.detail.as_deref());
    let (two, one) = ("lenient: 2 lines dropped", "lenient: 1 line dropped");
    assert_eq!(told.collect::<Vec<_>>(), [Some(two), Some(one), None]);
    assert_eq!(causes(&outcomes), ["ok"; 3]);
}

#[test]
fn a_host_that_fails_longer_than_the_patience_is_given_up() {
    let (mut watch, mut now) = (BreakerWatch::default(), Instant::now());
    let patience = Duration::from_secs(60);
    for (pause, given_up) in [(5, false), (10, false), (20, false), (40, true)] {
        let until = now + Duration::from_secs(pause);
        // All calls in flight are refused.
        for _ in 0..8 {
            assert_eq!(watch.handle_open(now, until, patience), given_up);
        }
        now = until;
    }
    watch.handle_answer(200);
    assert!(!watch.handle_open(now, now + patience, patience));
    assert!(!watch.handle_open(now, now, Duration::MAX));
}

#[test]
fn a_host_that_was_given_up_is_probed_after_a_growing_time() {
    let mut policy = Policy {
        asks_for_days: true,
        ..Policy::default()
    };
    policy.host.robots = false;
    let root = "http://h/".parse().expect("a URL");
    let mut host = Host::new(root, None, Arc::new(policy));
    let mut shared = Shared::new(Stats::default());
    let mut now = Instant::now();
    let add = |host: &mut Host, shared: &mut Shared| {
        for path in 0..2 {
            let url = format!("http://h/{path}").parse().expect("a URL");
            host.add_task(Task::given(UrlId(path), url), shared);
        }
    };
    let verdicts = |shared: &mut Shared| {
        let outcomes = shared.take_outcomes(Timestamp::UNIX_EPOCH).into_iter();
        outcomes.map(|it| it.answer.verdict).collect::<Vec<_>>()
    };
    let silent = Verdict::Failed(Cause::ConnectTimeout);
    let mut request = Request::get("/");
    let growing = [30, 60, 120, 240, 480, 900].map(|rest| (rest, false));
    for (rest, is_answered) in growing.into_iter().chain([(900, true), (30, false)]) {
        host.give_up(now, Cause::ConnectTimeout, None, &mut shared);
        // What was in flight fails later, and for another reason.
        host.give_up(now, Cause::Refused, None, &mut shared);
        verdicts(&mut shared);
        add(&mut host, &mut shared);
        now += Duration::from_secs(rest - 1);
        assert_eq!(host.poll_timeout(now, &shared), Some(now));
        assert!(host.poll_request(now, &mut request, &mut shared).is_none());
        assert_eq!(verdicts(&mut shared), [silent; 2], "{rest}");
        now += Duration::from_secs(1);
        add(&mut host, &mut shared);
        let probe = host.poll_request(now, &mut request, &mut shared);
        assert!(host.poll_request(now, &mut request, &mut shared).is_none());
        assert_eq!(host.poll_timeout(now, &shared), None);
        let id = probe.expect("a probe").id;
        if is_answered {
            host.handle_head(now, id, &Response::new(), &mut shared);
            assert!(!host.is_given_up());
            continue;
        }
        if let Some((Fetch::Url(check), _)) = host.ended(id, &mut shared) {
            host.report(check, silent, None, &mut shared);
        }
    }
}
