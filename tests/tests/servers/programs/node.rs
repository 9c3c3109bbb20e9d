//! Node.js's http and https.

use std::process::Command;

use super::Program;
use crate::features::Feature;
use crate::running::{Setup, data};
use crate::site;

pub(crate) const NODE: Program = Program {
    name: "Node.js",
    packages: "nodejs",
    installed_by: None,
    files: &["/usr/bin/node"],
    forwards: false,
    hello: site::HELLO,
    command,
    lacks: &[Feature::Range, Feature::Multipart, Feature::Zstd],
    copes: &[],
};

fn command(setup: &Setup<'_>) -> Option<Command> {
    let mut command = setup.application("/usr/bin/node");
    command.arg(data("node.js"));
    Some(command)
}
