//! Tests that need a process of their own, to count descriptors and ports, and for variables.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Runs a test in a process of its own. True in that process, so that the test goes on there.
///
/// `test` is the name of the test that calls this, and `command` runs this very program, with whatever the test needs.
pub fn is_alone(test: &str, command: &mut Command) -> bool {
    if env::var_os(ALONE).is_some() {
        return true;
    }
    let output = command
        .args(["--exact", test, "--include-ignored", "--nocapture"])
        .env(ALONE, test)
        .output()
        .expect("the program runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{errors}");
    assert!(text.contains("1 passed"), "no test is named {test}");
    false
}

/// This very program.
pub fn itself() -> PathBuf {
    env::current_exe().expect("the test program has a path")
}

/// Descriptors that this process has open. Only in a process of its own they are all a test's.
pub fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

const ALONE: &str = "COURSER_TEST_ALONE";
