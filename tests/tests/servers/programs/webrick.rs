//! Ruby's WEBrick: files by its own handler, the rest by an application.

use std::process::Command;

use super::{Program, Script};
use crate::features::Feature;
use crate::quirk::Quirk;
use crate::running::{Setup, data};
use crate::site;

pub(crate) const WEBRICK: Program = Program {
    name: "WEBrick",
    packages: "ruby-webrick",
    installed_by: Some(Script::Long),
    files: &[
        "/usr/bin/ruby",
        "/usr/share/rubygems-integration/all/specifications/webrick-1.8.1.gemspec",
    ],
    forwards: false,
    hello: site::HELLO,
    command,
    lacks: &[
        Feature::HalfClose,
        Feature::Trailers,
        Feature::Brotli,
        Feature::Zstd,
    ],
    copes: &[
        (Feature::TlsPipelining, Quirk::ForgetsRequests),
        (Feature::Range, Quirk::UnsatisfiableWithoutLength),
        (Feature::Refusal, Quirk::NeverContinues),
        (Feature::NotModified, Quirk::IgnoresDates),
    ],
};

fn command(setup: &Setup<'_>) -> Option<Command> {
    let mut command = setup.application("/usr/bin/ruby");
    command.arg(data("webrick.rb"));
    Some(command)
}
