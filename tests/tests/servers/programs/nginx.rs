//! nginx: files, its own answers, and a proxy for `/echo`.

use std::process::Command;

use tests::process::as_root;

use super::{Program, SERVER};
use crate::features::Feature::*;
use crate::running::Setup;

pub(crate) const NGINX: Program = Program {
    name: "nginx",
    forwards: true,
    command,
    lacks: &[Zstd],
    ..SERVER
};

fn command(setup: &Setup<'_>) -> Option<Command> {
    let user = as_root("user root;");
    let (root, backend, address) = (setup.root().display(), setup.backend(), setup.address);
    let (chain, key) = (setup.site.chain.display(), setup.site.key.display());
    let listen = if setup.is_tls() { "ssl" } else { "" };
    let tls = setup.if_tls(format!(
        "ssl_certificate {chain}; ssl_certificate_key {key}; ssl_protocols TLSv1.2 TLSv1.3;
         ssl_session_cache shared:tls:1m;"
    ));
    let requests = if setup.is_ending() { 5 } else { 1000 };
    let idle = setup.idle_seconds();
    let configuration = setup.write(
        "nginx.conf",
        format!(
            "load_module /usr/lib/nginx/modules/ngx_http_brotli_filter_module.so;
             {user} daemon off; pid nginx.pid; worker_processes 1; error_log stderr;
             events {{ worker_connections 1024; }}
             http {{
               access_log off;
               client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi;
               scgi_temp_path scgi;
               types {{ text/plain txt; }}
               keepalive_timeout {idle}s; keepalive_requests {requests};
               gzip on; gzip_types text/plain; brotli on; brotli_types text/plain;
               client_max_body_size 32m;
               server {{
                 listen {address} {listen}; root \"{root}\"; {tls}
                 location = /empty {{ return 204; }}
                 location = /trailers {{ alias \"{root}/text.txt\"; types {{}} default_type text/plain; add_trailer X-Check 3; }}
                 location = /until-close {{ chunked_transfer_encoding off; proxy_pass http://{backend}; }}
                 location = /chunked {{ proxy_pass http://{backend}; }}
                 location = /echo {{ proxy_pass http://{backend}; }}
                 location = /reject {{ client_max_body_size 1k; proxy_pass http://{backend}; }}
               }}
             }}"
        ),
    );
    let mut command = Command::new("/usr/sbin/nginx");
    command
        .arg("-p")
        .arg(setup.place)
        .arg("-c")
        .arg(configuration);
    command.args(["-e", "stderr"]);
    Some(command)
}
