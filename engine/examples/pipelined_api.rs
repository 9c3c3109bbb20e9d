//! Many small calls to one API over one connection: `cargo run -p courser --example pipelined_api -- 127.0.0.1:8080`
//!
//! Requests go out without waiting for the answers of those before them, many in one write (RFC 9112 §9.3.2). Without an
//! address it asks a server of its own.

mod support;

use std::num::NonZeroUsize;
use std::time::Instant;

use courser::{
    BatchConfig, BatchOrder, Call, HostClient, HostConfig, PipelineClient, PipelineConfig, Request,
    Response, Upstream,
};
use support::{Answer, Server};

const ITEMS: usize = 20_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::start(|asked| {
        let id = asked.target.rsplit('/').next().unwrap_or_default();
        Answer::ok(format!(r#"{{"id":{id},"name":"item {id}"}}"#))
            .header("Content-Type", "application/json")
    })?;
    let upstream: Upstream = match std::env::args().nth(1) {
        Some(address) => address.parse()?,
        None => server.address().to_string().parse()?,
    };
    let calls =
        || (0..ITEMS).map(|id| Call::new(Request::get(format!("/items/{id}")), Response::new()));
    // A result for each call, in the order of the calls, with so many in flight.
    let batch = BatchConfig {
        max_in_flight: NonZeroUsize::new(256).unwrap_or(NonZeroUsize::MIN),
        order: BatchOrder::Input,
        ..BatchConfig::default()
    };

    let mut config = PipelineConfig::default();
    config.host.max_connections = NonZeroUsize::MIN;
    config.max_pending = batch.max_in_flight;
    let mut client = PipelineClient::new(upstream.clone(), config)?;
    let began = Instant::now();
    let mut first = String::new();
    for (id, done) in client.call_many(calls(), batch) {
        done.outcome?;
        if id == 0 {
            first = String::from_utf8_lossy(done.response.body()).into_owned();
        }
    }
    println!("the first answer: {first}");
    println!(
        "pipelined: {ITEMS} calls on one connection in {:.2?}",
        began.elapsed()
    );

    // The same with one call at a time on the connection.
    let config = HostConfig {
        max_connections: NonZeroUsize::MIN,
        ..HostConfig::default()
    };
    let mut client = HostClient::new(upstream, config)?;
    let began = Instant::now();
    for (_, done) in client.call_many(calls(), batch) {
        done.outcome?;
    }
    println!(
        "one at a time: {ITEMS} calls on one connection in {:.2?}",
        began.elapsed()
    );
    Ok(())
}
