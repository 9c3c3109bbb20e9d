//! webfs: files.

use std::process::Command;

use super::{Program, Script};
use crate::features::Feature;
use crate::quirk::Quirk;
use crate::running::Setup;
use crate::site;

pub(crate) const WEBFS: Program = Program {
    name: "webfs",
    packages: "webfs",
    installed_by: Some(Script::Long),
    files: &["/usr/bin/webfsd"],
    forwards: false,
    hello: site::HELLO,
    command,
    lacks: &[
        Feature::AnnouncedEnd,
        Feature::HalfClose,
        Feature::NoContent,
        Feature::Chunked,
        Feature::Trailers,
        Feature::Continue,
        Feature::Refusal,
        Feature::EarlyAnswer,
        Feature::Upload,
        Feature::ChunkedUpload,
        Feature::Gzip,
        Feature::Brotli,
        Feature::Zstd,
        Feature::Tls12,
        Feature::Tls13,
        Feature::Resumption,
        Feature::TlsPipelining,
    ],
    copes: &[(Feature::Range, Quirk::RangePastTheEnd)],
};

fn command(setup: &Setup<'_>) -> Option<Command> {
    if setup.is_tls() {
        return None;
    }
    let mut command = Command::new("/usr/bin/webfsd");
    command.arg("-F").arg("-r").arg(setup.root());
    command.arg("-i").arg(setup.address.ip().to_string());
    command.arg("-p").arg(setup.port());
    command.arg("-t").arg(setup.idle_seconds().to_string());
    Some(command)
}
