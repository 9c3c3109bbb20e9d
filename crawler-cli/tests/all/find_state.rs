//! `crawler-cli find --state`: a killed search continues without losing or repeating results.

use crate::common::{Script, crawler, find, lines, page, response, stderr};
use std::fs::{self, File, OpenOptions};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// 85 directories with five files each, on a server that kills the program at a chosen request.
struct Tree {
    server: Script,
    asked: Arc<AtomicUsize>,
    kill_at: Arc<AtomicUsize>,
    victim: Victim,
}

impl Tree {
    fn start() -> Self {
        let asked = Arc::new(AtomicUsize::new(0));
        let kill_at = Arc::new(AtomicUsize::new(usize::MAX));
        let victim = Victim::default();
        let server = Script::start({
            let (asked, kill_at, victim) = (asked.clone(), kill_at.clone(), victim.clone());
            move |request| {
                let nth = asked.fetch_add(1, Ordering::SeqCst) + 1;
                if nth == kill_at.load(Ordering::SeqCst) {
                    victim.kill();
                }
                match request
                    .strip_prefix("GET ")
                    .map(|path| path.matches('/').count())
                {
                    Some(1..=3) => page(&["a/", "b/", "c/", "d/", "1", "2", "3", "4", "5"][..]),
                    Some(4) => page(&["1", "2", "3", "4", "5"]),
                    _ => response(404, "", ""),
                }
            }
        });
        Self {
            server,
            asked,
            kill_at,
            victim,
        }
    }

    /// The URLs of all files and directories.
    fn all(&self) -> Vec<String> {
        fn below(path: &str, all: &mut Vec<String>) {
            all.push(path.to_owned());
            all.extend(["1", "2", "3", "4", "5"].map(|name| format!("{path}{name}")));
            if path.matches('/').count() <= 3 {
                for name in ["a/", "b/", "c/", "d/"] {
                    below(&format!("{path}{name}"), all);
                }
            }
        }
        let mut all = Vec::new();
        below("/", &mut all);
        let mut all: Vec<String> = all.iter().map(|path| self.server.url(path)).collect();
        all.sort();
        all
    }

    /// Runs a search until its end or until request number `kill_at`, and appends its results to `out`.
    fn search(&self, state: &Path, out: &Path, kill_at: usize) -> ExitStatus {
        self.asked.store(0, Ordering::SeqCst);
        self.kill_at.store(kill_at, Ordering::SeqCst);
        let out = OpenOptions::new().create(true).append(true).open(out);
        let mut command = crawler(&["find", &self.server.url("/")]);
        command.arg("--state").arg(state);
        command.stdout(out.expect("a file for results"));
        command.stderr(Stdio::null());
        self.victim.run(command)
    }
}

/// A program that the server can kill.
#[derive(Clone, Default)]
struct Victim(Arc<Mutex<Option<Child>>>);

impl Victim {
    fn run(&self, mut command: Command) -> ExitStatus {
        // The lock is held during the start, so that the first request cannot reach the kill before the child is
        // stored.
        let mut running = self.0.lock().expect("no test panicked here");
        *running = Some(command.spawn().expect("the program runs"));
        drop(running);
        loop {
            let mut running = self.0.lock().expect("no test panicked here");
            let child = running.as_mut().expect("it was just begun");
            if let Some(status) = child.try_wait().expect("a child") {
                return status;
            }
            drop(running);
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn kill(&self) {
        let mut running = self.0.lock().expect("no test panicked here");
        let child = running.as_mut().expect("it is running");
        child.kill().expect("SIGKILL");
    }
}

fn results(out: &Path) -> Vec<String> {
    lines(&fs::read(out).expect("results"))
}

#[test]
fn a_search_that_is_killed_at_any_moment_loses_and_repeats_nothing() {
    let tree = Tree::start();
    let all = tree.all();
    let mut killed = 0;
    for moment in 1..=50 {
        let place = tempfile::tempdir().expect("a directory");
        let (state, out) = (place.path().join("state"), place.path().join("out"));
        if tree.search(&state, &out, moment).code() != Some(0) {
            killed += 1;
            assert!(state.exists(), "killed at request {moment}");
            assert_eq!(tree.search(&state, &out, usize::MAX).code(), Some(0));
        }
        assert!(results(&out) == all, "killed at request {moment}");
        assert!(!state.exists(), "the search is over");
    }
    assert_eq!(killed, 50);
}

#[test]
fn a_search_that_is_killed_repeatedly_completes() {
    let tree = Tree::start();
    let place = tempfile::tempdir().expect("a directory");
    let (state, out) = (place.path().join("state"), place.path().join("out"));
    let mut runs = 1;
    while tree.search(&state, &out, 23).code() != Some(0) {
        runs += 1;
        assert!(runs < 100, "it does not come forward");
    }
    assert!(runs > 2, "{runs}");
    assert!(results(&out) == tree.all());
}

/// The next run writes the results that the killed run has not written completely.
#[test]
fn results_cut_in_the_middle_are_completed() {
    let tree = Tree::start();
    let place = tempfile::tempdir().expect("a directory");
    let (state, out) = (place.path().join("state"), place.path().join("out"));
    for cut in [1, 7, 40] {
        let _ = fs::remove_file(&out);
        assert_ne!(tree.search(&state, &out, 40).code(), Some(0));
        // The state after a kill during the last write. Perhaps the kill came before it.
        let length = fs::metadata(&out).expect("results").len();
        let (place, last) = last_results(&state);
        let shorter = length.min((place + (last - cut).max(0)).cast_unsigned());
        File::options()
            .write(true)
            .open(&out)
            .and_then(|file| file.set_len(shorter))
            .expect("a shorter file");
        assert_eq!(tree.search(&state, &out, usize::MAX).code(), Some(0));
        assert!(results(&out) == tree.all(), "cut by {cut}");
    }
}

/// The offset and the number of bytes of the results in the last commit.
fn last_results(state: &Path) -> (i64, i64) {
    let db = rusqlite::Connection::open(state).expect("a database");
    let query = "SELECT place, length(results) FROM search";
    let last = db.query_row(query, [], |row| row.try_into());
    last.expect("numbers")
}

#[test]
fn a_state_belongs_to_one_search_and_one_process() {
    let tree = Tree::start();
    let place = tempfile::tempdir().expect("a directory");
    let (state, out) = (place.path().join("state"), place.path().join("out"));
    assert_ne!(tree.search(&state, &out, 10).code(), Some(0));
    let url = tree.server.url("/");
    let with = |args: &[&str]| {
        let mut command = crawler(&[&["find", url.as_str()], args].concat());
        let output = command.arg("--state").arg(&state).output();
        let output = output.expect("the program runs");
        (output.status.code(), stderr(&output))
    };
    let (code, message) = with(&["-name", "x"]);
    assert_eq!(code, Some(1));
    assert!(
        message.contains("the state of another search: "),
        "{message}"
    );
    // What is found depends on these options as well.
    let files = place.path().join("files");
    let files = files.to_str().expect("UTF-8");
    for args in [&["--links=page"][..], &["--download", files]] {
        let (code, message) = with(args);
        assert_eq!(code, Some(1), "{args:?}");
        assert!(
            message.contains("the state of another search: "),
            "{args:?}: {message}"
        );
    }
    let held = rusqlite::Connection::open(&state).expect("a database");
    held.execute_batch("BEGIN EXCLUSIVE").expect("a lock");
    let (code, message) = with(&[]);
    assert_eq!(code, Some(1));
    assert!(message.contains("another search is using it"), "{message}");
    drop(held);
    let (code, message) = with(&["-fprint", "x"]);
    assert_eq!(code, Some(2), "{message}");
    assert!(message.contains("cannot be continued"), "{message}");
    fs::write(
        &state,
        "no database, but longer than its header would be: ".repeat(10),
    )
    .expect("a file");
    let (code, message) = with(&[]);
    assert_eq!(code, Some(1));
    assert!(message.contains("not the state of a search"), "{message}");
    // A database of somebody else, or of another version, stays as it is, to the byte.
    for (name, version) in [("other", 0), ("other", 2), ("search", 4)] {
        fs::remove_file(&state).expect("removed");
        let other = rusqlite::Connection::open(&state).expect("a database");
        let table = format!("CREATE TABLE {name} (x); PRAGMA user_version = {version}");
        other.execute_batch(&table).expect("a table");
        drop(other);
        let before = fs::read(&state).expect("read");
        let (code, message) = with(&[]);
        assert_eq!(code, Some(1));
        assert!(message.contains("not the state of a search"), "{message}");
        assert!(fs::read(&state).expect("read") == before);
    }
}

/// The trap: after the status of an interruption, the same command is run again. The state is gone by then, and all
/// results are written twice.
#[test]
fn a_signal_after_the_last_result_does_not_make_a_complete_search_an_interrupted_one() {
    let tree = Tree::start();
    let place = tempfile::tempdir().expect("a directory");
    let (state, out) = (place.path().join("state"), place.path().join("out"));
    // The program ends the file of --unread, and waits for a reader of the summary: everything else is done.
    let (unread, summary) = (place.path().join("unread"), place.path().join("summary"));
    for pipe in [&unread, &summary] {
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mkfifoat(rustix::fs::CWD, pipe, mode).expect("a pipe");
    }
    let mut command = crawler(&["find", &tree.server.url("/"), "--unread"]);
    command.arg(&unread);
    command.arg(format!("--summary=json:{}", summary.display()));
    command.arg("--state").arg(&state);
    command.stdout(fs::File::create(&out).expect("a file for results"));
    let mut child = command.stderr(Stdio::null()).spawn().expect("it runs");
    assert_eq!(fs::read(&unread).expect("ended"), b"");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it runs");
    let summary = fs::read_to_string(&summary).expect("a summary");
    assert!(summary.contains("\"ending\":\"finished\""), "{summary}");
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    assert!(results(&out) == tree.all());
    assert!(!state.exists(), "the search is over");
}

/// Runs a search that stops at its first results, because the reading end of its output is closed.
fn begin(args: &[&str]) {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = crawler(&[&["find"], args].concat());
    command.stdout(writer).stderr(Stdio::null());
    command.status().expect("the program runs");
}

/// Fails if failures from before the interruption are forgotten and the exit status is 0.
#[test]
fn the_summary_covers_all_runs() {
    let victim = Victim::default();
    let is_killed = AtomicBool::new(false);
    let server = Script::start({
        let victim = victim.clone();
        move |request| match request {
            "GET /" => page(&["d/", "a", "b"]),
            "GET /a" => response(404, "", ""),
            "GET /d/" => page(&["e/"]),
            "GET /d/e/" => page(&["f/"]),
            // Everything before the last response is on the disk by now.
            "GET /d/e/f/" => {
                if !is_killed.swap(true, Ordering::SeqCst) {
                    victim.kill();
                }
                page(&["c"])
            }
            _ => response(200, "", "body"),
        }
    });
    let place = tempfile::tempdir().expect("a directory");
    let path = |name: &str| place.path().join(name).to_str().expect("UTF-8").to_owned();
    let (url, state, files) = (server.url("/"), path("state"), path("files"));
    let run = |more: &[&str]| {
        let args = ["find", &url, "-j1", "--state", &state, "--download", &files];
        let words = ["(", "-name", "b", "-exec", "no-such-command", ";", ")", ","];
        let mut command = crawler(&[&args[..], more, &words, &["-print"]].concat());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        victim.run(command)
    };
    assert_eq!(run(&[]).code(), None, "it was killed");
    let summary = path("summary");
    let status = run(&["--summary", &format!("json:{summary}")]);
    let summary = fs::read_to_string(summary).expect("a summary");
    assert_eq!(status.code(), Some(1), "{summary}");
    for part in [
        "\"resumed\":true",
        "\"matched\":7",
        "\"actions_failed\":1",
        "\"unread\":1,\"unread_by_class\":{\"status 404\":1}",
        "\"failed\":1",
        "\"saved\":2",
        "\"wanted\":3",
        "\"directories\":4,\"directories_done\":4",
    ] {
        assert!(summary.contains(part), "{part}: {summary}");
    }
}

/// Fails if messages in the file of the results are taken for results that were already written.
#[test]
fn messages_in_the_results_file_do_not_count_as_results() {
    let victim = Victim::default();
    let place = tempfile::tempdir().expect("a directory");
    let (state, out) = (place.path().join("state"), place.path().join("out"));
    let is_killed = AtomicBool::new(false);
    let server = Script::start({
        let (victim, out) = (victim.clone(), out.clone());
        move |request| match request {
            "GET /" => page(&["a", &"b".repeat(9000), "d/"]),
            "GET /d/" => {
                if !is_killed.swap(true, Ordering::SeqCst) {
                    while !results(&out).iter().any(|line| line.ends_with("/d/")) {
                        thread::sleep(Duration::from_millis(1));
                    }
                    victim.kill();
                }
                page(&["c"])
            }
            _ => response(404, "", ""),
        }
    });
    let url = server.url("/");
    let run = || {
        let open = OpenOptions::new().create(true).append(true).open(&out);
        let both = open.expect("a file for everything");
        let mut command = crawler(&["find", &url, "--summary", "none"]);
        command.arg("--state").arg(&state);
        command.stderr(both.try_clone().expect("a handle"));
        command.stdout(both);
        victim.run(command)
    };
    assert_eq!(run().code(), None, "it was killed");
    // The state after a kill during the last write.
    let length = fs::metadata(&out).expect("results").len();
    let cut = File::options().write(true).open(&out);
    cut.and_then(|file| file.set_len(length - 7))
        .expect("a shorter file");
    assert_eq!(run().code(), Some(1));
    let name = "b".repeat(200);
    let message =
        format!("crawler-cli find: {url}: 1 entry left out, whose URLs exceed 8192 bytes: {name}…");
    let found = ["/", "/a", "/d/", "/d/c"].map(|path| server.url(path));
    assert_eq!(results(&out), [&[message][..], &found].concat());
}

/// Fails if only a part of a commit is on the disk, or if results are written whose commit failed.
#[test]
fn a_failed_commit_is_repeated_as_a_whole() {
    let server = Script::start(|request| match request {
        "GET /" => page(&["a", "d/"]),
        "GET /d/" => page(&["b", "last/"]),
        "GET /d/last/" => page(&["c"]),
        _ => response(404, "", ""),
    });
    let place = tempfile::tempdir().expect("a directory");
    let file = place.path().join("state");
    let (url, state) = (server.url("/"), file.to_str().expect("UTF-8"));
    let args = [&url, "--state", state];
    begin(&args);
    let change = |sql: &str| {
        let db = rusqlite::Connection::open(&file).expect("a database");
        db.execute_batch(sql).expect("a change");
    };
    change(
        "CREATE TRIGGER full BEFORE INSERT ON queued WHEN NEW.task LIKE '%/last/%'
         BEGIN SELECT RAISE(ABORT, 'the disk is full'); END",
    );
    let mut found = Vec::new();
    for _ in 0..2 {
        let output = find(&args);
        assert_eq!(output.status.code(), Some(1));
        let message = stderr(&output);
        assert!(message.contains("the disk is full"), "{message}");
        found.extend(lines(&output.stdout));
    }
    change("DROP TRIGGER full");
    let output = find(&args);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    found.extend(lines(&output.stdout));
    let all = ["/", "/a", "/d/", "/d/b", "/d/last/", "/d/last/c"];
    assert_eq!(found, all.map(|path| server.url(path)));
    assert!(!file.exists(), "the search is over");
}

/// A server on which a directory and a file cannot be read while it is broken.
fn breakable() -> (Script, Arc<AtomicBool>) {
    let is_broken = Arc::new(AtomicBool::new(true));
    let server = Script::start({
        let is_broken = Arc::clone(&is_broken);
        move |request| match request {
            "GET /" => page(&["a/", "b/", "x.iso"]),
            "GET /a/" | "GET /x.iso" if is_broken.load(Ordering::SeqCst) => response(500, "", ""),
            "GET /a/" => page(&["y.iso"]),
            "GET /b/" => page(&[]),
            "GET /x.iso" | "GET /a/y.iso" => response(200, "", "abc"),
            _ => response(404, "", ""),
        }
    });
    (server, is_broken)
}

#[test]
fn what_could_not_be_read_is_asked_again_by_the_same_command() {
    let (server, is_broken) = breakable();
    let directory = tempfile::tempdir().expect("a directory");
    let (state, files) = (
        directory.path().join("state"),
        directory.path().join("files"),
    );
    let (kept, to) = (
        state.to_str().expect("UTF-8"),
        files.to_str().expect("UTF-8"),
    );
    let start = server.url("/");
    let args = [&start, "--state", kept, "--download", to, "--retries", "0"];
    let before = |count: usize| server.requests().split_off(count);
    let first = find(&args);
    assert_eq!(first.status.code(), Some(1), "{}", stderr(&first));
    assert!(
        stderr(&first).contains("kept; the same command asks again"),
        "{}",
        stderr(&first)
    );
    let all = ["", "a/", "b/", "x.iso"].map(|path| server.url(&format!("/{path}")));
    assert_eq!(lines(&first.stdout), all);
    // Still broken: asked again, told again, and still kept.
    let count = server.requests().len();
    let second = find(&args);
    assert_eq!(second.status.code(), Some(1), "{}", stderr(&second));
    assert_eq!(lines(&second.stdout), [""; 0]);
    assert!(
        stderr(&second).contains("; 2 UNREAD"),
        "{}",
        stderr(&second)
    );
    let mut asked = before(count);
    asked.sort();
    assert_eq!(asked, ["GET /a/", "GET /x.iso"]);
    is_broken.store(false, Ordering::SeqCst);
    let count = server.requests().len();
    let third = find(&args);
    assert_eq!(third.status.code(), Some(0), "{}", stderr(&third));
    assert_eq!(lines(&third.stdout), [server.url("/a/y.iso")]);
    let mut asked = before(count);
    asked.sort();
    assert_eq!(asked, ["GET /a/", "GET /a/y.iso", "GET /x.iso"]);
    assert!(!state.exists());
    for name in ["x.iso", "a/y.iso"] {
        assert_eq!(fs::read(files.join(name)).expect("downloaded"), b"abc");
    }
}

/// The trap: the last results of a run are written again by the next one. With one connection, `b` fails before the result
/// for `a` comes, so that this one is among the last.
#[test]
fn a_file_that_could_not_be_asked_about_is_asked_about_again() {
    for connections in ["1", "2"] {
        file_is_asked_about_again(connections);
    }
}

fn file_is_asked_about_again(connections: &str) {
    let is_broken = Arc::new(AtomicBool::new(true));
    let server = Script::start({
        let is_broken = Arc::clone(&is_broken);
        move |request| match request {
            "GET /" => page(&["a", "b"]),
            "HEAD /b" | "GET /b" if is_broken.load(Ordering::SeqCst) => response(500, "", ""),
            "HEAD /a" | "HEAD /b" => response(200, "", "abc"),
            _ => response(404, "", ""),
        }
    });
    let directory = tempfile::tempdir().expect("a directory");
    let state = directory.path().join("state");
    let kept = state.to_str().expect("UTF-8");
    let start = server.url("/");
    let args = [
        start.as_str(),
        "-type",
        "f",
        "-size",
        "-10c",
        "-printf",
        "%f %s\\n",
        "--state",
        kept,
        "--retries",
        "0",
        "-j",
        connections,
    ];
    let first = find(&args);
    assert_eq!(first.status.code(), Some(1), "{}", stderr(&first));
    assert!(stderr(&first).contains("; 1 UNREAD"), "{}", stderr(&first));
    assert_eq!(lines(&first.stdout), ["a 3"]);
    is_broken.store(false, Ordering::SeqCst);
    let count = server.requests().len();
    let second = find(&args);
    assert_eq!(second.status.code(), Some(0), "{}", stderr(&second));
    assert_eq!(lines(&second.stdout), ["b 3"]);
    assert_eq!(server.requests().split_off(count), ["HEAD /b"]);
    assert!(!state.exists());
}

#[test]
fn what_could_not_be_read_is_in_a_file_from_which_a_search_can_start() {
    let (server, is_broken) = breakable();
    let unread = tempfile::NamedTempFile::new().expect("a file");
    let file = unread.path().to_str().expect("UTF-8");
    let output = find(&[&server.url("/"), "--retries", "0", "--unread", file]);
    assert_eq!(output.status.code(), Some(1));
    let text = fs::read_to_string(unread.path()).expect("text");
    let line: serde_json::Value = serde_json::from_str(text.trim_end()).expect("one object");
    assert_eq!(line["url"], server.url("/a/"));
    assert_eq!(line["cause"], "the server answered 500");
    assert_eq!(line["class"], "status 500");
    assert_eq!(line["from"], serde_json::Value::Null);
    is_broken.store(false, Ordering::SeqCst);
    let count = server.requests().len();
    let again = tempfile::NamedTempFile::new().expect("a file");
    let rest = again.path().to_str().expect("UTF-8");
    let output = find(&["--starts-from", file, "--unread", rest]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let found = ["/a/", "/a/y.iso"].map(|path| server.url(path));
    assert_eq!(lines(&output.stdout), found);
    assert_eq!(server.requests().split_off(count), ["GET /a/"]);
    // Nothing is left.
    let output = find(&["--starts-from", rest]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(output.stdout, b"");
    fs::write(unread.path(), "{\"url\":7}\n").expect("written");
    let output = find(&["--starts-from", file]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("line 1: no object with a url"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_results_file_that_lost_results_and_another_format_are_refused() {
    let tree = Tree::start();
    let directory = tempfile::tempdir().expect("a directory");
    let (state, out) = (directory.path().join("state"), directory.path().join("out"));
    tree.search(&state, &out, 40);
    let kept = fs::read(&out).expect("results");
    let format = find(&[
        &tree.server.url("/"),
        "--state",
        state.to_str().expect("UTF-8"),
        "--json",
    ]);
    assert_eq!(format.status.code(), Some(1));
    assert!(
        stderr(&format).contains("the state of another search: "),
        "{}",
        stderr(&format)
    );
    // `>` instead of `>>`.
    fs::write(&out, "").expect("written");
    let status = tree.search(&state, &out, usize::MAX);
    assert_eq!(status.code(), Some(1));
    assert_eq!(fs::read(&out).expect("results"), b"");
    fs::write(&out, kept).expect("written");
    let status = tree.search(&state, &out, usize::MAX);
    assert_eq!(status.code(), Some(0));
    assert_eq!(results(&out), tree.all());
}
