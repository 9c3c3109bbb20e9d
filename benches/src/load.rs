//! Requests a URL over a number of connections with courser or with a peer, and prints one [`Record`]: one measurement
//! of [`compare`](crate::compare), in a process of its own.

use std::error::Error;
use std::process::ExitCode;

use crate::measure::{Plan, Record};
use crate::{limit, own, peers};

/// Sends requests to an HTTP/1.1 server, as fast as possible or at a fixed rate, and prints the results as one line of JSON.
///
/// Without --rate, each connection has one request at a time and sends the next after the response (a closed loop):
/// this measures throughput. With --rate, requests are sent when they are due, and latencies count from that time (an
/// open loop): this measures latency, and a server that stalls cannot look fast because it got fewer requests.
#[derive(clap::Parser, Debug)]
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
    /// a loop over raw sockets that parses nothing: what the machine can do at all
    Limit,
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

/// Runs the tool.
///
/// # Errors
/// Nothing could be measured, or a request failed.
pub fn run(args: &Args) -> Result<ExitCode, Box<dyn Error>> {
    if args.plan.depth > 1 && !matches!(args.client, Client::Limit | Client::Pipeline) {
        return Err("this client has one request at a time on a connection".into());
    }
    println!("{}", serde_json::to_string(&args.measure()?)?);
    Ok(ExitCode::SUCCESS)
}

impl Args {
    fn measure(&self) -> Result<Record, Box<dyn Error>> {
        let plan = &self.plan;
        match self.client {
            Client::Limit => limit::measure(plan),
            Client::Host => own::host(plan),
            Client::Client => own::client(plan),
            Client::Pipeline => own::pipeline(plan),
            Client::Call => own::call(plan, None),
            Client::Busy => own::call(plan, Some(own::BUSY_POLL)),
            Client::Blocking => own::blocking(plan),
            Client::Send => own::send(plan),
            Client::Driven => own::driven(plan),
            Client::Hyper => peers::hyper::measure(plan),
            Client::Reqwest => peers::reqwest::measure(plan),
            Client::Ureq => peers::ureq::measure(plan),
        }
    }
}
