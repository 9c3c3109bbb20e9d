//! Python's `http.server`: files by its own handler, the rest by an application.

use std::process::Command;

use super::{Program, Script};
use crate::features::Feature;
use crate::running::{Setup, data};
use crate::site;

pub(crate) const HTTP_SERVER: Program = Program {
    name: "Python http.server",
    packages: "python3",
    installed_by: Some(Script::Long),
    files: &["/usr/bin/python3"],
    forwards: false,
    hello: site::HELLO,
    command,
    lacks: &[
        Feature::Range,
        Feature::Multipart,
        Feature::Brotli,
        Feature::Zstd,
    ],
    copes: &[],
};

fn command(setup: &Setup<'_>) -> Option<Command> {
    let mut command = setup.application("/usr/bin/python3");
    command.arg(data("http_server.py"));
    Some(command)
}
