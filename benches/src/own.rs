//! courser itself, in the ways it can be used.

use std::error::Error;
use std::num::NonZeroUsize;
use std::thread;
use std::time::Instant;

use courser::{
    Call, Client, Config, HostClient, HostConfig, PemOrDer, PipelineClient, PipelineConfig,
    Request, Response, Shared, SharedConfig, Timeouts, TlsConfig, TlsRoots, Upstream,
};

use crate::load::asking::Asking;
use crate::load::drive::{self, Driven};
use crate::measure::{Plan, Record};
use crate::peers::{SharedRun, on_tokio};

/// Measures `HostClient`: all connections on one thread, by `submit` and `wait`.
///
/// # Errors
/// Nothing could be measured.
pub fn host(plan: &Plan, asking: &Asking) -> Result<Record, Box<dyn Error>> {
    let upstream = Upstream::tcp([plan.url.address]).with_host(&plan.url.authority);
    let client = HostClient::new(upstream, host_config(plan, asking))?;
    drive(plan, asking, true, client, "host")
}

/// Measures `Client` in the same way, with whole URLs.
///
/// # Errors
/// Nothing could be measured.
pub fn client(plan: &Plan, asking: &Asking) -> Result<Record, Box<dyn Error>> {
    let client = Client::new(config(plan, asking))?;
    drive(plan, asking, false, client, "client")
}

/// Measures `PipelineClient`: `depth` calls for each connection.
///
/// # Errors
/// Nothing could be measured.
pub fn pipeline(plan: &Plan, asking: &Asking) -> Result<Record, Box<dyn Error>> {
    let upstream = Upstream::tcp([plan.url.address]).with_host(&plan.url.authority);
    let config = PipelineConfig {
        host: host_config(plan, asking),
        max_pending: NonZeroUsize::new(plan.depth as usize).unwrap_or(NonZeroUsize::MIN),
        ..PipelineConfig::default()
    };
    let client = PipelineClient::new(upstream, config)?;
    drive(plan, asking, true, client, "pipeline")
}

/// Measures blocking calls through `Shared`: one thread with the client, and one for each connection that calls.
///
/// # Errors
/// Nothing could be measured.
pub fn blocking(plan: &Plan) -> Result<Record, Box<dyn Error>> {
    let shared = shared(plan)?;
    let run = SharedRun::new(plan)?;
    thread::scope(|scope| {
        for _ in 0..plan.connections {
            scope.spawn(|| {
                let mut response = Response::new();
                run.work(|| {
                    shared.get(&plan.url.url, &mut response)?;
                    Ok::<_, courser::Error>(response.status())
                });
            });
        }
    });
    run.finish("blocking")
}

/// Measures `Shared::send`: one thread with the client, and a current-thread tokio runtime whose tasks await it.
///
/// # Errors
/// Nothing could be measured.
pub fn send(plan: &Plan) -> Result<Record, Box<dyn Error>> {
    let shared = shared(plan)?;
    on_tokio(plan, "send", |run| {
        await_answers(shared.clone(), plan.url.url.clone(), run)
    })
}

async fn await_answers(shared: Shared<Client>, url: String, run: SharedRun) {
    let (mut request, mut response) = (Request::get(url), Response::new());
    let mut now = Instant::now();
    while run.lock().admit(now) {
        let sent = now;
        let done = shared.send(Call::new(request, response)).await;
        now = Instant::now();
        match done.outcome {
            Ok(()) => run.lock().answered(done.response.status(), sent, now),
            Err(error) => run.lock().failed(&error),
        }
        (request, response) = (done.request, done.response);
    }
}

fn shared(plan: &Plan) -> Result<Shared<Client>, courser::Error> {
    let config = config(plan, &Asking::default());
    Shared::spawn(SharedConfig::default(), move |_| {
        Client::new(config.clone())
    })
}

/// Drives one of the clients that run on this thread as it was asked for.
fn drive(
    plan: &Plan,
    asking: &Asking,
    one_host: bool,
    client: impl Driven,
    name: &str,
) -> Result<Record, Box<dyn Error>> {
    let script = asking.script(&plan.url, one_host)?;
    match asking.schedule() {
        Some(schedule) => drive::open(plan, schedule, script, client, name),
        None => {
            let ramp = asking.ramp.unwrap_or_default();
            drive::closed(plan, ramp, script, client, name)
        }
    }
}

/// As many connections as the plan has, for one host or for all.
#[must_use]
pub fn config(plan: &Plan, asking: &Asking) -> Config {
    let host = host_config(plan, asking);
    Config {
        max_connections: host.max_connections,
        host,
        tls: TlsConfig {
            roots: match plan.root {
                Some(_) => TlsRoots::None,
                None => TlsRoots::default(),
            },
            extra_roots: plan.root.iter().cloned().map(PemOrDer::File).collect(),
            // As the peers: what a handshake costs is measured with whole ones.
            resumption: 0,
            ..TlsConfig::default()
        },
        ..Config::default()
    }
}

/// The part of it that is for one host.
#[must_use]
pub fn host_config(plan: &Plan, asking: &Asking) -> HostConfig {
    let timeouts = Timeouts::default();
    HostConfig {
        timeouts: Timeouts {
            total: asking.timeout.or(timeouts.total),
            ..timeouts
        },
        max_connections: NonZeroUsize::new(plan.connections as usize).unwrap_or(NonZeroUsize::MIN),
        ..HostConfig::default()
    }
}
