//! `gnutls-serv`: one page over TLS.

use std::process::Command;

use super::{Program, SERVER};
use crate::running::Setup;

pub(crate) const GNUTLS_SERV: Program = Program {
    name: "gnutls-serv",
    packages: "gnutls-bin",
    files: &["/usr/bin/gnutls-serv"],
    hello: b"",
    command,
    lacks: super::ALL_BUT_TLS,
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
