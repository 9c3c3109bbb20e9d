//! `-n` and what is like it, and passwords that are asked for.

use super::{ok, reply, sized};
use crate::scenario::Scenario;

pub(super) fn all() -> Vec<Scenario> {
    let mut all = entries();
    all.extend(redirects());
    all.extend(asked());
    all
}

const HOME: &str = "machine 127.0.0.1 login lu password lp\n\
                    machine 127.0.0.1 login other password op\n\
                    default login du password dp\n";
const ONE: &str = "machine 127.0.0.1 login lu password lp\n";

fn case(name: &str, netrc: &str, args: &[&str]) -> Scenario {
    Scenario::new(format!("netrc/{name}"))
        .routes([("/", ok())])
        .file(".netrc", netrc)
        .file("file", "machine 127.0.0.1 login fu password fp\n")
        .args(args)
}

fn entries() -> Vec<Scenario> {
    vec![
        case("home", HOME, &["-n", "http://{A}/"]),
        case("home-long", HOME, &["--netrc", "http://{A}/"]),
        case("off", HOME, &["-n", "--no-netrc", "http://{A}/"]),
        case("not-asked", HOME, &["http://{A}/"]),
        case("optional", HOME, &["--netrc-optional", "http://{A}/"]),
        case("file", HOME, &["--netrc-file", "file", "http://{A}/"]),
        case(
            "file-and-switch",
            HOME,
            &["-n", "--netrc-file", "file", "http://{A}/"],
        ),
        case(
            "file-missing",
            HOME,
            &["--netrc-file", "none", "http://{A}/"],
        ),
        case(
            "file-directory",
            HOME,
            &["--netrc-file", ".", "http://{A}/"],
        ),
        case("url", HOME, &["-n", "http://u:p@{A}/"]),
        case("url-without-default", ONE, &["-n", "http://u:p@{A}/"]),
        case("url-name-without-default", ONE, &["-n", "http://u@{A}/"]),
        case(
            "url-file-missing",
            HOME,
            &["-n", "--netrc-file", "none", "http://u:p@{A}/"],
        ),
        case(
            "url-name-file-missing",
            HOME,
            &["-n", "--netrc-file", "none", "http://u@{A}/"],
        ),
        case("url-other-host", ONE, &["-n", "http://u:p@localhost:{Ap}/"]),
        case(
            "url-optional",
            HOME,
            &["--netrc-optional", "http://u:p@{A}/"],
        ),
        case("url-name", HOME, &["-n", "http://other@{A}/"]),
        case(
            "url-name-optional",
            HOME,
            &["--netrc-optional", "http://other@{A}/"],
        ),
        case(
            "url-name-unknown",
            HOME,
            &["--netrc-optional", "http://x@{A}/"],
        ),
        case(
            "url-name-unknown-one",
            ONE,
            &["--netrc-optional", "http://x@{A}/"],
        ),
        case("option", HOME, &["-n", "-u", "x:y", "http://{A}/"]),
        case(
            "option-optional",
            HOME,
            &["--netrc-optional", "-u", "x:y", "http://{A}/"],
        ),
        case(
            "header",
            HOME,
            &["-n", "-H", "Authorization: x", "http://{A}/"],
        ),
        case("both", HOME, &["-n", "--netrc-optional", "http://u:p@{A}/"]),
        case(
            "default-first",
            "default login du password dp\nmachine 127.0.0.1 login lu password lp\n",
            &["-n", "http://{A}/"],
        ),
        case("no-default", ONE, &["-n", "http://localhost:{Ap}/"]),
        case("default", HOME, &["-n", "http://localhost:{Ap}/"]),
        case(
            "host-case",
            "machine LocalHost login a password b\n",
            &["-n", "http://localhost:{Ap}/"],
        ),
        case(
            "no-password",
            "machine 127.0.0.1 login a\n",
            &["-n", "http://{A}/"],
        ),
        case(
            "quoted",
            "machine 127.0.0.1 login a password \"b \\\"c\\\\\\t\"\n",
            &["-n", "http://{A}/"],
        ),
        case(
            "macro",
            "macdef init\nmachine 127.0.0.1 login x password y\n\nmachine 127.0.0.1 login a password b\n",
            &["-n", "http://{A}/"],
        ),
        case(
            "comment",
            "# machine 127.0.0.1 login x\nmachine 127.0.0.1\n  login a\n  password b\n",
            &["-n", "http://{A}/"],
        ),
        case(
            "quote-open",
            "machine 127.0.0.1 login a password \"b",
            &["-n", "http://{A}/"],
        ),
        case(
            "cut-short",
            "machine 127.0.0.1 login",
            &["-n", "http://{A}/"],
        ),
        case(
            "second-url",
            HOME,
            &["-n", "http://{A}/", "http://localhost:{Ap}/"],
        ),
        case(
            "next",
            HOME,
            &["-n", "http://{A}/", "--next", "http://{A}/"],
        ),
        case("in-config", HOME, &["-K", "-", "http://{A}/"]).stdin("netrc\n"),
    ]
}

/// The first host leads to the second one, whose name differs.
fn redirects() -> Vec<Scenario> {
    let to = |name: &str, location: &str, netrc: &str, args: &[&str]| {
        let found = reply(
            "302 Found",
            &[&format!("Location: {location}"), "Content-Length: 0"],
            "",
        );
        Scenario::new(format!("netrc/{name}"))
            .routes([("/", found), ("/end", ok())])
            .routes([("/end", ok())])
            .file(".netrc", netrc)
            .args(args)
    };
    let two = "machine 127.0.0.1 login a password b\nmachine localhost login c password d\n";
    vec![
        to("redirect-same", "/end", two, &["-nL", "http://{A}/"]),
        to(
            "redirect-other",
            "http://localhost:{Bp}/end",
            two,
            &["-nL", "http://{A}/"],
        ),
        to(
            "redirect-unknown",
            "http://localhost:{Bp}/end",
            ONE,
            &["-nL", "http://{A}/"],
        ),
        to(
            "redirect-port",
            "http://{B}/end",
            two,
            &["-nL", "http://{A}/"],
        ),
        to(
            "redirect-option",
            "http://localhost:{Bp}/end",
            two,
            &["-nL", "-u", "x:y", "http://{A}/"],
        ),
    ]
}

/// A password that is missing is read from stdin, because there is no terminal.
fn asked() -> Vec<Scenario> {
    let case = |name: &str, stdin: &str, args: &[&str]| {
        Scenario::new(format!("password/{name}"))
            .routes([("/", ok()), ("/2", sized("200 OK", &[], "two"))])
            .stdin(stdin)
            .args(args)
            .detached()
    };
    vec![
        case("stdin", "secret\n", &["-u", "name", "http://{A}/"]),
        case("nothing", "", &["-u", "name", "http://{A}/"]),
        case("empty-name", "secret\n", &["-u", "", "http://{A}/"]),
        case("given", "secret\n", &["-u", "name:", "http://{A}/"]),
        case("options", "secret\n", &["-u", ";x", "http://{A}/"]),
        case(
            "two-urls",
            "secret\n",
            &["-u", "name", "http://{A}/", "http://{A}/2"],
        ),
        case(
            "bearer",
            "secret\n",
            &["-u", "name", "--oauth2-bearer", "t", "http://{A}/"],
        ),
        case(
            "proxy",
            "secret\n",
            &["-x", "http://{A}", "-U", "name", "http://h.example/"],
        ),
        case("in-config", "secret\n", &["-K", "conf", "http://{A}/"]).file("conf", "user = name\n"),
    ]
}
