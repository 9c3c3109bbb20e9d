//! From where and how connections are made: interfaces, ports, sockets, waits.

use super::ok;
use crate::peer::Step::{Send, Take};
use crate::scenario::Scenario;

pub(super) fn all() -> Vec<Scenario> {
    let case = |name: &str, args: &[&str]| {
        Scenario::new(format!("connect/{name}"))
            .play([Take, Send(ok())])
            .args(args)
            .args([
                "-w",
                "|%{local_ip} %{remote_ip} %{num_connects}",
                "http://{A}/x",
            ])
    };
    let none = |name: &str, args: &[&str]| {
        Scenario::new(format!("connect/{name}"))
            .play([])
            .args(args)
            .args(["http://{A}/x"])
    };
    vec![
        case("interface", &["--interface", "lo"]),
        case("interface-if", &["--interface", "if!lo"]),
        case("interface-host", &["--interface", "host!127.0.0.1"]),
        case("interface-name", &["-4", "--interface", "localhost"]),
        case("interface-address", &["--interface", "127.0.0.9"]),
        case(
            "interface-last",
            &["--interface", "none", "--interface", "127.0.0.9"],
        ),
        none("interface-none", &["--interface", "no-such.invalid"]),
        none("interface-if-none", &["--interface", "if!none"]),
        none(
            "interface-host-none",
            &["--interface", "host!no-such.invalid"],
        ),
        none("interface-not-ours", &["--interface", "192.0.2.1"]),
        case("local-port", &["--local-port", "20000-60000"]),
        case(
            "local-port-interface",
            &["--interface", "127.0.0.9", "--local-port", "20000-60000"],
        ),
        none("local-port-range", &["--local-port", "30-20"]),
        none("local-port-large", &["--local-port", "65536"]),
        none("local-port-text", &["--local-port", "x"]),
        case("keepalive", &["--keepalive"]),
        case("no-keepalive", &["--no-keepalive"]),
        case("keepalive-time", &["--keepalive-time", "5"]),
        none("keepalive-time-text", &["--keepalive-time", "x"]),
        case("nodelay", &["--tcp-nodelay"]),
        case("no-nodelay", &["--no-tcp-nodelay"]),
        case("happy-eyeballs", &["--happy-eyeballs-timeout-ms", "50"]),
        none("happy-eyeballs-text", &["--happy-eyeballs-timeout-ms", "x"]),
        none(
            "abstract-none",
            &["--abstract-unix-socket", "no-such-socket"],
        ),
        // The server never says 100 (Continue): the body comes after this time.
        Scenario::new("connect/expect100")
            .play([Take, Send(ok())])
            .file("large", "x".repeat(1_100_000))
            .args([
                "--expect100-timeout",
                "0.05",
                "--data-binary",
                "@large",
                "http://{A}/x",
            ]),
        none("expect100-text", &["--expect100-timeout", "x"]),
    ]
}
