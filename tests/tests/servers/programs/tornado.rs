//! Tornado: files by its own handler, the rest by an application.

use std::process::Command;

use super::{Program, Script};
use crate::features::Feature;
use crate::running::{Setup, data};
use crate::site;

pub(crate) const TORNADO: Program = Program {
    name: "Tornado",
    packages: "python3-tornado",
    installed_by: Some(Script::Long),
    files: &["/usr/lib/python3/dist-packages/tornado/__init__.py"],
    forwards: false,
    hello: site::HELLO,
    command,
    lacks: &[
        Feature::HalfClose,
        Feature::Trailers,
        Feature::Multipart,
        Feature::Brotli,
        Feature::Zstd,
    ],
    copes: &[],
};

fn command(setup: &Setup<'_>) -> Option<Command> {
    let mut command = setup.application("/usr/bin/python3");
    command.arg(data("tornado_server.py"));
    Some(command)
}
