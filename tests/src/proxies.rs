//! Real proxies (tinyproxy and microsocks), each on a free port, stopped on drop.

use std::fs::{self, File};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::port::Port;
use crate::script::PATIENCE;

/// A running proxy that asks for a user and a password.
#[derive(Debug)]
pub struct ProxyServer {
    port: Port,
    child: Child,
    _directory: TempDir,
}

/// What a [`ProxyServer`] lets in.
pub const PROXY_USER: (&str, &str) = ("user", "secret");

impl ProxyServer {
    /// tinyproxy, an HTTP proxy.
    ///
    /// # Panics
    /// When it is not installed or does not come up.
    pub fn tinyproxy() -> Self {
        let (user, password) = PROXY_USER;
        Self::start(|address, directory| {
            let configuration = format!(
                "Port {}\nListen {}\nTimeout 60\nMaxClients 50\nAllow 127.0.0.1\n\
                 BasicAuth {user} {password}\n",
                address.port(),
                address.ip()
            );
            let mut command = Command::new("tinyproxy");
            command.arg("-d").arg("-c");
            let path = directory.join("server.conf");
            fs::write(&path, configuration).expect("write the configuration");
            command.arg(path);
            command
        })
    }

    /// microsocks, a SOCKS5 proxy.
    ///
    /// # Panics
    /// When it is not installed or does not come up.
    pub fn microsocks() -> Self {
        let (user, password) = PROXY_USER;
        Self::start(|address, _| {
            let mut command = Command::new("microsocks");
            let port = address.port().to_string();
            command.args(["-i", &address.ip().to_string(), "-p", &port]);
            command.args(["-u", user, "-P", password]);
            command
        })
    }

    fn start(command: impl Fn(SocketAddr, &Path) -> Command) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let port = Port::reserve().expect("a free port");
        let mut command = command(port.address(), directory.path());
        let log = directory.path().join("error.log");
        let output = File::create(&log).expect("a log file");
        command.stdout(output.try_clone().expect("a log file"));
        let child = command.stderr(output).spawn();
        let mut proxy = Self {
            child: child.unwrap_or_else(|error| panic!("{command:?} does not run here: {error}")),
            port,
            _directory: directory,
        };
        let started = Instant::now();
        while TcpStream::connect(proxy.port.address()).is_err() {
            let over = !matches!(proxy.child.try_wait(), Ok(None));
            let log = fs::read_to_string(&log).unwrap_or_default();
            assert!(
                !over && started.elapsed() < PATIENCE,
                "{command:?} is not up: {log}"
            );
            thread::sleep(RETRY_INTERVAL);
        }
        proxy
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }
}

impl Drop for ProxyServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Between two looks at a proxy that is starting.
const RETRY_INTERVAL: Duration = Duration::from_millis(5);
