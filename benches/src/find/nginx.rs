//! Runs nginx for a directory, with limits and delays, and reads its log.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::process::{installed, spawn_on};

/// A running nginx. It stops when dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) url: String,
    log: PathBuf,
}

/// The counts from the log.
pub(crate) struct Log {
    pub(crate) requests: usize,
    /// Connections with at least one request.
    pub(crate) connections: usize,
}

/// Requests per second that the zone `requests` allows.
pub(super) const RATE: u32 = 300;

impl Server {
    /// Starts nginx. `directives` are those of the requested location. They can continue at `@listing`, and limit with
    /// the zones `connections` and `requests`.
    pub(crate) fn start(
        place: &Path,
        root: &Path,
        directives: &str,
        core: usize,
    ) -> Result<Self, Box<dyn Error>> {
        let nginx = match installed("nginx") {
            true => "nginx",
            false => "/usr/sbin/nginx",
        };
        // The port was free just now; nginx cannot choose a free port itself.
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let log = place.join("access.log");
        let mut config = String::new();
        // Under root, the worker would run as a user without permission to read here.
        if rustix::process::geteuid().is_root() {
            config.push_str("user root; ");
        }
        if directives.contains("echo_") {
            writeln!(config, "load_module {ECHO};")?;
        }
        writeln!(
            config,
            "daemon off; worker_processes 1; pid {pid}; error_log {errors} crit;\n\
             events {{ worker_connections 4096; }}\n\
             http {{ log_format connection $connection;\n\
             access_log {log} connection buffer=64k flush=1s; keepalive_requests 100000000;\n\
             limit_conn_zone $server_port zone=connections:1m;\n\
             limit_req_zone $server_port zone=requests:1m rate={RATE}r/s;\n\
             server {{ listen 127.0.0.1:{port}; root {root}; autoindex on;\n\
             location / {{ {directives} }} location @listing {{ }} }} }}",
            pid = place.join("pid").display(),
            errors = place.join("errors.log").display(),
            log = log.display(),
            root = root.display(),
        )?;
        let file = place.join("nginx.conf");
        fs::write(&file, config)?;
        let mut command = Command::new(nginx);
        command.arg("-p").arg(place).arg("-c").arg(&file);
        command.stdin(Stdio::null());
        let child = spawn_on(core, &mut command)?;
        let server = Self {
            child,
            url: format!("http://127.0.0.1:{port}/"),
            log,
        };
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if began.elapsed() > Duration::from_secs(10) {
                return Err("nginx did not start".into());
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(server)
    }

    /// Empties the log after the requests of the last client were written to it.
    pub(crate) fn forget(&self) -> Result<(), Box<dyn Error>> {
        self.log()?;
        fs::OpenOptions::new()
            .write(true)
            .open(&self.log)?
            .set_len(0)?;
        Ok(())
    }

    /// The counts from the log, after all requests were written to it.
    pub(crate) fn log(&self) -> Result<Log, Box<dyn Error>> {
        let mut last = None;
        loop {
            thread::sleep(Duration::from_millis(1200)); // nginx flushes the log every second
            let log = fs::read_to_string(&self.log)?;
            // After truncation, nginx continues at its old offset; the hole reads as NULs.
            let lines = log.lines().map(|line| line.trim_start_matches('\0'));
            let requests = lines.clone().count();
            if last.replace(requests) == Some(requests) {
                let connections: BTreeSet<&str> = lines.collect();
                return Ok(Log {
                    requests,
                    connections: connections.len(),
                });
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // SIGTERM also ends the worker; SIGKILL would leave it running.
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let _ = self.child.wait();
    }
}

/// The path on Debian, from the package of nginx-light.
const ECHO: &str = "/usr/lib/nginx/modules/ngx_http_echo_module.so";
