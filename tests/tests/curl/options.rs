//! Each long option and each letter of curl is one of `get`, or `get` says what to do instead.

use std::process::Command;

use tests::program::PROGRAM;

#[test]
#[ignore = "needs curl"]
fn each_option_of_curl_is_there_or_told_about() {
    let of_curl = options(&text(Command::new("curl").args(["--help", "all"])));
    let of_get = options(&text(Command::new(&*PROGRAM).args(["get", "--help"])));
    assert!(of_curl.len() > 200, "{of_curl:?}");
    let mut silent = Vec::new();
    for option in &of_curl {
        // A switch that is on is taken back by `--no-`.
        let switch = option.strip_prefix("--no-").map(|name| format!("--{name}"));
        if of_get.contains(option) || switch.is_some_and(|switch| of_get.contains(&switch)) {
            continue;
        }
        let said = Command::new(&*PROGRAM)
            .args(["get", option, "http://127.0.0.1:1/"])
            .output()
            .expect("the program runs");
        let stderr = String::from_utf8_lossy(&said.stderr);
        let is_told = stderr.contains("is one of curl's that get does not have");
        if said.status.code() != Some(2) || !is_told {
            silent.push(format!("{option}: {:?} {stderr}", said.status.code()));
        }
    }
    assert!(silent.is_empty(), "{silent:#?}");
}

fn text(command: &mut Command) -> String {
    let output = command.output().expect("the program runs");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The options at the beginning of the lines of a help: `-a, --append` is two.
fn options(help: &str) -> Vec<String> {
    let mut options = Vec::new();
    for line in help.lines() {
        let words = line.split_whitespace();
        let names = words.take_while(|word| word.starts_with('-') && word.len() > 1);
        options.extend(names.map(|name| name.trim_end_matches(',').to_owned()));
    }
    options
}
