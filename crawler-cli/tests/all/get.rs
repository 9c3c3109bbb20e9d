//! `crawler-cli get` as a program: its requests, its output and its exit status, with a server that follows a script of
//! exact bytes. What curl does in the same way is in `tests/tests/all/curl.rs`, beside curl.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::authority::Authority;
use crate::common::terminal::pseudo_terminal;
use crate::common::{Script, response};

use Step::{Close, Pause, Send, Take, TakeByte, TakeHead};

// ---------------------------------------------------------------------------------------------- requests as sent

#[test]
fn requests_on_the_wire() {
    let dir = tempfile::tempdir().unwrap();
    let headers = dir.path().join("headers");
    std::fs::write(&headers, "X-One: 1\r\nX-Two;\n").unwrap();
    let headers = format!("@{}", headers.display());
    let form = "Content-Type: application/x-www-form-urlencoded";
    let cases: &[(&[&str], &str, &[&str])] = &[
        (
            &[],
            "/",
            &[
                "GET / HTTP/1.1",
                "Host: H",
                "User-Agent: UA",
                "Accept: */*",
                "",
                "",
            ],
        ),
        (
            &["-A", "", "-H", "Accept:"],
            "/a/../%2e%2e/ä",
            &["GET /a/../%2e%2e/%C3%A4 HTTP/1.1", "Host: H", "", ""],
        ),
        (
            &["-A", "", "-H", "Host: other", "-H", &headers],
            "/",
            &[
                "GET / HTTP/1.1",
                "Host: other",
                "Accept: */*",
                "X-One: 1",
                "X-Two: ",
                "",
                "",
            ],
        ),
        (
            &["-A", "", "-d", "a=1", "-d", "@-"],
            "/",
            &[
                "POST / HTTP/1.1",
                "Host: H",
                "Accept: */*",
                form,
                "Content-Length: 6",
                "",
                "a=1&xy",
            ],
        ),
        (
            &["-A", "", "--data-binary", "@-", "-H", "Content-Type:"],
            "/",
            &[
                "POST / HTTP/1.1",
                "Host: H",
                "Accept: */*",
                "Content-Length: 4",
                "",
                "x",
                "y",
            ],
        ),
        (
            &["-A", "", "-d", ""],
            "/",
            &[
                "POST / HTTP/1.1",
                "Host: H",
                "Accept: */*",
                form,
                "Content-Length: 0",
                "",
                "",
            ],
        ),
    ];
    for (args, path, expected) in cases {
        let server = Server::start([vec![Take, Send(OK.into())]]);
        let url = server.url(path);
        let done = run_with_stdin(args, &[&url], b"x\r\ny");
        assert_eq!(done.code(), 0, "{args:?}: {}", done.stderr());
        let expected = expected
            .join("\r\n")
            .replace("Host: H\r\n", &format!("Host: {}\r\n", server.authority))
            .replace("UA", concat!("crawler-cli/", env!("CARGO_PKG_VERSION")));
        assert_eq!(server.requests().concat(), expected, "{args:?}");
    }
}

#[test]
fn head_prints_the_head_and_waits_for_no_body() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX: \u{9b}1m\r\n\r\n";
    for args in [&["-I"][..], &["--head", "-i"], &["-X", "HEAD", "-i"]] {
        let server = Server::start([vec![Take, Send(head.into())]]);
        let done = run(args, &[&server.url("/")]);
        assert_eq!((done.code(), done.stdout()), (0, head.into()), "{args:?}");
        assert!(server.requests()[0].starts_with("HEAD / "));
    }
}

// ---------------------------------------------------------------------------------------------- output

#[test]
fn a_body_of_any_bytes_goes_to_stdout_and_nothing_to_stderr() {
    let body: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
    let server = Server::start([vec![Take, Send([head.as_bytes(), &body].concat())]]);
    let done = run(&[], &[&server.url("/")]);
    assert_eq!((done.code(), done.stderr()), (0, "".into()));
    assert!(done.0.stdout == body);
}

#[test]
fn received_bytes_are_printed_while_the_server_pauses() {
    let (go, paused) = channel();
    let server = Server::start([vec![
        Take,
        Send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n".into()),
        Pause(paused),
        Send("3\r\ntwo\r\n0\r\n\r\n".into()),
    ]]);
    let mut child = spawn(&[], &[&server.url("/")]);
    let stdout = child.stdout.as_mut().unwrap();
    let mut piece = [0; 3];
    stdout.read_exact(&mut piece).unwrap();
    assert_eq!(&piece, b"one");
    go.send(()).unwrap();
    stdout.read_exact(&mut piece).unwrap();
    assert_eq!(&piece, b"two");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn files_are_created_only_for_responses() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| {
        dir.path()
            .join(name)
            .into_os_string()
            .into_string()
            .unwrap()
    };
    std::fs::write(path("old"), "old").unwrap();
    let server = Server::start([
        vec![
            Take,
            Send(OK.into()),
            Take,
            Send(EMPTY.into()),
            Take,
            Send(OK.into()),
            Close,
        ],
        vec![Take, Close],
    ]);
    let urls = ["/1", "/2", "/3", "/4"].map(|path| server.url(path));
    let (one, two, old) = (path("one"), path("two"), path("old"));
    let args = ["-so", &one, "-o", &two, "-o", "-", "-o", &old];
    let done = run(&args, &urls.each_ref().map(String::as_str));
    assert_eq!((done.code(), done.stdout()), (52, "hello".into()));
    assert_eq!(std::fs::read_to_string(path("one")).unwrap(), "hello");
    assert_eq!(std::fs::read_to_string(path("two")).unwrap(), "");
    assert_eq!(
        std::fs::read_to_string(path("old")).unwrap(),
        "old",
        "no byte came for it"
    );
}

#[test]
fn an_output_that_cannot_be_written_is_exit_23() {
    for output in ["/nonexistent/file", "/dev/full"] {
        let server = Server::start([vec![Take, Send(OK.into())]]);
        let done = run(&["-o", output], &[&server.url("/")]);
        assert_eq!(done.code(), 23, "{output}");
        assert_one_line(
            &done.stderr(),
            23,
            &server.url("/"),
            &format!("write: {output}: "),
        );
    }
}

#[test]
fn a_pipe_is_sent_and_written_to() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("pipe");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    let fifo = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, fifo, mode, 0).unwrap();
    let name = pipe.to_str().unwrap();
    let server = Server::start([vec![Take, Send(OK.into())]]);
    let url = server.url("/");
    let mut child = spawn(&["-T", name, "-o", name], &[&url]);
    std::fs::write(&pipe, "sent").unwrap();
    assert_eq!(std::fs::read_to_string(&pipe).unwrap(), "hello");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let request = server.requests().remove(0);
    assert!(
        request.contains("\r\nTransfer-Encoding: chunked\r\n"),
        "{request}"
    );
    assert!(
        request.ends_with("\r\n000004\r\nsent\r\n0\r\n\r\n"),
        "{request}"
    );
}

#[test]
fn a_closed_output_is_a_quiet_exit_23_and_ends_the_run() {
    let (go, paused) = channel();
    let server = Server::start([vec![
        Take,
        Pause(paused),
        Send(OK.into()),
        Take,
        Send(OK.into()),
    ]]);
    let mut child = spawn(&[], &[&server.url("/1"), &server.url("/2")]);
    drop(child.stdout.take());
    go.send(()).unwrap();
    let done = Done(child.wait_with_output().unwrap());
    assert_eq!((done.code(), done.stderr()), (23, "".into()));
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_terminal_gets_no_control_characters_from_heads() {
    let (mut master, terminal) = pseudo_terminal();
    let head = "HTTP/1.1 200 \u{9d}0;t\r\nX: \u{202e}\u{9b}31m\r\nContent-Length: 0\r\n\r\n";
    let server = Server::start([vec![Take, Send(head.into())]]);
    // The child owns the only writing end of the terminal: when it has ended, no writer is left.
    let mut child = command(&["-i"], &[&server.url("/")])
        .stdout(terminal)
        .spawn()
        .unwrap();
    let mut shown = Vec::new();
    // Without a writer, reading returns an error.
    let _ = master.read_to_end(&mut shown);
    assert!(child.wait().unwrap().success());
    let shown = String::from_utf8(shown).unwrap().replace('\r', "");
    let value = "\\u{202e}\\u{9b}31m";
    let expected = format!("HTTP/1.1 200 \\u{{9d}}0;t\nX: {value}\nContent-Length: 0\n\n");
    assert_eq!(shown, expected);
}

#[test]
fn binary_output_goes_to_a_terminal_only_when_told() {
    let bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\na\0b";
    for (args, code, expected) in [(&[][..], 23, &b""[..]), (&["-o", "-"][..], 0, b"a\0b")] {
        let (mut master, terminal) = pseudo_terminal();
        let server = Server::start([vec![Take, Send(bytes.to_vec())]]);
        let child = command(args, &[&server.url("/")])
            .stdout(terminal)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut shown = Vec::new();
        // Without a writer, reading returns an error.
        let _ = master.read_to_end(&mut shown);
        let done = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(code), "{stderr}");
        assert_eq!(shown, expected);
        assert_eq!(
            stderr.contains("Use \"--output -\""),
            code == 23,
            "{stderr}"
        );
    }
}

// ---------------------------------------------------------------------------------------------- failures

#[test]
fn lenient_drops_lines_that_are_harmless() {
    let answer = "HTTP/1.1 200 OK\r\nPHP Notice: x\r\nContent-Length: 2\r\n\r\nok";
    let connection = || vec![Take, Send(answer.into())];
    let server = Server::start([connection(), connection()]);
    let strict = run(&[], &[&server.url("/")]);
    assert_eq!((strict.code(), strict.stdout()), (8, "".into()));
    let lenient = run(&["--lenient"], &[&server.url("/")]);
    assert_eq!((lenient.code(), lenient.stdout()), (0, "ok".into()));
}

#[test]
fn a_connection_that_is_never_answered_times_out() {
    let socket = bound_socket();
    socket.listen(0).unwrap();
    let address = local_address(&socket);
    // Fills the queue of connections that are not accepted; then the system drops further attempts.
    let mut queue = Vec::new();
    while let Ok(stream) = TcpStream::connect_timeout(&address, Duration::from_millis(200)) {
        queue.push(stream);
    }
    let url = format!("http://{address}/");
    for args in [["--connect-timeout", "0.2"], ["-m", "0.2"]] {
        let done = run(&args, &[&url]);
        assert_eq!(done.code(), 28);
        assert_one_line(&done.stderr(), 28, &url, "connecting");
    }
}

#[test]
fn urls_and_options_that_cannot_be_used() {
    let cases: &[(&[&str], i32, &str)] = &[
        (&["ftp://localhost/"], 1, "ftp is not supported"),
        (&["http://localhost/a b"], 3, "0x20"),
        (&["http://a..b/"], 6, "a part of the host's name is empty"),
        (&["http://u:secret@a..b/"], 6, "http://a..b/: "),
        (&[], 2, "no URL specified"),
        (&["-d", "@/nonexistent", "u"], 26, "/nonexistent"),
        (
            &["-H", "a\nb: c", "127.0.0.1:1"],
            2,
            "request: invalid byte 0x0a at offset 1 of a header name",
        ),
        (&["-H", "a: b\rc", "127.0.0.1:1"], 2, "header value"),
        (&["-X", "GE T", "127.0.0.1:1"], 2, "method"),
        (
            &["-H", "Content-Length: 3", "127.0.0.1:1"],
            2,
            "Content-Length",
        ),
    ];
    for (args, code, text) in cases {
        let done = run(args, &[]);
        assert_eq!(done.code(), *code, "{args:?}: {}", done.stderr());
        assert!(done.stderr().contains(text), "{args:?}: {}", done.stderr());
        assert!(!done.stderr().contains("secret"));
        assert_eq!(done.stdout(), "");
    }
}

#[test]
fn silent_hides_errors_and_show_error_shows_them() {
    let cases: &[(&[&str], bool)] = &[(&[], true), (&["-s"], false), (&["-sS"], true)];
    for (args, shown) in cases {
        let server = Server::start([vec![Take, Close]]);
        let done = run(args, &[&server.url("/")]);
        assert_eq!(done.code(), 52);
        assert_eq!(!done.stderr().is_empty(), *shown, "{args:?}");
    }
}

#[test]
fn max_filesize_holds_for_every_framing() {
    let close = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello";
    let chunked = format!("{CHUNKED}2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n");
    let cases = [
        (OK, "4", 63, ""),
        (OK, "5", 0, "hello"),
        (&chunked, "4", 63, "hell"),
        (&chunked, "5", 0, "hello"),
        (close, "4", 63, "hell"),
        (close, "1k", 0, "hello"),
    ];
    for (reply, limit, code, stdout) in cases {
        let server = Server::start([vec![Take, Send(reply.into()), Close]]);
        let done = run(&["--max-filesize", limit], &[&server.url("/")]);
        assert_eq!(
            (done.code(), done.stdout()),
            (code, stdout.into()),
            "{reply:?}"
        );
        let expected = if code == 0 { "" } else { "more than 4 bytes" };
        assert_one_line(&done.stderr(), code, &server.url("/"), expected);
    }
}

// ---------------------------------------------------------------------------------------------- several URLs

#[test]
fn switched_protocols_end_a_transfer_at_the_head() {
    let head = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n";
    let server = Server::start([
        vec![Take, Send(format!("{head}\0\x01").into())],
        vec![Take, Send(OK.into())],
    ]);
    let upgrade = ["-i", "-H", "Connection: Upgrade", "-H", "Upgrade: x"];
    let done = run(&upgrade, &[&server.url("/1"), &server.url("/2")]);
    assert_eq!((done.code(), done.stdout()), (0, format!("{head}{OK}")));
}

#[test]
fn the_last_url_decides_the_exit_code() {
    let server = Server::start([vec![Take, Close], vec![Take, Send(OK.into())]]);
    let done = run(&[], &[&server.url("/1"), &server.url("/2")]);
    assert_eq!((done.code(), done.stdout()), (0, "hello".into()));
    assert_one_line(&done.stderr(), 52, &server.url("/1"), "");
}

#[test]
fn rate_spaces_out_the_starts() {
    let server = Server::start([vec![
        Take,
        Send(OK.into()),
        Take,
        Send(OK.into()),
        Take,
        Send(OK.into()),
    ]]);
    let urls = ["/1", "/2", "/3"].map(|path| server.url(path));
    let start = Instant::now();
    let done = run(&["--rate", "10/s"], &urls.each_ref().map(String::as_str));
    assert!(
        start.elapsed() >= Duration::from_millis(200),
        "{:?}",
        start.elapsed()
    );
    assert_eq!((done.code(), done.stdout()), (0, "hello".repeat(3)));
}

// ---------------------------------------------------------------------------------------------- ways to a response

#[test]
fn a_file_is_sent_again_where_a_redirect_leads() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"content").unwrap();
    let path = file.path().to_str().unwrap();
    let moved = "HTTP/1.1 307 Moved\r\nLocation: /to\r\nContent-Length: 0\r\n\r\n";
    for args in [
        ["-L", "-T", path],
        ["-L", "--data-binary", &format!("@{path}")],
    ] {
        let script = vec![Take, Send(moved.into()), Take, Send(OK.into())];
        let server = Server::start([script]);
        let done = run(&args, &[&server.url("/x")]);
        assert_eq!(done.code(), 0, "{args:?}: {}", done.stderr());
        let requests = server.requests();
        assert!(
            requests
                .iter()
                .all(|request| request.ends_with("\r\n\r\ncontent"))
        );
        assert_eq!(requests.len(), 2);
    }
}

/// The system says of this file that it has no bytes.
#[test]
fn a_file_without_a_known_length_is_sent_whole() {
    let server = Server::start([vec![Take, Send(OK.into())]]);
    let done = run(&["--data-binary", "@/proc/version"], &[&server.url("/x")]);
    assert_eq!(done.code(), 0, "{}", done.stderr());
    let content = std::fs::read_to_string("/proc/version").unwrap();
    assert!(server.requests()[0].ends_with(&content));
}

#[test]
fn what_comes_through_a_pipe_cannot_be_sent_twice() {
    let moved = "HTTP/1.1 307 Moved\r\nLocation: /to\r\nContent-Length: 0\r\n\r\n";
    let busy = "HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy";
    let cases: [(&[&str], _, _); 2] = [
        (&["-L", "-T", "-"], moved, "the body cannot be sent again"),
        (
            &["--retry", "1", "-T", "-"],
            busy,
            "standard input can be sent once",
        ),
    ];
    for (args, reply, why) in cases {
        let go_on = "HTTP/1.1 100 Continue\r\n\r\n";
        let script = vec![TakeHead, Send(go_on.into()), TakeByte, Send(reply.into())];
        let server = Server::start([script]);
        let done = run_with_stdin(args, &[&server.url("/x")], b"sent");
        assert_eq!(done.code(), 65, "{args:?}: {}", done.stderr());
        assert_one_line(&done.stderr(), 65, &server.url("/x"), why);
        assert!(server.requests()[0].contains("Expect: 100-continue"));
    }
}

#[test]
fn https_without_a_tls_server_is_exit_35_and_its_files_are_checked_first() {
    let server = Server::start([vec![Send(OK.into()), Close]]);
    let url = server.url("/").replace("http:", "https:");
    for (args, code) in [
        (&["--cacert", "/nonexistent"][..], 77),
        (&["--cert", "/nonexistent"], 58),
        (&[], 35),
    ] {
        let done = run(args, &[&url]);
        assert_eq!(done.code(), code, "{args:?}: {}", done.stderr());
    }
}

// ---------------------------------------------------------------------------------------------- facts

#[test]
fn write_out_knows_sizes_and_addresses() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
    let server = Server::start([vec![Take, Send(format!("{head}hello").into())]]);
    let url = server.url("/x?y");
    let format = "|%{size_download} %{http_code} %{exitcode}[%{errormsg}] \
                  %{num_connects} %{num_redirects} %{url_effective}|%{time_namelookup} %{time_connect} \
                  %{time_starttransfer} %{time_total} %{time_appconnect}";
    let done = run(&["-w", format], &[&url]);
    assert_eq!(done.code(), 0, "{}", done.stderr());
    let stdout = done.stdout();
    let (facts, times) = stdout.rsplit_once('|').unwrap();
    assert_eq!(facts, format!("hello|5 200 0[] 1 0 {url}"));
    let times: Vec<f64> = times.split(' ').map(|time| time.parse().unwrap()).collect();
    assert!(times[..4].is_sorted() && times[1] > 0.0, "{times:?}");
    assert_eq!(times[4], 0.0, "there was no handshake");
}

#[test]
fn timing_draws_a_bar_for_each_step_of_each_request() {
    let moved = "HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n";
    let server = Server::start([vec![Take, Send(moved.into()), Take, Send(OK.into())]]);
    let url = server.url("/a").replace("http://", "http://u:secret@");
    let done = run(&["-L", "--timing"], &[&url]);
    assert_eq!((done.code(), done.stdout()), (0, "hello".into()));
    let shown = done.stderr();
    let begins: Vec<&str> = shown
        .lines()
        .map(|line| line.trim_start().split("  ").next().unwrap())
        .collect();
    let heads = [server.url("/a 302, "), server.url("/b 200, ")];
    assert!(begins[0].starts_with(&heads[0]), "{shown}");
    let reused = begins.iter().position(|line| line.starts_with(&heads[1]));
    let reused = reused.unwrap();
    assert!(
        begins[reused].ends_with(" ms, connection reused"),
        "{shown}"
    );
    assert!(begins[..reused].contains(&"connect"), "{shown}");
    assert_eq!(begins[reused + 1..], ["first byte", "body"], "{shown}");
    assert!(
        !shown.contains("secret") && shown.contains("ms  |#"),
        "{shown}"
    );
}

#[test]
fn write_out_after_a_failure_has_the_received_values() {
    let server = Server::start([vec![
        Take,
        Send("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello".into()),
        Close,
    ]]);
    let format = "|%{http_code} %{exitcode} %{size_download} %{num_connects} %{errormsg}";
    let done = run(&["-s", "-w", format], &[&server.url("/")]);
    let expected = "hello|200 18 5 1 receiving the body: ";
    assert!(done.stdout().starts_with(expected), "{}", done.stdout());
}

#[test]
fn verbose_shows_both_heads_and_no_secret() {
    let server = Server::start([vec![Take, Send(OK.into()), Take, Send(OK.into())]]);
    let with_user = server.url("/1").replace("http://", "http://user:secret@");
    let bearer = "Authorization: Bearer secret";
    let plain = server.url("/2");
    let args = [
        "-v", "-A", "", "-d", "secret2", &with_user, "--next", "-A", "", "-H", bearer, &plain,
    ];
    let done = run(&args, &[]);
    assert_eq!((done.code(), done.stdout()), (0, "hellohello".into()));
    let shown = done.stderr();
    for line in [
        "> POST /1 HTTP/1.1",
        &format!("> Host: {}", server.authority),
        "> Authorization: Basic ***",
        "> Authorization: Bearer ***",
        "> Accept: */*",
        "> Content-Length: 7",
        "> ",
        "< HTTP/1.1 200 OK",
        "< Content-Length: 5",
        "< ",
        &format!("* Connected to {}", server.authority),
        &format!("* Re-using the connection to {}", server.authority),
    ] {
        assert!(
            shown.lines().any(|l| l == line),
            "{line:?} is not in\n{shown}"
        );
    }
    assert!(
        !shown.contains("secret") && !shown.contains("dXNlcjpzZWNyZXQ"),
        "{shown}"
    );
}

#[test]
fn verbose_tells_about_tls() {
    let authority = Authority::new("Some Authority");
    let server = Script::start_tls(authority.server_until("127.0.0.1", (2090, 1, 2)), |_| {
        response(200, "", "hello")
    });
    let file = authority.file();
    let roots = file.path().to_str().expect("a path");
    let url = server.url("/");
    for args in [&["-sv", "--cacert", roots][..], &["-svk"]] {
        let text = run(args, &[&url]).stderr();
        let told = "\n* SSL connection using TLSv1.3 / TLS";
        assert!(text.contains(told), "{text}");
    }
    assert_eq!(run(&["-s"], &[&url]).code(), 60);
}

/// The response of a proxy that refuses is shown, and its credentials are sent to no other server.
#[test]
fn a_tunnel_is_shown_and_its_secrets_are_not() {
    let refusal = "HTTP/1.1 407 Who\r\nProxy-Authenticate: Basic\r\nContent-Length: 3\r\n\r\nwho";
    let proxy = Server::start([vec![Take, Send(refusal.into())]]);
    let address = format!("http://u:secret@{}", proxy.authority);
    let args = [
        "-v",
        "-i",
        "-A",
        "me",
        "-x",
        &address,
        "-w",
        "%{http_code} %{exitcode}",
    ];
    let done = run(&args, &["https://some.example/"]);
    assert_eq!(done.code(), 56);
    let head = refusal.strip_suffix("who").unwrap();
    assert_eq!(done.stdout(), format!("{head}000 56"));
    let shown = done.stderr();
    for line in [
        "* Establish HTTP proxy tunnel",
        "> CONNECT some.example:443 HTTP/1.1",
        "> User-Agent: me",
        "> Proxy-Authorization: Basic ***",
        "< HTTP/1.1 407 Who",
        "* CONNECT tunnel, response 407",
    ] {
        assert!(shown.lines().any(|l| l == line), "{line}: {shown}");
    }
    assert!(
        !shown.contains("secret") && !shown.contains("dTpzZWNyZXQ"),
        "{shown}"
    );
    let asked = proxy.requests();
    assert!(asked[0].contains("Basic dTpzZWNyZXQ="), "{asked:?}");

    let server = Server::start([vec![Take, Send(OK.into())]]);
    let secret = "Proxy-Authorization: Bearer secret";
    let args = ["-x", "127.0.0.1:1", "--noproxy", "127.0.0.1", "-H", secret];
    assert_eq!(run(&args, &[&server.url("/")]).code(), 0);
    assert!(!server.requests()[0].contains("secret"));
}

#[test]
fn a_unix_socket_serves_any_name() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("socket");
    let server = Server::start_unix(&path, [vec![Take, Send(OK.into()), Take, Send(OK.into())]]);
    let format = " %{num_connects} ";
    let args = [
        "-A",
        "",
        "--unix-socket",
        path.to_str().unwrap(),
        "-w",
        format,
    ];
    let done = run(&args, &["http://name.example/1", "http://name.example/2"]);
    assert_eq!((done.code(), done.stderr()), (0, "".into()));
    assert_eq!(done.stdout(), "hello 1 hello 0 ");
    let expected = "GET /1 HTTP/1.1\r\nHost: name.example\r\nAccept: */*\r\n\r\n";
    assert_eq!(server.requests()[0], expected);
}

// ---------------------------------------------------------------------------------------------- the program

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
const EMPTY: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

struct Done(Output);

impl Done {
    fn code(&self) -> i32 {
        self.0.status.code().expect("no signal")
    }

    fn stdout(&self) -> String {
        String::from_utf8(self.0.stdout.clone()).unwrap()
    }

    fn stderr(&self) -> String {
        String::from_utf8(self.0.stderr.clone()).unwrap()
    }
}

fn command(args: &[impl AsRef<OsStr>], urls: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_crawler-cli"));
    command.arg("get").args(args).args(urls);
    // The environment of the tests does not apply.
    for name in [
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "no_proxy",
        "ssl_cert_file",
        "curl_ca_bundle",
    ] {
        command.env_remove(name);
        command.env_remove(name.to_ascii_uppercase());
    }
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn spawn(args: &[&str], urls: &[&str]) -> Child {
    command(args, urls).spawn().unwrap()
}

fn run(args: &[&str], urls: &[&str]) -> Done {
    Done(command(args, urls).output().unwrap())
}

fn run_with_stdin(args: &[&str], urls: &[&str], stdin: &[u8]) -> Done {
    let mut child = command(args, urls).stdin(Stdio::piped()).spawn().unwrap();
    // A program that does not read stdin may have ended already.
    let _ = child.stdin.take().unwrap().write_all(stdin);
    Done(child.wait_with_output().unwrap())
}

/// Checks that `stderr` is one line with the code, the URL and `text`, or nothing for code 0.
#[track_caller]
fn assert_one_line(stderr: &str, code: i32, url: &str, text: &str) {
    if code == 0 {
        assert_eq!(stderr, "");
        return;
    }
    assert!(
        stderr.starts_with(&format!("crawler-cli: ({code}) {url}: ")),
        "{stderr}"
    );
    assert!(stderr.contains(text), "{text:?} is not in {stderr}");
    assert_eq!(stderr.matches('\n').count(), 1, "{stderr}");
}

// ---------------------------------------------------------------------------------------------- the server

/// One step of the script of a connection. After the last step, the connection stays open until the client closes it.
enum Step {
    /// Reads one request.
    Take,
    /// Reads the head of one request.
    TakeHead,
    TakeByte,
    Send(Vec<u8>),
    /// Waits for the test.
    Pause(Receiver<()>),
    Close,
}

/// A server with one script for each connection, in order of arrival. It refuses further connections.
struct Server {
    authority: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn start(scripts: impl IntoIterator<Item = Vec<Step>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let authority = listener.local_addr().unwrap().to_string();
        let accept = move || listener.accept().unwrap().0;
        Self::serve(authority, accept, scripts)
    }

    fn start_unix(path: &Path, scripts: impl IntoIterator<Item = Vec<Step>>) -> Self {
        let listener = UnixListener::bind(path).unwrap();
        let accept = move || listener.accept().unwrap().0;
        Self::serve("unix".into(), accept, scripts)
    }

    fn serve<S: Socket>(
        authority: String,
        accept: impl Fn() -> S + std::marker::Send + 'static,
        scripts: impl IntoIterator<Item = Vec<Step>>,
    ) -> Self {
        let requests = Arc::new(Mutex::new(Vec::new()));
        let log = requests.clone();
        let scripts: Vec<_> = scripts.into_iter().collect();
        thread::spawn(move || {
            for script in scripts {
                let (socket, log) = (accept(), log.clone());
                thread::spawn(move || follow(script, socket, &log));
            }
        });
        Self {
            authority,
            requests,
        }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.authority)
    }

    /// The requests so far.
    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

fn follow(script: Vec<Step>, mut socket: impl Socket, log: &Mutex<Vec<String>>) {
    for step in script {
        match step {
            Take | TakeHead => match take_request(&mut socket, matches!(step, Take)) {
                Some(request) => log.lock().unwrap().push(request),
                None => return,
            },
            TakeByte => socket.read_exact(&mut [0]).unwrap_or_default(),
            // Some tests let the client close the connection first.
            Send(bytes) => drop(socket.write_all(&bytes)),
            Pause(until) => until.recv().unwrap_or_default(),
            Close => return,
        }
    }
    let _ = std::io::copy(&mut socket, &mut std::io::sink());
}

/// Reads one request: a head, and a body by `Content-Length` or up to the last chunk. `None` if the client closed the
/// connection.
fn take_request(socket: &mut impl Socket, with_body: bool) -> Option<String> {
    let mut request = String::new();
    let is_whole = |request: &str| match with_body {
        true => is_complete(request),
        false => request.ends_with("\r\n\r\n"),
    };
    while !is_whole(&request) {
        let mut byte = [0];
        match socket.read(&mut byte) {
            Ok(1) => request.push(char::from(byte[0])),
            _ => return None,
        }
    }
    Some(request)
}

fn is_complete(request: &str) -> bool {
    let Some((head, body)) = request.split_once("\r\n\r\n") else {
        return false;
    };
    let header = |name: &str| head.lines().find_map(|line| line.strip_prefix(name));
    match header("Content-Length: ") {
        Some(length) => body.len() >= length.parse().unwrap(),
        None => header("Transfer-Encoding: ").is_none() || body.ends_with("0\r\n\r\n"),
    }
}

trait Socket: Read + Write + std::marker::Send + 'static {}

impl Socket for TcpStream {}
impl Socket for UnixStream {}

fn bound_socket() -> socket2::Socket {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
    socket.bind(&any.into()).unwrap();
    socket
}

fn local_address(socket: &socket2::Socket) -> SocketAddr {
    socket.local_addr().unwrap().as_socket().unwrap()
}
