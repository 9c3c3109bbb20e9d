//! Response bodies read piece by piece: copied and taken. Readers that are slower than their servers are in `engine/tests`.

use courser::{Bytes, Request, Response};
use tests::clients::{assert_nothing_left, client};
use tests::script::{Server, connection};

use super::OK;

/// Pieces can be copied or taken, in any order.
#[test]
fn a_body_is_copied_and_taken_by_turns() {
    const LENGTH: usize = 300_000;
    let body: Vec<u8> = (0..LENGTH).map(|at| (at % 251) as u8).collect();
    let mut reply = format!("HTTP/1.1 200 OK\r\nContent-Length: {LENGTH}\r\n\r\n").into_bytes();
    reply.extend(&body);
    let server = Server::play([connection().request().send(reply).always(OK)]);
    let mut client = client(&server);
    let (mut request, mut response) = (Request::get("/"), Response::new());
    let mut received = client.open(&mut request, &mut response).unwrap();
    let (mut all, mut kept): (Vec<u8>, Vec<(usize, Bytes)>) = (Vec::new(), Vec::new());
    let mut piece = [0; 1000];
    loop {
        let n = received.read_some(&mut piece).unwrap();
        all.extend(&piece[..n]);
        let Some(chunk) = received.chunk().unwrap() else {
            break;
        };
        all.extend(&chunk);
        // A chunk that the caller keeps is not overwritten by later ones.
        kept.push((all.len(), chunk));
    }
    assert!(received.chunk().unwrap().is_none());
    received.finish().unwrap();
    assert!(all == body);
    for (end, chunk) in kept {
        assert!(chunk == body[end - chunk.len()..end]);
    }
    client.get("/", &mut response).unwrap();
    assert_eq!(server.accepted(), 1);
    assert_nothing_left(client, &server);
}
