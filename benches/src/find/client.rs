//! Runs the clients as processes: find, wrk for the bound, and other programs that can search.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};

use crate::measure::cpu_time;
use crate::peers::wrk;
use crate::process::{installed, output_on, spawn_on, tool, two_cores};
use crate::table::{Cost, Row};

/// Runs clients on one core.
pub(crate) struct Finder {
    program: PathBuf,
    core: usize,
    pub(crate) server_core: usize,
    /// For files of the servers and of the clients.
    pub(crate) place: tempfile::TempDir,
    peak: tempfile::NamedTempFile,
}

impl Finder {
    pub(crate) fn new() -> Result<Self, Box<dyn Error>> {
        let (server_core, core) = two_cores()?;
        Ok(Self {
            program: finder()?,
            core,
            server_core,
            place: tempfile::tempdir()?,
            peak: tempfile::NamedTempFile::new()?,
        })
    }

    /// A command that runs a program and records what it [costs](Self::cost).
    fn measured(&self, program: &Path) -> Result<Command, Box<dyn Error>> {
        let mut command = tool("peak")?;
        command.arg(self.peak.path()).arg(program);
        Ok(command)
    }

    /// Runs `crawler-cli`, and passes each line that it prints to `visit`, with its end.
    pub(crate) fn run(
        &self,
        arguments: &[String],
        mut visit: impl FnMut(&[u8]),
    ) -> Result<Cost, Box<dyn Error>> {
        let began = Instant::now();
        let errors = tempfile::NamedTempFile::new()?;
        let mut command = self.measured(&self.program)?;
        command.args(arguments).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(errors.reopen()?);
        let mut child = spawn_on(self.core, &mut command)?;
        let mut line = Vec::new();
        let mut reader = BufReader::with_capacity(1 << 20, child.stdout.take().ok_or("no pipe")?);
        while reader.read_until(b'\n', &mut line)? > 0 {
            visit(&line);
            line.clear();
        }
        let status = child.wait()?;
        if !status.success() {
            let errors = fs::read_to_string(errors.path())?;
            return Err(format!("crawler-cli: {status}: {errors}").into());
        }
        self.cost(began)
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
        let (mut command, _script) = wrk::command(connections, Duration::from_secs(2), &lua, url)?;
        let output = output_on(self.core, &mut command)?;
        let (_, rate) = wrk::numbers(&output).ok_or("wrk printed something else than expected")?;
        Ok(paths.len() as f64 / rate)
    }

    /// Runs other programs with their words, as far as they are installed, and adds what they take to `rows`. A word that
    /// `values` names stands for its value.
    pub(crate) fn peers(
        &self,
        peers: &[(&str, &str)],
        values: &[(&str, &str)],
        own: &Row,
        rows: &mut Vec<Row>,
    ) -> Result<(), Box<dyn Error>> {
        for (peer, words) in peers.iter().filter(|(peer, _)| installed(peer)) {
            let mut command = self.measured(Path::new(peer))?;
            command.current_dir(self.place.path());
            for word in words.split(' ') {
                let value = values.iter().find(|(name, _)| *name == word);
                command.arg(value.map_or(word, |(_, value)| value));
            }
            command.stdin(Stdio::null());
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
