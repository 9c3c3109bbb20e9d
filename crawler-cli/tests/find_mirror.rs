//! `crawler-cli find --mirror`: what is on disk after changes, mishaps and attacks of the server, and after kill -9.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::thread;
use std::time::{Duration, Instant};

use common::tree::TreeServer;
use common::{crawler, find, lines, page, response, stderr};
use tempfile::TempDir;

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

fn mirror(server: &TreeServer, to: &Path, more: &[&str]) -> Output {
    let url = server.url();
    let mut args = vec![url.as_str(), "--mirror", text(to), "--retries", "0"];
    args.extend(more);
    find(&args)
}

/// The names and contents of all files below a folder, without the record; links with their targets.
fn files(below: &Path) -> BTreeMap<String, String> {
    fn walk(root: &Path, at: &Path, all: &mut BTreeMap<String, String>) {
        for entry in fs::read_dir(at).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path.strip_prefix(root).expect("below");
            let name = name.to_string_lossy().into_owned();
            let meta = fs::symlink_metadata(&path).expect("it is there");
            if meta.is_dir() {
                walk(root, &path, all);
            } else if meta.is_symlink() {
                let to = fs::read_link(&path).expect("a link");
                all.insert(name, to.to_string_lossy().into_owned());
            } else if !name.starts_with(".courser-mirror") {
                all.insert(name, fs::read_to_string(&path).expect("text"));
            }
        }
    }
    let mut all = BTreeMap::new();
    walk(below, below, &mut all);
    all
}

/// The number of files below a folder, in which a process is at work, without the record.
fn count(below: &Path) -> usize {
    let entries = fs::read_dir(below).into_iter().flatten().flatten();
    let counts = entries.map(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => count(&entry.path()),
        Ok(_) => {
            let name = entry.file_name();
            usize::from(!name.to_string_lossy().starts_with(".courser-mirror"))
        }
        // It was removed meanwhile.
        Err(_) => 0,
    });
    counts.sum()
}

fn names(below: &Path) -> Vec<String> {
    files(below).into_keys().collect()
}

#[track_caller]
fn assert_done(output: &Output) {
    assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
}

#[track_caller]
fn assert_refused(output: &Output, why: &str) {
    let stderr = stderr(output);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains(why), "{why} in {stderr}");
}

/// Twenty files in two directories.
fn twenty() -> Vec<String> {
    let names = (0..10).flat_map(|at| [format!("a/{at}"), format!("b/{at}")]);
    names.collect()
}

fn server_of_twenty() -> TreeServer {
    let names = twenty();
    TreeServer::start(&names.iter().map(String::as_str).collect::<Vec<_>>())
}

// ---- what changes

#[test]
fn a_mirror_follows_its_server_with_conditional_requests() {
    let server = server_of_twenty();
    let to = folder();
    assert_done(&mirror(&server, to.path(), &[]));
    assert_eq!(names(to.path()).len(), 20);
    let seen = server.seen();
    {
        let mut tree = server.tree();
        tree.put("a/0", "changed");
        tree.put("c/new", "new");
        tree.remove("b/9");
    }
    let output = mirror(&server, to.path(), &[]);
    assert_done(&output);
    let stderr = stderr(&output);
    assert!(
        stderr.contains("deleted ") && stderr.contains("/b/9\n"),
        "{stderr}"
    );
    assert!(
        stderr.contains("2 files downloaded (10 bytes), 18 there already, 1 deleted"),
        "{stderr}"
    );
    let now = files(to.path());
    assert_eq!(now.len(), 20);
    assert_eq!(
        (now["a/0"].as_str(), now["c/new"].as_str()),
        ("changed", "new")
    );
    // One request for each directory and for each file, and no HEAD.
    let requests = server.requests_after(seen);
    assert_eq!(requests.len(), 4 + 20, "{requests:?}");
    assert!(requests.iter().all(|line| line.starts_with("GET ")));
    let heads = server.script.heads().split_off(seen);
    let conditional = heads.iter().filter(|head| {
        let head = head.to_ascii_lowercase();
        head.contains("\r\nif-none-match: \"")
    });
    assert_eq!(conditional.count(), 19);
}

/// One request tells the time zone of the listings.
#[test]
fn files_that_are_as_listed_are_not_asked_for() {
    let server = server_of_twenty();
    server.tree().sizes = true;
    let to = folder();
    assert_done(&mirror(&server, to.path(), &[]));
    let seen = server.seen();
    server.tree().put("a/3", "another size");
    let output = mirror(&server, to.path(), &[]);
    assert_done(&output);
    assert!(
        stderr(&output).contains("1 file downloaded (12 bytes), 19 there already"),
        "{}",
        stderr(&output)
    );
    let requests = server.requests_after(seen);
    assert_eq!(requests.len(), 5, "{requests:?}");
    assert!(requests.contains(&"GET /a/3".to_owned()));
}

/// Also if the server ignores the validators, nothing is fetched twice.
/// A server without validators: only its listing shows that a file was changed.
#[test]
fn a_file_that_the_listing_shows_as_newer_is_fetched_again() {
    let listing = |year: u32| {
        let row = format!("<a href=\"x\">x</a>     01-Mar-{year} 12:00     1\r\n");
        let body = format!(
            "<html><h1>Index of /</h1><hr><pre><a href=\"../\">../</a>\r\n{row}</pre><hr></body></html>\r\n"
        );
        response(200, "Content-Type: text/html\r\n", body)
    };
    let server = TreeServer::start(&[]);
    let to = folder();
    let instead = |year, content: &str| {
        let file = response(200, "", content);
        server.tree().instead =
            BTreeMap::from([(String::new(), listing(year)), ("x".to_owned(), file)]);
    };
    instead(2020, "1");
    assert_done(&mirror(&server, to.path(), &[]));
    // The time of the existing file is that of its download.
    instead(2021, "2");
    assert_done(&mirror(&server, to.path(), &[]));
    assert_eq!(files(to.path())["x"], "1");
    instead(2098, "2");
    assert_done(&mirror(&server, to.path(), &[]));
    assert_eq!(files(to.path())["x"], "2");
}

/// A cache that has lost the change of a file answers 304.
#[test]
fn a_wrong_304_does_not_hide_that_the_listing_has_another_size() {
    let server = TreeServer::start(&["x"]);
    server.tree().sizes = true;
    let to = folder();
    assert_done(&mirror(&server, to.path(), &[]));
    server.tree().put("x", "longer");
    let script = &server.script;
    let seen = server.seen();
    server.tree().lies = true;
    assert_done(&mirror(&server, to.path(), &[]));
    assert_eq!(files(to.path())["x"], "longer");
    let requests = script.requests().split_off(seen);
    let of_file = requests.iter().filter(|line| line.ends_with(" /x"));
    let methods: Vec<_> = of_file.map(|line| line.split(' ').next()).collect();
    // The first shows the time zone of the listing.
    let expected = ["HEAD", "GET", "HEAD", "GET"].map(Some);
    assert_eq!(methods, expected);
}

#[test]
fn a_server_that_does_not_compare_is_compared_by_its_validators() {
    let server = server_of_twenty();
    let fixed = |body: &str| response(200, "ETag: \"v1\"\r\n", body);
    server.tree().instead.insert("a/0".to_owned(), fixed("a/0"));
    let to = folder();
    assert_done(&mirror(&server, to.path(), &[]));
    let output = mirror(&server, to.path(), &[]);
    assert_done(&output);
    assert!(stderr(&output).contains("0 files downloaded (0 bytes), 20 there"));
}

#[test]
fn what_the_search_leaves_out_is_not_gone() {
    for expression in [
        &[
            "(", "-name", "a", "-prune", ")", "-o", "-name", "[01]", "-print",
        ][..],
        &["--exclude", "*/a/*", "--include", "*/[01]"],
    ] {
        let server = server_of_twenty();
        let to = folder();
        // The user has more than the search finds.
        fs::create_dir(to.path().join("a")).expect("made");
        fs::write(to.path().join("a/1"), "a/1").expect("written");
        fs::create_dir(to.path().join("b")).expect("made");
        fs::write(to.path().join("b/2"), "b/2").expect("written");
        assert_done(&mirror(&server, to.path(), expression));
        for name in ["a/1", "b/1", "b/2"] {
            server.tree().remove(name);
        }
        assert_done(&mirror(
            &server,
            to.path(),
            &[expression, &["--max-delete", "50%"]].concat(),
        ));
        assert_eq!(names(to.path()), ["a/1", "b/0", "b/2"]);
    }
}

/// What another search does not list is not gone: it is refused before it asks.
#[test]
fn a_mirror_belongs_to_one_search() {
    let (server, other) = (server_of_twenty(), TreeServer::start(&["a/0"]));
    let to = folder();
    assert_done(&mirror(&server, to.path(), &[]));
    let all = files(to.path());
    let (url, below, seen) = (server.url(), server.script.url("/b/"), server.seen());
    let another = other.url();
    for (args, why) in [
        (
            &[another.as_str()][..],
            format!("its start is {url}, not {another};"),
        ),
        (&[&below], format!("its start is {url}, not {below};")),
        (
            &[&url, &below],
            format!("its start is {url}, not {url} {below};"),
        ),
        (
            &[&url, "-name", "0"],
            "its expression is (none), not -name 0;".to_owned(),
        ),
        (
            &[&url, "-name", "a b", "-maxdepth", "1"],
            "its expression is (none), not -name 'a b' -maxdepth 1;".to_owned(),
        ),
        (
            &[&url, "--exclude", "*/a/*"],
            "not --exclude */a/*;".to_owned(),
        ),
        (
            &[&url, "--dry-run", "--include", "*0"],
            "not --include *0;".to_owned(),
        ),
        (
            &[&another, "-name", "0"],
            "; its expression is (none), not -name 0;".to_owned(),
        ),
    ] {
        let more = ["--mirror", text(to.path()), "--max-delete", "100%"];
        let output = find(&[args, &more].concat());
        let stderr = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?} {stderr}");
        for part in [
            &why,
            text(to.path()),
            "/.courser-mirror: the mirror of another search",
        ] {
            assert!(stderr.contains(part), "{part} in {stderr}");
        }
        assert_eq!(files(to.path()), all);
    }
    assert_eq!((server.seen(), other.seen()), (seen, 0));
    // Without the record, the files are nobody's.
    fs::remove_file(to.path().join(".courser-mirror")).expect("it is there");
    let more = ["--mirror", text(to.path()), "--max-delete", "100%"];
    assert_done(&find(&[&[another.as_str()], &more[..]].concat()));
    other.tree().put("b", "new");
    other.tree().remove("a/0");
    find(&[&[another.as_str()], &more[..]].concat());
    assert!(all.keys().all(|name| files(to.path()).contains_key(name)));
}

#[test]
fn only_unchanged_files_of_the_mirror_are_deleted() {
    let server = server_of_twenty();
    let to = folder();
    fs::create_dir(to.path().join("a")).expect("made");
    // The user's own file, the same as the server's.
    fs::write(to.path().join("a/0"), "a/0").expect("written");
    assert_done(&mirror(&server, to.path(), &[]));
    fs::write(to.path().join("own"), "own").expect("written");
    fs::write(to.path().join("b/own"), "own").expect("written");
    fs::write(to.path().join("b/1"), "edited").expect("written");
    {
        let mut tree = server.tree();
        for name in ["a/0", "b/1", "b/2"] {
            tree.remove(name);
        }
    }
    let output = mirror(&server, to.path(), &["--max-delete", "50%"]);
    assert_done(&output);
    let now = files(to.path());
    assert!(!now.contains_key("b/2"));
    for (name, content) in [
        ("own", "own"),
        ("b/own", "own"),
        ("b/1", "edited"),
        ("a/0", "a/0"),
    ] {
        assert_eq!(now[name], content, "{name}");
    }
    assert!(stderr(&output).contains("b/1: gone on the server, but changed here"));
    // A file of the user that differs from the server's is not replaced either.
    fs::write(to.path().join("b/3"), "edited").expect("written");
    assert_refused(&mirror(&server, to.path(), &[]), "exists and differs");
    assert_eq!(files(to.path())["b/3"], "edited");
}

#[test]
fn a_file_becomes_a_directory_and_a_directory_a_file() {
    let server = server_of_twenty();
    server.tree().put("x", "file");
    server.tree().put("y/z", "below");
    let to = folder();
    assert_done(&mirror(&server, to.path(), &[]));
    {
        let mut tree = server.tree();
        tree.remove("x");
        tree.remove("y/z");
        tree.put("x/below", "now below");
        tree.put("y", "now a file");
    }
    let dry = mirror(&server, to.path(), &["--dry-run"]);
    assert_done(&dry);
    assert_eq!(lines(&dry.stdout).len(), 4);
    // With one deletion allowed, both stay.
    let output = mirror(&server, to.path(), &["--max-delete", "1"]);
    assert_refused(&output, "2 of 22 known files are gone on the server");
    let now = files(to.path());
    assert_eq!((now["x"].as_str(), now["y/z"].as_str()), ("file", "below"));
    assert_done(&mirror(&server, to.path(), &[]));
    let now = files(to.path());
    assert_eq!(now["x/below"], "now below");
    assert_eq!(now["y"], "now a file");
    assert_eq!(now.len(), 22);
}

/// Only what is in the way goes before all files are there; the rest stays if one of them fails.
#[test]
fn nothing_else_is_deleted_if_the_file_that_needed_room_fails() {
    let server = server_of_twenty();
    server.tree().put("x", "file");
    let to = folder();
    assert_done(&mirror(&server, to.path(), &[]));
    {
        let mut tree = server.tree();
        tree.remove("x");
        tree.remove("a/9");
        tree.put("x/below", "now below");
        let fails = response(404, "", "");
        tree.instead = BTreeMap::from([("x/below".to_owned(), fails)]);
    }
    let why = "--mirror: 1 file in the way of another was deleted, and nothing else: 1 URL could not be read or downloaded";
    assert_refused(&mirror(&server, to.path(), &[]), why);
    let now = files(to.path());
    assert!(now.contains_key("a/9") && !now.contains_key("x"), "{now:?}");
    assert_eq!(now.len(), 20);
    server.tree().instead.clear();
    assert_done(&mirror(&server, to.path(), &[]));
    let now = files(to.path());
    assert_eq!(now["x/below"], "now below");
    assert_eq!(now.len(), 20);
    assert!(!now.contains_key("a/9"));
}

// ---- guards

/// The server loses everything, in several ways.
#[test]
fn a_server_that_suddenly_lists_less_empties_no_mirror() {
    let server = server_of_twenty();
    let to = folder();
    assert_done(&mirror(&server, to.path(), &[]));
    let all = files(to.path());
    let whole = page(&["a/"]);
    let cut = whole[..whole.len() - 20].to_vec();
    let html = |body: &str| response(200, "Content-Type: text/html\r\n", body);
    let login = "<html><form action=login><input type=password name=p></form></html>";
    for (path, bytes, why) in [
        (
            "",
            page(&[]),
            "20 of 20 known files are gone on the server, more than --max-delete 10% allows",
        ),
        ("b/", page(&[]), "11 of 20 known files"),
        (
            "b/",
            page(&["0", "1", "2", "3", "4", "5", "6"]),
            "4 of 20 known files",
        ),
        ("", cut, "nothing was deleted: 1 URL could not be read"),
        (
            "",
            html(login),
            "nothing was deleted: 1 URL could not be read",
        ),
        // A title says what the writer of the page wants.
        (
            "b/",
            html(&format!("<title>Index of /b/</title>{login}")),
            "a page that asks for a password, titled \"Index of /b/\"",
        ),
        (
            "b/",
            response(302, "Location: /\r\n", ""),
            "/, a directory above it",
        ),
        (
            "b/",
            page(&["http://127.0.0.2/b/0", "http://127.0.0.3/b/1"]),
            "nothing was deleted: 1 URL could not be read",
        ),
        (
            "b/",
            html("<title>Shop</title><a href='../'>Up</a>"),
            "not a directory listing: a web page, titled \"Shop\"",
        ),
        (
            "b/",
            response(200, "Content-Type: text/xml\r\n", "Access denied"),
            "not a directory listing: its content type is text/xml",
        ),
        (
            "b/",
            response(
                200,
                "Content-Type: text/xml\r\n",
                "<ListBucketResult><Delimiter>/</Delimiter><IsTruncated>true</IsTruncated></ListBucketResult>",
            ),
            "the listing is incomplete",
        ),
        (
            "b/",
            html(
                "<html><h1>Index of /b/</h1><hr><pre><a href=\"../\">../</a>\r\n<a href=\"0\">0</a> 0",
            ),
            "the listing was cut short: a page of nginx without </html>",
        ),
        (
            "b/",
            page(&["0#1"]),
            "links left out, which lead elsewhere: ",
        ),
        ("b/", response(503, "", ""), "the server answered 503"),
        ("b/", response(404, "", ""), "the server answered 404"),
        ("b/", response(304, "", ""), "the server answered 304"),
        ("b/0", response(304, "", ""), "the server answered 304"),
    ] {
        if path == "b/0" {
            // The file has to be asked for without validators.
            fs::remove_file(to.path().join("b/0")).expect("it is there");
        }
        server.tree().instead = BTreeMap::from([(path.to_owned(), bytes)]);
        // Pages that are no listings are not a question of numbers.
        let most = match why.contains("known files") {
            true => "10%",
            false => "100%",
        };
        // Something that is gone in any case.
        server.tree().remove("a/9");
        let output = mirror(
            &server,
            to.path(),
            &["--patience", "1", "--max-delete", most],
        );
        server.tree().put("a/9", "a/9");
        let stderr = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{path} {stderr}");
        assert!(stderr.contains(why), "{why} in {stderr}");
        if path != "b/0" {
            assert_eq!(files(to.path()), all, "{path}");
        }
    }
    server.tree().instead.clear();
    assert_done(&mirror(&server, to.path(), &[]));
    assert_eq!(files(to.path()), all);
}

#[test]
fn the_limit_can_be_set() {
    let server = server_of_twenty();
    let to = folder();
    assert_done(&mirror(&server, to.path(), &[]));
    for name in twenty() {
        server.tree().remove(&name);
    }
    server.tree().empty.push("a/".to_owned());
    for most in ["0", "19", "99%"] {
        let output = mirror(&server, to.path(), &["--max-delete", most]);
        assert_refused(&output, "20 of 20 known files are gone");
        assert!(
            stderr(&output).contains("20 NOT DELETED"),
            "{}",
            stderr(&output)
        );
    }
    assert_done(&mirror(&server, to.path(), &["--max-delete", "100%"]));
    assert_eq!(names(to.path()), [""; 0]);
    // Empty directories go, too.
    assert!(!to.path().join("b").exists());
}

#[test]
fn quit_deletes_nothing() {
    let server = server_of_twenty();
    let to = folder();
    let ends = ["-print", "-name", "last", "-quit", "-j", "1"];
    assert_done(&mirror(&server, to.path(), &ends));
    server.tree().remove("a/0");
    server.tree().put("a/last", "last");
    // The files of `a` are found in any case before the search ends.
    let output = mirror(&server, to.path(), &ends);
    assert!(files(to.path()).contains_key("a/0"), "{}", stderr(&output));
}

// ---- attacks

#[test]
fn links_in_the_folder_are_not_followed() {
    let server = server_of_twenty();
    let (to, elsewhere) = (folder(), folder());
    assert_done(&mirror(&server, to.path(), &[]));
    // The directory is now elsewhere, and a link is in its place.
    let moved = elsewhere.path().join("b");
    fs::rename(to.path().join("b"), &moved).expect("renamed");
    symlink(&moved, to.path().join("b")).expect("a link");
    for at in 0..10 {
        server.tree().remove(&format!("b/{at}"));
    }
    let output = mirror(&server, to.path(), &["--max-delete", "100%"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("cannot delete"),
        "{}",
        stderr(&output)
    );
    assert_eq!(fs::read_dir(&moved).expect("a folder").count(), 10);
    // The record itself.
    let record = to.path().join(".courser-mirror");
    let target = elsewhere.path().join("record");
    fs::rename(&record, &target).expect("renamed");
    symlink(&target, &record).expect("a link");
    assert_refused(&mirror(&server, to.path(), &[]), "--mirror: ");
}

#[test]
fn names_that_lead_elsewhere_or_are_those_of_the_record_do_no_harm() {
    let up = ["..%2Fup", "%2e%2e%2fup2", "..%5Cup3"];
    let hostile = [
        "x%5C..%5Cy",
        ".courser-mirror",
        ".courser-mirror-wal",
        "README",
        "readme",
    ];
    let server = TreeServer::start(&[&hostile[..], &up].concat());
    let parent = folder();
    let to = parent.path().join("mirror");
    let output = mirror(&server, &to, &[]);
    assert_refused(&output, "whose names cannot be part of a path");
    assert_eq!(fs::read_dir(parent.path()).expect("a folder").count(), 1);
    for name in up {
        server.tree().remove(name);
    }
    assert_done(&mirror(&server, &to, &["--max-delete", "3"]));
    assert_done(&mirror(&server, &to, &[]));
    assert_eq!(fs::read_dir(parent.path()).expect("a folder").count(), 1);
    let is_ours = |name: &String| name.starts_with(".courser-mirror");
    let all: Vec<String> = fs::read_dir(&to)
        .expect("a folder")
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    assert_eq!(
        all.iter().filter(|name| !is_ours(name)).count(),
        4,
        "{all:?}"
    );
    assert!(all.contains(&"x%5C..%5Cy".to_owned()), "{all:?}");
    // Both names that are equal up to case.
    server.tree().remove("README");
    assert_done(&mirror(&server, &to, &["--max-delete", "1"]));
    assert!(to.join("readme").exists() && !to.join("README").exists());
}

// ---- checksums

const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

#[test]
fn a_file_with_another_checksum_is_kept_apart() {
    for (list, content) in [
        (
            "a/SHA256SUMS",
            format!("{ABC}  x\n{ABC}  bad\n{ABC}  ../b/free\n{ABC}  /b/free\n"),
        ),
        ("a/sha256sum.txt", format!("{ABC} *x\r\n{ABC} *./bad\r\n")),
        (
            "a/SHA256",
            format!("SHA256 (x) = {ABC}\nSHA256 (bad) = {ABC}\n"),
        ),
        ("a/bad.sha256", ABC.to_owned()),
    ] {
        let server = TreeServer::start(&["b/free"]);
        server.tree().put("a/x", "abc");
        server.tree().put("a/bad", "abd");
        server.tree().put(list, &content);
        let to = folder();
        let output = mirror(&server, to.path(), &["--checksums", "-name", "[!Ss]*"]);
        let wrong = format!(
            "a/bad: the SHA-256 should be {ABC}, not a52d159f262b2c6ddb724a61840befc36eb30c88877a4030b65cbe86298449c9"
        );
        assert_refused(&output, &wrong);
        let now = files(to.path());
        assert!(!now.contains_key("a/bad"), "{list} {now:?}");
        assert_eq!(now["a/.bad.courser-bad"], "abd");
        assert_eq!(
            (now["a/x"].as_str(), now["b/free"].as_str()),
            ("abc", "b/free")
        );
        // The list is asked for once.
        let asked = server.script.requests();
        let of_list = asked.iter().filter(|line| line.ends_with(list));
        assert!((1..=2).contains(&of_list.count()), "{asked:?}");
        // A good file takes its place.
        server.tree().put("a/bad", "abc");
        assert_done(&mirror(
            &server,
            to.path(),
            &["--checksums", "-name", "[!Ss]*"],
        ));
        assert_eq!(files(to.path())["a/bad"], "abc");
    }
}

#[test]
fn without_its_list_a_file_is_not_taken() {
    let server = TreeServer::start(&["a/x", "a/y", "a/SHA256SUMS", "b/z"]);
    let to = folder();
    for answer in [
        response(404, "", ""),
        response(200, "", "<html>sorry</html>"),
    ] {
        server
            .tree()
            .instead
            .insert("a/SHA256SUMS".to_owned(), answer);
        let output = mirror(&server, to.path(), &["--checksums", "-name", "[xyz]"]);
        assert_refused(&output, "its checksum could not be read in ");
        assert_eq!(names(to.path()), ["b/z"]);
    }
}

// ---- dry run

#[test]
fn a_dry_run_tells_and_does_nothing() {
    let server = server_of_twenty();
    let parent = folder();
    let to = parent.path().join("new");
    let output = mirror(&server, &to, &["--dry-run"]);
    assert_done(&output);
    assert!(!to.exists());
    let planned = lines(&output.stdout);
    assert_eq!(planned.len(), 20, "{planned:?}");
    assert_eq!(planned[0], format!("download {}a/0", server.url()));
    assert_done(&mirror(&server, &to, &[]));
    let before = files(&to);
    // Nothing is made in the folder, not even for a moment.
    let changed = || fs::metadata(&to).and_then(|meta| meta.modified()).ok();
    let then = changed();
    server.tree().remove("a/0");
    server.tree().put("a/1", "longer than before");
    server.tree().put("c", "new");
    let output = mirror(&server, &to, &["--dry-run"]);
    assert_done(&output);
    let url = server.url();
    assert_eq!(
        lines(&output.stdout),
        [
            format!("delete {}", text(&to.join("a/0"))),
            format!("download {url}a/1"),
            format!("download {url}c"),
        ]
    );
    let json = mirror(&server, &to, &["--dry-run", "--json"]);
    let first: serde_json::Value = serde_json::from_str(&lines(&json.stdout)[0]).expect("JSON");
    assert_eq!(
        (&first["plan"], &first["url"]),
        (&"delete".into(), &serde_json::Value::Null)
    );
    assert_eq!((files(&to), changed()), (before, then));
    let output = mirror(&server, &to, &["--dry-run", "--max-delete", "0"]);
    assert_refused(&output, "1 of 20 known files");
}

// ---- kill -9

/// The process is killed while it deletes, and the same command completes the mirror.
#[test]
fn a_mirror_that_was_killed_is_completed_by_the_same_command() {
    const ALL: usize = 3000;
    let all: Vec<String> = (0..ALL).map(|at| format!("{}/{at}", at % 7)).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let server = TreeServer::start(&all);
    let to = folder();
    let count = || count(to.path());
    // Killed in the middle of downloads: at several moments, as fast as this machine is.
    kill_when(&server, to.path(), || count() > 500);
    let some = count();
    assert!(some < ALL, "{some}");
    assert_done(&mirror(&server, to.path(), &[]));
    assert_eq!(count(), ALL);
    fs::write(to.path().join("own"), "own").expect("written");
    let gone: Vec<&str> = all[..ALL - 10].to_vec();
    for name in &gone {
        server.tree().remove(name);
    }
    let mut killed = 0;
    while count() > 11 {
        let before = count();
        kill_when(&server, to.path(), || count() < before);
        let after = count();
        assert!(after <= before);
        killed += 1;
        assert!(files(to.path()).contains_key("own"));
        if killed == 5 {
            assert_done(&mirror(&server, to.path(), &["--max-delete", "100%"]));
        }
    }
    assert_eq!(count(), 11);
    // Nothing is left of the others, and the record is as the folder.
    assert_done(&mirror(&server, to.path(), &[]));
    assert_eq!(files(to.path())["own"], "own");
}

/// Starts a mirror, and kills it as soon as `is_time` says so, unless it has ended before.
fn kill_when(server: &TreeServer, to: &Path, is_time: impl Fn() -> bool) {
    let url = server.url();
    let args = ["find", &url, "--mirror", text(to), "--max-delete", "100%"];
    let mut child = crawler(&args)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("the program runs");
    let end = Instant::now() + Duration::from_secs(60);
    while child.try_wait().expect("a child").is_none() && !is_time() {
        assert!(Instant::now() < end, "the mirror does not end");
        thread::sleep(Duration::from_millis(1));
    }
    // It may have ended.
    let _ = child.kill();
    child.wait().expect("it ends");
}

// ---- usage

#[test]
fn combinations_that_mean_nothing_are_refused() {
    let to = folder();
    let dir = text(to.path());
    for (args, why) in [
        (
            &["--mirror", dir, "--download", dir][..],
            ": not together with --mirror",
        ),
        (
            &["--max-delete", "3"],
            "--max-delete: only with --download DIR or --mirror DIR",
        ),
        (
            &["--download", dir, "--max-delete", "3"],
            "--max-delete: only with --mirror DIR",
        ),
        (
            &["--mirror", dir, "--max-delete", "x"],
            "neither a number of files nor a share",
        ),
        (&["--dry-run"], "--dry-run: only with"),
        (&["--checksums"], "--checksums: only with"),
        (
            &["--mirror", dir, "--state", "x"],
            "--mirror: not together with --state",
        ),
        (
            &["--mirror", dir, "--links", "page"],
            "--mirror: not together with --links page",
        ),
        (
            &["--mirror", dir, "--accept-pages"],
            "not together with --accept-pages",
        ),
        (
            &["--mirror", dir, "--sitemap", "http://127.0.0.1:1/s.xml"],
            "not together with --sitemap",
        ),
        (
            &["--mirror", dir, "--retry-unread", "/dev/null"],
            "--mirror: not together with --retry-unread",
        ),
        (
            &["--download", dir, "--retry-unread", "/dev/null"],
            "--download: not together with --retry-unread",
        ),
        (&["--mirror", "/dev/null/x"], "--mirror /dev/null/x: "),
    ] {
        let output = find(&[&["http://127.0.0.1:1/"], args].concat());
        assert_eq!(
            output.status.code(),
            Some(2),
            "{args:?} {}",
            stderr(&output)
        );
        assert!(
            stderr(&output).contains(why),
            "{why} in {}",
            stderr(&output)
        );
    }
    let record = PathBuf::from(dir).join(".courser-mirror");
    assert!(!record.exists());
}
