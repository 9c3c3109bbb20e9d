//! The webhooks of `crawler-cli watch run`, as a receiver sees them: a web server on loopback that takes each message, and
//! answers when the test says so.

use std::collections::HashSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver as Queue, Sender, channel};
use std::thread;

use crawler_cli::watch::hooks::Secret;
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

mod common;

use common::service::{PATIENCE, Service, folder, stdout, watch};
use common::{Script, response, stderr};

const KEY: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// Where messages go.
struct Receiver {
    address: String,
    messages: Queue<Message>,
}

/// A message that waits for its answer.
struct Message {
    head: String,
    body: Vec<u8>,
    stream: TcpStream,
}

impl Receiver {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let (sender, messages) = channel();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let sender = sender.clone();
                thread::spawn(move || receive(stream, &sender));
            }
        });
        Self { address, messages }
    }

    /// The table of the configuration, with further lines.
    fn table(&self, more: &str) -> String {
        format!(
            "[[webhook]]\nurl = 'http://{}/hush-path'\nsecret_file = 'hook.secret'\n{more}\n",
            self.address
        )
    }

    fn next(&self) -> Message {
        self.messages.recv_timeout(PATIENCE).expect("a message")
    }

    fn nothing(&self) {
        match self.messages.try_recv() {
            Err(_) => {}
            Ok(message) => panic!("{}", message.head),
        }
    }
}

fn receive(mut stream: TcpStream, sender: &Sender<Message>) {
    let mut reader = BufReader::new(stream.try_clone().expect("a handle"));
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if !reader.read_line(&mut head).is_ok_and(|length| length > 0) {
            return;
        }
    }
    let length = field(&head, "content-length").parse().expect("a length");
    let mut body = vec![0; length];
    if reader.read_exact(&mut body).is_err() {
        let _ = stream.shutdown(Shutdown::Both);
        return;
    }
    let _ = stream.flush();
    // The test may be over.
    let _ = sender.send(Message { head, body, stream });
}

fn field(head: &str, name: &str) -> String {
    let value = head.lines().find_map(|line| {
        let (found, value) = line.split_once(": ")?;
        found.eq_ignore_ascii_case(name).then(|| value.to_owned())
    });
    value.unwrap_or_else(|| panic!("no {name}: {head}"))
}

impl Message {
    fn id(&self) -> String {
        field(&self.head, "webhook-id")
    }

    fn value(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }

    /// What it tells: the type and the path of the URL of each item.
    fn tells(&self) -> Vec<String> {
        let value = self.value();
        let one = [value.clone()];
        let items = value["data"]["items"].as_array();
        let items = items.map_or(&one[..], Vec::as_slice);
        let told = items.iter().map(|item| {
            let url = item["data"]["url"].as_str().unwrap_or_default();
            let path = url.rsplit('/').next().unwrap_or_default();
            format!("{} {path}", item["type"].as_str().expect("a type"))
        });
        told.collect()
    }

    fn answer(mut self, status: &str) {
        // The client may have gone.
        let _ = write!(
            self.stream,
            "HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        );
    }
}

/// A service, the folder that it runs in, and how many of its URLs are missing: those with the smallest numbers.
struct World {
    folder: TempDir,
    missing: Arc<AtomicUsize>,
    /// Serves the URLs.
    _site: Script,
}

impl World {
    fn new(hooks: &str) -> Self {
        let missing = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&missing);
        let site = Script::start(move |request| {
            let number = request
                .rsplit('/')
                .next()
                .and_then(|path| path.parse().ok());
            let is_missing =
                number.is_some_and(|number: usize| number < count.load(Ordering::SeqCst));
            match is_missing {
                true => response(404, "", b""),
                false => response(200, "", b""),
            }
        });
        let urls: Vec<String> = (0..3).map(|url| site.url(&format!("/{url}"))).collect();
        let folder = folder(&config(hooks), &urls);
        fs::write(folder.path().join("hook.secret"), KEY).expect("written");
        Self {
            folder,
            missing,
            _site: site,
        }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn start(&self) -> Service {
        Service::start(self.path())
    }

    /// So many URLs are missing from now on, and are asked at once.
    fn miss(&self, service: &Service, missing: usize) {
        // What is new is told; so the URLs are known first.
        service.page_with("/metrics", "courser_check_urls{state=\"NEW\"} 0");
        self.missing.store(missing, Ordering::SeqCst);
        self.ok(&["recheck", "--all"]);
    }

    fn ok(&self, args: &[&str]) -> String {
        let output = watch(self.path(), args);
        assert_eq!(
            output.status.code(),
            Some(0),
            "{args:?} {}",
            stderr(&output)
        );
        stdout(&output)
    }

    fn configure(&self, service: &mut Service, hooks: &str) {
        fs::write(self.path().join("watch.toml"), config(hooks)).expect("written");
        service.signal(Signal::HUP);
        service.line("the configuration was read again");
    }

    /// What is said of the only receiver, once it has this text.
    fn hook_with(&self, service: &Service, text: &str) -> Value {
        let body = service.page_with("/api/v1/webhooks", text);
        let value: Value = serde_json::from_str(&body).expect("JSON");
        value["items"][0].clone()
    }
}

fn config(hooks: &str) -> String {
    format!(
        "log.level = 'debug'\nlimits.allow_private = true\nlimits.per_host_rate = 0\nlimits.robots = false\n\
         policy.profile = 'ci'\nguard.host_flip = {{ min = 1000 }}\n\
         [[set]]\nname = 'docs'\nurls = 'urls.txt'\n{hooks}"
    )
}

#[test]
fn changes_are_told_with_signatures_once() {
    let receiver = Receiver::start();
    let world = World::new(&receiver.table("name = 'ops'"));
    let service = world.start();
    world.miss(&service, 3);
    let secret = Secret::parse(KEY).expect("a key");
    let (mut told, mut ids) = (Vec::new(), HashSet::new());
    while told.len() < 3 {
        let message = receiver.next();
        let timestamp = field(&message.head, "webhook-timestamp").parse();
        let expected = secret.sign(&message.id(), timestamp.expect("a number"), &message.body);
        assert_eq!(field(&message.head, "webhook-signature"), expected);
        assert!(message.head.starts_with("POST /hush-path HTTP/1.1\r\n"));
        told.extend(message.tells());
        assert!(ids.insert(message.id()));
        message.answer("204 No Content");
    }
    told.sort();
    assert_eq!(told, ["url.broken 0", "url.broken 1", "url.broken 2"]);
    let hook = world.hook_with(&service, "\"up_to_date\"");
    assert_eq!(
        (&hook["waiting"], &hook["last"]["answer"]),
        (&0.into(), &"HTTP 204".into())
    );
    service.page_with(
        "/metrics",
        "courser_webhook_deliveries_total{result=\"failed\"} 0",
    );
    assert!(
        world
            .ok(&["status"])
            .contains("ops: up to date; nothing waits")
    );
    assert!(service.page("/webhooks").1.contains("HTTP 204"));
    receiver.nothing();
    // Neither the key nor the path of the URL is anywhere but where the operator wrote them.
    let log = service.end();
    for secret in [KEY, &KEY[6..], "hush-path"] {
        assert!(!log.contains(secret), "{log}");
        for file in fs::read_dir(world.path()).expect("readable").flatten() {
            let name = file.file_name();
            let is_own = name == "watch.toml" || name == "hook.secret";
            let text = fs::read(file.path()).unwrap_or_default();
            let found = text
                .windows(secret.len())
                .any(|part| part == secret.as_bytes());
            assert!(is_own || !found, "{secret} in {name:?}");
        }
    }
}

#[test]
fn a_receiver_that_fails_gets_the_same_message_again() {
    let receiver = Receiver::start();
    let world = World::new(&receiver.table(""));
    let mut service = world.start();
    world.miss(&service, 1);
    let first = receiver.next();
    let (id, body) = (first.id(), first.body.clone());
    first.answer("500 Internal Server Error");
    world.hook_with(&service, "HTTP 500");
    // The second time it does not answer at all.
    world.configure(&mut service, &receiver.table("timeout = '1s'"));
    let second = receiver.next();
    assert_eq!((second.id(), &second.body), (id.clone(), &body));
    world.hook_with(&service, "timed out");
    world.configure(&mut service, &receiver.table(""));
    // An operator does not want to wait for minutes.
    world.ok(&["webhook", "resume", "127.0.0.1"]);
    let third = receiver.next();
    assert_eq!((third.id(), &third.body), (id, &body));
    third.answer("200 OK");
    world.hook_with(&service, "\"up_to_date\"");
    drop(second);
    receiver.nothing();
    service.end();
}

#[test]
fn a_receiver_that_answers_gone_is_stopped_until_it_is_resumed() {
    let receiver = Receiver::start();
    let world = World::new(&receiver.table(""));
    let mut service = world.start();
    world.miss(&service, 1);
    let first = receiver.next();
    let id = first.id();
    first.answer("410 Gone");
    service.line("webhook resume 127.0.0.1");
    world.hook_with(&service, "\"stopped\"");
    service.page_with("/metrics", "courser_webhook_stopped 1");
    assert!(world.ok(&["webhook", "list"]).contains("stopped"));
    // A restart changes nothing.
    service.end();
    assert!(world.ok(&["webhook", "list"]).contains("stopped"));
    let service = world.start();
    world.miss(&service, 2);
    service.page_with("/metrics", "courser_check_urls{state=\"BROKEN\"} 2");
    world.hook_with(&service, "\"stopped\"");
    receiver.nothing();
    world.ok(&["webhook", "resume", "127.0.0.1"]);
    let again = receiver.next();
    assert_eq!(again.id(), id);
    again.answer("200 OK");
    let missed = receiver.next();
    assert_eq!(missed.tells(), ["url.broken 1"]);
    missed.answer("200 OK");
    world.hook_with(&service, "\"up_to_date\"");
    service.end();
}

#[test]
fn a_redirect_is_not_followed_and_a_test_says_so() {
    let (receiver, other) = (Receiver::start(), Receiver::start());
    let world = World::new(&receiver.table("name = 'ops'"));
    let service = world.start();
    let test = |status: String| {
        let answering = thread::scope(|scope| {
            let asking = scope.spawn(|| watch(world.path(), &["webhook", "test", "ops"]));
            let message = receiver.next();
            assert_eq!(message.value()["type"], "test");
            message.answer(&status);
            asking.join().expect("no panic")
        });
        (
            answering.status.code(),
            format!("{}{}", stdout(&answering), stderr(&answering)),
        )
    };
    let redirect = format!("307 There\r\nLocation: http://{}/", other.address);
    let (status, text) = test(redirect);
    assert!(
        status == Some(1) && text.contains("redirects are not followed"),
        "{text}"
    );
    let (status, text) = test("200 OK".to_owned());
    assert!(
        status == Some(0) && text.contains("ops took the message: HTTP 200"),
        "{text}"
    );
    let unknown = watch(world.path(), &["webhook", "test", "opps"]);
    assert_eq!(unknown.status.code(), Some(1));
    other.nothing();
    service.end();
}

#[test]
fn a_private_receiver_is_not_dialled_unless_that_is_allowed() {
    let receiver = Receiver::start();
    let url = format!("https://{}/hush-path", receiver.address);
    let world = World::new(&format!(
        "[[webhook]]\nurl = '{url}'\nallow_private = false\n"
    ));
    let service = world.start();
    world.miss(&service, 1);
    world.hook_with(&service, "address policy refuses 127.0.0.1");
    receiver.nothing();
    service.end();
}

#[test]
fn a_killed_service_loses_no_message() {
    let receiver = Receiver::start();
    let world = World::new(&receiver.table(""));
    let mut service = world.start();
    world.miss(&service, 2);
    let mut told = HashSet::new();
    let mut ids: Vec<String> = Vec::new();
    // Killed while the receiver thinks; the same message comes again.
    for _ in 0..3 {
        let message = receiver.next();
        ids.push(message.id());
        service.signal(Signal::KILL);
        service.wait();
        drop(message);
        service = world.start();
    }
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    while told.len() < 2 {
        let message = receiver.next();
        told.extend(message.tells());
        message.answer("200 OK");
    }
    let expected = ["url.broken 0", "url.broken 1"].map(str::to_owned);
    assert_eq!(told, HashSet::from(expected));
    world.hook_with(&service, "\"up_to_date\"");
    receiver.nothing();
    service.end();
}

#[test]
fn a_changed_configuration_changes_who_is_told() {
    let (old, new) = (Receiver::start(), Receiver::start());
    let world = World::new(&old.table("name = 'old'"));
    let mut service = world.start();
    world.miss(&service, 1);
    let message = old.next();
    message.answer("500 No");
    world.hook_with(&service, "HTTP 500");
    world.configure(&mut service, &new.table("name = 'new'"));
    world.hook_with(&service, "\"new\"");
    // What happened before is of no concern to the new one, and the old one is forgotten with its messages.
    world.miss(&service, 2);
    let message = new.next();
    assert_eq!(message.tells(), ["url.broken 1"]);
    message.answer("200 OK");
    world.configure(&mut service, &old.table("name = 'old'"));
    world.miss(&service, 3);
    let message = old.next();
    assert_eq!(message.tells(), ["url.broken 2"]);
    message.answer("200 OK");
    world.configure(&mut service, "");
    service.page_with("/api/v1/webhooks", "\"items\":[]");
    service.end();
    new.nothing();
}

#[test]
fn a_service_that_ends_does_not_wait_for_a_receiver_for_ever() {
    let receiver = Receiver::start();
    let table = receiver.table("timeout = '1h'");
    let world = World::new(&table);
    let text = format!("limits.drain_timeout = '1s'\n{}", config(&table));
    fs::write(world.path().join("watch.toml"), text).expect("written");
    let service = world.start();
    world.miss(&service, 1);
    let message = receiver.next();
    service.end();
    drop(message);
    receiver.nothing();
}
