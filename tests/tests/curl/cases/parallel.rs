//! `-Z`. Each transfer has a peer of its own, because the order of their connections may differ.

use super::{ok, sized};
use crate::peer::Peer;
use crate::peer::Step::{Close, Send, Take};
use crate::scenario::Scenario;

pub(super) fn all() -> Vec<Scenario> {
    let case = |name: &str, args: &[&str]| {
        let large = || sized("200 OK", &[], "x".repeat(300_000));
        Scenario::new(format!("parallel/{name}"))
            .routes([
                ("/", ok()),
                ("/large", large()),
                ("/404", sized("404 No", &[], "no")),
            ])
            .routes([("/", sized("200 OK", &[], "second")), ("/large", large())])
            .routes([("/", sized("200 OK", &["Set-Cookie: a=b"], "third"))])
            .peer(Peer::Refusing)
            .args(["-Z"])
            .args(args)
    };
    vec![
        case("one", &["http://{A}/"]),
        case("files", &EACH),
        case("long-option", &with(&["--parallel"])),
        case("off", &with(&["--no-parallel"])),
        case("one-at-a-time", &with(&["--parallel-max", "1"])),
        case("two-at-a-time", &with(&["--parallel-max", "2"])),
        case("max-zero", &with(&["--parallel-max", "0"])),
        case("max-above", &with(&["--parallel-max", "301"])),
        case("max-highest", &with(&["--parallel-max", "300"])),
        case("max-wrong", &with(&["--parallel-max", "x"])),
        case("max-negative", &with(&["--parallel-max", "-1"])),
        case("immediate", &with(&["--parallel-immediate"])),
        case(
            "large",
            &["-o", "a", "http://{A}/large", "-o", "b", "http://{B}/large"],
        ),
        case(
            "no-output",
            &["-o", "a", "http://{A}/", "-I", "-o", "b", "http://{B}/"],
        ),
        case("refused-only", &["http://{D}/"]),
        case(
            "refused-first",
            &["-o", "d", "http://{D}/", "-o", "a", "http://{A}/"],
        ),
        case(
            "refused-last",
            &["-o", "a", "http://{A}/", "-o", "d", "http://{D}/"],
        ),
        case(
            "not-a-url",
            &["-o", "a", "http://{A}/", "-o", "d", "http:///"],
        ),
        case(
            "failed-status",
            &["-f", "-o", "a", "http://{A}/404", "-o", "b", "http://{B}/"],
        ),
        case(
            "fail-with-body",
            &[
                "--fail-with-body",
                "-o",
                "a",
                "http://{A}/404",
                "-o",
                "b",
                "http://{B}/",
            ],
        ),
        case(
            "fail-early",
            &[
                "--fail-early",
                "--parallel-max",
                "1",
                "http://{D}/",
                "http://{A}/",
            ],
        ),
        case(
            "write-out",
            &[
                "-o",
                "a",
                "-w",
                "%{urlnum} %{http_code} %{size_download}\n",
                "http://{A}/",
            ],
        ),
        case(
            "write-out-file",
            &["-o", "a", "-w", "%{filename_effective}", "http://{A}/"],
        ),
        case(
            "urlnum",
            &[
                "--parallel-max",
                "1",
                "-w",
                "%{urlnum} ",
                "-o",
                "a",
                "http://{A}/",
                "-o",
                "b",
                "http://{B}/",
                "--next",
                "-w",
                "%{urlnum} ",
                "-o",
                "c",
                "http://{C}/",
            ],
        ),
        case(
            "groups",
            &[
                "-d",
                "x",
                "-o",
                "a",
                "http://{A}/",
                "--next",
                "-X",
                "DELETE",
                "-o",
                "b",
                "http://{B}/",
            ],
        ),
        case("cookie-jar", &["-c", "jar", "-o", "c", "http://{C}/"]),
        case(
            "include",
            &["-i", "-o", "a", "http://{A}/", "-o", "b", "http://{B}/"],
        ),
        case(
            "upload",
            &["-T", "up", "-H", "Expect:", "-o", "a", "http://{A}/"],
        )
        .file("up", "uploaded"),
        case(
            "uploads",
            &[
                "-H",
                "Expect:",
                "-T",
                "up",
                "-o",
                "a",
                "http://{A}/",
                "-T",
                "up",
                "-o",
                "b",
                "http://{B}/",
            ],
        )
        .file("up", "uploaded"),
        case(
            "stdin",
            &["-T", "-", "-H", "Expect:", "-o", "a", "http://{A}/"],
        )
        .stdin("from stdin"),
        case("in-config", &["-K", "conf"]).file(
            "conf",
            "url = http://{A}/\noutput = a\nnext\nurl = http://{B}/\noutput = b\n",
        ),
        case(
            "remote-names",
            &["-O", "http://{A}/large", "-o", "b", "http://{B}/large"],
        ),
        case("proxied", &["-x", "http://{A}", "http://h.example/"]),
        case(
            "reuse",
            &[
                "--parallel-max",
                "1",
                "-w",
                "%{num_connects}",
                "http://{A}/",
                "http://{A}/",
            ],
        ),
        Scenario::new("parallel/cut")
            .play([
                Take,
                Send(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello".to_vec()),
                Close,
            ])
            .routes([("/", ok())])
            .args(["-Z", "-o", "a", "http://{A}/", "-o", "b", "http://{B}/"]),
        Scenario::new("parallel/silent-server")
            .play([Take])
            .routes([("/", ok())])
            .args([
                "-Z",
                "-m",
                "1",
                "-o",
                "a",
                "http://{A}/",
                "-o",
                "b",
                "http://{B}/",
            ]),
    ]
}

/// Three transfers to files, after these options.
fn with<'a>(options: &[&'a str]) -> Vec<&'a str> {
    [options, &EACH[..]].concat()
}

const EACH: [&str; 9] = [
    "-o",
    "a",
    "http://{A}/",
    "-o",
    "b",
    "http://{B}/",
    "-o",
    "c",
    "http://{C}/",
];
