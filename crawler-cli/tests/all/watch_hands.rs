//! The verbs of `crawler-cli watch` that are the hands of an operator, run as a user does: with a service that runs on the
//! store, and without one.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::common::service::{PATIENCE, Service as Running, folder};
use crate::common::{ClosedPort, crawler, stderr};
use jiff::Timestamp;
use plain::random::Random;
use rustix::process::Signal;
use serde_json::Value;
use store::sqlite::Sqlite;
use store::{
    Amendment, Buried, Change, Engine, HostHold, Judgement, Lane, NewDeadLetter, StoreHandle as _,
    WatchStore as _, Writer, WriterSettings,
};
use tempfile::TempDir;
use verdict::Answer;
use verdict::guard::{Guard, Hold};
use verdict::life::{Context, Profile, State};
use verdict::{Cause, Verdict};
use watch::control::{
    ControlServer, CoreMessage, CoreStatus, HostWaits, Operator, core_channel, socket_of,
};
use watch::core::{Reason, Waiting};
use watch::vitals::Vitals;

/// A folder with a configuration.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let config = "[store]\nurl = \"sqlite:watch.db\"\n\n[[set]]\nname = \"added\"\n\n\
                      [[schedule]]\nname = \"nightly\"\ncron = \"15 2 * * *\"\njob = { check = \"added\" }\n";
        fs::write(folder.path().join("watch.toml"), config).expect("written");
        Self { folder }
    }

    fn store(&self) -> PathBuf {
        self.folder.path().join("watch.db")
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = crawler(&[&["watch"], args].concat());
        command.current_dir(self.folder.path());
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("the program runs")
    }

    /// What a command prints that succeeds.
    #[track_caller]
    fn ok(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let text = String::from_utf8(output.stdout.clone()).expect("UTF-8");
        let stderr = stderr(&output);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {text}{stderr}");
        text
    }

    /// What a command says that ends with this status.
    #[track_caller]
    fn fails(&self, status: i32, args: &[&str]) -> String {
        let output = self.run(args);
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &stderr(&output);
        assert_eq!(output.status.code(), Some(status), "{args:?}: {text}");
        text
    }

    fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.ok(args)).expect("JSON")
    }
}

/// Answers a URL of the set, whenever it is due.
fn judge(engine: &mut dyn Engine, url: &str, verdict: Verdict, status: u16) {
    let now = Timestamp::now();
    let rules = Profile::Default.rules();
    let detail = engine.show(url).expect("read").expect("watched");
    let (lane, due) = detail.url.due.expect("it is in a set");
    let mut life = detail.url.life;
    let context = Context {
        is_control_fine: true,
        ..Context::default()
    };
    let answer = (verdict, Some(status));
    let decision = rules.decide(now, &mut life, answer, &context, &mut Random::new(1));
    let changes = decision
        .transition
        .map(|transition| Change::new(&transition, Some(status)));
    let judgement = Judgement {
        id: store::DueId {
            host: detail.host.id,
            lane,
            due,
            url: detail.url.id,
        },
        answer: Some(Answer {
            status: Some(status),
            ..Answer::of(verdict)
        }),
        next: Some((Lane::of(life.state(), false), decision.due)),
        life,
        changes: changes.into_iter().collect(),
        dead_letter: None,
    };
    assert_eq!(engine.judge(&[judgement]).expect("stored").stored, 1);
}

const OK: Verdict = Verdict::Ok;
const GONE: Verdict = Verdict::Failed(Cause::Status410);

#[test]
fn urls_are_added_shown_and_removed() {
    let place = Place::new();
    place.fails(1, &["status"]);
    let list = "http://b.example/1\n# no\n\nhttp://b.example/2\nmailto:me@b.example\n";
    fs::write(place.folder.path().join("list.txt"), list).expect("written");
    let said = place.fails(
        1,
        &[
            "add",
            "--set",
            "docs",
            "https://me:secret@a.example/",
            "list.txt",
        ],
    );
    assert!(
        said.contains("set docs: 3 new, 0 known, 1 rejected"),
        "{said}"
    );
    assert!(
        said.contains("list.txt:5: mailto:me@b.example: the scheme is not"),
        "{said}"
    );
    for name in ["", "../../<x>", "a b", &"x".repeat(101)] {
        let said = place.fails(2, &["add", "--set", name, "http://b.example/2"]);
        assert!(said.contains("1 to 100 letters"), "{said}");
    }
    let again = place.json(&["add", "--json", "--set", "docs", "http://b.example/1"]);
    assert_eq!((&again["new"], &again["known"]), (&0.into(), &1.into()));

    let shown = place.ok(&["show", "https://me:secret@a.example/"]);
    assert!(
        shown.starts_with("https://***@a.example/\n") && !shown.contains("secret"),
        "{shown}"
    );
    for part in [
        "NEW: not judged yet",
        "no service runs",
        "Sets         docs",
        "· NEW",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    place.fails(1, &["show", "https://c.example/"]);
    let host = place.ok(&["status", "b.example"]);
    assert!(host.starts_with("http://b.example/: 2 URLs\n"), "{host}");
    assert!(place.ok(&["status"]).contains("NEW 3"));

    assert_eq!(
        place.ok(&["remove", "http://b.example/1"]),
        "removed 1 URL\n"
    );
    let url = place.json(&["status", "--json", "http://b.example/1"]);
    assert_eq!(url["not_asked"][0]["reason"], "in_no_set");
    place.fails(1, &["remove", "http://c.example/"]);
    place.fails(2, &["remove"]);
    place.fails(2, &["remove", "--all", "http://b.example/2"]);
    assert_eq!(place.ok(&["remove", "--all"]), "removed 2 URLs\n");
    assert_eq!(place.ok(&["export"]).lines().count(), 3);
}

#[test]
fn urls_are_read_from_what_is_no_regular_file() {
    let place = Place::new();
    let mut add = place.command(&["add", "/dev/stdin"]);
    add.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut add = add.spawn().expect("the program runs");
    let mut pipe = add.stdin.take().expect("a pipe");
    pipe.write_all(b"http://127.0.0.1:1/a\n")
        .expect("it is read");
    drop(pipe);
    let said = add.wait_with_output().expect("it ends");
    assert_eq!(
        String::from_utf8_lossy(&said.stdout),
        "set added: 1 new, 0 known, 0 rejected\n"
    );
    // A folder has no lines.
    let said = place.fails(1, &["add", "."]);
    assert!(said.contains(".: not a URL"), "{said}");
}

#[test]
fn usage_and_configuration_are_checked() {
    let place = Place::new();
    for args in [
        &["add"][..],
        &["show"],
        &["hold", "burn"],
        &["dlq", "replay"],
        &["schedule"],
        &["db", "burn"],
        &["export", "--follow"],
        &["export", "--cursor", "x"],
        &["export", "--changes", "--since", "1", "--cursor", "x"],
        &["export", "--changes", "--since", "x"],
        &["recheck", "--state", "DEAD"],
        &["pause", "x", "y"],
        &["pause", "x", "--host", "y"],
        &["burn"],
        &["status", "--config", "nowhere.toml"],
    ] {
        place.fails(2, args);
    }
    place.fails(1, &["schedule", "run", "weekly"]);
    let elsewhere = tempfile::tempdir().expect("a folder");
    let mut command = crawler(&["watch", "status"]);
    let output = command
        .current_dir(elsewhere.path())
        .output()
        .expect("runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("no --config FILE"));
}

#[test]
fn messages_that_nobody_can_read_change_no_exit_status() {
    let place = Place::new();
    place.ok(&["add", "http://a.example/"]);
    for (status, args) in [
        (1, &["remove", "http://b.example/"][..]),
        (1, &["show", "http://b.example/"]),
        (2, &["show"]),
        (2, &[]),
        (2, &["burn"]),
        (2, &["status", "--config", "nowhere.toml"]),
        (2, &["config", "check", "--config", "nowhere.toml"]),
        (2, &["run", "--config", "nowhere.toml"]),
        (2, &["run", "burn"]),
    ] {
        let (reader, closed) = std::io::pipe().expect("a pipe");
        drop(reader);
        let ended = place.command(args).stderr(closed).status().expect("runs");
        assert_eq!(ended.code(), Some(status), "{args:?}");
    }
}

#[test]
fn pauses_and_schedules_outlast_the_hands() {
    let place = Place::new();
    place.ok(&["add", "https://a.example/", "http://a.example/"]);
    assert_eq!(place.ok(&["pause"]), "paused everything\n");
    let paused = place.ok(&["pause", "--host", "a.example"]);
    assert_eq!(
        paused,
        "paused https://a.example/\npaused http://a.example/\n"
    );
    let status = place.json(&["status", "--json"]);
    assert_eq!(status["pauses"].as_array().map(Vec::len), Some(3));
    let url = place.ok(&["status", "https://a.example/"]);
    for part in ["everything is paused", "the host is paused"] {
        assert!(
            url.replace("\n               ", " ").contains(part),
            "{part}: {url}"
        );
    }
    place.ok(&["resume"]);
    place.fails(1, &["resume"]);
    // By a URL, a host and a set, as for status.
    for (verb, name) in [
        ("pause", "https://a.example/"),
        ("resume", "a.example"),
        ("pause", "added"),
        ("resume", "https://a.example/other"),
    ] {
        assert!(
            place.ok(&[verb, name]).contains("d https://a.example/\n"),
            "{verb} {name}"
        );
    }
    place.fails(1, &["pause", "nothing"]);
    place.fails(1, &["pause", "--host", "b.example"]);

    place.ok(&["schedule", "pause", "nightly"]);
    assert!(place.ok(&["schedule", "list"]).contains("paused"));
    place.ok(&["schedule", "resume", "nightly"]);
    assert!(!place.ok(&["schedule", "list"]).contains("paused"));
}

#[test]
fn schedules_run_by_their_own_names_and_settings() {
    let closed = ClosedPort::new();
    let url = format!("http://{}/map.xml", closed.address());
    let schedule = |name: &str| {
        format!(
            "[[schedule]]\nname = \"{name}\"\ncron = \"0 0 29 2 *\"\nmax_attempts = 1\n\
             job = {{ sitemap = \"{url}\", into_set = \"site\" }}\n"
        )
    };
    let config = "[store]\nurl = \"sqlite:watch.db\"\n[limits]\nallow_private = true\n[http]\nlisten = \"127.0.0.1:0\"\n".to_owned();
    let config = config + &schedule("nightly");
    let place = Place {
        folder: folder(&config, &[]),
    };
    let said = place.fails(1, &["schedule", "run", "nigthly"]);
    assert!(said.contains("did you mean nightly?"), "{said}");
    let mut service = Running::start(place.folder.path());
    for verb in ["run", "pause", "resume"] {
        let said = place.fails(1, &["schedule", verb, "weekly"]);
        let expected = "weekly: no such schedule in the configuration, which has: nightly";
        assert!(said.contains(expected), "{said}");
    }
    place.ok(&["schedule", "run", "nightly"]);
    service.page_with("/metrics", "courser_dlq_entries{");
    let letters = place.json(&["dlq", "list", "--json"]);
    assert_eq!(letters["attempts"], 1);
    place.ok(&["dlq", "replay", "--all"]);
    service.page_with("/metrics", "courser_dlq_replayed_total 1");

    fs::write(
        place.folder.path().join("watch.toml"),
        config + &schedule("weekly"),
    )
    .expect("written");
    service.signal(Signal::HUP);
    service.line("the configuration was read again");
    place.ok(&["schedule", "run", "weekly"]);
    service.end();
}

#[test]
fn a_schedule_runs_once_at_a_time_also_by_hand() {
    let place = Place::new();
    place.ok(&["schedule", "run", "nightly"]);
    for _ in 0..3 {
        let said = place.fails(1, &["schedule", "run", "nightly"]);
        assert!(said.contains("nightly waits to run already"), "{said}");
    }
    let status = place.json(&["status", "--json"]);
    assert_eq!(status["jobs"][0]["waiting"], 1, "{status}");
}

#[test]
fn an_input_that_is_slow_keeps_nobody_from_the_store() {
    let place = Place::new();
    let mut slow = place.command(&["add", "-"]);
    let slow = slow.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut slow = slow.spawn().expect("the program runs");
    let mut input = slow.stdin.take().expect("a pipe");
    // More than fits into the pipe: when it is written, the program reads.
    let line = format!("http://a.example/{}\n", "x".repeat(1_000));
    input.write_all(line.repeat(200).as_bytes()).expect("read");
    let said = place.ok(&["add", "http://b.example/"]);
    assert!(said.contains("1 new"), "{said}");
    input.write_all(b"http://c.example/\n").expect("read");
    drop(input);
    let output = slow.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("set added: 2 new, 199 known"), "{text}");
}

#[test]
fn changes_have_cursors_and_a_history_is_shown() {
    let place = Place::new();
    place.ok(&["add", "http://a.example/", "http://a.example/x"]);
    let mut store = Sqlite::open(&place.store()).expect("a store");
    judge(&mut store, "http://a.example/", OK, 200);
    judge(&mut store, "http://a.example/x", OK, 200);
    judge(&mut store, "http://a.example/", GONE, 410);
    drop(store);
    let changes = place.ok(&["export", "--changes"]);
    let changes: Vec<Value> = changes
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let steps: Vec<_> = changes
        .iter()
        .map(|c| (c["from"].as_str(), c["to"].as_str()))
        .collect();
    let expected = [("NEW", "ALIVE"), ("NEW", "ALIVE"), ("ALIVE", "SUSPECT")];
    assert_eq!(steps, expected.map(|(from, to)| (Some(from), Some(to))));
    let second = changes[1]["cursor"].to_string();
    // A file keeps the place, and is no place if it says something else.
    let kept = ["export", "--changes", "--cursor", "place"];
    assert_eq!(place.ok(&kept).lines().count(), 3);
    let file = place.folder.path().join("place");
    let last = fs::read_to_string(&file).expect("written");
    assert_eq!(last, format!("{}\n", changes[2]["cursor"]));
    assert_eq!(place.ok(&kept), "");
    fs::write(&file, &second).expect("written");
    assert_eq!(place.ok(&kept).lines().count(), 1);
    fs::write(&file, "elsewhere").expect("written");
    assert!(place.fails(1, &kept).contains("place: not a cursor"));
    let rest = place.ok(&["export", "--changes", "--since", &second]);
    assert_eq!(rest.lines().count(), 1);

    let shown = place.ok(&["show", "http://a.example/"]);
    for part in [
        "SUSPECT",
        "200 410, oldest first",
        "NEW → ALIVE",
        "ALIVE → SUSPECT",
        "status_410",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(
        shown.lines().all(|line| line.chars().count() <= 80),
        "{shown}"
    );
    let json = place.json(&["show", "--json", "http://a.example/"]);
    assert_eq!(json["changes"][1]["to"], "SUSPECT");
    let line: Value = serde_json::from_str(&place.ok(&["export", "--json", "--state", "suspect"]))
        .expect("one line");
    assert_eq!(
        (&line["status"], &line["state"]),
        (&410.into(), &"SUSPECT".into())
    );
    assert_eq!(line["history"][1]["status"], 410);
    assert!(line["first_bad"].is_string());
    assert_eq!(
        place
            .ok(&["recheck", "--state", "SUSPECT"])
            .split(';')
            .next(),
        Some("made 1 URL due now")
    );
    for (name, expected) in [
        ("a.example", "made 1 URL due now"),
        ("added", "nothing to change"),
    ] {
        let said = place.ok(&["recheck", name]);
        assert!(said.starts_with(expected), "{name}: {said}");
    }
    let said = place.fails(1, &["recheck", "nothing"]);
    assert!(said.contains("neither a URL, a host nor a set"), "{said}");
    assert!(place.ok(&["status", "added"]).starts_with("added  2 URLs"));
}

#[test]
fn holds_end_without_a_service() {
    let place = Place::new();
    place.ok(&["add", "http://a.example/"]);
    let mut store = Sqlite::open(&place.store()).expect("a store");
    judge(&mut store, "http://a.example/", OK, 200);
    judge(&mut store, "http://a.example/", GONE, 410);
    let detail = store
        .show("http://a.example/")
        .expect("read")
        .expect("watched");
    let (lane, due) = detail.url.due.expect("due");
    let (now, mut life) = (Timestamp::now(), detail.url.life);
    let change = Profile::Default
        .rules()
        .hold(now, &mut life, Guard::HostFlip);
    let changes = change.map(|transition| Change::new(&transition, None));
    let id = store::DueId {
        host: detail.host.id,
        lane,
        due,
        url: detail.url.id,
    };
    let held = Amendment {
        id,
        life,
        changes: changes.into_iter().collect(),
        next: (Lane::Held, now),
    };
    store.amend(&[held]).expect("stored");
    let hold = Hold {
        since: now,
        sampled_at: None,
        was_sample_good: false,
    };
    let (host, root) = (detail.host.id, detail.host.root);
    store
        .save_hold(&HostHold {
            host,
            root,
            hold,
            held: 1,
            ending: None,
        })
        .expect("stored");
    drop(store);

    let list = place.ok(&["hold", "list"]);
    assert!(
        list.starts_with("http://a.example/  1 URL  since "),
        "{list}"
    );
    assert!(
        place
            .ok(&["status", "http://a.example/"])
            .contains("is held since")
    );
    place.fails(1, &["hold", "release", "b.example"]);
    assert_eq!(
        place.ok(&["hold", "release", "added"]),
        "released http://a.example/: 1 URL\n"
    );
    assert_eq!(place.ok(&["hold", "list"]), "no host is held\n");
    let url = place.json(&["show", "--json", "http://a.example/"]);
    assert_eq!(url["state"], State::Suspect.name());
    place.ok(&["db", "check"]);
}

#[test]
fn dead_letters_are_listed_replayed_and_dropped() {
    let place = Place::new();
    place.ok(&["add", "http://a.example/"]);
    let mut store = Sqlite::open(&place.store()).expect("a store");
    judge(&mut store, "http://a.example/", OK, 200);
    let id = store
        .show("http://a.example/")
        .expect("read")
        .expect("watched")
        .url
        .id;
    let at = Timestamp::now();
    let letter = NewDeadLetter {
        reason: "redirect_loop".into(),
        attempts: 3,
        last: "GET /\u{1b}[31m\n".into(),
        first_at: at,
        last_at: at,
    };
    let number = store::JobStore::bury(&mut store, &Buried::Url(id), &letter);
    let number = number.expect("stored").0.to_string();
    drop(store);
    assert!(place.ok(&["dlq", "list"]).contains("redirect_loop"));
    assert!(
        place
            .ok(&["dlq", "show", &number])
            .contains("GET /\\u{1b}[31m")
    );
    assert!(
        place
            .ok(&["show", "http://a.example/"])
            .contains("redirect_loop after 3 attempts")
    );
    let dry = [
        "dlq",
        "replay",
        "--reason",
        "redirect_loop",
        "--since",
        "1d",
        "--dry-run",
    ];
    assert_eq!(place.ok(&dry), "would have replayed 1 dead letter\n");
    assert_eq!(
        place.ok(&["dlq", "replay", "--all"]),
        "replayed 1 dead letter\n"
    );
    assert_eq!(
        place.ok(&["dlq", "replay", "--all"]),
        "replayed 0 dead letters\n"
    );
    place.fails(1, &["dlq", "show", "99"]);
    for verb in ["list", "replay", "drop"] {
        for host in ["", "http://[", "a b"] {
            let said = place.fails(2, &["dlq", verb, "--host", host]);
            assert!(said.contains("not the name of a host"), "{said}");
        }
    }
}

#[test]
fn stores_are_backed_up_checked_and_restored() {
    let place = Place::new();
    place.ok(&["add", "http://a.example/"]);
    let used = Sqlite::open(&place.store()).expect("a store");
    assert!(place.ok(&["db", "backup", "copy.db"]).contains("sound"));
    let said = place.fails(1, &["db", "backup", "copy.db"]);
    assert!(said.contains("copy.db: is there already"), "{said}");
    place.ok(&["db", "backup", "--force", "copy.db"]);
    // SQLite would take these names for a temporary database and for one in memory.
    for verb in ["backup", "restore"] {
        let said = place.fails(2, &["db", verb, ""]);
        assert!(said.contains("not the name of a file"), "{said}");
    }
    place.ok(&["db", "backup", "file:copy?mode=memory"]);
    assert!(place.folder.path().join("file:copy?mode=memory").is_file());
    assert!(
        place
            .ok(&["db", "check"])
            .lines()
            .all(|line| line.starts_with("ok "))
    );
    assert!(
        place
            .fails(1, &["db", "restore", "copy.db"])
            .contains("is using it")
    );
    drop(used);
    place.ok(&["remove", "--all"]);
    place.ok(&["db", "restore", "copy.db"]);
    assert!(place.ok(&["status"]).contains("NEW 1"));
}

/// What a service is for the hands: a writer with the store, the socket, and a core that answers.
struct Service {
    /// Dropped first: no command comes after that.
    server: Option<ControlServer>,
    writer: Writer,
    told: Receiver<CoreMessage>,
    stop: Option<Sender<()>>,
    core: Option<JoinHandle<()>>,
}

impl Service {
    fn start(store: &Path, status: CoreStatus) -> Self {
        let engine = Sqlite::open(store).expect("the lock is free");
        let writer = Writer::start(engine, WriterSettings::default()).expect("a thread");
        let (handle, inbox) = core_channel();
        let (tell, told) = channel();
        let (stop, stopped) = channel::<()>();
        let core = thread::spawn(move || {
            while stopped.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
                match inbox.take() {
                    Some(CoreMessage::Status { answer, .. }) => drop(answer.send(status.clone())),
                    Some(message) => drop(tell.send(message)),
                    None => thread::sleep(Duration::from_millis(1)),
                }
            }
        });
        let operator = Operator {
            store: writer.clone(),
            core: handle,
            vitals: Arc::new(Vitals::new(Instant::now())),
            schedules: Arc::default(),
        };
        let server = ControlServer::start(store, operator).expect("listens");
        Self {
            server: Some(server),
            writer,
            told,
            stop: Some(stop),
            core: Some(core),
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.server = None;
        self.stop = None;
        let core = self.core.take().expect("dropped once");
        core.join().expect("no panic");
    }
}

#[test]
fn hands_reach_the_service_that_runs() {
    let place = Place::new();
    let root = "http://a.example/".to_owned();
    let waits = vec![Waiting {
        reason: Reason::Rate,
        until: None,
    }];
    let host = HostWaits {
        root,
        under_way: 1,
        waiting: 2,
        waits,
    };
    let core = CoreStatus {
        under_way: 1,
        host: Some(host),
        ..CoreStatus::default()
    };
    let service = Service::start(&place.store(), core);
    let mode = fs::metadata(socket_of(&place.store()))
        .expect("a socket")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);

    // Also by another name of the store.
    symlink("watch.db", place.folder.path().join("link.db")).expect("linked");
    let linked = place.folder.path().join("linked.toml");
    fs::write(linked, "[store]\nurl = \"sqlite:link.db\"\n").expect("written");
    place.ok(&["add", "--config", "linked.toml", "http://a.example/"]);
    assert!(matches!(service.told.recv(), Ok(CoreMessage::LookAgain)));
    let counts = service
        .writer
        .read(|engine| engine.watch_counts())
        .expect("read");
    assert_eq!(counts.urls(), 1);
    place.ok(&["pause", "--host", "a.example"]);
    assert!(matches!(service.told.recv(), Ok(CoreMessage::LookAgain)));
    let status = place.json(&["status", "--json"]);
    assert_eq!(status["service"]["process"], std::process::id());
    assert_eq!(status["service"]["core"]["under_way"], 1);
    place.ok(&["resume", "--host", "a.example"]);
    let url = place.json(&["status", "--json", "http://a.example/"]);
    assert_eq!(url["not_asked"][0]["reason"], "rate");
    place.ok(&["remove", "--all"]);
    drop(service);
    assert!(!socket_of(&place.store()).exists());
    assert!(place.ok(&["status"]).contains("no service runs"));
}

#[test]
fn a_socket_that_a_killed_service_left_is_no_service() {
    let place = Place::new();
    drop(UnixListener::bind(socket_of(&place.store())).expect("bound"));
    place.ok(&["add", "http://a.example/"]);
    let _service = Service::start(&place.store(), CoreStatus::default());
    place.ok(&["add", "http://b.example/"]);
}

#[test]
fn a_command_that_a_service_takes_into_its_end_is_performed_without_it() {
    let place = Place::new();
    let end_after = |reads: bool| {
        let socket = socket_of(&place.store());
        let listener = UnixListener::bind(&socket).expect("bound");
        thread::spawn(move || {
            let (mut client, _) = listener.accept().expect("a client");
            // As if the process was killed: the socket stays behind, and nobody listens.
            drop(listener);
            if reads {
                let mut command = String::new();
                BufReader::new(&mut client)
                    .read_line(&mut command)
                    .expect("read");
            }
            drop(client);
            socket
        })
    };
    for (reads, url) in [(false, "http://a.example/"), (true, "http://b.example/")] {
        let service = end_after(reads);
        let said = place.ok(&["add", url]);
        assert!(said.contains("1 new"), "{said}");
        fs::remove_file(service.join().expect("no panic")).expect("removed");
    }
    // Whether this one was performed is not known, and it must not run twice.
    let service = end_after(true);
    let said = place.fails(1, &["schedule", "run", "nightly"]);
    assert!(said.contains("does not answer"), "{said}");
    fs::remove_file(service.join().expect("no panic")).expect("removed");
    let service = end_after(true);
    let status = place.ok(&["status"]);
    assert!(status.contains("no service runs"), "{status}");
    service.join().expect("no panic");
}

#[test]
fn a_service_that_is_stopped_is_not_waited_for() {
    let wait = |fill_queue: bool| {
        move || {
            let place = Place::new();
            let socket = socket_of(&place.store());
            let listener = UnixListener::bind(&socket).expect("bound");
            rustix::net::listen(&listener, 0).expect("listens");
            let _first = fill_queue.then(|| UnixStream::connect(&socket).expect("connects"));
            let said = place.fails(1, &["add", "http://a.example/"]);
            for part in ["watch.db-socket", "within 5 s", "stopped"] {
                assert!(said.contains(part), "{part}: {said}");
            }
        }
    };
    // One waits for its answer, the other one for its connection.
    let waits = [false, true].map(|fill_queue| thread::spawn(wait(fill_queue)));
    for wait in waits {
        wait.join().expect("no panic");
    }
}

#[test]
fn hostile_clients_are_cut_off_and_others_are_served() {
    let place = Place::new();
    let service = Service::start(&place.store(), CoreStatus::default());
    let connect = || UnixStream::connect(socket_of(&place.store())).expect("connects");

    // Garbage is refused, and the connection is closed.
    let mut garbage = connect();
    garbage
        .write_all(b"\x00\xff{}\n{\"command\":\"status\"}\n")
        .expect("written");
    let mut replies = Vec::new();
    // The rest was not read, so the end may be a reset.
    let _ = garbage.read_to_end(&mut replies);
    let text = String::from_utf8_lossy(&replies);
    assert!(
        text.contains("no command") && !text.contains("process"),
        "{text}"
    );

    // Too many are refused.
    let crowd: Vec<_> = (0..40).map(|_| connect()).collect();
    let last = crowd
        .last()
        .expect("a client")
        .try_clone()
        .expect("a clone");
    let mut reply = String::new();
    BufReader::new(last).read_line(&mut reply).expect("a reply");
    assert!(reply.contains("too many clients"), "{reply}");
    drop(crowd);
    place.ok(&["add", "http://a.example/"]);
    drop(service);
}

#[test]
fn a_reader_of_changes_goes_on_with_a_store_that_was_restored() {
    let place = Place::new();
    let url = |name: &str| format!("http://a.example/{name}");
    let change = |name: &str| {
        place.ok(&["add", &url(name)]);
        let mut store = Sqlite::open(&place.store()).expect("a store");
        judge(&mut store, &url(name), OK, 200);
    };
    change("before");
    place.ok(&["db", "backup", "copy.db"]);
    change("lost");
    let mut command = place.command(&["export", "--changes", "--follow"]);
    let mut follower = command.stdout(Stdio::piped()).spawn().expect("runs");
    let out = BufReader::new(follower.stdout.take().expect("piped"));
    let (send, lines) = channel();
    let reading = thread::spawn(move || {
        for line in out.lines() {
            send.send(line.expect("UTF-8")).expect("awaited");
        }
    });
    let next = || -> Value {
        let line = lines.recv_timeout(PATIENCE).expect("a line");
        serde_json::from_str(&line).expect("JSON")
    };
    let seen = [next(), next()];
    place.ok(&["db", "restore", "copy.db"]);
    change("after");
    let last = next();
    let urls: Vec<_> = seen
        .iter()
        .chain([&last])
        .map(|change| &change["url"])
        .collect();
    let expected = ["before", "lost", "after"].map(|name| Value::from(url(name)));
    assert_eq!(urls, expected.each_ref());
    assert!(last["cursor"].as_i64() > seen[1]["cursor"].as_i64());
    follower.kill().expect("killed");
    follower.wait().expect("waited for");
    reading.join().expect("no panic");
}
