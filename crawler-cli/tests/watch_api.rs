//! The API of `crawler-cli watch run`, as programs use it: each example of its documentation, requests that are repeated
//! after kill -9, addresses that must not be reached, and where a token must not be found.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crawler_cli::check::guard::Hold;
use crawler_cli::store::sqlite::Sqlite;
use crawler_cli::store::{
    Buried, HostHold, JobStore as _, NewDeadLetter, NewUrl, Origin, Pause, PauseStore as _, Scope,
    WatchStore as _,
};
use jiff::Timestamp;
use regex::Regex;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};

mod common;

use common::service::{PATIENCE, Service, folder, stdout, watch};
use common::{Script, page, response};

/// An answer of the service.
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    #[track_caller]
    fn value(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("JSON: {}", self.body))
    }
}

/// Sends a request. `fields` are lines of its head, each with its end.
fn send(service: &Service, method: &str, path: &str, fields: &str, body: &str) -> Answer {
    let mut stream = TcpStream::connect(&service.address).expect("connected");
    stream.set_read_timeout(Some(PATIENCE)).expect("set");
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n{fields}\r\n{body}"
    );
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("answered");
    let (head, body) = answer.split_once("\r\n\r\n").expect("an answer");
    Answer {
        status: head[9..12].parse().expect("a status"),
        head: head.to_owned(),
        body: body.to_owned(),
    }
}

fn post(service: &Service, path: &str, fields: &str, body: &Value) -> Answer {
    let fields = format!("Content-Type: application/json\r\n{fields}");
    send(service, "POST", path, &fields, &body.to_string())
}

/// Waits until a URL is as wished.
fn url_that(service: &Service, url: &str, fields: &str, is_it: impl Fn(&Value) -> bool) -> Value {
    let query: String = url::form_urlencoded::byte_serialize(url.as_bytes()).collect();
    let end = Instant::now() + PATIENCE;
    loop {
        let answer = send(
            service,
            "GET",
            &format!("/api/v1/url?url={query}"),
            fields,
            "",
        );
        let value = answer.value();
        if answer.status == 200 && is_it(&value) {
            return value;
        }
        assert!(Instant::now() < end, "{url}: {value}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// A new token of the store of this folder.
fn token(folder: &Path, name: &str) -> String {
    let output = watch(folder, &["token", "add", name, "--write", "--json"]);
    let made: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    made["token"].as_str().expect("a token").to_owned()
}

/// An example of the documentation: what is run, what is shown, and where that is in the text.
struct Example {
    command: String,
    shown: String,
    place: std::ops::Range<usize>,
}

fn examples(text: &str) -> Vec<Example> {
    let block = Regex::new(r"(?s)```sh\n(.*?)```\n\n```json\n(.*?)```\n").expect("a pattern");
    let found = block.captures_iter(text).map(|found| Example {
        command: found[1].to_owned(),
        shown: found[2].to_owned(),
        place: found.get(2).expect("a part").range(),
    });
    let found: Vec<_> = found.collect();
    assert_eq!(
        found.len(),
        text.matches("```sh\n").count(),
        "each has its answer"
    );
    found
}

/// Whether two answers have the same shape: the same fields and values, but for times and what differs from run to run.
fn is_like(name: &str, one: &Value, other: &Value) -> Result<(), String> {
    let differ = || Err(format!("{name}: {one} is shown, and {other} is answered"));
    let is_time = |value: &Value| {
        value
            .as_str()
            .is_some_and(|text| text.parse::<Timestamp>().is_ok())
    };
    match (one, other) {
        _ if is_time(one) && is_time(other) => Ok(()),
        (Value::Object(fields), Value::Object(others)) => {
            if !fields.keys().eq(others.keys()) {
                return differ();
            }
            let mut pairs = fields.iter().zip(others.values());
            pairs.try_for_each(|((name, one), other)| is_like(name, one, other))
        }
        (Value::Array(items), Value::Array(others)) => {
            if items.len() != others.len() {
                return differ();
            }
            let mut pairs = items.iter().zip(others);
            pairs.try_for_each(|(one, other)| is_like(name, one, other))
        }
        _ if one == other => Ok(()),
        (Value::Number(_), Value::Number(_)) | (Value::String(_), Value::String(_))
            if VARIES.contains(&name) =>
        {
            Ok(())
        }
        _ => differ(),
    }
}

/// What differs from run to run.
const VARIES: [&str; 5] = ["bytes", "process", "latency_ms", "text", "version"];

/// Each example is run as it stands, in its order. With `COURSER_WRITE_API_MD` set, the answers are written down.
#[test]
fn the_documentation_shows_what_is_answered() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("contrib/api.md");
    let text = fs::read_to_string(&path).expect("contrib/api.md");
    let site = Script::start(|request| match request.ends_with("/old") {
        true => response(410, "", ""),
        false => page(&[]),
    });
    let own = site.url("/");
    let config = "[limits]\nallow_private = true\nper_host_rate = 0\n[reconcile]\ninterval = \"1d\"\n\
        [[set]]\nname = \"docs\"\nurls = \"urls.txt\"\n\
        [[schedule]]\nname = \"nightly\"\ncron = \"15 2 * * *\"\njob = { check = \"docs\" }\n";
    let folder = folder(config, std::slice::from_ref(&own));
    prepare(&folder.path().join("watch.db"));
    let token = token(folder.path(), "program");
    let service = Service::start(folder.path());
    let fields = format!("Authorization: Bearer {token}\r\n");
    url_that(&service, &own, &fields, |url| url["state"] == "ALIVE");
    let old = format!("{own}old");
    let body = json!({ "set": "docs", "urls": [old] });
    assert_eq!(post(&service, "/api/v1/urls", &fields, &body).status, 202);
    url_that(&service, &old, &fields, |url| url["state"] == "SUSPECT");

    let to_own = |text: &str| text.replace("http://www.example.com/", &own);
    let place = folder.path().display().to_string();
    let from_own = |text: &str| {
        let text = text.replace(&own, "http://www.example.com/");
        text.replace(&place, "/var/lib/courser")
    };
    let (mut written, mut differs, mut end) = (String::new(), Vec::new(), 0);
    for example in examples(&text) {
        let output = Command::new("sh")
            .args(["-euc", &to_own(&example.command)])
            .env("COURSER", format!("http://{}", service.address))
            .env("TOKEN", &token)
            .env_remove("http_proxy")
            .output()
            .expect("a shell");
        let answer = from_own(&String::from_utf8_lossy(&output.stdout));
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        let answered: Value = serde_json::from_str(&answer)
            .unwrap_or_else(|_| panic!("{}\n{answer}{error}", example.command));
        let shown = serde_json::from_str(&example.shown).unwrap_or_default();
        if let Err(why) = is_like("the answer", &shown, &answered) {
            differs.push(format!("{}{why}", example.command));
        }
        written += &text[end..example.place.start];
        written += &serde_json::to_string_pretty(&answered).expect("JSON");
        written += "\n";
        end = example.place.end;
    }
    written += &text[end..];
    if std::env::var_os("COURSER_WRITE_API_MD").is_some() {
        fs::write(&path, written).expect("written");
        return;
    }
    assert!(differs.is_empty(), "{}", differs.join("\n"));
}

/// A host that is held, and paused, so that it is not asked; and a dead letter.
fn prepare(store: &Path) {
    let mut store = Sqlite::open(store).expect("a store");
    let (root, now) = ("http://www.example.org/", Timestamp::now());
    let url = NewUrl::parse(root).expect("a URL");
    let submitted = store.submit("mirrors", Origin::Hand, &[url], now);
    assert_eq!(submitted.expect("written").new, 1);
    let what = Scope::Host(root.to_owned());
    let who = "uid 0".to_owned();
    let since = now;
    store.pause(&Pause { what, since, who }).expect("written");
    let host = store.host(root).expect("read").expect("watched").host.id;
    let hold = Hold {
        since: now,
        sampled_at: None,
        was_sample_good: false,
    };
    let held = HostHold {
        host,
        root: root.to_owned(),
        hold,
        held: 0,
        ending: None,
    };
    store.save_hold(&held).expect("written");
    let letter = NewDeadLetter {
        reason: "invalid_url".to_owned(),
        attempts: 1,
        last: "not a URL".to_owned(),
        first_at: now,
        last_at: now,
    };
    let text = Buried::Text("http://[".to_owned());
    store.bury(&text, &letter).expect("written");
}

#[test]
fn the_documentation_has_every_route() {
    let routes = include_str!("../src/watch/api/mod.rs");
    let text = include_str!("../contrib/api.md");
    let route = Regex::new(r#"\.route\("(/api/v1[^"]*)", (.*)\)"#).expect("a pattern");
    let commands: Vec<String> = examples(text)
        .into_iter()
        .map(|example| example.command)
        .collect();
    let mut count = 0;
    for found in route.captures_iter(routes) {
        let (path, methods) = (&found[1], &found[2]);
        for (method, is_post) in [("get(", false), ("post(", true)] {
            let has = |command: &&String| {
                let is_path = command.contains(&format!("$COURSER{path}\""))
                    || command.contains(&format!("$COURSER{path}?"));
                let sends = command.contains(" -d ") || command.contains("--data-binary");
                is_path && sends == is_post
            };
            if methods.contains(method) {
                assert!(
                    commands.iter().any(|command| has(&command)),
                    "{method}{path}"
                );
                count += 1;
            }
        }
    }
    assert!(count >= 23, "{count} routes");
}

#[test]
fn a_request_is_done_once_also_after_a_kill() {
    let folder = folder("", &[]);
    let mut pause = Duration::ZERO;
    for round in 0..6 {
        let urls: Vec<_> = (0..500)
            .map(|number| format!("http://127.0.0.1:9/{round}/{number}"))
            .collect();
        let body = json!({ "set": "all", "urls": urls });
        let key = format!("Idempotency-Key: round-{round}\r\n");
        let mut service = Service::start(folder.path());
        let text = body.to_string();
        let mut stream = TcpStream::connect(&service.address).expect("connected");
        let request = format!(
            "POST /api/v1/urls HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n{key}\r\n{text}",
            text.len()
        );
        stream.write_all(request.as_bytes()).expect("sent");
        // Before, while or after the URLs are stored: what follows holds for all of them.
        thread::sleep(pause);
        pause += Duration::from_millis(8);
        service.child.kill().expect("killed");
        service.child.wait().expect("ended");
        let mut answer = String::new();
        // Nothing, or all of it.
        let _ = stream.read_to_string(&mut answer);

        let service = Service::start(folder.path());
        let first = post(&service, "/api/v1/urls", &key, &body);
        assert_eq!(first.status, 202, "{}", first.body);
        let value = first.value();
        // Had they been stored without the answer, they would be known.
        assert_eq!(
            (&value["new"], &value["known"]),
            (&json!(500), &json!(0)),
            "{value}"
        );
        if answer.starts_with("HTTP/1.1 202 ") {
            assert!(
                first.head.contains("idempotency-replayed: true"),
                "{}",
                first.head
            );
        }
        let again = post(&service, "/api/v1/urls", &key, &body);
        assert!(
            again.head.contains("idempotency-replayed: true"),
            "{}",
            again.head
        );
        assert_eq!(again.body, first.body);
        drop(service);
    }
    assert_eq!(
        watch(folder.path(), &["db", "check"]).status.code(),
        Some(0)
    );
}

#[test]
fn private_addresses_are_not_reached_by_what_is_submitted() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let folder = folder(
        "[limits]\nper_host_rate = 0\n[log]\nlevel = \"trace\"\n",
        &[],
    );
    let service = Service::start(folder.path());
    let urls: Vec<String> = [
        "127.0.0.1",
        "localhost",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "2130706433",
        "0x7f.1",
        "127.1",
        "0.0.0.0",
        "me:hunter2@127.0.0.1",
    ]
    .map(|host| format!("http://{host}:{port}/x"))
    .to_vec();
    let body = json!({ "urls": urls });
    let answer = post(&service, "/api/v1/urls", "", &body).value();
    assert_eq!(answer["rejected"], 0, "{answer}");
    for url in &urls {
        let value = url_that(&service, url, "", |url| url["cause"].is_string());
        assert_eq!(value["cause"], "private_address", "{value}");
    }
    listener.set_nonblocking(true).expect("set");
    let reached = listener.accept().map_err(|error| error.kind());
    assert!(
        matches!(reached, Err(std::io::ErrorKind::WouldBlock)),
        "{reached:?}"
    );

    let body = json!({ "urls": ["file:///etc/passwd", "ftp://a/", "gopher://a/", "javascript:alert(1)", "//a/", "http://me:hunter2@[/"] });
    let answer = post(&service, "/api/v1/urls", "", &body);
    assert_eq!(answer.value()["rejected"], 6, "{}", answer.body);
    assert!(!answer.body.contains("hunter2"), "{}", answer.body);
    let body = json!({ "urls": [urls[8]] });
    assert_eq!(
        post(&service, "/api/v1/urls/recheck", "", &body).status,
        200
    );
    for path in [
        "/api/v1/urls",
        "/api/v1/notices",
        "/api/v1/changes",
        "/api/v1/hosts",
        "/api/v1/status",
        "/",
        "/urls",
        "/metrics",
    ] {
        let answer = send(&service, "GET", path, "", "");
        assert_eq!(answer.status, 200, "{path}");
        assert!(!answer.body.contains("hunter2"), "{path}: {}", answer.body);
    }
    let log = service.end();
    assert!(!log.contains("hunter2"), "{log}");
}

#[test]
fn a_token_is_found_nowhere() {
    for format in ["text", "json"] {
        let config = format!("[log]\nformat = \"{format}\"\nlevel = \"trace\"\n");
        let folder = folder(&config, &[]);
        let service = Service::start(folder.path());
        let token = token(folder.path(), "program");
        let bearer = format!("Authorization: Bearer {token}\r\n");
        let mut told = Vec::new();
        let mut get = |path: &str, fields: &str, status: u16| {
            let answer = send(&service, "GET", path, fields, "");
            assert_eq!(answer.status, status, "{path}: {}", answer.body);
            told.push(answer.head + &answer.body);
        };
        for path in [
            "/",
            "/urls",
            "/hosts",
            "/log",
            "/config",
            "/metrics",
            "/version",
            "/api/v1/status",
            "/api/v1/notices",
        ] {
            get(path, &bearer, 200);
        }
        // Where it does not belong.
        get(&format!("/{token}"), &bearer, 404);
        get(&format!("/api/v1/url?url={token}"), &bearer, 404);
        get(&format!("/api/v1/status?token={token}"), &bearer, 400);
        get(
            "/metrics",
            &format!("Authorization: Basic {token}\r\n"),
            401,
        );
        get(
            "/metrics",
            &format!("Authorization: Bearer {token}x\r\n"),
            401,
        );
        get("/metrics", &format!("Cookie: courser={token}\r\n"), 401);
        let body = json!({ "urls": ["http://127.0.0.1:9/"] });
        told.push(post(&service, "/api/v1/urls", &bearer, &body).body);

        let login = send(&service, "GET", "/login", "", "").body;
        let (_, rest) = login.split_once("name=\"csrf\" value=\"").expect("a form");
        let csrf = rest.split('"').next().expect("a value");
        let form = "Content-Type: application/x-www-form-urlencoded\r\n";
        let mut session = None;
        for given in [format!("{token}x"), token.clone()] {
            let text = format!("csrf={csrf}&back=/&token={given}");
            let answer = send(&service, "POST", "/login", form, &text);
            session = answer.head.lines().find_map(|line| {
                let cookie = line.strip_prefix("set-cookie: courser=")?;
                Some(cookie.split(';').next()?.to_owned())
            });
            told.push(answer.body);
        }
        let session = session.expect("a session");
        let cookie = format!("Cookie: courser={session}\r\n");
        for path in ["/", "/log"] {
            told.push(send(&service, "GET", path, &cookie, "").body);
        }
        let process = Path::new("/proc").join(service.child.id().to_string());
        for name in ["cmdline", "environ"] {
            let text = fs::read(process.join(name)).expect("a process");
            told.push(String::from_utf8_lossy(&text).into_owned());
        }
        told.push(service.end());
        for file in fs::read_dir(folder.path()).expect("a folder") {
            let bytes = fs::read(file.expect("a file").path()).expect("a file");
            told.push(String::from_utf8_lossy(&bytes).into_owned());
        }
        // The part that opens, the half of it, and the code of the session.
        let secret = &token[17..];
        let code = session.rsplit('.').next().expect("a code");
        for text in told {
            for part in [secret, &secret[..21], &secret[21..], code] {
                assert!(!text.contains(part), "{format}: {text}");
            }
        }
    }
}

#[test]
fn ten_thousand_slow_connections_keep_nobody_out() {
    const MANY: u64 = 10_000;
    let limit = getrlimit(Resource::Nofile);
    let needed = MANY + 1_000;
    if limit.maximum.is_some_and(|most| most < needed) {
        println!("skipped: no process may have {needed} descriptors here");
        return;
    }
    let folder = folder("", &[]);
    // The limit of the service is the one that it has by itself.
    let service = Service::start(folder.path());
    let more = Rlimit {
        current: Some(limit.current.unwrap_or(needed).max(needed)),
        ..limit
    };
    setrlimit(Resource::Nofile, more).expect("allowed");
    let mut slow = Vec::new();
    for number in 0..MANY {
        let mut stream = TcpStream::connect(&service.address).expect("connected");
        // Those that were cut off cannot be written to.
        let _ = stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: loc");
        slow.push(stream);
        // The queue of the system has room for about a hundred.
        if number % 100 == 0 {
            let (status, _) = service.page("/healthz");
            assert_eq!(status, 200, "after {number}");
        }
    }
    let (status, _) = service.page("/api/v1/status");
    assert_eq!(status, 200);
    let body = json!({ "urls": ["http://127.0.0.1:9/"] });
    assert_eq!(post(&service, "/api/v1/urls", "", &body).status, 202);
    drop(slow);
    service.end();
}
