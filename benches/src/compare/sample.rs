//! Takes samples: one client with one workload in one round each.

use std::error::Error;
use std::process::Command;
use std::time::Duration;

use nix::sys::resource::UsageWho;

use super::workload::Workload;
use crate::measure::{Own, Record, cpu_time};
use crate::peers::{go, wrk};
use crate::process::{Served, output_on, tool};
use crate::report::median;

/// A workload and its clients.
#[derive(Debug)]
pub(super) struct Contest {
    pub(super) workload: Workload,
    pub(super) entrants: Vec<Entrant>,
}

/// A client and its samples, one for each round.
#[derive(Debug)]
pub(super) struct Entrant {
    pub(super) client: &'static str,
    samples: Vec<Record>,
    /// The error after which the client is left out.
    pub(super) failure: Option<String>,
}

impl Contest {
    pub(super) fn take_round(&mut self, round: u32, place: &Place) {
        let name = self.workload.name;
        for entrant in &mut self.entrants {
            if entrant.failure.is_some() {
                continue;
            }
            let client = entrant.client;
            match place.take(client, &self.workload) {
                Ok(sample) => {
                    eprintln!("round {round}: {name}: {client}: {}", sample.line());
                    entrant.samples.push(sample);
                }
                Err(error) => {
                    eprintln!("round {round}: {name}: {client} failed: {error}");
                    entrant.failure = Some(error.to_string());
                }
            }
        }
    }
}

impl Entrant {
    pub(super) fn new(client: &'static str) -> Self {
        Self {
            client,
            samples: Vec::new(),
            failure: None,
        }
    }

    /// The median of all rounds; `None` without samples.
    pub(super) fn median(&self) -> Option<Record> {
        (!self.samples.is_empty()).then(|| median_of_all(&self.samples))
    }
}

/// The cores for client and server, and the duration of a sample.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) server_core: usize,
    pub(super) client_core: usize,
    pub(super) duration: Duration,
}

impl Place {
    /// Measures `client` with a new server: the system keeps closed connections (TIME_WAIT) by address, and a new
    /// address has none.
    ///
    /// # Errors
    /// The server, the client or a request failed.
    pub(super) fn take(&self, client: &str, workload: &Workload) -> Result<Record, Box<dyn Error>> {
        let served = &Served::on(self.server_core, workload.tls)?;
        let before = served.cpu_time()?;
        let mut sample = match client {
            "wrk" => self.of_wrk(workload, served)?,
            _ if go::CLIENTS.contains(&client) => self.of_go(client, workload, served)?,
            _ => self.of_tool(client, workload, served)?,
        };
        let server = served.cpu_time()? - before;
        sample.server_us = server.as_secs_f64() * 1e6 / sample.requests as f64;
        Ok(sample)
    }

    /// Runs a client of `load`, which does not count the requests of its warm-up.
    fn of_tool(
        &self,
        client: &str,
        workload: &Workload,
        served: &Served,
    ) -> Result<Record, Box<dyn Error>> {
        let depth = workload.depth_of(client);
        let mut command = tool("load")?;
        let warm_up = warm_up(client, workload);
        command
            .args(["--client", client])
            .args(["--connections", &workload.connections.to_string()])
            .args(["--warm-up", &warm_up.to_string()])
            .args(["--depth", &depth.to_string()])
            .args(["--method", workload.method])
            .args(["--body", &workload.body.to_string()])
            .arg(served.url(workload.path));
        let seconds = self.duration.as_secs_f64();
        match workload.rate {
            None => command.args(["--seconds", &seconds.to_string()]),
            // A number instead of a time, so that late requests at the end are counted too.
            Some(rate) => {
                let requests = (rate * seconds).max(1.0) as u64;
                let requests = requests.to_string();
                command.args(["--rate", &rate.to_string(), "--requests", &requests])
            }
        };
        if let Some(root) = served.root() {
            command.arg("--root").arg(root);
        }
        let output = output_on(self.client_core, &mut command)?;
        let mut record: Record = serde_json::from_str(&output)?;
        record.requests += warm_up;
        Ok(record)
    }

    fn of_wrk(&self, workload: &Workload, served: &Served) -> Result<Record, Box<dyn Error>> {
        let mut lua = format!("wrk.method = \"{}\"\n", workload.method);
        if workload.body > 0 {
            lua += &format!("wrk.body = string.rep(\"b\", {})\n", workload.body);
        }
        if workload.depth > 1 {
            // wrk can only pipeline a string of several requests.
            lua += &format!(
                "init = function(args) local r = {{}} for i = 1, {} do r[i] = wrk.format() end \
                 requests = table.concat(r) end\nrequest = function() return requests end\n",
                workload.depth
            );
        }
        let url = served.url(workload.path);
        let connections = workload.connections as usize;
        let (mut command, _script) = wrk::command(connections, self.duration, &lua, &url)?;
        self.of_foreign(&mut command)
    }

    fn of_go(
        &self,
        client: &str,
        workload: &Workload,
        served: &Served,
    ) -> Result<Record, Box<dyn Error>> {
        let mut command = Command::new(go::program()?);
        command
            .env("GOMAXPROCS", "1")
            .args(["--client", client])
            .args(["--connections", &workload.connections.to_string()])
            .args(["--depth", &workload.depth_of(client).to_string()])
            .args(["--duration", &format!("{}ns", self.duration.as_nanos())])
            .arg(served.url(workload.path));
        self.of_foreign(&mut command)
    }

    /// Runs a client that prints what wrk prints. Its processor time includes its start.
    fn of_foreign(&self, command: &mut Command) -> Result<Record, Box<dyn Error>> {
        let [user_before, system_before] = cpu_time(UsageWho::RUSAGE_CHILDREN)?;
        let output = output_on(self.client_core, command)?;
        let [user, system] = cpu_time(UsageWho::RUSAGE_CHILDREN)?;
        let (requests, requests_per_second) =
            wrk::numbers(&output).ok_or("it printed something else than expected")?;
        let per_request = |time: Duration| time.as_secs_f64() * 1e6 / requests as f64;
        Ok(Record {
            requests,
            requests_per_second,
            user_us: per_request(user - user_before),
            system_us: per_request(system - system_before),
            server_us: 0.0,
            own: None,
        })
    }
}

/// The number of requests of the warm-up, after which all connections are open and buffers have grown. With many
/// connections, one additional request on each is enough.
fn warm_up(client: &str, workload: &Workload) -> u64 {
    let at_once = u64::from(workload.connections * workload.depth_of(client));
    match workload.rate {
        Some(rate) => at_once.max((rate / 10.0) as u64),
        None => (10 * at_once).min((2 * at_once).max(WARM)),
    }
}

/// The median of each number of the samples.
///
/// The system samples whether time is user time, about ten times in a round. So the split between user and system time is
/// that of all rounds together. The sum of both is exact.
pub(super) fn median_of_all(samples: &[Record]) -> Record {
    let sum = |value: fn(&Record) -> f64| samples.iter().map(value).sum::<f64>();
    let user_share = sum(|sample| sample.user_us) / sum(Record::cpu_us).max(f64::MIN_POSITIVE);
    let of = |value: fn(&Record) -> f64| median(samples.iter().map(value));
    let cpu_us = of(Record::cpu_us);
    let own: Vec<_> = samples
        .iter()
        .filter_map(|sample| sample.own.as_ref())
        .collect();
    let of_own = |value: fn(&&Own) -> f64| median(own.iter().map(value));
    Record {
        requests: samples.iter().map(|sample| sample.requests).sum(),
        requests_per_second: of(|sample| sample.requests_per_second),
        user_us: cpu_us * user_share,
        system_us: cpu_us * (1.0 - user_share),
        server_us: of(|sample| sample.server_us),
        own: (!own.is_empty()).then(|| Own {
            allocations: of_own(|own| own.allocations),
            p50_us: of_own(|own| own.p50_us),
            p90_us: of_own(|own| own.p90_us),
            p99_us: of_own(|own| own.p99_us),
            p999_us: of_own(|own| own.p999_us),
        }),
    }
}

impl Record {
    pub(super) fn cpu_us(&self) -> f64 {
        self.user_us + self.system_us
    }

    /// The share of its core that the client used, in percent.
    pub(super) fn client_busy(&self) -> f64 {
        self.cpu_us() * self.requests_per_second / 1e4
    }

    /// The share of its core that the server used, in percent.
    pub(super) fn server_busy(&self) -> f64 {
        self.server_us * self.requests_per_second / 1e4
    }

    pub(super) fn line(&self) -> String {
        format!(
            "{:.0} requests/s, client {:.0} % busy, server {:.0} % busy",
            self.requests_per_second,
            self.client_busy(),
            self.server_busy()
        )
    }
}

/// Requests that are enough for a warm-up with any number of connections.
const WARM: u64 = 2000;
