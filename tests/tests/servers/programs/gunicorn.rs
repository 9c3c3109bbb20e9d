//! gunicorn with threads.

use std::process::Command;

use super::{Program, Script};
use crate::features::Feature;
use crate::quirk::Quirk;
use crate::running::{Setup, data};
use crate::site;

pub(crate) const GUNICORN: Program = Program {
    name: "gunicorn",
    packages: "gunicorn",
    installed_by: Some(Script::Long),
    files: &["/usr/bin/gunicorn"],
    forwards: false,
    hello: site::HELLO,
    command,
    lacks: &[
        Feature::AnnouncedEnd,
        Feature::HalfClose,
        Feature::Trailers,
        Feature::Brotli,
        Feature::Zstd,
        Feature::Resumption,
    ],
    copes: &[
        (Feature::Refusal, Quirk::ContinuesThenRefuses),
        (Feature::Pipelining, Quirk::ForgetsRequests),
        (Feature::TlsPipelining, Quirk::ForgetsRequests),
    ],
};

fn command(setup: &Setup<'_>) -> Option<Command> {
    let mut command = setup.application("/usr/bin/gunicorn");
    command.args(["--worker-class", "gthread", "--threads", "8"]);
    command
        .arg("--keep-alive")
        .arg(setup.idle_seconds().to_string());
    command.arg("--bind").arg(setup.address.to_string());
    command.arg("--worker-tmp-dir").arg(setup.place);
    command.arg("--pythonpath").arg(data(""));
    if setup.is_tls() {
        command.arg("--certfile").arg(&setup.site.chain);
        command.arg("--keyfile").arg(&setup.site.key);
    }
    command.arg("wsgi:application");
    Some(command)
}
