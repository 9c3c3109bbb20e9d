//! What is tried again is the program's decision: `cargo run -p courser --example custom_retry -- 127.0.0.1:8080`
//!
//! Rules say it for classes of failures and for statuses; a hook decides the rest. Without an address it asks a server
//! of its own, which fails in several ways.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use courser::policy::{FailureClass, RetryBudget, RetryOn, RetryRule, Statuses};
use courser::{
    Backoff, Call, HostClient, HostConfig, Observer, ObserverEvent, Request, Response, Retry, Sent,
    Upstream,
};
use support::{Answer, Server};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Every third request is served; the others get a 503, or a broken answer.
    let count = AtomicUsize::new(0);
    let server = Server::start(move |asked| {
        match (
            count.fetch_add(1, Ordering::SeqCst) % 3,
            asked.target.as_str(),
        ) {
            (2, _) => Answer::ok("done"),
            (_, "/cut") => Answer::new("200 OK\r\nTransfer-Encoding: nonsense", ""),
            _ => Answer::new("503 Service Unavailable", "busy"),
        }
    })?;
    let upstream: Upstream = match std::env::args().nth(1) {
        Some(address) => address.parse()?,
        None => server.address().to_string().parse()?,
    };

    let attempts = 5.try_into()?;
    // Pauses of up to 20, 40, 80, ... ms, each a random part of that, so that clients that failed together do not come
    // back together. A Retry-After that asks for more is honoured.
    let backoff = Backoff {
        initial: Duration::from_millis(20),
        ..Backoff::default()
    };
    let rule = |on| RetryRule {
        attempts,
        backoff,
        ..RetryRule::new(on)
    };
    let retry = Retry {
        rules: vec![
            rule(RetryOn::Failure(FailureClass::Refused)),
            rule(RetryOn::Status(
                Statuses::none().and(429..=429).and(502..=504),
            )),
        ],
        // Whatever else fails is tried again at once if the server can have seen nothing of it, once.
        hook: Some(Arc::new(|failed| {
            let unseen = failed.error.sent() == Sent::Nothing && failed.attempt == 1;
            unseen.then_some(Duration::ZERO)
        })),
        max_elapsed: Some(Duration::from_secs(20)),
        ..Retry::default()
    };
    // For calls that the server knows by a key: it does them once, however often they come.
    let keyed = Retry {
        hook: Some(Arc::new(|failed| {
            (failed.attempt <= 3).then(|| failed.attempt * Duration::from_millis(10))
        })),
        ..retry.clone()
    };
    let config = HostConfig {
        retry,
        // So many retries for each ten requests, and a few when there are hardly any: retries never double an outage.
        retry_budget: Some(RetryBudget::default()),
        observer: Some(Observer::new(|event| {
            if let ObserverEvent::Retrying { cause, pause, .. } = event {
                println!("  {cause}: again in {pause:.1?}");
            }
        })),
        ..HostConfig::default()
    };
    let mut client = HostClient::new(upstream, config)?;

    let call = |request| Call::new(request, Response::new());
    let mut coffee = Request::post("/cut", "one coffee");
    coffee.add_header("Idempotency-Key", "6f1c");
    let tea = Request::post("/cut", "one tea");
    for (name, call) in [
        ("GET, while the server is busy", call(Request::get("/"))),
        (
            "POST with a key, and a broken answer",
            call(coffee).retry(keyed),
        ),
        ("POST without one: it may have been done", call(tea)),
    ] {
        println!("{name}");
        client.submit(call);
        while let Some(done) = client.wait(None)?.done() {
            let (status, attempts) = (done.response.status(), done.report.attempts());
            match done.outcome {
                Ok(()) => println!("  {status} after {attempts} attempts"),
                Err(error) => println!("  {error}"),
            }
        }
    }
    Ok(())
}
