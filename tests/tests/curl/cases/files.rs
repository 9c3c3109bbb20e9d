//! Files that transfers leave behind: their names, heads, directories, and what happens to files that exist.

use super::{ok, reply, sized};
use crate::peer::Step::{Close, Send, Take};
use crate::scenario::Scenario;

pub(super) fn all() -> Vec<Scenario> {
    [
        heads(),
        header_names(),
        remote_names(),
        directories(),
        clobber(),
        removal(),
    ]
    .concat()
}

fn case(name: String, args: &[&str]) -> Scenario {
    let chunked = "5\r\nhello\r\n0\r\nX-T: 1\r\n\r\n";
    Scenario::new(name)
        .routes([
            ("/", ok()),
            ("/a", sized("200 OK", &["X-A: 1"], "from a")),
            ("/b", sized("200 OK", &["X-B: 2"], "from b")),
            ("/d/c.txt?q", sized("200 OK", &[], "from c")),
            ("/empty", sized("200 OK", &[], "")),
            ("/404", sized("404 No", &["X-N: 1"], "none")),
            (
                "/to",
                sized("302 Found", &["Location: /a", "X-R: 1"], "moved"),
            ),
            (
                "/chunked",
                reply("200 OK", &["Transfer-Encoding: chunked"], chunked),
            ),
        ])
        .args(args)
}

fn heads() -> Vec<Scenario> {
    let (a, b) = ("http://{A}/a", "http://{A}/b");
    let cases: &[(&str, &[&str])] = &[
        ("file", &["-D", "heads", a]),
        ("long", &["--dump-header", "heads", a]),
        ("dash", &["-D", "-", a]),
        ("two-urls", &["-D", "heads", a, b]),
        ("glob", &["-D", "heads", "http://{A}/{a,b}"]),
        ("twice", &["-D", "one", "-D", "two", a]),
        (
            "next",
            &["-D", "heads", a, "--next", "-sS", "-D", "heads", b],
        ),
        (
            "next-other",
            &["-D", "one", a, "--next", "-sS", "-D", "two", b],
        ),
        ("redirect", &["-L", "-D", "heads", "http://{A}/to"]),
        ("redirect-not", &["-D", "heads", "http://{A}/to"]),
        ("fail", &["-f", "-D", "heads", "http://{A}/404"]),
        ("include", &["-i", "-D", "heads", a]),
        ("head", &["-I", "-D", "heads", a]),
        ("output", &["-D", "heads", "-o", "out", a]),
        (
            "output-dir",
            &[
                "-D",
                "heads",
                "--create-dirs",
                "--output-dir",
                "d",
                "-o",
                "out",
                a,
            ],
        ),
        ("trailers", &["-D", "heads", "http://{A}/chunked"]),
        ("refused", &["-D", "heads", "http://127.0.0.1:1/"]),
        ("post", &["-D", "heads", "-d", "x", a]),
        ("verbose", &["-v", "-D", "heads", a]),
    ];
    let mut all: Vec<Scenario> = cases
        .iter()
        .map(|(name, args)| case(format!("dump-header/{name}"), args).file("heads", "old"))
        .collect();
    let early = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n".to_vec();
    all.push(
        Scenario::new("dump-header/interim")
            .play([Take, Send(early), Send(ok())])
            .args(["-D", "heads", "http://{A}/"]),
    );
    all.push(
        Scenario::new("dump-header/cut")
            .play([
                Take,
                Send(reply("200 OK", &["Content-Length: 9"], "cut")),
                Close,
            ])
            .args(["-D", "heads", "-o", "out", "http://{A}/"]),
    );
    all.push(
        Scenario::new("dump-header/no-answer")
            .play([Take, Close])
            .args(["-D", "heads", "-o", "out", "http://{A}/"]),
    );
    all
}

/// `-J`, with the headers of one answer.
fn header_names() -> Vec<Scenario> {
    let headers: &[(&str, &[&str])] = &[
        ("none", &[]),
        (
            "plain",
            &["Content-Disposition: attachment; filename=name.txt"],
        ),
        (
            "quoted",
            &["Content-Disposition: attachment; filename=\"a name.txt\""],
        ),
        (
            "single-quoted",
            &["Content-Disposition: attachment; filename='a;b'"],
        ),
        (
            "semicolon",
            &["Content-Disposition: attachment; filename=a; size=3"],
        ),
        ("inline", &["Content-Disposition: inline; filename=a"]),
        ("first", &["Content-Disposition: filename=a"]),
        ("upper", &["CONTENT-DISPOSITION: attachment; filename=a"]),
        (
            "other-parameter",
            &["Content-Disposition: attachment; size=3; filename=a"],
        ),
        (
            "star",
            &["Content-Disposition: attachment; filename*=UTF-8''b; filename=a"],
        ),
        (
            "star-only",
            &["Content-Disposition: attachment; filename*=UTF-8''b"],
        ),
        ("no-filename", &["Content-Disposition: attachment"]),
        (
            "path",
            &["Content-Disposition: attachment; filename=\"/etc/passwd\""],
        ),
        (
            "path-up",
            &["Content-Disposition: attachment; filename=\"../../up\""],
        ),
        (
            "path-back",
            &["Content-Disposition: attachment; filename=\"..\\back\""],
        ),
        (
            "hidden",
            &["Content-Disposition: attachment; filename=.profile"],
        ),
        (
            "utf-8",
            &["Content-Disposition: attachment; filename=\"\u{e9}\""],
        ),
        (
            "percent",
            &["Content-Disposition: attachment; filename=\"%2e%2e%2fx\""],
        ),
        (
            "space-end",
            &["Content-Disposition: attachment; filename=\"a\" "],
        ),
        (
            "two",
            &[
                "Content-Disposition: filename=a",
                "Content-Disposition: filename=b",
            ],
        ),
        (
            "exists",
            &["Content-Disposition: attachment; filename=there"],
        ),
        (
            "exists-hidden",
            &["Content-Disposition: attachment; filename=.hidden"],
        ),
    ];
    let with = |name: String, headers: &[&str], args: &[&str]| {
        Scenario::new(name)
            .play([Take, Send(sized("200 OK", headers, "body"))])
            .file("there", "old")
            .file(".hidden", "old")
            .args(args)
    };
    let url = "http://{A}/d/url.txt?q";
    let mut all = Vec::new();
    for (name, headers) in headers {
        let args = ["-OJ", "-w", "[%{filename_effective}]", url];
        all.push(with(format!("header-name/{name}"), headers, &args));
    }
    let named = ["Content-Disposition: attachment; filename=there"];
    let hidden = ["Content-Disposition: attachment; filename=.hidden"];
    let new = ["Content-Disposition: attachment; filename=new"];
    all.extend([
        with(
            "header-name/clobber".into(),
            &named,
            &["-OJ", "--clobber", url],
        ),
        with(
            "header-name/clobber-hidden".into(),
            &hidden,
            &["-OJ", "--clobber", url],
        ),
        with(
            "header-name/no-clobber".into(),
            &named,
            &["-OJ", "--no-clobber", url],
        ),
        with("header-name/include".into(), &new, &["-OJ", "-i", url]),
        with("header-name/head".into(), &new, &["-OJ", "-I", url]),
        with("header-name/without-o".into(), &new, &["-J", url]),
        with("header-name/with-o".into(), &new, &["-J", "-o", "out", url]),
        with("header-name/no-name".into(), &new, &["-OJ", "http://{A}/"]),
        with(
            "header-name/no-name-at-all".into(),
            &[],
            &["-OJ", "http://{A}/"],
        ),
        with(
            "header-name/output-dir".into(),
            &new,
            &["-OJ", "--create-dirs", "--output-dir", "d/e", url],
        ),
        with(
            "header-name/off".into(),
            &new,
            &["-OJ", "--no-remote-header-name", url],
        ),
        with(
            "header-name/long".into(),
            &new,
            &["--remote-name", "--remote-header-name", url],
        ),
        with(
            "header-name/dump".into(),
            &new,
            &["-OJ", "-D", "heads", url],
        ),
        with("header-name/fail".into(), &new, &["-fOJ", url]),
    ]);
    all.push(
        Scenario::new("header-name/redirect")
            .play([
                Take,
                Send(sized("302 Found", &["Location: /next.txt"], "moved")),
                Take,
                Send(sized("200 OK", &new, "body")),
            ])
            .args(["-LOJ", url]),
    );
    all.push(
        Scenario::new("header-name/failed")
            .play([Take, Send(sized("404 No", &new, "body"))])
            .args(["-fOJ", url]),
    );
    all
}

fn remote_names() -> Vec<Scenario> {
    let (a, b) = ("http://{A}/a", "http://{A}/b");
    let cases: &[(&str, &[&str])] = &[
        ("all", &["--remote-name-all", a, b]),
        ("all-one-named", &["--remote-name-all", a, b, "-o", "x"]),
        ("all-later", &[a, "--remote-name-all", b]),
        (
            "all-off",
            &["--remote-name-all", a, "--no-remote-name-all", b],
        ),
        ("all-no-name", &["--remote-name-all", "http://{A}/"]),
        ("all-next", &["--remote-name-all", a, "--next", "-sS", b]),
        ("all-stdout", &["--remote-name-all", "-o", "-", a, b]),
        ("all-query", &["--remote-name-all", "http://{A}/d/c.txt?q"]),
        ("all-glob", &["--remote-name-all", "http://{A}/{a,b}"]),
    ];
    let build = |(name, args): &(&str, &[&str])| case(format!("remote-name/{name}"), args);
    cases.iter().map(build).collect()
}

fn directories() -> Vec<Scenario> {
    let a = "http://{A}/a";
    let cases: &[(&str, &[&str])] = &[
        ("output", &["--output-dir", "there", "-o", "x", a]),
        ("remote-name", &["--output-dir", "there", "-O", a]),
        ("trailing", &["--output-dir", "there/", "-o", "x", a]),
        ("missing", &["--output-dir", "none", "-o", "x", a]),
        (
            "missing-created",
            &["--output-dir", "n/m", "--create-dirs", "-o", "x", a],
        ),
        (
            "below",
            &["--output-dir", "there", "--create-dirs", "-o", "p/q", a],
        ),
        ("below-missing", &["--output-dir", "there", "-o", "p/q", a]),
        ("stdout", &["--output-dir", "there", a]),
        ("dash", &["--output-dir", "there", "-o", "-", a]),
        ("root", &["--output-dir", "there", "-o", "/x", a]),
        (
            "last",
            &[
                "--output-dir",
                "none",
                "--output-dir",
                "there",
                "-o",
                "x",
                a,
            ],
        ),
        ("create", &["--create-dirs", "-o", "p/q/r", a]),
        ("create-there", &["--create-dirs", "-o", "there/r", a]),
        ("create-none", &["--create-dirs", "-o", "x", a]),
        ("create-over-file", &["--create-dirs", "-o", "file/x", a]),
        ("not-created", &["-o", "p/q", a]),
        (
            "create-all",
            &[
                "--create-dirs",
                "--remote-name-all",
                "--output-dir",
                "d",
                a,
                "http://{A}/b",
            ],
        ),
    ];
    let build = |(name, args): &(&str, &[&str])| {
        case(format!("directory/{name}"), args)
            .file("there/old", "old")
            .file("file", "old")
    };
    cases.iter().map(build).collect()
}

fn clobber() -> Vec<Scenario> {
    let a = "http://{A}/a";
    let cases: &[(&str, &[&str])] = &[
        ("usual", &["-o", "x", a]),
        ("always", &["--clobber", "-o", "x", a]),
        ("never", &["--no-clobber", "-o", "x", a]),
        ("never-new", &["--no-clobber", "-o", "new", a]),
        ("never-second", &["--no-clobber", "-o", "y", a]),
        (
            "never-twice",
            &["--no-clobber", "-o", "x", "-o", "x", a, "http://{A}/b"],
        ),
        (
            "never-name",
            &["--no-clobber", "-o", "x", "-w", "%{filename_effective}", a],
        ),
        ("never-remote", &["--no-clobber", "-O", a]),
        ("never-directory", &["--no-clobber", "-o", "d", a]),
        ("never-missing", &["--no-clobber", "-o", "none/x", a]),
        ("never-dash", &["--no-clobber", "-o", "-", a]),
        (
            "never-then-always",
            &["--no-clobber", "--clobber", "-o", "x", a],
        ),
        (
            "never-empty",
            &["--no-clobber", "-o", "x", "http://{A}/empty"],
        ),
        (
            "never-fail",
            &["-f", "--no-clobber", "-o", "x", "http://{A}/404"],
        ),
        ("directory", &["-o", "d", a]),
    ];
    let build = |(name, args): &(&str, &[&str])| {
        case(format!("clobber/{name}"), args)
            .file("x", "old")
            .file("y", "old")
            .file("y.1", "old")
            .file("a", "old")
            .file("d/x", "old")
    };
    cases.iter().map(build).collect()
}

fn removal() -> Vec<Scenario> {
    let cut = || Send(reply("200 OK", &["Content-Length: 9"], "cut"));
    let build = |name: &str, args: &[&str]| {
        Scenario::new(format!("remove-on-error/{name}"))
            .play([Take, cut(), Close])
            .file("old", "old")
            .args([args, &["http://{A}/d/f"]].concat())
    };
    let mut all = vec![
        build("cut", &["--remove-on-error", "-o", "x"]),
        build("cut-kept", &["-o", "x"]),
        build("cut-old", &["--remove-on-error", "-o", "old"]),
        build("cut-remote", &["--remove-on-error", "-O"]),
        build("cut-stdout", &["--remove-on-error"]),
        build(
            "cut-no-clobber",
            &["--remove-on-error", "--no-clobber", "-o", "old"],
        ),
        build(
            "cut-off",
            &["--remove-on-error", "--no-remove-on-error", "-o", "x"],
        ),
        build(
            "filesize",
            &["--remove-on-error", "--max-filesize", "1", "-o", "old"],
        ),
    ];
    all.extend([
        case(
            "remove-on-error/good".into(),
            &["--remove-on-error", "-o", "x", "http://{A}/a"],
        ),
        case(
            "remove-on-error/status".into(),
            &["-f", "--remove-on-error", "-o", "x", "http://{A}/404"],
        )
        .file("x", "old"),
        case(
            "remove-on-error/with-body".into(),
            &[
                "--fail-with-body",
                "--remove-on-error",
                "-o",
                "x",
                "http://{A}/404",
            ],
        ),
        case(
            "remove-on-error/refused".into(),
            &["--remove-on-error", "-o", "x", "http://127.0.0.1:1/"],
        )
        .file("x", "old"),
    ]);
    all
}
