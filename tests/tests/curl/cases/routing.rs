//! Where a name leads: `--resolve`, `--connect-to`, `-4`, `-6`, names that are not known.

use super::ok;
use crate::peer::Step::{Send, Take};
use crate::scenario::Scenario;

pub(super) fn all() -> Vec<Scenario> {
    let cases: &[(&str, &[&str])] = &[
        (
            "resolve",
            &[
                "--resolve",
                "some.example:{Ap}:127.0.0.1",
                "http://some.example:{Ap}/x",
            ],
        ),
        (
            "resolve-case",
            &[
                "--resolve",
                "Some.Example:{Ap}:127.0.0.1",
                "http://sOME.example:{Ap}/x",
            ],
        ),
        (
            "resolve-plus",
            &[
                "--resolve",
                "+some.example:{Ap}:127.0.0.1",
                "http://some.example:{Ap}/x",
            ],
        ),
        (
            "resolve-star",
            &["--resolve", "*:{Ap}:127.0.0.1", "http://any.example:{Ap}/x"],
        ),
        (
            "resolve-several",
            &[
                "--resolve",
                "some.example:{Ap}:127.0.0.1,127.0.0.2",
                "http://some.example:{Ap}/x",
            ],
        ),
        (
            "resolve-v6",
            &[
                "-4",
                "--resolve",
                "some.example:{Ap}:[::1],127.0.0.1",
                "http://some.example:{Ap}/x",
            ],
        ),
        (
            "resolve-minus",
            &[
                "--resolve",
                "some.example:{Ap}:127.0.0.1",
                "--resolve",
                "-some.example:{Ap}",
                "http://some.example:{Ap}/x",
            ],
        ),
        (
            "resolve-bad",
            &["--resolve", "some.example", "http://{A}/x"],
        ),
        (
            "resolve-bad-port",
            &["--resolve", "some.example:x:127.0.0.1", "http://{A}/x"],
        ),
        (
            "resolve-bad-address",
            &["--resolve", "some.example:{Ap}:nowhere", "http://{A}/x"],
        ),
        (
            "resolve-no-address",
            &["--resolve", "some.example:{Ap}:", "http://{A}/x"],
        ),
        (
            "connect-to",
            &[
                "--connect-to",
                "some.example:80:127.0.0.1:{Ap}",
                "http://some.example/x",
            ],
        ),
        (
            "connect-to-any",
            &["--connect-to", "::127.0.0.1:{Ap}", "http://some.example/x"],
        ),
        (
            "connect-to-host",
            &[
                "--connect-to",
                "some.example::127.0.0.1:{Ap}",
                "http://some.example:99/x",
            ],
        ),
        (
            "connect-to-port-only",
            &["--connect-to", ":80::{Ap}", "http://127.0.0.1/x"],
        ),
        (
            "connect-to-other",
            &[
                "--connect-to",
                "other.example:80:127.0.0.1:1",
                "http://{A}/x",
            ],
        ),
        (
            "connect-to-first",
            &[
                "--connect-to",
                "::127.0.0.1:{Ap}",
                "--connect-to",
                "::127.0.0.1:1",
                "http://some.example/x",
            ],
        ),
        ("connect-to-empty", &["--connect-to", "::", "http://{A}/x"]),
        (
            "connect-to-bad",
            &["--connect-to", "some.example", "http://{A}/x"],
        ),
        (
            "connect-to-resolve",
            &[
                "--connect-to",
                "a.example:80:b.example:{Ap}",
                "--resolve",
                "b.example:{Ap}:127.0.0.1",
                "http://a.example/x",
            ],
        ),
        ("v4", &["-4", "http://localhost:{Ap}/x"]),
        ("v6-literal", &["-6", "http://{A}/x"]),
        ("v4-literal-v6", &["-4", "http://[::1]:{Ap}/x"]),
        ("empty-label", &["http://a..b/"]),
    ];
    let build = |(name, args): &(&str, &[&str])| {
        Scenario::new(format!("routing/{name}"))
            .play([Take, Send(ok())])
            .args(*args)
    };
    cases.iter().map(build).collect()
}
