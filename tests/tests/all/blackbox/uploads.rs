//! Request bodies: written exactly once whatever the socket takes, held back for `100 Continue`, stopped by an early
//! answer.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use courser::{Call, ErrorKind, Misuse, Request, Response};
use tests::clients::{assert_nothing_left, client, drive_all, drive_until, run};
use tests::script::{Gate, PATIENCE, Script, Server, connection};

use super::OK;

const CONTINUE: &str = "HTTP/1.1 100 Continue\r\n\r\n";
const REFUSED: &str = "HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig";

#[test]
fn fault_39_a_large_body_arrives_once_through_small_buffers() {
    let body: Vec<u8> = (0..8_000_000u32).map(|n| ((n * 31) >> 3) as u8).collect();
    let server = Server::every(connection().small_buffers().request().send(OK));
    let mut client = client(&server);
    client
        .call(&mut Request::post("/", body.clone()), &mut Response::new())
        .unwrap();
    let mut streamed = Request::new("POST", "/");
    streamed.body_stream(io::Cursor::new(body.clone()), Some(body.len() as u64));
    let second = Server::every(connection().small_buffers().request().send(OK));
    let mut other = tests::clients::client(&second);
    other.call(&mut streamed, &mut Response::new()).unwrap();
    for server in [&server, &second] {
        assert!(server.requests()[0].body() == body, "not the same bytes");
    }
    assert_nothing_left(client, &server);
    assert_nothing_left(other, &second);
}

#[test]
fn t13_an_early_answer_during_an_upload_is_delivered() {
    // The server answers after the head, reads nothing more, and ends in one of the ways in which servers end.
    let endings: [fn(Script) -> Script; 4] = [
        |script| script,
        Script::half_close,
        Script::close,
        Script::reset,
    ];
    for (number, end) in endings.into_iter().enumerate() {
        let gate = Gate::new();
        let script = connection()
            .small_buffers()
            .head()
            .send(REFUSED)
            .wait(&gate);
        let server = Server::play([end(script), connection().always(OK)]);
        let mut client = client(&server);
        let mut request = Request::new("POST", "/");
        request.body_stream(io::repeat(b'x'), None);
        client.submit(Call::new(request, Response::new()));
        // For the endings that throw bytes away the answer is read first: no protocol can save more than that.
        let mut completions =
            drive_until(&mut client, "it is answered", |_, _| gate.arrived() == 1);
        completions.extend(drive_all(&mut client));
        gate.open();
        let completion = completions.remove(0);
        completion
            .outcome
            .unwrap_or_else(|error| panic!("ending {number}: {error:?}"));
        assert_eq!(completion.response.status(), 413);
        assert_eq!(completion.response.body(), b"big");
        client.get("/", &mut Response::new()).unwrap();
        assert_eq!(server.served_by(), [0, 1], "ending {number}");
        assert_nothing_left(client, &server);
    }
}

/// RFC 9112 §9.5: a server that answers early may go on to read, and most need the whole body.
#[test]
fn an_upload_goes_on_after_the_head_of_a_streamed_response() {
    const LENGTH: usize = 16 << 20;
    // The server reads on when the client has the head, so that the head comes before the whole request was sent.
    let gate = Gate::new();
    let server = Server::play([connection()
        .head()
        .send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n")
        .wait(&gate)
        .take(LENGTH)
        .send("0\r\n\r\n")
        .always(OK)]);
    let mut client = client(&server);
    let mut request = Request::post("/", vec![b'x'; LENGTH]);
    let mut body = client.open(&mut request, &mut Response::new()).unwrap();
    gate.open();
    let mut read = String::new();
    body.read_to_string(&mut read).unwrap();
    assert_eq!(read, "hi");
    assert_eq!(body.take_request().unwrap().method(), "POST");
    body.finish().unwrap();
    assert_eq!(server.taken()[0].len(), LENGTH);
    client.get("/", &mut Response::new()).unwrap();
    assert_eq!(server.accepted(), 1);
    assert_nothing_left(client, &server);
}

#[test]
fn t13b_an_answer_followed_by_a_reset_is_delivered_not_the_broken_pipe() {
    let gate = Gate::new();
    let server = Server::play([connection().head().wait(&gate).send(REFUSED).reset()]);
    let mut client = client(&server);
    let source = Gate::new();
    let mut request = Request::new("POST", "/");
    request.body_stream(AfterGate(source.clone()), None);
    let id = client.submit(Call::new(request, Response::new()));
    drive_until(&mut client, "the head is there", |_, _| gate.arrived() == 1);
    // Answer and reset happen while the client looks away, and then there is more to write: that write fails.
    gate.open();
    server.wait_ended(1);
    source.open_for_all();
    client.resume(id);
    let completion = drive_all(&mut client).remove(0);
    completion.outcome.unwrap();
    assert_eq!(completion.response.status(), 413);
    assert_eq!(completion.response.body(), b"big");
    assert_nothing_left(client, &server);
}

#[test]
fn expect_the_body_waits_for_100_continue() {
    let gate = Gate::new();
    let server = Server::play([connection()
        .head()
        .wait(&gate)
        .send(CONTINUE)
        .read(4)
        .send(OK)
        .always(OK)]);
    let mut client = client(&server);
    let mut request = Request::post("/", "body");
    request.expect_continue(PATIENCE);
    client.submit(Call::new(request, Response::new()));
    drive_until(&mut client, "the head is there", |_, _| gate.arrived() == 1);
    assert_eq!(server.requests()[0].header("Expect"), ["100-continue"]);
    gate.open();
    let completion = drive_all(&mut client).remove(0);
    completion.outcome.unwrap();
    assert_eq!(completion.response.body(), b"ok");
    let interim: Vec<u16> = completion
        .response
        .interim()
        .map(|head| head.status())
        .collect();
    assert_eq!(interim, [100]);
    client.get("/", &mut Response::new()).unwrap();
    assert_eq!(server.accepted(), 1);
    assert_nothing_left(client, &server);
}

#[test]
fn expect_a_final_answer_means_that_the_body_is_not_sent() {
    let server = Server::play([connection().head().send(REFUSED), connection().always(OK)]);
    let mut client = client(&server);
    let mut request = Request::post("/", "body");
    request.expect_continue(PATIENCE);
    let mut response = Response::new();
    client.call(&mut request, &mut response).unwrap();
    assert_eq!(response.status(), 413);
    client.get("/", &mut response).unwrap();
    assert_eq!(server.served_by(), [0, 1]);
    assert_nothing_left(client, &server);
    assert_eq!(server.stray(), b"");
}

#[test]
fn expect_a_server_that_says_nothing_gets_the_body_after_the_wait() {
    let server = Server::play([connection().request().send(OK)]);
    let mut client = client(&server);
    let wait = Duration::from_millis(50);
    let mut request = Request::post("/", "body");
    request.expect_continue(wait);
    let started = Instant::now();
    client.call(&mut request, &mut Response::new()).unwrap();
    assert!(started.elapsed() >= wait);
    assert_eq!(server.requests()[0].body(), b"body");
    assert_nothing_left(client, &server);
}

#[test]
fn expect_other_interim_responses_do_not_release_the_body() {
    let (before, after) = (Gate::new(), Gate::new());
    let server = Server::play([connection()
        .head()
        .send("HTTP/1.1 103 Early Hints\r\n\r\n")
        .wait(&before)
        .send(REFUSED)
        .wait(&after)]);
    let mut client = client(&server);
    let mut request = Request::post("/", "body");
    request.expect_continue(PATIENCE);
    client.submit(Call::new(request, Response::new()));
    drive_until(&mut client, "the hints are sent", |_, _| {
        before.arrived() == 1
    });
    client.wait(Some(Duration::from_millis(1))).unwrap();
    before.open();
    let completion = drive_all(&mut client).remove(0);
    completion.outcome.unwrap();
    assert_eq!(completion.response.status(), 413);
    after.open();
    assert_nothing_left(client, &server);
    assert_eq!(server.stray(), b"");
}

#[test]
fn a_body_stream_that_fails_fails_its_call() {
    let server = Server::play([connection().request(), connection().always(OK)]);
    let mut client = client(&server);
    let mut request = Request::new("POST", "/");
    request.body_stream(io::Cursor::new("half").chain(Broken), None);
    let error = client.call(&mut request, &mut Response::new()).unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::Misuse(Misuse::BodySource(_))),
        "{error:?}"
    );
    assert_nothing_left(client, &server);
}

#[test]
fn a_body_stream_of_the_wrong_length_fails_its_call() {
    let server = Server::every(connection().request());
    let mut client = client(&server);
    let mut short = Request::new("POST", "/");
    short.body_stream(io::Cursor::new("four"), Some(10));
    let error = client.call(&mut short, &mut Response::new()).unwrap_err();
    assert!(
        matches!(
            error.kind(),
            ErrorKind::Misuse(Misuse::BodyLength {
                declared: 10,
                produced: 4
            })
        ),
        "{error:?}"
    );
    assert_nothing_left(client, &server);
}

#[test]
fn a_body_stream_that_has_nothing_yet_is_resumed() {
    let server = Server::every(connection().always(OK));
    let mut client = client(&server);
    let ready = Arc::new(AtomicUsize::new(0));
    let mut request = Request::new("POST", "/");
    request.body_stream(
        Slow {
            ready: Arc::clone(&ready),
            given: 0,
        },
        Some(3),
    );
    let id = client.submit(Call::new(request, Response::new()));
    let mut completions = Vec::new();
    for count in 1..=3 {
        ready.store(count, Ordering::SeqCst);
        client.resume(id);
        completions.extend(client.wait(Some(Duration::from_millis(1))).unwrap());
    }
    completions.extend(drive_all(&mut client));
    completions.remove(0).outcome.unwrap();
    assert_eq!(server.requests()[0].body(), b"xxx");
    assert_nothing_left(client, &server);
}

#[test]
fn requests_are_reused_with_their_bodies() {
    let server = Server::every(connection().always(OK));
    let mut client = client(&server);
    let mut call = Call::new(Request::post("/", "again"), Response::new());
    for _ in 0..3 {
        let completion = run(&mut client, [call]).remove(0);
        completion.outcome.unwrap();
        call = Call::new(completion.request, completion.response);
    }
    assert!(server.requests().iter().all(|r| r.body() == b"again"));
    assert_eq!(server.requests().len(), 3);
    assert_nothing_left(client, &server);
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

struct Broken;

impl Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::other("the disk is gone"))
    }
}

/// Gives one byte for each that is ready, and `WouldBlock` when there is none.
struct Slow {
    ready: Arc<AtomicUsize>,
    given: usize,
}

impl Read for Slow {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.given >= self.ready.load(Ordering::SeqCst) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.given += 1;
        buffer[0] = b'x';
        Ok(1)
    }
}
