//! One blocking GET over a kept connection on the loopback, with each client.
//!
//! Client and server share one core: to wake another core costs more than the exchange itself, and the cost varies.

use std::hint::black_box;
use std::thread;

use benches::measure::Target;
use benches::peers;
use benches::process::{cores, stay_on};
use benches::serve::Server;
use courser::{HostClient, HostConfig, Response, Upstream};
use criterion::{Criterion, criterion_group, criterion_main};
use tokio::runtime::{Builder, Runtime};

criterion_group!(benches, get);
criterion_main!(benches);

fn get(criterion: &mut Criterion) {
    let cores = cores().expect("a list of cores");
    stay_on(cores[0]).expect("a core");
    for path in ["/13", "/16k", "/headers"] {
        let target = target(path);
        let mut group = criterion.benchmark_group(format!("GET {path}"));
        group.bench_function("courser", |bencher| {
            let upstream = Upstream::tcp([target.address]);
            let mut client = HostClient::new(upstream, HostConfig::default()).expect("a client");
            let mut response = Response::new();
            bencher.iter(|| {
                client.get(&target.path, &mut response).expect("an answer");
                black_box(response.status())
            });
        });
        group.bench_function("hyper", |bencher| {
            let runtime = runtime();
            let exchange = peers::hyper::Exchange::new(&target, None).expect("a plain URL");
            let mut connection = None;
            bencher.iter(|| {
                let exchange = exchange.run(&mut connection);
                black_box(runtime.block_on(exchange).expect("an answer"))
            });
        });
        group.bench_function("reqwest", |bencher| {
            let runtime = runtime();
            let client = peers::reqwest::client(None).expect("a client");
            let asked = peers::reqwest::Asked::get(&target.url).expect("a plain URL");
            bencher.iter(|| {
                let exchange = peers::reqwest::exchange(&client, &asked);
                black_box(runtime.block_on(exchange).expect("an answer"))
            });
        });
        group.bench_function("ureq", |bencher| {
            let agent = peers::ureq::agent(None).expect("a client");
            let request = peers::ureq::request("GET", &target.url, None).expect("a plain URL");
            bencher.iter(|| black_box(peers::ureq::exchange(&agent, &request).expect("an answer")));
        });
        group.finish();
    }
}

/// The URL of a path on a new server, which runs until the program ends.
fn target(path: &str) -> Target {
    let server = Server::bind(0).expect("a loopback port");
    let url = format!("http://{}{path}", server.address());
    thread::spawn(move || server.run(None));
    url.parse().expect("a plain URL")
}

fn runtime() -> Runtime {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
}
