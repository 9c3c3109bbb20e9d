//! The recipes of NOT-THERE.md, run as they stand there, against a server of which a file goes and another one comes.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tempfile::TempDir;

use crate::common::{Script, page, response};

mod check;

/// A folder with the program alone, for beside it are other programs with names that recipes use; and a `PATH` that
/// begins with this folder.
fn programs() -> (TempDir, OsString) {
    let folder = tempfile::tempdir().expect("a folder");
    let program = env!("CARGO_BIN_EXE_crawler-cli");
    symlink(program, folder.path().join("crawler-cli")).expect("a link");
    let rest = env::var_os("PATH").unwrap_or_default();
    let path = [folder.path().as_os_str(), &rest].join(":".as_ref());
    (folder, path)
}

/// The blocks of commands for users of `find`.
fn recipes() -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("NOT-THERE.md");
    let text = fs::read_to_string(path).expect("the page");
    let mut sections = text.split("\n## ");
    let section = sections.find(|section| section.starts_with("find\n"));
    let blocks = section.expect("it is there").split("```console\n").skip(1);
    let commands = blocks.map(|block| {
        let lines = block.lines().take_while(|line| *line != "```");
        let typed = lines.filter_map(|line| line.strip_prefix("$ "));
        typed.collect::<Vec<_>>().join("\n")
    });
    commands.collect()
}

/// `printf alpha | sha256sum`
const SUM: &str = "8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2223f8";

#[test]
fn the_recipes_do_what_they_say() {
    let is_later = Arc::new(AtomicBool::new(false));
    let later = Arc::clone(&is_later);
    let server = Script::start(move |line| match line {
        "GET /" if later.load(Ordering::Relaxed) => page(&["SHA256SUMS", "alpha", "new"]),
        "GET /" => page(&["SHA256SUMS", "alpha", "old"]),
        "GET /SHA256SUMS" => response(200, "", format!("{SUM}  alpha\n")),
        "GET /alpha" => response(200, "", "alpha"),
        "GET /old" | "GET /new" => response(200, "", "x"),
        _ => response(404, "", ""),
    });
    let folder = tempfile::tempdir().expect("a folder");
    let programs = programs();
    let run = |recipe: &str| {
        let mut shell = Command::new("bash");
        shell.args(["-e", "-o", "pipefail", "-c", recipe]);
        shell.env("PATH", &programs.1);
        shell.env("LC_ALL", "C").env("URL", server.url("/"));
        let output = shell.current_dir(folder.path()).output();
        let output = output.expect("bash runs");
        assert!(output.status.success(), "{recipe}\n{output:?}");
    };
    let text = |name: &str| fs::read_to_string(folder.path().join(name)).expect(name);
    let recipes = recipes();
    let [changes, sums, deletions] = &recipes[..] else {
        panic!("{recipes:?}");
    };
    run(changes);
    assert_eq!(text("new").lines().count(), 4, "everything is new at first");
    run(sums);
    is_later.store(true, Ordering::Relaxed);
    run(changes);
    let url = server.url("/");
    assert!(text("new").starts_with(&format!("{url}new ")));
    assert!(text("gone").starts_with(&format!("{url}old ")));
    assert_eq!((text("new") + &text("gone")).lines().count(), 2);
    run(deletions);
    assert_eq!(text("to-delete"), "old\n");
}
