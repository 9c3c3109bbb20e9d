//! Squid as an accelerator in front of the application.

use std::process::Command;

use super::{Program, SERVER};
use crate::features::Feature::*;
use crate::running::Setup;

pub(crate) const SQUID: Program = Program {
    name: "Squid",
    forwards: true,
    command,
    lacks: &[AnnouncedEnd, HalfClose, Trailers, Brotli, Zstd],
    ..SERVER
};

fn command(setup: &Setup<'_>) -> Option<Command> {
    let (address, backend, place) = (setup.address, setup.backend(), setup.place.display());
    let (chain, key) = (setup.site.chain.display(), setup.site.key.display());
    let idle = setup.idle_seconds();
    let port = if setup.is_tls() {
        format!("https_port {address} accel defaultsite=localhost tls-cert={chain} tls-key={key}")
    } else {
        format!("http_port {address} accel defaultsite=localhost")
    };
    let configuration = setup.write(
        "squid.conf",
        format!(
            "{port}\n\
             cache_peer {host} parent {backend_port} 0 no-query no-digest no-netdb-exchange originserver name=back\n\
             http_access allow all\n\
             access_log none\n\
             cache_log {place}/cache.log\n\
             cache_store_log none\n\
             pid_filename {place}/squid.pid\n\
             coredump_dir {place}\n\
             netdb_filename none\n\
             pinger_enable off\n\
             visible_hostname localhost\n\
             client_idle_pconn_timeout {idle} seconds\n\
             pipeline_prefetch 10\n\
             shutdown_lifetime 0 seconds\n",
            host = backend.ip(),
            backend_port = backend.port(),
        ),
    );
    let mut command = Command::new("/usr/sbin/squid");
    command.arg("-N").arg("-f").arg(configuration);
    Some(command)
}
