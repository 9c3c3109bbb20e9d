//! Options of `crawler-cli get` about connections: from where and how they are made.

use std::time::Duration;

use super::Args;
use super::values::{count, duration, local_ports, name_servers, set};
use crate::cli::option::{self, any};

type Opt = option::Opt<Args>;

pub(super) const CONNECTIONS: &[Opt] = &[
    Opt::bytes(&["--abstract-unix-socket"], &[any("<name>")], |args, v| {
        set(&mut args.group.connect.abstract_socket, v)
    })
    .short("Connect through this Unix socket of the abstract namespace"),
    Opt::bytes(&["--interface"], &[any("<name>")], |args, v| {
        set(&mut args.group.connect.interface, v)
    })
    .short("Connect from this network interface, address or host name")
    .long("Connect from this network interface, or from the address or the host name of this machine. if!NAME is an interface, host!NAME is none."),
    Opt::bytes(&["--local-port"], &[any("<port/range>")], |args, v| {
        local_ports(&mut args.group.connect.local_ports, &v)
    })
    .short("Connect from this port, or from a free one of N-M"),
    Opt::bytes(&["--dns-servers"], &[any("<address,...>")], |args, v| {
        name_servers(&mut args.group.connect.name_servers, &v)
    })
    .short("Ask these name servers, and not /etc/hosts"),
    Opt::switch(&["--keepalive"], |args, on| {
        args.group.connect.no_keepalive = !on
    })
    .short("Send TCP keep-alive probes; this is the default"),
    Opt::bytes(&["--keepalive-time"], &[any("<seconds>")], |args, v| {
        let seconds = count(&v)?;
        let time = Duration::from_secs(seconds.into());
        args.group.connect.keepalive = (seconds > 0).then_some(time);
        Ok(())
    })
    .short("The time between these probes")
    .default("60"),
    Opt::switch(&["--tcp-nodelay"], |args, on| args.group.connect.delay = !on)
        .short("Send small pieces at once; this is the default"),
    Opt::bytes(
        &["--happy-eyeballs-timeout-ms"],
        &[any("<milliseconds>")],
        |args, v| {
            let time = Duration::from_millis(count(&v)?.into());
            args.group.connect.attempt_delay = Some(time);
            Ok(())
        },
    )
    .short("Wait so long before another address is tried as well")
    .default("200"),
    Opt::bytes(&["--expect100-timeout"], &[any("<seconds>")], |args, v| {
        duration(&mut args.group.request.expect_wait, &v)
    })
    .short("Wait so long for 100 (Continue) before a large body")
    .default("1"),
];
