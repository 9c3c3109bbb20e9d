//! HAProxy in front of the application.

use std::process::Command;

use super::{Program, SERVER};
use crate::features::Feature::*;
use crate::running::Setup;

pub(crate) const HAPROXY: Program = Program {
    name: "HAProxy",
    forwards: true,
    command,
    lacks: &[AnnouncedEnd, Brotli, Zstd],
    ..SERVER
};

fn command(setup: &Setup<'_>) -> Option<Command> {
    let (address, backend, idle) = (setup.address, setup.backend(), setup.idle_seconds());
    let tls = setup.if_tls(format!("ssl crt {}", setup.certificate_and_key().display()));
    let configuration = setup.write(
        "haproxy.conf",
        format!(
            "defaults
               mode http
               timeout connect 10s
               timeout client 30s
               timeout server 30s
               timeout http-keep-alive {idle}s
             frontend front
               bind {address} {tls}
               http-request return status 204 if {{ path /empty }}
               http-request return status 413 if {{ path /reject }}
               compression algo gzip
               compression type text/plain
               default_backend back
             backend back
               server one {backend}\n"
        ),
    );
    let mut command = Command::new("/usr/sbin/haproxy");
    command.arg("-db").arg("-f").arg(configuration);
    Some(command)
}
