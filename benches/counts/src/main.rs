//! Costs of a request in counts that do not depend on the speed of the machine or on other programs: instructions
//! (callgrind), system calls (strace) and allocations. Each client has a bar for each count; a higher count fails the
//! program. Built by `cargo build --release -p counts`, and by nothing else: see its `Cargo.toml`.
//!
//! Each count is the difference between a run of 2n and a run of n rounds, divided by their requests. So the start of
//! the program does not count. In a round, all requests in flight are sent, then all are answered ([`server`]): 64
//! connections with a request each, or 8 connections with 16 each for `pipeline`. What it takes to measure at all is
//! the cost of `limit`, a loop over raw sockets; the bar for instructions is for what is left without it.
//!
//! `counts COMMAND...` counts the instructions and system calls of any other program for a request: `{n}` stands for the
//! number of its requests, and `{url}` for a server that answers each with 13 bytes.

#[allow(
    dead_code,
    unreachable_pub,
    reason = "a library with this file offers all of it"
)]
#[path = "../../src/alloc.rs"]
mod alloc;
mod client;
mod server;

use std::error::Error;
use std::process::{Command, ExitCode, Stdio};
use std::{env, fs, process};

use client::Subject;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

#[global_allocator]
static ALLOCATOR: alloc::Counting = alloc::Counting;

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match &words[..] {
        [] => table(),
        ["--run", client, address, rounds] => run(client, address, rounds),
        command => other(command),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("counts: {error}");
        ExitCode::FAILURE
    })
}

/// Runs one client to the end, and prints the allocations of its process.
fn run(client: &str, address: &str, rounds: &str) -> Result<ExitCode, Box<dyn Error>> {
    let subject = Subject::ALL.iter().find(|subject| subject.name == client);
    let subject = subject.ok_or("there is no such client")?;
    (subject.run)(subject, address.parse()?, rounds.parse()?)?;
    println!("{}", alloc::in_process());
    Ok(ExitCode::SUCCESS)
}

fn table() -> Result<ExitCode, Box<dyn Error>> {
    stay_on_one_core()?;
    println!(
        "| client | instructions | without `limit` | bar | system calls | bar | allocations |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|");
    let mut generator = 0.0;
    let mut exceeded = Vec::new();
    for subject in &Subject::ALL {
        let counts = Counts::take(subject)?;
        if subject.name == "limit" {
            generator = counts.instructions;
        }
        let own = counts.instructions - generator;
        println!(
            "| {} | {:.0} | {own:.0} | {} | {:.2} | {} | {:.2} |",
            subject.name,
            counts.instructions,
            subject.instructions,
            counts.system_calls,
            subject.system_calls,
            counts.allocations
        );
        for (what, count, most) in [
            ("instructions", own, subject.instructions),
            ("system calls", counts.system_calls, subject.system_calls),
            ("allocations", counts.allocations, MOST_ALLOCATIONS),
        ] {
            if count > most {
                exceeded.push(format!("{what} of {}", subject.name));
            }
        }
    }
    for bar in &exceeded {
        eprintln!("counts: too many {bar} per request");
    }
    Ok(match exceeded.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Counts per request.
struct Counts {
    instructions: f64,
    system_calls: f64,
    allocations: f64,
}

impl Counts {
    fn take(subject: &Subject) -> Result<Self, Box<dyn Error>> {
        let program = env::current_exe()?;
        let at_once = subject.connections * subject.depth;
        let command = |rounds: usize| {
            let address = server::start(at_once, subject.varies)?;
            let mut command = Command::new(&program);
            command.args(["--run", subject.name, &address.to_string()]);
            command.arg(rounds.to_string());
            Ok(command)
        };
        let each = |count: Count| {
            let more = least(count, || command(2 * ROUNDS))? - least(count, || command(ROUNDS))?;
            Ok::<_, Box<dyn Error>>(more / (at_once * ROUNDS) as f64)
        };
        Ok(Self {
            instructions: each(instructions)?,
            system_calls: each(system_calls)?,
            allocations: each(|command| Ok(output(command)?.trim().parse()?))?,
        })
    }
}

fn other(words: &[&str]) -> Result<ExitCode, Box<dyn Error>> {
    stay_on_one_core()?;
    let command = |requests: usize| {
        let url = format!("http://{}/", server::start(1, false)?);
        let mut words = words.iter().map(|word| {
            word.replace("{n}", &requests.to_string())
                .replace("{url}", &url)
        });
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words);
        Ok(command)
    };
    for (what, count) in [
        ("instructions", instructions as Count),
        ("system calls", system_calls),
    ] {
        let more = least(count, || command(2 * REQUESTS))? - least(count, || command(REQUESTS))?;
        println!("{:.2} {what}", more / REQUESTS as f64);
    }
    Ok(ExitCode::SUCCESS)
}

/// Counts something of a whole process.
type Count = fn(&mut Command) -> Result<u64, Box<dyn Error>>;

/// The least of several runs: answers that come in more pieces than usual take more.
fn least(
    count: Count,
    command: impl Fn() -> Result<Command, Box<dyn Error>>,
) -> Result<f64, Box<dyn Error>> {
    let mut least = u64::MAX;
    for _ in 0..RUNS {
        least = least.min(count(&mut command()?)?);
    }
    Ok(least as f64)
}

/// The instructions of a process outside the kernel.
fn instructions(command: &mut Command) -> Result<u64, Box<dyn Error>> {
    let tool = ["valgrind", "--quiet", "--tool=callgrind"];
    let report = under(&tool, "--callgrind-out-file=", command)?;
    let total = report
        .lines()
        .find_map(|line| line.strip_prefix("totals: "));
    Ok(total.ok_or("callgrind reported no total")?.trim().parse()?)
}

/// The system calls of a process and its threads.
fn system_calls(command: &mut Command) -> Result<u64, Box<dyn Error>> {
    let tool = [
        "strace",
        "--summary-only",
        "--follow-forks",
        "--summary-columns=name,calls",
    ];
    let report = under(&tool, "--output=", command)?;
    let total = report
        .lines()
        .find_map(|line| line.trim().strip_prefix("total"));
    Ok(total.ok_or("strace reported no total")?.trim().parse()?)
}

/// Runs a command under a tool, and returns what the tool writes to the file that it is given.
fn under(tool: &[&str], file: &str, command: &Command) -> Result<String, Box<dyn Error>> {
    let report = env::temp_dir().join(format!("courser-counts-{}", process::id()));
    let mut all = Command::new("chrt");
    all.args(["--batch", "0"]).args(tool);
    all.arg(format!("{file}{}", report.display()));
    all.arg(command.get_program()).args(command.get_args());
    output(&mut all)?;
    let text = fs::read_to_string(&report)?;
    fs::remove_file(&report)?;
    Ok(text)
}

fn output(command: &mut Command) -> Result<String, Box<dyn Error>> {
    command.stdin(Stdio::null()).stderr(Stdio::inherit());
    let run = command.env("GLIBC_TUNABLES", TUNABLES).output();
    let run = run.map_err(|error| format!("{}: {error}", command.get_program().display()))?;
    if !run.status.success() {
        return Err(format!("{command:?} failed").into());
    }
    Ok(String::from_utf8(run.stdout)?)
}

/// Keeps this process and those that it starts on one core. There, a client finds all answers of a round at once: as a
/// batch job, it does not interrupt the server when it gets the first of them.
fn stay_on_one_core() -> Result<(), Box<dyn Error>> {
    let all = sched_getaffinity(None)?;
    let core = (0..CpuSet::MAX_CPU).find(|&core| all.is_set(core));
    let mut only = CpuSet::new();
    only.set(core.ok_or("no core")?);
    Ok(sched_setaffinity(None, &only)?)
}

/// The C library chooses its `memcpy` and the like by the features of the processor, of which valgrind shows a program
/// those up to AVX2. Without these two, all processors with AVX2 run the same instructions: copies by `rep movsb`, whose
/// every byte is counted, are among those that are left out. Without AVX2, requests take 8 % more, which the bars allow.
const TUNABLES: &str = "glibc.cpu.hwcaps=-AVX512VL,-ERMS";

/// Rounds n of the shorter run.
const ROUNDS: usize = 200;
/// Requests of the shorter run of another program.
const REQUESTS: usize = 5_000;
const RUNS: usize = 3;

/// Highest number of allocations for a request: none, except for a buffer that grows late.
const MOST_ALLOCATIONS: f64 = 0.005;
