//! `Shared::call_many`: results, permits, dropping, shutdown.

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
        assert!(matches!(
            error.kind(),
            ErrorKind::Limit(LimitExceeded::InFlight(3))
        ));
    }
    drop(held);
}

#[test]
fn a_batch_that_is_dropped_cancels_its_calls_and_no_others() {
    let server = Server::start();
    let client = default_client(&server);
    let other = client.send(call("/held/other"));
    let calls = std::iter::once(call("/first")).chain(std::iter::repeat_with(|| call("/held")));
    let mut results = client.call_many(calls, batch(4, BatchOrder::Completion));
    assert_eq!(results.next().unwrap().1.response.body(), b"/first");
    server.wait_held(4);
    drop(results);
    // The connections on which the dropped calls waited are closed.
    while client.in_flight() > 1 {
        thread::yield_now();
    }
    server.release();
    let done = block_on(other);
    done.outcome.unwrap();
    assert_eq!(done.response.body(), b"/held/other");
    assert_eq!(client.stats().failures.cancelled, client.stats().failed());
    assert_eq!(client.shutdown(LONG), 0);
}

#[test]
fn a_batch_ends_when_its_client_does() {
    let server = Server::start();
    let client = default_client(&server);
    let calls = (0..20).map(|_| call("/held"));
    let mut results = client.call_many(calls, batch(5, BatchOrder::Input));
    thread::scope(|scope| {
        scope.spawn(|| {
            server.wait_held(5);
            client.shutdown_now();
        });
        let mut failed = 0;
        for (_, done) in results.by_ref() {
            let error = done.outcome.unwrap_err();
            assert!(matches!(
                error.kind(),
                ErrorKind::Cancelled | ErrorKind::Stopped(Stopped::ShutDown)
            ));
            failed += 1;
        }
        assert_eq!(failed, 20);
    });
}

#[test]
fn a_batch_does_not_wait_on_the_clients_own_thread() {
    let server = Server::start();
    let client = default_client(&server);
    let (found, finds) = std::sync::mpsc::channel();
    let inner = client.clone();
    let retry = Retry {
        hook: Some(Arc::new(move |_| {
            let mut batch = inner.call_many([call("/")], BatchConfig::default());
            found.send(batch.next().unwrap().1.outcome).unwrap();
            None
        })),
        ..Retry::default()
    };
    let done = block_on(client.send(call("/cut").retry(retry)));
    done.outcome.unwrap_err();
    let error = finds.recv().unwrap().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Misuse(Misuse::OwnThread)));
}
