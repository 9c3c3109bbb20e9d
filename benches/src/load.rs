//! The load generator: one process that requests a URL over a number of connections with courser or with a
//! peer, and prints one [`Record`]. [`drive`] keeps clients of courser busy.

pub mod drive;
pub mod schedule;

use std::error::Error;
use std::process::ExitCode;

use crate::measure::{Plan, Record, takes_body};
use crate::{own, peers, report};

/// Sends requests to an HTTP/1.1 server, as fast as possible or at a fixed rate, and prints the results as one line of JSON.
///
/// Without --rate, each connection has one request at a time and sends the next after the response (a closed loop):
/// this measures throughput. With --rate, requests are sent when they are due, and latencies count from that time (an
/// open loop): this measures latency, and a server that stalls cannot look fast because it got fewer requests.
///
/// The exit code is 1 if requests failed. A status of 400 or above is a failure.
#[derive(clap::Parser, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    plan: Plan,

    /// The client to measure
    #[arg(long, value_enum, default_value_t = Client::Host)]
    client: Client,
}

/// The clients to choose from.
#[derive(Clone, Copy, Debug, PartialEq, clap::ValueEnum)]
pub enum Client {
    /// courser's `HostClient`, with all connections on one thread
    Host,
    /// courser's `Client`, with all connections on one thread
    Client,
    /// courser's `PipelineClient`, on one thread
    Pipeline,
    /// courser's `HostClient`, one for each connection, with blocking calls on a thread of its own
    Call,
    /// As `call`, and a thread looks for events for 50 µs before it sleeps
    Busy,
    /// courser's `Shared`, with a thread that makes blocking calls for each connection
    Blocking,
    /// courser's `Shared`, with a task that awaits calls for each connection, on a current-thread tokio runtime
    Send,
    /// courser's `Shared` without a thread of its own, driven and awaited by tasks of a current-thread tokio runtime
    Driven,
    /// hyper's `client::conn::http1`, one connection for each task of a current-thread tokio runtime
    Hyper,
    /// reqwest's async client, one task for each connection on a current-thread tokio runtime
    Reqwest,
    /// ureq, one thread with an agent of its own for each connection
    Ureq,
}

/// Runs the tool. The exit code is 1 if requests failed.
///
/// # Errors
/// Nothing could be measured.
pub fn run(args: &Args) -> Result<ExitCode, Box<dyn Error>> {
    args.check()?;
    let record = args.measure()?;
    record.print();
    // Tools that start this one show its standard error to their users.
    for (kind, count) in &record.details.errors_by_kind {
        eprintln!("load: {count} errors: {}", report::printable(kind));
    }
    if record.requests == 0 && record.errors == 0 {
        return Err("no request was measured".into());
    }
    Ok(report::exit_code(record.errors > 0))
}

impl Args {
    /// Rejects options that the client does not support: without them, the measurement would be a different one.
    fn check(&self) -> Result<(), Box<dyn Error>> {
        if self.plan.depth > 1 && self.client != Client::Pipeline {
            return Err("only --client pipeline has more than one request on a connection".into());
        }
        let method = self.plan.method();
        if self.plan.data.is_some() && !takes_body(method) {
            return Err(format!("--data is not sent with {method}").into());
        }
        Ok(())
    }

    fn measure(&self) -> Result<Record, Box<dyn Error>> {
        let plan = &self.plan;
        match self.client {
            Client::Host => own::host(plan),
            Client::Client => own::client(plan),
            Client::Pipeline => own::pipeline(plan),
            Client::Call => own::call(plan, "call", None),
            Client::Busy => own::call(plan, "busy", Some(own::BUSY_POLL)),
            Client::Blocking => own::blocking(plan),
            Client::Send => own::send(plan),
            Client::Driven => own::driven(plan),
            Client::Hyper => peers::hyper::measure(plan),
            Client::Reqwest => peers::reqwest::measure(plan),
            Client::Ureq => peers::ureq::measure(plan),
        }
    }
}

const EXAMPLES: &str = "\
Examples:
  load -c 64 -d 10s http://127.0.0.1:8080/
  load --rate 5000 -d 1m http://127.0.0.1:8080/
  load -X PUT --data @body.txt -n 1000 http://127.0.0.1:8080/put
  load --client pipeline --depth 16 -c 8 http://127.0.0.1:8080/";
