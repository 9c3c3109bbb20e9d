//! aiohttp: files by its own handler, the rest by an application.

use std::process::Command;

use super::{Program, Script};
use crate::features::Feature;
use crate::quirk::Quirk;
use crate::running::{Setup, data};
use crate::site;

pub(crate) const AIOHTTP: Program = Program {
    name: "aiohttp",
    packages: "python3-aiohttp",
    installed_by: Some(Script::Long),
    files: &["/usr/lib/python3/dist-packages/aiohttp/__init__.py"],
    forwards: false,
    hello: site::HELLO,
    command,
    lacks: &[
        Feature::HalfClose,
        Feature::Trailers,
        Feature::Brotli,
        Feature::Zstd,
    ],
    copes: &[(Feature::Multipart, Quirk::RefusesRanges)],
};

fn command(setup: &Setup<'_>) -> Option<Command> {
    let mut command = setup.application("/usr/bin/python3");
    command.arg(data("aiohttp_server.py"));
    Some(command)
}
