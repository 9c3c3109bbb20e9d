//! The memory of an idle connection in clients of courser and in peers, without TLS and with TLS. Each client is a
//! process with one thread; the server is another process. A client sends so many simultaneous requests that each needs
//! its own connection, takes the responses, and frees everything that a caller holds. Then its heap is measured: the
//! bytes beyond those before the client was created, divided by the number of connections. They include the tables of
//! the client, with the space that these have reserved in advance.

use std::error::Error;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use clap::ValueEnum as _;
use courser::{
    Call, Client, Config, HostClient, HostConfig, PemOrDer, Request, Response, TlsConfig, TlsRoots,
    Upstream,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};

use crate::alloc::held_by_this_thread;
use crate::measure::Target;
use crate::peers::{self, hyper::Connection, hyper::Exchange};
use crate::process::{self, Served, spawn_on, tool, two_cores};
use crate::report::name_of;

/// Measures the memory of idle connections.
#[derive(clap::Parser, Debug)]
pub struct Args {
    /// Idle connections of each client; fewer if the limit on file descriptors is too low
    #[arg(short, long, default_value = "10000")]
    connections: NonZeroUsize,

    /// Idle connections with TLS [default: the same number]
    #[arg(long)]
    tls_connections: Option<NonZeroUsize>,

    /// Measure only this client, with a running server
    #[arg(long, value_enum, hide = true, requires = "url")]
    client: Option<Subject>,

    #[arg(long, hide = true)]
    url: Option<Target>,

    #[arg(long, hide = true)]
    root: Option<PathBuf>,
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

impl Subject {
    fn is_courser(self) -> bool {
        matches!(self, Self::Host | Self::Client)
    }

    /// Whether the client is measured with TLS. Upstreams of a `HostClient` have no TLS.
    fn has_tls(self) -> bool {
        self != Self::Host
    }
}

/// Runs the tool. The exit code is 1 if courser exceeded a bar.
///
/// # Errors
/// The server or a client failed.
pub fn run(args: &Args) -> Result<ExitCode, Box<dyn Error>> {
    let most = raise_descriptors()?.saturating_sub(SPARE_DESCRIPTORS);
    let connections = args.connections.get().min(most);
    if let (Some(subject), Some(url)) = (args.client, &args.url) {
        println!("{}", measure(subject, connections, url, args)?.to_json());
        return Ok(ExitCode::SUCCESS);
    }
    if connections < args.connections.get() {
        eprintln!("memory: the limit on descriptors allows {connections} connections only");
    }
    let with_tls = args.tls_connections.unwrap_or(args.connections).get();
    let with_tls = with_tls.min(most);
    let plain = all(connections, false)?;
    let tls = all(with_tls, true)?;
    println!(
        "Bytes for an idle connection, of {connections} plain ones and {with_tls} with TLS:\n"
    );
    println!("| client | heap | with TLS | resident | with TLS |\n|---|--:|--:|--:|--:|");
    println!("| bar | {MOST_PLAIN} | {MOST_TLS} | – | – |");
    let mut held = true;
    for (at, subject) in Subject::value_variants().iter().enumerate() {
        let cell = |sample: &Option<Sample>, value: fn(&Sample) -> i64| {
            let text = |sample| value(sample).to_string();
            sample.as_ref().map_or("–".to_owned(), text)
        };
        let (plain, tls) = (&plain[at], &tls[at]);
        println!(
            "| {} | {} | {} | {} | {} |",
            name_of(*subject),
            cell(plain, |sample| sample.heap),
            cell(tls, |sample| sample.heap),
            cell(plain, |sample| sample.resident),
            cell(tls, |sample| sample.resident),
        );
        let within = |sample: &Option<Sample>, most| sample.as_ref().is_none_or(|s| s.heap <= most);
        held &= !subject.is_courser() || within(plain, MOST_PLAIN) && within(tls, MOST_TLS);
    }
    if held {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("memory: too many bytes for an idle connection");
    Ok(ExitCode::FAILURE)
}

/// Measures all clients. `None` for a client without TLS.
fn all(connections: usize, tls: bool) -> Result<Vec<Option<Sample>>, Box<dyn Error>> {
    let (server_core, client_core) = two_cores()?;
    let mut samples = Vec::new();
    for subject in Subject::value_variants() {
        if tls && !subject.has_tls() {
            samples.push(None);
            continue;
        }
        let served = Served::on(server_core, tls)?;
        let mut command = tool("memory")?;
        command.args(["--client", &name_of(*subject)]);
        command.args(["--connections", &connections.to_string()]);
        let path = format!("/gather/{connections}");
        command.args(["--url", &served.url(&path)]);
        if let Some(root) = served.root() {
            command.arg("--root").arg(root);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let output = spawn_on(client_core, &mut command)?.wait_with_output()?;
        let text = String::from_utf8(output.stdout)?;
        let sample = Sample::from_json(&text);
        samples.push(Some(sample.ok_or("a client printed no numbers")?));
    }
    Ok(samples)
}

/// Bytes for each connection.
#[derive(Clone, Copy, Debug)]
struct Sample {
    /// Bytes allocated on the heap.
    heap: i64,
    /// Bytes of resident pages: includes the overhead of the allocator, and freed memory that it has kept.
    resident: i64,
}

impl Sample {
    fn to_json(self) -> Value {
        json!({ "heap": self.heap, "resident": self.resident })
    }

    fn from_json(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        Some(Self {
            heap: value["heap"].as_i64()?,
            resident: value["resident"].as_i64()?,
        })
    }
}

/// The memory of the process before the client was created.
#[derive(Debug)]
struct Before {
    heap: i64,
    /// KiB
    resident: i64,
}

impl Before {
    fn new() -> Result<Self, Box<dyn Error>> {
        Ok(Self {
            resident: process::memory("self", "VmRSS")? as i64,
            heap: held_by_this_thread(),
        })
    }

    fn per_connection(&self, connections: usize) -> Result<Sample, Box<dyn Error>> {
        let each = |bytes: i64| bytes / connections as i64;
        Ok(Sample {
            heap: each(held_by_this_thread() - self.heap),
            resident: each((process::memory("self", "VmRSS")? as i64 - self.resident) * 1024),
        })
    }
}

fn measure(
    subject: Subject,
    connections: usize,
    url: &Target,
    args: &Args,
) -> Result<Sample, Box<dyn Error>> {
    let root = args.root.clone();
    match subject {
        Subject::Host => {
            let before = Before::new()?;
            let upstream = Upstream::tcp([url.address]).with_host(&url.authority);
            let mut client = HostClient::new(upstream, host_config(connections))?;
            for _ in 0..connections {
                client.submit(Call::new(Request::get(&url.path), Response::new()));
            }
            while let Some(done) = client.wait(None)?.done() {
                done.outcome?;
            }
            enough(client.counters().idle, connections)?;
            before.per_connection(connections)
        }
        Subject::Client => {
            let before = Before::new()?;
            let mut client = Client::new(config(connections, root))?;
            for _ in 0..connections {
                client.submit(Call::new(Request::get(&url.url), Response::new()));
            }
            while let Some(done) = client.wait(None)?.done() {
                done.outcome?;
            }
            enough(client.counters().idle, connections)?;
            before.per_connection(connections)
        }
        Subject::Hyper => on_tokio(async {
            let exchange = Exchange::new(url, root.as_deref())?;
            let before = Before::new()?;
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
            before.per_connection(connections)
        }),
        Subject::Reqwest => on_tokio(async {
            let before = Before::new()?;
            let client = peers::reqwest::client(root.as_deref())?;
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
            before.per_connection(connections)
        }),
    }
}

fn on_tokio<T>(work: impl Future<Output = Result<T, Box<dyn Error>>>) -> Result<T, Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(work)
}

fn config(connections: usize, root: Option<PathBuf>) -> Config {
    let host = HostConfig {
        tls: TlsConfig {
            roots: match root {
                Some(_) => TlsRoots::None,
                None => TlsRoots::default(),
            },
            extra_roots: root.into_iter().map(PemOrDer::File).collect(),
            // The peers do not resume sessions either.
            resumption: 0,
            ..TlsConfig::default()
        },
        ..host_config(connections)
    };
    Config {
        max_connections: host.max_connections,
        host,
        ..Config::default()
    }
}

fn host_config(connections: usize) -> HostConfig {
    HostConfig {
        max_connections: NonZeroUsize::new(connections).unwrap_or(NonZeroUsize::MIN),
        idle_timeout: LONG,
        timeouts: courser::Timeouts {
            total: Some(LONG),
            connect: Some(LONG),
            handshake: Some(LONG),
            ..courser::Timeouts::default()
        },
        ..HostConfig::default()
    }
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
