//! The load generator as a program, with the server of this package.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Command, Output, Stdio};
use std::thread;

use benches::serve::Server;
use benches::tls;
use rustix::net::{AddressFamily, SocketType};
use serde_json::{Value, json};

use crate::server;

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
    // By number, and by time.
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
}

#[test]
fn latency_counts_from_when_a_request_was_due() {
    // All requests are due within 10 µs and share one connection: the last one has waited for all others.
    let burst = ["--rate", "1e8", "-n", "1000", "-c", "1", "--json"];
    let record = record(&load(&[&burst[..], &[&url("/13")]].concat()));
    // From when they were sent, all latencies together would be less than the whole time.
    let whole = record["seconds"].as_f64().expect("a time") * 1e6;
    let mean = record["latency_us"]["mean"].as_f64().expect("a time");
    assert!(1000.0 * mean > whole, "{record}");
    assert!(
        record["schedule"]["most_behind"].as_u64() > Some(900),
        "{record}"
    );
}

#[test]
fn urls_from_a_file() {
    let server = url("");
    let file = tempfile::NamedTempFile::new().expect("a file");
    let lines = format!("# each once\n/13\n\nHEAD {server}/1k\n/nothing\n");
    fs::write(file.path(), lines).expect("a written file");
    let name = file.path().to_str().expect("a plain name");
    for client in ["host", "client", "pipeline"] {
        let amount = ["-n", "9", "--warm-up", "0", "-c", "1"];
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
fn a_server_that_is_not_there() {
    // A bound socket that does not listen: nobody else gets its port.
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None);
    let socket = socket.expect("a socket");
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    rustix::net::bind(&socket, &address).expect("a port");
    let address = rustix::net::getsockname(&socket).expect("an address");
    let address = SocketAddr::try_from(address).expect("an address of the internet");
    let url = format!("http://{address}/");
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
    ] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
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
        let error = refused(&["--client", client, "-H", "A: b"]);
        let expected = format!("load: --client {client} does not take --header: only host");
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
    format!("http://{}{path}", server())
}
