//! Forms: `-F` and its variants.

use super::{ok, sized};
use crate::peer::Step::{Send, Take, TakeBytes, TakeHead};
use crate::scenario::Scenario;

pub(super) fn all() -> Vec<Scenario> {
    [fields(), with_options(), large()].concat()
}

fn case(name: String, args: &[&str]) -> Scenario {
    Scenario::new(name)
        .play([Take, Send(ok()), Take, Send(ok())])
        .file("text.txt", "text\n")
        .file("page.HTML", "<p>")
        .file("bin", "b\0\n")
        .file("empty", "")
        .file("d/pic.jpeg", "pic")
        .file("a,b;c", "odd")
        .file("heads", "X-A: 1\n# comment\nX-B: 2\n more\n\n")
        .stdin("standard")
        .args(args)
}

fn fields() -> Vec<Scenario> {
    let fields: &[(&str, &[&str])] = &[
        ("text", &["a=b"]),
        ("text-two", &["a=b", "c=d"]),
        ("text-same-name", &["a=b", "a=c"]),
        ("text-empty", &["a="]),
        ("text-space", &["a=  b c  "]),
        ("text-equals", &["a=b=c"]),
        ("text-at-inside", &["a=b@c"]),
        ("text-utf-8", &["\u{e9}=\u{e9}"]),
        ("text-lines", &["a=b\r\nc\nd"]),
        ("text-quoted", &["a=\"b;c,d\""]),
        ("text-quoted-escapes", &["a=\"b\\\"c\\\\d\\e\""]),
        ("text-quote-open", &["a=\"b"]),
        ("text-quote-trailing", &["a=\"b\"c"]),
        ("text-quote-inside", &["a=b\"c\""]),
        ("text-unknown-key", &["a=b;c=d"]),
        ("text-semicolon", &["a=b;"]),
        ("text-filename", &["a=b;filename=f.png"]),
        ("text-filename-txt", &["a=b;filename=f.txt"]),
        ("text-type", &["a=b;type=text/html"]),
        ("text-type-plain", &["a=b;type=text/plain"]),
        (
            "text-type-parameter",
            &["a=b;type=text/html; charset=utf-8"],
        ),
        (
            "text-type-then-name",
            &["a=b;type=text/html; charset=utf-8;filename=f"],
        ),
        ("text-name-then-type", &["a=b;filename=f;type=x/y"]),
        ("text-type-upper", &["a=b;TYPE=x/y"]),
        ("text-type-bad", &["a=b;type=bad"]),
        ("text-type-twice", &["a=b;type=x/y;type=z/w"]),
        ("text-filename-quoted", &["a=b;filename=\"x;y,\\\"z\\\"\""]),
        ("text-filename-lines", &["a=b;filename=x\ny"]),
        ("name-empty", &["=b"]),
        ("name-quote", &["a\"b=c"]),
        ("name-backslash", &["a\\b=c"]),
        ("name-lines", &["a\r\nb=c"]),
        ("no-equals", &["abc"]),
        ("file", &["a=@text.txt"]),
        ("file-html", &["a=@page.HTML"]),
        ("file-binary", &["a=@bin"]),
        ("file-empty", &["a=@empty"]),
        ("file-directory", &["a=@d/pic.jpeg"]),
        ("file-missing", &["a=@none"]),
        ("file-quoted", &["a=@\"a,b;c\""]),
        ("file-type", &["a=@text.txt;type=x/y"]),
        ("file-type-plain", &["a=@text.txt;type=text/plain"]),
        ("file-filename", &["a=@text.txt;filename=other.pdf"]),
        ("file-filename-path", &["a=@text.txt;filename=/x/y"]),
        ("file-filename-empty", &["a=@text.txt;filename="]),
        ("file-both", &["a=@text.txt;filename=o;type=x/y"]),
        ("file-spaces", &["a=@ text.txt ; filename=o "]),
        (
            "file-spaced-keys",
            &["a=@text.txt ; type=a/b ; filename = x"],
        ),
        ("files", &["a=@text.txt,bin"]),
        ("files-types", &["a=@text.txt;type=x/y,bin;filename=z"]),
        ("files-quoted", &["a=@\"text.txt\",\"a,b;c\""]),
        ("files-missing", &["a=@text.txt,none"]),
        ("files-group-type", &["a=@text.txt,bin;type=image/gif"]),
        ("files-and-text", &["a=@text.txt,bin", "b=c"]),
        ("content", &["a=<text.txt"]),
        ("content-html", &["a=<page.HTML"]),
        ("content-binary", &["a=<bin"]),
        ("content-type", &["a=<text.txt;type=x/y"]),
        ("content-filename", &["a=<text.txt;filename=other"]),
        ("group-filename", &["g=(;filename=x", "a=b", "=)"]),
        ("content-missing", &["a=<none"]),
        ("stdin", &["a=@-"]),
        ("stdin-type", &["a=@-;type=x/y;filename=in.txt"]),
        ("stdin-content", &["a=<-"]),
        ("stdin-twice", &["a=@-", "b=@-"]),
        ("stdin-and-file", &["a=@-,text.txt"]),
        ("headers", &["a=b;headers=\"X-A: 1\""]),
        (
            "headers-two",
            &["a=b;headers=\"X-A: 1\";headers=\"X-B: 2\""],
        ),
        ("headers-file", &["a=b;headers=@heads"]),
        (
            "headers-type",
            &["a=@bin;headers=\"Content-Type: own/type\""],
        ),
        (
            "headers-disposition",
            &["a=b;headers=\"content-disposition: own\""],
        ),
        ("encoder-8bit", &["a=b;encoder=8bit"]),
        ("encoder-binary", &["a=@bin;encoder=binary"]),
        ("encoder-7bit", &["a=b;encoder=7bit"]),
        ("encoder-7bit-not", &["a=\u{e9};encoder=7bit"]),
        ("encoder-7bit-file", &["a=@text.txt;encoder=7bit"]),
        ("encoder-base64", &["a=b;encoder=base64"]),
        ("encoder-base64-file", &["a=@bin;encoder=BASE64"]),
        ("encoder-base64-stdin", &["a=@-;encoder=base64"]),
        ("encoder-quoted", &["a=b=c ;encoder=quoted-printable"]),
        (
            "encoder-quoted-empty",
            &["a=@empty;encoder=quoted-printable"],
        ),
        ("encoder-unknown", &["a=b;encoder=foo"]),
        (
            "group",
            &[
                "=(;type=multipart/alternative",
                "=x",
                "=y;type=text/html",
                "=)",
                "b=c",
            ],
        ),
        ("group-named", &["g=(", "a=b", "=@text.txt", "=)"]),
        ("group-open", &["a=b", "g=(", "c=d"]),
        (
            "group-nested",
            &["g=(", "h=(", "a=b", "=)", "c=d", "=)", "e=f"],
        ),
        ("group-empty", &["g=(", "=)"]),
        ("group-form", &["=(;type=multipart/form-data", "a=b", "=)"]),
        ("group-close", &["=)"]),
        ("group-close-text", &["a=)"]),
    ];
    let mut all = Vec::new();
    for (name, fields) in fields {
        let mut args = vec!["http://{A}/"];
        args.extend(fields.iter().flat_map(|field| ["-F", field]));
        all.push(case(format!("form/{name}"), &args));
    }
    all
}

fn with_options() -> Vec<Scenario> {
    let url = "http://{A}/";
    let cases: &[(&str, &[&str])] = &[
        ("long", &["--form", "a=b", url]),
        ("string", &["--form-string", "a=b", url]),
        ("string-at", &["--form-string", "a=@text.txt;type=x/y", url]),
        ("string-less", &["--form-string", "a=<x", url]),
        ("string-quote", &["--form-string", "a=\"b\"", url]),
        ("string-no-equals", &["--form-string", "abc", url]),
        (
            "string-mixed",
            &["-F", "a=b", "--form-string", "c=(", "-F", "d=e", url],
        ),
        (
            "escape",
            &["--form-escape", "-F", "a\"b\\c=d;filename=e\"\\f", url],
        ),
        ("escape-after", &["-F", "a\"b=c", "--form-escape", url]),
        (
            "escape-not",
            &["--form-escape", "--no-form-escape", "-F", "a\"b=c", url],
        ),
        ("data", &["-F", "a=b", "-d", "c", url]),
        ("head", &["-I", "-F", "a=b", url]),
        ("upload", &["-F", "a=b", "-T", "bin", url]),
        ("get", &["-G", "-F", "a=b", url]),
        ("method", &["-X", "PUT", "-F", "a=b", url]),
        (
            "content-type",
            &["-H", "Content-Type: multipart/mixed", "-F", "a=b", url],
        ),
        (
            "content-type-form",
            &[
                "-H",
                "content-type: multipart/form-data; x=y",
                "-F",
                "a=b",
                url,
            ],
        ),
        (
            "chunked",
            &["-H", "Transfer-Encoding: chunked", "-F", "a=b", url],
        ),
        ("expect", &["-H", "Expect: 100-continue", "-F", "a=b", url]),
        ("accept", &["-H", "Accept:", "-A", "", "-F", "a=b", url]),
        ("user", &["-u", "u:p", "-F", "a=b", url]),
        ("query", &["--url-query", "q=1", "-F", "a=b", url]),
        (
            "sizes",
            &["-w", "%{size_upload} %{method}", "-F", "a=@text.txt", url],
        ),
        ("two-urls", &["-F", "a=@text.txt", url, "http://{A}/2"]),
        ("glob", &["-F", "a=b", "http://{A}/{1,2}"]),
        (
            "next",
            &[
                "-F",
                "a=b",
                url,
                "--next",
                "-sS",
                "-F",
                "c=d",
                "http://{A}/2",
            ],
        ),
        ("json-after", &["-F", "a=b", "--json", "{}", url]),
    ];
    let mut all: Vec<Scenario> = cases
        .iter()
        .map(|(name, args)| case(format!("form-with/{name}"), args))
        .collect();
    for status in ["301", "302", "303", "307", "308"] {
        for (field, args) in [("text", "a=b"), ("file", "a=@text.txt"), ("stdin", "a=@-")] {
            let found = sized(&format!("{status} Found"), &["Location: /to"], "moved");
            all.push(
                Scenario::new(format!("form-redirect/{status}/{field}"))
                    .play([Take, Send(found), Take, Send(ok())])
                    .file("text.txt", "text\n")
                    .stdin("standard")
                    .args(["-L", "-F", args, "http://{A}/from"]),
            );
        }
    }
    all
}

/// Bodies that wait for a 100 (Continue).
fn large() -> Vec<Scenario> {
    let go_on = || Send(b"HTTP/1.1 100 Continue\r\n\r\n".to_vec());
    let length = 1_500_000;
    let boundary = "-".repeat(40);
    let around = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"a\"; filename=\"l.txt\"\r\n\
         Content-Type: application/x-large\r\n\r\n\r\n--{boundary}--\r\n"
    );
    let case = |name: &str, field: &str| {
        Scenario::new(format!("form-large/{name}"))
            .play([
                TakeHead,
                go_on(),
                TakeBytes(length + around.len()),
                Send(ok()),
            ])
            .file("l.txt", "z".repeat(length))
            .args(["-F", field, "http://{A}/"])
    };
    vec![
        case("file", "a=@l.txt;type=application/x-large"),
        Scenario::new("form-large/no-expect")
            .play([Take, Send(ok())])
            .file("l.txt", "z".repeat(length))
            .args(["-H", "Expect:", "-F", "a=@l.txt", "http://{A}/"]),
    ]
}
