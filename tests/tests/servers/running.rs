//! A server that runs, in one of its flavors.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use courser::{HostClient, Upstream};
use tests::process::Process;

use crate::matrix::patient;
use crate::programs::Program;
use crate::site::Site;

/// How a server is set up.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Flavor {
    /// Keeps connections for as long as the server can.
    Plain,
    /// Closes a connection that is idle for a second, and after five requests if the server has such a limit.
    Ending,
    /// Speaks TLS 1.2 and 1.3, and remembers sessions.
    Tls,
}

/// What a server needs to know to start.
pub(crate) struct Setup<'a> {
    /// Where to listen.
    pub(crate) address: SocketAddr,
    pub(crate) flavor: Flavor,
    pub(crate) site: &'a Site,
    /// A directory that the server may write to.
    pub(crate) place: &'a Path,
    /// The application that a proxy forwards to.
    backend: Option<SocketAddr>,
}

impl Setup<'_> {
    /// The directory of the files to serve.
    pub(crate) fn root(&self) -> &Path {
        &self.site.root
    }

    pub(crate) fn port(&self) -> String {
        self.address.port().to_string()
    }

    /// The application that a proxy forwards to.
    pub(crate) fn backend(&self) -> SocketAddr {
        self.backend.expect("a server that forwards has a backend")
    }

    pub(crate) fn is_tls(&self) -> bool {
        self.flavor == Flavor::Tls
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.flavor == Flavor::Ending
    }

    /// Seconds until an idle connection is closed.
    pub(crate) fn idle_seconds(&self) -> u32 {
        if self.is_ending() { 1 } else { 60 }
    }

    /// `text` in the flavor with TLS, else nothing.
    pub(crate) fn if_tls(&self, text: impl Into<String>) -> String {
        let text = text.into();
        if self.is_tls() { text } else { String::new() }
    }

    /// Writes a file to the server's directory.
    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.place.join(name);
        fs::write(&path, text).expect("write a file of the server");
        path
    }

    /// A file with the certificate and its key, for servers that want both in one.
    pub(crate) fn certificate_and_key(&self) -> PathBuf {
        let mut both = fs::read(&self.site.chain).expect("the certificate");
        both.extend(fs::read(&self.site.key).expect("the key"));
        self.write("both.pem", both)
    }

    /// A command with the flavor, the address and the files in its environment, for applications of the tests.
    pub(crate) fn application(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env("HOST", self.address.ip().to_string())
            .env("PORT", self.port())
            .env("IDLE", self.idle_seconds().to_string())
            .env("ROOT", self.root())
            .env("PYTHONDONTWRITEBYTECODE", "1");
        if self.is_tls() {
            let site = self.site;
            command.env("CHAIN", &site.chain).env("KEY", &site.key);
        }
        command
    }
}

/// The path of an application of the tests.
pub(crate) fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("data/servers")
        .join(name)
}

/// Starts a server and waits until it accepts connections; `None` if it has no such flavor.
///
/// # Panics
/// When the server does not come up; its log is in the message.
pub(crate) fn start(
    program: &Program,
    flavor: Flavor,
    site: &Site,
    backend: Option<SocketAddr>,
) -> Option<Process> {
    Process::start(|address, place| {
        let mut command = (program.command)(&Setup {
            address,
            flavor,
            site,
            place,
            backend,
        })?;
        command.env("HOME", place);
        Some(command)
    })
}

pub(crate) fn upstream(server: &Process) -> Upstream {
    Upstream::tcp([server.address()])
}

/// A client of this server.
pub(crate) fn client(server: &Process) -> HostClient {
    HostClient::new(upstream(server), patient()).expect("a readiness queue")
}
