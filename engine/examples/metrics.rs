//! What a client does, in the text form that Prometheus reads: `cargo run -p courser --example metrics`
//!
//! Statistics are counted by the engine; what they do not have is counted by an observer. The program makes some
//! calls to a server of its own, and then reads its own metrics over HTTP, as Prometheus would.

mod support;

use std::fmt::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use courser::policy::{RetryOn, RetryRule, Statuses};
use courser::{
    BatchConfig, Call, Client, Config, Histogram, HostConfig, Observer, ObserverEvent, Request,
    Response, Retry, Shared, SharedConfig, Stats,
};
use support::{Answer, Server};

/// What the statistics do not count.
#[derive(Default)]
struct Connections {
    opened: AtomicU64,
    failed: AtomicU64,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The server that is asked: every tenth answer is a 503, some take longer than others.
    let count = AtomicUsize::new(0);
    let server = Server::start(move |asked| match count.fetch_add(1, Ordering::SeqCst) {
        _ if asked.target == "/missing" => Answer::new("404 Not Found", ""),
        n if n % 10 == 9 => Answer::new("503 Service Unavailable", ""),
        n => Answer::ok("hello").after(Duration::from_millis(n as u64 % 4)),
    })?;

    let connections = Arc::new(Connections::default());
    // It runs on the client's thread, and has to be quick.
    let observer = Observer::new({
        let connections = Arc::clone(&connections);
        move |event| match event {
            ObserverEvent::Connected { .. } => {
                _ = connections.opened.fetch_add(1, Ordering::Relaxed)
            }
            ObserverEvent::ConnectFailed { .. } => {
                _ = connections.failed.fetch_add(1, Ordering::Relaxed)
            }
            _ => {}
        }
    });
    let on_503 = RetryRule::new(RetryOn::Status(Statuses::none().and(503..=503)));
    let config = Config {
        host: HostConfig {
            observer: Some(observer),
            retry: Retry {
                rules: vec![on_503],
                ..Retry::default()
            },
            ..HostConfig::default()
        },
        ..Config::default()
    };
    // A shared client always has statistics; the others do if `HostConfig::stats` says so.
    let client = Shared::spawn(SharedConfig::default(), move |_| {
        Client::new(config.clone())
    })?;

    let urls = [
        server.url("/"),
        server.url("/missing"),
        "http://127.0.0.1:1/".to_owned(),
    ];
    let calls = (0..300).map(|n| Call::new(Request::get(&urls[n % 3]), Response::new()));
    let good = client.call_many(calls, BatchConfig::default());
    let good = good.filter(|(_, done)| done.outcome.is_ok()).count();
    println!("{good} of 300 calls had an answer\n");

    // The endpoint that Prometheus is told of. Looking costs the client's thread nothing.
    let watched = client.clone();
    let endpoint = Server::start(move |_| {
        let mut text = String::new();
        match metrics(&mut text, &watched.stats(), &connections) {
            Ok(()) => Answer::ok(text).header("Content-Type", "text/plain; version=0.0.4"),
            Err(_) => Answer::new("500 Internal Server Error", ""),
        }
    })?;
    let mut response = Response::new();
    Client::new(Config::default())?.get(&endpoint.url("/metrics"), &mut response)?;
    print!("{}", String::from_utf8_lossy(response.body()));
    Ok(())
}

fn metrics(to: &mut String, stats: &Stats, connections: &Connections) -> fmt::Result {
    writeln!(to, "# TYPE http_client_responses_total counter")?;
    for (first_digit, count) in stats.statuses.iter().enumerate().filter(|(_, n)| **n > 0) {
        writeln!(
            to,
            "http_client_responses_total{{class=\"{first_digit}xx\"}} {count}"
        )?;
    }
    writeln!(to, "# TYPE http_client_failures_total counter")?;
    let failures = &stats.failures;
    for (cause, count) in [
        ("peer", failures.peer),
        ("io", failures.io),
        ("timeout", failures.timeout),
        ("tls", failures.tls),
        ("dns", failures.dns),
        ("breaker_open", failures.breaker_open),
        ("cancelled", failures.cancelled),
    ] {
        writeln!(
            to,
            "http_client_failures_total{{cause=\"{cause}\"}} {count}"
        )?;
    }
    let opened = connections.opened.load(Ordering::Relaxed);
    let failed = connections.failed.load(Ordering::Relaxed);
    for (name, value) in [
        ("retries_total", stats.retries),
        ("reused_total", stats.reused),
        ("connections_total", opened),
        ("connect_failures_total", failed),
    ] {
        writeln!(
            to,
            "# TYPE http_client_{name} counter\nhttp_client_{name} {value}"
        )?;
    }
    writeln!(
        to,
        "# TYPE http_client_in_flight gauge\nhttp_client_in_flight {}",
        stats.in_flight
    )?;
    histogram(to, "http_client_duration_seconds", &stats.total)?;
    histogram(to, "http_client_first_byte_seconds", &stats.first_byte)
}

/// Prometheus counts in each bucket what is in those before it, too. The engine's buckets are finer than a dashboard
/// needs: these are every doubling.
fn histogram(to: &mut String, name: &str, histogram: &Histogram) -> fmt::Result {
    writeln!(to, "# TYPE {name} histogram")?;
    let mut bound = Duration::from_micros(250);
    while bound < Duration::from_secs(1) {
        let within = histogram.buckets().filter(|(up_to, _)| *up_to <= bound);
        let count: u64 = within.map(|(_, count)| count).sum();
        writeln!(
            to,
            "{name}_bucket{{le=\"{}\"}} {count}",
            bound.as_secs_f64()
        )?;
        bound *= 2;
    }
    let count = histogram.count();
    let sum = histogram.mean().as_secs_f64() * count as f64;
    writeln!(
        to,
        "{name}_bucket{{le=\"+Inf\"}} {count}\n{name}_sum {sum:.6}\n{name}_count {count}"
    )
}
