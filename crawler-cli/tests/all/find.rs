//! `crawler-cli find` as a program: its output, its exit status, and its requests.
use std::io::{BufRead as _, BufReader, Read as _};
use std::ops::ControlFlow;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

use crate::common::{Script, crawler, find, index, lines, page, response, stderr};
use crawl::demo::server::Server;
use find::{Ending, Event, Find};

fn small_tree() -> Script {
    Script::start(|request| match request {
        "GET /pub/" => page(&["a/", "b%20c/", "x.ISO"]),
        "GET /pub/a/" => page(&["y.iso", "z.txt"]),
        "GET /pub/b%20c/" => page(&["caf%c3%a9.iso"]),
        _ => response(404, "", ""),
    })
}

#[test]
fn results_go_to_stdout_and_the_summary_to_stderr() {
    let server = small_tree();
    let output = find(&[&server.url("/pub/"), "-type", "f", "-iname", "*.iso"]);
    assert_eq!(output.status.code(), Some(0));
    let expected = ["/pub/a/y.iso", "/pub/b%20c/caf%C3%A9.iso", "/pub/x.ISO"];
    assert_eq!(lines(&output.stdout), expected.map(|path| server.url(path)));
    let summary = stderr(&output);
    assert_eq!(
        summary.lines().count(),
        1,
        "no progress line into a pipe: {summary}"
    );
    assert!(
        summary.starts_with("3 found among 4 files and 3 directories in "),
        "{summary}"
    );
    assert!(
        summary.contains("; 3 requests (") && summary.ends_with("; nothing unread\n"),
        "{summary}"
    );
    assert!(!summary.contains('\u{1b}'));
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn unread_urls_are_named_and_the_exit_code_is_1() {
    let server = Script::start(|request| match request {
        "GET /" => page(&["forbidden/", "cut/", "large/", "text/", "fine/"]),
        "GET /forbidden/" => response(403, "", ""),
        "GET /cut/" => {
            let whole = page(&["x"]);
            whole[..whole.len() - 20].to_vec()
        }
        "GET /large/" => page(&["a-long-name"; 200]),
        "GET /text/" => response(200, "Content-Type: text/plain\r\n", "hello"),
        "GET /fine/" => page(&["file"]),
        _ => response(404, "", ""),
    });
    let output = find(&[
        &server.url("/"),
        "--max-body",
        "2K",
        "--retries",
        "0",
        "-name",
        "file",
    ]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(lines(&output.stdout), [server.url("/fine/file")]);
    let stderr = stderr(&output);
    let enough = index(&["a-long-name"; 200]).len().div_ceil(1024);
    for (path, cause) in [
        ("/forbidden/", "the server answered 403"),
        ("/cut/", "the connection closed inside the response"),
        (
            "/large/",
            &format!("the page has more than 2048 bytes: --max-body {enough}K reads it"),
        ),
        (
            "/text/",
            "not a directory listing: its content type is text/plain",
        ),
    ] {
        let line = format!("crawler-cli find: {}: {cause}\n", server.url(path));
        assert!(stderr.contains(&line), "{line} in {stderr}");
    }
    assert!(stderr.ends_with("; 4 UNREAD\n"), "{stderr}");
}

#[test]
fn an_unsupported_scheme_is_reported_with_its_url() {
    let url = "ftp://127.0.0.1/pub/";
    let output = find(&[url]);
    assert_eq!(output.status.code(), Some(1));
    let expected =
        format!("crawler-cli find: {url}: ftp URLs are not supported, only http and https\n");
    assert!(
        stderr(&output).starts_with(&expected),
        "{}",
        stderr(&output)
    );
}

#[test]
fn wrong_usage_exits_with_2() {
    for args in [
        &[][..],
        &["-name", "x"],
        &["http://h/", "-exec"],
        &["h/"],
        &["http://h/", "-j", "0"],
    ] {
        let output = find(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(
            stderr(&output).starts_with("crawler-cli find: "),
            "{}",
            stderr(&output)
        );
        assert_eq!(output.stdout, b"");
    }
    // The message names the URL, without what is secret in it.
    let output = find(&["http://u:secret@127.0.0.1:99999/"]);
    let error = "crawler-cli find: http://***@127.0.0.1:99999/: not an absolute URL";
    assert!(stderr(&output).starts_with(error), "{}", stderr(&output));
    for args in [&[][..], &["fnid"]] {
        assert_eq!(crawler(args).output().expect("runs").status.code(), Some(2));
    }
    for args in [
        &["find", "--help"][..],
        &["help"],
        &["--version"],
        &["demo", "--help"],
    ] {
        let output = crawler(args).output().expect("runs");
        assert_eq!(output.status.code(), Some(0));
        assert!(!output.stdout.is_empty() && output.stderr.is_empty());
    }
}

/// A server with one file, and one directory whose listing waits for the test.
fn server_that_waits() -> (Script, mpsc::Sender<()>) {
    let (open, gate) = mpsc::channel();
    let gate = Mutex::new(gate);
    let server = Script::start(move |request| match request {
        "GET /" => page(&["file", "slow/"]),
        _ => {
            // An error means that the test has ended.
            let _ = gate.lock().expect("not poisoned").recv();
            page(&["late"])
        }
    });
    (server, open)
}

#[test]
fn results_are_printed_at_once_and_an_interrupt_keeps_them() {
    let (server, open) = server_that_waits();
    let unread = tempfile::NamedTempFile::new().expect("a file");
    let unread = unread.path().to_str().expect("UTF-8");
    let mut child = crawler(&["find", &server.url("/"), "-type", "f", "--unread", unread])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program runs");
    let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
    let mut line = String::new();
    stdout.read_line(&mut line).expect("a line");
    assert_eq!(
        line.trim_end(),
        server.url("/file"),
        "printed before the search is over"
    );

    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("alive");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130));
    let stderr = stderr(&output);
    assert!(
        stderr.starts_with("1 found among 1 file and 2 directories"),
        "{stderr}"
    );
    assert!(
        stderr.ends_with("; STOPPED early, 1 directory was not read\n")
            && !stderr.contains("nothing unread"),
        "{stderr}"
    );

    // What was not reached is read later. The server still holds the first request.
    open.send(()).and(open.send(())).expect("the server waits");
    let rest = find(&["--starts-from", unread, "-type", "f"]);
    assert_eq!(rest.status.code(), Some(0));
    let found = lines(&rest.stdout);
    assert!(
        matches!(found[..], [ref late] if late.ends_with("/late")),
        "{found:?}"
    );
}

#[test]
fn a_closed_output_ends_the_search_quietly_as_it_ends_find() {
    let (server, open) = server_that_waits();
    let mut child = crawler(&["find", &server.url("/"), "-type", "f"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program runs");
    let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
    stdout.read_line(&mut String::new()).expect("a line");
    drop(stdout);
    open.send(()).expect("the server waits");
    let mut stderr = String::new();
    let mut pipe = child.stderr.take().expect("piped");
    pipe.read_to_string(&mut stderr).expect("text");
    assert_eq!(stderr, "");
    assert_eq!(child.wait().expect("it ends").signal(), Some(13));
}

#[test]
fn the_callback_can_stop_a_search() {
    let server = Server::start().expect("a server");
    let mut seen = 0;
    let summary = Find::new()
        .start(&server.url())
        .expect("a URL")
        .run(|event| {
            if let Event::Found(_) = event {
                seen += 1;
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
    assert_eq!(
        (seen, summary.matched, summary.ending),
        (1, 1, Ending::Stopped)
    );
    assert!(!summary.is_complete());
}

#[test]
fn failures_are_retried_by_their_class_and_after_the_pauses_asked_for() {
    let fast = ["--retries", "2", "--retry-delay", "0.01"];
    for (options, attempts) in [
        (&[][..], 3),
        (&["--retry-on", "timeout,5xx"], 3),
        (&["--retry-on", "timeout,throttled"], 1),
        (&["--retry-on", "none"], 1),
        (&["--retry-delay", "0.3"], 3),
    ] {
        let server = Script::start(|request| match request {
            "GET /" => page(&["broken/"]),
            _ => response(500, "", ""),
        });
        let began = Instant::now();
        let output = find(&[&[&*server.url("/")], &fast[..], options].concat());
        assert_eq!(output.status.code(), Some(1));
        let requests = server.requests();
        let asked = requests.iter().filter(|request| *request == "GET /broken/");
        assert_eq!(asked.count(), attempts, "{options:?}");
        if options.contains(&"0.3") {
            // The second pause is twice as long. Chance takes up to one half of each.
            assert!(began.elapsed() >= Duration::from_millis(450));
        }
    }
}

#[test]
fn connections_are_limited_in_time() {
    // Accepts connections and says nothing, so that no TLS handshake ends.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("https://{}/", silent.local_addr().expect("an address"));
    let output = find(&[&*url, "--handshake-timeout", "0.2", "--retry-on", "none"]);
    assert_eq!(output.status.code(), Some(1));
    let cause = "negotiating TLS timed out (handshake limit)";
    assert!(stderr(&output).contains(cause), "{}", stderr(&output));
    // Times between probes that the system does not know are rounded to one that it knows.
    let server = small_tree();
    for (option, time) in [
        ("--connect-timeout", "60"),
        ("--idle-timeout", "60"),
        ("--keepalive-time", "0.2"),
        ("--keepalive-time", "40000"),
    ] {
        let output = find(&[&*server.url("/pub/"), option, time]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
}

/// Words that scripts give to find(1) by habit, and that have nothing to do here.
#[test]
fn words_with_nothing_to_do_are_taken() {
    let server = Script::start(|request| match request {
        "GET /" => page(&["a.iso", "b.txt"]),
        _ => response(404, "", ""),
    });
    let start = server.url("/");
    let words =
        "-O3 -L -xdev -mount -noleaf -follow -nowarn -ignore_readdir_race -xtype f -name *.iso";
    let words: Vec<&str> = words.split(' ').collect();
    let output = find(&[&[&*start], &words[..]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(lines(&output.stdout), [server.url("/a.iso")]);
    // Before the start, as GNU find has them.
    let output = find(&["-L", "-O2", &start, "-type", "f"]);
    assert_eq!(lines(&output.stdout).len(), 2, "{}", stderr(&output));
}
