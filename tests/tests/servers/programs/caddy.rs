//! Caddy: files, its own answers, and a proxy for the rest.

use std::process::Command;

use super::{Program, SERVER};
use crate::features::Feature;
use crate::running::Setup;

pub(crate) const CADDY: Program = Program {
    name: "Caddy",
    packages: "caddy",
    installed_by: None,
    files: &["/usr/bin/caddy"],
    forwards: true,
    command,
    lacks: &[Feature::HalfClose, Feature::Brotli],
    ..SERVER
};

fn command(setup: &Setup<'_>) -> Option<Command> {
    let (root, address, backend) = (setup.root().display(), setup.address, setup.backend());
    let (chain, key) = (setup.site.chain.display(), setup.site.key.display());
    let scheme = if setup.is_tls() { "https" } else { "http" };
    let tls = setup.if_tls(format!("tls {chain} {key}"));
    let idle = setup.idle_seconds();
    let configuration = setup.write(
        "Caddyfile",
        format!(
            "{{
               admin off
               auto_https off
               servers {{
                 timeouts {{
                   idle {idle}s
                 }}
               }}
             }}
             {scheme}://{address} {{
               {tls}
               root * {root}
               encode gzip zstd
               respond /empty 204
               respond /reject 413
               respond /close bye 200 {{
                 close
               }}
               reverse_proxy /echo {backend}
               reverse_proxy /chunked {backend}
               reverse_proxy /trailers {backend}
               reverse_proxy /until-close {backend}
               file_server
             }}\n"
        ),
    );
    let mut command = Command::new("/usr/bin/caddy");
    command.args(["run", "--adapter", "caddyfile", "--config"]);
    command.arg(configuration);
    Some(command)
}
