//! `crawler-cli find --since`: what is printed after changes and mishaps of the server, and what is requested.

mod common;

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use common::tree::TreeServer;
use common::{Answer, Script, crawler, find, lines, page, response, stderr};
use tempfile::TempDir;

/// A record in a folder of its own.
struct Record {
    folder: TempDir,
}

impl Record {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().expect("a folder"),
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("record")
    }

    fn find(&self, server: &TreeServer, more: &[&str]) -> Output {
        let (url, path) = (server.url(), self.path());
        let record = path.to_str().expect("UTF-8");
        let mut args = vec![url.as_str(), "--since", record, "--retries", "0"];
        args.extend(more);
        find(&args)
    }

    /// The lines of a search without failures. URLs are relative to the server.
    #[track_caller]
    fn lines(&self, server: &TreeServer, more: &[&str]) -> Vec<String> {
        let output = self.find(server, more);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        relative(server, &output)
    }
}

fn relative(server: &TreeServer, output: &Output) -> Vec<String> {
    let url = server.url();
    let all = lines(&output.stdout).into_iter();
    all.map(|line| line.replace(&url, "/")).collect()
}

fn server() -> TreeServer {
    let server = TreeServer::start(&["a/x", "a/y", "b/c/z", "w"]);
    server.tree().sizes = true;
    server
}

const NOTHING: [&str; 0] = [];

#[test]
fn only_what_differs_is_printed() {
    let server = server();
    let record = Record::new();
    assert_eq!(
        record.lines(&server, &[]),
        [
            "new /",
            "new /a/",
            "new /a/x",
            "new /a/y",
            "new /b/",
            "new /b/c/",
            "new /b/c/z",
            "new /w",
        ]
    );
    assert_eq!(record.lines(&server, &[]), NOTHING);
    {
        let mut tree = server.tree();
        tree.put("a/x", "another size");
        tree.put("a/new", "");
        tree.put("n/m/o", "");
        tree.remove("b/c/z");
        tree.remove("w");
    }
    assert_eq!(
        record.lines(&server, &[]),
        [
            "changed /a/x",
            "gone /b/",
            "gone /b/c/",
            "gone /b/c/z",
            "gone /w",
            "new /a/new",
            "new /n/",
            "new /n/m/",
            "new /n/m/o",
        ]
    );
    assert_eq!(record.lines(&server, &[]), NOTHING);
}

/// One request for each directory, most of them answered by 304.
#[test]
fn listings_with_validators_are_not_sent_again() {
    let server = server();
    server.tree().dates_listings = true;
    let record = Record::new();
    record.lines(&server, &[]);
    let seen = server.seen();
    server.tree().put("b/c/more", "");
    assert_eq!(record.lines(&server, &[]), ["new /b/c/more"]);
    let heads = server.script.heads().split_off(seen);
    assert_eq!(heads.len(), 4);
    let conditional = heads
        .iter()
        .filter(|head| head.to_ascii_lowercase().contains("if-none-match: "));
    assert_eq!(conditional.count(), 4);
    assert_eq!(record.lines(&server, &[]), NOTHING);
}

#[test]
fn tests_are_for_what_differs_and_for_what_is_gone() {
    let server = server();
    let record = Record::new();
    let expression = [
        "(", "-name", "b", "-prune", "-false", ")", "-o", "-type", "f", "-name", "[wxy]", "-print",
    ];
    assert_eq!(
        record.lines(&server, &expression),
        ["new /a/x", "new /a/y", "new /w"]
    );
    {
        let mut tree = server.tree();
        tree.remove("a/y");
        tree.remove("w");
        tree.put("a/other", "");
        tree.put("b/x", "");
    }
    let seen = server.seen();
    assert_eq!(record.lines(&server, &expression), ["gone /a/y", "gone /w"]);
    // What is pruned is not requested, although nothing about it has changed.
    assert_eq!(server.requests_after(seen), ["GET /", "GET /a/"]);
}

#[test]
fn formats_have_the_word_too() {
    let server = server();
    let record = Record::new();
    record.lines(&server, &[]);
    server.tree().remove("w");
    server.tree().put("v", "");
    let copy = record.path().with_extension("copy");
    std::fs::copy(record.path(), &copy).expect("copied");
    let again = || std::fs::copy(&copy, record.path()).expect("copied");
    let json = record.find(&server, &["--json"]);
    let changes: Vec<String> = lines(&json.stdout)
        .iter()
        .map(|line| {
            let value: serde_json::Value = serde_json::from_str(line).expect("JSON");
            format!("{} {}", value["name"], value["change"])
        })
        .collect();
    assert_eq!(changes, ["\"v\" \"new\"", "\"w\" \"gone\""]);
    again();
    let csv = record.find(&server, &["--csv"]);
    let mut reader = csv::Reader::from_reader(&csv.stdout[..]);
    let headers = reader.headers().expect("headers").clone();
    assert_eq!(headers.iter().next_back(), Some("change"));
    let rows: Vec<csv::StringRecord> = reader.records().map(|row| row.expect("valid")).collect();
    let words: Vec<&str> = rows
        .iter()
        .filter_map(|row| row.iter().next_back())
        .collect();
    assert_eq!((words.len(), words.contains(&"gone")), (2, true));
    let url = server.url();
    for (args, ends_with) in [("-0", '\0'), ("--sort", '\n')] {
        again();
        let output = record.find(&server, &[args]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        for wanted in [
            format!("gone {url}w{ends_with}"),
            format!("new {url}v{ends_with}"),
        ] {
            assert!(text.contains(&wanted), "{args:?} {text:?}");
        }
    }
}

/// -printf and -exec are not for what is gone.
#[test]
fn actions_are_for_what_is_new_or_changed() {
    for (action, expected) in [
        (&["-print0"][..], "gone /w\0new /v\0"),
        (&["-printf", "%f\\n"], "v\n"),
        (&["-exec", "echo", "{}", ";"], "/v\n"),
    ] {
        let server = server();
        let record = Record::new();
        record.lines(&server, action);
        server.tree().remove("w");
        server.tree().put("v", "");
        let output = record.find(&server, action);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(text.replace(&server.url(), "/"), expected, "{action:?}");
    }
}

// ---- mishaps

#[test]
fn what_could_not_be_read_is_not_gone() {
    let server = server();
    let record = Record::new();
    record.lines(&server, &[]);
    let whole = page(&["x"]);
    let cut = whole[..whole.len() - 20].to_vec();
    let login = "<html><form action=login><input type=password name=p></form></html>";
    for bytes in [
        response(503, "Retry-After: 100000\r\n", ""),
        response(404, "", ""),
        // There are no validators with which the listing could have been asked for.
        response(304, "", ""),
        response(200, "Content-Type: text/html\r\n", login),
        cut,
        // The files are on two other servers.
        page(&["http://127.0.0.2/a/x", "http://127.0.0.3/a/y"]),
    ] {
        server.tree().instead.insert("a/".to_owned(), bytes);
        // Something else is still found.
        server.tree().put("b/c/now", "");
        let output = record.find(&server, &[]);
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(relative(&server, &output), ["new /b/c/now"]);
        server.tree().remove("b/c/now");
        let output = record.find(&server, &[]);
        assert_eq!(relative(&server, &output), ["gone /b/c/now"]);
    }
    server.tree().instead.clear();
    server.tree().remove("a/y");
    assert_eq!(record.lines(&server, &[]), ["gone /a/y"]);
}

#[test]
fn a_search_that_ends_early_leaves_the_record() {
    let server = server();
    let record = Record::new();
    let all = record.find(&server, &["-print", "-name", "w", "-quit"]);
    assert!(lines(&all.stdout).len() >= 2);
    // The record is of that search, and has nothing.
    let again = record.find(&server, &["-print", "-name", "w", "-quit"]);
    assert!(relative(&server, &again).contains(&"new /".to_owned()));
    let other = record.find(&server, &[]);
    assert_eq!(other.status.code(), Some(0), "{}", stderr(&other));
}

/// The process is killed while it waits for a listing, after it has printed others.
#[test]
fn a_search_that_was_killed_prints_the_same_again() {
    let is_slow = Arc::new(AtomicBool::new(true));
    let slow = Arc::clone(&is_slow);
    let server = Script::start(move |request| match request {
        "GET /" => Answer::Bytes(page(&["a/", "w"])),
        "GET /a/" if slow.load(Ordering::SeqCst) => Answer::Stall,
        _ => Answer::Bytes(page(&["x"])),
    });
    let record = Record::new();
    let (url, path) = (server.url("/"), record.path());
    let args = ["find", &url, "--since", path.to_str().expect("UTF-8")];
    let mut child = crawler(&args)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program runs");
    let out = BufReader::new(child.stdout.take().expect("a pipe"));
    let last = format!("new {url}w");
    let mut printed = out.lines().map_while(Result::ok);
    assert!(printed.any(|line| line == last));
    child.kill().expect("killed");
    child.wait().expect("ended");
    is_slow.store(false, Ordering::SeqCst);
    let again = || crawler(&args).output().expect("the program runs");
    let all = ["", "a/", "a/x", "w"].map(|name| format!("new {url}{name}"));
    assert_eq!(lines(&again().stdout), all);
    assert_eq!(lines(&again().stdout), NOTHING);
}

#[test]
fn a_file_that_could_not_be_downloaded_is_new_again() {
    let server = server();
    server.tree().dates_listings = true;
    let record = Record::new();
    let to = record.folder.path().join("files");
    let to = to.to_str().expect("UTF-8");
    let download = ["-type", "f", "--download", to];
    server
        .tree()
        .instead
        .insert("a/x".to_owned(), response(403, "", ""));
    let output = record.find(&server, &download);
    assert_eq!(output.status.code(), Some(1));
    server.tree().instead.clear();
    assert_eq!(record.lines(&server, &download), ["new /a/x"]);
    assert!(Path::new(to).join("a/x").exists());
    assert_eq!(record.lines(&server, &download), NOTHING);
}

/// The trap: a file whose size nobody says is told once, and never looked at again.
#[test]
fn a_file_that_nobody_describes_is_new_again() {
    let described = Arc::new(AtomicBool::new(false));
    let is_known = Arc::clone(&described);
    let server = Script::start(move |request| match request {
        "GET /pub/" => page(&["x"]),
        _ if is_known.load(Ordering::Relaxed) => {
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n".to_vec()
        }
        _ => b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec(),
    });
    let record = Record::new();
    let (url, path) = (server.url("/pub/"), record.path());
    let unread = record.folder.path().join("unread");
    let run = || {
        let path = path.to_str().expect("UTF-8");
        let unread = unread.to_str().expect("UTF-8");
        let words = ["-type", "f", "-size", "+0c", "--robots=off"];
        let output = find(&[&[&*url, "--since", path, "--unread", unread][..], &words].concat());
        (output.status.code(), lines(&output.stdout))
    };
    for _ in 0..2 {
        assert_eq!(run(), (Some(1), Vec::new()));
        let unread = std::fs::read_to_string(&unread).expect("a list");
        assert!(
            unread.contains("/pub/x") && unread.contains("UNDECIDED"),
            "{unread}"
        );
    }
    described.store(true, Ordering::Relaxed);
    assert_eq!(run(), (Some(0), vec![format!("new {url}x")]));
    assert_eq!(run(), (Some(0), Vec::new()));
}

#[test]
fn a_file_that_becomes_a_directory_is_gone_and_new() {
    let server = server();
    let record = Record::new();
    record.lines(&server, &[]);
    server.tree().remove("w");
    server.tree().put("w/below", "");
    assert_eq!(
        record.lines(&server, &[]),
        ["gone /w", "new /w/", "new /w/below"]
    );
    server.tree().remove("w/below");
    server.tree().put("w", "");
    assert_eq!(
        record.lines(&server, &[]),
        ["gone /w/", "gone /w/below", "new /w"]
    );
}

#[test]
fn the_record_belongs_to_one_search() {
    let server = server();
    let record = Record::new();
    record.lines(&server, &["-type", "f"]);
    let output = record.find(&server, &["-type", "d"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("it is about another search"),
        "{}",
        stderr(&output)
    );
    std::fs::write(record.path(), "something else").expect("written");
    let output = record.find(&server, &["-type", "f"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("--since "), "{}", stderr(&output));
}

#[test]
fn combinations_that_mean_nothing_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let record = folder.path().join("record");
    let record = record.to_str().expect("UTF-8");
    for more in [
        &["--state", "x"][..],
        &["--mirror", "x"],
        &["--download", "x", "--dry-run"],
        &["--links", "page"],
        &["--sitemap", "http://127.0.0.1:1/s.xml"],
        &["--tree"],
    ] {
        let output = find(&[&["http://127.0.0.1:1/", "--since", record], more].concat());
        assert_eq!(output.status.code(), Some(2), "{more:?}");
        let wanted = "--since: not together with --";
        assert!(stderr(&output).contains(wanted), "{}", stderr(&output));
    }
    assert!(!Path::new(record).exists());
}
