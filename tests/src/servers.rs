//! Real web servers over a directory (nginx, Apache httpd and Python's `http.server`), each with a generated configuration in
//! a temporary directory, on a free port, as the current user, stopped on drop.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;

use crate::process::{LOG, Process, as_root};
use crate::script::PATIENCE;

/// A running server.
#[derive(Debug)]
pub struct WebServer {
    kind: Kind,
    process: Process,
}

/// Which server to run, and what in its configuration matters to a test.
#[derive(Clone, Debug)]
pub enum Kind {
    /// nginx with `autoindex`; `extra` goes into its `server` block, and may limit by the zones `connections` and
    /// `requests`, the latter of 100 a second.
    Nginx {
        /// Directives, each with its semicolon.
        extra: String,
    },
    /// Apache httpd with `mod_autoindex`.
    Apache {
        /// The arguments of `IndexOptions`; empty for a plain list.
        index_options: String,
        /// Further directives, one per line.
        extra: String,
    },
    /// `python3 -m http.server`.
    Python,
}

impl Kind {
    /// nginx without more.
    pub fn nginx() -> Self {
        Self::Nginx {
            extra: String::new(),
        }
    }
}

impl WebServer {
    /// Starts a server over `root` and waits until it accepts connections.
    ///
    /// # Panics
    /// When the server is not installed or does not come up; its error log is in the message.
    pub fn start(kind: Kind, root: &Path) -> Self {
        let process = Process::start(|at, directory| Some(command(&kind, at, root, directory)));
        let process = process.expect("a command");
        Self { kind, process }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.process.address()
    }

    /// The URL of its root directory.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address())
    }

    /// Stops the server, so that its log is complete, and returns the request lines that it logged, in order.
    pub fn stop(mut self) -> Vec<Vec<u8>> {
        // So that it finishes what it is answering and logging.
        let (gracefully, log) = match self.kind {
            Kind::Nginx { .. } => (Signal::QUIT, ACCESS_LOG),
            Kind::Apache { .. } => (Signal::WINCH, ACCESS_LOG),
            // It logs before it answers. INT may be ignored here, as for what a shell has put in the background.
            Kind::Python => (Signal::TERM, LOG),
        };
        self.process.end(gracefully, PATIENCE);
        let log = self.process.written(log);
        let lines = log.split(|byte| *byte == b'\n');
        lines
            .filter_map(|line| match self.kind {
                // "GET / HTTP/1.1" 200 -, between quotes and after the date
                Kind::Python => line.split(|byte| *byte == b'"').nth(1),
                _ => Some(line),
            })
            .filter(|line| !line.is_empty())
            .map(<[u8]>::to_vec)
            .collect()
    }
}

/// The command that runs the server in the foreground, with its configuration written to `directory`.
fn command(kind: &Kind, address: SocketAddr, root: &Path, directory: &Path) -> Command {
    match kind {
        Kind::Nginx { extra } => {
            let text = nginx_configuration(address, root, extra);
            let mut command = Command::new("/usr/sbin/nginx");
            command.arg("-p").arg(directory).arg("-c");
            command.arg(write(directory, &text));
            command.args(["-e", ERROR_LOG]);
            command
        }
        Kind::Apache {
            index_options,
            extra,
        } => {
            let text = apache_configuration(address, root, directory, index_options, extra);
            let mut command = Command::new("/usr/sbin/apache2");
            command.args(["-D", "FOREGROUND", "-f"]);
            command.arg(write(directory, &text));
            command
        }
        Kind::Python => {
            let mut command = Command::new("python3");
            command.args(["-u", "-c", PYTHON_SERVER, "--bind"]);
            command.arg(address.ip().to_string());
            command.arg("--directory").arg(root);
            command.arg(address.port().to_string());
            command
        }
    }
}

fn nginx_configuration(listen: SocketAddr, root: &Path, extra: &str) -> String {
    let root = root.display();
    // A master that runs as root gives its workers to another user unless told otherwise.
    let user = as_root("user root;");
    format!(
        "{user} daemon off; pid nginx.pid; worker_processes 1; error_log {ERROR_LOG};
         events {{ worker_connections 1024; }}
         http {{
           log_format line escape=none $request;
           access_log {ACCESS_LOG} line;
           client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi;
           scgi_temp_path scgi;
           limit_conn_zone $server_port zone=connections:1m;
           limit_req_zone $server_port zone=requests:1m rate=100r/s;
           server {{ listen {listen}; root \"{root}\"; autoindex on; charset utf-8; {extra} }}
         }}"
    )
}

fn apache_configuration(
    address: SocketAddr,
    root: &Path,
    directory: &Path,
    index_options: &str,
    extra: &str,
) -> String {
    let (root, directory) = (root.display(), directory.display());
    let modules: String = [
        "mpm_event",
        "authz_core",
        "mime",
        "dir",
        "alias",
        "autoindex",
    ]
    .iter()
    .map(|name| format!("LoadModule {name}_module {APACHE_MODULES}/mod_{name}.so\n"))
    .collect();
    // It refuses to serve as root, and then needs a user of its own.
    let user = as_root("User www-data\nGroup www-data");
    let index_options = if index_options.is_empty() {
        String::new()
    } else {
        format!("IndexOptions {index_options}")
    };
    format!(
        "{modules}
         ServerRoot {directory}
         ServerName localhost
         Listen {address}
         {user}
         PidFile {directory}/httpd.pid
         DefaultRuntimeDir {directory}
         ErrorLog {directory}/{ERROR_LOG}
         LogFormat %r line
         CustomLog {directory}/{ACCESS_LOG} line
         TypesConfig /dev/null
         DocumentRoot \"{root}\"
         AddIcon /icons/folder.gif ^^DIRECTORY^^
         DefaultIcon /icons/unknown.gif
         <Directory \"{root}\">
           Options Indexes FollowSymLinks
           Require all granted
           {index_options}
         </Directory>
         {extra}\n"
    )
}

fn write(directory: &Path, configuration: &str) -> PathBuf {
    let path = directory.join("server.conf");
    fs::write(&path, configuration).expect("write the configuration");
    path
}

/// `python3 -m http.server`, with room for more than five connections that are not accepted yet: beyond these the system
/// drops the first packet, and each repetition of it costs a second and more.
const PYTHON_SERVER: &str = "import runpy, socketserver\n\
    socketserver.TCPServer.request_queue_size = 128\n\
    runpy.run_module('http.server', run_name='__main__')";
const ACCESS_LOG: &str = "access.log";
const ERROR_LOG: &str = "error.log";
const APACHE_MODULES: &str = "/usr/lib/apache2/modules";
