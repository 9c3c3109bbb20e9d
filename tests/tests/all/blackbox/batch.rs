//! `call_many` over real sockets, as the server sees it.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

use courser::{BatchConfig, BatchOrder, Call, ErrorKind, PeerFault, Request, Response};
use tests::clients::{assert_nothing_left, client};
use tests::script::{Gate, Server};

fn call(target: String) -> Call {
    Call::new(Request::get(target), Response::new())
}

fn config(max_in_flight: usize, order: BatchOrder) -> BatchConfig {
    BatchConfig {
        max_in_flight: NonZeroUsize::new(max_in_flight).unwrap(),
        order,
        ..BatchConfig::default()
    }
}

#[test]
fn exactly_so_many_are_in_flight_as_may_be() {
    // Five answers go out together or not at all.
    let (together, now, most) = (Barrier::new(5), AtomicUsize::new(0), AtomicUsize::new(0));
    let seen = Arc::new((together, now, most));
    let server = Server::answer({
        let seen = Arc::clone(&seen);
        move |request| {
            let (together, now, most) = &*seen;
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            together.wait();
            now.fetch_sub(1, Ordering::SeqCst);
            super::response(request.target())
        }
    });
    let mut client = client(&server);
    for order in [BatchOrder::Completion, BatchOrder::Input] {
        let calls = (0..40).map(|number| call(format!("/{number}")));
        let mut bodies = 0;
        for (number, done) in client.call_many(calls, config(5, order)) {
            done.outcome.unwrap();
            assert_eq!(done.response.body(), format!("/{number}").as_bytes());
            bodies += 1;
        }
        assert_eq!(bodies, 40);
    }
    assert_eq!(seen.2.load(Ordering::SeqCst), 5);
    assert_eq!(server.accepted(), 5);
    assert_nothing_left(client, &server);
}

#[test]
fn what_fails_and_what_is_cut_off_leaves_no_connection() {
    let gate = Gate::new();
    let server = Server::answer({
        let gate = gate.clone();
        move |request| match request.target().as_str() {
            "/held" => {
                gate.wait();
                super::response("")
            }
            "/garbage" => b"garbage\r\n\r\n".to_vec(),
            target => super::response(target),
        }
    });
    let mut client = client(&server);
    let calls = ["/a", "/garbage", "/b", "/garbage", "/c"].map(|target| call(target.to_owned()));
    let outcomes: Vec<_> = client
        .call_many(calls, config(2, BatchOrder::Input))
        .map(|(_, done)| done.outcome)
        .collect();
    for (number, outcome) in outcomes.iter().enumerate() {
        match outcome {
            Ok(()) => assert_eq!(number % 2, 0),
            Err(error) => {
                assert_eq!(number % 2, 1);
                let kind = error.kind();
                assert!(matches!(kind, ErrorKind::Peer(PeerFault::BadStatusLine)));
            }
        }
    }
    let calls = std::iter::once("/a").chain(std::iter::repeat("/held"));
    let mut batch = client.call_many(
        calls.map(|target| call(target.to_owned())),
        config(4, BatchOrder::Completion),
    );
    batch.next().unwrap().1.outcome.unwrap();
    assert_eq!(batch.in_flight(), 4);
    drop(batch);
    gate.open_for_all();
    assert_nothing_left(client, &server);
}
