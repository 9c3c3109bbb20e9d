//! uvicorn with h11.

use std::process::Command;

use super::{Program, Script};
use crate::features::Feature;
use crate::running::{Setup, data};
use crate::site;

pub(crate) const UVICORN: Program = Program {
    name: "uvicorn",
    packages: "uvicorn",
    installed_by: Some(Script::Long),
    files: &["/usr/bin/uvicorn"],
    forwards: false,
    hello: site::HELLO,
    command,
    lacks: &[
        Feature::HalfClose,
        Feature::Trailers,
        Feature::Brotli,
        Feature::Zstd,
    ],
    copes: &[],
};

fn command(setup: &Setup<'_>) -> Option<Command> {
    let mut command = setup.application("/usr/bin/uvicorn");
    command.arg("--host").arg(setup.address.ip().to_string());
    command.arg("--port").arg(setup.port());
    command
        .arg("--timeout-keep-alive")
        .arg(setup.idle_seconds().to_string());
    command.args(["--http", "h11", "--app-dir"]).arg(data(""));
    if setup.is_tls() {
        command.arg("--ssl-certfile").arg(&setup.site.chain);
        // By default there are no ciphers with GCM, and so none in common with rustls for TLS 1.2.
        command.args(["--ssl-ciphers", "ECDHE+AESGCM"]);
        command.arg("--ssl-keyfile").arg(&setup.site.key);
    }
    command.arg("asgi:application");
    Some(command)
}
