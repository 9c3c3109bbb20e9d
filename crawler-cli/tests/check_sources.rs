//! `crawler-cli check` as a user runs it on files, lists and standard input.

mod common;

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Output, Stdio};

use common::{crawler, stderr};
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
        &["--config", "nope.toml", "a.md"],
        &["a.md", "--root-dir"],
        &[],
    ] {
        let error = usage_error(&folder.check(args));
        let named = args
            .iter()
            .find(|arg| arg.starts_with("nope") || arg.contains('['));
        assert!(named.is_none_or(|name| error.contains(name)), "{error}");
    }
    usage_error(&folder.check(&["-", "--urls", "-"]));
    usage_error(&folder.check(&["a.md", "--dry-run"]));
}

#[test]
fn all_errors_of_a_configuration_are_told() {
    let config = "timout = 20\nrecursive = 1\nretries = 'x'\nconfig = 'y'\nexclude = ['(']\n";
    let folder = Folder::new(&[("a.md", ""), (".crawler-check.toml", config)]);
    let error = usage_error(&folder.check(&["a.md"]));
    for expected in [
        ".crawler-check.toml:1:1: timout: there is no such option; did you mean timeout?",
        ".crawler-check.toml:2:13: recursive: neither true nor false",
        ".crawler-check.toml:3:11: retries x: ",
        ".crawler-check.toml:4:1: config: there is no such option",
        ".crawler-check.toml:5:11: exclude (: ",
    ] {
        assert!(error.contains(expected), "{error}");
    }
    let named = Folder::new(&[("a.md", ""), ("sub/c.toml", "x = 1")]);
    let error = usage_error(&named.check(&["a.md", "--config", "sub/c.toml"]));
    assert!(
        error.contains("sub/c.toml:1:1: x: there is no such option"),
        "{error}"
    );
}
