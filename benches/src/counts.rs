//! What a request costs, in counts that depend neither on the speed of the machine nor on its other users:
//! instructions (callgrind), system calls (strace) and allocations. For courser's clients each count has a bar, which is
//! the count that was reached. A count above its bar fails the program; instructions may be 3 % above it, because
//! compilers differ by that much. The peers are counted in the same way.
//!
//! Each count is the difference between a run of 2n requests and a run of n requests over 64 connections (for
//! `pipeline`: 8, with 16 requests on each at a time), divided by n. So it contains neither the start of the program nor
//! its warm-up. The instructions contain the cost of the load generator itself, which is what `limit` costs. A second
//! column leaves that out, and the bar is for the second column.

use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::process::{Command, ExitCode, Stdio};

use crate::measure::Record;
use crate::process::{Served, cores, installed, load, under};

/// Counts what a request costs.
#[derive(clap::Parser, Debug)]
pub struct Args {
    /// Requests n of the shorter run
    #[arg(short = 'n', long, default_value_t = 5000, value_parser = clap::value_parser!(u64).range(1..))]
    requests: u64,

    /// What to ask the server for: see the paths of `serve`
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

/// The tool. The exit code tells whether all bars were held.
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
        let more = |count: fn(&mut Command) -> Result<u64, Box<dyn Error>>| {
            let once = count(&mut run(n)?)?;
            let twice = count(&mut run(2 * n)?)?;
            Ok::<_, Box<dyn Error>>((twice as f64 - once as f64) / n as f64)
        };
        Ok(Self {
            instructions: more(instructions)?,
            system_calls: more(system_calls)?,
            allocations: more(allocations)?,
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

    /// Which bars of a client of ours are exceeded; those of others are not there.
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

/// What a request of one of our clients may cost, without the generator.
struct Bars {
    instructions: f64,
    /// One write and one read, and a share of one wait; pipelined, a share of each.
    system_calls: f64,
}

impl Bars {
    fn of(client: &str) -> Option<Self> {
        let (instructions, system_calls) = match client {
            "host" => (2_330.0, 2.1),
            "client" => (2_590.0, 2.1),
            "pipeline" => (2_510.0, 0.2),
            _ => return None,
        };
        Some(Self {
            instructions,
            system_calls,
        })
    }
}

/// User-space instructions of the whole program.
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

/// System calls of the whole program.
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

/// Allocations after the warm-up.
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

/// As many as in the other comparisons: requests share the waits for events.
const CONNECTIONS: u32 = 64;

/// Of the pipelining client: connections, and requests on each at a time.
const PIPELINES: u32 = 8;
const DEPTH: u32 = 16;

/// How far above its bar a count of instructions may be: a new compiler changes it by that much.
const TOLERANCE: f64 = 1.03;

/// As good as none: a buffer may still grow once after the warm-up.
const MOST_ALLOCATIONS: f64 = 0.005;
