//! How `crawler-cli get` runs its transfers: what curl cannot be compared in, because it depends on time or goes to
//! stderr. What can be compared is in `tests/tests/curl/`.

mod common;

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::{Command, Output, Stdio};
use std::sync::Barrier;
use std::time::{Duration, Instant};

use common::authority::Authority;
use common::terminal::pseudo_terminal;
use common::{Answer, Script, crawler, response, stderr};

fn get(args: &[&str]) -> Command {
    crawler(&[&["get"], args].concat())
}

fn output(mut command: Command) -> Output {
    command.output().expect("the program runs")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

const HEADER: &str =
    "  % Total    % Received % Xferd  Average Speed   Time    Time     Time  Current\n";

// ---- the meter

#[test]
fn the_meter_is_shown_unless_it_is_switched_off() {
    let server = Script::start(|_| response(200, "", "hello"));
    let url = server.url("/");
    let shown = output(get(&[&url]));
    assert_eq!(stdout(&shown), "hello");
    let text = stderr(&shown);
    assert!(text.starts_with(HEADER), "{text}");
    let rows: Vec<&str> = text.split('\r').skip(1).collect();
    assert_eq!(
        rows[0],
        "  0     0    0     0    0     0      0      0 --:--:-- --:--:-- --:--:--     0"
    );
    let last = rows.last().expect("two rows");
    assert!(
        last.starts_with("100     5  100     5    0     0 "),
        "{last:?}"
    );
    assert!(text.ends_with('\n'), "{text:?}");
    for off in ["-s", "--no-progress-meter", "-sS"] {
        let quiet = output(get(&[off, &url]));
        assert_eq!(
            (stdout(&quiet), stderr(&quiet)),
            ("hello".into(), String::new())
        );
    }
    let two = output(get(&[&url, &url]));
    assert_eq!(stderr(&two).matches(HEADER).count(), 2);
}

#[test]
fn the_meter_stands_before_the_error() {
    let closed = TcpListener::bind("127.0.0.1:0")
        .expect("a port")
        .local_addr()
        .expect("an address");
    let failed = output(get(&[&format!("http://{closed}/")]));
    assert_eq!(failed.status.code(), Some(7));
    let text = stderr(&failed);
    let last = text.lines().last().unwrap_or("");
    assert!(
        text.starts_with(HEADER) && last.starts_with("crawler-cli: (7) "),
        "{text:?}"
    );
    // No transfer has begun.
    let wrong = stderr(&output(get(&["bogus://x/"])));
    assert!(wrong.starts_with("crawler-cli: (1) "), "{wrong:?}");
}

#[test]
fn an_answer_on_a_terminal_has_no_meter() {
    let server = Script::start(|_| response(200, "", "hello"));
    let url = server.url("/");
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("out");
    let to_file = ["-o", file.to_str().expect("a path"), &url];
    for (args, shows) in [(&[&*url][..], false), (&to_file[..], true)] {
        let (_master, terminal) = pseudo_terminal();
        let mut command = get(args);
        let child = command
            .stdout(terminal)
            .stderr(Stdio::piped())
            .spawn()
            .expect("runs");
        let done = child.wait_with_output().expect("ends");
        assert_eq!(stderr(&done).starts_with(HEADER), shows, "{args:?}");
    }
}

#[test]
fn the_bar_is_as_wide_as_the_terminal() {
    let server = Script::start(|_| response(200, "", "hello"));
    let mut command = get(&["-#", &server.url("/")]);
    command.env("COLUMNS", "40");
    let text = stderr(&output(command));
    assert_eq!(text, format!("\r{} 100.0%\n", "#".repeat(33)));
}

#[test]
fn an_upload_is_in_the_meter() {
    let server = Script::start(|_| response(200, "", ""));
    let text = stderr(&output(get(&["-d", "abc", &server.url("/")])));
    let last = text.rsplit('\r').next().expect("a row");
    assert!(
        last.starts_with("100     3    0     0  100     3 "),
        "{last:?}"
    );
}

// ---- speed

#[test]
fn a_download_keeps_to_its_rate() {
    let server = Script::start(|_| response(200, "", "x".repeat(200_000)));
    let begun = Instant::now();
    let done = output(get(&["-s", "--limit-rate", "100k", &server.url("/")]));
    assert_eq!(done.stdout.len(), 200_000);
    // All but the first 16 KiB.
    assert!(
        begun.elapsed() > Duration::from_millis(1500),
        "{:?}",
        begun.elapsed()
    );
}

#[test]
fn an_upload_keeps_to_its_rate() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("up");
    std::fs::write(&file, "x".repeat(200_000)).expect("written");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let mut received = 0;
        let mut buffer = [0; 65_536];
        while received < 200_000 {
            received += stream.read(&mut buffer).expect("bytes");
        }
        stream
            .write_all(&response(200, "", "done"))
            .expect("answered");
    });
    let begun = Instant::now();
    let path = file.to_str().expect("a path");
    let done = output(get(&[
        "-s",
        "--limit-rate",
        "100k",
        "-T",
        path,
        "-H",
        "Expect:",
        &url,
    ]));
    assert_eq!(stdout(&done), "done");
    assert!(
        begun.elapsed() > Duration::from_millis(1500),
        "{:?}",
        begun.elapsed()
    );
    server.join().expect("the server ends");
}

#[test]
fn a_rate_that_is_fast_enough_is_not_slow() {
    let server = Script::start(|_| response(200, "", "x".repeat(200_000)));
    let args = [
        "-s",
        "--limit-rate",
        "100k",
        "-Y",
        "1000",
        "-y",
        "1",
        "-w",
        "%{exitcode}",
        "-o",
        "/dev/null",
    ];
    let url = server.url("/");
    let done = output(get(&[&args[..], &[&url]].concat()));
    assert_eq!(stdout(&done), "0");
    let slow = [
        "-s",
        "--limit-rate",
        "30k",
        "-Y",
        "60000",
        "-y",
        "1",
        "-w",
        "%{exitcode}",
        "-o",
        "/dev/null",
    ];
    let done = output(get(&[&slow[..], &[&url]].concat()));
    assert_eq!(stdout(&done), "28");
}

// ---- transfers at the same time

#[test]
fn transfers_run_at_the_same_time_and_keep_their_files() {
    // Nobody is answered before all have asked.
    let all = Barrier::new(5);
    let server = Script::start(move |request| {
        all.wait();
        response(200, "", request.repeat(20_000))
    });
    let directory = tempfile::tempdir().expect("a directory");
    let mut command = get(&["-sSZ", "-m", "60", "--parallel-max", "5"]);
    for number in 0..5 {
        let url = server.url(&format!("/{number}"));
        command.args(["-o", &number.to_string(), &url]);
    }
    command.current_dir(directory.path());
    let done = output(command);
    assert_eq!(
        (done.status.code(), stderr(&done)),
        (Some(0), String::new())
    );
    for number in 0..5 {
        let body = std::fs::read_to_string(directory.path().join(number.to_string()));
        assert!(body.expect("written") == format!("GET /{number}").repeat(20_000));
    }
}

#[test]
fn the_file_of_heads_is_emptied_once_for_all_transfers() {
    let all = Barrier::new(4);
    let server = Script::start(move |request| {
        all.wait();
        response(200, &format!("X-Request: {request}\r\n"), "hello")
    });
    let directory = tempfile::tempdir().expect("a directory");
    let heads = directory.path().join("heads");
    std::fs::write(&heads, "old").expect("written");
    let mut command = get(&["-sSZ", "-m", "60", "-o", "/dev/null"]);
    command.arg("-D").arg(&heads);
    let urls = (0..4).map(|number| server.url(&format!("/{number}")));
    let outputs = ["-o", "/dev/null"].repeat(3);
    let done = output({
        command.args(outputs).args(urls);
        command
    });
    assert_eq!(
        (done.status.code(), stderr(&done)),
        (Some(0), String::new())
    );
    let text = std::fs::read_to_string(&heads).expect("written");
    assert!(!text.contains("old"), "{text}");
    for number in 0..4 {
        let line = format!("X-Request: GET /{number}");
        assert_eq!(text.lines().filter(|l| *l == line).count(), 1, "{text}");
    }
}

#[test]
fn no_more_transfers_than_asked_for_run_at_the_same_time() {
    let pair = Barrier::new(2);
    let server = Script::start(move |_| {
        pair.wait();
        response(200, "", "x")
    });
    let url = server.url("/");
    let urls = [&*url; 8];
    let done = output(get(&[
        &["-sSZ", "-m", "60", "--parallel-max", "2"][..],
        &urls,
    ]
    .concat()));
    assert_eq!(
        (done.status.code(), stdout(&done)),
        (Some(0), "xxxxxxxx".into())
    );
    assert_eq!(server.most_at_once(), 2);
}

#[test]
fn the_joint_meter_counts_all_transfers() {
    let server = Script::start(|_| response(200, "", "hello"));
    let url = server.url("/");
    let text = stderr(&output(get(&["-Z", &url, &url])));
    let header = "DL% UL%  Dled  Uled  Xfers  Live Total     Current  Left    Speed\n";
    assert!(text.starts_with(header), "{text:?}");
    let last = text.rsplit('\r').next().expect("a row");
    assert!(
        last.starts_with("100 --     10     0     2     0  "),
        "{last:?}"
    );
    assert_eq!(stderr(&output(get(&["-Zs", &url]))), "");
}

#[test]
fn the_first_failure_ends_the_others_early() {
    let stalls = Script::start(|_| Answer::Stall);
    let closed = TcpListener::bind("127.0.0.1:0")
        .expect("a port")
        .local_addr()
        .expect("an address");
    let urls = [stalls.url("/"), format!("http://{closed}/")];
    let done = output(get(&[
        "-sSZ",
        "-m",
        "60",
        "--fail-early",
        &urls[0],
        &urls[1],
    ]));
    let text = stderr(&done);
    assert_eq!(done.status.code(), Some(7), "{text}");
    assert!(text.contains("crawler-cli: (42) "), "{text}");
}

// ---- what is told

#[test]
fn the_version_names_protocols_and_features() {
    let text = stdout(&output(get(&["-V"])));
    let lines: Vec<&str> = text.lines().collect();
    let version = concat!("crawler-cli ", env!("CARGO_PKG_VERSION"), " ");
    assert!(lines[0].starts_with(version), "{text}");
    assert!(
        lines[1].starts_with("Protocols: ") && lines[1].contains(" https"),
        "{text}"
    );
    assert!(
        lines[2].starts_with("Features: ") && lines[2].contains(" SSL "),
        "{text}"
    );
}

#[test]
fn verbose_tells_about_the_certificate() {
    let authority = Authority::new("Some Authority");
    let server = Script::start_tls(authority.server_until("127.0.0.1", (2090, 1, 2)), |_| {
        response(200, "", "hello")
    });
    let file = authority.file();
    let roots = file.path().to_str().expect("a path");
    let url = server.url("/");
    let text = stderr(&output(get(&["-sv", "--cacert", roots, &url])));
    for line in [
        "* ALPN: server did not agree on a protocol. Uses default.",
        "* Server certificate:",
        "*  subject: CN=rcgen self signed cert",
        "*  expire date: Jan  2 00:00:00 2090 GMT",
        "*  issuer: CN=Some Authority",
        "*  SSL certificate verify ok.",
    ] {
        assert!(
            text.lines().any(|l| l == line),
            "{line:?} is not in\n{text}"
        );
    }
    assert!(
        text.contains("\n* SSL connection using TLSv1.3 / TLS_"),
        "{text}"
    );
    let text = stderr(&output(get(&["-svk", &url])));
    assert!(
        !text.contains("verify ok") && text.contains("verification is off"),
        "{text}"
    );
}

/// The password is typed on the terminal, which does not show it.
#[test]
fn a_password_is_asked_for_without_echo() {
    let server = Script::start(|_| response(200, "", "hello"));
    let (mut master, terminal) = pseudo_terminal();
    let mut command = Command::new("setsid");
    command.args(["--ctty", "--wait", env!("CARGO_BIN_EXE_crawler-cli")]);
    command.args(["get", "-q", "-sS", "-u", "name", &server.url("/")]);
    command
        .stdin(terminal)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("runs");
    // The command keeps the descriptor of the terminal.
    drop(command);
    let prompt = "Enter host password for user 'name':";
    let mut shown = vec![0; prompt.len()];
    let errors = child.stderr.as_mut().expect("piped");
    errors.read_exact(&mut shown).expect("a prompt");
    assert_eq!(String::from_utf8_lossy(&shown), prompt);
    master.write_all(b"secret\n").expect("typed");
    let done = child.wait_with_output().expect("ends");
    assert_eq!(stdout(&done), "hello");
    let heads = server.heads();
    assert!(
        heads[0].contains("Authorization: Basic bmFtZTpzZWNyZXQ=\r\n"),
        "{heads:?}"
    );
    let mut echoed = Vec::new();
    // At the end of a terminal, reading returns an error.
    let _ = master.read_to_end(&mut echoed);
    assert!(!String::from_utf8_lossy(&echoed).contains("secret"));
}

#[test]
fn a_trace_has_all_but_secrets() {
    let server = Script::start(|_| response(200, "", "hello"));
    let url = server.url("/");
    let request = ["-s", "-u", "me:secret", "-d", "a=1", &url];
    let text = stderr(&output(get(
        &[&["--trace-ascii", "%"][..], &request].concat()
    )));
    for part in [
        "== Info:   Trying 127.0.0.1:",
        "\n=> Send header, ",
        "\n0000: POST / HTTP/1.1\n",
        ": Authorization: Basic ***\n",
        "\n=> Send data, 3 bytes (0x3)\n0000: a=1\n<= Recv header, 16 bytes (0x10)\n0000: HTTP/1.1 200 X\n",
        "\n<= Recv header, 2 bytes (0x2)\n0000: \n<= Recv data, 5 bytes (0x5)\n0000: hello\n",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    assert!(
        !text.contains("secret") && !text.contains("bWU6c2VjcmV0"),
        "{text}"
    );
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("trace");
    let name = file.to_str().expect("a path");
    let done = output(get(&["-sv", "--trace", name, &url]));
    assert_eq!(
        (stdout(&done), stderr(&done)),
        ("hello".into(), String::new())
    );
    let text = std::fs::read_to_string(&file).expect("written");
    let row = "0000: 68 65 6c 6c 6f                                  hello\n";
    assert!(text.ends_with(&format!("5 bytes (0x5)\n{row}")), "{text}");
    let failed = output(get(&["--trace", "/nonexistent/x", &url]));
    assert_eq!(failed.status.code(), Some(23));
}

#[test]
fn a_trace_that_is_cut_short_is_exit_23_at_the_end() {
    let server = Script::start(|_| response(200, "", "hello"));
    let url = server.url("/");
    for trace in ["--trace", "--trace-ascii"] {
        let done = output(get(&["-sS", trace, "/dev/full", &url, &url]));
        assert_eq!(stdout(&done), "hellohello");
        assert_eq!(done.status.code(), Some(23));
        let text = stderr(&done);
        let told = "crawler-cli: (23) the trace is not complete: write: /dev/full: ";
        assert!(text.starts_with(told), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
    }
    // The failure of the transfer comes first.
    let closed = TcpListener::bind("127.0.0.1:0")
        .expect("a port")
        .local_addr()
        .expect("an address");
    let failed = output(get(&["-s", "--trace", "/dev/full", &closed.to_string()]));
    assert_eq!(
        (failed.status.code(), stderr(&failed)),
        (Some(7), String::new())
    );
}

#[test]
fn each_line_of_a_trace_can_have_its_time() {
    let server = Script::start(|_| response(200, "", "hello"));
    let text = stderr(&output(get(&["-sv", "--trace-time", &server.url("/")])));
    assert!(text.contains(" < HTTP/1.1 200 X\n"), "{text}");
    let line = |line: &str| {
        let (time, rest) = line.split_at_checked(15)?;
        let shape = time.replace(|c: char| c.is_ascii_digit(), "0");
        Some(shape == "00:00:00.000000" && rest.starts_with(' '))
    };
    assert!(text.lines().all(|l| line(l) == Some(true)), "{text}");
}
