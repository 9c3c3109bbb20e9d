//! Batches: a result for each call, and what a dropped batch leaves. Limits and order are in `client/batch.rs`.

use std::num::NonZeroUsize;

use courser::net::sim::SimNet;
use courser::{BatchConfig, BatchOrder, HostConfig, Response};

use super::{Heard, MS, call, hear, host_client, next, target};

/// Answers `/N` after N milliseconds with its target, `/never` not at all.
fn served() -> (SimNet, Heard) {
    let net = SimNet::new(1);
    let heard = hear(&net, 1, |peer, head| {
        let (target, length) = (target(head), target(head).len());
        if let Ok(pause) = target[1..].parse::<u32>() {
            peer.wait(pause * MS);
            peer.send(format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{target}"
            ));
        }
    });
    (net, heard)
}

fn config(max_in_flight: usize, order: BatchOrder) -> BatchConfig {
    BatchConfig {
        max_in_flight: NonZeroUsize::new(max_in_flight).unwrap(),
        order,
        ..BatchConfig::default()
    }
}

#[test]
fn a_batch_that_is_dropped_leaves_nothing() {
    let (net, heard) = served();
    let mut client = host_client(&net, HostConfig::default());
    let calls = std::iter::repeat_with(|| call("/100"));
    let mut batch = client.call_many(calls, config(8, BatchOrder::Completion));
    assert!(batch.next().unwrap().1.outcome.is_ok());
    // Seven more calls ended in the same iteration; their results are not returned.
    drop(batch);
    let calls = std::iter::once(call("/1")).chain(std::iter::repeat_with(|| call("/never")));
    let mut batch = client.call_many(calls, config(8, BatchOrder::Input));
    assert!(batch.next().unwrap().1.outcome.is_ok());
    // One more has begun instead of the one that ended.
    assert_eq!(batch.in_flight(), 8);
    drop(batch);
    assert_eq!(client.in_flight(), 0);
    assert!(client.wait(None).unwrap().done().is_none());
    let counters = client.counters();
    assert_eq!((counters.busy, counters.waiting), (0, 0));
    // Connections that waited for an answer are closed; one whose answer had come is kept.
    assert_eq!(net.open_streams(), counters.idle);
    let before = heard.borrow().len();
    client.maintain(10_000 * MS).unwrap();
    assert_eq!(heard.borrow().len(), before);
    client.get("/5", &mut Response::new()).unwrap();
    drop(client);
    assert_eq!(net.open_streams(), 0);
}

#[test]
fn other_calls_of_the_client_are_left_alone() {
    let (net, _) = served();
    let mut client = host_client(&net, HostConfig::default());
    for tag in 0..5 {
        client.submit(call(format!("/{}", 10 + 20 * tag)).tag(100 + tag));
    }
    let slow = client.submit(call("/3000").tag(7));
    let streamed = client.submit(call("/15").tag(8).streaming(true));
    let calls = (0..20).map(|number| call(format!("/{}", 5 * number)).tag(1));
    let results = client.call_many(calls, config(3, BatchOrder::Completion));
    let own = results.filter(|(_, done)| done.tag == 1 && done.outcome.is_ok());
    assert_eq!(own.count(), 20);
    // A batch that is cut off cancels only its own calls.
    let mut cut_off = client.call_many(
        std::iter::repeat_with(|| call("/20")),
        config(3, BatchOrder::Completion),
    );
    cut_off.next().unwrap();
    drop(cut_off);
    let mut tags = Vec::new();
    while let Some(done) = client.wait(None).unwrap().done() {
        done.outcome.unwrap();
        assert_eq!(done.id == slow, done.tag == 7);
        assert_eq!(done.id == streamed, done.tag == 8);
        tags.push(done.tag);
    }
    assert_eq!(tags, [100, 8, 101, 102, 103, 104]);
    assert_eq!(client.readable_body(), Some(streamed));
    assert!(client.cancel(streamed));
    assert_eq!(next(&mut client).tag, 7);
    assert_eq!(client.in_flight(), 0);
}
