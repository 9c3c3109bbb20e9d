//! `-K`, `.curlrc` and `-q`.

use super::ok;
use crate::scenario::Scenario;

pub(super) fn all() -> Vec<Scenario> {
    let mut all = syntax();
    all.extend(groups());
    all.extend(files());
    all.extend(default_file());
    all
}

fn case(name: &str) -> Scenario {
    let routes = ["/", "/1", "/2", "/3"].map(|target| (target, ok()));
    Scenario::new(format!("config/{name}")).routes(routes)
}

/// Each file is all that the programs are told.
fn syntax() -> Vec<Scenario> {
    let cases: &[(&str, &str)] = &[
        ("equals", "url=http://{A}/1\nrequest=DELETE\n"),
        (
            "spaces-equals",
            "url = http://{A}/1\n  request  =  DELETE\n",
        ),
        ("colon", "url: http://{A}/1\nrequest:DELETE\n"),
        ("space", "url http://{A}/1\nrequest\tDELETE\n"),
        ("separators", "url = : = http://{A}/1\n"),
        ("dashes", "--url http://{A}/1\n--request DELETE\n"),
        ("dashes-equals", "--url http://{A}/1\n--request=DELETE\n"),
        (
            "dashes-spaced-equals",
            "--url http://{A}/1\n--user-agent = x\n",
        ),
        ("letter", "-X DELETE\nurl http://{A}/1\n"),
        ("letter-attached", "-XDELETE\nurl http://{A}/1\n"),
        ("letters", "-iX DELETE\nurl http://{A}/1\n"),
        ("letter-bare", "X DELETE\nurl http://{A}/1\n"),
        ("quoted", "url \"http://{A}/1\"\nheader = \"X-A: a b\"\n"),
        (
            "quoted-rest",
            "url \"http://{A}/1\" more\nheader \"X-A: a\"b\n",
        ),
        ("quoted-open", "url http://{A}/1\nheader = \"X-A: a b\n"),
        ("quoted-inside", "url http://{A}/1\nuser-agent = a\"b\"\n"),
        ("single-quotes", "url http://{A}/1\nuser-agent = 'a'\n"),
        (
            "escapes",
            "url http://{A}/1\ndata = \"a\\\"\\\\\\t\\n\\r\\v\\x\\/b\"\n",
        ),
        ("escape-last", "url http://{A}/1\ndata = \"a\\\n"),
        ("escape-unquoted", "url http://{A}/1\ndata = a\\tb\n"),
        ("empty-quoted", "url http://{A}/1\nuser-agent = \"\"\n"),
        (
            "comments",
            "# a\n  # b\nurl http://{A}/1 # c\n/ d\n* e\n\n\r\n",
        ),
        ("hash-inside", "url http://{A}/1#x\nuser-agent a#b\n"),
        ("unquoted-words", "url http://{A}/1\nuser-agent = a b c\n"),
        (
            "crlf",
            "url = http://{A}/1\r\nrequest = \"DELETE\"\r\nuser-agent = a\r\n",
        ),
        ("no-line-end", "url = http://{A}/1"),
        ("unknown", "bogus\nbogus = 1\nurl = http://{A}/1\n"),
        ("value-missing", "request\nurl = http://{A}/1\nrequest =\n"),
        ("value-extra", "include yes\nurl = http://{A}/1\n"),
        ("value-wrong", "max-time = x\nurl = http://{A}/1\n"),
        ("negated", "include\nno-include\nurl = http://{A}/1\n"),
        ("dashed-negated", "-i\n--no-include\nurl = http://{A}/1\n"),
        ("only-separators", "= x\n:\n-\nurl = http://{A}/1\n"),
        ("quoted-option", "\"include\"\nurl = http://{A}/1\n"),
        ("help", "help\nversion\n-V\nurl = http://{A}/1\n"),
        ("post", "data = \"a=1\"\ndata = b\nurl = http://{A}/1\n"),
        ("no-url", "include\n"),
        ("empty", ""),
        ("two-urls", "url = http://{A}/1\nurl = http://{A}/2\n"),
        (
            "outputs",
            "url = http://{A}/1\noutput = one\nurl = http://{A}/2\n-o two\n",
        ),
        (
            "write-out",
            "url = http://{A}/1\nwrite-out = \"%{http_code}\\n\"\n",
        ),
        ("space-kinds", "\u{b}url\u{c}http://{A}/1\n"),
        ("disable-inside", "q\n-q\ndisable\nurl = http://{A}/1\n"),
    ];
    let of_file = |(name, text): &(&str, &str)| case(name).file("conf", *text).args(["-K", "conf"]);
    cases.iter().map(of_file).collect()
}

fn groups() -> Vec<Scenario> {
    let of = |name: &str, text: &str, args: &[&str]| case(name).file("conf", text).args(args);
    vec![
        of(
            "next",
            "url = http://{A}/1\ndata = x\nnext\nurl = http://{A}/2\nhead\n",
            &["-K", "conf"],
        ),
        of(
            "next-first",
            "next\n-:\nrequest = DELETE\nurl = http://{A}/1\n",
            &["-K", "conf"],
        ),
        of(
            "next-goes-on",
            "url = http://{A}/1\nnext\n",
            &["-d", "x", "-K", "conf", "-X", "DELETE", "http://{A}/2"],
        ),
        of(
            "then-next",
            "url = http://{A}/1\nrequest = DELETE\n",
            &["-K", "conf", "--next", "http://{A}/2"],
        ),
        of(
            "in-second-group",
            "request = DELETE\n",
            &["http://{A}/1", "--next", "-K", "conf", "http://{A}/2"],
        ),
        of(
            "twice",
            "request = DELETE\nurl = http://{A}/1\n",
            &["-K", "conf", "-K", "conf"],
        ),
        of(
            "before-and-after",
            "user-agent = file\n",
            &["-A", "before", "-K", "conf", "http://{A}/1"],
        ),
        of(
            "overridden",
            "user-agent = file\n",
            &["-K", "conf", "-A", "after", "http://{A}/1"],
        ),
        of(
            "bundled",
            "request = DELETE\n",
            &["-iK", "conf", "http://{A}/1"],
        ),
        of(
            "attached",
            "request = DELETE\n",
            &["-Kconf", "http://{A}/1"],
        ),
        of("next-last", "url = http://{A}/1\nnext\n", &["-K", "conf"]),
    ]
}

fn files() -> Vec<Scenario> {
    vec![
        case("missing").args(["-K", "none", "http://{A}/1"]),
        case("missing-alone").args(["-K", "none"]),
        case("directory").args(["-K", ".", "http://{A}/1"]),
        case("no-name").args(["http://{A}/1", "-K"]),
        case("stdin")
            .stdin("url = http://{A}/1\n")
            .args(["-K", "-"]),
        case("stdin-and-data")
            .stdin("header = \"X-A: 1\"\n")
            .args(["-K", "-", "http://{A}/1"]),
        case("nested")
            .file("conf", "config = other\nrequest = DELETE\n")
            .file("other", "url = http://{A}/1\ninclude\n")
            .args(["-K", "conf"]),
        case("nested-missing")
            .file("conf", "config = none\nurl = http://{A}/1\n")
            .args(["-K", "conf"]),
        case("nested-three")
            .file("conf", "-K b\n")
            .file("b", "-K c\nheader = \"X-B: 1\"\n")
            .file("c", "url = http://{A}/1\n")
            .args(["-K", "conf"]),
        case("itself")
            .file("conf", "config = conf\n")
            .args(["-K", "conf", "http://{A}/1"]),
        case("long-value")
            .file(
                "conf",
                format!("url = http://{{A}}/1\ndata = {}\n", "x".repeat(50_000)),
            )
            .args(["-K", "conf"]),
        case("not-text")
            .file("conf", b"\xff\xfe\nurl = http://{A}/1\ndata = \xff\n")
            .args(["-K", "conf"]),
    ]
}

/// Of the arguments, only those of the scenario are there.
fn default_file() -> Vec<Scenario> {
    let quiet = |name: &str| case(&format!("rc/{name}")).bare();
    let header = |value: &str| format!("header = \"X-File: {value}\"\n");
    vec![
        quiet("home")
            .file(".curlrc", header("home"))
            .args(["-sS", "http://{A}/1"]),
        quiet("disabled")
            .file(".curlrc", header("home"))
            .args(["-q", "-sS", "http://{A}/1"]),
        quiet("disabled-long")
            .file(".curlrc", header("home"))
            .args(["--disable", "-sS", "http://{A}/1"]),
        quiet("disabled-bundle")
            .file(".curlrc", header("home"))
            .args(["-qsS", "http://{A}/1"]),
        quiet("disabled-late")
            .file(".curlrc", header("home"))
            .args(["-sS", "-q", "http://{A}/1"]),
        quiet("no-arguments").file(".curlrc", "silent\nurl = http://{A}/1\n"),
        quiet("url-there")
            .file(".curlrc", "silent\nurl = http://{A}/1\n")
            .args(["http://{A}/2"]),
        quiet("curl-home")
            .file(".curlrc", header("home"))
            .file("c/.curlrc", header("curl-home"))
            .env("CURL_HOME", "c")
            .env("XDG_CONFIG_HOME", "x")
            .args(["-sS", "http://{A}/1"]),
        quiet("xdg")
            .file(".curlrc", header("home"))
            .file("x/.curlrc", header("xdg"))
            .env("CURL_HOME", "c")
            .env("XDG_CONFIG_HOME", "x")
            .args(["-sS", "http://{A}/1"]),
        quiet("config-directory")
            .file(".config/curlrc", header("config"))
            .args(["-sS", "http://{A}/1"]),
        quiet("config-directory-with-xdg")
            .file(".config/curlrc", header("config"))
            .env("XDG_CONFIG_HOME", "x")
            .args(["-sS", "http://{A}/1"]),
        quiet("config-directory-with-dot")
            .file(".config/.curlrc", header("config"))
            .args(["-sS", "http://{A}/1"]),
        quiet("next-inside")
            .file(".curlrc", "silent\nurl = http://{A}/1\nnext\ninclude\n")
            .args(["http://{A}/2"]),
        quiet("wrong-line")
            .file(".curlrc", "silent\nbogus\nmax-time = x\ninclude\n")
            .args(["http://{A}/2"]),
        quiet("names-another")
            .file(".curlrc", "silent\nconfig = other\n")
            .file("other", "include\n")
            .args(["http://{A}/2"]),
        quiet("names-none")
            .file(".curlrc", "silent\nconfig = none\n")
            .args(["http://{A}/2"]),
    ]
}
