//! Varnish in front of the application.

use std::process::Command;

use super::{Program, SERVER};
use crate::features::Feature::*;
use crate::quirk::Quirk;
use crate::running::Setup;

pub(crate) const VARNISH: Program = Program {
    name: "Varnish",
    forwards: true,
    command,
    lacks: &[
        AnnouncedEnd,
        HalfClose,
        Chunked,
        Trailers,
        Brotli,
        Zstd,
        Tls12,
        Tls13,
        Resumption,
    ],
    copes: &[(Refusal, Quirk::ContinuesThenRefuses)],
    ..SERVER
};

fn command(setup: &Setup<'_>) -> Option<Command> {
    if setup.is_tls() {
        return None;
    }
    let backend = setup.backend();
    let configuration = setup.write(
        "default.vcl",
        format!(
            "vcl 4.1;
             backend default {{ .host = \"{host}\"; .port = \"{port}\"; }}
             sub vcl_recv {{
               if (req.url == \"/empty\") {{ return (synth(204)); }}
               if (req.url == \"/reject\") {{ return (synth(413)); }}
             }}
             sub vcl_backend_response {{
               # Otherwise the framing depends on who is faster.
               set beresp.do_stream = false;
               if (bereq.url == \"/text.txt\") {{ set beresp.do_gzip = true; }}
             }}\n",
            host = backend.ip(),
            port = backend.port()
        ),
    );
    let mut command = Command::new("/usr/sbin/varnishd");
    command.args(["-F", "-j", "none", "-T", "none", "-s", "malloc,16m"]);
    command.arg("-a").arg(setup.address.to_string());
    command.arg("-f").arg(configuration);
    command.arg("-n").arg(setup.place.join("varnish"));
    command
        .arg("-p")
        .arg(format!("timeout_idle={}", setup.idle_seconds()));
    Some(command)
}
