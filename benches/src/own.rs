//! courser itself, in the ways it can be used.

use std::error::Error;
use std::io;
use std::num::NonZeroUsize;
use std::thread;
use std::time::Instant;

use courser::{
    Call, Client, Completion, Config, HostClient, HostConfig, PemOrDer, PipelineClient,
    PipelineConfig, Request, Response, Shared, SharedConfig, TlsConfig, TlsRoots, Upstream,
};

use crate::measure::{Plan, Record, Run};
use crate::peers::{SharedRun, on_tokio};

/// Measures `HostClient`: all connections on one thread, by `submit` and `wait`.
///
/// # Errors
/// Nothing could be measured.
pub fn host(plan: &Plan) -> Result<Record, Box<dyn Error>> {
    let upstream = Upstream::tcp([plan.url.address]).with_host(&plan.url.authority);
    let client = HostClient::new(upstream, host_config(plan))?;
    drive(plan, &plan.url.path, client, "host")
}

/// Measures `Client` in the same way, with whole URLs.
///
/// # Errors
/// Nothing could be measured.
pub fn client(plan: &Plan) -> Result<Record, Box<dyn Error>> {
    let client = Client::new(config(plan))?;
    drive(plan, &plan.url.url, client, "client")
}

/// Measures `PipelineClient`: `depth` calls for each connection.
///
/// # Errors
/// Nothing could be measured.
pub fn pipeline(plan: &Plan) -> Result<Record, Box<dyn Error>> {
    let upstream = Upstream::tcp([plan.url.address]).with_host(&plan.url.authority);
    let config = PipelineConfig {
        host: host_config(plan),
        max_pending: NonZeroUsize::new(plan.depth as usize).unwrap_or(NonZeroUsize::MIN),
        ..PipelineConfig::default()
    };
    let client = PipelineClient::new(upstream, config)?;
    drive(plan, &plan.url.path, client, "pipeline")
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
    let config = config(plan);
    Shared::spawn(SharedConfig::default(), move |_| {
        Client::new(config.clone())
    })
}

/// As many calls at a time as the plan has connections, driven by this thread.
fn drive(
    plan: &Plan,
    target: &str,
    mut client: impl Driven,
    name: &str,
) -> Result<Record, Box<dyn Error>> {
    let mut run = Run::new(plan)?;
    // When the call of each tag was submitted last.
    let in_flight = plan.connections * plan.depth;
    let mut sent = vec![Instant::now(); in_flight as usize];
    for tag in 0..in_flight {
        if run.admit(Instant::now()) {
            let call = Call::new(Request::get(target), Response::new());
            client.submit(call.tag(tag.into()));
        }
    }
    while let Some(done) = client.wait()? {
        let now = Instant::now();
        let sent = &mut sent[done.tag as usize];
        match done.outcome {
            Ok(()) => run.answered(done.response.status(), *sent, now),
            Err(error) => run.failed(&error),
        }
        if run.admit(now) {
            *sent = now;
            client.submit(Call::new(done.request, done.response).tag(done.tag));
        }
    }
    run.opened(client.opened());
    run.finish(name)
}

/// What the clients have in common here.
trait Driven {
    fn submit(&mut self, call: Call);
    fn wait(&mut self) -> io::Result<Option<Completion>>;
    fn opened(&self) -> u64;
}

impl Driven for HostClient {
    fn submit(&mut self, call: Call) {
        self.submit(call);
    }

    fn wait(&mut self) -> io::Result<Option<Completion>> {
        self.wait(None)
    }

    fn opened(&self) -> u64 {
        self.counters().opened
    }
}

impl Driven for PipelineClient {
    fn submit(&mut self, call: Call) {
        self.submit(call);
    }

    fn wait(&mut self) -> io::Result<Option<Completion>> {
        self.wait(None)
    }

    fn opened(&self) -> u64 {
        self.counters().opened
    }
}

impl Driven for Client {
    fn submit(&mut self, call: Call) {
        self.submit(call);
    }

    fn wait(&mut self) -> io::Result<Option<Completion>> {
        self.wait(None)
    }

    fn opened(&self) -> u64 {
        self.counters().opened
    }
}

/// As many connections as the plan has, for one host or for all.
#[must_use]
pub fn config(plan: &Plan) -> Config {
    let host = host_config(plan);
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

fn host_config(plan: &Plan) -> HostConfig {
    HostConfig {
        max_connections: NonZeroUsize::new(plan.connections as usize).unwrap_or(NonZeroUsize::MIN),
        ..HostConfig::default()
    }
}
