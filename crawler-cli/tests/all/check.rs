//! Checks as a program runs them: sources, hosts, store and reports together.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Write as _};
use std::num::{NonZeroU32, NonZeroUsize};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use crate::common::{Answer, Script, crawler, gzip, lines, response, stderr};
use check::sources::{Input, List};
use check::{Checked, Checker, Event, Outcome, Standing, Summary};
use serde_json::json;
use tempfile::TempDir;
use verdict::guard::Guard;
use verdict::life::State;
use verdict::{Cause, Class, Verdict};

/// What a check reported.
struct Report {
    /// In the order in which they came. Places that were found later are with the others.
    checked: Vec<Checked>,
    guards: Vec<(Guard, bool)>,
    summary: Summary,
}

impl Report {
    /// The only record of a URL.
    fn of(&self, url: &str) -> &Checked {
        let found: Vec<_> = self.checked.iter().filter(|it| it.url == url).collect();
        assert_eq!(found.len(), 1, "{url} in {:?}", self.urls());
        found[0]
    }

    fn urls(&self) -> Vec<&str> {
        self.checked.iter().map(|it| it.url.as_str()).collect()
    }

    /// Verdicts by URL.
    fn verdicts(&self) -> BTreeMap<&str, Verdict> {
        let all = self.checked.iter();
        let all = all.map(|it| (it.url.as_str(), it.answer.verdict));
        let verdicts: BTreeMap<_, _> = all.collect();
        assert_eq!(verdicts.len(), self.checked.len(), "a URL came twice");
        verdicts
    }
}

fn run(checker: Checker) -> Report {
    let (mut checked, mut guards) = (Vec::new(), Vec::new());
    let summary = checker.run(|event| {
        match event {
            Event::Checked(it) => add(&mut checked, it),
            Event::Guard(change) => guards.push((change.guard, change.is_on)),
            Event::StateFailed(error) => panic!("{error}"),
            Event::NetworkFailed(error) => panic!("{error}"),
            _ => {}
        }
        ControlFlow::Continue(())
    });
    Report {
        checked,
        guards,
        summary,
    }
}

/// Adds what was reported.
fn add(checked: &mut Vec<Checked>, reported: &Checked) {
    match checked.iter_mut().find(|it| it.url == reported.url) {
        Some(known) => {
            assert!(reported.before.is_some(), "{} came twice", known.url);
            known.references.extend(reported.references.clone());
        }
        None => checked.push(reported.clone()),
    }
}

/// A check as fast as possible, without robots.txt.
fn checker() -> Checker {
    let mut checker = Checker::new().rate(None);
    checker.settings.host.robots = false;
    checker.settings.host.seed = Some(1);
    checker
}

fn input(argument: &str) -> Input {
    Input::from_argument(OsStr::new(argument)).expect("an input")
}

/// A folder with a list of URLs.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).expect("written");
        path
    }

    fn list(&self, urls: &[String]) -> Input {
        Input::List(List::File(self.write("urls.txt", &urls.join("\n"))))
    }
}

fn ok(request: &str) -> Vec<u8> {
    match request.split_once(' ') {
        Some((_, path)) if path.contains("missing") => response(404, "", ""),
        Some((_, path)) if path.contains("gone") => response(410, "", ""),
        _ => response(200, "", ""),
    }
}

fn html(body: &str) -> Vec<u8> {
    response(200, "Content-Type: text/html\r\n", body)
}

#[test]
fn each_url_is_asked_once_and_reported_for_every_place() {
    let server = Script::start(ok);
    let folder = Folder::new();
    let (good, gone) = (server.url("/good"), server.url("/gone"));
    let urls = [&good, &gone, &good, "no url", &good].map(|url| url.to_owned());
    let report = run(checker().input(folder.list(&urls)));
    assert_eq!(report.checked.len(), 3);
    let good = report.of(&good);
    assert_eq!(
        (good.answer.verdict, good.answer.status),
        (Verdict::Ok, Some(200))
    );
    let lines: Vec<_> = good.references.iter().map(|place| place.line).collect();
    assert_eq!(lines, [Some(1), Some(3), Some(5)]);
    assert_eq!(good.state, None);
    let gone = report.of(&gone);
    assert_eq!(gone.answer.verdict, Verdict::Failed(Cause::Status410));
    assert_eq!(gone.standing, Standing::Fails);
    let wrong = report.of("no url");
    assert_eq!(wrong.answer.verdict, Verdict::Failed(Cause::InvalidUrl));
    assert_eq!(wrong.answer.attempts, 0);
    let asked = server.requests();
    let of_good = asked.iter().filter(|request| request.ends_with("/good"));
    assert_eq!(of_good.count(), 1, "{asked:?}");
    let summary = &report.summary;
    assert_eq!((summary.urls, summary.references), (3, 5));
    assert_eq!(summary.count(Class::Ok), 1);
    assert_eq!((summary.failing, summary.problems), (2, 0));
    assert_eq!(summary.outcome(), Outcome::Bad);
}

#[test]
fn a_page_is_checked_with_its_links_and_no_deeper() {
    let server = Script::start(|request: &str| match request {
        "GET /a/" => html("<a href=\"b\">B</a> <a href='/c/missing'>C</a> <a href=\"mailto:x@y\">"),
        "GET /a/b" | "HEAD /a/b" => html("<a href=\"deeper\">"),
        other => ok(other),
    });
    let page = server.url("/a/");
    let report = run(checker().input(input(&page)));
    let (b, c) = (server.url("/a/b"), server.url("/c/missing"));
    let expected = [
        (page.as_str(), Verdict::Ok),
        (&b, Verdict::Ok),
        (&c, Verdict::Failed(Cause::Status404)),
    ];
    assert_eq!(report.verdicts(), expected.into());
    let place = &report.of(&c).references[0];
    assert_eq!((&*place.source, place.line), (page.as_str(), Some(1)));
    assert_eq!(report.summary.unsupported, 1);
}

#[test]
fn recursion_stays_in_the_scope_and_checks_what_is_outside() {
    let elsewhere = Script::start(|_: &str| html("<a href=\"/unseen\">"));
    let outside = elsewhere.url("/x");
    let pages = {
        let outside = outside.clone();
        move |request: &str| match request.split_once(' ') {
            Some((_, "/a/")) => html(&format!("<a href=\"b\"> <a href=\"{outside}\">")),
            Some((_, "/a/b")) => html("<a href=\"c\"> <a href=\"/above\">"),
            Some((_, "/a/c")) => html("<a href=\"d\"> <a href=\"/a/\">"),
            Some((_, "/above")) => html("<a href=\"/unseen\">"),
            _ => ok(request),
        }
    };
    let server = Script::start(pages);
    let start = server.url("/a/");
    let found = |checker: Checker| {
        let report = run(checker.input(input(&start)));
        let mut urls: Vec<String> = report.urls().iter().map(|&url| url.to_owned()).collect();
        urls.sort();
        urls
    };
    let expected = |paths: &[&str]| {
        let mut urls: Vec<String> = paths.iter().map(|path| server.url(path)).collect();
        urls.push(outside.clone());
        urls.sort();
        urls
    };
    let one = ["/a/", "/a/b", "/a/c", "/above"];
    assert_eq!(found(checker().depth(1)), expected(&one));
    let all = ["/a/", "/a/b", "/a/c", "/a/d", "/above"];
    assert_eq!(found(checker().recursive()), expected(&all));
}

/// Sitemaps are those that robots.txt names, else `/sitemap.xml`.
#[test]
fn recursion_reads_what_only_a_sitemap_names() {
    let map = |urls: &[&str]| {
        let urls = urls.iter();
        let urls: String = urls
            .map(|url| format!("<url><loc>{url}</loc></url>"))
            .collect();
        format!("<urlset>{urls}</urlset>")
    };
    for is_named in [true, false] {
        let page = |request: &str| match request.split_once(' ') {
            Some((_, "/a/")) => html("<a href=\"b\">"),
            Some((_, "/a/orphan")) => html("<a href=\"child\">"),
            _ => ok(request),
        };
        let server = Script::start(move |request: &str| match request.split_once(' ') {
            Some((_, "/robots.txt")) if is_named => {
                response(200, "", "Sitemap: /maps\nSitemap: /missing")
            }
            Some((_, "/maps")) => {
                let index =
                    "<sitemapindex><sitemap><loc>/map.xml.gz</loc></sitemap></sitemapindex>";
                response(200, "Content-Type: text/xml\r\n", index)
            }
            Some((_, "/map.xml.gz")) if is_named => {
                let map = gzip(map(&["/a/orphan", "/elsewhere"]));
                response(200, "Content-Type: text/html\r\n", map)
            }
            Some((_, "/robots.txt" | "/missing")) => response(404, "", ""),
            Some((_, "/sitemap.xml")) if !is_named => {
                response(200, "", map(&["/a/orphan", "/elsewhere"]))
            }
            _ => page(request),
        });
        let mut checker = checker().recursive();
        checker.settings.host.robots = true;
        let report = run(checker.input(input(&server.url("/a/"))));
        let mut expected = vec!["/a/", "/a/b", "/a/orphan", "/a/child"];
        if is_named {
            expected.extend(["/maps", "/missing", "/map.xml.gz"]);
        }
        let mut urls: Vec<_> = expected.iter().map(|path| server.url(path)).collect();
        urls.sort();
        let mut found = report.urls();
        found.sort_unstable();
        assert_eq!(found, urls);
        assert_eq!(report.summary.problems, 0);
        if is_named {
            let source = &report.of(&server.url("/missing")).references[0].source;
            assert_eq!(**source, server.url("/robots.txt"));
        }
    }
    // A server that answers 200 for everything has no sitemap; one that fails has one that is not read.
    for (status, problems) in [(200, 0), (500, 1)] {
        let server = Script::start(move |request: &str| match request.split_once(' ') {
            Some((_, "/sitemap.xml")) => response(status, "", "<html>sorry</html>"),
            Some((_, "/robots.txt")) => response(404, "", ""),
            _ => html(""),
        });
        let mut checker = checker();
        checker.settings.host.retry.attempts = NonZeroU32::MIN;
        let report = run(checker.input(input(&server.url("/"))).recursive());
        assert_eq!(
            (report.urls().len(), report.summary.problems),
            (1, problems),
            "{status}"
        );
    }
}

#[test]
fn a_page_with_several_urls_is_read_once() {
    let server = Script::start(|request: &str| match request.split_once(' ') {
        Some((_, "/")) => html("<a href=\"/old\"> <a href=\"/docs\"> <a href=\"/docs/\">"),
        Some((_, "/old" | "/docs")) => response(301, "Location: /docs/\r\n", ""),
        Some((_, "/docs/")) => html("<a href=\"x\">"),
        _ => ok(request),
    });
    let report = run(checker().input(input(&server.url("/"))).recursive());
    let references = &report.of(&server.url("/docs/x")).references;
    let sources: Vec<&str> = references.iter().map(|place| &*place.source).collect();
    assert_eq!(sources, [server.url("/docs/")]);
}

#[test]
fn what_was_good_lately_is_not_asked_again() {
    let server = Script::start(ok);
    let folder = Folder::new();
    let urls = ["/good", "/gone"].map(|path| server.url(path));
    let state = folder.path("state");
    let checker = || {
        let mut checker = checker().input(folder.list(&urls));
        checker.keeping.state = Some(state.clone());
        checker
    };
    let report = run(checker());
    assert_eq!(report.of(&urls[0]).state, Some(State::Alive));
    assert_eq!(report.of(&urls[1]).state, Some(State::Broken));
    let before = server.requests().len();
    let mut later = checker();
    later.keeping.max_age = Duration::from_secs(3600);
    let report = run(later);
    assert!(report.of(&urls[0]).reused && report.of(&urls[0]).answer.status == Some(200));
    assert!(!report.of(&urls[1]).reused);
    let asked = server.requests().split_off(before);
    assert!(
        asked.iter().all(|request| request.ends_with("/gone")),
        "{asked:?}"
    );
    let report = run(checker());
    assert!(!report.of(&urls[0]).reused);
}

#[test]
fn a_failure_of_the_own_network_is_not_the_fault_of_urls() {
    const HOSTS: usize = 24;
    let is_cut = Arc::new(AtomicBool::new(false));
    let answered = Arc::new(AtomicUsize::new(0));
    let servers: Vec<Script> = (0..HOSTS)
        .map(|_| {
            let (cut, answered) = (Arc::clone(&is_cut), Arc::clone(&answered));
            Script::start(move |request: &str| -> Answer {
                // Once all hosts have answered, the cable is cut.
                if request.ends_with("/1") {
                    if answered.fetch_add(1, Ordering::SeqCst) + 1 == HOSTS {
                        cut.store(true, Ordering::SeqCst);
                    }
                    return ok(request).into();
                }
                while !cut.load(Ordering::SeqCst) {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Answer::Reset
            })
        })
        .collect();
    let folder = Folder::new();
    let first = servers.iter().map(|server| server.url("/1"));
    let second = servers.iter().map(|server| server.url("/2"));
    let urls: Vec<String> = first.chain(second).collect();
    let mut checker = checker();
    checker.settings.transfer.connections = NonZeroUsize::MIN;
    checker.settings.host.retry.attempts = NonZeroU32::MIN;
    checker.settings.host.retry.patience = Duration::ZERO;
    let report = run(checker.input(folder.list(&urls)));
    assert_eq!(report.verdicts().len(), urls.len());
    assert_eq!(report.guards, [(Guard::OwnNetwork, true)]);
    assert_eq!(report.summary.count(Class::Network), 0);
    assert!(report.summary.count(Class::Void) > 0);
    assert_eq!(report.summary.outcome(), Outcome::Untrusted);
}

#[test]
fn a_host_that_turns_negative_as_a_whole_is_held() {
    let is_purged = Arc::new(AtomicBool::new(false));
    let purged = Arc::clone(&is_purged);
    let server = Script::start(move |request: &str| {
        let hit = purged.load(Ordering::SeqCst) && request.ends_with('3');
        match hit {
            true => response(410, "", ""),
            false => ok(request),
        }
    });
    let folder = Folder::new();
    let urls: Vec<String> = (0..100).map(|n| server.url(&format!("/{n}"))).collect();
    let state = folder.path("state");
    let checker = || {
        let mut checker = checker().input(folder.list(&urls));
        checker.keeping.state = Some(state.clone());
        checker
    };
    assert_eq!(run(checker()).summary.outcome(), Outcome::Good);
    is_purged.store(true, Ordering::SeqCst);
    let report = run(checker());
    assert_eq!(report.guards, [(Guard::HostFlip, true)]);
    assert_eq!(report.summary.count(Class::Void), 10);
    let held = report.of(&urls[13]);
    assert_eq!(held.answer.verdict, Verdict::Void(Some(Cause::Status410)));
    assert_eq!(held.state, Some(State::Quarantined));
    assert_eq!(report.summary.outcome(), Outcome::Untrusted);
    is_purged.store(false, Ordering::SeqCst);
    let report = run(checker());
    assert_eq!(report.summary.outcome(), Outcome::Good);
    assert_eq!(report.of(&urls[13]).state, Some(State::Alive));
}

#[test]
fn many_hosts_are_worked_on_in_turns() {
    let server = Script::start(ok);
    let folder = Folder::new();
    // Names below localhost are loopback addresses.
    let port = server.address.port();
    let urls: Vec<String> = (0..300)
        .flat_map(|n| {
            [1, 2].map(|page| format!("http://127.0.{}.{}:{port}/{page}", n / 250, n % 250 + 1))
        })
        .collect();
    let report = run(checker().input(folder.list(&urls)));
    let verdicts = report.verdicts();
    assert_eq!(verdicts.len(), urls.len());
    // The server listens at one of the addresses.
    assert_eq!(report.summary.count(Class::Ok), 2);
    assert_eq!(report.summary.count(Class::Network), 598);
}

/// `check` with these arguments: its exit status and its JSON lines.
fn check_json(args: &[&str]) -> (Option<i32>, Vec<serde_json::Value>) {
    let output = crawler(&[&["check", "--json", "--rate", "0"], args].concat()).output();
    let output = output.expect("the program runs");
    let lines = String::from_utf8(output.stdout).expect("UTF-8");
    let lines = lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    (output.status.code(), lines.collect())
}

#[test]
fn headers_are_for_their_hosts_alone() {
    let other = Script::start(ok);
    let redirect = format!("Location: {}\r\n", other.url("/there"));
    let own = Script::start(move |request: &str| match request {
        "HEAD /moved" | "GET /moved" => response(302, &redirect, ""),
        request => ok(request),
    });
    let url = own.url("/moved");
    let (code, lines) = check_json(&[&url, "-H", "X-Key: secret", "-u", "me:word"]);
    assert_eq!(code, Some(0), "{lines:?}");
    let is_signed =
        |head: &String| head.contains("X-Key: secret") && head.contains("Authorization: Basic");
    assert!(
        !own.heads().is_empty() && own.heads().iter().all(is_signed),
        "{:?}",
        own.heads()
    );
    let leaks = |head: &String| head.contains("X-Key") || head.contains("Authorization");
    assert!(
        !other.heads().is_empty() && !other.heads().iter().any(leaks),
        "{:?}",
        other.heads()
    );
}

#[test]
fn headers_for_no_host_are_wrong_usage() {
    let folder = Folder::new();
    let path = folder.write("a.md", "[x](http://127.0.0.1:9/)");
    let path = path.to_str().expect("UTF-8");
    let (code, lines) = check_json(&[path, "-H", "X-Key: secret"]);
    assert_eq!((code, lines.len()), (Some(2), 0));
}

/// A pipe is answered while it is still open. A place that comes after its URL was reported is a line of its own.
#[test]
fn a_pipe_is_checked_while_it_is_written() {
    let server = Script::start(ok);
    let url = server.url("/good");
    let args = [
        "check",
        "--robots=off",
        "--json",
        "--summary=json",
        "--urls",
        "-",
    ];
    let mut command = crawler(&args);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program runs");
    let mut input = child.stdin.take().expect("a pipe");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut next = || {
        let line = lines.next().expect("a line").expect("UTF-8");
        serde_json::from_str::<serde_json::Value>(&line).expect("JSON")
    };
    writeln!(input, "{url}").expect("written");
    let record = next();
    assert_eq!(
        (&record["url"], &record["method"]),
        (&json!(url), &json!("HEAD"))
    );
    assert_eq!(
        (&record["again"], &record["refs"][0]["line"]),
        (&json!(null), &json!(1))
    );
    writeln!(input, "{url}\n{url}#part").expect("written");
    for (line, url) in [(2, url.clone()), (3, format!("{url}#part"))] {
        let place = json!({"source": "-", "line": line, "column": 1, "text": ""});
        let expected =
            json!({"url": url, "again": true, "class": "ok", "status": 200, "refs": [place]});
        assert_eq!(next(), expected);
    }
    drop(input);
    let summary = &next()["summary"];
    let counts = ["urls", "references", "exit_status"].map(|name| summary[name].as_u64());
    assert_eq!(counts, [1, 3, 0].map(Some));
    assert!(child.wait().expect("ends").success());
    assert_eq!(server.requests().len(), 1);
}

/// What is judged is printed while other pages are still unread.
#[test]
fn a_recursion_prints_what_it_has_judged() {
    let (go_on, may_go_on) = mpsc::channel();
    let may_go_on = Mutex::new(may_go_on);
    let server = Script::start(move |request: &str| match request.split_once(' ') {
        Some((_, "/")) => html("<a href=\"slow\"> <a href=\"fast\">"),
        Some((_, "/slow")) => {
            let may_go_on = may_go_on.lock().expect("one thread");
            may_go_on
                .recv_timeout(Duration::from_secs(60))
                .expect("the first lines were read");
            html("<a href=\"fast\">")
        }
        _ => ok(request),
    });
    let start = server.url("/");
    let args = [
        "check",
        &start,
        "--recursive",
        "--robots=off",
        "--head=never",
        "--json",
        "--summary=json",
    ];
    let mut child = crawler(&args)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program runs");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut next = || {
        let line = lines.next().expect("a line").expect("UTF-8");
        serde_json::from_str::<serde_json::Value>(&line).expect("JSON")
    };
    assert_eq!(next()["url"], start);
    let fast = next();
    assert_eq!(fast["url"], server.url("/fast"));
    assert_eq!(fast["refs"][0]["source"], start);
    go_on.send(()).expect("the server waits");
    let rest = [next(), next()];
    let of = |path| rest.iter().find(|line| line["url"] == server.url(path));
    assert_eq!(of("/slow").expect("a line")["again"], json!(null));
    let late = of("/fast").expect("a line");
    assert_eq!(
        (&late["again"], &late["refs"][0]["source"]),
        (&json!(true), &json!(server.url("/slow")))
    );
    let summary = &next()["summary"];
    let counts = ["urls", "references"].map(|name| summary[name].as_u64());
    assert_eq!(counts, [3, 4].map(Some));
    assert!(child.wait().expect("ends").success());
}

/// What robots.txt forbids is asked once the user names it, and the answer counts.
#[test]
fn a_url_that_the_user_names_later_is_asked_anew() {
    let server = Script::start(|request: &str| match request.split_once(' ') {
        Some((_, "/robots.txt")) => response(200, "", "User-agent: *\nDisallow: /hidden"),
        Some((_, "/")) => html("<a href=\"hidden\">"),
        _ => ok(request),
    });
    let folder = Folder::new();
    for is_kept in [false, true] {
        let hidden = server.url("/hidden");
        let pipe = folder.path(if is_kept { "kept" } else { "pipe" });
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_bits_truncate(0o600),
            0,
        )
        .expect("a pipe");
        let mut checker = checker().input(input(&server.url("/")));
        checker.settings.host.robots = true;
        checker.keeping.state = is_kept.then(|| folder.path("state"));
        let checker = checker.input(Input::List(List::File(pipe.clone())));
        let mut lines = Vec::new();
        let summary = checker.run(|event| {
            if let Event::Checked(checked) = event
                && checked.url == hidden
            {
                if checked.before.is_none() {
                    std::fs::write(&pipe, &hidden).expect("written");
                }
                let source = checked.references[0].source.to_string();
                lines.push((checked.answer.verdict, source, checked.before.is_some()));
            }
            ControlFlow::Continue(())
        });
        let robots = Verdict::Failed(Cause::Robots);
        let expected = [
            (robots, server.url("/"), false),
            (Verdict::Ok, pipe.to_string_lossy().into_owned(), true),
        ];
        assert_eq!(lines, expected);
        let counts = (summary.urls, summary.count(Class::Ok), summary.references);
        assert_eq!((counts, summary.causes.len()), ((2, 2, 3), 0));
    }
}

/// What was reported before `kill -9` is not asked again, but reported.
#[test]
fn a_killed_check_is_continued() {
    let is_first = Arc::new(AtomicBool::new(true));
    let (first, asked) = (Arc::clone(&is_first), AtomicUsize::new(0));
    let server = Script::start(move |request: &str| -> Answer {
        // The first check does not come to its end.
        match asked.fetch_add(1, Ordering::SeqCst) >= 60 && first.load(Ordering::SeqCst) {
            true => Answer::Stall,
            false => ok(request).into(),
        }
    });
    let folder = Folder::new();
    let urls: Vec<String> = (0..300).map(|n| server.url(&format!("/{n}"))).collect();
    folder.list(&urls);
    let (list, state) = (folder.path("urls.txt"), folder.path("state"));
    let (list, state) = (list.to_string_lossy(), state.to_string_lossy());
    let arguments = [
        "check",
        "--robots=off",
        "--rate=0",
        "--json",
        "--state",
        &*state,
        "--urls",
        &*list,
    ];
    let mut child = crawler(&arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program runs");
    let reported = BufReader::new(child.stdout.take().expect("piped")).lines();
    let reported: Vec<String> = reported
        .take(50)
        .map(|line| line.expect("a line"))
        .collect();
    child.kill().expect("killed");
    child.wait().expect("ended");
    is_first.store(false, Ordering::SeqCst);
    let output = crawler(&arguments).output().expect("the program runs");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(lines(&output.stdout).len(), urls.len());
    let requests = server.requests();
    for line in &reported {
        let line: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let url = line["url"].as_str().expect("a URL");
        let path = url.strip_prefix(&server.url("")).expect("of the server");
        let of_it = requests
            .iter()
            .filter(|request| request.split(' ').nth(1) == Some(path));
        assert_eq!(of_it.count(), 1, "{url}");
    }
}
