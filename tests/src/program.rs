//! The `crawler-cli` program, for tests that run it.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// The program under test: the one that `CRAWLER_CLI` names, or else it is built like this test, in the same target
/// directory and profile.
pub static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| {
    if let Some(program) = env::var_os("CRAWLER_CLI") {
        return program.into();
    }
    let test = env::current_exe().expect("the path of this test");
    let profile = test.ancestors().nth(2).expect("TARGET/PROFILE/deps/TEST");
    let target = profile.parent().expect("TARGET/PROFILE");
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // With a test, so that the features are those of all tests, and nothing is compiled once more with others.
    cargo.args([
        "build",
        "--quiet",
        "--workspace",
        "--bin",
        "crawler-cli",
        "--test",
        "servers",
    ]);
    // What cargo says of the test's package would change what scripts of dependencies see, and all would be built anew.
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            cargo.env_remove(&name);
        }
    }
    cargo.arg("--target-dir").arg(target);
    if profile.ends_with("release") {
        cargo.arg("--release");
    }
    cargo.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")));
    assert!(cargo.status().expect("run cargo").success());
    profile.join("crawler-cli")
});
