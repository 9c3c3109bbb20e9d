//! lighttpd: files, and a proxy for the rest.

use std::process::Command;

use super::{Program, SERVER};
use crate::features::Feature::*;
use crate::quirk::Quirk;
use crate::running::Setup;

pub(crate) const LIGHTTPD: Program = Program {
    name: "lighttpd",
    forwards: true,
    command,
    lacks: &[HalfClose, Chunked],
    copes: &[(Trailers, Quirk::TrailerInHead)],
    ..SERVER
};

fn command(setup: &Setup<'_>) -> Option<Command> {
    let (root, address, backend) = (setup.root().display(), setup.address, setup.backend());
    let (chain, key) = (setup.site.chain.display(), setup.site.key.display());
    let tls = setup.if_tls(format!(
        "ssl.engine = \"enable\"\nssl.pemfile = \"{chain}\"\nssl.privkey = \"{key}\"\n"
    ));
    let requests = if setup.is_ending() { 5 } else { 1_000_000 };
    let configuration = setup.write(
        "lighttpd.conf",
        format!(
            "server.modules = (\"mod_deflate\", \"mod_proxy\", \"mod_openssl\")
             server.document-root = \"{root}\"
             server.bind = \"{ip}\"
             server.port = {port}
             server.max-keep-alive-requests = {requests}
             server.max-keep-alive-idle = {idle}
             mimetype.assign = (\".txt\" => \"text/plain\", \"\" => \"application/octet-stream\")
             deflate.mimetypes = (\"text/plain\")
             deflate.allowed-encodings = (\"gzip\", \"brotli\", \"zstd\")
             {tls}
             $HTTP[\"url\"] =~ \"^/(echo|empty|chunked|trailers|until-close|reject)$\" {{
               proxy.server = (\"\" => ((\"host\" => \"{host}\", \"port\" => {backend_port})))
             }}
             $HTTP[\"url\"] == \"/reject\" {{
               server.max-request-size = 1
             }}\n",
            ip = address.ip(),
            port = address.port(),
            idle = setup.idle_seconds(),
            host = backend.ip(),
            backend_port = backend.port(),
        ),
    );
    let mut command = Command::new("/usr/sbin/lighttpd");
    command.arg("-D").arg("-f").arg(configuration);
    Some(command)
}
