//! Servers that are programs of others: each on a free port, with a directory of its own, ended on drop.

use std::fs::{self, File, Permissions};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use socket2::{Domain, Socket, Type};
use tempfile::TempDir;

use crate::script::PATIENCE;

/// A running server.
#[derive(Debug)]
pub struct Process {
    child: Child,
    address: SocketAddr,
    _reserved: Socket,
    directory: TempDir,
}

impl Process {
    /// Runs what `command` gives for an address and a directory, and waits until that accepts connections; nothing if
    /// `command` gives nothing.
    ///
    /// # Panics
    /// When it is not installed or does not come up; its log is in the message.
    pub fn start(command: impl FnOnce(SocketAddr, &Path) -> Option<Command>) -> Option<Self> {
        let directory = tempfile::tempdir().expect("a temporary directory");
        // Some servers give up the rights of root, and write here then.
        fs::set_permissions(directory.path(), Permissions::from_mode(0o777)).expect("permissions");
        let (address, reserved) = reserve().expect("a free port");
        let mut command = command(address, directory.path())?;
        let log = File::create(directory.path().join(LOG)).expect("a log file");
        command
            .current_dir(directory.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a log file"))
            .stderr(log);
        let child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?} does not run here: {error}"));
        let mut process = Self {
            child,
            address,
            _reserved: reserved,
            directory,
        };
        let started = Instant::now();
        while TcpStream::connect(process.address()).is_err() {
            let is_over = process.has_exited() || started.elapsed() > PATIENCE;
            assert!(!is_over, "{command:?} is not up: {}", process.log());
            thread::sleep(RETRY_INTERVAL);
        }
        Some(process)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it wrote to that file of its directory.
    pub fn written(&self, name: &str) -> Vec<u8> {
        fs::read(self.directory.path().join(name)).unwrap_or_default()
    }

    /// What it wrote to all files that are logs.
    pub fn log(&self) -> String {
        let entries = fs::read_dir(self.directory.path()).into_iter().flatten();
        let paths = entries.flatten().map(|entry| entry.path());
        let logs = paths.filter(|path| path.extension().is_some_and(|name| name == "log"));
        logs.map(|path| fs::read_to_string(path).unwrap_or_default())
            .collect()
    }

    /// Sends a signal that makes it end, and kills it if it does not within this time.
    pub fn end(&mut self, signal: Signal, grace: Duration) {
        if self.has_exited() {
            return;
        }
        let id = i32::try_from(self.child.id()).ok();
        if let Some(pid) = id.and_then(Pid::from_raw) {
            let _ = kill_process(pid, signal);
        }
        let started = Instant::now();
        while !self.has_exited() {
            if started.elapsed() > grace {
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

impl Drop for Process {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("{:?} logged: {}", self.child, self.log());
        }
        self.end(Signal::TERM, GRACE);
    }
}

/// The line that keeps a server that root starts from becoming another user, or nothing.
pub fn as_root(line: &'static str) -> &'static str {
    if rustix::process::geteuid().is_root() {
        line
    } else {
        ""
    }
}

/// A free port of 127.0.0.1. The socket is bound and does not listen: servers set `SO_REUSEADDR` and so can bind beside it,
/// and the system gives the port to no one who asks for any.
fn reserve() -> io::Result<(SocketAddr, Socket)> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into())?;
    let address = socket.local_addr()?.as_socket();
    Ok((address.ok_or(io::ErrorKind::AddrNotAvailable)?, socket))
}

/// The file with what the server wrote to its terminal.
pub const LOG: &str = "output.log";
/// Between two looks at a server that is starting or stopping.
const RETRY_INTERVAL: Duration = Duration::from_millis(5);
/// For how long a server may end by itself.
const GRACE: Duration = Duration::from_secs(5);
