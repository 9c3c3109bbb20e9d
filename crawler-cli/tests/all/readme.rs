//! The command lines of the documents: the program understands each of them as it stands.

use std::fs;
use std::path::Path;

use crate::common::{crawler, stderr};

const DOCUMENTS: [&str; 4] = [
    "../README.md",
    "README.md",
    "POSTGRESQL.md",
    "contrib/README.md",
];

#[test]
fn each_command_line_is_understood() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["docs", "mirror"] {
        fs::create_dir(folder.path().join(name)).expect(name);
    }
    for name in ["README.md", "own-ca.pem"] {
        fs::write(folder.path().join(name), "").expect(name);
    }
    let mut count = 0;
    for document in DOCUMENTS {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(document);
        let text = fs::read_to_string(&path).expect(document);
        for line in command_lines(&text) {
            for args in commands(&line) {
                // All that stands before this option is read first.
                let mut args: Vec<&str> = args.iter().map(String::as_str).collect();
                args.push("--help");
                let output = crawler(&args).current_dir(folder.path()).output();
                let output = output.expect("the program runs");
                let stderr = stderr(&output);
                assert!(output.status.success(), "{document}: {line}\n{stderr}");
                count += 1;
            }
        }
    }
    assert!(count > 30, "only {count} command lines were found");
}

/// What is typed at a prompt, what a workflow or a hook runs, and what stands in tables. A `URL` is any.
fn command_lines(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    for line in text.lines().map(str::trim_start) {
        let typed = ["$ ", "- run: ", "entry: "];
        if let Some(typed) = typed.iter().find_map(|before| line.strip_prefix(before)) {
            all.push(typed.to_owned());
        } else if line.starts_with("| `") {
            let spans = line.split('`').skip(1).step_by(2);
            let own = spans.filter(|span| span.starts_with("crawler-cli "));
            all.extend(own.map(|span| span.replace("URL", "http://a.example/")));
        }
    }
    all
}

/// The arguments of the program in each part of a pipeline.
fn commands(line: &str) -> Vec<Vec<String>> {
    let words = shlex::split(line).unwrap_or_else(|| panic!("a quote is open: {line}"));
    let parts = words.split(|word| word == "|");
    let arguments = |part: &[String]| {
        let program = part.first().map(String::as_str);
        let begins = match program {
            Some("crawler-cli") => 0,
            Some("cargo") if part.iter().any(|word| word == "crawler-cli") => {
                part.iter().position(|word| word == "--")?
            }
            _ => return None,
        };
        let words = part[begins + 1..].iter();
        let written = words.take_while(|word| !matches!(word.as_str(), ">" | ">>"));
        Some(written.cloned().collect())
    };
    parts.filter_map(arguments).collect()
}
