//! All output formats of `crawler-cli find`, and the progress line on a terminal.
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use crate::common::terminal::{pseudo_terminal, rows, watch};
use crate::common::{Script, crawler, find, lines, page, response, stderr};
use crawl::demo::server::Server;
use serde_json::{Value, json};

fn json_lines(stdout: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(stdout).expect("UTF-8");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("an object"))
        .collect()
}

/// Each field has a value that was computed by hand from a listing of Apache httpd.
#[test]
fn json_has_the_values_of_listings_and_responses() {
    let row = |name: &str, size: &str| {
        format!("<a href=\"{name}\">{name}</a>      2024-02-29 23:59  {size:>4}   \n")
    };
    let listing = move |rows: &[String]| {
        let page = format!(
            "<!DOCTYPE HTML PUBLIC \"-//W3C//DTD HTML 3.2 Final//EN\">\n<html>\n <head>\n  <title>Index of /</title>\n \
             </head>\n <body>\n<h1>Index of /</h1>\n<pre><a href=\"?C=N;O=D\">Name</a>  <a href=\"?C=M;O=A\">Last modified\
             </a>  <a href=\"?C=S;O=A\">Size</a>  <a href=\"?C=D;O=A\">Description</a><hr>{}<hr></pre>\n</body></html>\n",
            rows.concat()
        );
        response(200, "Content-Type: text/html\r\n", page)
    };
    let is_busy = std::sync::atomic::AtomicBool::new(true);
    let server = Script::start(move |request| match request {
        "GET /" => listing(&[row("a,b.iso", "1.2M"), row("small", "3"), row("sub/", "-")]),
        "GET /sub/" if is_busy.swap(false, std::sync::atomic::Ordering::SeqCst) => {
            response(500, "", "")
        }
        "GET /sub/" => listing(&[row("empty", "0")]),
        // The times in the listing are two hours ahead of UTC.
        "HEAD /a,b.iso" => b"HTTP/1.1 200 X\r\nContent-Length: 1250000\r\nConnection: close\r\n\
                         Last-Modified: Thu, 29 Feb 2024 21:59:30 GMT\r\n\r\n"
            .to_vec(),
        _ => response(404, "", ""),
    });
    let url = server.url("/");
    let search = |more: &[&str]| {
        let args = ["--json", "-j", "1"];
        let mut objects = json_lines(&find(&[&[&*url][..], &args, more].concat()).stdout);
        objects.sort_by_key(|object| object["url"].to_string());
        objects
    };
    let check = |objects: &[Value], expected: &[Value]| {
        assert_eq!(objects.len(), expected.len(), "{objects:?}");
        for (object, expected) in objects.iter().zip(expected) {
            for (name, value) in expected.as_object().expect("fields") {
                assert_eq!(&object[name], value, "{name} in {object}");
            }
            let fields: Vec<_> = object.as_object().expect("an object").keys().collect();
            assert_eq!(fields, ALL_FIELDS.split(' ').collect::<Vec<_>>());
            let seconds = object["seconds"].as_f64();
            assert!(seconds.is_some_and(|seconds| seconds > 0.0 && seconds < 60.0));
        }
    };
    // One HEAD, which gives all values of its file, and the time zone of the other files.
    let asked = json!({
        "url": format!("{url}a,b.iso"), "path": "/a,b.iso", "name": "a,b.iso", "depth": 1, "parent": url, "type": "f",
        "listing": "apache", "status": 200, "size": 1_250_000, "size_lo": 1_250_000, "size_hi": 1_250_000,
        "mtime": "2024-02-29T21:59:30Z", "mtime_precision": "second", "attempts": 1,
    });
    let known = json!({
        "status": null, "mtime": "2024-02-29T21:59:00Z", "mtime_lo": "2024-02-29T21:59:00Z",
        "mtime_hi": "2024-02-29T21:59:59Z", "mtime_precision": "minute", "type": "f", "listing": "apache",
    });
    let of = |more: Value| {
        let mut all = known.as_object().expect("fields").clone();
        all.extend(more.as_object().expect("fields").clone());
        Value::Object(all)
    };
    let small = of(json!({
        "url": format!("{url}small"), "depth": 1, "parent": url, "size": 3, "size_lo": 3, "size_hi": 3, "attempts": 1,
    }));
    let empty = of(json!({
        "url": format!("{url}sub/empty"), "depth": 2, "parent": format!("{url}sub/"), "size": 0,
    }));
    let expected = [asked, small, empty];
    let objects = search(&["-type", "f"]);
    check(&objects, &expected);
    // The server was busy.
    assert_eq!(objects[2]["attempts"], 2);
    let newer = ["-type", "f", "-newermt", "2024-02-29T21:00:00Z"];
    check(&search(&newer), &expected);

    // A directory waits for the time zone that the HEAD of a file before it tells.
    let objects = search(&[]);
    let directory = objects.iter().find(|object| object["name"] == "sub");
    let directory = directory.expect("a directory");
    assert_eq!(directory["mtime"], "2024-02-29T21:59:00Z", "{directory}");
}

const ALL_FIELDS: &str = "attempts depth listing mtime mtime_hi mtime_lo mtime_precision name parent path seconds size \
                          size_hi size_lo status type url";

#[test]
fn the_summary_has_a_form_for_programs() {
    let server = Script::start(|request| match request {
        "GET /" => page(&["gone/", "fine/"]),
        "GET /fine/" => page(&["file"]),
        _ => response(404, "", ""),
    });
    let check = |summary: &Value| {
        let summary = &summary["summary"];
        assert_eq!(
            (
                &summary["matched"],
                &summary["files"],
                &summary["directories"]
            ),
            (&4.into(), &1.into(), &3.into())
        );
        assert_eq!(
            (&summary["requests"], &summary["unread"]),
            (&3.into(), &1.into())
        );
        assert_eq!(summary["complete"], false);
        assert_eq!(summary["unread_by_class"]["status 404"], 1);
        assert_eq!(
            summary["hosts"][0]["status_classes"],
            json!([0, 2, 0, 1, 0])
        );
        assert_eq!(
            summary["connections_opened"], 3,
            "each connection serves one request"
        );
        let latency = &summary["latency_seconds"];
        assert!(
            latency["mean"].as_f64() > Some(0.0)
                && latency["mean"].as_f64() <= latency["max"].as_f64()
        );
    };
    let output = find(&[
        &server.url("/"),
        "--robots",
        "off",
        "--json",
        "--summary",
        "json",
    ]);
    assert_eq!(output.status.code(), Some(1));
    let objects = json_lines(&output.stdout);
    assert_eq!(objects.len(), 5);
    check(&objects[4]);
    assert!(!stderr(&output).contains("found among"));

    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("summary.json");
    let form = format!("json:{}", file.display());
    let output = find(&[&server.url("/"), "--robots", "off", "--summary", &form]);
    assert_eq!(lines(&output.stdout).len(), 4);
    check(&serde_json::from_slice(&std::fs::read(&file).expect("written")).expect("an object"));

    let nowhere = format!("json:{}/no/such", folder.path().display());
    let output = find(&[&server.url("/fine/"), "--summary", &nowhere]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("/no/such: "),
        "{}",
        stderr(&output)
    );

    // The file that has the results already.
    let results = folder.path().join("results");
    std::fs::write(&results, "kept\n").expect("written");
    let out = std::fs::OpenOptions::new().append(true).open(&results);
    let output = crawler(&["find", &server.url("/"), "--summary", "json:/dev/stdout"])
        .stdout(out.expect("opened"))
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(2));
    let said =
        "crawler-cli find: --summary json:/dev/stdout: the program's output goes there already\n";
    assert_eq!(stderr(&output), said);
    assert_eq!(std::fs::read(&results).expect("kept"), b"kept\n");

    let output = find(&[&server.url("/"), "--summary", "none"]);
    assert_eq!(stderr(&output).lines().count(), 1, "only what is unread");
}

#[test]
fn the_page_is_written_whatever_the_outcome() {
    let server = Script::start(|request| match request {
        "GET /" => page(&["gone/", "fine/"]),
        "GET /fine/" => page(&["file"]),
        _ => response(404, "", ""),
    });
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("report.html");
    let name = file.to_str().expect("text");
    let output = find(&[&server.url("/"), "--report", "html", name]);
    assert_eq!(output.status.code(), Some(1));
    let html = std::fs::read_to_string(&file).expect("written");
    for part in [
        "<!DOCTYPE html>",
        &server.url("/gone/"),
        "the server answered 404",
    ] {
        assert!(html.contains(part), "{part}");
    }
    // A report file that cannot be written is reported before the search starts.
    let before = server.requests().len();
    let output = find(&[&server.url("/"), "--report", "html", "/no/such/file"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).starts_with("crawler-cli find: --report html /no/such/file: "));
    assert_eq!(server.requests().len(), before);
}

#[test]
fn starts_come_from_a_file_or_from_standard_input() {
    let server = Script::start(|request| match request {
        "GET /a/" => page(&["one"]),
        "GET /b/" => page(&["two"]),
        _ => response(404, "", ""),
    });
    let (a, b) = (server.url("/a/"), server.url("/b/"));
    let expected = ["/a/one", "/b/two"].map(|path| server.url(path));
    for list in [format!("{a}\r\n\n {b}\n"), format!("{a}\0{b}\0")] {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(list.as_bytes()).expect("written");
        let name = file.path().to_str().expect("text");
        let output = find(&["--starts-from", name, "-type", "f"]);
        assert_eq!(lines(&output.stdout), expected);
        let input = file.reopen().expect("the file");
        let output = crawler(&["find", "--starts-from=-", "-type", "f"])
            .stdin(input)
            .output();
        assert_eq!(lines(&output.expect("runs").stdout), expected);
    }
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(format!("{a}\nnowhere\n").as_bytes())
        .expect("written");
    let name = file.path().to_str().expect("text");
    let output = find(&["--starts-from", name]);
    assert_eq!(output.status.code(), Some(2));
    let message =
        format!("crawler-cli find: --starts-from {name}: line 2: nowhere: not an absolute URL");
    assert!(stderr(&output).starts_with(&message), "{}", stderr(&output));
    assert_eq!(find(&["--starts-from", "/no/such"]).status.code(), Some(2));
}

#[test]
fn the_progress_line_is_redrawn_in_place_and_gone_at_the_end() {
    // Responses wait until the line was seen, so that it has time to appear.
    let (open, gate) = mpsc::channel::<()>();
    let gate = std::sync::Mutex::new(gate);
    let was_seen = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&was_seen);
    let server = Script::start(move |request| match request {
        "GET /" => page(&["one", "busy/", "gone/", "slow/"]),
        "GET /busy/" if !seen.load(Ordering::SeqCst) => response(503, "Retry-After: 0\r\n", ""),
        "GET /slow/" => {
            // An error means that the test has ended.
            let _ = gate.lock().expect("not poisoned").recv();
            page(&["two"])
        }
        _ => response(404, "", ""),
    });
    let (master, terminal) = pseudo_terminal();
    // The child owns the only writing ends of the terminal: when it has ended, no writer is left.
    let mut child = crawler(&["find", &server.url("/"), "--patience", "3600"])
        .stdout(terminal.try_clone().expect("a copy"))
        .stderr(terminal)
        .env("TERM", "xterm")
        .spawn()
        .expect("the program runs");
    let mut views = Vec::new();
    let mut open = Some(open);
    let screen = watch(master, |screen| {
        let text = rows(screen);
        if text.contains("2/4 directories · ") {
            views.push(text);
            // The line was seen: release the last response.
            was_seen.store(true, Ordering::SeqCst);
            open.take();
        }
    });
    assert_eq!(child.wait().expect("it ends").code(), Some(1));
    let view = views.first().expect("a view");
    assert!(view.contains("2/4 directories · 1 file · "), "{view}");
    for view in &views {
        assert_eq!(
            view.matches("requests/s").count(),
            1,
            "redrawn, not repeated: {view}"
        );
        assert!(view.lines().all(|line| line.chars().count() <= 60));
    }
    let left = rows(screen.screen());
    let left: Vec<_> = left.lines().filter(|line| !line.is_empty()).collect();
    assert!(
        !left.iter().any(|line| line.contains("requests/s · ")),
        "{left:?}"
    );
    // Each result is on its own line.
    for path in ["/", "/one", "/busy/", "/gone/", "/slow/", "/slow/two"] {
        assert!(
            left.contains(&server.url(path).as_str()),
            "{path} in {left:?}"
        );
    }
}

/// The file of an action may be a terminal, too: the names of a server do not control it. In a plain file they are as they
/// are.
#[test]
fn a_file_of_an_action_that_is_a_terminal_is_not_controlled_by_names() {
    let server = Script::start(|request| match request {
        "GET /" => page(&["a%1b[31mb"]),
        _ => response(404, "", ""),
    });
    let url = server.url("/");
    let (master, terminal) = pseudo_terminal();
    let name = format!("/proc/self/fd/{}", terminal.as_raw_fd());
    let name = std::fs::read_link(name).expect("a terminal has a name");
    let name = name.to_str().expect("an ASCII name");
    let plain = tempfile::NamedTempFile::new().expect("a file");
    for file in [name, plain.path().to_str().expect("UTF-8")] {
        let output = find(&[&url, "-type", "f", "-fprintf", file, "%f\\n"]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
    assert_eq!(
        std::fs::read(plain.path()).expect("written"),
        b"a\x1b[31mb\n"
    );
    let mut line = String::new();
    let mut master = BufReader::new(master);
    master.read_line(&mut line).expect("a line");
    assert_eq!(line, "a\\u{1b}[31mb\r\n");
}

#[test]
fn progress_can_be_asked_for_without_a_terminal_and_left_out_with_one() {
    let (open, gate) = mpsc::channel::<()>();
    let gate = std::sync::Mutex::new(gate);
    let server = Script::start(move |_| {
        let _ = gate.lock().expect("not poisoned").recv();
        page(&["x"])
    });
    let mut child = crawler(&["find", &server.url("/"), "--progress", "always"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program runs");
    let mut pipe = child.stderr.take().expect("piped");
    let mut first = [0; 80];
    pipe.read_exact(&mut first).expect("a line");
    assert!(String::from_utf8_lossy(&first).starts_with("0/1 directory · 0 files · "));
    drop(open);
    pipe.read_to_end(&mut Vec::new()).expect("text");
    assert_eq!(child.wait().expect("it ends").code(), Some(0));

    let server = Server::start().expect("a server");
    let (master, terminal) = pseudo_terminal();
    let mut child = crawler(&[
        "find",
        &server.url(),
        "--progress",
        "never",
        "-name",
        "none",
    ])
    .stdout(Stdio::null())
    .stderr(terminal)
    .spawn()
    .expect("the program runs");
    let reader = thread::spawn(move || watch(master, |_| ()));
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    let shown = rows(reader.join().expect("no panic").screen());
    assert!(
        shown.starts_with("0 found among ") && !shown.contains('·'),
        "{shown}"
    );
}

// ---- what is left out of listings

/// On standard error 20 names, or all with `-v`; in the summary and the file of `--unread` all.
#[test]
fn what_a_listing_leaves_out_is_named() {
    let rows: String = (0..30)
        .map(|n| format!("<a href='/other{n}/x'>x</a>\n"))
        .collect();
    let body = format!(
        "<html><head><title>Index of /pub/</title></head><h1>Index of /pub/</h1><pre><a href='a'>a</a>\n<a href='b%2Fc'>b</a>\n{rows}</pre></html>"
    );
    let server = Script::start(move |request| match request {
        "GET /pub/" => response(200, "Content-Type: text/html\r\n", &body),
        _ => response(200, "", ""),
    });
    let start = server.url("/pub/");
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("unread");
    let file = file.to_str().expect("UTF-8");
    for (args, shown, rest) in [(&[][..], 20, true), (&["-v"][..], 30, false)] {
        let args = [&[&start, "--summary", "json", "--unread", file][..], args].concat();
        let output = find(&args);
        assert_eq!(output.status.code(), Some(1));
        let text = stderr(&output);
        assert!(
            text.contains("30 links left out, which lead elsewhere: "),
            "{text}"
        );
        assert!(
            text.contains("1 entry left out, whose names cannot be part of a path: b%2Fc\n"),
            "{text}"
        );
        assert_eq!(text.matches("/other").count(), shown, "{text}");
        assert_eq!(text.contains(" and 10 more\n"), rest, "{text}");
        let summary = String::from_utf8_lossy(&output.stdout);
        let summary: Value =
            serde_json::from_str(summary.lines().last().expect("a line")).expect("JSON");
        let summary = &summary["summary"];
        let links = |item: &Value| item["left_out"].as_array().map_or(0, Vec::len);
        let items = summary["unread_urls"].as_array().expect("a list");
        assert_eq!(items.iter().map(links).collect::<Vec<_>>(), [30, 1]);
        assert_eq!(items[0]["url"], start.as_str());
        assert_eq!(
            (&items[0]["left_out_more"], &summary["unread_urls_more"]),
            (&0.into(), &0.into())
        );
        let written = std::fs::read_to_string(file).expect("written");
        let written: Vec<Value> = written
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect();
        assert_eq!(written.iter().map(links).collect::<Vec<_>>(), [30, 1]);
        assert_eq!(written[0]["left_out"][29], server.url("/other29/x"));
    }
}
