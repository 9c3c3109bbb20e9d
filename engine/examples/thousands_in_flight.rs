//! Thousands of calls in flight on one thread:
//! `cargo run -p courser --example thousands_in_flight -- https://a.example/ http://b.example/`
//!
//! Without URLs it asks a server of its own, whose answers take 20 ms each: one after the other, 10,000 of them would
//! take more than three minutes.

mod support;

use std::time::{Duration, Instant};

use courser::{Call, Client, Config, HostConfig, Redirects, Request, Response};
use support::{Answer, Server};

/// Calls that are in flight at a time.
const IN_FLIGHT: usize = 2_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::start(|_| Answer::ok("hello").after(Duration::from_millis(20)))?;
    let given: Vec<String> = std::env::args().skip(1).collect();
    let urls = match given.is_empty() {
        true => vec![server.url("/"); 10_000],
        false => given.clone(),
    };
    // Of these thousands, 256 have a connection, which is as many as a server should be asked to bear; the others wait
    // for one, in their order.
    let mut client = Client::new(Config {
        redirects: Redirects::limit(10),
        host: HostConfig {
            max_connections: 256.try_into()?,
            stats: true,
            ..HostConfig::default()
        },
        ..Config::default()
    })?;

    let began = Instant::now();
    let mut left = (0..).zip(&urls);
    for (number, url) in left.by_ref().take(IN_FLIGHT) {
        client.submit(Call::new(Request::get(url), Response::new()).tag(number));
    }
    let mut failed = 0;
    // Nothing moves but in `wait`, which returns when something is done.
    while let Some(done) = client.wait(None)?.done() {
        if let Err(error) = &done.outcome {
            failed += 1;
            println!("{}: {error}", urls[done.tag as usize]);
        } else if !given.is_empty() {
            let (status, length) = (done.response.status(), done.response.body().len());
            println!("{}: {status}, {length} bytes", urls[done.tag as usize]);
        }
        // The buffers that came back serve the next call.
        if let Some((number, url)) = left.next() {
            let mut request = done.request;
            request.set_target(url);
            client.submit(Call::new(request, done.response).tag(number));
        }
    }

    let stats = client.stats();
    println!(
        "{} calls in {:.2?}, {failed} failed; half of them within {:?}, 99 of 100 within {:?}",
        stats.calls,
        began.elapsed(),
        stats.total.quantile(0.5),
        stats.total.quantile(0.99),
    );
    println!("{} connections were opened", client.counters().opened);
    Ok(())
}
