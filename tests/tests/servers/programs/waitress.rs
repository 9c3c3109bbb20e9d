//! waitress.

use std::process::Command;

use super::{Program, Script};
use crate::features::Feature;
use crate::quirk::Quirk;
use crate::running::{Setup, data};
use crate::site;

pub(crate) const WAITRESS: Program = Program {
    name: "waitress",
    packages: "python3-waitress",
    installed_by: Some(Script::Long),
    files: &["/usr/lib/python3/dist-packages/waitress/__init__.py"],
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
    copes: &[
        (Feature::Head, Quirk::ClosesAfterHead),
        (Feature::NoContent, Quirk::ClosesAfterNoContent),
        (Feature::Refusal, Quirk::ContinuesThenRefuses),
    ],
};

fn command(setup: &Setup<'_>) -> Option<Command> {
    if setup.is_tls() {
        return None;
    }
    let mut command = setup.application("/usr/bin/python3");
    command.arg(data("waitress_server.py"));
    Some(command)
}
