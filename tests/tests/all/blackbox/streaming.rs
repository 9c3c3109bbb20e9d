//! Response bodies read piece by piece: copied and taken, by a reader that is slower than its server.

use courser::{Bytes, Call, Request, Response};
use tests::clients::{
    assert_nothing_left, client, client_with, config, drive_until, with_longer_limits,
};
use tests::script::{PATIENCE, Server, connection};

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

#[test]
fn m05f_time_in_which_the_reader_is_behind_is_not_the_server_s() {
    let total = 4 << 20;
    let reply = super::response(vec![b'x'; total]);
    let server = Server::every(connection().always(reply));
    with_longer_limits(|limit| {
        let mut config = config();
        config.timeouts.between_bytes = Some(limit);
        let mut client = client_with(&server, config);
        client.submit(Call::new(Request::get("/"), Response::new()).streaming(true));
        let head = drive_until(&mut client, "the head is there", |_, done| !done.is_empty());
        let Some(id) = head[0].body else {
            return false;
        };
        client.maintain(limit * 3).unwrap();
        let mut buffer = vec![0; 64 * 1024];
        let mut received = 0;
        loop {
            match client.read_body(id, &mut buffer) {
                Ok(courser::Read::Data(count)) => received += count,
                Ok(courser::Read::Pending) => {
                    assert!(client.wait(Some(PATIENCE)).unwrap().is_none());
                }
                Ok(courser::Read::End { .. }) => break,
                // The server did pause for so long.
                Err(error) => {
                    assert!(error.is_timeout(), "{error:?}");
                    return false;
                }
            }
            while client.readable_body().is_some() {}
        }
        assert_eq!(received, total);
        assert_nothing_left(client, &server);
        true
    });
}
