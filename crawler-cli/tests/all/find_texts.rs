//! The texts that `crawler-cli` generates from its options, checked with the programs that read them. A program
//! that is not installed is skipped.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use crate::common::{crawler, lines};

fn text(args: &[&str]) -> Vec<u8> {
    let output = crawler(args).output().expect("the program runs");
    assert_eq!(output.status.code(), Some(0), "{args:?}");
    assert!(output.stderr.is_empty() && !output.stdout.is_empty());
    output.stdout
}

/// Runs a program with `input`; `None` if there is no such program.
fn feed(program: &str, args: &[&str], input: &[u8]) -> Option<Output> {
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .ok()?;
    let mut stdin = child.stdin.take().expect("piped");
    let input = input.to_vec();
    // In a thread, because the program may fill its output pipe first. The program may ignore a part of the input.
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().expect("it ends");
    writer.join().expect("no panic");
    Some(output)
}

fn assert_quiet(program: &str, output: &Output) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && stderr.is_empty(),
        "{program}: {stderr}"
    );
}

#[test]
fn shells_read_their_completions() {
    for shell in ["bash", "zsh", "fish"] {
        let completions = text(&["completions", shell]);
        if let Some(output) = feed(shell, &["-n"], &completions) {
            assert_quiet(shell, &output);
        }
    }
    let wrong = crawler(&["completions", "tcsh"]).output().expect("runs");
    assert_eq!(wrong.status.code(), Some(2));
}

/// The completions that bash offers for the last word.
fn offered(words: &str) -> Option<Vec<String>> {
    let mut script = text(&["completions", "bash"]);
    let line = format!(
        "COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _crawler_cli crawler-cli \"${{COMP_WORDS[-1]}}\" \"${{COMP_WORDS[-2]}}\"; printf '%s\\n' \"${{COMPREPLY[@]}}\"\n"
    );
    script.extend_from_slice(line.as_bytes());
    let output = feed("bash", &["--norc"], &script)?;
    assert_quiet("bash", &output);
    Some(lines(&output.stdout))
}

#[test]
fn bash_offers_matching_words() {
    for (words, expected) in [
        ("crawler-cli f", &["find"][..]),
        ("crawler-cli find -ty", &["-type"]),
        ("crawler-cli find --links ''", &["listing", "page"]),
        ("crawler-cli watch dlq re", &["replay"]),
        ("crawler-cli find --cac", &["--cacert"]),
        ("crawler-cli find --cacert Cargo.t", &["Cargo.toml"]),
        ("crawler-cli find -name x", &[""]),
        ("crawler-cli get --max-t", &["--max-time"]),
        ("crawler-cli get --cacert Cargo.t", &["Cargo.toml"]),
        ("crawler-cli demo --s", &["--serve"]),
        ("crawler-cli completions z", &["zsh"]),
    ] {
        if let Some(offered) = offered(words) {
            assert_eq!(offered, expected, "{words}");
        }
    }
}

#[test]
fn man_pages_are_without_a_warning() {
    for (command, parts) in [
        ("find", ["-maxdepth", "EXIT STATUS", "repomd.xml"]),
        ("get", ["--max-filesize", "EXIT STATUS", "http_proxy"]),
    ] {
        let page = text(&[command, "--man"]);
        // -P-cbou: plain text, without overstrikes.
        if let Some(output) = feed("groff", &["-man", "-ww", "-Tutf8", "-P-cbou", "-"], &page) {
            assert_quiet("groff", &output);
            let shown = String::from_utf8_lossy(&output.stdout);
            for part in parts {
                assert!(shown.contains(part), "{part}");
            }
        }
        if let Some(output) = feed("man", &["--warnings=w", "-l", "-"], &page) {
            assert_quiet("man", &output);
        }
    }
}

#[test]
fn help_is_short_or_long() {
    let short = text(&["find", "-h"]);
    let long = text(&["find", "--help"]);
    let lines = |text: &[u8]| text.iter().filter(|&&b| b == b'\n').count();
    assert!(lines(&short) < 150 && lines(&long) > lines(&short));
}
