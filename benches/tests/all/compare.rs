//! The `compare` tool as a program: a workload of each kind with each of its clients, for a very short time. The numbers
//! are not checked.

use std::process::{Command, Output, Stdio};

use benches::peers::go;
use benches::process::installed;

#[test]
fn each_kind_of_workload_is_measured() {
    let workloads = [
        ("get-1", "limit host client call busy hyper reqwest ureq"),
        ("close", "limit host client hyper reqwest ureq"),
        ("head", "limit host client hyper reqwest ureq"),
        ("post-1k", "limit host client hyper reqwest ureq"),
        ("tls", "host client hyper reqwest ureq"),
        ("tls-pipelining-16", "host pipeline"),
        // Without ureq, which would resume sessions.
        ("handshakes", "host client hyper reqwest"),
        ("pipelining-16", "limit host pipeline"),
        ("shared", "blocking ureq"),
        ("async", "driven send host reqwest"),
        ("open-75", "limit host client hyper reqwest ureq"),
    ];
    let names = workloads.map(|(name, _)| name).join(",");
    let clients = "limit,host,client,call,busy,pipeline,blocking,send,driven,hyper,reqwest,ureq";
    let options = ["--connections", "2", "--clients", clients];
    let output = compare(&[&options[..], &["--workload", &names]].concat());
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    for (name, rows) in workloads {
        let rows: Vec<_> = rows.split(' ').collect();
        assert_eq!(clients_of(&text, name), rows, "{name} in {text}");
    }
    // A line for each closed-loop workload, and for each bar that needs no other workload.
    let (_, end) = text.split_once("divided by").expect("ratios");
    let (ratios, bars) = end.split_once("### Bars").expect("bars");
    assert_eq!(rows(ratios).count(), workloads.len() - 1, "{text}");
    assert_eq!(rows(bars).count(), 6, "{text}");
    assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
}

#[test]
fn wrk_takes_part() {
    if !installed("wrk") {
        return;
    }
    let workloads = ["--workload", "post-1k,pipelining-4", "--clients", "wrk"];
    let output = compare(&workloads);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(clients_of(&text, "post-1k"), ["wrk"]);
    assert_eq!(clients_of(&text, "pipelining-4"), ["wrk"]);
}

#[test]
fn clients_in_go_take_part() {
    if !go::installed() {
        return;
    }
    let workloads = ["--workload", "get-8,chunked,close,pipelining-16"];
    let output = compare(&[&workloads[..], &["--clients", "fasthttp,net/http"]].concat());
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    for name in ["get-8", "chunked", "close"] {
        assert_eq!(clients_of(&text, name), ["fasthttp", "net/http"]);
    }
    assert_eq!(clients_of(&text, "pipelining-16"), ["fasthttp"]);
}

#[test]
fn what_cannot_be_measured_is_said() {
    for (options, part) in [
        (["--workload", "get-2"], "there is no workload get-2"),
        (["--clients", "curl"], "none of these clients is for these"),
    ] {
        let output = compare(&options);
        assert_eq!(output.status.code(), Some(1));
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(error.contains(part), "{error}");
    }
}

/// The first cells of the rows below the heading of this workload.
fn clients_of<'a>(text: &'a str, workload: &str) -> Vec<&'a str> {
    let heading = format!("### {workload}: ");
    let (_, section) = text.split_once(&heading).expect("a heading");
    let section = section.split("###").next().unwrap_or_default();
    let name = |row: &'a str| row.split(" | ").next().unwrap_or_default();
    rows(section).map(name).collect()
}

/// The rows of a table without its head, each from its first cell on.
fn rows(section: &str) -> impl Iterator<Item = &str> {
    let lines = section.lines().filter_map(|line| line.strip_prefix('|'));
    let rows = lines.skip_while(|line| !line.starts_with("---")).skip(1);
    rows.map(str::trim)
}

fn compare(options: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_compare"));
    command.args(["--rounds", "1", "--seconds", "0.01"]);
    command.args(options).stdin(Stdio::null());
    command.output().expect("a process")
}
