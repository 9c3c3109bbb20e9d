//! H2O: files, and a proxy for the rest.

use std::process::Command;

use tests::process::as_root;

use super::{Program, SERVER};
use crate::features::Feature::*;
use crate::quirk::Quirk;
use crate::running::Setup;

pub(crate) const H2O: Program = Program {
    name: "H2O",
    forwards: true,
    command,
    lacks: &[AnnouncedEnd, HalfClose, Trailers, Zstd],
    copes: &[(Refusal, Quirk::ContinuesThenRefuses)],
    ..SERVER
};

fn command(setup: &Setup<'_>) -> Option<Command> {
    let (root, address, backend) = (setup.root().display(), setup.address, setup.backend());
    let (chain, key) = (setup.site.chain.display(), setup.site.key.display());
    let tls = setup.if_tls(format!(
        "\n  ssl:\n    certificate-file: {chain}\n    key-file: {key}"
    ));
    let user = as_root("user: root\n");
    let paths: String = ["/echo", "/chunked", "/trailers", "/until-close"]
        .iter()
        .map(|path| format!("      {path}:\n        proxy.reverse.url: http://{backend}{path}\n"))
        .collect();
    let configuration = setup.write(
        "h2o.conf",
        format!(
            "{user}listen:\n  host: {ip}\n  port: {port}{tls}\n\
             http1-request-timeout: {idle}\n\
             num-threads: 1\n\
             compress: ON\n\
             hosts:\n  default:\n    paths:\n      /:\n        file.dir: {root}\n{paths}      \
             /empty:\n        mruby.handler: Proc.new {{ [204, {{}}, []] }}\n      \
             /reject:\n        mruby.handler: Proc.new {{ [413, {{}}, []] }}\n",
            ip = address.ip(),
            port = address.port(),
            idle = setup.idle_seconds(),
        ),
    );
    let mut command = Command::new("/usr/bin/h2o");
    command.arg("-c").arg(configuration);
    Some(command)
}
