//! A server that runs: started on a free port with a directory of its own, ended on drop.

use std::fs::{self, File, Permissions};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use courser::{HostClient, Upstream};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tests::port::Port;
use tests::script::PATIENCE;

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

    /// `text` in the flavor that ends connections, else nothing.
    pub(crate) fn if_ending(&self, text: impl Into<String>) -> String {
        let text = text.into();
        if self.is_ending() {
            text
        } else {
            String::new()
        }
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

/// A running server.
pub(crate) struct Running {
    program: &'static Program,
    port: Port,
    child: Child,
    place: TempDir,
}

impl Running {
    /// Starts a server and waits until it accepts connections; `None` if it has no such flavor.
    ///
    /// # Panics
    /// When the server does not come up; its log is in the message.
    pub(crate) fn start(
        program: &'static Program,
        flavor: Flavor,
        site: &Site,
        backend: Option<SocketAddr>,
    ) -> Option<Self> {
        let place = tempfile::tempdir().expect("a temporary directory");
        // Some servers give up the rights of root, and write here then.
        fs::set_permissions(place.path(), Permissions::from_mode(0o777)).expect("permissions");
        let port = Port::reserve().expect("a free port");
        let mut command = (program.command)(&Setup {
            address: port.address(),
            flavor,
            site,
            place: place.path(),
            backend,
        })?;
        let log = File::create(place.path().join(LOG)).expect("a log file");
        command
            .current_dir(place.path())
            .env("HOME", place.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a log file"))
            .stderr(log);
        let child = spawn(&mut command);
        let mut server = Self {
            program,
            port,
            child,
            place,
        };
        server.wait_ready();
        Some(server)
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// A client of this server.
    pub(crate) fn client(&self) -> HostClient {
        HostClient::new(self.upstream(), patient()).expect("a readiness queue")
    }

    pub(crate) fn upstream(&self) -> Upstream {
        Upstream::tcp([self.address()])
    }

    /// What the server wrote.
    pub(crate) fn log(&self) -> String {
        let mut text = format!("--- {}\n", self.program.name);
        for entry in fs::read_dir(self.place.path())
            .into_iter()
            .flatten()
            .flatten()
        {
            if entry
                .path()
                .extension()
                .is_some_and(|extension| extension == "log")
            {
                text += &fs::read_to_string(entry.path()).unwrap_or_default();
            }
        }
        text
    }

    fn wait_ready(&mut self) {
        let started = Instant::now();
        while TcpStream::connect(self.address()).is_err() {
            let (exited, name, log) = (self.has_exited(), self.program.name, self.log());
            assert!(!exited, "{name} did not start: {log}");
            assert!(started.elapsed() < PATIENCE, "{name} is not up: {log}");
            thread::sleep(RETRY_INTERVAL);
        }
    }

    /// Asks the server to end, and kills it if it does not.
    fn stop(&mut self) {
        if self.has_exited() {
            return;
        }
        let id = i32::try_from(self.child.id()).ok();
        if let Some(pid) = id.and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::TERM);
        }
        let started = Instant::now();
        while !self.has_exited() {
            if started.elapsed() > GRACE {
                let _ = self.child.kill();
                let _ = self.child.wait();
            }
            thread::sleep(RETRY_INTERVAL);
        }
    }

    fn has_exited(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
    }
}

fn spawn(command: &mut Command) -> Child {
    command
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?} does not run here: {error}"))
}

const LOG: &str = "output.log";
/// Between two looks at a server that is starting or stopping.
const RETRY_INTERVAL: Duration = Duration::from_millis(5);
/// For how long a server may end by itself.
const GRACE: Duration = Duration::from_secs(5);
