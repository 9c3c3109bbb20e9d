//! mini_httpd: files.

use std::process::Command;

use super::{Program, SERVER};
use crate::features::Feature::*;
use crate::quirk::Quirk;
use crate::running::Setup;

pub(crate) const MINI_HTTPD: Program = Program {
    name: "mini_httpd",
    command,
    lacks: &[
        KeepAlive,
        AnnouncedEnd,
        IdleEnd,
        HalfClose,
        NoContent,
        Chunked,
        Trailers,
        Continue,
        Refusal,
        EarlyAnswer,
        Upload,
        ChunkedUpload,
        Gzip,
        Brotli,
        Zstd,
    ],
    copes: &[(Pipelining, Quirk::NoPipelining)],
    ..SERVER
};

fn command(setup: &Setup<'_>) -> Option<Command> {
    if setup.is_ending() {
        return None;
    }
    let mut command = Command::new("/usr/sbin/mini_httpd");
    command.arg("-D").arg("-d").arg(setup.root());
    command.arg("-h").arg(setup.address.ip().to_string());
    command.arg("-p").arg(setup.port());
    command.arg("-i").arg(setup.place.join("pid"));
    if rustix::process::geteuid().is_root() {
        command.args(["-u", "root"]);
    }
    if setup.is_tls() {
        command.arg("-S").arg("-E").arg(setup.certificate_and_key());
    }
    Some(command)
}
