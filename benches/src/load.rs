//! The load generator: one process that asks one URL again and again over a number of connections, with courser or
//! with one of its peers, and prints one [`Record`](crate::measure::Record).

use std::error::Error;

use crate::measure::Plan;
use crate::{own, peers};

/// Loads one URL and measures.
#[derive(clap::Parser, Debug)]
pub struct Args {
    #[command(flatten)]
    plan: Plan,

    /// The client that does it
    #[arg(long, value_enum, default_value_t = Client::Host)]
    client: Client,

    /// Print the record as JSON
    #[arg(long)]
    json: bool,
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
    /// courser's `Shared`, with a thread that makes blocking calls for each connection
    Blocking,
    /// courser's `Shared`, with a task that awaits calls for each connection, on a current-thread tokio runtime
    Send,
    /// hyper's `client::conn::http1`, one connection for each task of a current-thread tokio runtime
    Hyper,
    /// reqwest's async client, one task for each connection on a current-thread tokio runtime
    Reqwest,
    /// ureq, one thread with an agent of its own for each connection
    Ureq,
}

/// The tool.
///
/// # Errors
/// Nothing could be measured.
pub fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    if args.plan.depth > 1 && args.client != Client::Pipeline {
        return Err("only --client pipeline has more than one request on a connection".into());
    }
    let record = match args.client {
        Client::Host => own::host(&args.plan),
        Client::Client => own::client(&args.plan),
        Client::Pipeline => own::pipeline(&args.plan),
        Client::Blocking => own::blocking(&args.plan),
        Client::Send => own::send(&args.plan),
        Client::Hyper => peers::hyper::measure(&args.plan),
        Client::Reqwest => peers::reqwest::measure(&args.plan),
        Client::Ureq => peers::ureq::measure(&args.plan),
    }?;
    record.print(args.json);
    Ok(())
}
