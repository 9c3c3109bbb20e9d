//! The load generator as a program, with the server of this package.

use std::fs;
use std::net::TcpListener;
use std::process::{Command, Output, Stdio};
use std::thread;

use benches::serve::Server;
use benches::tls;
use serde_json::{Value, json};

#[test]
fn closed_loop_counts() {
    let output = load(&["-n", "100", "-c", "4", "--json", &url("/13")]);
    assert!(output.status.success(), "{output:?}");
    let record = record(&output);
    assert_eq!(
        (&record["requests"], &record["errors"]),
        (&json!(100), &json!(0))
    );
    assert_eq!(record["statuses"], json!({"200": 100}));
    assert_eq!(record["connections_opened"], 4);
    assert_eq!(record["schedule"], Value::Null);
    // Each response has a head in addition to the 13 bytes.
    assert!(record["bytes_in"].as_u64() > Some(100 * 30), "{record}");
    let latency = |name: &str| record["latency_us"][name].as_f64().expect("a latency");
    let names = ["min", "p50", "p75", "p90", "p99", "p999", "max"];
    assert!(names.map(latency).is_sorted(), "{record}");
    assert!(latency("min") > 0.0 && latency("mean") > 0.0);
}

#[test]
fn open_loop_sends_what_is_due() {
    // By number, and by time: 2,000 in the second after the ramp, half as many during the ramp.
    for (client, amount, sent) in [
        ("host", ["-n", "150"], 150),
        ("pipeline", ["-d", "50ms"], 100),
        ("hyper", ["-d", "50ms"], 100),
        ("ureq", ["-n", "150"], 150),
    ] {
        let rate = ["--rate", "2000", "-c", "2", "--json", "--client", client];
        let output = load(&[&rate[..], &amount, &[&url("/13")]].concat());
        assert!(output.status.success(), "{output:?}");
        let record = record(&output);
        let schedule = &record["schedule"];
        let count = |name: &str| schedule[name].as_u64().expect("a count");
        // Requests that a slow machine does not send in time are counted as unsent.
        assert_eq!(count("sent") + count("unsent"), sent, "{record}");
        assert_eq!(record["requests"], schedule["sent"]);
        assert_eq!(schedule["rate"], 2000.0);
    }
    let ramp = ["--rate", "1000", "--ramp", "0.1", "-d", "200ms", "--json"];
    let record = record(&load(&[&ramp[..], &[&url("/13")]].concat()));
    let count = |name: &str| record["schedule"][name].as_u64().expect("a count");
    assert_eq!(count("sent") + count("unsent"), 50 + 100, "{record}");
}

#[test]
fn latency_counts_from_when_a_request_was_due() {
    // All requests are due within 10 µs and share one connection: the last one has waited for all others.
    let burst = ["--rate", "1e8", "-n", "1000", "-c", "1", "--json"];
    let record = record(&load(&[&burst[..], &[&url("/13")]].concat()));
    let ms = record["seconds"].as_f64().expect("a time") * 1e3;
    let longest = record["latency_us"]["max"].as_f64().expect("a time") / 1e3;
    let median = record["latency_us"]["p50"].as_f64().expect("a time") / 1e3;
    assert!(longest > ms / 2.0 && median > ms / 10.0, "{record}");
    assert!(
        record["schedule"]["most_behind"].as_u64() > Some(900),
        "{record}"
    );
}

#[test]
fn connections_are_added_during_the_ramp() {
    let ramp = ["--ramp", "30ms", "-d", "60ms", "-c", "3", "--json"];
    let output = load(&[&ramp[..], &[&url("/13")]].concat());
    assert!(output.status.success(), "{output:?}");
    assert_eq!(record(&output)["connections_opened"], 3);
}

#[test]
fn urls_from_a_file() {
    let server = url("");
    let file = tempfile::NamedTempFile::new().expect("a file");
    let lines = format!("# each once\n/13\n\nHEAD {server}/1k\n/nothing\n");
    fs::write(file.path(), lines).expect("a written file");
    let name = file.path().to_str().expect("a plain name");
    for client in ["host", "client", "pipeline"] {
        let amount = ["-n", "9", "--warm-up", "0", "-c", "1", "--shuffle", "7"];
        let urls = ["--urls", name, "--client", client, "--json", &server];
        let output = load(&[&amount[..], &urls].concat());
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let record = record(&output);
        assert_eq!(record["statuses"], json!({"200": 6, "404": 3}));
        assert_eq!(record["errors_by_kind"], json!({"status 404": 3}));
        assert_eq!(
            (&record["requests"], &record["errors"]),
            (&json!(6), &json!(3))
        );
    }
    fs::write(file.path(), "/13\nGET /1 2\n").expect("a written file");
    let output = load(&["-n", "1", "--urls", name, &server]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(error.contains(&format!("{name}, line 2: ")), "{error}");
}

#[test]
fn methods_headers_and_bodies() {
    let body = "b".repeat(2000);
    let post = [
        "-n",
        "10",
        "-c",
        "2",
        "--data",
        &body,
        "-H",
        "X-Some: thing",
    ];
    let output = load(&[&post[..], &["--json", &url("/13")]].concat());
    assert!(output.status.success(), "{output:?}");
    assert_eq!(record(&output)["statuses"], json!({"200": 10}));
    let head = load(&["-X", "HEAD", "-n", "10", "--json", &url("/1m")]);
    let received = record(&head)["bytes_in"].as_u64().expect("bytes");
    assert!(received < 10_000, "{received} bytes");
    // If the body were missing, the server would wait for it and not respond.
    for client in [
        "client", "call", "blocking", "send", "driven", "hyper", "reqwest", "ureq",
    ] {
        for options in [["--data", "body"], ["-X", "HEAD"]] {
            let few = ["-n", "10", "-c", "2", "--json", "--client", client];
            let output = load(&[&few[..], &options, &[&url("/13")]].concat());
            assert!(output.status.success(), "{client}: {output:?}");
            assert_eq!(record(&output)["requests"], 10);
        }
    }
}

#[test]
fn allowed_errors() {
    let url = url("/nothing");
    let code = |options: &[&str]| {
        let amount = ["-n", "5", "--warm-up", "0", "-c", "1"];
        load(&[&amount[..], options, &[&url]].concat())
            .status
            .code()
    };
    assert_eq!(code(&[]), Some(1));
    assert_eq!(code(&["--allow-errors=4"]), Some(1));
    assert_eq!(code(&["--allow-errors=5"]), Some(0));
    assert_eq!(code(&["--allow-errors"]), Some(0));
}

#[test]
fn a_server_that_is_not_there() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    drop(listener);
    let output = load(&["-c", "1", &url]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("Ended early: too many errors in a row"),
        "{text}"
    );
    assert!(
        text.contains("1000  connecting failed: Connection refused"),
        "{text}"
    );
}

#[test]
fn time_limit_of_a_request() {
    // The system accepts connections; the server sends nothing.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    let short = ["--timeout", "5ms", "-n", "3", "--warm-up", "0", "-c", "1"];
    let output = load(&[&short[..], &["--json", &url]].concat());
    assert_eq!(output.status.code(), Some(1));
    let kind = "waiting for the first byte timed out (total deadline)";
    assert_eq!(record(&output)["errors_by_kind"], json!({kind: 3}));
}

#[test]
fn interrupted_run_prints_what_it_has() {
    // The server does not respond, so that only the signal can end the run. The signal arrives before the run waits.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_load"));
    command.args([
        "-c",
        "1",
        "-d",
        "1h",
        "--warm-up",
        "0",
        "--allow-errors",
        "--json",
        &url,
    ]);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = command.spawn().expect("a process");
    // After it has connected, the program handles signals.
    let _connection = listener.accept().expect("a connection");
    let kill = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(kill.expect("kill").success());
    let output = child.wait_with_output().expect("an end");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("no request was measured"), "{stderr}");
    assert_eq!(record(&output)["ended_early"], "interrupted");
}

#[test]
fn text_for_a_reader() {
    let output = load(&["-n", "100", "-c", "2", "--rate", "20000", &url("/13")]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    for part in [
        "host: 100 requests in ",
        "  Answers      100 with 200\n",
        "  Errors       0\n",
        "  Schedule     20000 per second: 100 sent, 0 due but never sent",
        "Latency, from when a request was due\n",
        "  p99.9 ",
        "########| ",
    ] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    assert!(output.stderr.is_empty(), "progress is for terminals");
}

#[test]
fn hdr_file() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let name = file.path().to_str().expect("a plain name");
    let output = load(&["-n", "200", "-c", "2", "--hdr", name, "--json", &url("/13")]);
    assert!(output.status.success(), "{output:?}");
    let text = fs::read_to_string(file.path()).expect("a file");
    let last = text
        .lines()
        .take_while(|line| !line.starts_with('#'))
        .last();
    let row: Vec<f64> = last
        .expect("rows")
        .split_whitespace()
        .map(|word| word.parse().expect("a number"))
        .collect();
    let max = record(&output)["latency_us"]["max"]
        .as_f64()
        .expect("a latency");
    assert!((row[0] * 1e3 - max).abs() <= max / 500.0, "{row:?} {max}");
    assert_eq!(row[1..], [1.0, 200.0]);
    let nowhere = load(&["-n", "1", "--hdr", "/nowhere/at/all", &url("/13")]);
    assert_eq!(nowhere.status.code(), Some(1));
    assert!(nowhere.stdout.is_empty());
}

#[test]
fn all_clients_of_courser_speak_tls() {
    let (config, certificate) = tls::server().expect("a certificate");
    let server = Server::bind(0).expect("a loopback port").with_tls(config);
    let url = format!("https://{}/1k", server.address());
    thread::spawn(move || server.run(None));
    let root = tempfile::NamedTempFile::new().expect("a file");
    fs::write(root.path(), certificate).expect("a certificate");
    let root = root.path().to_str().expect("a plain name");
    for client in [
        "host", "client", "pipeline", "call", "blocking", "send", "driven",
    ] {
        let number = ["-n", "100", "-c", "2", "--json"];
        let output = load(&[&number[..], &["--client", client, "--root", root, &url]].concat());
        assert!(output.status.success(), "{client}: {output:?}");
        assert_eq!(record(&output)["requests"], 100);
        // The certificate is checked.
        let output = load(&[&number[..], &["--client", client, &url]].concat());
        assert_eq!(output.status.code(), Some(1), "{client}: {output:?}");
    }
}

#[test]
fn options_that_a_client_does_not_take() {
    let refused = |options: &[&str]| {
        let output = load(&[options, &["http://127.0.0.1:1/"]].concat());
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).expect("text")
    };
    for client in [
        "call", "blocking", "send", "driven", "hyper", "reqwest", "ureq",
    ] {
        let error = refused(&["--client", client, "--ramp", "1"]);
        let expected = format!("load: --client {client} does not take --ramp: only host");
        assert!(error.starts_with(&expected), "{error}");
    }
    assert!(refused(&["-X", "GET", "--data", "x"]).contains("--data is not sent with GET"));
    assert!(refused(&["-H", "Content-Length: 1"]).contains("cannot be a header"));
}

fn load(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_load"));
    command.args(args).stdin(Stdio::null());
    command.output().expect("a process")
}

fn record(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

/// The URL of a path on a new server.
fn url(path: &str) -> String {
    let server = Server::bind(0).expect("a loopback port");
    let url = format!("http://{}{path}", server.address());
    thread::spawn(move || server.run(None));
    url
}
