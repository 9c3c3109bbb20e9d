//! The effects of expressions: their output, their commands, and the requests that their tests cause.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::common::{Script, find, lines, page, response, stderr};

/// Files whose listings show no size and no time; `HEAD` returns both.
fn mirror() -> Script {
    Script::start(|request| match request {
        "GET /pub/" => page(&["a/", "skip/", "one.iso", "two.txt"]),
        "GET /pub/a/" => page(&["three.iso", "b%20c/"]),
        "GET /pub/a/b%20c/" => page(&[]),
        "GET /pub/skip/" => page(&["four.iso"]),
        "HEAD /pub/one.iso" => file(100, "Fri, 01 Mar 2024 10:00:00 GMT"),
        "HEAD /pub/two.txt" => file(200, "Sat, 02 Mar 2024 10:00:00 GMT"),
        "HEAD /pub/a/three.iso" => file(5000, "Sun, 03 Mar 2024 10:00:00 GMT"),
        "HEAD /pub/skip/four.iso" => file(0, "Mon, 04 Mar 2024 10:00:00 GMT"),
        "HEAD /stamp" => response(301, "Location: /moved\r\n", ""),
        // No HEAD here; only GET works.
        "HEAD /moved" => response(405, "", ""),
        "GET /moved" => response(206, "Last-Modified: Sat, 02 Mar 2024 10:00:00 GMT\r\n", "x"),
        _ => response(404, "", ""),
    })
}

fn file(size: usize, modified: &str) -> Vec<u8> {
    let headers =
        format!("Last-Modified: {modified}\r\nContent-Length: {size}\r\nConnection: close\r\n\r\n");
    [b"HTTP/1.1 200 OK\r\n".as_slice(), headers.as_bytes()].concat()
}

fn run(server: &Script, words: &[&str]) -> std::process::Output {
    find(&[&[server.url("/pub/").as_str(), "--robots=off"], words].concat())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The trap: files whose size nobody says are left out, and the search looks complete.
#[test]
fn files_that_stay_undecided_are_named() {
    let names: Vec<String> = (0..25).map(|n| format!("f{n:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let listing = page(&names);
    let server = Script::start(move |request| match request {
        "GET /pub/" => listing.clone(),
        "HEAD /pub/f24" => file(9000, "Fri, 01 Mar 2024 10:00:00 GMT"),
        _ => b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec(),
    });
    for (words, named, status) in [
        (&["-type", "f", "-size", "+1k"][..], 24, 1),
        (&["-name", "f24", "-size", "+1k"], 0, 0),
        // The directory has no time, as on many servers.
        (&["-type", "d", "-mtime", "-1"], 0, 0),
    ] {
        let output = run(&server, words);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(status), "{words:?}: {said}");
        assert_eq!(said.matches(": UNDECIDED").count(), named, "{said}");
    }
}

#[test]
fn only_undecided_tests_cause_requests() {
    for (words, asked, found) in [
        (
            &["-name", "*.iso"][..],
            &[][..],
            &["/pub/a/three.iso", "/pub/one.iso", "/pub/skip/four.iso"][..],
        ),
        (
            &["-name", "t*", "-size", "+1k"],
            &["HEAD /pub/a/three.iso", "HEAD /pub/two.txt"],
            &["/pub/a/three.iso"],
        ),
        (
            &["-size", "+1k", "-name", "t*.iso"],
            &["HEAD /pub/a/three.iso"],
            &["/pub/a/three.iso"],
        ),
        (&["-empty", "-type", "d"], &[], &["/pub/a/b%20c/"]),
        (
            &["-newermt", "2024-03-02 12:00 UTC", "-name", "*.iso"],
            &[
                "HEAD /pub/a/three.iso",
                "HEAD /pub/one.iso",
                "HEAD /pub/skip/four.iso",
            ],
            &["/pub/a/three.iso", "/pub/skip/four.iso"],
        ),
    ] {
        let server = mirror();
        let output = run(&server, words);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let found: Vec<String> = found.iter().map(|path| server.url(path)).collect();
        assert_eq!(lines(&output.stdout), found, "{words:?}");
        let mut heads = server.requests();
        heads.retain(|request| request.starts_with("HEAD"));
        heads.sort();
        assert_eq!(heads, asked, "{words:?}");
    }
}

#[test]
fn the_first_match_can_end_the_search() {
    let server = mirror();
    let output = run(
        &server,
        &["-name", "pub", "-exec", "echo", "{}", "+", "-quit"],
    );
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(text(&output.stdout), format!("{}\n", server.url("/pub/")));
    assert!(!stderr(&output).contains("STOPPED"), "{}", stderr(&output));
}

#[test]
fn newer_than_a_page_of_a_server_that_asks_for_a_long_wait() {
    let busy = Script::start(|_| response(503, "Retry-After: 120\r\n", ""));
    let page = busy.url("/stamp");
    let output = find(&[&busy.url("/"), "-newer", &page, "--patience", "60"]);
    assert_eq!(output.status.code(), Some(1));
    let error = format!(
        "crawler-cli find: -newer {page}: the server answered 503 and asks to wait 120 s, which ends after the patience of 60 s"
    );
    assert!(stderr(&output).contains(&error), "{}", stderr(&output));
    assert_eq!(busy.requests(), ["HEAD /stamp"]);
}

#[test]
fn newer_than_a_page_and_than_a_file() {
    let server = mirror();
    let output = run(&server, &["-type", "f", "-newer", &server.url("/stamp")]);
    let found = ["/pub/a/three.iso", "/pub/skip/four.iso"].map(|path| server.url(path));
    assert_eq!(lines(&output.stdout), found, "{}", stderr(&output));

    let server = mirror();
    let missing = server.url("/nothing");
    let output = run(&server, &["-newer", &missing]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(output.stdout, b"");
    let error = format!("crawler-cli find: -newer {missing}: ");
    assert!(stderr(&output).contains(&error), "{}", stderr(&output));
    assert!(
        !server
            .requests()
            .iter()
            .any(|request| request == "GET /pub/")
    );

    let output = run(&server, &["-newer", "/no/such/file"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("-newer /no/such/file: No such file"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn commands_decide_and_print_in_order() {
    let server = mirror();
    let output = run(
        &server,
        &[
            "-name",
            "one.iso",
            "-printf",
            "before\\n",
            "-exec",
            "echo",
            "got {} of",
            "{}",
            ";",
            "-printf",
            "after\\n",
            "-exec",
            "false",
            ";",
            "-printf",
            "never\\n",
        ],
    );
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let url = server.url("/pub/one.iso");
    assert_eq!(
        text(&output.stdout),
        format!("before\ngot {url} of {url}\nafter\n")
    );
}

/// A response arrives while a command runs that takes longer than the time limit of requests.
#[test]
fn a_slow_command_makes_no_request_time_out() {
    let directory = tempfile::tempdir().expect("a directory");
    let runs = directory.path().join("runs");
    let marker = runs.clone();
    let server = Script::start(move |request| match request {
        "GET /pub/" => page(&["a/", "b/"]),
        "GET /pub/a/" => page(&["file"]),
        "GET /pub/b/" => {
            while !marker.exists() {
                thread::sleep(Duration::from_millis(5));
            }
            page(&["file"])
        }
        _ => response(404, "", ""),
    });
    let command = format!("touch {}; sleep 9", runs.display());
    let words = [
        "--timeout",
        "8",
        "--retries",
        "0",
        "-path",
        "*/a/file",
        "-exec",
        "sh",
        "-c",
        &command,
        ";",
        "-o",
        "-print",
    ];
    let output = run(&server, &words);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let found = ["/pub/", "/pub/a/", "/pub/b/", "/pub/b/file"];
    assert_eq!(lines(&output.stdout), found.map(|path| server.url(path)));
}

/// An interruption while a command runs: no other command is begun.
#[test]
fn a_stopped_search_runs_no_further_command() {
    let server = mirror();
    let interrupt = "echo run; kill -INT $PPID";
    let unread = tempfile::NamedTempFile::new().expect("a file");
    let file = unread.path().to_str().expect("UTF-8");
    let words = [
        "-type", "f", "-exec", "sh", "-c", interrupt, ";", "--unread", file,
    ];
    let output = run(&server, &words);
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert_eq!(lines(&output.stdout), ["run"]);
    // The rest of the listing that was being handled is not lost: one of four files is done.
    let rest = find(&["--starts-from", file, "-type", "f"]);
    let found: BTreeSet<String> = lines(&rest.stdout).into_iter().collect();
    assert_eq!(found.len(), 3, "{found:?}");
}

#[test]
fn many_urls_go_to_one_command() {
    let server = mirror();
    let output = run(
        &server,
        &[
            "-name", "*.iso", "-exec", "printf", "%s\\n", "start", "{}", "+", "-exec", "true", ";",
        ],
    );
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let found =
        ["/pub/a/three.iso", "/pub/one.iso", "/pub/skip/four.iso"].map(|path| server.url(path));
    let mut printed = lines(&output.stdout);
    assert_eq!(
        printed.pop().as_deref(),
        Some("start"),
        "once, after every h of http"
    );
    assert_eq!(printed, found);

    for (command, message) in [
        (
            &["-exec", "sh", "-c", "exit 3", "{}", "+"][..],
            "sh: exit status: 3",
        ),
        (
            &["-exec", "no-such-command", "{}", "+"],
            "cannot run no-such-command: No such file",
        ),
    ] {
        let output = run(&server, &[&["-name", "one.iso"], command].concat());
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains(message), "{}", stderr(&output));
    }
}

/// There are more URLs than fit into one command line.
#[test]
fn command_lines_stay_within_their_limit() {
    let name = "x".repeat(200);
    let names: Vec<String> = (0..2000).map(|n| format!("{name}{n}")).collect();
    let server = Script::start(move |request| match request {
        "GET /pub/" => page(&names.iter().map(String::as_str).collect::<Vec<_>>()),
        _ => response(404, "", ""),
    });
    let output = run(
        &server,
        &[
            "-type", "f", "-exec", "sh", "-c", "echo $#", "sh", "{}", "+",
        ],
    );
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let counts: Vec<usize> = lines(&output.stdout)
        .iter()
        .map(|n| n.parse().expect("a number"))
        .collect();
    assert_eq!(counts.iter().sum::<usize>(), 2000);
    assert!((4..8).contains(&counts.len()), "{counts:?}");
}

#[test]
fn files_are_emptied_shared_and_always_there() {
    let server = mirror();
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name).display().to_string();
    fs::write(path("list"), "old\n").expect("written");
    std::os::unix::fs::symlink(path("list"), path("link")).expect("linked");
    let output = run(
        &server,
        &[
            "-name",
            "one.iso",
            "-fprint",
            &path("list"),
            "-fprintf",
            &path("link"),
            "%s %f\\n",
            "-fprint0",
            &path("zeros"),
            "-fls",
            &path("ls"),
            "-fprintf",
            "/dev/stderr",
            "to stderr\\n",
            "-fprintf",
            "/dev/stdout",
            "to stdout\\n",
            "-false",
            "-fprint",
            &path("empty"),
        ],
    );
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let read = |name: &str| fs::read_to_string(path(name)).expect("it is there");
    let url = server.url("/pub/one.iso");
    assert_eq!(read("list"), format!("{url}\n? one.iso\n"));
    assert_eq!(read("zeros"), format!("{url}\0"));
    assert_eq!(read("empty"), "");
    assert!(read("ls").ends_with(&format!(" {url}\n")), "{}", read("ls"));
    assert_eq!(text(&output.stdout), "to stdout\n");
    assert!(
        stderr(&output).starts_with("to stderr\n"),
        "{}",
        stderr(&output)
    );

    let nowhere = Path::new(&path("no")).join("where").display().to_string();
    let output = run(&server, &["-fprint", &nowhere]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("cannot write "),
        "{}",
        stderr(&output)
    );

    let output = run(&server, &["-name", "one.iso", "-fprint", "/dev/full"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("cannot write /dev/full: No space left"),
        "{}",
        stderr(&output)
    );
}
