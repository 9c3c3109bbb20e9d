//! Starts other processes on chosen cores, among them the server, whose processor time can be read.

use std::error::Error;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The cores that this process may use, in order.
///
/// # Errors
/// The system cannot report them.
pub fn cores() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU)
        .filter(|&core| set.is_set(core))
        .collect())
}

/// The core of the server and that of the clients: the same if there is no other.
///
/// # Errors
/// The system cannot report the cores.
pub fn two_cores() -> Result<(usize, usize), Box<dyn Error>> {
    let all = cores()?;
    let server = *all.first().ok_or("no core")?;
    Ok((server, *all.get(1).unwrap_or(&server)))
}

/// Starts `command` on one core. A process inherits the cores of the thread that starts it.
///
/// # Errors
/// The core cannot be used, or the command cannot be started.
pub fn spawn_on(core: usize, command: &mut Command) -> io::Result<Child> {
    let before = sched_getaffinity(None)?;
    stay_on(core)?;
    let child = command.spawn();
    sched_setaffinity(None, &before)?;
    child
}

/// Runs a command on a core to its end, and returns its output.
///
/// # Errors
/// The command failed.
pub fn output_on(core: usize, command: &mut Command) -> Result<String, Box<dyn Error>> {
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let output = spawn_on(core, command)?.wait_with_output()?;
    if !output.status.success() {
        return Err(format!("it ended with {}", output.status).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Keeps this thread and the threads that it starts on one core.
///
/// # Errors
/// The core cannot be used.
pub fn stay_on(core: usize) -> io::Result<()> {
    let mut only = CpuSet::new();
    only.set(core);
    Ok(sched_setaffinity(None, &only)?)
}

/// The first line that a process prints, and the rest of its output.
///
/// # Errors
/// The line cannot be read.
pub fn first_line(child: &mut Child) -> Result<(String, BufReader<ChildStdout>), Box<dyn Error>> {
    let mut line = String::new();
    let mut rest = BufReader::new(child.stdout.take().ok_or("no pipe")?);
    rest.read_line(&mut line)?;
    Ok((line.trim_end().to_owned(), rest))
}

/// The KiB that the system reports about the memory of a process under this name; `self` is this process.
///
/// # Errors
/// The process has ended, or the system is not Linux.
pub fn memory(process: &str, name: &str) -> Result<u64, Box<dyn Error>> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let value = status.lines().find_map(|line| line.strip_prefix(name));
    let kib = value.and_then(|value| value.split_whitespace().nth(1));
    Ok(kib.ok_or("no such memory")?.parse()?)
}

/// A command that runs this program as another tool.
///
/// # Errors
/// The path of this program is unknown.
pub fn tool(name: &str) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(name);
    Ok(command)
}

/// Whether a program with this name can be started.
#[must_use]
pub fn installed(name: impl AsRef<OsStr>) -> bool {
    let mut command = Command::new(name);
    command.arg("--version").stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok()
}

/// A process of the [`serve`](crate::serve) tool. It ends when this value is dropped.
#[derive(Debug)]
pub struct Served {
    child: Child,
    address: String,
    output: BufReader<ChildStdout>,
    /// The file with its certificate, if it has TLS.
    root: Option<tempfile::NamedTempFile>,
}

impl Served {
    /// Starts the server on one core and waits until it listens.
    ///
    /// # Errors
    /// The server did not start.
    pub fn on(core: usize, tls: bool) -> Result<Self, Box<dyn Error>> {
        let mut command = tool("serve")?;
        let root = tls.then(tempfile::NamedTempFile::new).transpose()?;
        if let Some(root) = &root {
            command.arg("--tls").arg(root.path());
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = spawn_on(core, &mut command)?;
        let (address, output) = first_line(&mut child)?;
        let served = Self {
            child,
            address,
            output,
            root,
        };
        if served.address.is_empty() {
            return Err("the server did not start".into());
        }
        Ok(served)
    }

    /// The URL of a path that begins with a slash.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        let scheme = if self.root.is_some() { "https" } else { "http" };
        format!("{scheme}://{}{path}", self.address)
    }

    /// The file with the certificate of the server, if it has TLS.
    #[must_use]
    pub fn root(&self) -> Option<&Path> {
        self.root.as_ref().map(tempfile::NamedTempFile::path)
    }

    /// Ends the server. Returns how many requests it answered, and how many connections it accepted.
    ///
    /// # Errors
    /// The server failed.
    pub fn end(mut self) -> Result<[usize; 2], Box<dyn Error>> {
        drop(self.child.stdin.take());
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        let (requests, connections) = line.trim_end().split_once(' ').ok_or("no counts")?;
        Ok([requests.parse()?, connections.parse()?])
    }

    /// The processor time of the server so far, with the precision of the clock ticks of proc(5).
    ///
    /// # Errors
    /// The server has ended, or the system is not Linux.
    pub fn cpu_time(&self) -> Result<Duration, Box<dyn Error>> {
        Ok(times(&format!("/proc/{}/stat", self.child.id()))?.1)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // The end of its input ends the server. Errors mean that it has already ended.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// The name of a process or thread and its processor time so far, with that of the children that have ended, with the
/// precision of the clock ticks of proc(5).
///
/// # Errors
/// The process has ended, or the system is not Linux.
pub fn times(stat: &str) -> Result<(String, Duration), Box<dyn Error>> {
    let stat = fs::read_to_string(stat)?;
    // The second field is the name of the program in parentheses, and may contain spaces.
    let (before, fields) = stat.rsplit_once(')').ok_or("stat without a name")?;
    let name = before.split_once('(').map_or("", |(_, name)| name);
    let ticks: u64 = fields
        .split_whitespace()
        .skip(UTIME_AFTER_NAME)
        .take(4)
        .map(|field| field.parse().unwrap_or(0))
        .sum();
    let per_second = rustix::param::clock_ticks_per_second();
    let time = Duration::from_secs_f64(ticks as f64 / per_second as f64);
    Ok((name.to_owned(), time))
}

/// proc(5): `utime`, `stime` and the same of the children are the fields 14 to 17; the name is the second.
const UTIME_AFTER_NAME: usize = 11;
