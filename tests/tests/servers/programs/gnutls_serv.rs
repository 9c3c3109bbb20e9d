//! `gnutls-serv`: one page over TLS.

use std::process::Command;

use super::{Program, SERVER};
use crate::features::Feature::*;
use crate::running::Setup;

pub(crate) const GNUTLS_SERV: Program = Program {
    name: "gnutls-serv",
    hello: b"",
    command,
    // All but TLS.
    lacks: &[
        KeepAlive,
        AnnouncedEnd,
        IdleEnd,
        HalfClose,
        Head,
        NotModified,
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
        Pipelining,
    ],
    ..SERVER
};

fn command(setup: &Setup<'_>) -> Option<Command> {
    if !setup.is_tls() {
        return None;
    }
    let mut command = Command::new("/usr/bin/gnutls-serv");
    command
        .args(["--http", "--quiet", "--port"])
        .arg(setup.port());
    command.arg("--x509certfile").arg(&setup.site.chain);
    command.arg("--x509keyfile").arg(&setup.site.key);
    Some(command)
}
