//! Go's net/http.

use std::process::Command;

use super::Program;
use crate::features::Feature;
use crate::running::{Setup, data};
use crate::site;

pub(crate) const GO: Program = Program {
    name: "Go net/http",
    packages: "golang-go",
    installed_by: None,
    files: &["/usr/bin/go"],
    forwards: false,
    hello: site::HELLO,
    command,
    lacks: &[Feature::Brotli, Feature::Zstd],
    copes: &[],
};

fn command(setup: &Setup<'_>) -> Option<Command> {
    let program = setup.place.join("server");
    let mut go = Command::new("/usr/bin/go");
    go.args(["build", "-o"])
        .arg(&program)
        .arg(data("server.go"));
    let output = go.output().expect("run go");
    assert!(output.status.success(), "{output:?}");
    Some(setup.application(program.to_str()?))
}
