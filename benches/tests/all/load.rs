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
    let output = load(&["-n", "100", "-c", "4", &url("/13")]);
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
        let rate = ["--rate", "2000", "-c", "2", "--client", client];
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
    let burst = ["--rate", "1e8", "-n", "1000", "-c", "1"];
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
fn methods_and_bodies() {
    let body = "b".repeat(2000);
    let post = ["-n", "10", "-c", "2", "--data", &body];
    let output = load(&[&post[..], &[&url("/13")]].concat());
    assert!(output.status.success(), "{output:?}");
    assert_eq!(record(&output)["statuses"], json!({"200": 10}));
    let head = load(&["-X", "HEAD", "-n", "10", &url("/1m")]);
    let received = record(&head)["bytes_in"].as_u64().expect("bytes");
    assert!(received < 10_000, "{received} bytes");
    // If the body were missing, the server would wait for it and not respond.
    for client in [
        "client", "call", "blocking", "send", "driven", "hyper", "reqwest", "ureq",
    ] {
        for options in [["--data", "body"], ["-X", "HEAD"]] {
            let few = ["-n", "10", "-c", "2", "--client", client];
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
    let record = record(&output);
    assert_eq!(record["ended_early"], "too many errors in a row");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        error.contains("1000 errors: connecting failed: Connection refused"),
        "{error}"
    );
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
        let number = ["-n", "100", "-c", "2"];
        let output = load(&[&number[..], &["--client", client, "--root", root, &url]].concat());
        assert!(output.status.success(), "{client}: {output:?}");
        assert_eq!(record(&output)["requests"], 100);
        // The certificate is checked.
        let output = load(&[&number[..], &["--client", client, &url]].concat());
        assert_eq!(output.status.code(), Some(1), "{client}: {output:?}");
    }
}

#[test]
fn a_method_that_takes_no_body_is_refused_one() {
    let output = load(&["-X", "GET", "--data", "x", "http://127.0.0.1:1/"]);
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("--data is not sent with GET"), "{error}");
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
