//! Costs of a request in counts that do not depend on the speed of the machine or on other programs: instructions
//! (callgrind), system calls (strace) and allocations. Each client of courser has a bar for each count, its value when
//! the bar was set. A higher count fails the program; instructions may be 3 % above their bar, the difference between
//! compilers. The peers are counted in the same way.
//!
//! Each count is the difference between a run of 2n and a run of n requests over 64 connections (for `pipeline`: 8
//! connections with 16 requests each), divided by n. So the start of the program and its warm-up do not count. The
//! instructions include the cost of the load generator, which is the cost of `limit`. A second column excludes it; the
//! bar is for this column.

use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::process::{Command, ExitCode, Stdio};

use crate::measure::Record;
use crate::process::{Served, cores, installed, load, under};

/// Counts the costs of a request.
#[derive(clap::Parser, Debug)]
pub struct Args {
    /// Requests n of the shorter run; with few, the counts vary with the load of the machine
    #[arg(short = 'n', long, default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1..))]
    requests: u64,

    /// The path to request, one of the paths of `serve`
    #[arg(long, default_value = "/13")]
    path: String,

    /// Clients of `load`
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "host,client,pipeline,hyper,reqwest,ureq"
    )]
    clients: Vec<String>,
}

/// Runs the tool. The exit code is 1 if a bar was exceeded.
///
/// # Errors
/// valgrind or strace is missing, or a run failed.
pub fn run(args: &Args) -> Result<ExitCode, Box<dyn Error>> {
    for needed in ["valgrind", "strace"] {
        if !installed(needed) {
            return Err(format!("{needed} is not installed").into());
        }
    }
    let core = *cores()?.first().ok_or("no core")?;
    let served = Served::on(core, false)?;
    let url = served.url(&args.path);
    let generator = Counts::take("limit", args, &url)?;
    println!(
        "| client | instructions | without the generator | bar | system calls | bar | allocations |\n\
         |---|--:|--:|--:|--:|--:|--:|"
    );
    generator.print("limit", &generator);
    let mut exceeded = Vec::new();
    for client in &args.clients {
        let counts = Counts::take(client, args, &url)?;
        counts.print(client, &generator);
        exceeded.extend(counts.exceeded(client, &generator));
    }
    for bar in &exceeded {
        eprintln!("counts: too many {bar} per request");
    }
    Ok(if exceeded.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Counts per request.
struct Counts {
    instructions: f64,
    system_calls: f64,
    allocations: f64,
}

impl Counts {
    fn take(client: &str, args: &Args, url: &str) -> Result<Self, Box<dyn Error>> {
        let run = |requests: u64| -> Result<Command, Box<dyn Error>> {
            let mut command = match client {
                "pipeline" => load(client, PIPELINES)?,
                _ => load(client, CONNECTIONS)?,
            };
            if client == "pipeline" {
                command.args(["--depth", &DEPTH.to_string()]);
            }
            command.args(["--requests", &requests.to_string(), url]);
            Ok(command)
        };
        let n = args.requests;
        type Count = fn(&mut Command) -> Result<u64, Box<dyn Error>>;
        let least = |count: Count, requests: u64, runs: usize| {
            let mut least = count(&mut run(requests)?)?;
            for _ in 1..runs {
                least = least.min(count(&mut run(requests)?)?);
            }
            Ok::<_, Box<dyn Error>>(least as f64)
        };
        let more = |count: Count, runs: usize| {
            let more = least(count, 2 * n, runs)? - least(count, n, runs)?;
            Ok::<_, Box<dyn Error>>(more / n as f64)
        };
        let runs = if Bars::of(client).is_some() { RUNS } else { 1 };
        Ok(Self {
            instructions: more(instructions, runs)?,
            system_calls: more(system_calls, 1)?,
            allocations: more(allocations, 1)?,
        })
    }

    fn print(&self, client: &str, generator: &Self) {
        let bars = Bars::of(client);
        let shown = |bar: Option<f64>| bar.map_or("–".to_owned(), |bar| bar.to_string());
        println!(
            "| {client} | {:.0} | {:.0} | {} | {:.2} | {} | {:.2} |",
            self.instructions,
            self.instructions - generator.instructions,
            shown(bars.as_ref().map(|bars| bars.instructions)),
            self.system_calls,
            shown(bars.as_ref().map(|bars| bars.system_calls)),
            self.allocations
        );
    }

    /// The bars of a client of courser that are exceeded. Other clients have no bars.
    fn exceeded(&self, client: &str, generator: &Self) -> Vec<String> {
        let Some(bars) = Bars::of(client) else {
            return Vec::new();
        };
        let own = self.instructions - generator.instructions;
        let counts = [
            ("instructions", own, bars.instructions * TOLERANCE),
            ("system calls", self.system_calls, bars.system_calls),
            ("allocations", self.allocations, MOST_ALLOCATIONS),
        ];
        let exceeded = counts.iter().filter(|(_, count, most)| count > most);
        exceeded
            .map(|(what, ..)| format!("{what} of {client}"))
            .collect()
    }
}

/// The highest costs of a request of one of our clients, without the generator.
struct Bars {
    instructions: f64,
    /// One write, one read, and a share of one wait; with pipelining, a share of each.
    system_calls: f64,
}

impl Bars {
    fn of(client: &str) -> Option<Self> {
        let (instructions, system_calls) = match client {
            "host" => (2_400.0, 2.1),
            "client" => (2_660.0, 2.1),
            "pipeline" => (2_560.0, 0.2),
            _ => return None,
        };
        Some(Self {
            instructions,
            system_calls,
        })
    }
}

/// The number of user-space instructions of the whole program.
pub(crate) fn instructions(command: &mut Command) -> Result<u64, Box<dyn Error>> {
    let report = scratch("callgrind");
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--quiet", "--tool=callgrind"]);
    valgrind.arg(option("--callgrind-out-file=", &report));
    output(&mut under(&valgrind, command))?;
    let text = fs::read_to_string(&report)?;
    fs::remove_file(&report)?;
    let total = text.lines().find_map(|line| line.strip_prefix("totals: "));
    Ok(total.ok_or("callgrind reported no total")?.trim().parse()?)
}

/// The number of system calls of the whole program.
pub(crate) fn system_calls(command: &mut Command) -> Result<u64, Box<dyn Error>> {
    let report = scratch("strace");
    let mut strace = Command::new("strace");
    strace.args([
        "--summary-only",
        "--follow-forks",
        "--summary-columns=name,calls",
    ]);
    strace.arg(option("--output=", &report));
    output(&mut under(&strace, command))?;
    let text = fs::read_to_string(&report)?;
    fs::remove_file(&report)?;
    let total = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("total"));
    Ok(total.ok_or("strace reported no total")?.trim().parse()?)
}

/// The number of allocations after the warm-up.
fn allocations(command: &mut Command) -> Result<u64, Box<dyn Error>> {
    let record = Record::from_json(&output(command)?).ok_or("load printed no record")?;
    Ok((record.allocations * record.requests as f64).round() as u64)
}

pub(crate) fn output(command: &mut Command) -> Result<String, Box<dyn Error>> {
    command.stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = command.output()?;
    if !output.status.success() {
        return Err(format!("{command:?} failed").into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

fn scratch(name: &str) -> OsString {
    let file = format!("courser-{}.{name}", std::process::id());
    std::env::temp_dir().join(file).into_os_string()
}

fn option(name: &str, value: &OsString) -> OsString {
    let mut option = OsString::from(name);
    option.push(value);
    option
}

/// Runs, of which the one with the fewest instructions counts: answers that come in more pieces than usual take more.
const RUNS: usize = 3;

/// Connections, as in the other comparisons: requests share the waits for events.
const CONNECTIONS: u32 = 64;

/// Connections of the pipelining client.
const PIPELINES: u32 = 8;
/// Simultaneous requests on each connection of the pipelining client.
const DEPTH: u32 = 16;

/// Highest ratio of a count of instructions to its bar: a new compiler can change the count by this much.
const TOLERANCE: f64 = 1.03;

/// Highest number of allocations for a request: none, except for a buffer that grows once after the warm-up.
const MOST_ALLOCATIONS: f64 = 0.005;
