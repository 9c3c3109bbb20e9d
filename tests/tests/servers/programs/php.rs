//! PHP's built-in server.

use std::process::Command;

use super::{Program, Script};
use crate::features::Feature;
use crate::quirk::Quirk;
use crate::running::{Setup, data};
use crate::site;

pub(crate) const PHP: Program = Program {
    name: "PHP built-in",
    packages: "php-cli",
    installed_by: Some(Script::Long),
    files: &["/usr/bin/php"],
    forwards: false,
    hello: site::HELLO,
    command,
    lacks: &[
        Feature::KeepAlive,
        Feature::IdleEnd,
        Feature::Chunked,
        Feature::Trailers,
        Feature::Brotli,
        Feature::Zstd,
        Feature::Tls12,
        Feature::Tls13,
        Feature::Resumption,
        Feature::TlsPipelining,
    ],
    copes: &[
        (Feature::Continue, Quirk::NeverContinues),
        (Feature::Refusal, Quirk::NeverContinues),
        (Feature::Pipelining, Quirk::NoPipelining),
    ],
};

fn command(setup: &Setup<'_>) -> Option<Command> {
    if setup.is_tls() {
        return None;
    }
    let mut command = setup.application("/usr/bin/php");
    command.args(["-d", "post_max_size=64M", "-S"]);
    command.arg(setup.address.to_string());
    command.arg("-t").arg(setup.root()).arg(data("router.php"));
    Some(command)
}
