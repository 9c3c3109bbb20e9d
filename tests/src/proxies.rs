//! Real proxies (tinyproxy and microsocks), each on a free port, stopped on drop.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use crate::process::Process;

/// A running proxy that asks for a user and a password.
#[derive(Debug)]
pub struct ProxyServer(Process);

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
        let process = Process::start(|address, directory| Some(command(address, directory)));
        Self(process.expect("a command"))
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.0.address()
    }
}
