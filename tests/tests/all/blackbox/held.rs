//! The limit on the bytes of bodies that a client holds for all calls together.

use std::io::Read as _;

use courser::{Call, ErrorKind, HostConfig, LimitExceeded, Request, Response};
use tests::clients::{client_with, config};
use tests::script::{Gate, Server, connection};

use super::response;

const KIB: usize = 1024;
const LIMIT: u64 = 1024 * 1024;

fn limited(held_bytes: u64) -> HostConfig {
    HostConfig {
        held_bytes: Some(held_bytes),
        ..config()
    }
}

fn calls(count: u64) -> impl Iterator<Item = Call> {
    (0..count).map(|tag| Call::new(Request::get("/"), Response::new()).tag(tag))
}

#[test]
fn calls_that_hold_too_much_together_fail_and_the_others_go_on() {
    let gate = Gate::new();
    let answer = response(vec![7; 800 * KIB]);
    let (half, rest) = answer.split_at(400 * KIB);
    let script = connection().request().send(half).wait(&gate).send(rest);
    let server = Server::every(script.always(&answer));
    let mut client = client_with(&server, limited(LIMIT));
    calls(4).for_each(|call| _ = client.submit(call));
    let (mut failed, mut served) = (0, 0);
    while let Some(done) = client.wait(None).unwrap() {
        match done.outcome {
            Ok(()) => {
                assert_eq!(done.response.body(), [7; 800 * KIB]);
                served += 1;
            }
            Err(error) => {
                let kind = error.kind();
                let limit = ErrorKind::Limit(LimitExceeded::HeldBytes(LIMIT));
                assert_eq!(format!("{kind:?}"), format!("{limit:?}"));
                failed += 1;
            }
        }
        // Four halves are too much, and so are two whole bodies.
        if failed == 2 {
            gate.open_for_all();
        }
    }
    assert!(served >= 1, "{failed} failed");
    assert_eq!(failed + served, 4);
    // Bodies that were taken do not count, nor do those that a consumer reads as they come.
    for _ in 0..5 {
        let mut response = Response::new();
        client.get("/", &mut response).unwrap();
        assert_eq!(response.body().len(), 800 * KIB);
    }
    let mut client = client_with(&server, limited(1));
    let (mut request, mut response) = (Request::get("/"), Response::new());
    let mut body = client.open(&mut request, &mut response).unwrap();
    assert_eq!(body.read_to_end(&mut Vec::new()).unwrap(), 800 * KIB);
}
