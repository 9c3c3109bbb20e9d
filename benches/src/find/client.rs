//! Runs the clients as processes: find, wrk for the bound, and other programs that can search.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Instant;

use nix::sys::resource::{UsageWho, getrusage};

use crate::measure::cpu_time;

use crate::compare::sample::wrk_numbers;
use crate::process::{installed, spawn_on, tool};
use crate::table::Row;

/// Runs clients on one core.
pub(crate) struct Finder {
    program: PathBuf,
    core: usize,
    peak: tempfile::NamedTempFile,
}

/// The result of a search.
pub(super) struct Found {
    output: Vec<u8>,
    pub(super) cost: Cost,
}

/// What a process took.
pub(crate) struct Cost {
    pub(crate) seconds: f64,
    /// Seconds of CPU, in the program and in the kernel for it.
    pub(crate) cpu: f64,
    /// Highest resident memory, in KiB.
    pub(crate) memory: u64,
}

impl Found {
    /// The paths of all results.
    pub(super) fn paths(&self, url: &str) -> BTreeSet<String> {
        let text = String::from_utf8_lossy(&self.output);
        let paths = text.lines().filter_map(|line| line.strip_prefix(url));
        paths.map(|path| format!("/{path}")).collect()
    }
}

impl Finder {
    pub(crate) fn new(core: usize) -> Result<Self, Box<dyn Error>> {
        Ok(Self {
            program: finder()?,
            core,
            peak: tempfile::NamedTempFile::new()?,
        })
    }

    /// Runs a search and keeps its output.
    pub(super) fn find(
        &self,
        url: &str,
        arguments: &[&str],
        connections: usize,
    ) -> Result<Found, Box<dyn Error>> {
        let began = Instant::now();
        let child = self.spawn(url, arguments, connections)?;
        let output = child.wait_with_output()?;
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            return Err(format!("crawler-cli: {}: {errors}", output.status).into());
        }
        Ok(Found {
            output: output.stdout,
            cost: self.cost(began)?,
        })
    }

    /// Runs a search and only counts the lines of its output.
    pub(super) fn count(
        &self,
        url: &str,
        arguments: &[&str],
        connections: usize,
    ) -> Result<(Found, usize), Box<dyn Error>> {
        let began = Instant::now();
        let child = self.spawn(url, arguments, connections)?;
        let lines = lines(child)?;
        let found = Found {
            output: Vec::new(),
            cost: self.cost(began)?,
        };
        Ok((found, lines))
    }

    fn spawn(
        &self,
        url: &str,
        arguments: &[&str],
        connections: usize,
    ) -> Result<Child, Box<dyn Error>> {
        let mut command = self.measured(&self.program)?;
        command.args(["find", url, "--robots=off", "-j"]);
        command.arg(connections.to_string()).args(arguments);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Ok(spawn_on(self.core, &mut command)?)
    }

    /// A command that runs a program and records what it [costs](Self::cost).
    fn measured(&self, program: &Path) -> Result<Command, Box<dyn Error>> {
        let mut command = tool("peak")?;
        command.arg(self.peak.path()).arg(program);
        Ok(command)
    }

    /// Runs `crawler-cli`. Returns the number of lines that it prints.
    pub(crate) fn run(&self, arguments: &[String]) -> Result<(usize, Cost), Box<dyn Error>> {
        let began = Instant::now();
        let mut command = self.measured(&self.program)?;
        command.args(arguments).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let lines = lines(spawn_on(self.core, &mut command)?)?;
        Ok((lines, self.cost(began)?))
    }

    fn cost(&self, began: Instant) -> Result<Cost, Box<dyn Error>> {
        let seconds = began.elapsed().as_secs_f64();
        let text = fs::read_to_string(self.peak.path())?;
        let (memory, cpu) = text.split_once(' ').ok_or("no costs")?;
        Ok(Cost {
            seconds,
            cpu: cpu.parse()?,
            memory: memory.parse()?,
        })
    }

    /// The bound: the seconds that wrk needs for all listings at its rate.
    pub(crate) fn bound(
        &self,
        url: &str,
        paths: &[String],
        connections: usize,
    ) -> Result<f64, Box<dyn Error>> {
        let mut lua = "local paths = {".to_owned();
        for path in paths {
            write!(lua, "\"{path}\",")?;
        }
        lua += "}\nlocal at = 0\nrequest = function()\n at = at % #paths + 1\n \
                return wrk.format(nil, paths[at])\nend\n";
        let mut script = tempfile::NamedTempFile::new()?;
        script.write_all(lua.as_bytes())?;
        let mut command = Command::new("wrk");
        command
            .args(["--threads", "1", "--duration", "2"])
            .args(["--connections", &connections.to_string()])
            .arg("--script")
            .arg(script.path())
            .arg(url)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let output = spawn_on(self.core, &mut command)?.wait_with_output()?;
        let output = String::from_utf8(output.stdout)?;
        let (_, rate) = wrk_numbers(&output).ok_or("wrk printed something else than expected")?;
        Ok(paths.len() as f64 / rate)
    }

    /// Runs other programs with their words in `place`, as far as they are installed, and adds what they take to `rows`.
    pub(crate) fn peers(
        &self,
        peers: &[(&str, Vec<&str>)],
        place: &Path,
        own: &Row,
        rows: &mut Vec<Row>,
    ) -> Result<(), Box<dyn Error>> {
        for (peer, words) in peers.iter().filter(|(peer, _)| installed(peer)) {
            let mut command = self.measured(Path::new(peer))?;
            command.args(words).current_dir(place).stdin(Stdio::null());
            command.stdout(Stdio::null()).stderr(Stdio::null());
            let began = Instant::now();
            spawn_on(self.core, &mut command)?.wait()?;
            let cost = self.cost(began)?;
            let name = format!("  {peer}");
            let at = rows.iter().position(|row| row.name == name);
            let at = at.unwrap_or_else(|| {
                rows.push(Row {
                    name,
                    ..Row::default()
                });
                rows.len() - 1
            });
            rows[at].note(&cost);
            rows[at].bound.clone_from(&own.bound);
        }
        Ok(())
    }
}

/// The path of `crawler-cli`, in the directory of this program.
pub(crate) fn finder() -> Result<PathBuf, Box<dyn Error>> {
    let own = std::env::current_exe()?;
    let finder = own.with_file_name("crawler-cli");
    match finder.exists() {
        true => Ok(finder),
        false => Err("build it first: cargo build --release -p crawler-cli".into()),
    }
}

/// Counts the lines that a run of `crawler-cli` prints.
fn lines(mut child: Child) -> Result<usize, Box<dyn Error>> {
    let mut lines = 0;
    let mut line = Vec::new();
    let mut reader = BufReader::with_capacity(1 << 20, child.stdout.take().ok_or("no pipe")?);
    while reader.read_until(b'\n', &mut line)? > 0 {
        lines += 1;
        line.clear();
    }
    let output = child.wait_with_output()?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(format!("crawler-cli: {}: {errors}", output.status).into());
    }
    Ok(lines)
}

/// Runs another program and records its highest resident memory and its CPU time.
#[derive(clap::Parser, Debug)]
pub struct PeakArgs {
    /// File for the highest resident memory in KiB and the seconds of CPU
    file: PathBuf,

    /// The program and its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    command: Vec<String>,
}

/// Runs the tool. It is a separate process, so that the program is its only child, and the memory of a larger parent
/// does not count.
///
/// # Errors
/// The program does not run.
pub fn peak(args: &PeakArgs) -> Result<ExitCode, Box<dyn Error>> {
    let (program, rest) = args.command.split_first().ok_or("no program")?;
    let status = Command::new(program).args(rest).status()?;
    let memory = getrusage(UsageWho::RUSAGE_CHILDREN)?.max_rss();
    let [user, system] = cpu_time(UsageWho::RUSAGE_CHILDREN)?;
    let cpu = (user + system).as_secs_f64();
    fs::write(&args.file, format!("{memory} {cpu}"))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}
