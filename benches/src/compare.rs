//! One server, all clients, in turn: the server on one core, each client as a process of its own on another, in
//! rounds, so that a slow minute of the machine hits all of them alike. Prints medians as a Markdown table.
//!
//! Where the server is the busier side, requests per second say more about the server than about the client, and
//! where others use the machine, about them. So the table has both sides' share of their core, and the ratio to the
//! limit twice: by requests per second, and by processor time per request, which depends on neither.

use std::error::Error;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::resource::UsageWho;

use crate::measure::{Record, cpu_time, duration};
use crate::process::{Served, cores, installed, load, spawn_on};

/// Compares clients with each other and with the limit of the machine.
#[derive(clap::Parser, Debug)]
pub struct Args {
    /// Rounds; the table has the medians
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,

    /// Seconds for each client in each round
    #[arg(short, long, default_value = "2", value_parser = duration)]
    duration: Duration,

    /// Connections, each with one request at a time
    #[arg(short, long, default_value_t = 64)]
    connections: u32,

    /// Requests on each connection at a time, for those that can [default: 1, or 16 for pipelining]
    #[arg(long)]
    depth: Option<u32>,

    /// What is measured
    #[arg(long, value_enum, default_value_t = Workload::Plain)]
    workload: Workload,

    /// What to ask the server for: see the paths of `serve` [default: /13, or /close for handshakes]
    #[arg(long)]
    path: Option<String>,

    /// Who takes part: limit, wrk (skipped where it is not installed), and the clients of `load` [default: those whom
    /// the workload is for]
    #[arg(long, value_delimiter = ',')]
    clients: Option<Vec<String>>,
}

/// What can be measured. The numbers of each are for its own clients: they differ in what else is on their core.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
enum Workload {
    /// Requests over kept connections
    Plain,
    /// Requests over kept connections with TLS
    Tls,
    /// Requests over new connections with TLS, each with a whole handshake
    Handshakes,
    /// Blocking calls of as many threads as there are connections
    Shared,
    /// Requests that go out before the answers to those before them
    Pipelining,
    /// Awaited calls of as many tasks as there are connections, on one thread
    Async,
}

impl Workload {
    fn clients(self) -> &'static [&'static str] {
        match self {
            Self::Plain => &["limit", "wrk", "host", "client", "hyper", "reqwest", "ureq"],
            Self::Tls | Self::Handshakes => &["client", "reqwest"],
            Self::Shared => &["blocking", "ureq"],
            Self::Pipelining => &["wrk", "host", "pipeline"],
            Self::Async => &["send", "reqwest"],
        }
    }

    fn path(self) -> &'static str {
        match self {
            Self::Handshakes => "/close",
            Self::Plain | Self::Tls | Self::Pipelining | Self::Shared | Self::Async => "/13",
        }
    }

    fn has_tls(self) -> bool {
        matches!(self, Self::Tls | Self::Handshakes)
    }
}

impl Args {
    fn depth(&self) -> u32 {
        let pipelining = self.workload == Workload::Pipelining;
        self.depth.unwrap_or(if pipelining { 16 } else { 1 })
    }

    fn path(&self) -> &str {
        self.path.as_deref().unwrap_or(self.workload.path())
    }
}

/// The tool.
///
/// # Errors
/// The server or a client failed.
pub fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    let cores = cores()?;
    let (Some(&server_core), Some(&client_core)) = (cores.first(), cores.get(1)) else {
        return Err("two cores are needed: one for the server, one for the client".into());
    };
    let mut clients: Vec<&str> = match &args.clients {
        Some(clients) => clients.iter().map(String::as_str).collect(),
        None => args.workload.clients().to_vec(),
    };
    clients.retain(|&client| client != "wrk" || installed("wrk"));
    let served = Served::on(server_core, args.workload.has_tls())?;
    let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); clients.len()];
    for round in 1..=args.rounds {
        for (client, samples) in clients.iter().zip(&mut samples) {
            let sample = Sample::take(client, args, &served, client_core)?;
            eprintln!("round {round}: {client}: {}", sample.line());
            samples.push(sample);
        }
    }
    let medians: Vec<_> = samples
        .iter()
        .map(|samples| Sample::median(samples))
        .collect();
    print_table(args, &clients, &medians);
    Ok(())
}

/// What one client did in one round.
#[derive(Clone, Debug)]
struct Sample {
    requests_per_second: f64,
    user_us: f64,
    system_us: f64,
    /// The server's processor time for each request.
    server_us: f64,
    /// What only our own tools know; `None` for wrk.
    own: Option<Own>,
}

#[derive(Clone, Debug)]
struct Own {
    allocations: f64,
    p50_us: f64,
    p99_us: f64,
}

impl Sample {
    fn take(
        client: &str,
        args: &Args,
        served: &Served,
        core: usize,
    ) -> Result<Self, Box<dyn Error>> {
        let server_before = served.cpu_time()?;
        let (mut sample, requests) = match client {
            "wrk" => Self::of_wrk(args, served, core)?,
            _ => Self::of_tool(client, args, served, core)?,
        };
        let server = served.cpu_time()? - server_before;
        sample.server_us = server.as_secs_f64() * 1e6 / requests as f64;
        Ok(sample)
    }

    /// Also the number of requests that the server has seen.
    fn of_tool(
        client: &str,
        args: &Args,
        served: &Served,
        core: usize,
    ) -> Result<(Self, u64), Box<dyn Error>> {
        let mut command = load(client, args.connections)?;
        let depth = if client == "pipeline" {
            args.depth()
        } else {
            1
        };
        let warm_up = 10 * u64::from(args.connections * depth);
        command
            .args(["--duration", &args.duration.as_secs_f64().to_string()])
            .args(["--warm-up", &warm_up.to_string()])
            .args(["--depth", &depth.to_string()])
            .arg(served.url(args.path()));
        if let Some(root) = served.root() {
            command.arg("--root").arg(root);
        }
        let output = output_on(core, &mut command)?;
        let record = Record::from_json(&output).ok_or("a client printed no record")?;
        if record.errors > 0 {
            return Err(format!("{client}: {} errors", record.errors).into());
        }
        let sample = Self {
            requests_per_second: record.requests_per_second,
            user_us: record.user_us,
            system_us: record.system_us,
            server_us: 0.0,
            own: Some(Own {
                allocations: record.allocations,
                p50_us: record.p50_us,
                p99_us: record.p99_us,
            }),
        };
        Ok((sample, record.requests + warm_up))
    }

    fn of_wrk(args: &Args, served: &Served, core: usize) -> Result<(Self, u64), Box<dyn Error>> {
        let [user_before, system_before] = cpu_time(UsageWho::RUSAGE_CHILDREN)?;
        let script = tempfile::NamedTempFile::new()?;
        let mut command = Command::new("wrk");
        if args.depth() > 1 {
            // Its only way to pipeline: one string of several requests.
            let lua = format!(
                "init = function(args) local r = {{}} for i = 1, {} do r[i] = wrk.format() end \
                 requests = table.concat(r) end\nrequest = function() return requests end\n",
                args.depth()
            );
            std::fs::write(script.path(), lua)?;
            command.arg("--script").arg(script.path());
        }
        command
            .args([
                "--threads",
                "1",
                "--connections",
                &args.connections.to_string(),
            ])
            // It takes whole seconds.
            .args(["--duration", &args.duration.as_secs().max(1).to_string()])
            .arg(served.url(args.path()));
        let output = output_on(core, &mut command)?;
        let [user, system] = cpu_time(UsageWho::RUSAGE_CHILDREN)?;
        let (requests, requests_per_second) =
            wrk_numbers(&output).ok_or("wrk printed something else than expected")?;
        let per_request = |time: Duration| time.as_secs_f64() * 1e6 / requests as f64;
        let sample = Self {
            requests_per_second,
            user_us: per_request(user - user_before),
            system_us: per_request(system - system_before),
            server_us: 0.0,
            own: None,
        };
        Ok((sample, requests))
    }

    fn median(samples: &[Self]) -> Self {
        let of = |value: fn(&Self) -> f64| median(samples.iter().map(value));
        let own: Vec<_> = samples
            .iter()
            .filter_map(|sample| sample.own.as_ref())
            .collect();
        let of_own = |value: fn(&&Own) -> f64| median(own.iter().map(value));
        Self {
            requests_per_second: of(|sample| sample.requests_per_second),
            user_us: of(|sample| sample.user_us),
            system_us: of(|sample| sample.system_us),
            server_us: of(|sample| sample.server_us),
            own: (!own.is_empty()).then(|| Own {
                allocations: of_own(|own| own.allocations),
                p50_us: of_own(|own| own.p50_us),
                p99_us: of_own(|own| own.p99_us),
            }),
        }
    }

    fn cpu_us(&self) -> f64 {
        self.user_us + self.system_us
    }

    /// The share of its core that the client used, in percent.
    fn client_busy(&self) -> f64 {
        self.cpu_us() * self.requests_per_second / 1e4
    }

    /// The same of the server.
    fn server_busy(&self) -> f64 {
        self.server_us * self.requests_per_second / 1e4
    }

    fn line(&self) -> String {
        format!(
            "{:.0} requests/s, client {:.0} % busy, server {:.0} % busy",
            self.requests_per_second,
            self.client_busy(),
            self.server_busy()
        )
    }
}

/// Runs it to its end, and returns what it printed.
pub(crate) fn output_on(core: usize, command: &mut Command) -> Result<String, Box<dyn Error>> {
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let output = spawn_on(core, command)?.wait_with_output()?;
    if !output.status.success() {
        return Err(format!("{} failed", command.get_program().to_string_lossy()).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// All requests, and requests per second; `None` too where wrk saw errors.
fn wrk_numbers(output: &str) -> Option<(u64, f64)> {
    if output.contains("Socket errors:") || output.contains("Non-2xx") {
        return None;
    }
    let word_before = |mark: &str| output.split(mark).next()?.split_whitespace().last();
    let requests = word_before(" requests in ")?.parse().ok()?;
    let (_, rate) = output.split_once("Requests/sec:")?;
    Some((requests, rate.split_whitespace().next()?.parse().ok()?))
}

pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        values[middle]
    } else {
        f64::midpoint(values[middle - 1], values[middle])
    }
}

fn print_table(args: &Args, clients: &[&str], medians: &[Sample]) {
    let limit = clients
        .iter()
        .position(|&client| client == "limit")
        .map(|at| &medians[at]);
    println!(
        "`GET {}`{}, {} connections{}, server and client on one core each, medians of {} rounds of {:?}:\n",
        args.path(),
        if args.workload.has_tls() {
            " with TLS"
        } else {
            ""
        },
        args.connections,
        match args.depth() {
            1 => String::new(),
            depth => format!(", {depth} requests at a time on each where pipelined"),
        },
        args.rounds,
        args.duration
    );
    println!(
        "| client | requests/s | of the limit | by CPU | user µs | system µs | allocations | p50 µs | p99 µs \
         | client busy | server busy |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    for (client, sample) in clients.iter().zip(medians) {
        let rate = sample.requests_per_second;
        let ratios = limit.map_or("– | –".to_owned(), |limit| {
            let by_rate = rate / limit.requests_per_second;
            let by_cpu = limit.cpu_us() / sample.cpu_us();
            format!("{by_rate:.2} | {by_cpu:.2}")
        });
        let own = sample.own.as_ref().map_or("– | – | –".to_owned(), |own| {
            format!(
                "{:.1} | {:.0} | {:.0}",
                own.allocations, own.p50_us, own.p99_us
            )
        });
        println!(
            "| {client} | {rate:.0} | {ratios} | {:.2} | {:.2} | {own} | {:.0} % | {:.0} % |",
            sample.user_us,
            sample.system_us,
            sample.client_busy(),
            sample.server_busy()
        );
    }
}

#[cfg(test)]
mod tests {
    use super::{median, wrk_numbers};

    #[test]
    fn reads_what_wrk_prints() {
        let output = "Running 1s test @ http://127.0.0.1:1/\n  1 threads and 2 connections\n\
                      \x20 123456 requests in 1.10s, 11.22MB read\nRequests/sec: 112233.44\n\
                      Transfer/sec:     10.20MB\n";
        assert_eq!(wrk_numbers(output), Some((123_456, 112_233.44)));
        assert_eq!(
            wrk_numbers(&format!("{output}  Socket errors: connect 1\n")),
            None
        );
        assert_eq!(wrk_numbers("unable to connect"), None);
    }

    #[test]
    fn median_of_odd_and_even() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0].into_iter()), 2.5);
    }
}
