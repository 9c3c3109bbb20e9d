//! `--retry` and its family.

use super::{ok, sized};
use crate::peer::Peer;
use crate::peer::Step::{Close, Send, Take};
use crate::scenario::Scenario;

pub(super) fn all() -> Vec<Scenario> {
    let busy = || {
        vec![
            Take,
            Send(sized("503 Busy", &["Retry-After: 0"], "busy")),
            Close,
        ]
    };
    let fine = || vec![Take, Send(ok())];
    let failed = || vec![Take, Close];
    let case = |name: &str, lists: Vec<Vec<crate::peer::Step>>, args: &[&str]| {
        Scenario::new(format!("retry/{name}"))
            .peer(Peer::Play(lists))
            .args([args, &["-w", "|%{http_code}", "http://{A}/"]].concat())
    };
    let again = ["--retry", "1", "--retry-delay", "1"];
    let mut all = vec![
        case("fine", vec![fine()], &again),
        case("503", vec![busy(), fine()], &again),
        case("503-twice", vec![busy(), busy()], &again),
        case(
            "503-file",
            vec![busy(), fine()],
            &[&again[..], &["-o", "out"]].concat(),
        ),
        case(
            "503-fail",
            vec![busy(), fine()],
            &[&again[..], &["-f"]].concat(),
        ),
        case(
            "503-heads",
            vec![busy(), fine()],
            &[&again[..], &["-i"]].concat(),
        ),
        case(
            "503-post",
            vec![busy(), fine()],
            &[&again[..], &["-d", "x"]].concat(),
        ),
        case("empty", vec![failed(), fine()], &again),
        case(
            "empty-all-errors",
            vec![failed(), fine()],
            &[&again[..], &["--retry-all-errors"]].concat(),
        ),
        case("zero", vec![busy()], &["--retry", "0"]),
        case(
            "max-time",
            vec![busy(), fine()],
            &[
                "--retry",
                "3",
                "--retry-delay",
                "5",
                "--retry-max-time",
                "1",
            ],
        ),
        case("text", vec![fine()], &["--retry", "x"]),
    ];
    for status in ["408", "429", "500", "502", "504", "404", "501", "400"] {
        let first = vec![
            Take,
            Send(sized(&format!("{status} X"), &[], "bad")),
            Take,
            Send(ok()),
        ];
        all.push(case(status, vec![first, fine()], &again));
    }
    all.push(Scenario::new("retry/refused").peer(Peer::Refusing).args([
        "--retry",
        "1",
        "--retry-delay",
        "1",
        "http://{A}/",
    ]));
    all.push(
        Scenario::new("retry/refused-connrefused")
            .peer(Peer::Refusing)
            .args([
                "--retry",
                "1",
                "--retry-delay",
                "1",
                "--retry-connrefused",
                "http://{A}/",
            ]),
    );
    all
}
