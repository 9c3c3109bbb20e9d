//! Apache httpd: files, and a proxy for `/echo`.

use std::process::Command;

use tests::process::as_root;

use super::{Program, SERVER};
use crate::features::Feature::*;
use crate::running::Setup;

pub(crate) const APACHE: Program = Program {
    name: "Apache httpd",
    forwards: true,
    command,
    lacks: &[Trailers, Zstd],
    ..SERVER
};

fn command(setup: &Setup<'_>) -> Option<Command> {
    let modules: String = MODULES
        .iter()
        .map(|name| format!("LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so\n"))
        .collect();
    let (root, place) = (setup.root().display(), setup.place.display());
    let (backend, address, idle) = (setup.backend(), setup.address, setup.idle_seconds());
    let (chain, key) = (setup.site.chain.display(), setup.site.key.display());
    let requests = if setup.is_ending() { 5 } else { 0 };
    let user = as_root("User www-data\nGroup www-data");
    let tls = setup.if_tls(format!(
        "SSLEngine on\nSSLCertificateFile {chain}\nSSLCertificateKeyFile {key}\n
         SSLSessionCache shmcb:{place}/sessions(512000)\n"
    ));
    let configuration = setup.write(
        "httpd.conf",
        format!(
            "{modules}
             ServerRoot {place}
             ServerName localhost
             Listen {address}
             {user}
             PidFile {place}/httpd.pid
             DefaultRuntimeDir {place}
             ErrorLog {place}/error.log
             TypesConfig /dev/null
             AddType text/plain .txt
             KeepAliveTimeout {idle}
             MaxKeepAliveRequests {requests}
             DocumentRoot \"{root}\"
             <Directory \"{root}\">
               Require all granted
             </Directory>
             AddOutputFilterByType BROTLI_COMPRESS;DEFLATE text/plain
             RewriteEngine on
             RewriteRule ^/empty$ - [R=204,L]
             ProxyPass /echo http://{backend}/echo
             ProxyPass /chunked http://{backend}/chunked
             ProxyPass /trailers http://{backend}/trailers
             ProxyPass /until-close http://{backend}/until-close
             SetEnvIf Request_URI ^/until-close$ downgrade-1.0 force-response-1.0 nokeepalive
             RewriteRule ^/reject$ - [R=413,L]
             {tls}\n"
        ),
    );
    let mut command = Command::new("/usr/sbin/apache2");
    command.args(["-D", "FOREGROUND", "-f"]).arg(configuration);
    Some(command)
}

const MODULES: &[&str] = &[
    "mpm_event",
    "authz_core",
    "mime",
    "filter",
    "deflate",
    "brotli",
    "setenvif",
    "rewrite",
    "proxy",
    "proxy_http",
    "socache_shmcb",
    "ssl",
];
