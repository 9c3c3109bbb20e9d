//! The server, over real connections: who is answered, who is cut off, and what the page shows.

use std::collections::HashSet;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use tempfile::TempDir;

use super::*;
use crate::config::Loaded;
use crate::control::{CoreMessage, CoreStatus, GuardOn, HostWaits, core_channel};
use crate::core::{Reason, Waiting};
use crate::vitals::Vitals;
use plain::random::Random;
use store::sqlite::Sqlite;
use store::{
    Change, HostHold, HostId, Judgement, Lane, Lanes, NewUrl, Notice, Origin, WatchStore as _,
    WriterSettings,
};
use verdict::Answer;
use verdict::guard::Hold;
use verdict::life::{Context, Profile, State};
use verdict::{Cause, Verdict};

/// A server that runs, with all that it serves.
struct Served {
    server: Option<Server>,
    vitals: Arc<Vitals>,
    core: Option<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
    _folder: TempDir,
}

impl Served {
    fn start(config: &str) -> Self {
        Self::with(config, CoreStatus::default(), |_| {})
    }

    /// With what the core says, and what `fill` puts into the store.
    fn with(config: &str, status: CoreStatus, fill: impl FnOnce(&mut Sqlite)) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("watch.db");
        let mut engine = Sqlite::open(&file).expect("opened");
        fill(&mut engine);
        let rejected = engine.rejected_figures();
        let store = Writer::start(engine, WriterSettings::default()).expect("started");
        let vitals = Arc::new(Vitals::new(Instant::now()));
        let sources = Sources {
            checks: Arc::default(),
            store: store.figures(),
            rejected,
            vitals: Arc::clone(&vitals),
        };
        let (core, inbox) = core_channel();
        let operator = Operator {
            store,
            core,
            vitals: Arc::clone(&vitals),
            schedules: Arc::default(),
        };
        let loaded = Loaded::parse(config, Path::new("watch.toml")).expect("valid");
        let site = Site {
            hour: Arc::new(Hour::new(Arc::clone(&sources.checks), Instant::now())),
            sources,
            readings: Readings::default(),
            operator,
            reader: Mutex::new(Reader::open(&file).expect("opened")),
            http: loaded.config.http,
        };
        let listener = TcpListener::bind("127.0.0.1:0").expect("an address");
        let stop = Arc::<AtomicBool>::default();
        let stopped = Arc::clone(&stop);
        let core = thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                match inbox.take() {
                    Some(CoreMessage::Status { answer, .. }) => drop(answer.send(status.clone())),
                    Some(CoreMessage::LookAgain) => {}
                    None => thread::sleep(Duration::from_millis(1)),
                }
            }
        });
        Self {
            server: Some(Server::start(listener, site).expect("started")),
            vitals,
            core: Some(core),
            stop,
            _folder: folder,
        }
    }

    fn connect(&self) -> TcpStream {
        let address = self.server.as_ref().expect("started").address();
        let client = TcpStream::connect(address).expect("connected");
        // Nothing here takes this long.
        let longest = Duration::from_secs(60);
        client.set_read_timeout(Some(longest)).expect("set");
        client
    }

    /// What the server answers until it closes the connection.
    fn exchange(&self, request: &str) -> String {
        let mut client = self.connect();
        client.write_all(request.as_bytes()).expect("sent");
        let mut answer = String::new();
        client.read_to_string(&mut answer).expect("answered");
        answer
    }

    fn get(&self, path: &str) -> String {
        self.exchange(&format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"))
    }

    /// The status of the answer to a request without the empty line.
    fn status(&self, request: &str) -> u16 {
        let answer = self.exchange(&format!("{request}\r\n"));
        let status = answer.get(9..12).and_then(|status| status.parse().ok());
        status.unwrap_or_else(|| panic!("{request}{answer}"))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.server = None;
        self.stop.store(true, Ordering::Relaxed);
        if let Some(core) = self.core.take() {
            core.join().expect("no panic");
        }
    }
}

#[test]
fn health_and_readiness_are_answered() {
    let served = Served::start("");
    for path in ["/healthz", "/readyz"] {
        let answer = served.get(path);
        let is_good = answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\nok\n");
        assert!(is_good, "{answer}");
    }
    served.vitals.note_store(Some("no space left"));
    let answer = served.get("/readyz");
    let is_told = answer.starts_with("HTTP/1.1 503 ") && answer.contains("no space left");
    assert!(is_told, "{answer}");
    assert!(served.get("/healthz").starts_with("HTTP/1.1 200 "));
    served.vitals.note_store(None);
    served.vitals.drain();
    assert!(served.get("/readyz").starts_with("HTTP/1.1 503 "));
    let metrics = served.get("/metrics");
    let is_good = metrics.contains("application/openmetrics-text") && metrics.ends_with("# EOF\n");
    assert!(is_good, "{metrics}");
}

#[test]
fn only_names_of_the_service_are_answered() {
    let near = Served::start("");
    let config = "http.allow_remote = true\nhttp.names = ['watch.example.org']\nhttp.listen = '192.0.2.1:9400'\n";
    let remote = Served::start(config);
    for (host, of_near, of_remote) in [
        ("localhost:80", 200, 200),
        ("LOCALHOST", 200, 200),
        ("[::1]:9", 200, 200),
        ("127.9.9.9", 200, 200),
        ("localhost:", 200, 200),
        ("192.0.2.1:9400", 421, 200),
        ("Watch.Example.ORG:443", 421, 200),
        ("192.0.2.2", 421, 421),
        ("evil.example", 421, 421),
        ("localhost.evil.example", 421, 421),
        ("a.watch.example.org", 421, 421),
        ("localhost:x", 421, 421),
        ("localhost:123456", 421, 421),
        ("[::1", 421, 421),
        ("[::1]evil.example", 421, 421),
        ("localhost\r\nHost: localhost", 400, 400),
    ] {
        let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\n");
        assert_eq!(near.status(&request), of_near, "{host}");
        assert_eq!(remote.status(&request), of_remote, "{host}");
    }
    for (request, expected) in [
        ("GET /healthz HTTP/1.1\r\n", 400),
        (
            "GET http://localhost/healthz HTTP/1.1\r\nHost: localhost\r\n",
            200,
        ),
        (
            "GET http://evil.example/healthz HTTP/1.1\r\nHost: localhost\r\n",
            421,
        ),
        (
            "GET http://localhost/healthz HTTP/1.1\r\nHost: evil.example\r\n",
            421,
        ),
    ] {
        assert_eq!(near.status(request), expected, "{request}");
    }
}

#[test]
fn four_paths_are_read_and_nothing_else_is_there() {
    let served = Served::start("");
    for path in ["/", "/metrics", "/healthz", "/readyz", "/?a=b"] {
        let status = |method: &str, more: &str| {
            let head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{more}");
            served.status(&head)
        };
        assert_eq!(
            (status("GET", ""), status("HEAD", "")),
            (200, 200),
            "{path}"
        );
        for method in ["POST", "PUT", "DELETE", "OPTIONS", "TRACE"] {
            assert_eq!(
                status(method, "Content-Length: 0\r\n"),
                405,
                "{method} {path}"
            );
        }
    }
    let head = served.exchange("HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(head.ends_with("\r\n\r\n"), "{head}");
    for path in [
        "/version",
        "/api/v1/urls",
        "/../metrics",
        "/%2e%2e/metrics",
        "//metrics",
        "/metrics/",
        "/metrics%00",
        "/%6detrics",
    ] {
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n");
        assert_eq!(served.status(&request), 404, "{path}");
    }
    let long = "x".repeat(LARGEST_HEAD);
    let request = format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {long}\r\n");
    assert_eq!(served.status(&request), 431);
}

#[test]
fn a_slow_client_is_cut_off() {
    let served = Served::start("");
    let mut slow = served.connect();
    slow.write_all(b"GET /healthz HTTP/1.1\r\nHost: loc")
        .expect("sent");
    let silent = served.connect();
    for mut client in [slow, silent] {
        let mut rest = Vec::new();
        let end = client.read_to_end(&mut rest);
        let is_open = |error: &io::Error| error.kind() == io::ErrorKind::WouldBlock;
        assert!(!end.as_ref().is_err_and(is_open), "it is still open");
        let is_cut = end.is_err() || rest.is_empty() || rest.starts_with(b"HTTP/1.1 4");
        assert!(is_cut, "{end:?} {rest:?}");
    }
}

#[test]
fn connections_beyond_the_limit_wait() {
    let served = Served::start("http.connections = 1\n");
    let first = served.connect();
    let mut second = served.connect();
    second
        .write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .expect("sent");
    second
        .set_read_timeout(Some(Duration::from_millis(200)))
        .expect("a socket");
    let early = second.read(&mut [0]).expect_err("it waits");
    assert_eq!(early.kind(), io::ErrorKind::WouldBlock);
    second.set_read_timeout(None).expect("a socket");
    drop(first);
    let mut answer = String::new();
    second.read_to_string(&mut answer).expect("answered");
    assert!(answer.ends_with("ok\n"), "{answer}");
}

/// Puts these URLs into a set, and has each answered with 410.
fn fill(store: &mut Sqlite, urls: &[&str]) -> HostId {
    let start = Timestamp::now();
    let new: Vec<NewUrl> = urls
        .iter()
        .map(|url| NewUrl::parse(url).expect("a URL"))
        .collect();
    store
        .submit("<b>docs</b>", Origin::Hand, &new, start)
        .expect("written");
    let (rules, mut random) = (Profile::Default.rules(), Random::new(1));
    let ready = store.ready(Lanes::Schedule, start, &HashSet::new(), 9);
    let host = ready.expect("read")[0].host.id;
    let due = store
        .due(host, Lane::Routine, None, start, 9)
        .expect("read");
    let judged = due.into_iter().map(|due| {
        let (mut life, verdict) = (due.life, Verdict::Failed(Cause::Status410));
        let context = Context {
            is_control_fine: true,
            ..Context::default()
        };
        let answered = (verdict, Some(410));
        let decision = rules.decide(start, &mut life, answered, &context, &mut random);
        let change = decision
            .transition
            .map(|change| Change::new(&change, Some(410)));
        Judgement {
            id: due.id,
            next: Some((Lane::of(life.state(), false), decision.due)),
            answer: Some(Answer::of(verdict)),
            changes: change.into_iter().collect(),
            life,
            dead_letter: None,
        }
    });
    let judged: Vec<Judgement> = judged.collect();
    let done = store.judge(&judged).expect("written");
    assert_eq!(done.stored as usize, urls.len());
    host
}

#[test]
fn the_page_shows_everything_and_nothing_of_it_is_a_tag() {
    let since = Timestamp::now();
    let evil = "http://h.test/?\"'><script>alert(1)</script>";
    let status = CoreStatus {
        own_network: Some(GuardOn {
            since,
            why: "<i>no route</i>".to_owned(),
        }),
        longest: vec![HostWaits {
            root: "http://slow.test/".to_owned(),
            under_way: 0,
            waiting: 3,
            waits: vec![Waiting {
                reason: Reason::BackOff,
                until: None,
            }],
        }],
        parked: 1,
        ..CoreStatus::default()
    };
    let served = Served::with("", status, |store| {
        let host = fill(store, &[evil, "http://joe:secret@h.test/a"]);
        let hold = HostHold {
            host,
            root: "http://h.test/".to_owned(),
            hold: Hold {
                since,
                sampled_at: None,
                was_sample_good: false,
            },
            held: 0,
            ending: None,
        };
        store.save_hold(&hold).expect("written");
        let notice = Notice {
            at: since,
            kind: "hold".to_owned(),
            host: Some(host),
            who: Some("<u>me</u>".to_owned()),
            text: "turned <s>bad</s>\u{202e}".to_owned(),
        };
        store.note(&notice).expect("written");
    });
    let answer = served.get("/");
    let (head, page) = answer.split_once("\r\n\r\n").expect("an answer");
    for expected in [
        "the own network fails since",
        "&lt;i&gt;no route&lt;/i&gt;",
        "http://h.test/?&quot;'&gt;&lt;script&gt;alert(1)&lt;/script&gt;",
        "http://***@h.test/a",
        State::Suspect.name(),
        "status_410",
        "NEW → SUSPECT",
        "<td>&lt;b&gt;docs&lt;/b&gt;</td><td>2 URLs</td>",
        "http://slow.test/",
        "the host asked for fewer requests",
        "many of its URLs turned bad at once",
        "turned &lt;s&gt;bad&lt;/s&gt;\\u{202e}",
        "&lt;u&gt;me&lt;/u&gt;",
        "<polyline points=\"\"",
        "<meta http-equiv=\"refresh\"",
    ] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    assert!(
        !page.contains("<script") && !page.contains("secret"),
        "{page}"
    );
    // The policy allows the style of the page, and nothing else.
    let style = page.split_once("<style>").expect("a style").1;
    let (style, _) = style.split_once("</style>").expect("its end");
    let hash = ring::digest::digest(&ring::digest::SHA256, style.as_bytes());
    let hash = base64::Engine::encode(&base64::prelude::BASE64_STANDARD, hash);
    for field in [
        format!("content-security-policy: default-src 'none'; style-src 'sha256-{hash}'; "),
        "frame-ancestors 'none'".to_owned(),
        "x-content-type-options: nosniff".to_owned(),
        "referrer-policy: no-referrer".to_owned(),
        "cross-origin-resource-policy: same-origin".to_owned(),
        "cache-control: no-store".to_owned(),
    ] {
        assert!(head.contains(&field), "{field}: {head}");
    }
}
