//! GETs on kept connections of the loopback, with each client: plain and over TLS, one and 64 in flight, four bodies.
//!
//! Client and server share one core: to wake another core costs more than the exchange itself, and the cost varies. The
//! time is that of both, so it is the difference between two clients that counts.

mod common;

use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use benches::measure::Target;
use benches::peers;
use benches::process::{cores, stay_on};
use benches::serve::Server;
use benches::tls;
use common::{measure_client, measure_rounds, runtime};
use courser::{
    Call, Client, Config, HostClient, HostConfig, PemOrDer, PipelineClient, PipelineConfig,
    Request, Response, Shared, SharedConfig, TlsConfig, TlsRoots, Upstream,
};
use criterion::measurement::WallTime;
use criterion::{Bencher, BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use tempfile::NamedTempFile;
use tokio::runtime::Runtime;
use tokio::task::{LocalSet, spawn_local};

criterion_group!(benches, get);
criterion_main!(benches);

fn get(criterion: &mut Criterion) {
    let cores = cores().expect("a list of cores");
    stay_on(cores[0]).expect("a core");
    for site in [Site::plain(), Site::with_tls()] {
        for path in ["/13", "/16k", "/1m", "/chunked"] {
            for in_flight in [1, 64] {
                let target = site.target(path);
                let name = format!("{}{path} x{in_flight}", target.scheme());
                let mut group = criterion.benchmark_group(name);
                group.throughput(Throughput::Elements(in_flight as u64));
                group.sample_size(10);
                group.warm_up_time(Duration::from_millis(200));
                group.measurement_time(Duration::from_millis(800));
                measure(&mut group, &site, &target, in_flight);
                group.finish();
            }
        }
    }
}

/// An iteration is as many exchanges as are in flight.
fn measure(
    group: &mut BenchmarkGroup<'_, WallTime>,
    site: &Site,
    target: &Target,
    in_flight: usize,
) {
    let host = site.host_config(in_flight);
    let config = Config {
        host: host.clone(),
        ..Config::default()
    };
    group.bench_function("HostClient", |bencher| {
        let mut client = HostClient::new(site.upstream(target), host.clone()).expect("a client");
        measure_client(bencher, &mut client, &target.path, in_flight);
    });
    group.bench_function("Client", |bencher| {
        let mut client = Client::new(config.clone()).expect("a client");
        measure_client(bencher, &mut client, &target.url, in_flight);
    });
    group.bench_function("PipelineClient", |bencher| {
        let config = PipelineConfig {
            host: HostConfig {
                max_connections: NonZeroUsize::MIN,
                ..host.clone()
            },
            ..PipelineConfig::default()
        };
        let mut client = PipelineClient::new(site.upstream(target), config).expect("a client");
        measure_client(bencher, &mut client, &target.path, in_flight);
    });
    group.bench_function("Shared", |bencher| {
        let runtime = runtime();
        let client = Client::new(config.clone()).expect("a client");
        let shared = Shared::driven(SharedConfig::default(), client);
        let (shared, driver) = shared.expect("a shared client");
        runtime.spawn(driver.run_on_tokio());
        let buffers = || (Request::get(&*target.url), Response::new());
        measure_tasks(
            bencher,
            &runtime,
            in_flight,
            buffers,
            async move |(request, response)| {
                let done = shared.send(Call::new(request, response)).await;
                done.outcome.expect("an answer");
                (done.request, done.response)
            },
        );
    });
    group.bench_function("hyper", |bencher| {
        let exchange = peers::hyper::Exchange::new(target, site.root()).expect("a URL");
        let connection = || None;
        measure_tasks(
            bencher,
            &runtime(),
            in_flight,
            connection,
            async move |mut connection| {
                let answer = exchange.run(&mut connection).await;
                answer.expect("an answer");
                connection
            },
        );
    });
    group.bench_function("reqwest", |bencher| {
        let client = peers::reqwest::client(site.root()).expect("a client");
        let asked = peers::reqwest::Asked::get(&target.url).expect("a URL");
        measure_tasks(
            bencher,
            &runtime(),
            in_flight,
            || (),
            async move |()| {
                let answer = peers::reqwest::exchange(&client, &asked).await;
                answer.expect("an answer");
            },
        );
    });
}

/// Measures so many tasks that make one exchange after another. Each exchange takes a state, and returns it for the next.
fn measure_tasks<S: 'static>(
    bencher: &mut Bencher<'_>,
    runtime: &Runtime,
    in_flight: usize,
    new: impl Fn() -> S,
    exchange: impl AsyncFn(S) -> S + 'static,
) {
    let exchange = Rc::new(exchange);
    let mut idle: Vec<S> = (0..in_flight).map(|_| new()).collect();
    measure_rounds(bencher, |rounds| {
        let began = Instant::now();
        LocalSet::new().block_on(runtime, async {
            let spawn = |mut state| {
                let exchange = Rc::clone(&exchange);
                spawn_local(async move {
                    for _ in 0..rounds {
                        state = exchange(state).await;
                    }
                    state
                })
            };
            let tasks: Vec<_> = idle.drain(..).map(spawn).collect();
            for task in tasks {
                idle.push(task.await.expect("the task has ended"));
            }
        });
        began.elapsed()
    });
}

/// A server, which runs until the program ends.
struct Site {
    origin: String,
    /// The certificate, if the server speaks TLS.
    certificate: Option<NamedTempFile>,
}

impl Site {
    fn plain() -> Self {
        Self::start("http", None, Server::bind(0).expect("a loopback port"))
    }

    fn with_tls() -> Self {
        let (config, certificate) = tls::server().expect("a certificate");
        let file = NamedTempFile::new().expect("a file");
        fs::write(file.path(), certificate).expect("a written file");
        let server = Server::bind(0).expect("a loopback port");
        Self::start("https", Some(file), server.with_tls(config))
    }

    fn start(scheme: &str, certificate: Option<NamedTempFile>, server: Server) -> Self {
        let origin = format!("{scheme}://{}", server.address());
        thread::spawn(move || server.run(None));
        Self {
            origin,
            certificate,
        }
    }

    fn root(&self) -> Option<&Path> {
        self.certificate.as_ref().map(NamedTempFile::path)
    }

    fn target(&self, path: &str) -> Target {
        format!("{}{path}", self.origin).parse().expect("a URL")
    }

    fn upstream(&self, target: &Target) -> Upstream {
        let upstream = Upstream::tcp([target.address]).with_host(&target.authority);
        match self.certificate {
            Some(_) => upstream.with_tls(target.host()),
            None => upstream,
        }
    }

    fn host_config(&self, connections: usize) -> HostConfig {
        let root = self.root().map(|path| PemOrDer::File(path.to_owned()));
        HostConfig {
            max_connections: NonZeroUsize::new(connections).expect("a connection"),
            tls: TlsConfig {
                roots: match root {
                    Some(_) => TlsRoots::None,
                    None => TlsRoots::default(),
                },
                extra_roots: root.into_iter().collect(),
                ..TlsConfig::default()
            },
            ..HostConfig::default()
        }
    }
}
