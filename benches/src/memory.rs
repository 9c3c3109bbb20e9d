//! The memory of an idle connection in clients of courser and in peers, without TLS and with TLS. Each client is a
//! process with one thread; the server is another process. A client sends so many simultaneous requests that each needs
//! its own connection, takes the responses, and frees everything that a caller holds. Then its heap is measured: the
//! bytes beyond those before the client was created, divided by the number of connections. They include the tables of
//! the client, with the space that these have reserved in advance.

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use clap::ValueEnum as _;
use courser::{
    Call, Client, Config, HostClient, HostConfig, HttpClient, Request, Response, Timeouts,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::alloc::held_by_this_thread;
use crate::measure::Plan;
use crate::own;
use crate::peers::{self, hyper::Connection, hyper::Exchange};
use crate::process::{Served, output_on, tool, two_cores};
use crate::report::{exit_code, name_of};

/// Measures the memory of idle connections.
#[derive(clap::Parser, Debug)]
pub struct Args {
    /// Idle connections of each client; fewer if the limit on file descriptors is too low
    #[arg(short, long, default_value = "10000", value_parser = clap::value_parser!(u32).range(1..))]
    connections: u32,
}

/// The measured clients.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
enum Subject {
    /// courser's `HostClient`
    Host,
    /// courser's `Client`
    Client,
    /// hyper's `client::conn::http1`, with tokio-rustls for TLS
    Hyper,
    /// reqwest's async client
    Reqwest,
}

/// Runs the tool. The exit code is 1 if courser exceeded a bar.
///
/// # Errors
/// The server or a client failed.
pub fn run(args: &Args) -> Result<ExitCode, Box<dyn Error>> {
    let most = raise_descriptors()?.saturating_sub(SPARE_DESCRIPTORS);
    let connections = args
        .connections
        .min(u32::try_from(most).unwrap_or(u32::MAX));
    println!("Bytes of the heap for an idle connection, of {connections}:\n");
    println!("| client | plain | with TLS |\n|---|--:|--:|");
    println!("| bar | {MOST_PLAIN} | {MOST_TLS} |");
    let mut is_missed = false;
    for &subject in Subject::value_variants() {
        let [plain, tls] = [false, true].map(|tls| idle_in(subject, connections, tls));
        let (plain, tls) = (plain?, tls?);
        println!("| {} | {plain} | {tls} |", name_of(subject));
        let is_ours = matches!(subject, Subject::Host | Subject::Client);
        is_missed |= is_ours && (plain > MOST_PLAIN || tls > MOST_TLS);
    }
    Ok(exit_code(is_missed))
}

/// The bytes for each connection of a client in a process of its own.
fn idle_in(subject: Subject, connections: u32, tls: bool) -> Result<i64, Box<dyn Error>> {
    let (server_core, client_core) = two_cores()?;
    let served = Served::on(server_core, tls)?;
    let mut command = tool("idle")?;
    command.args(["--client", &name_of(subject)]);
    command.args(["--connections", &connections.to_string()]);
    command.arg(served.url(&format!("/gather/{connections}")));
    if let Some(root) = served.root() {
        command.arg("--root").arg(root);
    }
    Ok(output_on(client_core, &mut command)?.trim().parse()?)
}

/// Measures one client with a running server.
#[derive(clap::Parser, Debug)]
pub struct IdleArgs {
    #[command(flatten)]
    plan: Plan,

    /// The client
    #[arg(long, value_enum)]
    client: Subject,
}

/// Prints the bytes for each connection.
///
/// # Errors
/// A request failed, or a connection was closed.
pub fn idle(args: &IdleArgs) -> Result<ExitCode, Box<dyn Error>> {
    raise_descriptors()?;
    let plan = &args.plan;
    let (url, root) = (&plan.url, plan.root.as_deref());
    let connections = plan.connections as usize;
    let bytes = match args.client {
        Subject::Host => {
            let before = held_by_this_thread();
            let client = HostClient::new(own::upstream(plan), host_config(plan))?;
            of_courser(client, &url.path, connections)? - before
        }
        Subject::Client => {
            let before = held_by_this_thread();
            let client = Client::new(Config {
                host: host_config(plan),
                ..own::config(plan)
            })?;
            of_courser(client, &url.url, connections)? - before
        }
        Subject::Hyper => on_tokio(async {
            let exchange = Exchange::new(url, root)?;
            let before = held_by_this_thread();
            // The caller has to hold this part of each connection.
            let mut kept: Vec<Connection> = Vec::with_capacity(connections);
            let ask = |_| {
                let exchange = exchange.clone();
                tokio::spawn(async move {
                    let mut connection = None;
                    exchange.run(&mut connection).await?;
                    Ok::<_, Box<dyn Error + Send + Sync>>(connection)
                })
            };
            let asked: Vec<_> = (0..connections).map(ask).collect();
            for answer in asked {
                let connection = answer.await?.map_err(|error| error.to_string())?;
                kept.extend(connection);
            }
            tokio::task::yield_now().await;
            enough(kept.iter().filter(|c| !c.is_closed()).count(), connections)?;
            Ok(held_by_this_thread() - before)
        })?,
        Subject::Reqwest => on_tokio(async {
            let before = held_by_this_thread();
            let client = peers::reqwest::client(root)?;
            let asked = peers::reqwest::Asked::get(&url.url)?;
            let ask = |_| {
                let (client, asked) = (client.clone(), asked.clone());
                tokio::spawn(async move { peers::reqwest::exchange(&client, &asked).await })
            };
            let asked: Vec<_> = (0..connections).map(ask).collect();
            for answer in asked {
                answer.await??;
            }
            tokio::task::yield_now().await;
            Ok(held_by_this_thread() - before)
        })?,
    };
    println!("{}", bytes / connections as i64);
    Ok(ExitCode::SUCCESS)
}

fn host_config(plan: &Plan) -> HostConfig {
    HostConfig {
        idle_timeout: LONG,
        timeouts: Timeouts {
            total: Some(LONG),
            ..Timeouts::none()
        },
        ..own::host_config(plan)
    }
}

/// The bytes that this thread holds once a client has so many idle connections.
fn of_courser(
    mut client: impl HttpClient,
    target: &str,
    connections: usize,
) -> Result<i64, Box<dyn Error>> {
    for _ in 0..connections {
        client.submit(Call::new(Request::get(target), Response::new()));
    }
    while let Some(done) = client.wait(None)?.done() {
        done.outcome?;
    }
    enough(client.counters().idle, connections)?;
    Ok(held_by_this_thread())
}

fn on_tokio<T>(work: impl Future<Output = Result<T, Box<dyn Error>>>) -> Result<T, Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(work)
}

fn enough(idle: usize, connections: usize) -> Result<(), Box<dyn Error>> {
    if idle == connections {
        return Ok(());
    }
    Err(format!("{idle} idle connections, not {connections}").into())
}

/// Raises the limit on file descriptors of this process and its children to the hard limit, and returns it.
///
/// # Errors
/// The system cannot report or set the limit.
pub fn raise_descriptors() -> Result<usize, Box<dyn Error>> {
    let hard = getrlimit(Resource::Nofile).maximum;
    let both = Rlimit {
        current: hard,
        maximum: hard,
    };
    setrlimit(Resource::Nofile, both)?;
    // None is no limit.
    Ok(hard.map_or(usize::MAX, |hard| {
        usize::try_from(hard).unwrap_or(usize::MAX)
    }))
}

/// Bar: bytes of the engine for an idle connection without TLS.
const MOST_PLAIN: i64 = 1024;
const MOST_TLS: i64 = 24 * 1024;
/// File descriptors of a process besides its connections.
const SPARE_DESCRIPTORS: usize = 64;
/// Longer than a measurement takes.
const LONG: Duration = Duration::from_secs(600);
