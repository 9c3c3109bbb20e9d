//! Twisted Web: files by its own handler, the rest by an application.

use std::process::Command;

use super::Program;
use crate::features::Feature;
use crate::quirk::Quirk;
use crate::running::{Setup, data};
use crate::site;

pub(crate) const TWISTED: Program = Program {
    name: "Twisted Web",
    packages: "python3-twisted",
    installed_by: None,
    files: &["/usr/lib/python3/dist-packages/twisted/__init__.py"],
    forwards: false,
    hello: site::HELLO,
    command,
    lacks: &[
        Feature::HalfClose,
        Feature::Trailers,
        Feature::Gzip,
        Feature::Brotli,
        Feature::Zstd,
    ],
    copes: &[
        (Feature::NoContent, Quirk::NoContentLength),
        (Feature::Refusal, Quirk::ContinuesThenRefuses),
    ],
};

fn command(setup: &Setup<'_>) -> Option<Command> {
    let mut command = setup.application("/usr/bin/python3");
    command.arg(data("twisted_server.py"));
    Some(command)
}
