//! Tests that need a process and a network of their own, to count descriptors and ports.

use std::env;
use std::fs;
use std::process::Command;

use crate::script::eventually;

/// Runs the body of a test in a process of its own, in a network namespace that has nothing but loopback. Needs root, or user
/// namespaces.
///
/// `test` is the name of the test that calls this: this very program runs that test alone.
pub fn in_own_network(test: &str, body: impl FnOnce()) {
    if env::var_os(ALONE).is_some() {
        return body();
    }
    let program = env::current_exe().expect("the test program has a path");
    let mut command = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    let set_up = "ip link set lo up && exec \"$0\" \"$@\"";
    let output = command
        .args(["--net", "sh", "-c", set_up])
        .arg(program)
        .args(["--exact", test, "--include-ignored", "--nocapture"])
        .env(ALONE, test)
        .output()
        .expect("unshare and ip are installed");
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{errors}");
    assert!(text.contains("1 passed"), "no test is named {test}");
    println!("{text}");
}

/// Descriptors that this process has open. Only in a process of its own they are all a test's.
pub fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

/// Waits until there are no more than there were: those of servers are closed by threads that end in their own time, and
/// one of theirs may have been counted before.
pub fn assert_descriptors(before: usize, what: &str) {
    eventually(what, || descriptors() <= before);
}

const ALONE: &str = "COURSER_TEST_ALONE";
