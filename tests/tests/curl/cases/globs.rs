//! URL globbing, and the names of files that come of it.

use super::{ok, sized};
use crate::peer::Step::{Send, Take};
use crate::scenario::Scenario;

pub(super) fn all() -> Vec<Scenario> {
    [texts(), many(), uploads()].concat()
}

/// One glob each; every URL is answered with its number.
fn texts() -> Vec<Scenario> {
    let globs: &[(&str, &str)] = &[
        ("set", "{a,b}"),
        ("set-one", "{a}"),
        ("set-empty-parts", "x{,a,}"),
        ("set-empty", "{}"),
        ("set-escaped", "{a\\,b,c\\}}"),
        ("set-open", "{a,b"),
        ("set-nested", "{a{b}}"),
        ("set-bracket-inside", "{a[1-2]}"),
        ("set-bracket-closed", "{a]}"),
        ("set-dots", "{a/../b,c}"),
        ("numbers", "[1-3]"),
        ("numbers-one", "[7-7]"),
        ("numbers-zeros", "[08-11]"),
        ("numbers-zeros-uneven", "[001-2]"),
        ("numbers-zero-start", "[0-2]"),
        ("numbers-step", "[1-10:4]"),
        ("numbers-step-zeros", "[001-100:33]"),
        ("numbers-step-zero", "[1-2:0]"),
        ("numbers-step-large", "[1-5:5]"),
        ("numbers-step-empty", "[1-5:]"),
        ("numbers-step-fits", "[1-5:4]"),
        ("numbers-one-step", "[5-5:2]"),
        ("numbers-down", "[3-1]"),
        ("numbers-space", "[1- 3]"),
        ("numbers-space-before", "[1 -3]"),
        ("numbers-open", "[1-3"),
        ("numbers-no-dash", "[12]"),
        ("numbers-no-end", "[1-]"),
        ("numbers-letter", "[1-a]"),
        ("numbers-three", "[1-2-3]"),
        (
            "numbers-huge",
            "[99999999999999999999-99999999999999999999]",
        ),
        ("numbers-overflow", "[0-9223372036854775806][0-9]"),
        ("letters", "[a-c]"),
        ("letters-upper", "[X-Z]"),
        ("letters-step", "[a-z:7]"),
        ("letters-one", "[q-q]"),
        ("letters-down", "[c-a]"),
        ("letters-mixed", "[a-C]"),
        ("letters-over-cases", "[A-z]"),
        ("letters-step-large", "[a-c:3]"),
        ("letters-long", "[aa-bb]"),
        ("bracket-empty", "a[]b"),
        ("bracket-close", "a]"),
        ("brace-close", "a}"),
        ("bracket-odd", "[?]"),
        ("escaped", "\\{a\\}\\[b\\]"),
        ("escape-other", "\\a\\\\"),
        ("two", "{a,b}[1-2]"),
        ("two-apart", "{a,b}/x/[1-2]?q={c}"),
        ("three", "[1-2]{a,b}[x-y]"),
        ("query", "?a=[1-3]"),
        ("fragment", "a#[1-2]"),
        ("after-set", "{a,b}]"),
    ];
    let case = |name: String, args: &[&str]| {
        let answer = |number: usize| sized("200 OK", &[], format!("{number};"));
        let steps = (0..12).flat_map(|number| [Take, Send(answer(number))]);
        Scenario::new(name).play(steps).args(args)
    };
    let mut all = Vec::new();
    for (name, glob) in globs {
        let url = format!("http://{{A}}/{glob}");
        all.push(case(
            format!("glob/{name}"),
            &["-w", "%{url} %{urlnum} %{http_code}\n", &url],
        ));
    }
    for (name, glob) in [
        ("set", "{a,b}"),
        ("numbers", "[1-3]"),
        ("wrong", "{a"),
        ("escaped", "\\{a\\}"),
    ] {
        let url = format!("http://{{A}}/{glob}");
        all.push(case(format!("glob/off/{name}"), &["-g", &url]));
        all.push(case(format!("glob/off-long/{name}"), &["--globoff", &url]));
        all.push(case(
            format!("glob/on-again/{name}"),
            &["-g", "--no-globoff", &url],
        ));
    }
    all
}

/// Globs with other options.
fn many() -> Vec<Scenario> {
    let url = "http://{A}/{a,b}/[1-2]";
    let cases: &[(&str, &[&str])] = &[
        ("outputs", &["-o", "#1_#2.txt", url]),
        ("outputs-swapped", &["-o", "#2#1", url]),
        ("outputs-twice", &["-o", "#1#1_#2", url]),
        ("outputs-none", &["-o", "one", url]),
        ("outputs-other", &["-o", "#1#3#0#x#_#2", url]),
        ("outputs-padded", &["-o", "#1", "http://{A}/x[08-10]"]),
        ("outputs-letters", &["-o", "f#1", "http://{A}/x[a-e:2]"]),
        ("outputs-dash", &["-o", "-", url]),
        ("outputs-directory", &["--create-dirs", "-o", "d#1/#2", url]),
        (
            "outputs-output-dir",
            &["--create-dirs", "--output-dir", "o", "-o", "#1#2", url],
        ),
        ("outputs-globoff", &["-g", "-o", "#1", "http://{A}/x{a}"]),
        ("outputs-escaped", &["-o", "#1", "http://{A}/\\{x\\}{y}"]),
        (
            "outputs-two-urls",
            &[
                "-o",
                "#1",
                "http://{A}/x{a,b}",
                "-o",
                "z#1",
                "http://{A}/x{a}",
            ],
        ),
        ("remote-names", &["-O", "http://{A}/x{a,b}"]),
        ("remote-name-glob", &["-O", "http://{A}/{x,y}/same"]),
        ("data", &["-d", "x", url]),
        ("head", &["-I", url]),
        (
            "write-out-names",
            &["-o", "#1#2", "-w", "%{filename_effective}\n", url],
        ),
        ("fail-early", &["--fail-early", "-f", "http://{A}/{404,b}"]),
        ("fail-late", &["-f", "http://{A}/{404,b}"]),
        ("fail-last", &["-f", "http://{A}/{b,404}"]),
        ("host", &["http://{127.0.0.1,localhost}:{Ap}/x"]),
        ("scheme", &["{http,HTTP}://{A}/x"]),
        ("port-closed", &["http://127.0.0.1:{1,{Ap}}/x"]),
        (
            "next",
            &["http://{A}/{a,b}", "--next", "-sS", "-g", "http://{A}/{a}"],
        ),
        ("address", &["-4", "http://[::1]:{Ap}/{a,b}"]),
        ("address-glob", &["-4", "http://[::1]:{Ap}/[1-2]"]),
        ("after-good", &["http://{A}/a", "http://{A}/{"]),
        ("cookies", &["-b", "", "http://{A}/{set,b}"]),
    ];
    let case = |(name, args): &(&str, &[&str])| {
        let routes = [
            ("/a", ok()),
            ("/b", ok()),
            ("/set", sized("200 OK", &["Set-Cookie: c=d"], "set")),
            ("/a/1", sized("200 OK", &[], "a1")),
            ("/a/2", sized("200 OK", &[], "a2")),
            ("/b/1", sized("200 OK", &[], "b1")),
            ("/b/2", sized("200 OK", &[], "b2")),
        ];
        Scenario::new(format!("globs/{name}"))
            .routes(routes)
            .args(*args)
    };
    cases.iter().map(case).collect()
}

fn uploads() -> Vec<Scenario> {
    let cases: &[(&str, &[&str])] = &[
        ("two-files", &["-T", "{one,two}", "http://{A}/x"]),
        (
            "two-files-two-urls",
            &["-T", "{one,two}", "http://{A}/{x,y}"],
        ),
        ("into-directory", &["-T", "{one,two}", "http://{A}/d/"]),
        ("range", &["-T", "f[1-2]", "http://{A}/d/"]),
        (
            "output",
            &["-T", "{one,two}", "-o", "#1", "http://{A}/{x,y}"],
        ),
        ("missing", &["-T", "{one,none}", "http://{A}/d/"]),
        ("wrong", &["-T", "{one", "http://{A}/d/"]),
        ("globoff", &["-g", "-T", "{one}", "http://{A}/d/"]),
    ];
    let case = |(name, args): &(&str, &[&str])| {
        Scenario::new(format!("glob-upload/{name}"))
            .routes([("/x", ok()), ("/y", ok()), ("/d/one", ok())])
            .file("one", "1")
            .file("two", "22")
            .file("f1", "f-one")
            .file("f2", "f-two")
            .file("{one}", "braces")
            .args([&["-H", "Expect:"], *args].concat())
    };
    cases.iter().map(case).collect()
}
