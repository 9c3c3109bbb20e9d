//! Measures courser, in each of the ways in which it can be used.

use std::cell::Cell;
use std::error::Error;
use std::num::NonZeroUsize;
use std::thread;
use std::time::{Duration, Instant};

use courser::{
    Call, Client, Config, HostClient, HostConfig, PemOrDer, PipelineClient, PipelineConfig,
    Request, Response, Shared, SharedConfig, SocketOptions, Timeouts, TlsConfig, TlsRoots,
    Upstream,
};

use crate::drive::drive;
use crate::measure::{Plan, Record};
use crate::peers::{SharedRun, on_tokio};

/// Measures `HostClient`: all connections on one thread, with `submit` and `wait`.
///
/// # Errors
/// Nothing could be measured.
pub fn host(plan: &Plan) -> Result<Record, Box<dyn Error>> {
    let upstream = upstream(plan);
    let client = HostClient::new(upstream, host_config(plan))?;
    drive(plan, &request(plan, &plan.url.path), client)
}

/// Measures `Client` in the same way, with whole URLs.
///
/// # Errors
/// Nothing could be measured.
pub fn client(plan: &Plan) -> Result<Record, Box<dyn Error>> {
    let client = Client::new(config(plan))?;
    drive(plan, &request(plan, &plan.url.url), client)
}

/// Measures `PipelineClient`: `depth` calls for each connection.
///
/// # Errors
/// Nothing could be measured.
pub fn pipeline(plan: &Plan) -> Result<Record, Box<dyn Error>> {
    let upstream = upstream(plan);
    let config = PipelineConfig {
        host: host_config(plan),
        max_pending: NonZeroUsize::new(plan.depth as usize).unwrap_or(NonZeroUsize::MIN),
        ..PipelineConfig::default()
    };
    let client = PipelineClient::new(upstream, config)?;
    drive(plan, &request(plan, &plan.url.path), client)
}

/// How long a busy client looks for events before it sleeps: longer than an answer takes on one machine.
pub const BUSY_POLL: Duration = Duration::from_micros(50);

/// Measures blocking calls of `HostClient`s. Each has one connection and its own thread.
///
/// # Errors
/// Nothing could be measured.
pub fn call(plan: &Plan, busy_poll: Option<Duration>) -> Result<Record, Box<dyn Error>> {
    let upstream = upstream(plan);
    let config = HostConfig {
        tls: tls(plan),
        socket: SocketOptions {
            busy_poll,
            ..SocketOptions::default()
        },
        ..HostConfig::default()
    };
    let client = |_| HostClient::new(upstream.clone(), config.clone());
    let clients = (0..plan.connections).map(client);
    let clients = clients.collect::<Result<Vec<_>, _>>()?;
    let call = |client: &mut HostClient,
                request: &mut Request,
                response: &mut Response|
     -> Result<(), _> { client.call(request, response).map(drop) };
    threads(plan, &plan.url.path, clients, call)
}

/// Measures blocking calls through `Shared`: one thread with the client, and one calling thread for each connection.
///
/// # Errors
/// Nothing could be measured.
pub fn blocking(plan: &Plan) -> Result<Record, Box<dyn Error>> {
    let clients = vec![shared(plan)?; plan.connections as usize];
    let call = |client: &mut Shared<Client>, request: &mut Request, response: &mut Response| {
        client.call(request, response).map(drop)
    };
    threads(plan, &plan.url.url, clients, call)
}

/// Runs a thread for each of `clients`, which makes blocking calls.
fn threads<C: Send>(
    plan: &Plan,
    target: &str,
    clients: Vec<C>,
    call: impl Fn(&mut C, &mut Request, &mut Response) -> Result<(), courser::Error> + Sync,
) -> Result<Record, Box<dyn Error>> {
    let run = SharedRun::new(plan)?;
    let request = request(plan, target);
    thread::scope(|scope| {
        for mut client in clients {
            let (run, call) = (&run, &call);
            let mut request = request.clone();
            scope.spawn(move || {
                let mut response = Response::new();
                run.work(|| {
                    call(&mut client, &mut request, &mut response)?;
                    Ok::<_, courser::Error>(response.status())
                });
            });
        }
    });
    run.finish()
}

/// The request of the plan.
fn request(plan: &Plan, target: &str) -> Request {
    let mut request = Request::new(&plan.method, target);
    if let Some(body) = plan.body() {
        request.body(body);
    }
    request
}

/// Measures `Shared::send`: one thread with the client, and a current-thread tokio runtime whose tasks await it.
///
/// # Errors
/// Nothing could be measured.
pub fn send(plan: &Plan) -> Result<Record, Box<dyn Error>> {
    let shared = shared(plan)?;
    let request = request(plan, &plan.url.url);
    on_tokio(plan, |run| {
        await_answers(shared.clone(), request.clone(), run)
    })
}

/// Measures `Shared::driven`: a current-thread tokio runtime with a task that drives the client, and tasks that await
/// it.
///
/// # Errors
/// Nothing could be measured.
pub fn driven(plan: &Plan) -> Result<Record, Box<dyn Error>> {
    let client = Client::new(config(plan))?;
    let (shared, driver) = Shared::driven(SharedConfig::default(), client)?;
    let (request, driver) = (request(plan, &plan.url.url), Cell::new(Some(driver)));
    on_tokio(plan, |run| {
        if let Some(driver) = driver.take() {
            tokio::spawn(driver.run_on_tokio());
        }
        await_answers(shared.clone(), request.clone(), run)
    })
}

async fn await_answers(shared: Shared<Client>, mut request: Request, run: SharedRun) {
    let mut response = Response::new();
    let mut now = Instant::now();
    while let Some(since) = run.begin(now).await {
        let done = shared.send(Call::new(request, response)).await;
        let status = done.response.status();
        now = run.ended(since, done.outcome.map(|()| status));
        (request, response) = (done.request, done.response);
    }
}

fn shared(plan: &Plan) -> Result<Shared<Client>, courser::Error> {
    let config = config(plan);
    Shared::spawn(SharedConfig::default(), move |_| {
        Client::new(config.clone())
    })
}

/// A configuration with the number of connections of the plan, for one host or for all.
pub(crate) fn config(plan: &Plan) -> Config {
    let host = host_config(plan);
    Config {
        max_connections: host.max_connections,
        host,
        ..Config::default()
    }
}

/// The part of the configuration that applies to one host.
pub(crate) fn host_config(plan: &Plan) -> HostConfig {
    HostConfig {
        timeouts: Timeouts {
            // The system needs some time for thousands of connections. The peers wait without limit too.
            connect: None,
            handshake: None,
            ..Timeouts::default()
        },
        max_connections: NonZeroUsize::new(plan.connections as usize).unwrap_or(NonZeroUsize::MIN),
        tls: tls(plan),
        ..HostConfig::default()
    }
}

/// The server of the plan. Its address is known: no name is looked up.
pub(crate) fn upstream(plan: &Plan) -> Upstream {
    let upstream = Upstream::tcp([plan.url.address]).with_host(&plan.url.authority);
    match plan.url.scheme() {
        "https" => upstream.with_tls(plan.url.host()),
        _ => upstream,
    }
}

fn tls(plan: &Plan) -> TlsConfig {
    TlsConfig {
        roots: match plan.root {
            Some(_) => TlsRoots::None,
            None => TlsRoots::default(),
        },
        extra_roots: plan.root.iter().cloned().map(PemOrDer::File).collect(),
        // The peers do not resume sessions either: full handshakes are measured.
        resumption: 0,
        ..TlsConfig::default()
    }
}
