//! `-b` and `-c`.

use super::{ok, sized};
use crate::scenario::Scenario;

const NETSCAPE: &str = "\
# Netscape HTTP Cookie File
127.0.0.1\tFALSE\t/\tFALSE\t0\tsession\ts1
127.0.0.1\tFALSE\t/sub\tFALSE\t4102444800\tdeep\td1
127.0.0.1\tFALSE\t/\tFALSE\t1000000000\told\to1
127.0.0.1\tFALSE\t/\tTRUE\t4102444800\tsecure\tx1
#HttpOnly_127.0.0.1\tFALSE\t/\tFALSE\t4102444800\thidden\th1
other.example\tFALSE\t/\tFALSE\t4102444800\tother\te1
.example\tTRUE\t/\tFALSE\t4102444800\twide\tw1
bad line
";

pub(super) fn all() -> Vec<Scenario> {
    let case = |name: &str, set: &[&str], args: &[&str]| {
        let lines: Vec<String> = set.iter().map(|c| format!("Set-Cookie: {c}")).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let moved = sized(
            "302 Found",
            &[lines.as_slice(), &["Location: /sub/to"]].concat(),
            "",
        );
        Scenario::new(format!("cookie/{name}"))
            .routes([
                ("/", sized("200 OK", &lines, "hello")),
                ("/sub/x", ok()),
                ("/sub/to", ok()),
                ("/from", moved),
                ("/2", ok()),
            ])
            .file("cookies", NETSCAPE)
            .file("headers", "Set-Cookie: fromfile=1; path=/\r\n")
            .args(args)
    };
    let (one, two, deep) = ("http://{A}/", "http://{A}/2", "http://{A}/sub/x");
    vec![
        case("text", &[], &["-b", "a=b", one]),
        case("text-two", &[], &["-b", "a=b", "-b", "c=d", one]),
        case("text-semicolon", &[], &["-b", "a=b; c=d", one]),
        case(
            "text-and-header",
            &[],
            &["-b", "a=b", "-H", "Cookie: c=d", one],
        ),
        case("text-removed", &[], &["-b", "a=b", "-H", "Cookie:", one]),
        case(
            "text-redirect",
            &[],
            &["-L", "-b", "a=b", "http://{A}/from"],
        ),
        case("file", &[], &["-b", "cookies", one]),
        case("file-deep", &[], &["-b", "cookies", deep]),
        case(
            "file-name",
            &[],
            &["-b", "cookies", "http://localhost:{Ap}/"],
        ),
        case("file-and-text", &[], &["-b", "cookies", "-b", "a=b", one]),
        case("file-headers", &[], &["-b", "headers", one]),
        case("file-missing", &[], &["-b", "none", one]),
        case("file-session", &[], &["-j", "-b", "cookies", one]),
        case("not-kept", &["a=1"], &[one, two]),
        case("kept", &["a=1"], &["-b", "", one, two]),
        case(
            "kept-several",
            &["a=1", "b=2; Path=/", "c=3; Path=/sub"],
            &["-b", "", one, two, deep],
        ),
        case(
            "kept-redirect",
            &["a=1; Path=/"],
            &["-L", "-b", "", "http://{A}/from"],
        ),
        case("kept-secure", &["a=1; Secure"], &["-b", "", one, two]),
        case("kept-expired", &["a=1; Max-Age=0"], &["-b", "", one, two]),
        case(
            "kept-past",
            &["a=1; Expires=Thu, 01 Jan 1970 00:00:00 GMT"],
            &["-b", "", one, two],
        ),
        case(
            "kept-domain",
            &["a=1; Domain=example.org"],
            &["-b", "", one, two],
        ),
        case(
            "kept-own-domain",
            &["a=1; Domain=127.0.0.1"],
            &["-b", "", one, two],
        ),
        case("kept-replaced", &["a=1", "a=2"], &["-b", "", one, two]),
        case(
            "kept-no-name",
            &["=1", "novalue", "x="],
            &["-b", "", one, two],
        ),
        case(
            "jar",
            &[
                "a=1",
                "b=2; Expires=Fri, 01 Jan 2100 00:00:00 GMT; Path=/; HttpOnly",
            ],
            &["-c", "jar", one],
        ),
        case("jar-stdout", &["a=1"], &["-c", "-", one]),
        case("jar-empty", &[], &["-c", "jar", one]),
        case(
            "jar-both",
            &["a=1"],
            &["-b", "cookies", "-c", "jar", one, two],
        ),
        case("jar-unwritable", &["a=1"], &["-c", "none/jar", one]),
        case(
            "prefix",
            &["__Secure-a=1; Path=/", "__Host-b=2; Path=/", "c=3"],
            &["-b", "", one, two],
        ),
        case(
            "quoted",
            &["a=\"b c\"; Path=/", "d=e f"],
            &["-b", "", one, two],
        ),
        case(
            "order",
            &["a=1; Path=/", "bb=2; Path=/sub", "c=3; Path=/sub/x"],
            &["-b", "", one, deep],
        ),
    ]
}
