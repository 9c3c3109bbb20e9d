//! `file://` URLs.

use crate::scenario::Scenario;

pub(super) fn all() -> Vec<Scenario> {
    let url = "file://{dir}/f";
    let cases: &[(&str, &[&str])] = &[
        ("get", &[url]),
        ("upper", &["FILE://{dir}/f"]),
        ("one-slash", &["file:{dir}/f"]),
        ("localhost", &["file://localhost{dir}/f"]),
        ("address", &["file://127.0.0.1{dir}/f"]),
        ("other-host", &["file://other{dir}/f"]),
        ("no-path", &["file://"]),
        ("query", &["file://{dir}/f?q"]),
        ("fragment", &["file://{dir}/f#q"]),
        ("encoded", &["file://{dir}/%66"]),
        ("nul", &["file://{dir}/f%00"]),
        ("missing", &["file://{dir}/none"]),
        ("empty", &["file://{dir}/empty"]),
        ("empty-output", &["-o", "out", "file://{dir}/empty"]),
        ("directory", &["file://{dir}/d"]),
        ("glob", &["file://{dir}/{f,d/g}"]),
        ("glob-range", &["-o", "out#1", "file://{dir}/[f-f]"]),
        ("head", &["-I", url]),
        ("include", &["-i", url]),
        ("dump", &["-D", "heads", url]),
        ("output", &["-o", "out", url]),
        ("remote-name", &["--output-dir", "d", "-O", url]),
        ("range", &["-r", "0-4", url]),
        ("range-from", &["-r", "6-", url]),
        ("range-last", &["-r", "-3", url]),
        ("range-last-long", &["-r", "-300", url]),
        ("range-past", &["-r", "100-", url]),
        ("range-end", &["-r", "12-", url]),
        ("range-over", &["-r", "6-100", url]),
        ("range-down", &["-r", "3-1", url]),
        ("range-several", &["-r", "0-1,3-4", url]),
        ("resume", &["-C", "6", url]),
        ("resume-output", &["-C", "-", "-o", "part", url]),
        ("resume-past", &["-C", "100", url]),
        ("time-cond", &["-z", "20050101", url]),
        ("time-cond-earlier", &["-z", "19900101", url]),
        ("time-cond-head", &["-I", "-z", "20050101", url]),
        ("data", &["-d", "x", url]),
        ("method", &["-X", "DELETE", url]),
        ("fail", &["-f", "-L", url]),
        (
            "formats",
            &[
                "-w",
                "%{http_code} %{size_download} %{scheme} %{url_effective} %{method} %{http_version} %{num_connects} [%{content_type}] [%{remote_ip}]\n",
                url,
            ],
        ),
        (
            "formats-output",
            &[
                "-o",
                "out",
                "-w",
                "%{filename_effective} %{exitcode}\n",
                url,
            ],
        ),
        ("upload", &["-T", "f", "file://{dir}/up"]),
        ("upload-over", &["-T", "f", "file://{dir}/part"]),
        ("upload-directory", &["-T", "f", "file://{dir}/d/"]),
        ("upload-stdin", &["-T", "-", "file://{dir}/up"]),
        ("upload-missing", &["-T", "none", "file://{dir}/up"]),
        ("upload-no-directory", &["-T", "f", "file://{dir}/none/up"]),
        (
            "upload-mode",
            &["--create-file-mode", "600", "-T", "f", "file://{dir}/up"],
        ),
        (
            "upload-mode-bad",
            &["--create-file-mode", "9", "-T", "f", "file://{dir}/up"],
        ),
        (
            "upload-mode-large",
            &["--create-file-mode", "7777", "-T", "f", "file://{dir}/up"],
        ),
    ];
    let build = |(name, args): &(&str, &[&str])| {
        Scenario::new(format!("local/{name}"))
            .file("f", "hello\nworld\n")
            .time("f", 981_173_106)
            .file("part", "hello")
            .file("empty", "")
            .file("d/g", "below")
            .stdin("standard")
            .args(*args)
    };
    cases.iter().map(build).collect()
}
