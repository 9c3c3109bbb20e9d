//! `crawler-cli watch run` as an operator runs it: signals, the service manager, health, metrics and logs. Each test waits
//! for a line, a request or a state, and never for a time.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::process::Stdio;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use rustix::process::Signal;
use store::WatchStore as _;
use store::sqlite::Sqlite;

use crate::common::service::{PATIENCE, Service, folder, service, stdout, watch};
use crate::common::stderr;

/// A web server that tells the test of each request and answers it when the test says so.
struct Site {
    address: String,
    requests: Receiver<Asked>,
}

/// A request that waits for its answer.
struct Asked {
    line: String,
    stream: TcpStream,
}

impl Site {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let (sender, requests) = channel();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (Ok(stream), sender) = (stream, sender.clone()) else {
                    return;
                };
                thread::spawn(move || serve(stream, &sender));
            }
        });
        Self { address, requests }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }

    /// The next request for something else than robots.txt, which is not there.
    fn next(&self) -> Asked {
        loop {
            let asked = self.requests.recv_timeout(PATIENCE).expect("a request");
            match asked.line.contains("/robots.txt") {
                true => asked.answer("404 Not Found"),
                false => return asked,
            }
        }
    }

    /// Answers each request from now on.
    fn answer_all(self) {
        thread::spawn(move || {
            for asked in self.requests {
                let status = match asked.line.contains("/robots.txt") {
                    true => "404 Not Found",
                    false => "200 OK",
                };
                asked.answer(status);
            }
        });
    }
}

impl Asked {
    fn answer(mut self, status: &str) {
        // The client may have gone.
        let _ = write!(
            self.stream,
            "HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        );
        let _ = self.stream.shutdown(Shutdown::Write);
    }
}

/// Reads one request. Connections are closed after the answer.
fn serve(stream: TcpStream, sender: &Sender<Asked>) {
    let mut reader = BufReader::new(&stream);
    let mut line = String::new();
    if reader.read_line(&mut line).is_err() {
        return;
    }
    let mut field = String::new();
    while reader.read_line(&mut field).is_ok_and(|length| length > 2) {
        field.clear();
    }
    if let Ok(stream) = stream.try_clone() {
        let _ = sender.send(Asked { line, stream });
    }
}

#[test]
fn three_lines_are_enough() {
    let site = Site::start();
    let folder = folder(THREE_LINES, &[site.url("a"), site.url("b")]);
    site.answer_all();
    let service = Service::start(folder.path());
    let good = "courser_check_results_total{class=\"ok\",code=\"2xx\"} 2";
    let metrics = service.page_with("/metrics", good);
    assert!(metrics.ends_with("# EOF\n"), "{metrics}");
    service.page_with("/metrics", "courser_check_stored_total 2");
    assert_eq!(service.page("/healthz").0, 200);
    assert_eq!(service.page("/readyz").0, 200);
    let page = service.page("/").1;
    assert!(page.contains("Asking") && page.contains("ALIVE"), "{page}");
    let log = service.end();
    assert!(log.contains("started") && log.contains("ended"), "{log}");
}

#[test]
fn a_hang_up_applies_a_good_configuration() {
    let site = Site::start();
    let folder = folder(THREE_LINES, &[]);
    let mut service = Service::start(folder.path());
    service.line("started");
    fs::write(folder.path().join("urls.txt"), site.url("new")).expect("written");
    let config = format!("{THREE_LINES}log.level = 'debug'\npolicy.grace = '1h'\n");
    fs::write(folder.path().join("watch.toml"), config).expect("written");
    service.signal(Signal::HUP);
    let line = service.line("the configuration was read again");
    assert!(line.contains("log.level, policy.grace"), "{line}");
    let asked = site.next();
    assert!(asked.line.contains("/new "), "{}", asked.line);
    asked.answer("200 OK");
    let metrics = service.page_with("/metrics", "courser_config_reloads_total 1");
    assert!(
        metrics.contains("courser_config_reload_success 1"),
        "{metrics}"
    );
    site.answer_all();
    service.end();
}

#[test]
fn a_hang_up_keeps_the_old_configuration_if_the_new_one_is_wrong() {
    let folder = folder(THREE_LINES, &[]);
    let mut service = Service::start(folder.path());
    let file = folder.path().join("watch.toml");
    fs::write(&file, "[limits]\nper_host_rat = 1\ntimeout = 'x'\n").expect("written");
    service.signal(Signal::HUP);
    let first = service.line("watch.toml:2:1: ");
    assert!(first.contains("did you mean per_host_rate?"), "{first}");
    service.line("watch.toml:3:11: ");
    service.line("the configuration stays as it was");
    let metrics = service.page_with("/metrics", "courser_config_reloads_total 1");
    assert!(
        metrics.contains("courser_config_reload_success 0"),
        "{metrics}"
    );
    // What needs a restart keeps the rest from being applied, too.
    let config = format!("{THREE_LINES}limits.connections = 7\npolicy.grace = '1h'\n");
    fs::write(&file, config).expect("written");
    service.signal(Signal::HUP);
    let restart = service.line("a restart is needed");
    assert!(restart.ends_with("limits.connections"), "{restart}");
    service.line("the configuration stays as it was");
    fs::remove_file(&file).expect("removed");
    service.signal(Signal::HUP);
    service.line("No such file");
    service.line("the configuration stays as it was");
    fs::write(&file, THREE_LINES).expect("written");
    service.signal(Signal::HUP);
    service.line("the configuration was read again");
    service.page_with("/metrics", "courser_config_reload_success 1");
    service.end();
}

#[test]
fn a_drain_finishes_what_is_under_way() {
    let site = Site::start();
    let url = site.url("slow");
    let folder = folder(THREE_LINES, std::slice::from_ref(&url));
    let mut service = Service::start(folder.path());
    let asked = site.next();
    service.signal(Signal::TERM);
    service.line("draining");
    service.page_with("/readyz", "about to end");
    assert_eq!(service.page("/healthz").0, 200);
    asked.answer("200 OK");
    let status = service.wait();
    let log = service.rest_of_log();
    assert_eq!(status.code(), Some(0), "{log}");
    let mut store = Sqlite::open(&folder.path().join("watch.db")).expect("free");
    let detail = store.show(&url).expect("read").expect("known");
    assert!(detail.url.answer.is_some(), "{detail:?}");
}

#[test]
fn a_drain_releases_what_does_not_finish() {
    let site = Site::start();
    let url = site.url("never");
    let config = format!("{THREE_LINES}limits.drain_timeout = '300ms'\n");
    let folder = folder(&config, std::slice::from_ref(&url));
    let mut service = Service::start(folder.path());
    let _held = site.next();
    service.signal(Signal::TERM);
    let status = service.wait();
    let log = service.rest_of_log();
    assert_eq!(status.code(), Some(0), "{log}");
    let mut store = Sqlite::open(&folder.path().join("watch.db")).expect("free");
    let detail = store.show(&url).expect("read").expect("known");
    assert!(
        detail.url.answer.is_none() && detail.url.due.is_some(),
        "{detail:?}"
    );
}

#[test]
fn a_drain_does_not_wait_for_a_reading_that_hangs() {
    let site = Site::start();
    let sitemap = site.url("sitemap.xml");
    let config = format!(
        "limits.allow_private = true\nlimits.drain_timeout = '300ms'\nlimits.timeout = 0\n\
         set = [{{ name = 'docs', sitemap = '{sitemap}' }}]\n"
    );
    let folder = folder(&config, &[]);
    let mut service = Service::start(folder.path());
    // The answer never comes.
    let _held = site.next();
    service.signal(Signal::TERM);
    let status = service.wait();
    assert_eq!(status.code(), Some(0), "{}", service.rest_of_log());
}

#[test]
fn a_second_signal_ends_at_once() {
    let site = Site::start();
    let config = format!("{THREE_LINES}limits.drain_timeout = 0\nlimits.timeout = 0\n");
    let folder = folder(&config, &[site.url("never")]);
    let mut service = Service::start(folder.path());
    let _held = site.next();
    service.signal(Signal::TERM);
    service.line("draining");
    service.signal(Signal::TERM);
    assert_eq!(service.wait().code(), Some(130));
}

#[test]
fn the_service_manager_is_told() {
    let folder = folder(THREE_LINES, &[]);
    let path = folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).expect("a socket");
    socket.set_read_timeout(Some(PATIENCE)).expect("set");
    let variables = [
        ("NOTIFY_SOCKET", path.to_str().expect("text")),
        ("WATCHDOG_USEC", "200000"),
    ];
    let told = |wanted: &str| {
        let mut all = Vec::new();
        loop {
            let mut buffer = [0; 4096];
            let length = socket
                .recv(&mut buffer)
                .unwrap_or_else(|error| panic!("{wanted}: {error} {all:?}"));
            let message = String::from_utf8_lossy(&buffer[..length]).into_owned();
            if message.lines().any(|line| line == wanted) {
                return message;
            }
            all.push(message);
        }
    };
    let mut service = Service::start_with(folder.path(), &variables);
    told("READY=1");
    // The loop feeds the watchdog again and again.
    for _ in 0..3 {
        told("WATCHDOG=1");
    }
    service.signal(Signal::HUP);
    let reloading = told("RELOADING=1");
    assert!(reloading.contains("MONOTONIC_USEC="), "{reloading}");
    told("READY=1");
    service.line("the configuration was read again");
    service.signal(Signal::TERM);
    told("STOPPING=1");
    assert_eq!(service.wait().code(), Some(0));
}

#[test]
fn a_source_that_was_refused_is_told_and_can_be_taken() {
    let site = Site::start();
    let urls: Vec<String> = (0..4).map(|n| site.url(&n.to_string())).collect();
    let folder = folder(THREE_LINES, &urls);
    site.answer_all();
    let mut service = Service::start(folder.path());
    service.page_with(
        "/metrics",
        "courser_watch_set_members{set=\"docs\",state=\"ALIVE\"} 4",
    );
    service.page_with("/metrics", "courser_watch_set_source_ok{set=\"docs\"} 1");
    fs::write(folder.path().join("urls.txt"), &urls[0]).expect("written");
    service.signal(Signal::HUP);
    service.line("3 of 4 URLs are missing");
    service.page_with("/metrics", "courser_watch_set_source_ok{set=\"docs\"} 0");
    let status = stdout(&watch(folder.path(), &["status", "docs"]));
    assert!(
        status.contains("source refused: 3 of 4 URLs are missing"),
        "{status}"
    );
    assert!(service.page("/").1.contains("source refused: 3 of 4 URLs"));
    let accept = || watch(folder.path(), &["add", "--set", "docs", "--accept-shrink"]);
    assert_eq!(stdout(&accept()), "set docs: removed 3 URLs\n");
    assert_eq!(accept().status.code(), Some(1));
    service.page_with(
        "/metrics",
        "courser_watch_set_members{set=\"docs\",state=\"ALIVE\"} 1",
    );
    service.page_with("/metrics", "courser_watch_set_source_ok{set=\"docs\"} 1");
    service.end();
}

#[test]
fn urls_at_private_addresses_are_told_and_asked_once_they_may() {
    let site = Site::start();
    let config = "[limits]\nper_host_rate = 0\n[http]\nlisten = '127.0.0.1:0'\n[[set]]\nname = 'docs'\nurls = 'urls.txt'\n";
    let folder = folder(config, &[site.url("a"), site.url("b")]);
    let why = format!(
        "set docs: 2 URLs are never asked: private addresses, such as {}, need limits.allow_private",
        site.url("a")
    );
    let checked = watch(folder.path(), &["config", "check"]);
    assert!(stdout(&checked).contains(&why), "{checked:?}");
    let mut service = Service::start(folder.path());
    service.line(&why);
    service.page_with("/metrics", "courser_check_private_urls 2");
    let status = stdout(&watch(folder.path(), &["status"]));
    assert!(status.contains("2 URLs at private addresses"), "{status}");
    assert!(service.page("/").1.contains("2 URLs at private addresses"));
    service.end();
    // The source has not changed, and the URLs are due in a week.
    let mut service = Service::start(folder.path());
    service.line(&why);
    service.end();
    let config = config.replace("[limits]", "[limits]\nallow_private = true");
    fs::write(folder.path().join("watch.toml"), config).expect("written");
    let mut service = Service::start(folder.path());
    service.line("2 URLs at private addresses are asked now");
    let asked = site.next();
    assert!(asked.line.starts_with("HEAD /"), "{}", asked.line);
    asked.answer("200 OK");
    site.answer_all();
    service.end();
}

#[test]
fn logs_have_no_secrets() {
    let secret = "s3cr3t-pass";
    let site = Site::start();
    let folder = folder(
        "",
        &[format!(
            "http://joe:{secret}@{}/a?token={secret}",
            site.address
        )],
    );
    fs::write(folder.path().join("auth"), format!("joe:{secret}\n")).expect("written");
    let config = format!(
        "{THREE_LINES}log = {{ format = 'json', level = 'trace' }}\nhost = [{{ match = '{}', auth_file = 'auth' }}]\n",
        site.address
    );
    fs::write(folder.path().join("watch.toml"), config).expect("written");
    let mut service = Service::start(folder.path());
    service.line("started");
    service.signal(Signal::HUP);
    service.line("the configuration was read again");
    site.answer_all();
    let metrics = service.page("/metrics").1;
    let log = service.end();
    assert!(!log.contains(secret) && !metrics.contains(secret), "{log}");
    for line in log.lines() {
        let value: serde_json::Value = serde_json::from_str(line).expect(line);
        assert!(
            value["level"].is_string() && value["message"].is_string(),
            "{line}"
        );
    }
}

#[test]
fn health_does_not_wait_for_the_store() {
    let folder = folder(THREE_LINES, &[]);
    let service = Service::start(folder.path());
    service.page_with("/metrics", "courser_store_commit_seconds_count");
    let other = rusqlite::Connection::open(folder.path().join("watch.db")).expect("opened");
    other.execute_batch("BEGIN IMMEDIATE").expect("locked");
    for path in ["/healthz", "/metrics", "/readyz"] {
        assert_eq!(service.page(path).0, 200, "{path}");
    }
    other.execute_batch("ROLLBACK").expect("released");
    service.end();
}

#[test]
fn jobs_that_cannot_run_are_wrong_configuration() {
    let job = |args: &str| {
        format!(
            "[[schedule]]\nname = 'a'\ncron = '0 0 29 2 *'\n\
             job = {{ find = {{ start = 'http://h.test/', args = [{args}] }}, into_set = 'x' }}\n"
        )
    };
    let folder = folder(&job("'-name', '*.iso', '-j', '2'"), &[]);
    let good = watch(folder.path(), &["config", "check"]);
    assert!(good.status.success(), "{}", stderr(&good));
    for (args, why) in [
        ("'-nmae', 'x'", "-nmae"),
        ("'-exec', 'rm', ';'", "no -exec"),
        ("'--json'", "without starts, output"),
    ] {
        fs::write(folder.path().join("watch.toml"), job(args)).expect("written");
        for verb in [&["config", "check"][..], &["run"]] {
            let output = watch(folder.path(), verb);
            let text = stderr(&output);
            assert_eq!(output.status.code(), Some(2), "{text}");
            assert!(text.contains("watch.toml:4:"), "{text}");
            assert!(
                text.contains("schedule[0].job: ") && text.contains(why),
                "{text}"
            );
        }
    }
}

#[test]
fn a_command_that_uses_the_store_at_the_start_is_waited_for() {
    let folder = folder(THREE_LINES, &[]);
    let used = Sqlite::open(&folder.path().join("watch.db")).expect("a store");
    let mut command = service(folder.path());
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("runs");
    let mut log = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut line = String::new();
    log.read_line(&mut line).expect("a line");
    assert!(line.contains("waiting for its end"), "{line}");
    drop(used);
    let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut first = String::new();
    out.read_line(&mut first).expect("a line");
    child.kill().expect("killed");
    child.wait().expect("waited for");
    assert!(first.starts_with("listening on "), "{first}");
}

#[test]
fn a_missing_configuration_says_what_to_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let missing = watch(folder.path(), &["run"]);
    assert_eq!(missing.status.code(), Some(2));
    let text = stderr(&missing);
    assert!(
        text.contains("crawler-cli watch config example > watch.toml"),
        "{text}"
    );
    let named = watch(folder.path(), &["run", "--config", "no.toml"]);
    assert_eq!(named.status.code(), Some(2));
    assert!(
        stderr(&named).starts_with("no.toml: No such file"),
        "{}",
        stderr(&named)
    );
}

#[test]
fn an_address_that_is_taken_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address");
    let folder = folder(&format!("http.listen = '{address}'\n"), &[]);
    let refused = watch(folder.path(), &["run"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        stderr(&refused).contains(&format!("http.listen: cannot listen on {address}")),
        "{}",
        stderr(&refused)
    );
}

#[test]
fn configurations_are_checked_shown_and_explained() {
    let folder = folder("", &[]);
    let example = watch(folder.path(), &["config", "example"]);
    assert_eq!(example.status.code(), Some(0));
    let file = folder.path().join("watch.toml");
    fs::write(&file, &example.stdout).expect("written");
    let good = watch(folder.path(), &["config", "check"]);
    assert_eq!(
        (good.status.code(), stdout(&good).as_str()),
        (
            Some(0),
            "watch.toml: good: 0 sets, 0 schedules, 0 host rules\n"
        )
    );
    fs::write(&file, SCHEDULED).expect("written");
    let firings = stdout(&watch(folder.path(), &["config", "check"]));
    let line = firings
        .lines()
        .find(|line| line.starts_with("schedule yearly: next at "));
    let line = line.unwrap_or_else(|| panic!("{firings}"));
    assert_eq!(line.matches("-01-01 00:00:00 UTC").count(), 3, "{line}");
    let shown = stdout(&watch(folder.path(), &["config", "show", "--origin"]));
    assert!(
        shown.contains("name = \"yearly\"  # watch.toml:2:1\n"),
        "{shown}"
    );
    assert!(shown.contains("connections = 512  # default\n"), "{shown}");
    let listen = "listen = \"127.0.0.1:10390\"  # default\n";
    assert!(shown.contains(listen), "{shown}");
    fs::write(&file, "[limit]\n[limits]\ntimeout = 20\n").expect("written");
    let wrong = watch(folder.path(), &["config", "check"]);
    assert_eq!(wrong.status.code(), Some(2));
    let text = stderr(&wrong);
    assert!(
        text.starts_with("watch.toml:1:2: limit: ")
            && text.contains("\nwatch.toml:3:11: limits.timeout: "),
        "{text}"
    );
    assert_eq!(watch(folder.path(), &["config"]).status.code(), Some(2));
    assert_eq!(
        watch(folder.path(), &["config", "chekc"]).status.code(),
        Some(2)
    );
}

/// Does something useful at once.
const THREE_LINES: &str = "\
http.listen = '127.0.0.1:0'
limits.allow_private = true
limits.per_host_rate = 0
set = [{ name = 'docs', urls = 'urls.txt' }]
";

const SCHEDULED: &str = "\
[[schedule]]
name = 'yearly'
cron = '@yearly'
job = { sitemap = 'http://h.test/map.xml', into_set = 'site' }
";
