//! Puma.

use std::process::Command;

use super::{Program, Script};
use crate::features::Feature;
use crate::quirk::Quirk;
use crate::running::{Setup, data};
use crate::site;

pub(crate) const PUMA: Program = Program {
    name: "Puma",
    packages: "puma",
    installed_by: Some(Script::Long),
    files: &["/usr/bin/puma"],
    forwards: false,
    hello: site::HELLO,
    command,
    lacks: &[
        Feature::HalfClose,
        Feature::Trailers,
        Feature::Brotli,
        Feature::Zstd,
    ],
    copes: &[(Feature::Refusal, Quirk::ContinuesThenRefuses)],
};

fn command(setup: &Setup<'_>) -> Option<Command> {
    let (address, idle) = (setup.address, setup.idle_seconds());
    let (chain, key) = (setup.site.chain.display(), setup.site.key.display());
    let bind = if setup.is_tls() {
        format!("ssl://{address}?cert={chain}&key={key}")
    } else {
        format!("tcp://{address}")
    };
    let text = format!("bind \"{bind}\"\nthreads 8, 8\npersistent_timeout {idle}\n");
    let configuration = setup.write("puma.rb", text);
    let mut command = setup.application("/usr/bin/puma");
    command.args(["-e", "production", "-C"]).arg(configuration);
    command.arg(data("config.ru"));
    Some(command)
}
