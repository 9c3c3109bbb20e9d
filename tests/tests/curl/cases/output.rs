//! Where output goes, `-w`, limits.

use super::{ok, reply, sized};
use crate::peer::Step::{Close, Send, Take};
use crate::scenario::Scenario;

const URL: &str = "http://{A}/dir/file.txt?q";

pub(super) fn all() -> Vec<Scenario> {
    [files(), formats(), limits()].concat()
}

fn files() -> Vec<Scenario> {
    let case = |name: &str, args: &[&str]| {
        Scenario::new(format!("output/{name}"))
            .routes([
                ("/dir/file.txt?q", ok()),
                ("/2", sized("200 OK", &["X: y"], "two")),
                ("/0", sized("200 OK", &[], "")),
                ("/404", sized("404 No", &[], "none")),
            ])
            .args(args)
    };
    vec![
        case("file", &["-o", "out", URL]),
        case("file-head", &["-i", "-o", "out", URL]),
        case("dash", &["-o", "-", URL]),
        case("two", &["-o", "a", "-o", "b", URL, "http://{A}/2"]),
        case("one-of-two", &["-o", "a", URL, "http://{A}/2"]),
        case("empty", &["-o", "empty", "http://{A}/0"]),
        case("fail", &["-f", "-o", "none", "http://{A}/404"]),
        case("fail-two", &["-f", "http://{A}/404", URL]),
        case("two-fail", &["-f", URL, "http://{A}/404"]),
        case("no-directory", &["-o", "none/out", URL]),
        case("remote-name", &["-O", URL]),
        case("dump-header", &["-D", "heads", URL]),
        case("dump-header-dash", &["-D", "-", URL]),
        case("fail-with-body", &["--fail-with-body", "http://{A}/404"]),
        case("url-option", &["--url", URL]),
        case(
            "next",
            &["-i", URL, "--next", "-sS", "-d", "x", "http://{A}/2"],
        ),
        case("format-file", &["-w", "@format", URL]).file("format", "%{http_code}\n\\n%{method}"),
        case("format-stdin", &["-w", "@-", URL]).stdin("%{http_code}"),
    ]
}

fn formats() -> Vec<Scenario> {
    let formats = [
        (
            "codes",
            "%{http_code} %{response_code} %{http_connect} %{exitcode}",
        ),
        ("type", "[%{content_type}]"),
        ("sizes", "%{size_download} %{size_header} %{size_upload}"),
        (
            "counts",
            "%{num_connects} %{num_headers} %{num_redirects} %{urlnum}",
        ),
        ("remote", "%{remote_ip} %{remote_port} %{local_ip}"),
        (
            "request",
            "%{method} %{scheme} %{http_version} %{url} %{url_effective}",
        ),
        ("redirect", "[%{redirect_url}]"),
        ("error", "[%{errormsg}] %{onerror}%{exitcode}"),
        (
            "header",
            "%header{x-a}|%header{none}|%header{content-length}",
        ),
        ("headers", "%{header_json}"),
        ("file", "[%{filename_effective}]"),
        ("certs", "[%{certs}] %{num_certs} [%{referer}]"),
        ("verify", "%{ssl_verify_result} %{proxy_ssl_verify_result}"),
        ("streams", "a%{stderr}b%{stdout}c"),
        ("escapes", "\\n\\t\\r\\q\\\\ %% %{ %} %x"),
        ("unknown", "a%{nothing}b"),
        ("zero-times", "%{time_redirect} %{time_appconnect}"),
    ];
    let mut all = Vec::new();
    for (name, format) in formats {
        let headers = ["Content-Type: text/x; a=b", "X-A: 1", "x-a: 2"];
        let found = sized("302 Found", &["Location: ../x?y#z", "X-A: 1"], "moved");
        all.push(
            Scenario::new(format!("format/{name}/200"))
                .play([Take, Send(sized("200 OK", &headers, "hello"))])
                .args(["-w", format, "http://{A}/a/b?c"]),
        );
        all.push(
            Scenario::new(format!("format/{name}/302"))
                .play([Take, Send(found)])
                .args(["-w", format, "-o", "out", "http://{A}/a/b?c#d"]),
        );
        all.push(
            Scenario::new(format!("format/{name}/POST"))
                .play([Take, Send(sized("200 OK", &[], "hello"))])
                .args(["-w", format, "-d", "abc", "http://{A}/a/b?c"]),
        );
        if name != "error" {
            all.push(
                Scenario::new(format!("format/{name}/failed"))
                    .play([Take, Close])
                    .args(["-w", format, "http://{A}/a/b?c"]),
            );
        }
    }
    all
}

fn limits() -> Vec<Scenario> {
    let chunked = reply(
        "200 OK",
        &["Transfer-Encoding: chunked"],
        "5\r\nhello\r\n0\r\n\r\n",
    );
    let case = |name: &str, bytes: Vec<u8>, args: &[&str]| {
        Scenario::new(format!("limit/{name}"))
            .play([Take, Send(bytes), Close])
            .args([args, &["http://{A}/"]].concat())
    };
    vec![
        case("filesize-over", ok(), &["--max-filesize", "4"]),
        case("filesize-equal", ok(), &["--max-filesize", "5"]),
        case("filesize-zero", ok(), &["--max-filesize", "0"]),
        case(
            "filesize-head",
            sized("200 OK", &[], ""),
            &["-I", "--max-filesize", "4"],
        ),
        case("filesize-chunked", chunked, &["--max-filesize", "4"]),
        case(
            "filesize-close",
            reply("200 OK", &[], "hello"),
            &["--max-filesize", "4"],
        ),
        case(
            "filesize-error",
            sized("404 No", &[], "none!"),
            &["-f", "--max-filesize", "4"],
        ),
        Scenario::new("limit/max-time").play([Take]).args([
            "-m",
            "0.3",
            "-w",
            "%{http_code} %{exitcode}",
            "http://{A}/",
        ]),
        Scenario::new("limit/max-time-body")
            .play([Take, Send(reply("200 OK", &["Content-Length: 9"], "hello"))])
            .args(["-m", "0.6", "http://{A}/"]),
    ]
}
