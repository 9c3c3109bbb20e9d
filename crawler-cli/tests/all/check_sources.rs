//! `crawler-cli check` as a user runs it on files, lists and standard input.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Output, Stdio};

use crate::common::{Script, crawler, response, stderr};
use serde_json::Value;
use tempfile::TempDir;

/// A working folder.
struct Folder(TempDir);

impl Folder {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = Self(tempfile::tempdir().expect("a folder"));
        for (name, text) in files {
            let path = folder.path(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("created");
            fs::write(path, text).expect("written");
        }
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn check(&self, args: &[&str]) -> Output {
        self.check_with(args, b"")
    }

    /// Runs the check in the folder, with this standard input, as fast as possible.
    fn check_with(&self, args: &[&str], input: &[u8]) -> Output {
        let quick = ["--robots=off", "--rate=0", "--summary=none"];
        let mut child = crawler(&[&["check"], &quick[..], args].concat())
            .current_dir(self.0.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program runs");
        let mut stdin = child.stdin.take().expect("piped");
        // A check that ends early does not read it.
        let _ = stdin.write_all(input);
        drop(stdin);
        child.wait_with_output().expect("the program ends")
    }
}

/// `url class source:line:column`, sorted, of the places in a `--json` output.
fn places(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stdout);
    let mut places = Vec::new();
    for line in text.lines() {
        let value: Value = serde_json::from_str(line).expect("JSON");
        let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
        for place in value["refs"].as_array().into_iter().flatten() {
            places.push(format!(
                "{} {} {}:{}:{}",
                text(&value["url"]),
                text(value.get("cause").unwrap_or(&value["class"])),
                text(&place["source"]),
                place["line"],
                place["column"]
            ));
        }
    }
    places.sort();
    places
}

fn usage_error(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2), "{}", stderr(output));
    assert!(output.stdout.is_empty());
    stderr(output)
}

#[test]
fn inputs_that_are_not_there_are_wrong_usage() {
    let folder = Folder::new(&[("a.md", "")]);
    for args in [
        &["a.md", "nope.md"][..],
        &["--urls", "nope.txt"],
        &["http://[::1/"],
        &["a.md", "--root-dir"],
        &["a.md", "--root-dir", "nope"],
        &["a.md", "--root-dir", "a.md"],
        &[],
    ] {
        let error = usage_error(&folder.check(args));
        let named = args
            .iter()
            .find(|arg| arg.starts_with("nope") || arg.contains('['));
        assert!(named.is_none_or(|name| error.contains(name)), "{error}");
    }
    usage_error(&folder.check(&["-", "--urls", "-"]));
}

#[test]
fn lists_without_the_field_or_without_urls_are_told() {
    let folder = Folder::new(&[
        ("plain", "# no JSON\n\nhttp://h.example/\n"),
        ("empty", "# no URL\n"),
    ]);
    let error = usage_error(&folder.check(&["--urls", "plain", "--field", "href"]));
    assert!(error.contains("--field: plain has plain lines"), "{error}");
    let output = folder.check(&["--urls", "empty"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(
        stderr(&output).contains("warning: no document"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn files_lists_and_standard_input_are_checked() {
    let server = Script::start(|request: &str| match request.contains("gone") {
        true => response(410, "", ""),
        false => response(200, "", ""),
    });
    let (ok, gone) = (server.url("/ok"), server.url("/gone"));
    let page = format!("<p><a href='{ok}'>a</a>\n<a href=\" {gone}\">b</a>");
    let folder = Folder::new(&[
        ("docs/a.html", page.as_str()),
        (
            "docs/sub/b.md",
            &format!("[x]({ok}) `{gone}`\n\n[y][r]\n\n[r]: {gone}\n"),
        ),
        ("urls.txt", &format!("{ok}\r\nhttp://[bad\n# no\n")),
        ("found.jsonl", &format!("{{\"url\":\"{ok}\"}}\n")),
    ]);
    let json = |args: &[&str], input: &str| {
        let output = folder.check_with(&[args, &["--json"]].concat(), input.as_bytes());
        (places(&output), output.status.code())
    };
    let expect = |mut places: Vec<String>, status| {
        places.sort();
        (places, Some(status))
    };
    let docs = vec![
        format!("{ok} ok docs/a.html:1:13"),
        format!("{gone} status_410 docs/a.html:2:10"),
        format!("{ok} ok docs/sub/b.md:1:1"),
        format!("{gone} status_410 docs/sub/b.md:3:1"),
    ];
    assert_eq!(json(&["docs"], ""), expect(docs.clone(), 1));
    let dotted = docs.iter().map(|place| place.replace(" docs/", " ./docs/"));
    assert_eq!(json(&["./docs"], ""), expect(dotted.collect(), 1));
    let list = vec![
        format!("{ok} ok urls.txt:1:1"),
        "http://[bad invalid_url urls.txt:2:1".to_owned(),
    ];
    assert_eq!(json(&["--urls", "urls.txt"], ""), expect(list, 1));
    let found = vec![format!("{ok} ok found.jsonl:1:9")];
    assert_eq!(json(&["--urls", "found.jsonl"], ""), expect(found, 0));
    let stdin = vec![format!("{ok} ok -:1:10")];
    let page = format!("<a href=\"{ok}\">a</a>");
    assert_eq!(json(&["-"], &page), expect(stdin, 0));
    let stdin = vec![format!("{ok} ok -:1:1"), format!("{ok} ok -:2:1")];
    assert_eq!(
        json(&["--urls", "-"], &format!("{ok}\n{ok}\n")),
        expect(stdin, 0)
    );
}
