//! `openssl s_server -WWW`: files over TLS.

use std::process::Command;

use super::{Program, SERVER};
use crate::features::Feature;
use crate::quirk::Quirk;
use crate::running::Setup;

pub(crate) const S_SERVER: Program = Program {
    name: "openssl s_server",
    packages: "openssl",
    files: &["/usr/bin/openssl"],
    command,
    lacks: super::ALL_BUT_TLS,
    copes: &[(Feature::TlsPipelining, Quirk::NoPipelining)],
    ..SERVER
};

fn command(setup: &Setup<'_>) -> Option<Command> {
    if !setup.is_tls() {
        return None;
    }
    let mut command = Command::new("/usr/bin/env");
    command.arg("--chdir").arg(setup.root());
    command.args(["/usr/bin/openssl", "s_server", "-WWW", "-accept"]);
    command.arg(setup.address.to_string());
    command.arg("-cert").arg(&setup.site.chain);
    command.arg("-key").arg(&setup.site.key);
    Some(command)
}
