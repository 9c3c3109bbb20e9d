//! How clients of courser scale: the cost of a request on one thread and on two, with more connections, more hosts,
//! more header fields, and longer pipelines. Each table shows the ratio to a point of reference, so that a flat curve
//! is visible at once.
//!
//! Each point is measured by its own process ([`step`]) on one core; the server is another process on another core. The
//! points are measured one after the other, in rounds, and the table has the medians of time. Instructions and system
//! calls are counted by callgrind and strace, as in [`counts`], and do not depend on the machine: if time grows and the
//! counts do not, the cause is a cache of the processor, or the kernel. The raw-socket [`limit`](crate::limit) shows
//! which. Hosts are measured in this process, on the simulated network ([`hosts`]).

mod apart;
pub mod hosts;
pub mod step;
mod together;

use std::error::Error;
use std::process::{Command, ExitCode};
use std::time::Duration;

use self::step::{Alone, Sample, Subject, Threads};
use crate::compare::sample::{median, output_on};
use crate::counts;
use crate::measure::Record;
use crate::memory::raise_descriptors;
use crate::process::{Served, cores, installed, load, tool};

/// Measures how clients of courser scale.
#[derive(clap::Parser, Debug)]
pub struct Args {
    /// Take about a minute: one short round, fewer points, and no counts of instructions and system calls
    #[arg(long)]
    quick: bool,

    /// Tables to measure
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Section::ALL)]
    only: Vec<Section>,
}

/// The tables.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
enum Section {
    /// Requests per second on one thread and on two
    Threads,
    /// Memory and processor time for a request, by connections
    Connections,
    /// Memory and processor time for a request, by hosts, on the simulated network
    Hosts,
    /// Processor time for a request, by header fields of the response
    Headers,
    /// Memory and processor time for a response, by calls on a connection
    Pending,
    /// Processor time for a call if many end at the same moment, on the simulated network
    Together,
}

impl Section {
    const ALL: [Self; 6] = [
        Self::Threads,
        Self::Connections,
        Self::Hosts,
        Self::Headers,
        Self::Pending,
        Self::Together,
    ];
}

/// Runs the tool. The exit code is 1 if memory is not bounded, or if time depends on idle hosts.
///
/// # Errors
/// The server or a client failed.
pub fn run(args: &Args) -> Result<ExitCode, Box<dyn Error>> {
    let descriptors = raise_descriptors()?;
    let cores = cores()?;
    let (Some(&server_core), Some(&client_core)) = (cores.first(), cores.get(1)) else {
        return Err("two cores are needed: one for the server, one for the client".into());
    };
    let scale = Scale {
        quick: args.quick,
        most_connections: descriptors.saturating_sub(SPARE_DESCRIPTORS),
        cores: cores.len(),
        server_core,
        client_core,
        counted: !args.quick && installed("valgrind") && installed("strace"),
    };
    let mut held = true;
    for section in Section::ALL {
        if !args.only.contains(&section) {
            continue;
        }
        match section {
            Section::Threads => scale.threads()?,
            Section::Connections => scale.connections()?,
            Section::Hosts => held &= scale.hosts()?,
            Section::Headers => scale.headers()?,
            Section::Pending => scale.pending()?,
            Section::Together => scale.together()?,
        }
        println!();
    }
    Ok(if held {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// The settings of all tables.
struct Scale {
    quick: bool,
    most_connections: usize,
    cores: usize,
    server_core: usize,
    client_core: usize,
    /// Whether instructions and system calls are counted.
    counted: bool,
}

// ---- the tables

impl Scale {
    fn threads(&self) -> Result<(), Box<dyn Error>> {
        println!("## Threads\n");
        println!(
            "`GET /13`, {CALLERS} calls at a time. The server has one thread, and all of them share the machine's {} cores, so \
             requests per second end where those are busy; what scales is the processor time for a request.\n",
            self.cores
        );
        println!(
            "| client | threads | callers | requests/s | client µs | callers µs | server µs | client of 1 thread |"
        );
        println!("|---|--:|---|--:|--:|--:|--:|--:|");
        let points: Vec<_> = THREADED_CLIENTS
            .iter()
            .flat_map(|&clients| {
                clients
                    .threads
                    .iter()
                    .map(move |&threads| (clients, threads))
            })
            .collect();
        let mut all = vec![Vec::new(); points.len()];
        for round in 1..=self.rounds() {
            for ((clients, threads), samples) in points.iter().zip(&mut all) {
                let served = Served::on(self.server_core, false)?;
                let mut command = step(clients.subject, CALLERS)?;
                command.args(["--threads", &threads.to_string()]);
                let seconds = self.duration().as_secs_f64().to_string();
                command.args(["--duration", &seconds, &served.url("/13")]);
                let before = served.cpu_time()?;
                let sample = Sample::from_json(&counts::output(&mut command)?);
                let Some(Sample::Threads(done)) = sample else {
                    return Err("a step printed something else".into());
                };
                // Includes the warm-up, which is short.
                let server = served.cpu_time()? - before;
                let server_us = server.as_secs_f64() * 1e6 / done.requests.max(1) as f64;
                eprintln!(
                    "threads, round {round}: {} × {threads}: {:.0}/s",
                    clients.subject.name(),
                    done.requests_per_second
                );
                samples.push((done, server_us));
            }
        }
        let mut first = 0.0;
        for ((clients, threads), samples) in points.iter().zip(&all) {
            let of = |value: fn(&(Threads, f64)) -> f64| median(samples.iter().map(value));
            let clients_us = of(|(sample, _)| sample.clients_us);
            if *threads == 1 {
                first = clients_us;
            }
            println!(
                "| {} | {threads} | {} | {:.0} | {clients_us:.2} | {:.2} | {:.2} | {:.2} |",
                clients.name,
                clients.callers,
                of(|(sample, _)| sample.requests_per_second),
                of(|(sample, _)| sample.callers_us),
                of(|(_, server_us)| *server_us),
                clients_us / first,
            );
        }
        Ok(())
    }

    fn connections(&self) -> Result<(), Box<dyn Error>> {
        let mut levels = CONNECTIONS
            .map(|level| level.min(self.most_connections))
            .to_vec();
        levels.dedup();
        if levels.last() < CONNECTIONS.last() {
            eprintln!(
                "scale: the limit on descriptors allows {} connections only (ulimit -Hn)",
                self.most_connections
            );
        }
        println!("## Connections\n");
        println!(
            "`GET /13`, one call at a time on each connection. `limit` is the raw-socket loop, whose instructions are those of the \
             generator. Bytes are the client's and those of calls in flight, and the client's when all are over, by connections.\n"
        );
        for subject in [None, Some(Subject::Host), Some(Subject::Client)] {
            let name = subject.map_or("limit".to_owned(), Subject::name);
            let points = levels.iter().map(|&connections| Point {
                name: format!("{name}, {connections} connections"),
                subject,
                connections: connections as u32,
                depth: 1,
                path: "/13".to_owned(),
            });
            let curve = self.curve(points.collect())?;
            curve.print(
                &format!("{name}: connections"),
                &levels,
                COMPARED_CONNECTIONS,
                "connection",
            );
        }
        println!("Bar: at 20,000 connections at most 1.5 times the processor time of 64.");
        Ok(())
    }

    fn hosts(&self) -> Result<bool, Box<dyn Error>> {
        println!("## Hosts\n");
        println!(
            "`Client` on the simulated network, whose time and memory are left out; a name and a connection for each host.\n"
        );
        let (visited, idle): (&[u64], &[u64]) = if self.quick {
            (&VISITED[..3], &IDLE[..3])
        } else {
            (&VISITED, &IDLE)
        };
        hosts::report(visited, idle)
    }

    fn headers(&self) -> Result<(), Box<dyn Error>> {
        println!("## Headers\n");
        println!(
            "`HostClient`, responses of 13 bytes under more and more headers of some 40 bytes, 64 connections. In copies of more \
             than 4 KiB callgrind counts each byte as an instruction.\n"
        );
        let points = HEADERS.iter().map(|headers| Point {
            name: format!("{headers} headers"),
            subject: Some(Subject::Host),
            connections: 64,
            depth: 1,
            path: format!("/headers/{headers}"),
        });
        let curve = self.curve(points.collect())?;
        println!(
            "| headers | requests/s | user µs | system µs | instructions | allocations | user ns for one more | instructions for one more |"
        );
        println!("|--:|--:|--:|--:|--:|--:|--:|--:|");
        for (at, (headers, point)) in HEADERS.iter().zip(&curve.0).enumerate() {
            let more = at.checked_sub(1).map(|before| {
                let more = (headers - HEADERS[before]) as f64;
                let before = &curve.0[before];
                let instructions = point.instructions.zip(before.instructions);
                (
                    (point.user_us - before.user_us) * 1e3 / more,
                    instructions.map(|(now, before)| (now - before) / more),
                )
            });
            println!(
                "| {headers} | {:.0} | {:.2} | {:.2} | {} | {:.2} | {} | {} |",
                point.requests_per_second,
                point.user_us,
                point.system_us,
                cell(point.instructions, 0),
                point.allocations,
                cell(more.map(|(nanos, _)| nanos), 1),
                cell(more.and_then(|(_, instructions)| instructions), 1),
            );
        }
        Ok(())
    }

    fn pending(&self) -> Result<(), Box<dyn Error>> {
        println!("## Pending\n");
        println!(
            "`PipelineClient`, `GET /13` over {PIPELINES} connections with more and more calls on each. Bytes are those of the \
             client and of the calls in flight, and the client's when all are over, by calls.\n"
        );
        let points = PENDING.iter().map(|&depth| Point {
            name: format!("{depth} pending"),
            subject: Some(Subject::Pipeline),
            connections: PIPELINES,
            depth: depth as u32,
            path: "/13".to_owned(),
        });
        let curve = self.curve(points.collect())?;
        curve.print("pending on each", &PENDING, COMPARED_PENDING, "call");
        Ok(())
    }
}

impl Scale {
    fn together(&self) -> Result<(), Box<dyn Error>> {
        println!("## Together\n");
        println!(
            "Calls that end at the same moment, on the simulated network, whose time is left out; nanoseconds for each, its \
             completion taken.\n"
        );
        together::report(if self.quick {
            &TOGETHER[..3]
        } else {
            &TOGETHER
        })
    }
}

// ---- points

/// The parameters of a point.
struct Point {
    name: String,
    /// `None`: the raw-socket limit.
    subject: Option<Subject>,
    connections: u32,
    depth: u32,
    path: String,
}

impl Point {
    fn at_once(&self) -> u32 {
        self.connections * self.depth
    }

    fn command(&self) -> Result<Command, Box<dyn Error>> {
        let mut command = match self.subject {
            Some(subject) => step(subject, self.connections)?,
            None => load("limit", self.connections)?,
        };
        command.args(["--depth", &self.depth.to_string()]);
        let warm_up = (2 * self.at_once()).max(LEAST_WARM_UP);
        command.args(["--warm-up", &warm_up.to_string()]);
        Ok(command)
    }
}

/// The medians of a point.
#[derive(Debug)]
struct Measured {
    at_once: f64,
    requests_per_second: f64,
    user_us: f64,
    system_us: f64,
    allocations: f64,
    instructions: Option<f64>,
    system_calls: Option<f64>,
    /// Bytes of a client of courser with calls in flight.
    busy: Option<f64>,
    idle: Option<f64>,
}

impl Measured {
    fn cpu_us(&self) -> f64 {
        self.user_us + self.system_us
    }
}

struct Curve(Vec<Measured>);

impl Scale {
    fn rounds(&self) -> u32 {
        if self.quick { 1 } else { 3 }
    }

    fn duration(&self) -> Duration {
        Duration::from_millis(if self.quick { 500 } else { 1000 })
    }

    /// Measures the points one after the other, in rounds.
    fn curve(&self, points: Vec<Point>) -> Result<Curve, Box<dyn Error>> {
        let mut all = vec![Vec::new(); points.len()];
        for round in 1..=self.rounds() {
            for (point, samples) in points.iter().zip(&mut all) {
                // A new server has another port: closed connections to the old one do not matter.
                let served = Served::on(self.server_core, false)?;
                let mut command = point.command()?;
                let seconds = self.duration().as_secs_f64().to_string();
                command.args(["--duration", &seconds, &served.url(&point.path)]);
                let output = output_on(self.client_core, &mut command)?;
                let sample = match Sample::from_json(&output) {
                    Some(Sample::Alone(sample)) => sample,
                    _ => Alone {
                        record: Box::new(
                            Record::from_json(&output).ok_or("a client printed no record")?,
                        ),
                        busy: None,
                        idle: None,
                    },
                };
                eprintln!(
                    "round {round}: {}: {:.2} µs user, {:.2} µs system",
                    point.name, sample.record.user_us, sample.record.system_us
                );
                samples.push(sample);
            }
        }
        let mut measured = Vec::new();
        for (point, samples) in points.iter().zip(&all) {
            let of = |value: fn(&Record) -> f64| {
                median(samples.iter().map(|sample| value(&sample.record)))
            };
            let bytes = |value: fn(&Alone) -> Option<i64>| {
                let bytes: Vec<_> = samples.iter().filter_map(value).collect();
                (!bytes.is_empty()).then(|| median(bytes.iter().map(|&bytes| bytes as f64)))
            };
            let counts = self.counted.then(|| self.count(point)).transpose()?;
            measured.push(Measured {
                at_once: point.at_once().into(),
                requests_per_second: of(|record| record.requests_per_second),
                user_us: of(|record| record.user_us),
                system_us: of(|record| record.system_us),
                allocations: of(|record| record.allocations),
                instructions: counts.map(|[instructions, _]| instructions),
                system_calls: counts.map(|[_, system_calls]| system_calls),
                busy: bytes(|sample| sample.busy),
                idle: bytes(|sample| sample.idle),
            });
        }
        Ok(Curve(measured))
    }

    /// Instructions and system calls for a request: the difference between a run of 2n and a run of n requests.
    fn count(&self, point: &Point) -> Result<[f64; 2], Box<dyn Error>> {
        let served = Served::on(self.server_core, false)?;
        let n = u64::from(point.at_once()).max(LEAST_COUNTED);
        let count = |count: fn(&mut Command) -> Result<u64, Box<dyn Error>>| {
            let run = |requests: u64| {
                let mut command = point.command()?;
                command.args(["--requests", &requests.to_string()]);
                count(command.arg(served.url(&point.path)))
            };
            let once = run(n)?;
            Ok::<_, Box<dyn Error>>((run(2 * n)? as f64 - once as f64) / n as f64)
        };
        let counted = [count(counts::instructions)?, count(counts::system_calls)?];
        eprintln!(
            "{}: {:.0} instructions, {:.3} system calls",
            point.name, counted[0], counted[1]
        );
        Ok(counted)
    }
}

impl Curve {
    /// Prints one row for each level, with the ratio to the level `compared`. Bytes are divided by the number of
    /// simultaneous connections or calls.
    fn print(&self, head: &str, levels: &[usize], compared: usize, each: &str) {
        println!(
            "| {head} | requests/s | user µs | system µs | CPU µs | of {compared} | instructions | system calls | allocations \
             | bytes, busy, each {each} | idle |"
        );
        println!("|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
        let compared = levels.iter().position(|&level| level == compared);
        let compared = compared.map(|at| self.0[at].cpu_us());
        for (level, point) in levels.iter().zip(&self.0) {
            println!(
                "| {level} | {:.0} | {:.2} | {:.2} | {:.2} | {} | {} | {} | {:.3} | {} | {} |",
                point.requests_per_second,
                point.user_us,
                point.system_us,
                point.cpu_us(),
                cell(compared.map(|other| point.cpu_us() / other), 2),
                cell(point.instructions, 0),
                cell(point.system_calls, 3),
                point.allocations,
                cell(point.busy.map(|bytes| bytes / point.at_once), 0),
                cell(point.idle.map(|bytes| bytes / point.at_once), 0),
            );
        }
        println!();
    }
}

fn step(subject: Subject, connections: u32) -> Result<Command, Box<dyn Error>> {
    let mut command = tool("scale-step")?;
    command.args(["--subject", &subject.name()]);
    command.args(["--connections", &connections.to_string()]);
    Ok(command)
}

fn cell(value: Option<f64>, digits: usize) -> String {
    value.map_or("–".to_owned(), |value| format!("{value:.digits$}"))
}

/// The clients that are measured on several threads.
#[derive(Clone, Copy)]
struct ThreadedClients {
    name: &'static str,
    subject: Subject,
    callers: &'static str,
    threads: &'static [u32],
}

const THREADED_CLIENTS: [ThreadedClients; 5] = [
    ThreadedClients {
        name: "`HostClient` on each",
        subject: Subject::Hosts,
        callers: "itself",
        threads: &[1, 2],
    },
    ThreadedClients {
        name: "`Client` on each",
        subject: Subject::Clients,
        callers: "itself",
        threads: &[1, 2],
    },
    ThreadedClients {
        name: "`Shared<HostClient>`",
        subject: Subject::SharedHost,
        callers: "64 blocking",
        threads: &[1],
    },
    ThreadedClients {
        name: "`Shared<Client>`",
        subject: Subject::SharedClient,
        callers: "64 blocking",
        threads: &[1, 2],
    },
    ThreadedClients {
        name: "`Shared<Client>`",
        subject: Subject::SharedSubmit,
        callers: "a channel each",
        threads: &[1, 2],
    },
];
/// Simultaneous calls on all threads together.
const CALLERS: u32 = 64;

const CONNECTIONS: [usize; 6] = [1, 8, 64, 512, 4096, 20_000];
const COMPARED_CONNECTIONS: usize = 64;
const VISITED: [u64; 4] = [1000, 30_000, 100_000, 1_000_000];
const IDLE: [u64; 4] = [1, 1000, 100_000, 1_000_000];
const HEADERS: [u32; 5] = [5, 20, 50, 100, 200];
const PIPELINES: u32 = 8;
const PENDING: [usize; 7] = [1, 4, 16, 64, 256, 1024, 4096];
const COMPARED_PENDING: usize = 64;
const TOGETHER: [usize; 4] = [64, 512, 4096, 16_384];

/// File descriptors of a process besides its connections.
const SPARE_DESCRIPTORS: usize = 64;
const LEAST_WARM_UP: u32 = 2000;
/// Lowest number of requests of the shorter run for counts.
const LEAST_COUNTED: u64 = 4000;
