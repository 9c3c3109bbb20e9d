//! `crawler-cli demo`, which new users run first.

use std::process::{Command, Stdio};

#[test]
fn the_demo_finds_everything_and_shows_the_next_command() {
    let output = Command::new(env!("CARGO_BIN_EXE_crawler-cli"))
        .arg("demo")
        .stdin(Stdio::null())
        .output()
        .expect("the program runs");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{stdout}");
    assert!(
        stdout.contains("All 155 files named repomd.xml found"),
        "{stdout}"
    );
    assert!(stdout.contains("nothing unread"), "{stdout}");
    assert!(stdout.contains("crawler-cli find"), "{stdout}");
    assert!(output.stderr.is_empty());
}
