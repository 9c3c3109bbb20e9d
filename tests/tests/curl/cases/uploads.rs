//! `-T`, large bodies and `Expect`.

use super::sized;
use crate::peer::Step::{Close, Send, Take, TakeBytes, TakeHead};
use crate::scenario::Scenario;

pub(super) fn all() -> Vec<Scenario> {
    let go_on = || Send(b"HTTP/1.1 100 Continue\r\n\r\n".to_vec());
    let made = || Send(sized("201 Created", &[], "made"));
    let case = |name: &str, args: &[&str]| {
        Scenario::new(format!("upload/{name}"))
            .play([TakeHead, go_on(), TakeBytes(5), made()])
            .file("five", "12345")
            .stdin("stdin")
            .args(args)
    };
    let large = "y".repeat(1_500_000);
    vec![
        case("file", &["-T", "five", "http://{A}/x"]),
        case("file-directory", &["-T", "five", "http://{A}/dir/"]),
        case("file-root", &["-T", "five", "http://{A}"]),
        case("file-query", &["-T", "five", "http://{A}/dir/?q"]),
        case("file-method", &["-T", "five", "-X", "POST", "http://{A}/x"]),
        case(
            "file-header",
            &["-T", "five", "-H", "Content-Type: t", "http://{A}/x"],
        ),
        case(
            "file-sizes",
            &[
                "-T",
                "five",
                "-w",
                "%{size_upload} %{method}",
                "http://{A}/x",
            ],
        ),
        case("missing", &["-T", "none", "http://{A}/x"]),
        case("with-data", &["-T", "five", "-d", "x", "http://{A}/x"]),
        Scenario::new("upload/no-expect")
            .play([Take, made()])
            .file("five", "12345")
            .args(["-T", "five", "-H", "Expect:", "http://{A}/x"]),
        Scenario::new("upload/empty")
            .play([Take, made()])
            .file("empty", "")
            .args(["-T", "empty", "http://{A}/x"]),
        Scenario::new("upload/stdin")
            .play([TakeHead, go_on(), TakeBytes(15), made()])
            .stdin("stdin")
            .args(["-T", "-", "http://{A}/x"]),
        Scenario::new("upload/stdin-http10")
            .play([Take, made()])
            .stdin("stdin")
            .args(["-T", "-", "-H", "Expect:", "http://{A}/x"]),
        Scenario::new("upload/refused")
            .play([
                TakeHead,
                Send(sized("413 Too Large", &["Connection: close"], "no")),
                Close,
            ])
            .file("five", "12345")
            .args(["-T", "five", "http://{A}/x"]),
        Scenario::new("upload/refused-417")
            .play([TakeHead, Send(sized("417 No", &[], "no")), Take, made()])
            .file("five", "12345")
            .args(["-T", "five", "http://{A}/x"]),
        Scenario::new("upload/no-answer")
            .play([TakeHead, TakeBytes(5), made()])
            .file("five", "12345")
            .args(["-T", "five", "http://{A}/x"]),
        Scenario::new("upload/large-data")
            .play([TakeHead, go_on(), TakeBytes(1_500_000), made()])
            .file("large", large.clone())
            .args(["--data-binary", "@large", "http://{A}/x"]),
        Scenario::new("upload/large-file")
            .play([TakeHead, go_on(), TakeBytes(1_500_000), made()])
            .file("large", large)
            .args(["-T", "large", "http://{A}/x"]),
    ]
}
