//! `crawler-cli find` with `--since`, `--mirror` and `--checksums`, and a listing that is read while it arrives: the first
//! answer with the listing stops in its middle, so that the listing is requested once more, as a stream.

mod common;

use std::fs;
use std::path::Path;
use std::process::Output;
use std::sync::{Arc, Mutex, MutexGuard};

use common::{Answer, Script, find, index, lines, response, stderr};

/// A server of one directory with many names.
struct Server {
    script: Script,
    tree: Arc<Mutex<Tree>>,
}

struct Tree {
    names: Vec<String>,
    /// The next answer with the listing stops in its middle.
    stalls: bool,
    /// Answers with the listing end in its middle.
    is_cut: bool,
}

impl Tree {
    fn answer(&mut self, request: &str) -> Answer {
        let target = request.split(' ').nth(1).unwrap_or("");
        let name = target.trim_start_matches('/');
        if !name.is_empty() {
            let body = match name {
                "SHA256SUMS" => format!("{}  {FIRST}\n", "0".repeat(64)),
                name => name.to_owned(),
            };
            return Answer::Bytes(match self.names.iter().any(|known| known == name) {
                true => response(200, "", body),
                false => response(404, "", ""),
            });
        }
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        let body = index(&names);
        // More than the beginning that decides what a stream is.
        assert!(body.len() > 400_000);
        let fields =
            "HTTP/1.1 200 X\r\nContent-Type: text/html\r\nETag: \"v\"\r\nConnection: close\r\n\r\n";
        let end = match self.is_cut || self.stalls {
            true => body.len() / 2,
            false => body.len(),
        };
        let bytes = [fields.as_bytes(), &body.as_bytes()[..end]].concat();
        match std::mem::take(&mut self.stalls) {
            true => Answer::Begin(bytes),
            false => Answer::Bytes(bytes),
        }
    }
}

/// A file before all others in the listing.
const FIRST: &str = "keep-first";

impl Server {
    /// Most names are left out by `-name 'keep*'`. They come in more than three batches.
    fn start() -> Self {
        let many = (0..14_000).map(|number| {
            format!("a-name-of-a-file-that-is-rather-long-to-make-the-page-large-{number}")
        });
        let mut names = vec![FIRST.to_owned()];
        names.extend(many);
        names.extend(["keep-1", "keep-2", "keep-3"].map(str::to_owned));
        let tree = Arc::new(Mutex::new(Tree {
            names,
            stalls: false,
            is_cut: false,
        }));
        let shared = Arc::clone(&tree);
        let script = Script::start(move |request| {
            let mut tree = shared.lock().expect("no test panicked here");
            tree.answer(request)
        });
        Self { script, tree }
    }

    fn tree(&self) -> MutexGuard<'_, Tree> {
        self.tree.lock().expect("no test panicked here")
    }

    /// Runs a search whose first listing stops.
    fn find(&self, more: &[&str]) -> Output {
        self.tree().stalls = true;
        let url = self.script.url("/");
        let mut args = vec![url.as_str(), "--timeout", "3", "--robots", "off"];
        args.extend(more);
        let output = find(&args);
        assert!(!self.tree().stalls, "{}", stderr(&output));
        output
    }
}

#[track_caller]
fn assert_code(output: &Output, code: i32) {
    assert_eq!(output.status.code(), Some(code), "{}", stderr(output));
}

fn names(below: &Path) -> Vec<String> {
    let entries = fs::read_dir(below).expect("a folder");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<String> = names
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    names.retain(|name| name.starts_with("keep"));
    names.sort();
    names
}

#[test]
fn since_compares_all_of_a_streamed_listing() {
    let server = Server::start();
    let folder = tempfile::tempdir().expect("a folder");
    let record = folder.path().join("record");
    let record = record.to_str().expect("UTF-8");
    let since = |more: &[&str]| {
        let mut args = vec!["--since", record];
        args.extend(more);
        server.find(&args)
    };
    let output = since(&[]);
    assert_code(&output, 0);
    let all = lines(&output.stdout);
    assert_eq!(all.len(), 14_005);
    assert!(all.iter().all(|line| line.starts_with("new ")));
    let output = since(&[]);
    assert_code(&output, 0);
    assert_eq!(lines(&output.stdout), [""; 0]);
    {
        let mut tree = server.tree();
        tree.names.retain(|name| name != FIRST && name != "keep-3");
        tree.names.insert(5000, "keep-4".to_owned());
    }
    // A part of a listing shows nothing: not what is gone, and not what is new.
    server.tree().is_cut = true;
    let output = since(&["--retries", "0"]);
    assert_code(&output, 1);
    assert_eq!(lines(&output.stdout), [""; 0]);
    server.tree().is_cut = false;
    let output = since(&[]);
    assert_code(&output, 0);
    let expected = [("gone", FIRST), ("gone", "keep-3"), ("new", "keep-4")];
    let mut expected = expected
        .map(|(change, name)| format!("{change} {}", server.script.url(&format!("/{name}"))));
    expected.sort();
    let mut told = lines(&output.stdout);
    told.sort();
    assert_eq!(told, expected);
    // Such a listing is not stored with its validators.
    let heads = server.script.heads();
    let conditional = |head: &&String| head.to_ascii_lowercase().contains("if-none-match");
    assert_eq!(heads.iter().filter(conditional).count(), 0);
}

#[test]
fn a_mirror_deletes_only_what_a_whole_streamed_listing_no_longer_has() {
    let server = Server::start();
    let folder = tempfile::tempdir().expect("a folder");
    let to = folder.path().to_str().expect("UTF-8");
    let mirror = |more: &[&str]| {
        let mut args = vec!["-name", "keep*", "--mirror", to, "--max-delete", "50%"];
        args.extend(more);
        server.find(&args)
    };
    let all = ["keep-1", "keep-2", "keep-3", FIRST];
    for _ in 0..2 {
        assert_code(&mirror(&[]), 0);
        assert_eq!(names(folder.path()), all);
    }
    server.tree().names.retain(|name| name != "keep-3");
    server.tree().is_cut = true;
    assert_code(&mirror(&["--retries", "0"]), 1);
    assert_eq!(names(folder.path()), all);
    server.tree().is_cut = false;
    let output = mirror(&[]);
    assert_code(&output, 0);
    assert!(stderr(&output).contains("1 deleted"), "{}", stderr(&output));
    assert_eq!(names(folder.path()), ["keep-1", "keep-2", FIRST]);
}

/// The list of checksums is the last name of the listing.
#[test]
fn checksums_of_a_streamed_listing_are_known_before_its_first_file() {
    let server = Server::start();
    server.tree().names.push("SHA256SUMS".to_owned());
    let folder = tempfile::tempdir().expect("a folder");
    let to = folder.path().to_str().expect("UTF-8");
    let output = server.find(&["-name", "keep*", "--download", to, "--checksums"]);
    assert_code(&output, 1);
    let stderr = stderr(&output);
    assert!(stderr.contains(FIRST), "{stderr}");
    let mut names = names(folder.path());
    names.retain(|name| !name.starts_with(FIRST));
    assert_eq!(names, ["keep-1", "keep-2", "keep-3"]);
    assert!(!folder.path().join(FIRST).exists());
}
