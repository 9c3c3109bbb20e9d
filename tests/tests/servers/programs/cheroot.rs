//! Cheroot, the server of CherryPy.

use std::process::Command;

use super::{Program, Script};
use crate::features::Feature;
use crate::quirk::Quirk;
use crate::running::{Setup, data};
use crate::site;

pub(crate) const CHEROOT: Program = Program {
    name: "Cheroot (CherryPy)",
    packages: "python3-cheroot",
    installed_by: Some(Script::Long),
    files: &["/usr/lib/python3/dist-packages/cheroot/__init__.py"],
    forwards: false,
    hello: site::HELLO,
    command,
    lacks: &[
        Feature::AnnouncedEnd,
        Feature::HalfClose,
        Feature::Trailers,
        Feature::Range,
        Feature::Multipart,
        Feature::Brotli,
        Feature::Zstd,
    ],
    copes: &[(Feature::Refusal, Quirk::ContinuesThenRefuses)],
};

fn command(setup: &Setup<'_>) -> Option<Command> {
    let mut command = setup.application("/usr/bin/python3");
    command.arg(data("cheroot_server.py"));
    Some(command)
}
