//! Starman.

use std::process::Command;

use super::{Program, Script};
use crate::features::Feature;
use crate::quirk::Quirk;
use crate::running::{Setup, data};
use crate::site;

pub(crate) const STARMAN: Program = Program {
    name: "Starman",
    packages: "starman",
    installed_by: Some(Script::Long),
    files: &["/usr/bin/starman"],
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
        Feature::Tls12,
        Feature::Tls13,
        Feature::Resumption,
        Feature::TlsPipelining,
    ],
    copes: &[(Feature::Refusal, Quirk::ContinuesThenRefuses)],
};

fn command(setup: &Setup<'_>) -> Option<Command> {
    if setup.is_tls() {
        return None;
    }
    let mut command = setup.application("/usr/bin/starman");
    command.args(["--env", "deployment", "--workers", "20", "--listen"]);
    command.arg(setup.address.to_string());
    command
        .arg("--keepalive-timeout")
        .arg(setup.idle_seconds().to_string());
    command.arg(data("app.psgi"));
    Some(command)
}
