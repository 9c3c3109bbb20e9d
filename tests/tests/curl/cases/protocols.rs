//! `--proto`, `--proto-redir` and `--proto-default`.

use super::{ok, reply};
use crate::scenario::Scenario;

pub(super) fn all() -> Vec<Scenario> {
    let case = |name: &str, args: &[&str]| {
        let found = |location: &str| {
            reply(
                "302 Found",
                &[&format!("Location: {location}"), "Content-Length: 0"],
                "",
            )
        };
        Scenario::new(format!("protocols/{name}"))
            .routes([
                ("/", ok()),
                ("/here", found("/")),
                ("/https", found("https://{B}/")),
                ("/ftp", found("ftp://{B}/")),
                ("/file", found("file:///etc/passwd")),
            ])
            .peer(crate::peer::Peer::Refusing)
            .args(args)
    };
    let of_list = |list: &str| {
        case(
            &format!("list/{}", list.replace(' ', "_")),
            &["--proto", list, "http://{A}/"],
        )
    };
    let lists = [
        "",
        "=https",
        "=http",
        "-http",
        "-https",
        "http",
        "HTTP",
        "all",
        "-all",
        "=all",
        "-all,http",
        "-all,+https,-http",
        "=http,https",
        "=http,=https",
        "=https,http",
        "bogus",
        "=bogus",
        "=bogus,http",
        "-bogus",
        "=",
        "=,http",
        ",http",
        "ftp,,http",
        "=http, https",
        "++http",
        "-+http",
        "=http=,https",
        "1",
        "=ftp",
    ];
    let mut all: Vec<Scenario> = lists.into_iter().map(of_list).collect();
    all.extend([
        case(
            "two-lists",
            &["--proto", "=https", "--proto", "=http", "http://{A}/"],
        ),
        case(
            "twice-adds-nothing",
            &["--proto", "=https", "--proto", "+http", "http://{A}/"],
        ),
        case(
            "second-group",
            &["--proto", "=https", "https://{B}/", "--next", "http://{A}/"],
        ),
        case("https-refused", &["--proto", "=https", "https://{B}/"]),
        case("guessed", &["--proto", "=https", "{A}/"]),
        case("ftp", &["--proto", "=https", "ftp://{A}/"]),
        case("missing", &["http://{A}/", "--proto"]),
        case(
            "installer",
            &["--proto", "=https", "--tlsv1.2", "-sSf", "http://{A}/"],
        ),
        case(
            "fail-early",
            &[
                "--proto",
                "=https",
                "--fail-early",
                "http://{A}/",
                "https://{B}/",
            ],
        ),
        case(
            "write-out",
            &[
                "--proto",
                "=https",
                "-w",
                "%{exitcode} %{http_code}",
                "http://{A}/",
            ],
        ),
        case(
            "redirect-allowed",
            &["-L", "--proto", "=http", "http://{A}/here"],
        ),
        case(
            "redirect-proto",
            &["-L", "--proto", "=http", "http://{A}/https"],
        ),
        case(
            "redirect-not-followed",
            &["--proto", "=http", "http://{A}/https"],
        ),
        case(
            "redirect-list",
            &["-L", "--proto-redir", "=http", "http://{A}/https"],
        ),
        case(
            "redirect-list-here",
            &["-L", "--proto-redir", "=http", "http://{A}/here"],
        ),
        case(
            "redirect-list-https",
            &["-L", "--proto-redir", "=https", "http://{A}/here"],
        ),
        case(
            "redirect-list-first",
            &["-L", "--proto-redir", "=https", "http://{A}/"],
        ),
        case(
            "redirect-list-minus",
            &["-L", "--proto-redir", "-https", "http://{A}/https"],
        ),
        case(
            "redirect-list-none",
            &["-L", "--proto-redir", "-all", "http://{A}/here"],
        ),
        case(
            "redirect-both",
            &[
                "-L",
                "--proto",
                "=https",
                "--proto-redir",
                "=http",
                "http://{A}/here",
            ],
        ),
        case(
            "redirect-wider",
            &[
                "-L",
                "--proto",
                "=http",
                "--proto-redir",
                "=https",
                "http://{A}/https",
            ],
        ),
        case(
            "redirect-list-wrong",
            &["-L", "--proto-redir", "=", "http://{A}/here"],
        ),
        case("redirect-ftp", &["-L", "http://{A}/ftp"]),
        case("redirect-file", &["-L", "http://{A}/file"]),
        case(
            "redirect-file-listed",
            &["-L", "--proto-redir", "=http,ftp", "http://{A}/file"],
        ),
        case("default-http", &["--proto-default", "http", "{A}/"]),
        case("default-upper", &["--proto-default", "HTTP", "{A}/"]),
        case("default-https", &["--proto-default", "https", "{B}/"]),
        case(
            "default-not-used",
            &["--proto-default", "https", "http://{A}/"],
        ),
        case(
            "default-ftp-not-used",
            &["--proto-default", "ftp", "http://{A}/"],
        ),
        case(
            "default-unknown",
            &["--proto-default", "bogus", "http://{A}/"],
        ),
        case("default-empty", &["--proto-default", "", "http://{A}/"]),
        case(
            "default-refused",
            &["--proto-default", "https", "--proto", "=http", "{B}/"],
        ),
        case(
            "default-group",
            &["--proto-default", "https", "{B}/", "--next", "{A}/"],
        ),
        case("in-config", &["-K", "conf"]).file("conf", "proto = \"=https\"\nurl = http://{A}/\n"),
    ]);
    all
}
