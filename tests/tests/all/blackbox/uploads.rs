//! Request bodies that are stopped by an early answer or by their source.

use std::io::{self, Read};
use std::time::Duration;

use courser::{Call, Request, Response};
use tests::clients::{assert_none_left, client, drive_all};
use tests::script::{Gate, Server, connection, eventually};

const REFUSED: &str = "HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig";

#[test]
fn t13b_an_answer_followed_by_a_reset_is_delivered_not_the_broken_pipe() {
    let gate = Gate::new();
    let server = Server::play([connection().head().wait(&gate).send(REFUSED).reset()]);
    let mut client = client(&server);
    let source = Gate::new();
    let mut request = Request::new("POST", "/");
    request.body_stream(AfterGate(source.clone()), None);
    let id = client.submit(Call::new(request, Response::new()));
    eventually("the head is there", || {
        let done = client.wait(Some(Duration::from_millis(1)));
        assert!(done.unwrap().done().is_none());
        gate.arrived() == 1
    });
    // Answer and reset happen while the client looks away, and then there is more to write: that write fails.
    gate.open();
    server.wait_all_ended();
    source.open();
    client.resume(id);
    let completion = drive_all(&mut client).remove(0);
    completion.outcome.unwrap();
    assert_eq!(completion.response.status(), 413);
    assert_eq!(completion.response.body(), b"big");
    assert_none_left(client, [&server]);
}

/// Says `WouldBlock` until the gate is open, then gives bytes without end.
struct AfterGate(Gate);

impl Read for AfterGate {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !self.0.is_open() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        buffer.fill(b'x');
        Ok(buffer.len())
    }
}
