//! Compares all clients with the same server, one after the other. The server runs on one core, each client in its own
//! process on another core. Measurements are taken in rounds with all workloads, so that a slow minute of the machine
//! affects all clients equally. The tables show medians, and the bars that courser has to reach.
//!
//! If the server is busier than the client, requests per second say more about the server than about the client; if
//! other programs use the machine, they say more about these. So the tables also show the share of its core that each
//! side uses, and two ratios to the limit: by requests per second, and by processor time per request, which depends on
//! neither.

pub(crate) mod sample;
mod table;
mod workload;

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use self::sample::{Contest, Entrant, Place};
use self::workload::Workload;
use crate::measure::seconds;
use crate::memory::raise_descriptors;
use crate::peers::go;
use crate::process::{installed, two_cores};

/// Compares clients with each other and with the limit of the machine.
///
/// Without options it measures everything, which takes about a quarter of an hour, and prints one set of tables. With
/// `--seconds 0.3 --rounds 1` it takes two minutes.
#[derive(clap::Parser, Debug)]
#[command(after_help = workload::help())]
pub struct Args {
    /// Number of rounds; the tables show medians
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,

    /// How many seconds each client is measured in each round. wrk takes whole seconds
    #[arg(long, default_value = "0.8", value_parser = seconds)]
    seconds: Duration,

    /// Workloads: `all`, or names from the list below. The first word of a name stands for all names that begin with it
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        default_value = "all"
    )]
    workload: Vec<String>,

    /// Connections, instead of the number of each workload
    #[arg(short, long, value_parser = clap::value_parser!(u32).range(1..))]
    connections: Option<u32>,

    /// Clients, if the workload supports them: limit, wrk, fasthttp, net/http, and the clients of `compare load --help` [default: all
    /// that are installed; fasthttp and net/http need Debian's golang-go and golang-github-valyala-fasthttp-dev]
    #[arg(long, value_delimiter = ',')]
    clients: Option<Vec<String>>,
}

/// Runs the tool.
///
/// # Errors
/// A name is not that of a workload, or the server or a client failed.
pub fn run(args: &Args) -> Result<ExitCode, Box<dyn Error>> {
    let mut contests = args.contests()?;
    let (server_core, client_core) = two_cores()?;
    if server_core == client_core {
        eprintln!("compare: server and client share the only core, so ratios say little");
    }
    let place = Place {
        server_core,
        client_core,
        duration: args.seconds,
    };
    let mut entrants = contests.iter().flat_map(|contest| &contest.entrants);
    if entrants.any(|entrant| go::CLIENTS.contains(&entrant.client)) {
        go::build()?;
    }
    set_rates(&mut contests, &place)?;
    for round in 1..=args.rounds {
        for contest in &mut contests {
            contest.take_round(round, &place);
        }
    }
    table::print(args.rounds, args.seconds, &contests);
    let failures = contests.iter().flat_map(|contest| &contest.entrants);
    match failures.filter(|entrant| entrant.failure.is_some()).count() {
        0 => Ok(ExitCode::SUCCESS),
        failures => Err(format!("{failures} measurements failed").into()),
    }
}

impl Args {
    fn contests(&self) -> Result<Vec<Contest>, Box<dyn Error>> {
        let most = raise_descriptors()?.saturating_sub(SPARE_DESCRIPTORS);
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        let asked_for = |client: &&str| {
            let has = |clients: &Vec<String>| clients.iter().any(|name| name == client);
            self.clients.as_ref().is_none_or(has)
        };
        let mut absent = Vec::new();
        if !installed("wrk") {
            absent.push("wrk");
        }
        if !go::installed() {
            absent.extend(go::CLIENTS);
        }
        absent.retain(asked_for);
        if !absent.is_empty() {
            let absent = absent.join(", ");
            eprintln!("compare: without {absent}: not installed (see --help)");
        }
        let takes_part = |client: &&str| asked_for(client) && !absent.contains(client);
        let mut contests = Vec::new();
        for mut workload in workload::named(&self.workload)? {
            workload.connections = self.connections.unwrap_or(workload.connections);
            if workload.connections > most {
                eprintln!(
                    "compare: {} has {most} connections instead of {}: the system lets a process open no more files \
                     (see `ulimit -Hn`)",
                    workload.name, workload.connections
                );
                workload.connections = most;
            }
            let clients = workload.clients.iter().copied().filter(takes_part);
            let entrants: Vec<_> = clients.map(Entrant::new).collect();
            if !entrants.is_empty() {
                contests.push(Contest { workload, entrants });
            }
        }
        if contests.is_empty() {
            return Err("none of these clients is for these workloads".into());
        }
        Ok(contests)
    }
}

/// Sets the rates of the open loops: shares of the rate of the slowest client in a closed loop, so that all clients can
/// reach them.
fn set_rates(contests: &mut [Contest], place: &Place) -> Result<(), Box<dyn Error>> {
    let mut slowest: Option<f64> = None;
    for Contest { workload, entrants } in contests {
        let Some(share) = workload.share else {
            continue;
        };
        let most = match slowest {
            Some(most) => most,
            None => {
                let closed = Workload {
                    share: None,
                    ..workload.clone()
                };
                let mut most = f64::INFINITY;
                for entrant in entrants {
                    let sample = place.take(entrant.client, &closed)?;
                    most = most.min(sample.requests_per_second);
                }
                eprintln!("without a rate, the slowest client does {most:.0} requests/s");
                *slowest.insert(most)
            }
        };
        workload.rate = Some(two_digits(most * share));
    }
    Ok(())
}

/// Rounds to two significant digits.
fn two_digits(number: f64) -> f64 {
    let unit = 10f64.powf(number.log10().floor() - 1.0);
    (number / unit).round() * unit
}

/// File descriptors of a process besides its connections.
const SPARE_DESCRIPTORS: usize = 100;

#[cfg(test)]
mod tests {
    use super::two_digits;

    #[test]
    fn rates_are_round() {
        for (number, rounded) in [(43_210.0, 43_000.0), (9_960.0, 10_000.0), (17.6, 18.0)] {
            assert!((two_digits(number) - rounded).abs() < 1e-6, "{number}");
        }
    }
}
