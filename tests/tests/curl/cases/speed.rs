//! `-y`, `-Y` and `--limit-rate`. The peers that are slow send nothing at all.

use super::{ok, sized};
use crate::peer::Step::{Send, Take, TakeHead};
use crate::scenario::{LIMITS, Scenario};

pub(super) fn all() -> Vec<Scenario> {
    // What ends a transfer here exits as a time-out does.
    assert!(LIMITS.contains(&"-y"));
    let stalls = |name: &str, args: &[&str]| {
        Scenario::new(format!("speed/{name}"))
            .play([
                Take,
                Send(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello".to_vec()),
            ])
            .args(args)
    };
    let silent = |name: &str, args: &[&str]| {
        Scenario::new(format!("speed/{name}"))
            .play([TakeHead])
            .file("up", "y".repeat(20_000_000))
            .args(args)
    };
    let answers = |name: &str, args: &[&str]| {
        Scenario::new(format!("speed/{name}"))
            .routes([
                ("/", ok()),
                ("/large", sized("200 OK", &[], "x".repeat(60_000))),
            ])
            .args(args)
    };
    vec![
        stalls("body", &["-y", "1", "http://{A}/"]),
        stalls("body-limit", &["-y", "1", "-Y", "1000", "http://{A}/"]),
        stalls(
            "body-written",
            &[
                "-y",
                "1",
                "-o",
                "out",
                "-w",
                "%{exitcode} %{size_download}",
                "http://{A}/",
            ],
        ),
        silent("answer", &["-y", "1", "http://{A}/"]),
        silent(
            "upload",
            &["-y", "1", "-T", "up", "-H", "Expect:", "http://{A}/"],
        ),
        silent(
            "upload-data",
            &[
                "-y",
                "1",
                "--data-binary",
                "@up",
                "-H",
                "Expect:",
                "http://{A}/",
            ],
        ),
        silent("both-limits", &["-m", "1", "-y", "9", "http://{A}/"]),
        answers("fast", &["-y", "1", "-Y", "1", "http://{A}/large"]),
        answers("time-zero", &["-y", "0", "http://{A}/"]),
        answers("limit-zero", &["-Y", "0", "http://{A}/"]),
        answers("time-wrong", &["-y", "x", "http://{A}/"]),
        answers("time-negative", &["-y", "-1", "http://{A}/"]),
        answers("time-unit", &["-y", "1k", "http://{A}/"]),
        answers("limit-wrong", &["-Y", "x", "http://{A}/"]),
        answers("limit-unit", &["-Y", "1k", "http://{A}/"]),
        answers("rate", &["--limit-rate", "100k", "http://{A}/large"]),
        answers("rate-none", &["--limit-rate", "0", "http://{A}/large"]),
        answers("rate-unit", &["--limit-rate", "1G", "http://{A}/large"]),
        answers(
            "rate-small-unit",
            &["--limit-rate", "1m", "http://{A}/large"],
        ),
        answers("rate-wrong", &["--limit-rate", "x", "http://{A}/"]),
        answers("rate-fraction", &["--limit-rate", "1.5k", "http://{A}/"]),
        answers("rate-negative", &["--limit-rate", "-1", "http://{A}/"]),
        answers(
            "rate-upload",
            &[
                "--limit-rate",
                "100k",
                "-T",
                "up",
                "-H",
                "Expect:",
                "http://{A}/",
            ],
        )
        .file("up", "y".repeat(60_000)),
        answers(
            "meter-file",
            &["-o", "out", "--progress-meter", "http://{A}/large"],
        ),
        answers(
            "meter-off",
            &["-o", "out", "--no-progress-meter", "http://{A}/large"],
        ),
        answers("bar", &["-#", "-o", "out", "http://{A}/large"]),
        answers("bar-off", &["--no-progress-bar", "http://{A}/"]),
    ]
}
