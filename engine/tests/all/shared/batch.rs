//! `Shared::call_many` and the limit of calls. All else about batches is in `scenarios/batch.rs`.

use courser::{BatchConfig, BatchOrder};

use super::*;

fn batch(max_in_flight: usize, order: BatchOrder) -> BatchConfig {
    BatchConfig {
        max_in_flight: NonZeroUsize::new(max_in_flight).unwrap(),
        order,
        ..BatchConfig::default()
    }
}

#[test]
fn a_batch_makes_do_with_the_permits_that_there_are() {
    let server = Server::start();
    let config = SharedConfig {
        max_in_flight: 3,
        ..SharedConfig::default()
    };
    let client = server.client(config, HostConfig::default());
    let calls = (0..100).map(|n| call(&format!("/{n}")));
    let results = client.call_many(calls, batch(50, BatchOrder::Completion));
    assert_eq!(
        results.filter(|(_, done)| done.outcome.is_ok()).count(),
        100
    );
    // Without any permit, the batch fails and does not wait for others.
    let held: Vec<_> = (0..3).map(|_| client.send(call("/held"))).collect();
    server.wait_held(3);
    for (_, done) in client.call_many((0..2).map(|_| call("/")), BatchConfig::default()) {
        let error = done.outcome.unwrap_err();
        assert_kind!(error, ErrorKind::Limit(LimitExceeded::InFlight(3)));
    }
    drop(held);
}
